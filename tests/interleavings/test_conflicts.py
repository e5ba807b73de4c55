"""Real errors of the server when sessions meet: what each comes out as, and what is attempted again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from cases import in_background
from psycopg import sql
from roads import named

from databases import dump, execute, query
from fakes import BagOfWords
from supersede import (
    AsyncFactStore,
    Conflict,
    FactNotCurrent,
    FactStore,
    ServerUnavailable,
    SupersedeError,
    attempts,
)
from supersede import engine as db

PATIENCE = 60
YEAR: dict[str, Any] = {"valid_from": "2020-01-01"}
SLOT: dict[str, Any] = {"subject": "Ann", "predicate": "works at", **YEAR}


@contextmanager
def opened(url: str, states: list[str | None]) -> Iterator[FactStore]:
    """A store known to the server as ``store``; every error of the driver leaves its state in the list."""
    with FactStore.open(named(url, "store"), actor="store") as store:
        watch(store._engine, states)
        yield store


def watch(engine: sa.Engine, states: list[str | None]) -> None:
    def note(context: sa.engine.ExceptionContext) -> None:
        states.append(getattr(context.original_exception, "sqlstate", None))

    sa.event.listen(engine, "handle_error", note)


def until(url: str, condition: str, *parameters: Any) -> None:
    """Look at the server until it says so."""
    pause = threading.Event()
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(PATIENCE * 100):
            if connection.execute(f"select {condition}", parameters).fetchone() == (True,):
                return
            pause.wait(0.01)
    raise AssertionError(f"never: {condition}")


def until_blocked(url: str, name: str, by: psycopg.Connection[Any]) -> None:
    until(
        url,
        "exists (select from pg_stat_activity where datname = current_database() "
        "and application_name = %s and %s = any (pg_blocking_pids(pid)))",
        name,
        by.info.backend_pid,
    )


# --- 40P01: two wait for each other


GATE = """
    create or replace function supersede.clock() returns timestamptz language plpgsql volatile as
    'begin perform pg_advisory_xact_lock_shared(1); return clock_timestamp(); end'
"""


def test_a_verb_that_lost_a_deadlock_is_run_again(database: str) -> None:
    """The server undoes who notices; the store's verb is made to, and comes second instead of failing."""
    name = sa.make_url(database).database
    execute(database, f"alter database {name} set deadlock_timeout = '20ms'")
    states: list[str | None] = []
    with (
        opened(database, states) as store,
        psycopg.connect(database, autocommit=True) as gate,
        psycopg.connect(named(database, "other")) as other,
    ):
        fact = store.remember("claim", ref="a")
        execute(database, GATE)
        other.execute("set deadlock_timeout = '10min'")
        other.execute("select from supersede.fact_version where fact_id = %s for update", [fact.id])
        gate.execute("select pg_advisory_lock(1)")
        retracting = in_background(lambda: store.retract("a"))
        until_blocked(database, "store", gate)  # it holds the namespace, and comes to the fact's row next
        remembering = in_background(
            lambda: other.execute("""select supersede.remember('{"claim": "of the other"}')""").fetchone()
        )
        until(
            database,
            "exists (select from pg_stat_activity where datname = current_database() "
            "and application_name = 'other' and cardinality(pg_blocking_pids(pid)) > 0)",
        )
        gate.execute("select pg_advisory_unlock(1)")
        assert remembering.result(PATIENCE) is not None
        other.commit()
        done = retracting.result(PATIENCE)
        assert (done.verb, done.repeated) == ("retract", False)
        assert states == ["40P01"], "it lost once"
    assert query(database, "select verb from supersede.operation order by stamp") == [
        ("remember",), ("remember",), ("retract",),
    ]  # fmt: skip


# --- 40001: the row has moved to the closed versions


def close_behind_the_lock(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "update supersede.fact_version set is_open = false, embedding = null, "
        "tx_time = tstzrange(lower(tx_time), supersede.clock()) where is_open"
    )


