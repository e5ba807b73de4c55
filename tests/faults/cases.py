"""One call of every verb, each with a handle or a ref, on a store that has a past, to be interrupted.

A verb that is added to ``CASES`` is interrupted at every point with the others.
"""

from __future__ import annotations

from collections.abc import Callable

from fakes import BagOfWords
from supersede import FactStore, Recorded

NOW = "2026-07-24T00:00:00Z"
"""Where the clock of the test's database stands, so that a call made again gets the same stamp."""
BATCH = 2
"""Records in a transaction, so that few make several."""


def prepare(url: str) -> None:
    """A past in which every call of ``CASES`` finds what it needs."""
    with FactStore.open(url, embedder=BagOfWords()) as store:
        store.declare_predicate("hq", cardinality="one")
        for claim, ref, year in (("Boston", "a", "2019"), ("Denver", "b", "2022")):
            store.remember(
                claim, ref=ref, subject="s", predicate="hq", valid_from=f"{year}-01-01", sources=[f"u/{ref}"]
            )
        store.remember("the port is 5432", ref="p", valid_from="2020-01-01", sources=["u/p"])
        store.supersede("p", "the port is 5433", ref="q", valid_from="2021-01-01")
        store.remember("the host is alpha", ref="h", valid_from="2020-01-01", sources=["u/h"])
        store.remember("the host is beta", ref="r", valid_from="2020-01-01")
        store.retract("r")
    with FactStore.open(url, embedder=BagOfWords(), actor="mistaken") as store:
        store.remember("the host is delta", ref="m1", valid_from="2020-01-01")
        store.supersede("m1", "the host is epsilon", ref="m2")
    with FactStore.open(url) as store:  # this one has no embedder
        store.remember_many([{"claim": f"bare {n}", "ref": f"bare {n}"} for n in range(3)])


def _undo(store: FactStore) -> list[Recorded]:
    store.undo(actor="mistaken", since="2026-01-01", dry_run=False, handle="k")
    return []


def _transaction(store: FactStore) -> list[Recorded]:
    with store.transaction() as together:
        return [
            together.remember("first of three", ref="n1"),
            together.supersede("h", "second of three", ref="n2"),
            together.retract("n1", handle="k"),
        ]


_EVENTS = [
    {"op": "remember", "claim": "told later", "ref": "n1"},
    {"op": "supersede", "old": ["n1"], "claim": "told last", "ref": "n2"},
    {"op": "cite", "ref": "n2", "sources": ["u/n"]},
]

CASES: dict[str, Callable[[FactStore], list[Recorded] | int]] = {
    "remember": lambda s: [s.remember("a new claim", ref="n", sources=["u/1", "u/2"])],
    "remember in a slot": lambda s: [
        s.remember("Rome", ref="n", subject="s", predicate="hq", valid_from="2024-01-01", sources=["u/n"])
    ],
    "remember the same value": lambda s: [
        s.remember("denver", ref="n", subject="s", predicate="hq", valid_from="2022-01-01", sources=["u/n"])
    ],
    "supersede": lambda s: [s.supersede(["h", "q"], "alpha, port 5433", ref="n", sources=["u/n"])],
    "supersede, correction": lambda s: [s.supersede("h", "gamma", ref="n", reason="correction")],
    "supersede by": lambda s: [s.supersede("h", by="q", valid_from="2022-01-01", handle="k")],
    "amend": lambda s: [s.amend("h", "and its port is 5434", ref="n")],
    "end": lambda s: [s.end("h", at="2023-01-01", until="2024-01-01", handle="k")],
    "retract": lambda s: [s.retract("h", handle="k")],
    "retract, give back": lambda s: [s.retract("q", give_back=True, handle="k")],
    "reinstate": lambda s: [s.reinstate("r", handle="k")],
    "cite": lambda s: [s.cite("h", sources=["u/8", "u/9"], handle="k")],
    "declare_predicate": lambda s: [s.declare_predicate("color", cardinality="one", handle="k")],
    "remember_many": lambda s: s.remember_many([{"claim": f"c {n}", "ref": f"n{n}"} for n in range(3)]),
    "replay": lambda s: s.replay(
        [{**event, "recorded_at": NOW} for event in _EVENTS], out_of_order="next_stamp"
    ),
    "fill_embeddings": lambda s: s.fill_embeddings(),
    "undo": _undo,
    "transaction": _transaction,
}

DESTROYING: dict[str, Callable[[FactStore], list[Recorded] | int]] = {
    "erase": lambda s: [s.erase("h", note="asked for by the person", handle="k")],
}
"""What takes a fact's names, by which the others are compared."""

VECTORS_AFTERWARDS = {"transaction"}
"""What stores vectors in a transaction after its own, and not when it is made again."""
