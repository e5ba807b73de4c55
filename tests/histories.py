"""A small history that uses every verb, and questions about it; the same whenever it is recorded."""

from __future__ import annotations

import itertools
from typing import Any

from supersede import Answer, FactStore


def _id(number: int) -> str:
    return f"00000000-0000-7000-8000-{number:012d}"


def event(op: str, recorded_at: str, number: int | None = None, **arguments: Any) -> dict[str, Any]:
    """An event of a history; ``number`` makes the id of the fact that it records."""
    said = {"op": op, "recorded_at": recorded_at, **arguments}
    return said if number is None else {**said, "id": _id(number)}


def events() -> list[dict[str, Any]]:
    """Slots, every reason, several olds, ends, a retraction that gives back, names, sources, data."""
    acme = {"subject": "Acme", "predicate": "hq"}
    numbers = {"exact": 1.10, "none": None, "list": [1, {"deep": "ä\u2028"}]}
    return [
        event("declare_predicate", "2020-01-01", name="hq", cardinality="one"),
        event("remember", "2020-02-01", 1, claim="Acme sits in Boston", ref="boston", object="Boston",
              valid_from="2019-01-01", sources=["press/1", ["press/2", "2019-02-01"]], **acme),
        event("remember", "2022-02-01", 2, claim="Acme sits in Denver", ref="denver", object="Denver",
              valid_from="2022-01-01", trust="verbatim", **acme),
        event("remember", "2022-03-01", 3, claim="ACME sits in DENVER", ref="denver-again", object="denver",
              valid_from="2021-06-01", sources=["mail/7"], **acme),
        event("remember", "2023-01-01", 4, claim="Acme sits in Oslo", ref="oslo", object="Oslo",
              valid_from="2023-03-01", valid_to="2023-06-01", **acme),
        event("supersede", "2023-02-01", 5, old=["boston"], claim="Acme sits in Worcester", ref="worcester",
              object="Worcester", reason="correction", note="the sign said so"),
        event("remember", "2020-03-12", 6, claim="Retrieval uses Postgres full-text search", ref="adr/3",
              data=numbers, sources=["docs/adr/3.md"], kind="decision"),
        event("supersede", "2023-04-20", 7, old=["adr/3"], claim="Retrieval uses a vector index",
              ref="adr/9", valid_from="2020-04-20", kind="decision", sources=["docs/adr/9.md"]),
        event("supersede", "2023-06-30", 8, old=["adr/3", "adr/9"], ref="adr/14", if_not_current="link",
              claim="Retrieval is hybrid: dated facts + reranker", kind="decision",
              sources=["docs/adr/14.md"]),
        event("amend", "2023-07-01", 9, old=["adr/14"], claim="The reranker runs on one core", ref="adr/15"),
        event("remember", "2023-08-01", 10, claim="The reranker runs on one core.", ref="restated"),
        event("supersede", "2023-08-02", 11, old=["restated"], reason="refinement", ref="refined",
              claim="The reranker runs on one core, in 40 ms", over_trust=True),
        event("remember", "2023-08-03", 12, claim="The port is 5432", ref="port", valid_from="no_start"),
        event("remember", "2023-08-04", 13, claim="The port is 5432!", ref="port-twin"),
        event("supersede", "2023-08-05", old=["port-twin"], by="port", reason="duplicate", handle="merge"),
        event("end", "2023-09-01", ref="port", when="2024-01-01", until="2024-02-01"),
        event("remember", "2023-09-02", 14, claim="The team meets on Mondays", ref="monday"),
        event("supersede", "2023-09-03", 15, old=["monday"], claim="The team meets on Fridays", ref="friday"),
        event("retract", "2023-09-04", ref="friday", give_back=True, note="a joke"),
        event("end", "2023-09-05", ref="monday", when="2023-09-05"),
        event("reinstate", "2023-09-06", ref="monday"),
        event("cite", "2023-10-01", ref="denver", sources=["press/9"], asserted="2023-09-30"),
        event("remember", "2023-11-01", 16, claim="A summary of it all", ref="summary", trust="summary"),
        event("declare_predicate", "2023-12-01", name="hq", cardinality="many"),
        event("remember", "2023-12-02", 17, claim="Acme also sits in Lima", object="Lima", **acme),
    ]  # fmt: skip


def a_life(store: FactStore) -> None:
    """Record the history in the store's namespace, and a few facts in two others."""
    in_order = sorted(events(), key=lambda e: e["recorded_at"])
    store.replay(in_order)
    for place, name in enumerate(("b.c", "b-c")):
        other = type(store)(store._engine, namespace=name, actor="somebody", embedding=store._embedding)
        other.replay(
            [
                event("remember", "2021-01-01", 100 + place, claim=f"Acme sits in {name}", ref="boston"),
                event("remember", "2021-01-01", 102 + place, claim="Retrieval costs nothing"),
            ]
        )


POINTS: list[dict[str, Any]] = [
    {"valid_at": "2021-06-15", "known_at": "2022-02-15"},
    {"valid_at": "2023-04-01", "known_at": "2023-01-15"},
    {"as_of": "2023-05-01"},
    {"as_of": "2023-08-01T12:00:00Z"},
    {"as_of": "2023-09-03T12:00:00Z"},
    {"valid_at": "2024-01-15", "known_at": "2024-06-01"},
    {"valid_at": "2019-06-01", "known_at": "2024-06-01", "namespaces": ["default", "b.c", "b-c"]},
]
FILTERS: list[dict[str, Any]] = [
    {"predicate": "HQ"},
    {"kind": "decision", "where": {"list": [1]}},
    {"min_trust": "extracted", "top_k": 2},
    {"subject": "acme", "lineage_credit": 0},
]
QUERIES = ["Where does Acme sit?", "How is retrieval done?", "one core reranker"]


def questions(store: FactStore) -> list[Answer]:
    """About forty answers, ranked and unranked, over both times."""
    answers = [store.ask(q, explain=True, **point) for q, point in itertools.product(QUERIES, POINTS)]
    answers += [store.facts(explain=True, **point) for point in POINTS]
    answers += [
        store.ask(q, **filters, **point)
        for (q, filters), point in zip(
            itertools.product(QUERIES, FILTERS), itertools.cycle(POINTS), strict=False
        )
    ]
    answers.append(store.facts(limit=3, **POINTS[2]))
    answers.append(store.facts(limit=3, after=answers[-1].facts[-1].id, **POINTS[2]))
    return answers
