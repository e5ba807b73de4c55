"""The model alone gives the answers that every build must give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model.oracle import Oracle, Refused, instant

HERE = Path(__file__).parents[1] / "conformance"


def load_cases() -> list[dict[str, Any]]:
    cases = []
    for path in sorted(HERE.rglob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        cases += found if isinstance(found, list) else [found]
    return cases


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case["name"])
def test_the_model_gives_the_expected_answers(case: dict[str, Any]) -> None:
    oracle = Oracle()
    oracle.clock = instant("2027-01-01T00:00:00Z")
    for event in case["ops"]:
        said = {key: value for key, value in event.items() if key not in {"error", "is"}}
        if "error" in event:
            with pytest.raises(Refused) as refused:
                oracle.replay("n", [said])
            assert event["error"] in refused.value.errors
        else:
            (done,) = oracle.replay("n", [said])
            if "is" in event:
                assert not done.created
                assert oracle.book("n").find(event["is"]) == oracle.book("n").facts[done.fact]

    book = oracle.book("n")
    for ask in case["asks"]:
        answer = book.answer(instant(ask["valid_at"]), instant(ask["known_at"]))
        assert {
            "current": {book.name(fact) for fact in answer.shown},
            "withheld": {book.name(fact): reason for fact, reason in answer.withheld.items()},
            "supersedes": {
                book.name(fact): {book.name(old): reason for old, reason in shown.supersedes.items()}
                for fact, shown in answer.shown.items()
                if shown.supersedes
            },
            "amends": {
                book.name(fact): {book.name(old) for old in shown.amends}
                for fact, shown in answer.shown.items()
                if shown.amends
            },
            "sources": {
                book.name(fact): shown.sources for fact, shown in answer.shown.items() if shown.sources
            },
        } == {
            "current": set(ask["current"]),
            "withheld": ask["withheld"],
            "supersedes": ask["supersedes"],
            "amends": {ref: set(olds) for ref, olds in ask["amends"].items()},
            "sources": {ref: set(sources) for ref, sources in ask["sources"].items()},
        }
