"""The demo finds what was the right answer at each instant, and loads its history once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import new_database
from databases import query
from supersede import FactNotFound, FactStore, OutOfOrder, adapters, demo
from supersede.cli import app
from supersede.demo import Asked, Demo
from supersede.demo_data import rfc_events, rfc_rows

# What an engineer would have been told on the first of January of that year.
RIGHT = {
    "what specifies HTTP/1.1?": {
        1998: {"rfc/2068"},
        2010: {"rfc/2616"},
        2016: {f"rfc/{number}" for number in range(7230, 7236)},
        2024: {"rfc/9112"},
    },
    "IPv6 specification": {
        1998: {"rfc/1883"},
        2010: {"rfc/2460"},
        2016: {"rfc/2460"},
        2024: {"rfc/8200"},
    },
    "TLS protocol version": {
        2000: {"rfc/2246"},
        2007: {"rfc/4346"},
        2010: {"rfc/5246"},
        2024: {"rfc/8446"},
    },
    "JSON data interchange format": {2010: {"rfc/4627"}, 2015: {"rfc/7159"}, 2024: {"rfc/8259"}},
}


@pytest.fixture(scope="session")
def demo_database(server_url: str, template_database: str) -> Iterator[str]:
    """The URL of a database with the whole demo in it."""
    pytest.importorskip("onnxruntime", reason="the demo is about ranking with the light embedder")
    with new_database(server_url, "demo", template_database) as (_, url):
        FactStore.init(url)
        with Demo(url) as loaded:
            assert loaded.missing == loaded.total == 9_482
            done: list[float] = []
            assert loaded.load(done.append) == 9_482
        # The bar moves while vectors are computed, and never back.
        assert len(done) > 500
        assert done == sorted(done)
        assert done[-1] == 9_482
        yield url


@pytest.fixture(scope="session")
def asked(demo_database: str) -> list[Asked]:
    with Demo(demo_database) as loaded:
        return list(loaded.answers())


@pytest.mark.parametrize(
    ("question", "year"), [(question, year) for question, years in RIGHT.items() for year in years]
)
def test_the_right_one_is_first(asked: list[Asked], question: str, year: int) -> None:
    (answer,) = [each.answer for each in asked if (each.query, each.as_of) == (question, f"{year}-01-01")]
    assert answer.facts[0].ref in RIGHT[question][year]


def test_every_question_is_asked_as_of_all_its_instants(asked: list[Asked]) -> None:
    assert [(each.query, each.as_of) for each in asked] == [
        (question, f"{year}-01-01") for question, years in RIGHT.items() for year in years
    ]


def test_each_answer_is_five_dated_facts_with_their_sources_and_none_is_obsolete(asked: list[Asked]) -> None:
    date = {row["number"]: row["date"] for row in rfc_rows()}
    obsoleted: dict[int, str] = {}
    for row in rfc_rows():
        for old in row["obsoletes"]:
            obsoleted[old] = min(obsoleted.get(old, "9999"), row["date"])
    for each in asked:
        assert len(each.answer.facts) == 5
        for fact in each.answer.facts:
            number = int((fact.ref or "").removeprefix("rfc/"))
            assert fact.source == f"https://www.rfc-editor.org/info/rfc{number}"
            assert fact.asserted is not None
            assert fact.asserted.date().isoformat() == date[number] < each.as_of
            assert obsoleted.get(number, "9999") > each.as_of


def test_what_was_superseded_is_withheld_and_named_by_what_superseded_it(asked: list[Asked]) -> None:
    http = [each.answer for each in asked if each.query == "what specifies HTTP/1.1?"]
    assert all(answer.withheld.superseded for answer in http)
    assert [[edge.ref for edge in answer.facts[0].supersedes] for answer in http[:2]] == [[], ["rfc/2068"]]


def test_a_second_run_writes_nothing(demo_database: str) -> None:
    def ledger() -> list[tuple[Any, ...]]:
        return query(demo_database, "select count(*), max(stamp) from supersede.operation")

    before = ledger()
    with Demo(demo_database) as again:
        assert again.missing == 0
        assert again.load() == 0
    assert ledger() == before


def test_the_command_prints_five_answers_for_each_instant(demo_database: str) -> None:
    environment = {"SUPERSEDE_URL": demo_database, "COLUMNS": "140"}
    printed = CliRunner().invoke(app, ["demo"], env=environment)
    assert printed.exit_code == 0, printed.output
    headings = [line for line in printed.stdout.splitlines() if line.endswith("-01-01") and " as of " in line]
    assert len(headings) == 15
    assert "supersede --namespace demo-rfc ask" in printed.stdout.splitlines()[-1]
    told = CliRunner().invoke(app, ["demo", "--json"], env=environment)
    documents = json.loads(told.stdout)
    assert len(documents) == 15
    assert documents[0]["query"] == "what specifies HTTP/1.1?"
    assert documents[0]["answer"]["facts"][0]["ref"] == "rfc/2068"


# --- loading, with a part of the index and without vectors

PART = list(rfc_events())[:2_500]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "rfc_events", lambda: iter(PART))
    monkeypatch.setattr(adapters, "default", lambda: None)


@pytest.mark.usefixtures("part")
def test_an_interrupted_run_goes_on_where_it_stopped(database: str) -> None:
    def interrupt(done: float) -> None:
        if done >= 1_000:
            raise KeyboardInterrupt

    with Demo(database) as first, pytest.raises(KeyboardInterrupt):
        first.load(interrupt)
    with Demo(database) as second:
        # The last event of the first run may have made no fact, and then is replayed.
        assert 1_500 <= second.missing <= 1_510
        second.load()
    with Demo(database) as third:
        assert third.missing == 0 or "ref" not in PART[-1]
    assert query(database, "select count(*) from supersede.operation") == [(len(PART),)]


@pytest.mark.usefixtures("part")
def test_a_namespace_with_something_else_in_it_is_refused(store: FactStore, database: str) -> None:
    store.remember("mine")
    with Demo(database, namespace="default") as other, pytest.raises(OutOfOrder, match="not the demo's"):
        other.load()


def test_a_head_that_vectors_moved_past_an_event_is_not_taken_for_it() -> None:
    same_day = [
        {"recorded_at": "2000-01-01", "ref": "a", "subject": "A"},
        {"recorded_at": "2000-01-01", "ref": "b", "subject": "B"},
    ]

    class OnlyA:
        """Holds the first event, and a vector filled in since: its head is the second event's stamp."""

        namespace = "n"

        def facts(self, **_: Any) -> Any:
            head = datetime(2000, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
            return SimpleNamespace(basis=SimpleNamespace(heads={"n": head}))

        def get(self, ref: str) -> None:
            if ref != "a":
                raise FactNotFound

    assert demo._already_there(OnlyA(), same_day) == 0
    assert demo._already_there(OnlyA(), same_day[:1]) == 1


DEAD_ON_THE_15TH = """
with successor as (
    select s.old_fact_id, min(lower(v.valid_time)) as since
    from supersede.supersedes s
    join supersede.fact_version v on v.namespace = s.namespace and v.fact_id = s.new_fact_id
    where s.namespace = 'demo-rfc' and s.reason = 'change'
    group by s.old_fact_id)
select count(distinct month), count(*), count(*) filter (where successor.since <= month)
from generate_series(timestamptz '1969-04-15 00:00+00', '2024-03-15 00:00+00', '1 month') as month
join supersede.fact_version v
  on v.namespace = 'demo-rfc' and supersede.is_current(v.valid_time, v.tx_time, month, month)
left join successor on successor.old_fact_id = v.fact_id
"""


def test_on_the_15th_of_no_month_is_anything_current_that_was_obsolete_by_then(demo_database: str) -> None:
    ((months, shown, dead),) = query(demo_database, DEAD_ON_THE_15TH)
    assert months == 660
    assert shown > 1_800_000
    assert dead == 0


@pytest.mark.parametrize("year", [1985, 1999, 2016, 2024])
def test_the_answer_of_a_15th_is_what_the_index_says(demo_database: str, year: int) -> None:
    at = f"{year}-03-15"
    rows = list(rfc_rows())
    gone = {old for row in rows if row["date"] <= at for old in row["obsoletes"]}
    standing = {f"rfc/{row['number']}" for row in rows if row["date"] <= at and row["number"] not in gone}
    with FactStore.open(demo_database, namespace="demo-rfc") as store:
        answer = store.facts(as_of=at, limit=20_000)
    assert {fact.ref for fact in answer.facts} == standing
    assert len(answer.facts) + answer.withheld.total == len([row for row in rows if row["date"] <= at])


def test_lineage_knows_the_successors_of_http(demo_database: str) -> None:
    with FactStore.open(demo_database, namespace="demo-rfc") as store:
        assert {fact.ref for fact in store.lineage("rfc/7230").successors} == {"rfc/9110", "rfc/9112"}
        assert {fact.ref for fact in store.lineage("rfc/2616").successors} == {
            f"rfc/{number}" for number in range(7230, 7236)
        }
