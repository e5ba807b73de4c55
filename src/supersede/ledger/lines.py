"""What the lines of a ledger file hold, as strict models: what is not in this form is refused."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from supersede.models import EdgeReason, Frozen, Share, Text, Trust
from supersede.periods import Instant, Period
from supersede.results import Cardinality


class Strict(Frozen):
    """Base of what a ledger holds: nothing is read as something else."""

    model_config = ConfigDict(strict=True)


def _half_floats(text: str) -> str:
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError("not a vector")
    [float(x) for x in text[1:-1].split(",")]
    return text


class SpaceEntry(Strict):
    """An embedding space of the ledger's vectors, its thresholds, and whether it was the active one."""

    model: Text
    dimensions: int = Field(ge=1, le=4000)
    min_similarity: Share
    near_duplicate: Share
    active: bool


class NamespaceEntry(Strict):
    """The last stamp of a namespace, and its latest recording time."""

    head: Instant
    recorded_at: Instant


class Header(Strict):
    """The first line. ``revision`` is the schema's, ``erasures`` counts the rows about what was erased."""

    supersede: Literal["ledger"]
    format: Literal[1]
    revision: str
    text_search: Text
    spaces: tuple[SpaceEntry, ...]
    namespaces: dict[Text, NamespaceEntry]
    erasures: int = Field(default=0, ge=0)
    erasure_key: Annotated[str, Field(pattern="^([0-9a-f]{2}){16,}$")] | None = None


class FactRow(Strict):
    """A fact; without a claim once it was erased."""

    id: UUID
    claim: Text | None = None
    subject: Text | None = None
    predicate: Text | None = None
    object: Text | None = None
    kind: Text
    data: JsonValue = None
    trust: Trust
    asserted: Instant | None = None


class RefRow(Strict):
    """A name that a fact was given."""

    ref: Text
    fact: UUID


class VersionRow(Strict):
    """A version that was opened; a later line may close it. ``slot`` is the key of the slot it held."""

    id: UUID
    fact: UUID
    valid: Period
    slot: UUID | None = None


class EdgeRow(Strict):
    """An edge, and what validity was taken along it."""

    new: UUID
    old: UUID
    reason: EdgeReason
    taken: tuple[Period, ...] = ()


class EvidenceRow(Strict):
    """A source of a fact."""

    fact: UUID
    source: Text
    asserted: Instant | None = None
    inherited_from: UUID | None = None


class PredicateRow(Strict):
    """A declaration."""

    name: Text
    cardinality: Cardinality


class VectorRow(Strict):
    """A fact's vector in the space of a model, as pgvector prints it."""

    fact: UUID
    space: Text
    vector: Annotated[str, AfterValidator(_half_floats)]
    truncated: bool


class DerivationRow(Strict):
    """A premise of a summary."""

    summary: UUID
    premise: UUID


class ContestedRow(Strict):
    """A candidate that may not cut the fact that it contradicts."""

    fact: UUID
    candidate: UUID
    note: Text | None = None


class ErasureRow(Strict):
    """What keeps an erased fact from coming back: keyed digests."""

    fact: UUID
    digest: Text
    lifted: Instant | None = None
    value_digest: Text | None = None


class Wrote(Strict):
    """The rows that an operation wrote; ``closed`` holds the ids of versions."""

    facts: tuple[FactRow, ...] = ()
    refs: tuple[RefRow, ...] = ()
    closed: tuple[UUID, ...] = ()
    opened: tuple[VersionRow, ...] = ()
    edges: tuple[EdgeRow, ...] = ()
    evidence: tuple[EvidenceRow, ...] = ()
    predicates: tuple[PredicateRow, ...] = ()
    vectors: tuple[VectorRow, ...] = ()
    derivations: tuple[DerivationRow, ...] = ()
    contested: tuple[ContestedRow, ...] = ()
    erasures: tuple[ErasureRow, ...] = ()


class Operation(Strict):
    """One line: a row of the ledger, and what the operation wrote."""

    namespace: Text
    stamp: Instant
    op: Text
    actor: Text | None = None
    handle: Text | None = None
    run: Text | None = None
    note: Text | None = None
    digest: Text
    event: dict[str, JsonValue] | None = None
    result: dict[str, JsonValue] | None = None
    wrote: Wrote = Wrote()


class Closing(Strict):
    """The last line: what came before it. A file without it was cut off."""

    operations: int = Field(ge=0)
    facts: int = Field(ge=0)
    sha256: str


class LedgerSummary(Frozen):
    """What was exported or imported.

    ``heads``: per namespace its last stamp. ``erasures`` counts the rows about erased facts;
    ``erasure_key`` says whether the file holds the key without which they keep nothing out.
    """

    heads: dict[str, Instant]
    operations: int
    facts: int
    erasures: int
    erasure_key: bool
