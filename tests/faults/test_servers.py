"""A backend or the whole server killed at any point of any verb: nothing of it is there, and all goes on."""

from __future__ import annotations

from typing import Any, Literal

import psycopg
import pytest
from psycopg import sql

import stress
from clusters import Cluster, until
from databases import dump, dump_over, execute, query
from fakes import BagOfWords
from faults import cases
from supersede import FactStore, OutcomeUnknown, ServerUnavailable, SupersedeError

CASES = {**cases.CASES, **cases.DESTROYING}
TABLES = ("fact", "fact_ref", "fact_version", "supersedes", "evidence", "embedding", "operation", "namespace")
AT_COMMIT = -1

# Every row that is about to be written is a point; so are the namespace's row when it has been, which is the
# last of a verb, and the commit. Sequences go on whatever becomes of the transaction.
_POINTS = """
create sequence public.point;
create table public.fate (place bigint, how text);
insert into public.fate values (0, '');
create function public.meet() returns trigger language plpgsql as $$
declare
    v_fate public.fate := (select f from public.fate f);
    v_victim text;
begin
    if nextval('public.point') = v_fate.place or (tg_argv[0] = 'commit' and v_fate.place = -1) then
        if v_fate.how = 'terminated' then
            perform pg_terminate_backend(pg_backend_pid());
        else
            v_victim := case v_fate.how when 'the backend' then pg_backend_pid()::text
                        else split_part(pg_read_file('postmaster.pid'), E'\\n', 1) end;
            execute format('copy (select) to program %L', 'kill -9 ' || v_victim);
        end if;
        perform pg_sleep(600);
    end if;
    return coalesce(new, old);
end $$;
create constraint trigger commit after insert on supersede.operation deferrable initially deferred
    for each row execute function public.meet('commit');
create trigger last after update on supersede.namespace for each row execute function public.meet('');
"""
How = Literal["terminated", "the backend", "the server"]


def set_points(url: str) -> None:
    execute(url, _POINTS)
    for table in TABLES:
        execute(
            url,
            sql.SQL(
                "create trigger point before insert or update on supersede.{} "
                "for each row execute function public.meet('')"
            ).format(sql.Identifier(table)),
        )


def choose(connection: psycopg.Connection[Any], how: How, place: int) -> None:
    """At which point what is killed, from now on."""
    connection.execute("select setval('public.point', 1, false)")
    connection.execute("update public.fate set place = %s, how = %s", [place, how])


def outcome(case: str, store: FactStore) -> SupersedeError | None:
    try:
        CASES[case](store)
    except SupersedeError as error:
        return error
    return None


@pytest.mark.parametrize("case", CASES)
def test_a_backend_that_ends_at_any_point_of_any_verb_leaves_nothing(case: str, copy: str) -> None:
    # Each case in one transaction: no vectors that come after it, no second batch.
    embedder = BagOfWords() if case == "fill_embeddings" else None
    set_points(copy)
    with FactStore.open(copy, embedder=embedder) as store, psycopg.connect(copy, autocommit=True) as watch:
        before = dump_over(watch)
        errors: list[SupersedeError | None] = []
        place = 0
        while True:
            place += 1
            choose(watch, "terminated", place)
            error = outcome(case, store)
            if error is None:
                break
            assert isinstance(error, ServerUnavailable | OutcomeUnknown)
            assert dump_over(watch) == before
            errors.append(error)
        at_commit = [isinstance(error, OutcomeUnknown) for error in errors]
        assert at_commit == sorted(at_commit), "nothing is unknown before the commit"
        assert (at_commit[0], at_commit[-1]) == (False, True)
        after = dump_over(watch)
        assert after != before
        choose(watch, "terminated", 0)
        CASES[case](store)
        assert dump_over(watch) == after, "what was recorded is found by its handle"


def checkpointer(url: str) -> int | None:
    """Its process, another one after each recovery; None while the server lets nobody in."""
    try:
        return int(query(url, "select pid from pg_stat_activity where backend_type = 'checkpointer'")[0][0])
    except (psycopg.OperationalError, IndexError):
        return None


@pytest.mark.parametrize(
    ("case", "how", "place"),
    [
        ("remember in a slot", "the backend", 2),
        ("transaction", "the backend", AT_COMMIT),
        ("supersede", "the server", 5),
        ("retract, give back", "the server", AT_COMMIT),
    ],
)
def test_after_a_kill_9_the_store_goes_on_where_it_was(
    case: str, how: How, place: int, copy: str, cluster: Cluster
) -> None:
    set_points(copy)
    before = dump(copy)
    with FactStore.open(copy) as store:
        asked = store.facts(explain=True)
        earlier = checkpointer(copy)
        with psycopg.connect(copy, autocommit=True) as connection:
            choose(connection, how, place)
        error = outcome(case, store)
        assert isinstance(error, OutcomeUnknown if place == AT_COMMIT else ServerUnavailable)
        if how == "the server":
            cluster.restart()
        else:
            until(lambda: checkpointer(copy) not in (None, earlier), "the postmaster's recovery")
        assert dump(copy) == before
        assert store.facts(basis=str(asked.basis)) == asked
        with psycopg.connect(copy, autocommit=True) as connection:
            choose(connection, how, 0)
        assert outcome(case, store) is None
    assert set(stress.integrity(copy).values()) == {0}


def test_while_the_server_is_down_every_call_says_so(copy: str, cluster: Cluster) -> None:
    with FactStore.open(copy) as store:
        cluster.kill()
        try:
            for call in (store.facts, lambda: store.remember("claim", ref="n"), lambda: store.get("a")):
                with pytest.raises(ServerUnavailable):
                    call()
            with pytest.raises(ServerUnavailable), store.transaction() as together:
                together.remember("claim", ref="n")
        finally:
            cluster.restart()
        assert not store.remember("claim", ref="n").repeated


def test_a_block_that_goes_on_after_its_connection_was_lost_records_nothing(copy: str) -> None:
    def go_on(store: FactStore) -> None:
        with store.transaction() as together:
            together.remember("before", ref="n1")
            query(
                copy,
                "select pg_terminate_backend(pid, 60000) from pg_stat_activity "
                "where datname = current_database() and state = 'idle in transaction'",
            )
            for ref in ("n2", "n3"):
                with pytest.raises(ServerUnavailable):
                    together.remember("after", ref=ref)

    before = dump(copy)
    with FactStore.open(copy) as store:
        with pytest.raises(ServerUnavailable, match="nothing"):
            go_on(store)
        assert dump(copy) == before
        with store.transaction() as together:
            together.remember("again", ref="n1")
        assert store.get("n1").claim == "again"
