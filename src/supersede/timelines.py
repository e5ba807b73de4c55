"""What comes out about facts through time: histories, lineages, differences in belief."""

from __future__ import annotations

from supersede.models import Edge, Fact, Frozen, Related
from supersede.periods import Instant, Period


class Version(Frozen):
    """One rectangle: valid time and transaction time, and the verbs that opened and closed it."""

    valid: Period
    known: Period
    opened_by: str | None = None
    closed_by: str | None = None


class Evidence(Frozen):
    """A source of a fact: when it asserted the claim, and when the store learnt of it."""

    source: str
    asserted: Instant | None = None
    recorded: Instant
    inherited_from: Related | None = None


class History(Frozen):
    """Everything the store has held about one fact, oldest first.

    ``erased``: when its content was destroyed; what is left is its shape, and its claim is empty.
    """

    fact: Fact
    versions: tuple[Version, ...]
    evidence: tuple[Evidence, ...]
    erased: Instant | None = None
    supersedes: tuple[HistoryEdge, ...] = ()
    superseded_by: tuple[HistoryEdge, ...] = ()
    amends: tuple[HistoryEdge, ...] = ()
    amended_by: tuple[HistoryEdge, ...] = ()


class HistoryEdge(Edge):
    """An edge with what it took and when it was recorded."""

    taken: tuple[Period, ...] = ()
    recorded: Instant


class LineageFact(Edge):
    """A fact up or down the chain: ``depth`` edges away, next to ``next_to``; an erased one has no claim."""

    claim: str | None = None
    depth: int
    next_to: Related


class Lineage(Frozen):
    """Where a fact came from and what came of it, over supersedes edges.

    ``ancestors`` are what it superseded, directly (depth 1) and through others; ``descendants`` what
    superseded it. Amendments are listed apart: they take nothing. ``erased``: when the content of the fact
    itself was destroyed.
    """

    fact: Fact
    erased: Instant | None = None
    ancestors: tuple[LineageFact, ...] = ()
    descendants: tuple[LineageFact, ...] = ()

    @property
    def predecessors(self) -> tuple[LineageFact, ...]:
        """The direct ancestors."""
        return tuple(fact for fact in self.ancestors if fact.depth == 1)

    @property
    def successors(self) -> tuple[LineageFact, ...]:
        """The direct descendants."""
        return tuple(fact for fact in self.descendants if fact.depth == 1)


class Change(Related):
    """How belief in one fact differs between two instants: validity it gained, validity it lost.

    ``claim`` is None where the fact was erased.
    """

    claim: str | None = None
    gained: tuple[Period, ...] = ()
    lost: tuple[Period, ...] = ()
    superseded_by: tuple[Edge, ...] = ()


class Diff(Frozen):
    """What changed in belief after ``known_from``, up to and including ``known_to``; by first change."""

    known_from: Instant
    known_to: Instant
    valid_at: Instant | None = None
    changes: tuple[Change, ...] = ()


History.model_rebuild()
