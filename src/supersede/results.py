"""What a write did, as frozen pydantic models; their JSON is the published form."""

from __future__ import annotations

from typing import Literal

from supersede.models import Edge, Frozen, Related
from supersede.periods import Instant, Period

Cardinality = Literal["one", "many"]
LeftAloneReason = Literal[
    "taken_since",
    "believed_since",
    "confirmed_since",
    "amends_it",
    "superseded_since",
    "ended_since",
    "retracted_since",
    "undone_since",
    "slot_held",
    "erased",
]


class Cut(Edge):
    """A fact from which a write took validity, and which."""

    taken: tuple[Period, ...] = ()


class Given(Related):
    """A fact and periods of it, such as those that a retraction gave back to it."""

    valid: tuple[Period, ...]


class LeftAlone(Related):
    """What an undo leaves as it is, and why; ``by`` is the fact for whose sake, where there is one.

    Of what the operation gave: ``taken_since``, a later one took it; ``believed_since``, a later one gave
    it again. Of what it took: ``believed_since``, it is believed there already; ``superseded_since``,
    ``ended_since``, ``retracted_since``, later operations say so; ``undone_since``, the operation it was
    held by is undone too; ``slot_held``, another value holds the slot; ``erased``. Of what others built on
    a fact that is withdrawn: ``amends_it``, a fact that amends it; ``confirmed_since``, sources were added
    to it; both stay, and the fact is withdrawn all the same.
    """

    valid: tuple[Period, ...]
    reason: LeftAloneReason
    by: Related | None = None


class Certificate(Frozen):
    """What an erasure destroyed, and what a database cannot reach.

    ``erased_at`` is its stamp, ``digest`` the keyed digest by which the claim is known again. ``destroyed``
    counts by kind, ``remains`` says in a sentence each where the content may still be, and what to do.
    """

    namespace: str
    fact_id: str
    erased_at: Instant
    digest: str
    destroyed: dict[str, int]
    remains: tuple[str, ...]


class Recorded(Frozen):
    """What a write did.

    ``valid`` lists the periods that the call made believed, ``supersedes`` what it cut, ``taken`` what an
    end or a retraction took, ``period`` what an end was asked to take, ``given_back`` what a retraction
    or an undo gave back, ``withdrawn`` what an undo took, and ``undone`` the stamp of the operation that it
    undid. ``created`` is false where the value was already held: ``id`` and ``ref`` then name the holder.
    ``repeated`` marks a retry, whose recorded result this is, and ``believed`` whether that fact is
    believed now. ``truncated``: the claim is longer than its embedder reads. ``certificate`` is that of an
    erasure. ``notice`` says what a person should know, such as a clock that runs behind.
    """

    verb: str
    namespace: str
    stamp: Instant
    id: str | None = None
    ref: str | None = None
    created: bool = False
    repeated: bool = False
    believed: bool | None = None
    valid: tuple[Period, ...] = ()
    supersedes: tuple[Cut, ...] = ()
    amends: tuple[Related, ...] = ()
    taken: tuple[Period, ...] = ()
    period: tuple[Period, ...] = ()
    given_back: tuple[Given, ...] = ()
    withdrawn: tuple[Given, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    undone: Instant | None = None
    embedded: bool | None = None
    truncated: bool = False
    name: str | None = None
    cardinality: Cardinality | None = None
    certificate: Certificate | None = None
    notice: str | None = None
