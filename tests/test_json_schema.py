"""The published schema is that of the models, and every kind of answer is as it says."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from fakes import BagOfWords, Down, ShortWindow
from supersede import NO_END, NO_START, Answer, Basis, FactStore
from supersede.models import Frozen, Outcome
from supersede.periods import parse_instant
from test_conformance import CASES, point, succeeding

ROOT = Path(__file__).parent.parent
CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,5}[1-9])?Z", re.ASCII)


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schemas", ROOT / "scripts" / "make_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_schemas = load_script()


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "docs" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


ANSWER, BASIS, BRIEF = validator("answer"), validator("basis"), validator("brief")


def instants(model: Any, plain: Any) -> Iterator[tuple[datetime, Any]]:
    """Every instant of a model beside what its JSON has in that place."""
    if isinstance(model, datetime):
        yield model, plain
    elif isinstance(model, Frozen):
        assert list(plain) == list(type(model).model_fields)
        for name, inner in plain.items():
            yield from instants(getattr(model, name), inner)
    elif isinstance(model, dict):
        for name, inner in plain.items():
            yield from instants(model[name], inner)
    elif isinstance(model, tuple):
        for part, inner in zip(model, plain, strict=True):
            yield from instants(part, inner)
    else:
        assert model == plain


def check(answer: Answer) -> None:
    """An answer is as the schemas say, its instants have one form, and its JSON is all of it."""
    text = answer.model_dump_json()
    plain = json.loads(text)
    ANSWER.validate(plain)
    BASIS.validate(plain["basis"])
    BRIEF.validate(json.loads(json.dumps(answer.brief())))
    assert plain == answer.model_dump(mode="json"), "the command line prints what Python does"
    found = list(instants(answer, plain))
    assert len(found) >= 4, "two of the answer, two of its basis"
    for instant, written in found:
        assert CANONICAL.fullmatch(written), written
        assert parse_instant(written) == instant
    assert Answer.model_validate_json(text) == answer
    assert Basis.model_validate_json(json.dumps(plain["basis"])) == answer.basis


# --- the files


def test_the_files_are_those_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make_schemas.py", "--check"])
    assert make_schemas.main() == 0, "the models changed: run python scripts/make_schemas.py"


def test_a_file_that_is_out_of_date_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_schemas, "FOLDER", tmp_path / "schema")
    monkeypatch.setattr(sys, "argv", ["make_schemas.py"])
    assert make_schemas.main() == 0
    basis = tmp_path / "schema" / "basis.schema.json"
    basis.write_text(basis.read_text(encoding="utf-8").replace("known_at", "seen_at"), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["make_schemas.py", "--check"])
    assert make_schemas.main() == 1
    assert re.findall(r"\w+\.schema\.json", capsys.readouterr().err) == ["basis.schema.json"]


def test_every_object_is_closed_and_whole() -> None:
    """What is in no schema is in no answer, and what is in one is always there."""
    definitions = ANSWER.schema["$defs"]
    objects = {name: schema for name, schema in definitions.items() if "properties" in schema}
    assert {"Basis", "Edge", "Fact", "Filters", "Related", "Restatement", "Withheld"} <= set(objects)
    for schema in (*objects.values(), ANSWER.schema, BASIS.schema):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("name", ["answer", "basis", "brief"])
def test_an_instant_is_spelled_out_in_one_place(name: str) -> None:
    schema = validator(name).schema
    text = json.dumps({key: part for key, part in schema.items() if key != "$defs"}) + json.dumps(
        [part for name, part in schema["$defs"].items() if name != "Instant"]
    )
    assert "date-time" not in text
    assert "#/$defs/Instant" in text


# --- answers of every kind


@pytest.fixture
def told(vector_store: FactStore) -> FactStore:
    """A store with every kind of fact, edge and end."""
    store = vector_store
    store.remember(
        "Retrieval uses text search",
        ref="a",
        valid_from="2020-01-01",
        sources=["docs/a.md", ("docs/b.md", "2020-02-01T10:00:00.123456+02:00")],
        subject="retrieval",
        predicate="design",
        object="text search",
        data={"at": "2020-01-01T00:00:00+00:00", "nested": [1, None, {"x": True}]},
    )
    store.supersede("a", "Retrieval uses vectors", ref="b", valid_from="2021-06-30T12:00:00.5Z")
    store.supersede("b", "Retrieval uses vector search", ref="c", reason="refinement", trust="extracted")
    store.amend("c", "Retrieval uses vector search on Mondays", ref="d")
    store.remember("Retrieval uses vector search.", sources=["chat/1"])
    store.remember("Retrieval is old", valid_from=NO_START, valid_to=NO_END)
    store.remember("Retrieval is planned", valid_from="9999-12-31")
    store.remember("Retrieval is early", valid_from="0001-01-01", valid_to="2020-01-01")
    store.remember("Retrieval was a mistake", ref="gone")
    store.retract("gone")
    store.remember("Retrieval ended", ref="ended", valid_from="2019-01-01")
    store.end("ended", at="2024-01-01")
    return store


ASKED: dict[str, Callable[[FactStore], Answer]] = {
    "ask": lambda store: store.ask("which retrieval", min_similarity=0.0),
    "ask with reasons": lambda store: store.ask("which retrieval", min_similarity=0.0, explain=True),
    "ask in the past": lambda store: store.ask("retrieval uses", valid_at="2020-06-01", explain=True),
    "ask for one": lambda store: store.ask("retrieval uses vector search", top_k=1),
    "facts": lambda store: store.facts(),
    "facts with reasons": lambda store: store.facts(explain=True),
    "facts of a subject": lambda store: store.facts(valid_at="2020-06-01", subject="retrieval"),
    "facts by data": lambda store: store.facts(valid_at="2020-06-01", where={"nested": [1]}),
    "facts of some trust": lambda store: store.facts(min_trust="verbatim", explain=True),
    "a page": lambda store: store.facts(limit=1, after=store.facts().facts[0].id),
    "during a period": lambda store: store.facts(valid_during=("2018-01-01", "2024-06-01"), explain=True),
    "during all of time": lambda store: store.facts(valid_during=(None, None)),
    "the first instant": lambda store: store.facts(valid_at="0001-01-01T00:00:00Z"),
    "the last instant": lambda store: store.facts(valid_at="9999-12-31T23:59:59.999999Z"),
    "nothing recorded yet": lambda store: store.ask("retrieval", as_of="2001-01-01"),
    "nothing that matches": lambda store: store.ask("qwertz"),
    "nothing but withheld": lambda store: store.ask("mistake", explain=True),
    "in yesterday's words": lambda store: store.ask("text", explain=True),
    "on a basis": lambda store: store.ask(basis=str(store.ask("retrieval", explain=True).basis)),
}


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_of_each_kind_is_as_the_schema_says(told: FactStore, kind: str) -> None:
    check(ASKED[kind](told))


def test_the_kinds_are_really_there(told: FactStore) -> None:
    """What the cases above are about does come up in them."""
    answers = {kind: asked(told) for kind, asked in ASKED.items()}
    shown = [fact for answer in answers.values() for fact in answer.facts]
    withheld = [fact for answer in answers.values() for fact in answer.withheld_facts]
    assert {answer.outcome for answer in answers.values()} == set(get_args(Outcome))
    assert {answer.ranking for answer in answers.values()} >= {"exact", "none"}
    assert {fact.reason for fact in withheld} >= {
        *("superseded", "near_duplicate", "retracted", "expired", "not_yet_valid", "below_trust")
    }
    assert answers["nothing recorded yet"].notice
    assert any(fact.valid and fact.valid.start is None for fact in shown)
    for name in ("data", "sources", "supersedes", "amends", "amended_by", "restated", "similarity", "via"):
        assert any(getattr(fact, name) for fact in shown), name
    for name in ("superseded_by", "duplicate_of"):
        assert any(getattr(fact, name) for fact in withheld), name


def test_answers_of_stores_whose_embedder_is_down_or_reads_little(vector_database: str) -> None:
    with FactStore.open(vector_database, embedder=Down()) as store:
        store.remember("the port is 5432")
        check(store.ask("port"))
    with FactStore.open(vector_database, embedder=ShortWindow(words=2)) as store:
        assert store.remember("the port is 5433").truncated
        answer = store.ask("the port", explain=True)
        assert any(fact.truncated for fact in answer.facts)
        check(answer)
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        answer = store.ask("lamp")
        assert (answer.outcome, answer.withheld.unembedded) == ("all_withheld", 1)
        check(answer)


def test_answers_over_two_namespaces_and_of_an_empty_one(vector_database: str) -> None:
    with FactStore.open(vector_database, namespace="empty", embedder=BagOfWords()) as store:
        check(store.ask("anything"))
        check(store.facts())
    for name in ("one", "a name: with Zeichen"):
        with FactStore.open(vector_database, namespace=name, embedder=BagOfWords()) as store:
            store.remember("the port is 5432")
            check(store.facts(namespaces=["one", name]))
            check(store.ask("port", namespaces=["one", name], explain=True))


def test_a_sample_of_the_conformance_cases(database: str) -> None:
    checked = 0
    for case in CASES[::3]:
        asks = case["asks"]
        with FactStore.open(database, namespace=case["name"]) as store:
            store.replay(succeeding(case))
            for ask in (asks[0], asks[len(asks) // 2], asks[-1]):
                check(store.facts(**point(ask), explain=True))
                checked += 1
            check(store.ask(case["ops"][0].get("claim", "value"), **point(asks[-1]), explain=True))
    assert checked >= 60


# --- what is no answer


def test_the_schema_refuses_what_no_answer_holds(told: FactStore) -> None:
    plain = told.ask("retrieval uses", explain=True).model_dump(mode="json")
    assert ANSWER.is_valid(plain)
    wrong: list[tuple[list[str | int], Any]] = [
        (["known_at"], "2026-07-24T00:00:00+00:00"),
        (["known_at"], "2026-07-24T00:00:00.500Z"),
        (["known_at"], "2026-07-24"),
        (["known_at"], None),
        (["basis", "heads", "default"], "2026-07-24 00:00:00Z"),
        (["facts", 0, "recorded"], "2026-07-24T00:00:00"),
        (["facts", 0, "valid"], ["2026-07-24T00:00:00Z"]),
        (["facts", 0, "trust"], "hearsay"),
        (["facts", 0, "score"], "0.5"),
        (["withheld", "superseded"], 1.5),
        (["withheld", "lost"], 1),
        (["outcome"], "unknown"),
        (["extra"], 1),
    ]
    for path, value in wrong:
        spoilt = json.loads(json.dumps(plain))
        place = spoilt
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert not ANSWER.is_valid(spoilt), path
    for name in plain:
        assert not ANSWER.is_valid({key: part for key, part in plain.items() if key != name}), name


def test_the_brief_form_has_one_point_or_both_times() -> None:
    at = "2026-07-24T00:00:00Z"
    assert BRIEF.is_valid({"as_of": at, "facts": []})
    assert BRIEF.is_valid({"valid_at": at, "known_at": at, "facts": [], "withheld": {"erased": 1}})
    period = {"valid_during": [at, None], "known_at": at}
    assert BRIEF.is_valid({**period, "facts": []})
    assert not BRIEF.is_valid({**period, "valid_at": at, "facts": []})
    assert not BRIEF.is_valid({"valid_during": [at, None], "facts": []})
    assert not BRIEF.is_valid({**period, "valid_during": [at], "facts": []})
    for said in ({}, {"valid_at": at}, {"known_at": at}, {"as_of": at, "valid_at": at, "known_at": at}):
        assert not BRIEF.is_valid({**said, "facts": []}), said
    assert not BRIEF.is_valid({"as_of": at, "facts": [], "withheld": {"erased": 0}})
    assert not BRIEF.is_valid({"as_of": "2026-07-24", "facts": []})
