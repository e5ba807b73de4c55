"""Writers at the same moment: one wins, the others are told so, and nothing is left half-done."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from databases import dump, execute, query
from supersede import (
    Conflict,
    FactNotCurrent,
    FactStore,
    InvalidPeriod,
    RefConflict,
    ServerUnavailable,
    SupersedeError,
    SupersessionCycle,
)
from supersede import engine as db
from supersede import facts as executor

# How long a thread waits for the others before the test fails rather than hangs.
PATIENCE = 30


@pytest.fixture
def stores(database: str) -> Iterator[list[FactStore]]:
    """Two stores on one database, each with connections of its own."""
    with FactStore.open(database, actor="one") as one, FactStore.open(database, actor="two") as two:
        yield [one, two]


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned, or the error it raised, when all began at the same moment."""
    gate = threading.Barrier(len(calls), timeout=PATIENCE)

    def run(call: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def kinds(outcomes: Sequence[Any]) -> list[str]:
    return sorted(type(outcome).__name__ for outcome in outcomes)


def claims(store: FactStore, **point: Any) -> list[str]:
    return sorted(fact.claim for fact in store.facts(**point).facts)


OVERLAPS = """
    select a.fact_id from supersede.fact_version a
    join supersede.fact_version b
      on a.namespace = b.namespace and a.fact_id = b.fact_id and a.version_id < b.version_id
     and a.valid_time && b.valid_time and a.tx_time && b.tx_time
"""


# --- two successors of one fact


def test_of_two_successors_at_the_same_moment_one_wins(database: str, stores: list[FactStore]) -> None:
    for n in range(15):
        stores[0].remember(f"claim {n}", ref=f"old {n}", subject=f"s {n}")
        outcomes = at_once(
            *(lambda s=s, n=n: s.supersede(f"old {n}", f"by {s.actor}", ref=f"{s.actor} {n}") for s in stores)
        )
        assert kinds(outcomes) == ["FactNotCurrent", "Recorded"]
        (winner,) = [outcome.ref for outcome in outcomes if not isinstance(outcome, Exception)]
        assert claims(stores[0], subject=f"s {n}") == [f"by {winner.split()[0]}"]
        assert [fact.ref for fact in stores[0].lineage(f"old {n}").successors] == [winner]
    assert query(database, OVERLAPS) == []


def test_the_loser_leaves_no_trace(database: str, stores: list[FactStore]) -> None:
    stores[0].remember("claim", ref="old")
    outcomes = at_once(
        *(
            lambda s=s: s.supersede("old", "new", ref=f"ref of {s.actor}", sources=[f"source of {s.actor}"])
            for s in stores
        )
    )
    (winner,) = [outcome.ref for outcome in outcomes if not isinstance(outcome, Exception)]
    loser = {"ref of one": "two", "ref of two": "one"}[winner]
    assert f"of {loser}" not in str(dump(database))
    assert query(database, "select count(*) from supersede.operation") == [(2,)]
    assert query(database, "select count(*) from supersede.fact") == [(2,)]


def test_the_loser_is_told_which_fact_was_gone(database: str, stores: list[FactStore]) -> None:
    stores[0].remember("claim", ref="old")
    (lost,) = [
        outcome
        for outcome in at_once(*(lambda s=s: s.supersede("old", "new") for s in stores))
        if isinstance(outcome, Exception)
    ]
    assert isinstance(lost, FactNotCurrent)
    assert lost.details["facts"] == ["old"]


def supersede_in_a_process(url: str, gate: Barrier, name: str, results: Any) -> None:
    with FactStore.open(url, actor=name) as store:
        store.facts()  # connected before the gate opens
        gate.wait(PATIENCE)
        try:
            results.put(type(store.supersede("old", f"by {name}")).__name__)
        except SupersedeError as error:
            results.put(type(error).__name__)


def test_the_lock_holds_between_processes(database: str, store: FactStore) -> None:
    store.remember("claim", ref="old")
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(2), context.Queue()
    processes = [
        context.Process(target=supersede_in_a_process, args=(database, gate, name, results))
        for name in ("one", "two")
    ]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=PATIENCE) for _ in processes]
    for process in processes:
        process.join(PATIENCE)
    results.close()
    results.join_thread()
    assert sorted(outcomes) == ["FactNotCurrent", "Recorded"]
    assert len(claims(store)) == 1
    assert query(database, "select count(*) from supersede.supersedes") == [(1,)]


