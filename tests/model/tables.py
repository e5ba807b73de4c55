"""What must be true of the stored rows themselves, whatever the model says."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from model.oracle import FOREVER, Time


@dataclass(frozen=True)
class Row:
    """A stored version; ``fact`` is its number."""

    version: str
    fact: int
    start: Time
    end: Time
    opened: Time
    closed: Time
    slot: str | None
    is_open: bool

    def meets(self, other: Row) -> bool:
        """Whether some point of the two times lies in both."""
        return max(self.start, other.start) < min(self.end, other.end) and max(
            self.opened, other.opened
        ) < min(self.closed, other.closed)


@dataclass
class Watch:
    """The rows of one namespace as they were last seen: they may grow, and be closed, and nothing else."""

    rows: dict[str, Row] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    head: Time | None = None
    erased: int = 0

    def look(
        self,
        rows: list[Row],
        stamps: list[int],
        counts: dict[str, int],
        edges: list[tuple[int, int, str]],
        *,
        erased: int,
    ) -> None:
        if erased > self.erased:  # with what it said its names and sources are gone
            self.counts = {table: n for table, n in self.counts.items() if table not in {"refs", "evidence"}}
        self.erased = erased
        check_alone(rows, stamps)
        check_forest(edges)
        self._check_against_before({row.version: row for row in rows}, stamps, counts)
        self.rows = {row.version: row for row in rows}
        self.counts = counts
        self.head = stamps[-1] if stamps else None

    def _check_against_before(self, rows: dict[str, Row], stamps: list[int], counts: dict[str, int]) -> None:
        fewer = {table: n for table, n in self.counts.items() if counts[table] < n}
        assert not fewer, f"rows have gone: {self.counts} and now {counts}"
        for version, before in self.rows.items():
            after = rows.get(version)
            assert after is not None, f"a version is gone: {before}"
            same = (before.fact, before.start, before.end, before.opened)
            assert (after.fact, after.start, after.end, after.opened) == same, f"{before} became {after}"
            if before.closed != FOREVER:
                assert after.closed == before.closed, f"closed again: {before} became {after}"
            elif after.closed != FOREVER and self.head is not None:
                assert after.closed > self.head, f"closed in the past: {before} became {after}"
        for version in rows.keys() - self.rows.keys():
            if self.head is not None:
                assert rows[version].opened > self.head, f"opened in the past: {rows[version]}"
        if self.head is not None:
            assert stamps[-1] >= self.head, f"the head fell from {self.head} to {stamps[-1]}"


def check_alone(rows: list[Row], stamps: list[int]) -> None:
    """Without looking at anything else: no rectangle is empty, overlaps what it must not, or has no stamp."""
    known = set(stamps)
    for row in rows:
        assert row.start < row.end, f"an empty period: {row}"
        assert row.opened < row.closed, f"closed before it was opened: {row}"
        assert row.is_open == (row.closed == FOREVER), f"in the wrong partition: {row}"
        assert {row.opened, row.closed} <= known | {FOREVER}, f"not a stamp: {row}"
    for one, other in itertools.combinations(rows, 2):
        if one.fact == other.fact:
            assert not one.meets(other), f"a fact overlaps itself: {one} and {other}"
        elif one.slot is not None and one.slot == other.slot:
            assert not one.meets(other), f"two values in one slot: {one} and {other}"


def check_forest(edges: list[tuple[int, int, str]]) -> None:
    """No ring of supersessions, and nothing that amends itself."""
    for new, old, _ in edges:
        assert new != old, f"fact {new} is linked to itself"
    left = {(new, old) for new, old, reason in edges if reason != "amendment"}
    while left:
        tops = {new for new, _ in left} - {old for _, old in left}
        assert tops, f"a ring of supersessions among {sorted(left)}"
        left = {(new, old) for new, old in left if new not in tops}