def test_a_version_that_was_closed_meanwhile_is_looked_at_again(database: str) -> None:
    states: list[str | None] = []
    with opened(database, states) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        close_behind_the_lock(other)
        retracting = in_background(lambda: store.retract("a"))
        until_blocked(database, "store", other)
        other.commit()
        with pytest.raises(FactNotCurrent):
            retracting.result(PATIENCE)
        assert states == ["40001", "SU005"]


def test_within_a_transaction_it_is_a_conflict(database: str) -> None:
    states: list[str | None] = []

    def write(store: FactStore) -> list[Any]:
        with store.transaction() as transaction:
            transaction.remember("before", ref="before")
            with pytest.raises(Conflict) as lost:
                transaction.retract("a")
            transaction.remember("after", ref="after")
        return [lost.value.details, lost.value.__cause__]

    with opened(database, states) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        close_behind_the_lock(other)
        writing = in_background(lambda: write(store))
        until_blocked(database, "store", other)
        other.commit()
        details, cause = writing.result(PATIENCE)
        assert details == {"sqlstate": "40001"}
        assert isinstance(cause, psycopg.errors.SerializationFailure)
        assert states == ["40001"], "once: what came before it in the block cannot be run again from here"
        assert sorted(fact.claim for fact in store.facts().facts) == ["after", "before"]


# --- 23P01: two values of a slot, one past the lock


def open_behind_the_lock(connection: psycopg.Connection[Any], ref: str) -> None:
    connection.execute(
        "select supersede.insert_version(f.namespace, f.fact_id, tstzrange('2020-01-01', null), "
        "supersede.slot_of(f.namespace, f.subject_key, f.predicate_key), supersede.clock()) "
        "from supersede.fact_ref join supersede.fact f using (namespace, fact_id) where ref = %s",
        [ref],
    )


def test_a_value_that_got_into_the_slot_meanwhile_is_taken_into_account(database: str) -> None:
    states: list[str | None] = []
    with opened(database, states) as store, psycopg.connect(database) as other:
        store.declare_predicate("works at", cardinality="one")
        store.remember("Acme", ref="acme", **SLOT)
        store.retract("acme")
        open_behind_the_lock(other, "acme")
        adding = in_background(lambda: store.remember("Bolt", ref="bolt", **SLOT))
        until_blocked(database, "store", other)
        other.commit()
        (cut,) = adding.result(PATIENCE).supersedes
        assert (cut.ref, cut.reason) == ("acme", "correction")
        assert states == ["23P01"]
        assert [fact.ref for fact in store.facts().facts] == ["bolt"]


# --- 55P03, 57014: waited long enough


def test_the_lock_timeout_of_a_role_is_for_sql_alone(database: str) -> None:
    name = sa.make_url(database).database
    execute(database, f"alter database {name} set lock_timeout = '1ms'")
    with opened(database, []) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        other.execute("select from supersede.namespace for no key update")
        with psycopg.connect(database) as waiting, pytest.raises(Conflict) as lost, db.translated_errors():
            waiting.execute("""select supersede.retract('{"ref": "a"}')""")
        assert lost.value.details == {"sqlstate": "55P03"}
        assert isinstance(lost.value.__cause__, psycopg.errors.LockNotAvailable)
        retracting = in_background(lambda: store.retract("a"))
        until_blocked(database, "store", other)
        other.rollback()
        assert retracting.result(PATIENCE).verb == "retract"


def test_who_has_waited_long_enough_is_not_made_to_wait_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ", ".join(
        f"set_config('{name}', '{value}', true)"
        for name, value in dict(db._SESSION, lock_timeout="50ms").items()
    )
    monkeypatch.setattr(db, "_SET_LOCAL", sa.text(f"select {settings}"))
    monkeypatch.setattr(db, "_SET_ALL", sa.text(f"select {settings}, set_config('search_path', :path, true)"))
    states: list[str | None] = []
    with opened(database, states) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        other.execute("select from supersede.namespace for no key update")
        with pytest.raises(Conflict):
            store.retract("a")
        assert states == ["55P03"]


