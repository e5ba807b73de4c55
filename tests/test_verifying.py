"""What an erasure explains of the difference between two answers, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from supersede.models import Answer, Basis, Edge, Fact, Related, Restatement, Withheld
from supersede.periods import parse_instant
from supersede.verifying import explained_by_erasure

AT = parse_instant("2026-01-01", "at")
GONE = ["gone", "gone too"]


def fact(name: str, **more: Any) -> Fact:
    said = {"claim": name, "id": name, "namespace": "default", "kind": "fact", "recorded": AT}
    return Fact(**said, trust="extracted", **more)


def answer(*facts: Fact | str, question: str = "ask", short_by: int = 5, **more: Any) -> Answer:
    withheld = Withheld(**more.pop("withheld", {}))
    basis = Basis(
        question=question,  # type: ignore[arg-type]
        heads={"default": AT},
        valid_at=AT,
        known_at=AT,
        limit=10,
        text_search="english",
    )
    shown = tuple(fact(each) if isinstance(each, str) else each for each in facts)
    said = {"valid_at": AT, "known_at": AT, "outcome": "answered", "ranking": "exact", "basis": basis}
    return Answer(facts=shown, withheld=withheld, short_by=short_by, **(said | more))


def restated(*names: str) -> tuple[Restatement, ...]:
    return tuple(Restatement(id=name) for name in names)


EDGE = Edge(id="gone", ref="its/ref", reason="change", source="its source")
BARE = Edge(id="gone", reason="change")

EXPLAINED = {
    "it is missing": (answer("a", "gone", "b"), answer("a", "b", withheld={"erased": 1})),
    "another stands in its place": (
        answer("a", "gone", short_by=0),
        answer("a", "c", short_by=0, withheld={"erased": 1, "superseded": 3}),
    ),
    "its echo stands in its place": (
        answer(fact("gone", restated=restated("echo", "echo too")), "a"),
        answer(fact("echo", restated=restated("echo too")), "a"),
    ),
    "its echoes have nothing in common": (
        answer(fact("gone", restated=restated("echo", "echo too")), "a"),
        answer("echo", "a", "echo too"),
    ),
    "its echoes need more room than it had": (
        answer(fact("gone", restated=restated("echo", "echo too")), "a", "b", short_by=0),
        answer("echo", "echo too", "a", short_by=0),
    ),
    "it no longer keeps two apart": (
        answer(fact("a", restated=restated("gone")), "b"),
        answer(fact("a", restated=restated("b"))),
    ),
    "it is no longer a duplicate": (
        answer(fact("a", restated=restated("gone"), score=0.9)),
        answer(fact("a", score=0.8), withheld={"erased": 1}),
    ),
    "it gives no credit": (
        answer(fact("a", via=Related(id="gone"), score=0.9), fact("b", score=0.8)),
        answer(fact("b", score=0.8), fact("a", score=0.2)),
    ),
    "without its credit one is no match": (
        answer(fact("a", via=Related(id="gone"), score=0.9), "b"),
        answer("b"),
    ),
    "its name and source are gone": (
        answer(fact("a", supersedes=(EDGE,), amends=(Related(id="gone", ref="its/ref"),))),
        answer(fact("a", supersedes=(BARE,), amends=(Related(id="gone"),)), withheld={"erased": 1}),
    ),
    "it was withheld": (
        answer("a", withheld={"superseded": 2}),
        answer("a", withheld={"superseded": 1, "erased": 1}),
    ),
    "it was where the answer stopped": (
        answer("a", short_by=0),
        answer(fact("a", restated=restated("far echo")), short_by=0, withheld={"superseded": 4}),
    ),
}

UNEXPLAINED = {
    "a claim changed": (answer("a", "gone"), answer(fact("a", subject="s"))),
    "one is missing": (answer("a", "gone", "b"), answer("a")),
    "two changed places": (answer("a", "gone", "b"), answer("b", "a")),
    "one came from nowhere": (answer("a"), answer("a", "b", withheld={"erased": 1})),
    "more came than went": (answer("a", "gone"), answer("a", "b", "c")),
    "more are missing than came": (
        answer(fact("gone", restated=restated("echo")), "a", "b", "c", short_by=0),
        answer("echo", "a", short_by=0),
    ),
    "the first had to make room": (
        answer(fact("gone", restated=restated("echo", "echo too")), "a", "b", short_by=0),
        answer("echo", "echo too", "b", short_by=0),
    ),
    "more is withheld": (answer("a"), answer("a", withheld={"superseded": 1, "erased": 1})),
    "more count as erased than were": (answer("a"), answer("a", withheld={"erased": 3})),
    "fewer count as erased": (answer("a", withheld={"erased": 1}), answer("a")),
    "another ranking": (answer("a", "gone"), answer("a", ranking="words")),
    "a list of facts looks no further": (
        answer("a", question="facts", short_by=0),
        answer("a", question="facts", short_by=0, withheld={"superseded": 1}),
    ),
}


@pytest.mark.parametrize(("given", "again"), EXPLAINED.values(), ids=list(EXPLAINED))
def test_explained(given: Answer, again: Answer) -> None:
    assert explained_by_erasure(given, again, GONE)
    assert not explained_by_erasure(given, again, [])


@pytest.mark.parametrize(("given", "again"), UNEXPLAINED.values(), ids=list(UNEXPLAINED))
def test_not_explained(given: Answer, again: Answer) -> None:
    assert not explained_by_erasure(given, again, GONE)
