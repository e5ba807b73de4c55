"""What a retraction gives back when several of what it took stand in each other's way."""

from __future__ import annotations

from databases import set_clock
from supersede import FactStore
from supersede.results import Recorded


def given(recorded: Recorded) -> list[tuple[str | None, list[str]]]:
    return [
        (
            old.ref,
            [
                f"{period.start:%d}-{period.end:%d}" if period.end else f"{period.start:%d}-"
                for period in old.valid
            ],
        )
        for old in recorded.given_back
    ]


def test_an_old_gets_nothing_where_another_stands_that_superseded_it(database: str) -> None:
    """Whichever has the smaller id: made in one millisecond, that is chance."""
    set_clock(database, "2024-02-01T00:00:00Z")
    for turn in range(8):
        with FactStore.open(database, namespace=f"n{turn}") as store:
            store.remember("first", ref="a", valid_from="2024-01-01")
            store.supersede("a", "second", ref="b", valid_from="2024-01-10")
            store.reinstate("a", valid_from="2024-01-10", valid_to="2024-01-15")
            store.supersede(["a", "b"], "both at once", ref="c", reason="duplicate")
            assert given(store.retract("c", give_back=True)) == [("b", ["10-"]), ("a", ["01-10"])]


def test_in_one_slot_the_newer_of_two_taken_at_once_gets_it_back(database: str) -> None:
    """They could overlap before the predicate became one-valued."""
    set_clock(database, "2024-02-01T00:00:00Z")
    for turn in range(8):
        with FactStore.open(database, namespace=f"n{turn}") as store:
            for ref in ("a", "b"):
                store.remember(ref, ref=ref, subject="s", predicate="p", valid_from="2024-01-01")
            store.supersede(["b", "a"], "c", ref="c", subject="t", reason="correction")
            store.declare_predicate("p", cardinality="one")
            assert given(store.retract("c", give_back=True)) == [("b", ["01-"])]
