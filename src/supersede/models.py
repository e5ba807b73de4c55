"""What goes in and what comes out, as frozen pydantic models; their JSON is the published form."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from supersede.errors import InvalidInput
from supersede.periods import Instant, Period, When, format_instant, format_short, parse_period

Trust = Literal["verbatim", "extracted", "summary"]
Reason = Literal["change", "correction", "refinement", "duplicate"]
EdgeReason = Literal["change", "correction", "refinement", "duplicate", "amendment"]
Outcome = Literal["answered", "all_withheld", "nothing_matched", "nothing_recorded"]
WithheldReason = Literal[
    "superseded",
    "near_duplicate",
    "retracted",
    "expired",
    "not_yet_valid",
    "erased",
    "stale_premise",
    "below_trust",
    "unembedded",
]
Ranking = Literal["exact", "approximate", "words", "none"]


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a NUL character cannot be stored")
    text.encode()
    return text


def _halves(packed: str) -> str:
    raw = base64.b64decode(packed, validate=True)
    if not raw or len(raw) % 2:
        raise ValueError("not a vector of half precision")
    return packed


RULES = 2
"""Raised with every change of how answers are ranked, grouped or worded from the same basis."""

Text = Annotated[str, AfterValidator(_storable)]
"""A text that PostgreSQL can hold."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A weight, a cosine or a share: from 0 to 1."""


