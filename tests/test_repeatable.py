"""The same question on the same basis gives the same answer: what would break that, one test each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import make_url

from databases import dump, execute, query, set_clock
from fakes import BagOfWords, Down
from supersede import Answer, FactStore, InvalidInstant, UnsafeIsolation

Read = Callable[..., Answer]
MICROSECOND = timedelta(microseconds=1)


def facts(store: FactStore, **point: Any) -> Answer:
    return store.facts(**point)


def ask(store: FactStore, **point: Any) -> Answer:
    return store.ask(**point) if "basis" in point else store.ask("claim", **point)


both_reads = pytest.mark.parametrize("read", [facts, ask])


def claims(answer: Answer) -> list[str]:
    return sorted(fact.claim for fact in answer.facts)


def clock(database: str) -> datetime:
    return query(database, "select supersede.clock()")[0][0]


def call(connection: psycopg.Connection[Any], verb: str, **event: Any) -> dict[str, Any]:
    """A verb over a connection whose transaction the test holds open."""
    row = connection.execute(f'select supersede."{verb}"(%s::jsonb)', [json.dumps(event)]).fetchone()
    assert row is not None
    return row[0]


def stamp(result: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(result["stamp"])


# --- writes that are under way while somebody reads


@both_reads
def test_a_write_in_flight_never_enters_an_answered_past(database: str, store: FactStore, read: Read) -> None:
    store.remember("claim one")
    with psycopg.connect(database) as writer:
        late = call(writer, "remember", claim="claim two")
        asked_at = clock(database)
        answer = read(store, as_of=asked_at)
    assert stamp(late) < asked_at, "the write must be stamped within the past that was asked about"
    assert claims(read(store)) == ["claim one", "claim two"]
    assert claims(answer) == ["claim one"]
    assert read(store, basis=answer.basis) == answer
    assert store.verify(answer).outcome == "equal"


@both_reads
def test_a_stamp_per_statement_is_no_hole_either(database: str, store: FactStore, read: Read) -> None:
    store.remember("claim one")
    answers = []
    with psycopg.connect(database) as writer:
        first = call(writer, "remember", claim="claim two")
        answers.append(read(store, as_of=clock(database)))
        second = call(writer, "remember", claim="claim three")
        answers.append(read(store, as_of=clock(database)))
    assert stamp(first) < answers[0].known_at < stamp(second) < answers[1].known_at
    assert [claims(answer) for answer in answers] == [["claim one"]] * 2
    assert [read(store, basis=answer.basis) for answer in answers] == answers


def test_an_answer_says_when_its_past_reaches_beyond_the_last_write(database: str, store: FactStore) -> None:
    store.remember("claim one")
    answer = store.facts(known_at=clock(database))
    assert answer.notice is not None
    assert answer.notice.startswith("Nothing was recorded between ")


@both_reads
def test_a_write_between_two_statements_of_a_read_is_not_seen(
    vector_database: str, vector_store: FactStore, read: Read
) -> None:
    vector_store.declare_predicate("state", cardinality="one")
    vector_store.remember_many([f"claim {n} of many" for n in range(5)])
    vector_store.remember("claim 0", subject="s", predicate="state")
    slipped_in = itertools.count(1)
    with FactStore.open(vector_database, embedder=BagOfWords()) as other:

        def write(*_: Any) -> None:
            other.remember(f"claim {next(slipped_in)}", subject="s", predicate="state")

        sa.event.listen(vector_store._engine, "after_cursor_execute", write)
        try:
            answer = read(vector_store, explain=True)
        finally:
            sa.event.remove(vector_store._engine, "after_cursor_execute", write)
    assert next(slipped_in) > 8, "a write must follow each statement of the read"
    # The first statement fixes the snapshot, so the write after it is not seen either.
    assert answer.withheld.nonzero() == {}
    assert claims(answer) == ["claim 0", *(f"claim {n} of many" for n in range(5))]
    assert read(vector_store, basis=answer.basis) == answer


@pytest.mark.parametrize(
    "level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]
)
def test_a_lock_inside_a_snapshot_is_refused(
    database: str, store: FactStore, level: psycopg.IsolationLevel
) -> None:
    store.remember("claim one", ref="a")
    before = dump(database)
    events = {
        "remember": {"claim": "b"},
        "supersede": {"old": ["a"], "claim": "b"},
        "amend": {"old": ["a"], "claim": "b"},
        "end": {"ref": "a"},
        "retract": {"ref": "a"},
        "cite": {"ref": "a", "sources": ["u"]},
        "declare_predicate": {"name": "p", "cardinality": "one"},
        "replay": {"op": "remember", "claim": "b", "recorded_at": "2020-01-01"},
    }
    with psycopg.connect(database) as connection:
        connection.isolation_level = level
        for verb, event in events.items():
            with pytest.raises(psycopg.DatabaseError, match="READ COMMITTED") as refused:
                call(connection, verb, **event)
            assert refused.value.sqlstate == UnsafeIsolation.sqlstate
            connection.rollback()
    assert dump(database) == before


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_store_whose_engine_takes_snapshots_refuses_to_write(store: FactStore, level: str) -> None:
    store.remember("claim one")
    store._engine = store._engine.execution_options(isolation_level=level)
    with pytest.raises(UnsafeIsolation):
        store.remember("claim two")
    assert claims(store.facts()) == ["claim one"]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_store_does_not_depend_on_the_default_isolation_of_the_database(
    server_url: str, database: str, level: str
) -> None:
    name = make_url(database).database
    execute(server_url, f"alter database \"{name}\" set default_transaction_isolation = '{level}'")
    assert query(database, "show default_transaction_isolation") == [(level,)]
    with FactStore.open(database) as store:
        store.remember("claim one")
        assert claims(store.facts()) == ["claim one"]


def test_a_writer_that_began_early_builds_on_what_was_committed_since(
    database: str, store: FactStore
) -> None:
    store.remember("claim one", ref="a")
    with psycopg.connect(database) as early:
        began = early.execute("select now()").fetchone()
        second = store.supersede("a", "claim two", ref="b")
        assert began is not None
        assert began[0] < second.stamp
        third = call(early, "supersede", old=["b"], claim="claim three", ref="c")
    assert stamp(third) > second.stamp
    (first_version, *_) = store.history("b").versions
    assert first_version.known.start == second.stamp
    assert first_version.known.end == stamp(third)
    assert claims(store.facts(known_at=second.stamp, valid_at=second.stamp)) == ["claim two"]
    assert claims(store.facts()) == ["claim three"]


def test_a_writer_that_began_early_loses_against_what_was_committed_since(
    database: str, store: FactStore
) -> None:
    store.remember("claim one", ref="a")
    with psycopg.connect(database) as early:
        early.execute("select now()")
        store.supersede("a", "claim two", ref="b")
        before = dump(database)
        with pytest.raises(psycopg.DatabaseError, match="not believed") as lost:
            call(early, "supersede", old=["a"], claim="claim three", ref="c")
        assert lost.value.sqlstate == "SU005"
        early.rollback()
    assert dump(database) == before


# --- the head and the clock


def test_now_ends_at_the_last_write_not_at_the_clock(database: str, store: FactStore) -> None:
    set_clock(database, "2026-07-24T12:00:00Z")
    store.remember("claim one")
    set_clock(database, "2026-07-24T12:00:05Z")
    answer = store.facts()
    assert answer.known_at == datetime(2026, 7, 24, 12, 0, 5, tzinfo=UTC)
    assert answer.basis.heads == {"default": datetime(2026, 7, 24, 12, 0, 0, tzinfo=UTC)}
    set_clock(database, "2026-07-24T12:00:03Z")  # a writer on a machine whose clock is behind
    late = store.remember("claim two")
    assert late.stamp < answer.known_at
    assert store.facts(basis=answer.basis) == answer
    assert claims(answer) == ["claim one"]


@both_reads
@pytest.mark.parametrize("axis", ["as_of", "known_at"])
def test_what_will_be_known_is_not_known_yet(store: FactStore, read: Read, axis: str) -> None:
    store.remember("claim one")
    with pytest.raises(InvalidInstant, match="2999-01-01T00:00:00Z lies in the future"):
        read(store, **{axis: "2999-01-01"})
    assert claims(read(store, valid_at="2999-01-01")) == ["claim one"]


def test_a_clock_that_steps_back_neither_stops_writes_nor_turns_history_round(
    database: str, store: FactStore
) -> None:
    set_clock(database, "2026-07-24T13:00:00Z")
    first = store.remember("claim one", ref="a")
    set_clock(database, "2026-07-24T12:00:00Z")
    second = store.supersede("a", "claim two", ref="b")
    third = store.end("b")
    assert second.stamp == first.stamp + MICROSECOND
    assert third.stamp == second.stamp + MICROSECOND
    assert claims(store.facts(as_of=first.stamp)) == ["claim one"]
    assert claims(store.facts(as_of=second.stamp)) == ["claim two"]
    assert claims(store.facts()) == []
    assert store.facts().known_at == third.stamp, "now is never before what was recorded"


def test_what_was_just_remembered_is_there_although_the_clock_is_behind(
    database: str, store: FactStore
) -> None:
    set_clock(database, "2026-07-24T13:00:00Z")
    store.remember("claim one")
    set_clock(database, "2026-07-24T12:00:00Z")
    store.remember("claim two")
    assert claims(store.facts()) == ["claim one", "claim two"]


def test_a_clock_that_stands_still_still_gives_every_write_a_stamp_of_its_own(
    database: str, store: FactStore, frozen_clock: str
) -> None:
    results = store.remember_many([f"claim {n}" for n in range(1000)])
    first = datetime.fromisoformat(frozen_clock)
    assert [result.stamp for result in results] == [first + n * MICROSECOND for n in range(1000)]
    ledger = query(database, "select stamp from supersede.operation order by stamp")
    assert [row[0] for row in ledger] == [result.stamp for result in results]


def test_two_changes_in_one_transaction_are_two_instants(database: str, store: FactStore) -> None:
    with psycopg.connect(database) as writer:
        results = [
            call(writer, "remember", claim="claim one", ref="a"),
            call(writer, "supersede", old=["a"], claim="claim two", ref="b"),
            call(writer, "supersede", old=["b"], claim="claim three", ref="c"),
            call(writer, "retract", ref="c"),
        ]
    stamps = [stamp(result) for result in results]
    assert stamps == sorted(set(stamps))
    assert [claims(store.facts(as_of=at)) for at in stamps] == [
        ["claim one"],
        ["claim two"],
        ["claim three"],
        [],
    ]
    assert query(
        database, "select count(*) from supersede.fact_version where isempty(tx_time) or isempty(valid_time)"
    ) == [(0,)]


def test_events_of_one_instant_are_all_kept(database: str, store: FactStore) -> None:
    at = "2020-01-01T00:00:00Z"
    results = store.replay(
        [
            {"op": "remember", "claim": "claim one", "ref": "a", "recorded_at": at},
            {"op": "supersede", "old": ["a"], "claim": "claim two", "ref": "b", "recorded_at": at,
             "reason": "correction"},
            {"op": "end", "ref": "b", "when": "2021-01-01", "recorded_at": at},
        ]
    )  # fmt: skip
    start = datetime(2020, 1, 1, tzinfo=UTC)
    assert [result.stamp for result in results] == [start + n * MICROSECOND for n in range(3)]
    assert claims(store.facts(known_at=start, valid_at="2020-06-01")) == ["claim one"]
    assert claims(store.facts(known_at=start + MICROSECOND, valid_at="2021-06-01")) == ["claim two"]
    assert claims(store.facts(known_at=start + 2 * MICROSECOND, valid_at="2021-06-01")) == []


BOUNDS_OUTSIDE_THE_LEDGER = """
    select v.* from supersede.fact_version v
    where not exists (select from supersede.operation o
                      where o.namespace = v.namespace and o.stamp = lower(v.tx_time))
       or not upper_inf(v.tx_time)
          and not exists (select from supersede.operation o
                          where o.namespace = v.namespace and o.stamp = upper(v.tx_time))