# --- two values of one slot


def test_two_values_of_one_slot_at_the_same_moment_leave_one(database: str, stores: list[FactStore]) -> None:
    stores[0].declare_predicate("works at", cardinality="one")
    outcomes: list[Any] = []
    for n in range(200):
        outcomes += at_once(
            *(lambda s=s, n=n: s.remember(s.actor, subject=f"s {n}", predicate="works at") for s in stores)
        )
    assert set(kinds(outcomes)) <= {"Recorded", "Conflict"}, "no error of the driver may come through"
    assert query(
        database, "select count(*) from supersede.fact_version where is_open and upper_inf(valid_time)"
    ) == [(200,)]
    assert query(database, OVERLAPS) == []
    believed = stores[0].facts(predicate="works at")
    assert sorted(Counter(fact.subject for fact in believed.facts).values()) == [1] * 200
    # The first of each pair gave its validity to the second, with an edge.
    assert believed.withheld.superseded == query(database, "select count(*) from supersede.supersedes")[0][0]


def test_one_value_of_one_slot_at_the_same_moment_is_one_fact(database: str, stores: list[FactStore]) -> None:
    stores[0].declare_predicate("works at", cardinality="one")
    for n in range(20):
        outcomes = at_once(
            *(
                lambda s=s, n=n: s.remember(
                    "Acme", subject=f"s {n}", predicate="works at", valid_from="2020-01-01", sources=[s.actor]
                )
                for s in stores
            )
        )
        assert sorted(outcome.created for outcome in outcomes) == [False, True]
        assert outcomes[0].id == outcomes[1].id
        assert sorted(stores[0].get(outcomes[0].id).sources) == ["one", "two"]
    assert query(database, "select count(*) from supersede.supersedes") == [(0,)]


def test_one_call_sent_twice_at_the_same_moment_is_recorded_once(
    database: str, stores: list[FactStore]
) -> None:
    for n in range(20):
        outcomes = at_once(*(lambda s=s, n=n: s.remember("claim", ref=f"ref {n}") for s in stores))
        assert sorted(outcome.repeated for outcome in outcomes) == [False, True]
        assert outcomes[0].id == outcomes[1].id
    assert query(database, "select count(*) from supersede.fact") == [(20,)]


def test_the_first_writes_of_a_namespace_at_the_same_moment_are_both_kept(database: str) -> None:
    for n in range(10):
        with contextlib.ExitStack() as stack:
            both = [
                stack.enter_context(FactStore.open(database, namespace=f"namespace {n}", actor=name))
                for name in ("one", "two")
            ]
            assert kinds(at_once(*(lambda s=s: s.remember(s.actor) for s in both))) == ["Recorded"] * 2
            assert claims(both[0]) == ["one", "two"]


def test_batches_in_opposite_order_do_not_deadlock(database: str, stores: list[FactStore]) -> None:
    stores[0].declare_predicate("works at", cardinality="one")
    items = [{"claim": "c", "subject": f"s {n}", "predicate": "works at"} for n in range(50)]
    first = [{**item, "claim": "first"} for item in items]
    second = [{**item, "claim": "second"} for item in reversed(items)]
    outcomes = at_once(
        lambda: stores[0].remember_many(first),
        lambda: stores[1].remember_many(second),
    )
    assert kinds(outcomes) == ["list", "list"]
    assert len(set(claims(stores[0]))) == 1, "one batch came after the other, as a whole"
    assert query(database, OVERLAPS) == []