class Frozen(BaseModel):
    """Base of all models here: immutable, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Related(Frozen):
    """Another fact, by id and by its first ref."""

    id: str
    ref: str | None = None


class Edge(Related):
    """A fact that another one superseded, and why; ``source`` is the newest of its own evidence."""

    reason: EdgeReason
    source: str | None = None


class Restatement(Related):
    """A near-duplicate that stands behind the fact that is shown."""

    source: str | None = None


class Fact(Frozen):
    """One claim as it was believed at a point of the two times.

    ``valid`` is the period that holds the instant asked about (None where there is none). Asked about a
    period, ``periods`` are all that overlap it, earliest first and whole, and ``valid`` is the first of
    them; asked about an instant, ``periods`` is empty. ``asserted`` says when its source asserted it,
    ``recorded`` when this store first held it, ``confirmed`` the newest date of its evidence, ``source``
    the newest of its own evidence, ``sources`` all, newest first. ``similarity`` is the cosine to the
    question, ``score`` what it was ranked by, ``via`` the fact it superseded that the question's words fit
    better, ``truncated`` whether the claim is longer than its embedder reads.
    """

    claim: str
    id: str
    ref: str | None = None
    refs: tuple[str, ...] = ()
    namespace: str
    kind: str
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    data: dict[str, JsonValue] | None = None
    valid: Period | None = None
    periods: tuple[Period, ...] = ()
    asserted: Instant | None = None
    recorded: Instant
    confirmed: Instant | None = None
    source: str | None = None
    sources: tuple[str, ...] = ()
    trust: Trust
    similarity: float | None = None
    score: float | None = None
    via: Related | None = None
    supersedes: tuple[Edge, ...] = ()
    amends: tuple[Related, ...] = ()
    amended_by: tuple[Related, ...] = ()
    contested: int = 0
    restated: tuple[Restatement, ...] = ()
    truncated: bool = False

    def brief(self) -> dict[str, Any]:
        """The four lines that people know: claim, asserted, source, supersedes."""
        return {
            "claim": self.claim,
            "asserted": format_short(self.asserted) if self.asserted else None,
            "source": self.source,
            "supersedes": [edge.ref or edge.source or edge.id for edge in self.supersedes],
        }


class Withheld(Frozen):
    """How many facts matched and were not returned, by reason."""

    superseded: int = 0
    near_duplicate: int = 0
    retracted: int = 0
    expired: int = 0
    not_yet_valid: int = 0
    erased: int = 0
    stale_premise: int = 0
    below_trust: int = 0
    unembedded: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.model_dump().values())

    def nonzero(self) -> dict[str, int]:
        """The reasons that occur."""
        return {reason: count for reason, count in self.model_dump().items() if count}


class WithheldFact(Related):
    """One withheld fact: why, and what stands in its place."""

    claim: str | None = None
    reason: WithheldReason
    score: float | None = None
    superseded_by: tuple[Edge, ...] = ()
    duplicate_of: Related | None = None


class Filters(Frozen):
    """Which facts a question is about; None means any. ``where``: what their ``data`` must contain."""

    subject: Text | None = None
    predicate: Text | None = None
    object: Text | None = None
    kind: Text | None = None
    where: dict[str, JsonValue] | None = None


class Basis(Frozen):
    """What an answer stood on: enough to ask the same again and get the same answer.

    It is about one instant (``valid_at``) or one period (``valid_during``). ``rules`` counts the changes of
    how this package ranks, groups and words its notices: an answer made under others may differ. ``heads``
    holds, per namespace, the stamp that the answer could see (None: nothing was recorded).
    ``known_at_said`` tells a ``known_at`` that was asked for from one that was the present. ``vector`` is
    the question's, as base64 of little-endian float16, ``no_vector`` says why there is none. ``after`` is
    namespace and id of the fact behind which a page goes on. ``str()`` gives a short text; :meth:`parse`
    reads it.
    """

    version: Literal[1] = 1
    rules: int = Field(default=RULES, ge=1)
    question: Literal["ask", "facts"]
    heads: dict[Text, Instant | None]
    valid_at: Instant | None = None
    valid_during: Period | None = None
    known_at: Instant
    known_at_said: bool = False
    query: Text | None = None
    vector: Annotated[str, AfterValidator(_halves)] | None = None
    no_vector: str | None = None
    space: Text | None = None
    limit: int = Field(ge=1, le=1_000_000)
    after: tuple[Text, Text] | None = None
    filters: Filters = Filters()
    min_trust: Trust | None = None
    cosine_weight: Share = 0.8
    coverage_weight: Share = 0.2
    lineage_credit: Share = 0.9
    min_similarity: Share | None = None
    near_duplicate: Share | None = None
    text_search: Text
    explain: bool = False

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        if (self.valid_at is None) == (self.valid_during is None):
            raise ValueError("either valid_at or valid_during")
        if self.valid_during is not None:
            if self.question == "ask":
                raise ValueError("ask is about an instant")
            parse_period(self.valid_during)
        return self

    @property
    def when(self) -> When:
        """The instant or the period that it is about."""
        return self.valid_at or self.valid_during  # type: ignore[return-value]

    def __str__(self) -> str:
        # Defaults are written out: another release may have others.
        plain = self.model_dump(mode="json", exclude_none=True)
        text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
        packed = zlib.compress(text.encode(), 9)
        return "sb1." + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def read(cls, given: object) -> Basis:
        """A basis, or the text of one.

        :raises InvalidInput: if it is neither.
        """
        if isinstance(given, str):
            return cls.parse(given)
        if not isinstance(given, Basis):
            raise InvalidInput(f"a basis, or its text, is needed, not {type(given).__name__}")
        return given

    @classmethod
    def parse(cls, text: str) -> Basis:
        """Read a basis from its text or its JSON.

        :raises InvalidInput: if it is neither.
        """
        try:
            if text.startswith("sb1."):
                packed = text[4:] + "=" * (-len(text[4:]) % 4)
                unpacker = zlib.decompressobj()
                # The longest question and filters fit in; more would be somebody else's file.
                text = unpacker.decompress(base64.urlsafe_b64decode(packed), 2_000_000).decode()
            return cls.model_validate_json(text)
        except (ValueError, zlib.error, ValidationError) as error:
            raise InvalidInput("this is no basis: neither its text (sb1...) nor its JSON") from error


class Answer(Frozen):
    """What was believed, and what was held back.

    ``valid_at`` (or, asked about a period, ``valid_during``) and ``known_at`` stand as they were asked;
    what was really known stands in the basis. ``notice`` says in a sentence what a person needs to know
    about this answer.
    """

    valid_at: Instant | None = None
    valid_during: Period | None = None
    known_at: Instant
    outcome: Outcome
    notice: str | None = None
    facts: tuple[Fact, ...] = ()
    withheld: Withheld = Withheld()
    withheld_exact: bool = True
    withheld_facts: tuple[WithheldFact, ...] = ()
    ranking: Ranking
    short_by: int = 0
    basis: Basis

    def brief(self) -> dict[str, Any]:
        """The short form: the point in time, the facts, and the counts of what was withheld."""
        point: dict[str, Any]
        known_at = format_instant(self.known_at)
        if self.valid_at is None:
            period = self.valid_during or Period(None, None)
            ends = [None if bound is None else format_instant(bound) for bound in period]
            point = {"valid_during": ends, "known_at": known_at}
        elif self.valid_at == self.known_at:
            point = {"as_of": known_at}
        else:
            point = {"valid_at": format_instant(self.valid_at), "known_at": known_at}
        counts = {"withheld": self.withheld.nonzero()} if self.withheld_exact else {}
        return {**point, "facts": [fact.brief() for fact in self.facts], **counts}


class Verification(Frozen):
    """What asking an answer again gave.

    ``equal``; ``erased``: equal but for facts erased since; ``approximate``: it had not been ranked
    exactly; ``space_gone``: its embedding space is not here; ``different``: it changed, which must not
    happen; ``rules_changed``: it changed, and so did the rules of this package since. ``differences``
    names the fields that differ.
    """

    outcome: Literal["equal", "erased", "approximate", "space_gone", "rules_changed", "different"]
    differences: tuple[str, ...] = ()
    shared: int | None = Field(default=None, description="facts in both, where ranking was approximate")