"""


def test_no_interval_is_invented(vector_database: str, vector_store: FactStore) -> None:
    store = vector_store
    with FactStore.open(vector_database, embedder=Down()) as deaf:
        deaf.remember("claim without a vector", ref="bare", valid_from="2019-01-01")
    store.remember("Boston", subject="Acme", predicate="hq", valid_from="2019-01-01", ref="boston")
    store.declare_predicate("hq", cardinality="one")
    store.remember("Denver", subject="acme", predicate="HQ", valid_from="2022-01-01", ref="denver")
    store.remember("Oslo", subject="Acme", predicate="hq", valid_from="2023-03-01", valid_to="2023-06-01")
    assert store.fill_embeddings() == 1
    store.supersede("boston", "Worcester", reason="correction", valid_to="2020-01-01")
    store.supersede("bare", by="denver", valid_from="2024-01-01", valid_to="2025-01-01")
    store.end("denver", at="2024-03-01", until="2024-04-01")
    store.retract("boston")
    store.declare_predicate("hq", cardinality="many")
    assert query(vector_database, "select count(*) > 15 from supersede.fact_version") == [(True,)]
    assert query(vector_database, BOUNDS_OUTSIDE_THE_LEDGER) == []


# --- defaults that depend on the day


@both_reads
def test_a_stored_question_asked_a_year_later_is_the_same_question(
    database: str, store: FactStore, read: Read
) -> None:
    set_clock(database, "2026-07-24T00:00:00Z")
    store.remember("claim one")
    store.remember("claim two", valid_from="2026-12-01")
    answer = read(store)
    text = str(answer.basis)
    set_clock(database, "2027-07-24T00:00:00Z")
    store.remember("claim three")
    assert claims(read(store)) == ["claim one", "claim three", "claim two"]
    again = read(store, basis=text)
    assert again == answer
    assert again.model_dump_json() == answer.model_dump_json()
    assert answer.withheld.nonzero() == {"not_yet_valid": 1}
    assert Answer.model_validate_json(answer.model_dump_json()) == answer


@both_reads
def test_before_the_first_write_nothing_was_recorded(database: str, store: FactStore, read: Read) -> None:
    assert read(store).outcome == "nothing_recorded"
    assert read(store, as_of="1990-01-01").outcome == "nothing_recorded"
    empty = read(store)
    first = store.remember("claim one", valid_from="1980-01-01")
    for answer in (
        read(store, as_of="1990-01-01"),
        read(store, as_of=first.stamp - MICROSECOND),
        read(store, known_at="0001-01-01", valid_at="1990-01-01"),
        read(store, basis=empty.basis),
    ):
        assert (answer.outcome, answer.facts, answer.withheld.total) == ("nothing_recorded", (), 0)
        assert answer.notice is not None
    assert read(store, basis=empty.basis) == empty
    assert claims(read(store, valid_at="1990-01-01")) == ["claim one"]


# --- both axes at once


@pytest.fixture
def headquarters(store: FactStore) -> FactStore:
    """Boston from 2019, Denver from 2022; then Boston is corrected to Worcester; then Paris since 2024."""
    common = {"subject": "Acme", "predicate": "hq"}
    store.replay(
        [
            {"op": "declare_predicate", "name": "hq", "cardinality": "one", "recorded_at": "2019-01-01"},
            {"op": "remember", "claim": "Boston", "ref": "boston", "recorded_at": "2020-01-01",
             "valid_from": "2019-01-01", **common},
            {"op": "remember", "claim": "Denver", "ref": "denver", "recorded_at": "2022-02-01",
             "valid_from": "2022-01-01", **common},
            {"op": "supersede", "claim": "Worcester", "ref": "worcester", "old": ["boston"],
             "reason": "correction", "recorded_at": "2024-02-01"},
            {"op": "remember", "claim": "Paris", "ref": "paris", "recorded_at": "2026-01-01",
             "valid_from": "2024-01-01", **common},
        ]
    )  # fmt: skip
    return store


# known_at: {valid_at: (what was believed, what was withheld)}
GRID = {
    "2021-06-01": {
        "2020-06-01": ("Boston", {}),
        "2023-06-01": ("Boston", {}),
        "2025-06-01": ("Boston", {}),
    },
    "2023-06-01": {
        "2020-06-01": ("Boston", {"not_yet_valid": 1}),
        "2023-06-01": ("Denver", {"superseded": 1}),
        "2025-06-01": ("Denver", {"superseded": 1}),
    },
    "2026-06-01": {
        "2020-06-01": ("Worcester", {"superseded": 1, "not_yet_valid": 2}),
        "2023-06-01": ("Denver", {"superseded": 1, "expired": 1, "not_yet_valid": 1}),
        "2025-06-01": ("Paris", {"superseded": 2, "expired": 1}),
    },
}


@pytest.mark.parametrize("filters", [{}, {"predicate": "HQ"}, {"subject": "ACME", "kind": "fact"}])
def test_each_cell_of_the_two_times(headquarters: FactStore, filters: dict[str, str]) -> None:
    answers = {
        known_at: {
            valid_at: headquarters.facts(known_at=known_at, valid_at=valid_at, **filters) for valid_at in row
        }
        for known_at, row in GRID.items()
    }
    assert {
        known_at: {
            valid_at: (", ".join(claims(answer)), answer.withheld.nonzero())
            for valid_at, answer in row.items()
        }
        for known_at, row in answers.items()
    } == GRID


def test_the_ranked_question_finds_the_same_cell(headquarters: FactStore) -> None:
    for known_at, row in GRID.items():
        for valid_at, (believed, _) in row.items():
            for city in ("Boston", "Denver", "Worcester", "Paris"):
                answer = headquarters.ask(
                    city, known_at=known_at, valid_at=valid_at, kind="fact", lineage_credit=0
                )
                assert claims(answer) == [believed] * (city == believed)


def test_a_filter_that_no_fact_meets_finds_nothing_in_any_cell(headquarters: FactStore) -> None:
    for known_at, valid_at in itertools.product(GRID, ["2020-06-01", "2023-06-01", "2025-06-01"]):
        answer = headquarters.facts(known_at=known_at, valid_at=valid_at, predicate="ceo")
        assert (answer.outcome, answer.withheld.total) == ("nothing_matched", 0)
