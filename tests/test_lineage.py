"""Where a fact came from and what came of it, however the chains run together."""

from __future__ import annotations

from supersede import FactStore

LAYERS = 40


def test_a_braid_of_chains_is_walked_once_and_not_along_each_of_its_paths(store: FactStore) -> None:
    """Two successors of two predecessors, forty times over: 160 edges, and 2 to the 40th paths."""
    for name in ("0a", "0b"):
        store.remember(name, ref=name, valid_from="2020-01-01")
    for layer in range(1, LAYERS + 1):
        olds = [f"{layer - 1}a", f"{layer - 1}b"]
        for strand in "ab":
            name = f"{layer}{strand}"
            store.supersede(olds, name, ref=name, valid_from="2020-01-01", if_not_current="link")
    up, down = store.lineage(f"{LAYERS}a"), store.lineage("0a")
    assert [fact.depth for fact in up.ancestors] == [n for n in range(1, LAYERS + 1) for _ in "ab"]
    assert [fact.depth for fact in down.descendants] == [n for n in range(1, LAYERS + 1) for _ in "ab"]
    assert up.descendants == down.ancestors == ()


def test_a_fact_that_is_reached_in_two_ways_stands_where_it_is_nearest(store: FactStore) -> None:
    store.remember("one", ref="one", valid_from="2020-01-01")
    store.supersede("one", "two", ref="two", valid_from="2021-01-01")
    store.supersede(["one", "two"], "three", ref="three", valid_from="2019-01-01", if_not_current="link")
    found = {fact.ref: (fact.depth, fact.next_to.ref) for fact in store.lineage("three").ancestors}
    assert found == {"one": (1, "three"), "two": (1, "three")}
    found = {fact.ref: (fact.depth, fact.next_to.ref) for fact in store.lineage("one").descendants}
    assert found == {"two": (1, "one"), "three": (1, "one")}


def test_of_two_ways_of_one_length_the_newest_edge_is_shown(store: FactStore) -> None:
    store.remember("root", ref="root", valid_from="2020-01-01")
    for name in ("left", "right"):
        store.supersede("root", name, ref=name, valid_from="2020-01-01", if_not_current="link")
    store.supersede("left", "end", ref="end", valid_from="2020-01-01", if_not_current="link")
    store.supersede("right", by="end", valid_from="2020-01-01", if_not_current="link")
    found = {fact.ref: (fact.depth, fact.next_to.ref) for fact in store.lineage("root").descendants}
    assert found == {"left": (1, "root"), "right": (1, "root"), "end": (2, "right")}