def test_a_statement_timeout_is_an_error_of_this_package_and_changes_nothing(database: str) -> None:
    states: list[str | None] = []

    def limit(connection: sa.Connection) -> None:
        # After the store's own settings, so that it is for the verb alone.
        connection.exec_driver_sql("set local statement_timeout = '200ms'")

    with opened(database, states) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        before = dump(database)
        other.execute("select from supersede.namespace for no key update")
        sa.event.listen(store._engine, "begin", limit)
        with pytest.raises(SupersedeError) as lost:
            store.retract("a")
        assert isinstance(lost.value.__cause__, psycopg.errors.QueryCanceled)
        assert states == ["57014"], "not again: the limit is the same the next time"
        other.rollback()
        assert dump(database) == before
        sa.event.remove(store._engine, "begin", limit)
        assert store.retract("a").verb == "retract"


# --- 57P01, 53300: no connection


def end_who_waits(url: str, by: psycopg.Connection[Any]) -> None:
    until_blocked(url, "store", by)
    execute(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and application_name = 'store' "
        "and cardinality(pg_blocking_pids(pid)) > 0",
    )


def test_a_writer_whose_backend_is_ended_is_told_so_and_goes_on(database: str) -> None:
    states: list[str | None] = []
    with opened(database, states) as store, psycopg.connect(database) as other:
        store.remember("claim", ref="a")
        other.execute("select from supersede.namespace for no key update")
        retracting = in_background(lambda: store.retract("a"))
        end_who_waits(database, other)
        with pytest.raises(ServerUnavailable) as lost:
            retracting.result(PATIENCE)
        assert isinstance(lost.value.__cause__, psycopg.errors.AdminShutdown)
        assert states == ["57P01"]
        other.rollback()
        assert store.retract("a").verb == "retract"


def test_a_task_whose_backend_is_ended_is_told_so_and_goes_on(database: str) -> None:
    async def work(other: psycopg.Connection[Any]) -> None:
        async with await AsyncFactStore.open(named(database, "store")) as store:
            await store.remember("claim", ref="a")
            other.execute("select from supersede.namespace for no key update")
            retracting = asyncio.create_task(store.retract("a"))
            await asyncio.to_thread(end_who_waits, database, other)
            with pytest.raises(ServerUnavailable):
                await retracting
            other.rollback()
            assert (await store.retract("a")).verb == "retract"

    with psycopg.connect(database) as other:
        asyncio.run(work(other))


def test_no_connection_left_for_a_role_is_unavailable(server_url: str, database: str) -> None:
    role = f"crowded_{sa.make_url(database).database}"
    execute(database, f"create role {role} login password 'x' connection limit 1 in role supersede_writer")
    url = sa.make_url(database).set(username=role, password="x").render_as_string(False)
    try:
        with FactStore.open(url) as store:
            store.remember("claim", ref="a")
            with store.transaction() as transaction:
                transaction.remember("held")
                with pytest.raises(ServerUnavailable, match="too many connections"):
                    store.facts()
            assert len(store.facts().facts) == 2, "what was in hand is not lost by it"
    finally:
        execute(server_url, f"drop role {role}")


# --- how often


LOSING = sql.SQL("""
    create sequence public.lost;
    create function public.lose() returns trigger language plpgsql as $$
    begin
        if nextval('public.lost') <= {} then
            raise exception using errcode = {}, message = 'deadlock detected';
        end if;
        return new;
    end
    $$;
    create trigger lose before insert on supersede.operation for each row execute function public.lose();
""")


def lose(url: str, *, times: int, state: str = "40P01") -> None:
    """The first so many writes from now on fail, as far as they can get."""
    execute(url, LOSING.format(sql.Literal(times), sql.Literal(state)))


def attempted(url: str) -> int:
    return query(url, "select last_value from public.lost where is_called")[0][0]