def test_a_deadlock_is_a_conflict(database: str, stores: list[FactStore]) -> None:
    for namespace in ("a", "b"):
        with FactStore.open(database, namespace=namespace) as made:
            made.remember("first")
    gate = threading.Barrier(2, timeout=PATIENCE)

    def write(store: FactStore, first: str, second: str) -> None:
        with db.writing(store._engine) as connection:
            executor.write(connection, "remember", {"claim": "second"}, namespace=first, actor=None)
            gate.wait()
            executor.write(connection, "remember", {"claim": "second"}, namespace=second, actor=None)

    outcomes = at_once(lambda: write(stores[0], "a", "b"), lambda: write(stores[1], "b", "a"))
    (lost,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(lost, Conflict)
    assert lost.details == {"sqlstate": "40P01"}
    assert isinstance(lost.__cause__, psycopg.errors.DeadlockDetected)
    assert query(database, "select namespace, count(*) from supersede.fact group by 1 order by 1") == [
        ("a", 2),
        ("b", 2),
    ]


@pytest.mark.parametrize("state", ["23P01", "40001", "40P01", "55P03"])
def test_whatever_says_that_another_was_faster_is_a_conflict(store: FactStore, state: str) -> None:
    with pytest.raises(Conflict) as conflict, db.writing(store._engine) as connection:
        connection.exec_driver_sql(f"do $$ begin raise 'secret' using errcode = '{state}'; end $$")
    assert conflict.value.details == {"sqlstate": state}
    assert "secret" not in str(conflict.value)


def test_a_writer_that_waits_too_long_says_conflict(
    database: str, store: FactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("claim", ref="a")
    session = dict(db._SESSION, lock_timeout="50ms")
    set_local = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in session.items())
    monkeypatch.setattr(db, "_SET_LOCAL", sa.text(f"select {set_local}"))
    with psycopg.connect(database) as holder:
        holder.execute("select * from supersede.namespace for no key update")
        with pytest.raises(Conflict):
            store.retract("a")
    assert store.retract("a").verb == "retract"


# --- a write that dies on the way


TABLES = ["fact", "fact_ref", "fact_version", "supersedes", "evidence", "embedding", "operation", "namespace"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("table", TABLES)
def test_a_backend_that_dies_within_a_write_leaves_nothing_of_it(
    vector_database: str, vector_store: FactStore, table: str, when: str
) -> None:
    store = vector_store
    store.remember("Boston", ref="old", sources=["u1"], valid_from="2019-01-01")
    before = dump(vector_database)
    execute(
        vector_database,
        sql.SQL(
            "create function public.die() returns trigger language plpgsql as "
            "'begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); return new; end'; "
            "create trigger die {} insert or update on supersede.{} "
            "for each row execute function public.die()"
        ).format(sql.SQL(when), sql.Identifier(table)),
    )

    def replace() -> Any:
        return store.supersede("old", "Denver", ref="new", sources=["u2"], valid_from="2022-01-01")

    with pytest.raises(ServerUnavailable):
        replace()
    assert dump(vector_database) == before, "neither the cut nor the edge nor the new fact"
    execute(vector_database, sql.SQL("drop trigger die on supersede.{}").format(sql.Identifier(table)))
    assert not replace().repeated
    assert [fact.ref for fact in store.facts().facts] == ["new"]
    assert [fact.ref for fact in store.facts(valid_at="2020-01-01").facts] == ["old"]
    assert [edge.ref for edge in store.get("new").supersedes] == ["old"]


def test_a_client_that_dies_before_its_commit_leaves_nothing(database: str, store: FactStore) -> None:
    store.remember("Boston", ref="old")
    before = dump(database)
    with contextlib.closing(psycopg.connect(database)) as dying:
        dying.execute("""select supersede.supersede('{"old": ["old"], "claim": "Denver"}')""")
        pid = dying.info.backend_pid
        assert query(database, "select pg_terminate_backend(%s, 5000)", pid) == [(True,)]
        with pytest.raises(psycopg.OperationalError):
            dying.commit()
    assert dump(database) == before
    store.supersede("old", "Denver")


# --- who takes over what


def test_a_correction_does_not_inherit_the_sources_of_what_was_wrong(store: FactStore) -> None:
    store.remember("Boston", ref="a", sources=["u1", "u2"])
    store.supersede("a", "Worcester", ref="b", reason="correction", sources=["u3"])
    assert store.get("b").sources == ("u3",)
    store.supersede("b", "Denver", ref="c", sources=["u4"])
    assert store.get("c").sources == ("u4",)


@pytest.mark.parametrize("reason", ["refinement", "duplicate"])
def test_what_says_the_same_stands_on_all_the_sources(database: str, store: FactStore, reason: Any) -> None:
    store.remember("Boston", ref="a", sources=["u2", "u1"])
    store.remember("Boston, Mass.", ref="b", sources=["u3", "u2"])
    store.supersede(["a", "b"], "Boston, Massachusetts", ref="c", reason=reason, sources=["u4", "u1"])
    assert sorted(store.get("c").sources) == ["u1", "u2", "u3", "u4"]
    assert query(
        database,
        "select count(*), count(distinct source_uri), bool_or(source_uri is null) from supersede.evidence e "
        "join supersede.fact_ref r using (namespace, fact_id) where ref = 'c'",
    ) == [(4, 4, False)]
    assert store.get("c").source in ("u1", "u4"), "its own evidence, not what it inherited"


def test_sources_added_at_the_same_moment_are_all_kept(stores: list[FactStore]) -> None:
    stores[0].remember("Boston", ref="a", sources=["u0"])
    for n in range(10):
        outcomes = at_once(*(lambda s=s, n=n: s.cite("a", sources=[f"{s.actor} {n}"]) for s in stores))
        assert kinds(outcomes) == ["Recorded", "Recorded"]
    assert len(stores[0].get("a").sources) == 21


# --- edges


def test_a_ring_of_supersessions_is_refused(database: str, store: FactStore) -> None:
    store.remember("a", ref="a")
    store.supersede("a", "b", ref="b")
    store.supersede("b", "c", ref="c")
    before = dump(database)
    for old, by in (("c", "c"), ("c", "a"), ("b", "a")):
        with pytest.raises(SupersessionCycle):
            store.supersede(old, by=by, if_not_current="link")
    assert dump(database) == before
    assert [fact.ref for fact in store.lineage("c").ancestors] == ["b", "a"]


def test_a_ring_is_refused_also_where_every_fact_in_it_is_believed(database: str, store: FactStore) -> None:
    year = {"valid_from": "2020-01-01"}
    store.remember("a", ref="a", **year)
    store.remember("b", ref="b", **year)
    store.remember("c", ref="c", **year)
    store.supersede("a", by="b", valid_from="2021-01-01", valid_to="2022-01-01")
    store.supersede("b", by="c", valid_from="2022-01-01", valid_to="2023-01-01")
    before = dump(database)
    with pytest.raises(SupersessionCycle, match="c already supersedes a"):
        store.supersede("c", by="a", valid_from="2023-01-01", valid_to="2024-01-01")
    with pytest.raises(SupersessionCycle):
        store.supersede("b", by="a", valid_from="2023-01-01", valid_to="2024-01-01", reason="correction")
    assert dump(database) == before
    assert [fact.ref for fact in store.lineage("c").ancestors] == ["b", "a"]
    assert [fact.ref for fact in store.lineage("a").descendants] == ["b", "c"]


def test_a_ring_closed_from_both_sides_at_the_same_moment_stays_open(
    database: str, stores: list[FactStore]
) -> None:
    for n in range(10):
        for name in ("a", "b"):
            stores[0].remember(name, ref=f"{name} {n}", valid_from="2020-01-01")
        outcomes = at_once(
            lambda n=n: stores[0].supersede(
                f"a {n}", by=f"b {n}", valid_from="2021-01-01", valid_to="2022-01-01"
            ),
            lambda n=n: stores[1].supersede(
                f"b {n}", by=f"a {n}", valid_from="2022-01-01", valid_to="2023-01-01"
            ),
        )
        assert kinds(outcomes) == ["Recorded", "SupersessionCycle"]
    assert query(database, "select count(*) from supersede.supersedes") == [(10,)]


@pytest.mark.parametrize("name", ["ref", "id", "other ref"])
def test_a_fact_cannot_supersede_or_amend_itself(database: str, store: FactStore, name: str) -> None:
    store.declare_predicate("hq", cardinality="one")
    content: dict[str, Any] = {"subject": "s", "predicate": "hq", "valid_from": "2020-01-01"}
    fact = store.remember("Boston", ref="a", **content)
    store.remember("boston", ref="b", **content)
    by = {"ref": "a", "id": fact.id, "other ref": "b"}[name]
    assert by is not None
    before = dump(database)
    for call in (store.supersede, store.amend):
        with pytest.raises(SupersessionCycle):
            call("a", by=by)
        with pytest.raises(SupersessionCycle):
            call(["b", "a"], by=by)
    with pytest.raises(SupersessionCycle):
        store.amend("a", "BOSTON", **content)
    assert dump(database) == before


def test_a_second_successor_must_be_asked_for(database: str, store: FactStore) -> None:
    store.remember("RFC 7230", ref="7230")
    store.supersede("7230", "RFC 9110", ref="9110")
    before = dump(database)
    with pytest.raises(FactNotCurrent):
        store.supersede("7230", "RFC 9112", ref="9112")
    assert dump(database) == before
    store.supersede("7230", "RFC 9112", ref="9112", if_not_current="link")
    assert [fact.ref for fact in store.lineage("7230").successors] == ["9110", "9112"]
    assert claims(store) == ["RFC 9110", "RFC 9112"]


def test_one_decision_may_replace_several_and_names_them_all(store: FactStore) -> None:
    store.remember("full text", ref="3")
    store.remember("no reranker", ref="9")
    merged = store.supersede(["3", "9"], "hybrid", ref="14")
    assert [cut.ref for cut in merged.supersedes] == ["3", "9"]
    (fact,) = store.facts().facts
    assert sorted(str(edge.ref) for edge in fact.supersedes) == ["3", "9"]


def test_one_old_named_twice_is_one_old(store: FactStore) -> None:
    fact = store.remember("full text", ref="3")
    merged = store.supersede(["3", fact.id or "", fact], "hybrid")
    assert [cut.ref for cut in merged.supersedes] == ["3"]


def test_nothing_to_supersede_is_no_supersession(database: str, store: FactStore) -> None:
    store.remember("full text", ref="3")
    before = dump(database)
    for call in (store.supersede, store.amend):
        with pytest.raises(InvalidPeriod):
            call([], "hybrid")
    assert dump(database) == before


# --- the same thing again


def test_the_same_event_again_is_no_contradiction(database: str, store: FactStore) -> None:
    store.remember("Boston", ref="a", sources=["u"])
    before = dump(database)
    again = store.remember("Boston", ref="a", sources=["u"])
    assert (again.repeated, again.believed, again.supersedes) == (True, True, ())
    assert dump(database) == before
    with pytest.raises(RefConflict):
        store.remember("Denver", ref="a")
    assert dump(database) == before
    assert claims(store) == ["Boston"]


def test_the_same_value_in_a_slot_again_is_no_contradiction(database: str, store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    slot: dict[str, Any] = {"subject": "Acme", "predicate": "hq", "valid_from": "2020-01-01"}
    first = store.remember("Acme sits in Boston", object="Boston", **slot)
    for claim, value in [("Acme sits in Boston", "Boston"), ("It is BOSTON", " boston "), ("x", "Ｂoston")]:
        again = store.remember(claim, object=value, **slot)
        assert (again.id, again.created, again.supersedes) == (first.id, False, ())
    assert query(database, "select count(*) from supersede.fact") == [(1,)]
    assert query(database, "select count(*) from supersede.supersedes") == [(0,)]
    assert claims(store) == ["Acme sits in Boston"]
    assert query(database, "select count(*) from supersede.operation") == [(5,)]


def test_a_history_replayed_twice_is_recorded_once(database: str, store: FactStore) -> None:
    history = [
        {"op": "remember", "claim": "Boston", "recorded_at": "2020-01-01"},
        {"op": "remember", "claim": "Boston", "ref": "a", "recorded_at": "2020-01-01"},
        {"op": "supersede", "old": ["a"], "claim": "Denver", "recorded_at": "2021-01-01"},
        {"op": "cite", "ref": "a", "sources": ["u"], "recorded_at": "2022-01-01"},
        {"op": "retract", "ref": "a", "recorded_at": "2022-02-01"},
    ]
    store.replay(history)
    before = dump(database)
    assert all(result.repeated for result in store.replay(history))
    assert dump(database) == before