EVENT = {"op": "remember", "claim": "told", "recorded_at": "2020-01-01"}
WRITES: dict[str, Callable[[FactStore], Any]] = {
    "remember": lambda store: store.remember("new"),
    "supersede": lambda store: store.supersede("a", "new"),
    "retract": lambda store: store.retract("a", handle="h"),
    "declare_predicate": lambda store: store.declare_predicate("works at", cardinality="one"),
    "erase": lambda store: store.erase("a", note="asked for"),
    "remember_many": lambda store: store.remember_many(["new", "newer"]),
    "replay": lambda store: store.replay([EVENT], out_of_order="next_stamp"),
    "fill_embeddings": lambda store: store.fill_embeddings(),
}


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_PAUSES", (0.0,) * len(attempts._PAUSES))


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("verb", WRITES)
def test_every_write_that_lost_is_attempted_again_and_applied_once(vector_database: str, verb: str) -> None:
    with FactStore.open(vector_database) as store:
        store.remember("claim", ref="a")
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        lose(vector_database, times=2)
        WRITES[verb](store)
    written = 2 if verb == "remember_many" else 1
    assert query(vector_database, "select count(*) from supersede.operation") == [(1 + written,)]
    assert attempted(vector_database) == 2 + written


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("state", ["40P01", "40001", "23P01"])
def test_who_always_loses_is_told_so_in_the_end(database: str, store: FactStore, state: str) -> None:
    store.remember("claim", ref="a")
    lose(database, times=1_000, state=state)
    before = dump(database)
    with pytest.raises(Conflict) as lost:
        store.retract("a")
    assert lost.value.details == {"sqlstate": state}
    assert isinstance(lost.value.__cause__, psycopg.Error)
    assert dump(database) == before
    assert attempted(database) == 4


@pytest.mark.usefixtures("without_pauses")
def test_the_position_is_that_of_the_record_that_lost(database: str, store: FactStore) -> None:
    lose(database, times=1_000)
    with pytest.raises(Conflict, match=r"^item 1: Another writer") as lost:
        store.remember_many(["first", "second"])
    assert lost.value.details == {"sqlstate": "40P01", "position": 1}
    assert attempted(database) == 4


def test_a_transaction_is_not_run_again(database: str, store: FactStore) -> None:
    lose(database, times=1)
    with pytest.raises(Conflict), store.transaction() as transaction:
        transaction.remember("claim", ref="a")
    assert attempted(database) == 1
    assert query(database, "select count(*) from supersede.fact") == [(0,)]


def test_a_basis_that_moved_is_not_run_again(database: str) -> None:
    states: list[str | None] = []
    with opened(database, states) as store:
        store.remember("claim", ref="a")
        answer = store.facts()
        store.end("a", at="2100-01-01")
        with pytest.raises(Conflict):
            store.retract("a", based_on=answer)
        assert states == ["SU009"], "another decision is needed, not another attempt"


@pytest.mark.usefixtures("without_pauses")
def test_tasks_lose_and_win_alike(database: str) -> None:
    async def work() -> None:
        async with await AsyncFactStore.open(database) as store:
            lose(database, times=3)
            await store.remember("claim", ref="a")
            assert attempted(database) == 4
            async with store.transaction() as transaction:
                await transaction.retract("a")

    asyncio.run(work())
    assert query(database, "select verb from supersede.operation order by stamp") == [
        ("remember",), ("retract",),
    ]  # fmt: skip


def test_a_task_cancelled_between_two_attempts_leaves_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_PAUSES", (1e6,))
    lose(database, times=1)
    before = dump(database)

    async def work() -> None:
        async with await AsyncFactStore.open(database) as store:
            lost = asyncio.Event()

            def note(_context: sa.engine.ExceptionContext) -> None:
                lost.set()

            sa.event.listen(store._engine.sync_engine, "handle_error", note)
            task = asyncio.create_task(store.remember("claim", ref="a"))
            await asyncio.wait_for(lost.wait(), PATIENCE)
            # Rolled back, and its connection given back: from here on it pauses.
            while store._engine.sync_engine.pool.checkedout():
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert dump(database) == before
            assert not (await store.remember("claim", ref="a")).repeated

    asyncio.run(work())
