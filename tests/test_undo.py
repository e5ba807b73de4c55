"""Undo: what operations gave is withdrawn, what they took is back, and what others did since stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from databases import dump, execute, query, set_clock
from random_histories import Drawn, State
from supersede import (
    AsyncFactStore,
    Conflict,
    FactStore,
    InvalidInput,
    InvalidInstant,
    InvalidPeriod,
    PrivilegeMissing,
    Recorded,
    RefConflict,
    Undoing,
)
from supersede.cli import app
from supersede.settings import normalise_url

START = "2020-01-01T00:00:00Z"
HQ = {"subject": "acme", "predicate": "hq"}


@contextmanager
def opened(url: str, **named: Any) -> Iterator[FactStore]:
    with FactStore.open(url, **named) as store:
        yield store


@pytest.fixture
def model(database: str) -> Iterator[FactStore]:
    """A store through which an over-eager model writes."""
    with opened(database, actor="model", run="run-1") as store:
        yield store


def held(url: str, *refs: str) -> dict[str, str]:
    """What facts hold now, by ref; dates alone, to be read."""
    rows = query(
        url,
        "select r.ref, supersede.iso_periods(supersede.held(r.namespace, r.fact_id))::text "
        "from supersede.fact_ref r where cardinality(%s::text[]) = 0 or r.ref = any (%s)",
        list(refs),
        list(refs),
    )
    return {ref: periods.replace("T00:00:00Z", "") for ref, periods in rows}


def beliefs(url: str) -> State:
    rows = query(
        url,
        "select fact_id::text, range_agg(valid_time)::text from supersede.fact_version "
        "where is_open group by fact_id",
    )
    return dict(rows)  # type: ignore[arg-type]


def stamp_of(done: Recorded) -> str:
    return done.stamp.isoformat()


def left(found: Undoing) -> list[tuple[str | None, str, str | None]]:
    """What was left alone: the fact, why, and for whose sake."""
    return [
        (each.ref, each.reason, each.by and each.by.ref)
        for operation in found.operations
        for each in operation.left_alone
    ]


# --- one operation


def seeded(store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    store.remember("Lima", ref="a", valid_from="2020-01-01", object="lima", **HQ)
    store.remember("the port is 1", ref="p", valid_from="2021-01-01")
    store.remember("the port is 2", ref="q", valid_from="2021-01-01", valid_to="2022-01-01")


EVERY: dict[str, Callable[[FactStore], Recorded]] = {
    "remember": lambda s: s.remember("something new", ref="n"),
    "remember in a slot": lambda s: s.remember(
        "Quito", ref="b", valid_from="2021-01-01", valid_to="2022-01-01", object="quito", **HQ
    ),
    "remember what is held": lambda s: s.remember(
        "Lima", ref="a2", valid_from="2019-01-01", object="lima", **HQ
    ),
    "change": lambda s: s.supersede("p", "the port is 3", valid_from="2023-01-01"),
    "correction of two": lambda s: s.supersede(["p", "q"], "the port is 4", reason="correction"),
    "by an existing fact": lambda s: s.supersede("p", by="q", valid_from="2021-06-01", valid_to="2024-01-01"),
    "a link alone": lambda s: s.supersede("q", "the port is 5", if_not_current="link"),
    "amend": lambda s: s.amend("p", "and it is open"),
    "end": lambda s: s.end("p", at="2022-01-01", until="2023-01-01"),
    "retract": lambda s: s.retract("q"),
    "retract with give_back": lambda s: (
        s.supersede("p", "the port is 6", ref="r"),
        s.retract("r", give_back=True),
    )[1],
    "reinstate": lambda s: (s.retract("p"), s.reinstate("p"))[1],
    "fill a period": lambda s: s.reinstate("q", valid_from="2030-01-01", valid_to="2031-01-01"),
}


@pytest.mark.parametrize("verb", EVERY)
def test_every_verb_undone_alone_leaves_what_was_there_before(
    store: FactStore, database: str, verb: str
) -> None:
    seeded(store)
    states: list[State] = []
    write = store._write

    def watched(*arguments: Any) -> Recorded:
        states.append(beliefs(database))
        return write(*arguments)

    store._write = watched  # type: ignore[method-assign]
    done = EVERY[verb](store)
    after = beliefs(database)
    found = store.undo(stamp=done.stamp, dry_run=False)
    assert beliefs(database) == states[-1]
    assert [operation.skipped for operation in found.operations] == [None]
    assert left(found) == []
    store.undo(stamp=found.operations[0].undone_at, dry_run=False)
    assert beliefs(database) == after


def test_undo_says_what_it_withdrew_and_what_it_gave_back(store: FactStore) -> None:
    seeded(store)
    b = store.remember("Quito", ref="b", valid_from="2021-01-01", object="quito", **HQ)
    found = store.undo(stamp=b.stamp, dry_run=False, note="a mistake")
    (operation,) = found.operations
    assert (operation.stamp, operation.verb) == (b.stamp, "remember")
    since_2021 = ((datetime(2021, 1, 1, tzinfo=UTC), None),)
    assert [(g.ref, g.valid) for g in operation.withdrawn] == [("b", since_2021)]
    assert [(g.ref, g.valid) for g in operation.given_back] == [("a", since_2021)]
    assert (found.dry_run, found.namespace, found.notice) == (False, "default", None)


def test_sources_names_edges_and_declarations_stay(store: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", sources=["s/0"])
    declared = store.declare_predicate("hq", cardinality="one")
    cited = store.cite("a", sources=["s/1"])
    store.supersede("a", "Quito", ref="b")
    before = beliefs(database)
    for done in (declared, cited):
        (operation,) = store.undo(stamp=done.stamp, dry_run=False).operations
        assert operation.skipped == "history"
        assert operation.undone_at is None
    assert beliefs(database) == before
    store.undo(stamp=stamp_of(store.remember("x", ref="x", sources=["s/2"])), dry_run=False)
    assert store.get("x").sources == ("s/2",)
    assert set(store.get("a").sources) == {"s/0", "s/1"}


def test_an_undo_equals_a_retraction_that_gives_back(database: str) -> None:
    """Where the fact got nothing from other operations."""
    set_clock(database, "2026-07-24T00:00:00Z")
    found = []
    for name in ("undone", "retracted"):
        with opened(database, namespace=name) as store:
            seeded(store)
            b = store.remember("Rome", ref="b", valid_from="2021-01-01", object="rome", **HQ)
            store.remember("Bern", ref="c", valid_from="2022-06-01", object="bern", **HQ)
            store.end("a", at="2020-06-01", until="2021-03-01")
            if name == "undone":
                store.undo(stamp=b.stamp, dry_run=False)
            else:
                store.retract("b", give_back=True)
            found.append([[version.valid for version in store.history(ref).versions] for ref in "abc"])
    assert found[0] == found[1]


# --- a run of an over-eager model


def test_a_whole_run_is_undone_and_what_others_wrote_stands(
    store: FactStore, model: FactStore, database: str
) -> None:
    names = [f"f{number}" for number in range(8)]
    for name in names:
        store.remember(f"{name} is well", ref=name, valid_from="2020-01-01")
    before = held(database)
    model.remember("all is bad", ref="bad", valid_from="2021-01-01")
    for name in names:
        model.supersede(name, by="bad", valid_from="2021-01-01")
        store.remember(f"{name} was looked at", ref=f"{name}-seen", valid_from="2020-01-01")
    assert held(database, "f0") == {"f0": '[["2020-01-01", "2021-01-01"]]'}
    found = store.undo(run="run-1", dry_run=False)
    assert [operation.actor for operation in found.operations] == ["model"] * 9
    assert {given.ref for operation in found.operations for given in operation.given_back} == set(names)
    assert held(database, *names) == before
    assert held(database, "bad") == {"bad": "[]"}
    assert {periods for ref, periods in held(database).items() if ref.endswith("seen")} == {
        '[["2020-01-01", null]]'
    }


def test_forty_facts_interleaved_with_another_actor(
    store: FactStore, model: FactStore, database: str
) -> None:
    random = Random(1)
    expected = {}
    stamps = []
    for number in range(40):
        store.remember(f"{number} is even", ref=f"o{number}", valid_from="2020-01-01")
        stamps.append(model.remember(f"{number} is odd", ref=f"m{number}", valid_from="2020-01-01").stamp)
        if number % 2:
            model.supersede(f"o{number}", by=f"m{number}", reason="correction")
        expected[f"o{number}"] = '[["2020-01-01", null]]'
        expected[f"m{number}"] = "[]"
    # What others built on it since: these are left alone, and listed.
    for number in random.sample(range(0, 40, 2), 5):
        store.supersede(f"m{number}", f"{number} is prime", ref=f"p{number}", valid_from="2022-01-01")
        expected[f"p{number}"] = '[["2022-01-01", null]]'
    found = store.undo(actor="model", since=stamps[0], dry_run=False)
    assert held(database) == expected
    built_on = {(ref, by) for ref, reason, by in left(found) if reason == "taken_since"}
    assert built_on == {(f"m{ref[1:]}", ref) for ref in expected if ref.startswith("p")}
    assert len(found.operations) == 60


def test_what_others_decided_since_is_left_alone(store: FactStore, model: FactStore, database: str) -> None:
    for name in ("ended", "retracted", "superseded", "believed"):
        store.remember(f"{name} it will be", ref=name, valid_from="2020-01-01")
        model.supersede(name, f"not {name}", ref=f"not-{name}", valid_from="2021-01-01")
    store.end("ended", at="2020-06-01")
    store.retract("retracted")
    store.supersede("superseded", "another", ref="another", valid_from="2020-06-01", valid_to="2025-01-01")
    store.reinstate("believed", valid_from="2021-01-01", valid_to="2022-01-01")
    found = store.undo(run="run-1", dry_run=False)
    assert held(database, "ended", "retracted", "superseded", "believed") == {
        "ended": '[["2020-01-01", "2020-06-01"]]',
        "retracted": "[]",
        "superseded": '[["2020-01-01", "2020-06-01"], ["2025-01-01", null]]',
        "believed": '[["2020-01-01", null]]',
    }
    assert set(left(found)) == {
        ("ended", "ended_since", None),
        ("retracted", "retracted_since", None),
        ("superseded", "superseded_since", None),
        ("believed", "believed_since", None),
    }


def test_a_slot_that_another_value_holds_now_is_left_alone(
    store: FactStore, model: FactStore, database: str
) -> None:
    seeded(store)
    model.remember("Quito", ref="b", valid_from="2021-01-01", object="quito", **HQ)
    store.remember("Rome", ref="c", valid_from="2023-01-01", valid_to="2024-01-01", object="rome", **HQ)
    found = store.undo(run="run-1", dry_run=False)
    assert held(database, "a", "b", "c") == {
        "a": '[["2020-01-01", "2023-01-01"], ["2024-01-01", null]]',
        "b": "[]",
        "c": '[["2023-01-01", "2024-01-01"]]',
    }
    assert set(left(found)) == {("b", "taken_since", "c"), ("a", "superseded_since", None)}


def test_a_retraction_of_what_took_it_does_not_keep_the_old_fact_from_coming_back(
    store: FactStore, model: FactStore, database: str
) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    store.retract("b")
    store.undo(run="run-1", dry_run=False)
    assert held(database) == {"a": '[["2020-01-01", null]]', "b": "[]"}


def test_validity_that_a_fact_got_from_others_since_is_left(
    store: FactStore, model: FactStore, database: str
) -> None:
    model.remember("Lima", ref="a", valid_from="2020-01-01")
    store.retract("a")
    store.reinstate("a", valid_from="2022-01-01", valid_to="2023-01-01")
    found = store.undo(run="run-1", dry_run=False)
    assert held(database) == {"a": '[["2022-01-01", "2023-01-01"]]'}
    assert set(left(found)) == {("a", "believed_since", None), ("a", "taken_since", None)}


def test_what_others_added_to_a_fact_is_listed_when_it_is_withdrawn(
    store: FactStore, model: FactStore
) -> None:
    model.remember("Lima", ref="a", valid_from="2020-01-01")
    store.cite("a", sources=["press/1"])
    store.amend("a", "by the sea", ref="b")
    found = store.undo(run="run-1")
    assert left(found) == [("a", "confirmed_since", None), ("b", "amends_it", "a")]


def test_nothing_comes_back_that_was_held_by_an_operation_undone_before(
    store: FactStore, model: FactStore, database: str
) -> None:
    a = model.remember("Lima", ref="a", valid_from="2020-01-01")
    b = store.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    store.undo(stamp=a.stamp, dry_run=False)
    found = store.undo(stamp=b.stamp)
    assert left(found) == [("a", "undone_since", None)]
    assert store.retract("b", give_back=True).given_back == ()
    assert held(database) == {"a": "[]", "b": "[]"}


def test_what_was_undone_stops_no_retraction_from_giving_back(store: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    store.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    ended = store.end("a", at="2020-06-01")
    store.undo(stamp=ended.stamp, dry_run=False)
    store.retract("b", give_back=True)
    assert held(database, "a") == {"a": '[["2020-01-01", null]]'}


def test_an_erased_fact_is_given_nothing(store: FactStore, model: FactStore, database: str) -> None:
    a = store.remember("Lima", ref="a", valid_from="2020-01-01")
    store.remember("the port is open", ref="p", valid_from="2020-01-01")
    model.supersede(["a", "p"], "Quito", ref="b", valid_from="2021-01-01")
    erased = store.erase("a", note="asked for")
    found = store.undo(run="run-1", dry_run=False)
    (operation,) = found.operations
    assert [(each.id, each.reason) for each in operation.left_alone] == [(a.id, "erased")]
    assert [given.ref for given in operation.given_back] == ["p"]
    assert held(database) == {"b": "[]", "p": '[["2020-01-01", null]]'}
    (operation,) = store.undo(stamp=erased.stamp, dry_run=False).operations
    assert operation.skipped == "history"


# --- the dry run, and plans


def test_a_dry_run_says_what_the_real_one_does_and_leaves_no_trace(
    store: FactStore, model: FactStore, database: str
) -> None:
    seeded(store)
    model.remember("Quito", valid_from="2021-01-01", object="quito", **HQ)
    model.supersede("p", "the port is 9", ref="p9")
    store.end("p9")
    model.retract("q")
    before = dump(database)
    plan = store.undo(run="run-1")
    assert dump(database) == before
    assert plan.dry_run
    done = store.undo(run="run-1", dry_run=False, based_on=plan)

    def told(found: Undoing) -> list[dict[str, Any]]:
        return [operation.model_dump(exclude={"undone_at"}) for operation in found.operations]

    assert told(done) == told(plan)
    assert (done.plan, done.selection) == (plan.plan, plan.selection)
    assert {operation.undone_at for operation in plan.operations} == {None}
    assert None not in {operation.undone_at for operation in done.operations}


def test_a_plan_is_refused_where_it_would_no_longer_do_the_same(
    store: FactStore, model: FactStore, database: str
) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    plan = store.undo(run="run-1")
    nothing = store.undo(run="run-2")
    store.remember("something else", ref="x")
    assert store.undo(run="run-1", based_on=plan).plan == plan.plan
    store.end("b", at="2022-01-01")
    before = dump(database)
    with pytest.raises(Conflict, match="no longer do what the plan says"):
        store.undo(run="run-1", dry_run=False, based_on=plan)
    with store.transaction(run="run-2") as together:
        together.remember("yet another", ref="y")
    with pytest.raises(Conflict):
        store.undo(run="run-2", dry_run=False, based_on=nothing)
    assert {row["verb"] for row in dump(database)["operation"]} == {"remember", "supersede", "end"}
    assert len(dump(database)["operation"]) == len(before["operation"]) + 1


def test_a_dry_run_creates_no_namespace(database: str) -> None:
    with opened(database, namespace="nowhere") as store:
        before = dump(database)
        for dry_run in (True, False):
            found = store.undo(actor="anyone", since=START, dry_run=dry_run)
            assert found.operations == ()
            assert found.head is None
            assert found.notice == "nothing was ever recorded in namespace 'nowhere'"
        assert dump(database) == before


# --- again


def test_undone_twice_is_undone_once(store: FactStore, model: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    store.undo(run="run-1", dry_run=False)
    before = dump(database)
    again = store.undo(run="run-1", dry_run=False)
    assert [operation.skipped for operation in again.operations] == ["already_undone"]
    assert again.notice is not None
    assert dump(database) == before


def test_an_actor_may_undo_its_own_twice(model: FactStore, database: str) -> None:
    a = model.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    model.undo(actor="model", since=a.stamp, dry_run=False)
    before = dump(database)
    again = model.undo(actor="model", since=a.stamp, dry_run=False)
    assert [operation.skipped for operation in again.operations] == [
        "undo_of_selected",
        "undo_of_selected",
        "already_undone",
        "already_undone",
    ]
    assert dump(database) == before
    assert held(database) == {"a": "[]", "b": "[]"}


def test_an_undo_that_is_undone_restores(store: FactStore, model: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    after = beliefs(database)
    with opened(database, run="undoing") as other:
        other.undo(run="run-1", dry_run=False)
    undone = beliefs(database)
    with opened(database, run="redoing") as other:
        other.undo(run="undoing", dry_run=False)
    assert beliefs(database) == after
    store.undo(run="run-1", dry_run=False)
    assert beliefs(database) == undone
    assert [o.skipped for o in store.undo(run="run-1").operations] == ["already_undone"]


def test_a_handle_makes_an_undo_happen_once(store: FactStore, model: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    first = store.undo(run="run-1", dry_run=False, handle="h")
    before = dump(database)
    again = store.undo(run="run-1", dry_run=False, handle="h")
    assert again.repeated
    assert again.operations == first.operations
    assert again.plan == first.plan
    # Redone meanwhile or not: a retry finds what it did.
    store.undo(stamp=first.operations[0].undone_at, dry_run=False)
    assert store.undo(run="run-1", dry_run=False, handle="h").operations == first.operations
    with pytest.raises(RefConflict, match="already stands for another undo"):
        store.undo(run="run-2", dry_run=False, handle="h")
    assert len(dump(database)["operation"]) == len(before["operation"]) + 1
    assert not store.undo(run="run-1", dry_run=False, handle="h 2").repeated


# --- what answers say


def test_earlier_answers_stay_and_what_was_cut_counts_as_retracted(
    store: FactStore, model: FactStore
) -> None:
    store.remember("Lima is the seat", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito is the seat", ref="b", valid_from="2021-01-01")
    asked = store.ask("seat", explain=True)
    listed = store.facts()
    assert [fact.ref for fact in asked.facts] == ["b"]
    store.undo(run="run-1", dry_run=False)
    assert store.verify(asked).outcome == "equal"
    assert store.verify(listed).outcome == "equal"
    assert store.ask(basis=asked.basis) == asked
    now = store.ask("seat", explain=True)
    assert [fact.ref for fact in now.facts] == ["a"]
    assert [(fact.ref, fact.reason) for fact in now.withheld_facts] == [("b", "retracted")]
    assert [version.closed_by for version in store.history("b").versions] == ["undo"]


# --- what is selected


def test_a_source_selects_what_stands_on_it_alone(store: FactStore, database: str) -> None:
    store.remember("one", ref="one", sources=["bad/1"], valid_from="2020-01-01")
    store.remember("two", ref="two", sources=["bad/1", "good/1"], valid_from="2020-01-01")
    store.remember("three", ref="three", sources=["bad/1"], valid_from="2020-01-01")
    store.cite("three", sources=["good/2"])
    store.remember("four", ref="four", valid_from="2020-01-01")
    found = store.undo(source="bad/1", since=START, dry_run=False)
    assert [g.ref for operation in found.operations for g in operation.withdrawn] == ["one"]
    assert held(database, "one", "two") == {"one": "[]", "two": '[["2020-01-01", null]]'}


def test_since_counts_in_and_until_does_not(store: FactStore, database: str) -> None:
    with opened(database, actor="ann") as ann:
        stamps = [ann.remember(f"number {number}").stamp for number in range(4)]
    found = store.undo(actor="ann", since=stamps[1], until=stamps[3])
    assert [operation.stamp for operation in found.operations] == [stamps[2], stamps[1]]
    both = store.undo(actor="ann", run="none", since=stamps[0])
    assert both.operations == ()
    assert both.notice == "no operation in namespace 'default' is of run 'none'"


def test_only_this_namespace_is_undone(store: FactStore, database: str) -> None:
    with opened(database, namespace="other", run="run-1") as other:
        other.remember("elsewhere", ref="e")
    store.remember("here", ref="h")
    assert store.undo(run="run-1").operations == ()


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, InvalidInput, "whose operations"),
    ({"since": START}, InvalidInput, "whose operations"),
    ({"actor": "model"}, InvalidInput, "needs since"),
    ({"source": "s/1"}, InvalidInput, "needs since"),
    ({"actor": "model", "since": "2999-01-01"}, InvalidInstant, "future"),
    ({"actor": "model", "since": "yesterday"}, InvalidInstant, "since"),
    ({"actor": "model", "since": START, "until": START}, InvalidPeriod, "after"),
    ({"actor": " ", "since": START}, InvalidInput, "empty"),
    ({"run": 3}, InvalidInput, "text"),
    ({"run": "r", "dry_run": "no"}, InvalidInput, "dry_run"),
    ({"run": "r", "based_on": "a plan"}, InvalidInput, "plan"),
    ({"run": "r", "handle": "h" * 2000}, InvalidInput, "longer"),
]


@pytest.mark.parametrize(("said", "kind", "message"), BAD)
def test_bad_input_is_refused_by_name(
    store: FactStore, database: str, said: dict[str, Any], kind: type[Exception], message: str
) -> None:
    store.remember("Lima")
    before = dump(database)
    with pytest.raises(kind, match=message):
        store.undo(**{"dry_run": False, **said})
    assert dump(database) == before


BAD_IN_SQL = [
    ({"run": "r", "dry_run": "yes"}, "SU013"),
    ({"run": 1}, "SU013"),
    ({"run": ""}, "SU013"),
    ({"who": "model"}, "SU013"),
    ({"run": "r", "since": START, "until": START}, "SU001"),
    ({"run": "r", "recorded_at": START}, "SU013"),
    ({"op": "retract", "run": "r"}, "SU013"),
]


@pytest.mark.parametrize(("event", "state"), BAD_IN_SQL)
def test_bad_events_are_refused_in_sql(store: FactStore, database: str, event: Any, state: str) -> None:
    store.remember("Lima")
    with pytest.raises(psycopg.Error) as caught:
        query(database, "select supersede.undo(%s::jsonb)", json.dumps(event))
    assert caught.value.sqlstate == state


def test_in_sql_too_it_is_a_dry_run_unless_said_otherwise(
    store: FactStore, model: FactStore, database: str
) -> None:
    model.remember("Lima", ref="a")
    before = dump(database)
    ((found,),) = query(database, 'select supersede.undo(\'{"run": "run-1"}\')')
    assert found["dry_run"]
    assert dump(database) == before
    query(database, 'select supersede.undo(\'{"run": "run-1", "dry_run": false}\')')
    assert held(database) == {"a": "[]"}


# --- the run of an operation


def runs(url: str) -> list[str | None]:
    return [row[0] for row in query(url, "select run from supersede.operation order by stamp")]


def test_every_verb_belongs_to_the_run_that_the_store_was_opened_with(
    model: FactStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.remember("Lima", ref="a")
    model.declare_predicate("hq", cardinality="one")
    model.remember("Quito", run="run-2")
    model.remember_many(["one", {"claim": "two", "run": "run-3"}])
    with model.transaction(run="run-4") as together:
        together.end("a")
    monkeypatch.setenv("SUPERSEDE_RUN", "run-5")
    with opened(database) as store:
        store.cite("a", sources=["s"])
    assert runs(database) == ["run-1", "run-1", "run-2", "run-1", "run-3", "run-4", "run-5"]


def test_a_retry_in_another_run_finds_its_first_recording(model: FactStore, database: str) -> None:
    first = model.remember("Lima", ref="a", valid_from="2020-01-01")
    again = model.remember("Lima", ref="a", valid_from="2020-01-01", run="run-2")
    assert (again.repeated, again.stamp) == (True, first.stamp)
    history = [{"op": "end", "ref": "a", "when": "2025-01-01", "recorded_at": stamp_of(first)}]
    assert [done.repeated for done in model.replay(history)] == [False]
    with opened(database, run="run-2") as other:
        assert [done.repeated for done in other.replay(history)] == [True]
    assert runs(database) == ["run-1", "run-1"]


def test_an_undo_is_replayed_with_its_history(store: FactStore, model: FactStore, database: str) -> None:
    """The ledger holds all there is to tell it again elsewhere."""
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    store.undo(run="run-1", dry_run=False)
    told = query(database, "select event, supersede.iso(stamp) from supersede.operation order by stamp")
    with opened(database, namespace="copy") as copy:
        copy.replay([{**event, "recorded_at": stamp} for event, stamp in told])
        assert copy.undo(run="run-1").operations[0].skipped == "already_undone"
        for ref in ("a", "b"):
            assert [(version.valid, version.known) for version in copy.history(ref).versions] == [
                (version.valid, version.known) for version in store.history(ref).versions
            ]


# --- other roads


def test_in_a_transaction(store: FactStore, model: FactStore, database: str) -> None:
    store.remember("Lima", ref="a", valid_from="2020-01-01")
    model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
    before = dump(database)

    def half() -> None:
        with store.transaction() as together:
            together.undo(run="run-1", dry_run=False)
            together.undo()

    with pytest.raises(InvalidInput):
        half()
    assert dump(database) == before
    with store.transaction(actor="ann", run="mending") as together:
        plan = together.undo(run="run-1")
        with pytest.raises(InvalidInput):
            together.undo()
        assert together.undo(run="run-1", dry_run=False, based_on=plan).plan == plan.plan
        together.supersede("a", "Rome", ref="c", valid_from="2022-01-01")
    assert held(database)["a"] == '[["2020-01-01", "2022-01-01"]]'
    assert runs(database) == [None, "run-1", "mending", "mending"]


def test_the_async_store_undoes_as_well(model: FactStore, database: str) -> None:
    async def life() -> None:
        async with await AsyncFactStore.open(database, actor="ann", run="mending") as store:
            await store.remember("Lima", ref="a", valid_from="2020-01-01")
            model.supersede("a", "Quito", ref="b", valid_from="2021-01-01")
            plan = await store.undo(run="run-1")
            assert plan.dry_run
            async with store.transaction() as together:
                assert (await together.undo(run="run-1")).plan == plan.plan
                await together.remember("x", ref="x", valid_from="2020-01-01")
            done = await store.undo(run="run-1", dry_run=False, based_on=plan, handle="h")
            assert (await store.undo(run="run-1", dry_run=False, handle="h")).operations == done.operations
            with pytest.raises(InvalidInput):
                await store.undo()

    asyncio.run(life())
    assert held(database) == {
        "a": '[["2020-01-01", null]]',
        "b": "[]",
        "x": '[["2020-01-01", null]]',
    }
    assert runs(database) == ["mending", "run-1", "mending", "mending"]


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("supersede_writer", True),
        ("supersede_importer", True),
        ("supersede_reader", False),
        ("supersede_analyst", False),
    ],
)
def test_writers_and_importers_may_undo(
    server_url: str, model: FactStore, database: str, role: str, allowed: bool
) -> None:
    model.remember("Lima", ref="a")
    login = f"undoer_{normalise_url(database).database}"
    execute(server_url, f"create role {login} login password 'login'; grant {role} to {login}")
    try:
        url = normalise_url(database).set(drivername="postgresql", username=login, password="login")
        with opened(url.render_as_string(hide_password=False)) as store:
            if allowed:
                store.undo(run="run-1", dry_run=False)
            else:
                with pytest.raises(PrivilegeMissing):
                    store.undo(run="run-1")
    finally:
        execute(server_url, f"drop role {login}")
    assert (held(database) == {"a": "[]"}) == allowed


def test_on_the_command_line(database: str) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, arguments, env={"SUPERSEDE_URL": database})
        assert result.exit_code == status, result.output
        return result.output

    run("remember", "Lima is the seat", "--ref", "a", "--valid-from", "2020-01-01")
    run(
        "replace",
        "a",
        "Quito is the seat",
        "--ref",
        "b",
        "--valid-from",
        "2021-01-01",
        "--actor",
        "model",
        "--run",
        "run-1",
    )
    before = dump(database)
    plan = run("undo", "--actor", "model", "--since", "2020-01-01")
    assert "withdrawn: b, from 2021-01-01" in plan
    assert "given back: a, from 2021-01-01" in plan
    assert "1 operation would be undone; nothing written, --apply does it" in plan
    assert dump(database) == before
    told = json.loads(run("undo", "--run", "run-1", "--json"))
    assert Undoing.model_validate(told).operations[0].verb == "supersede"
    done = run("--actor", "me", "--run", "mending", "undo", "--run", "run-1", "--apply", "--handle", "h")
    assert "1 operation undone" in done
    again = run("undo", "--run", "run-1", "--apply", "--handle", "h")
    assert "undone by this call before; nothing written" in again
    assert "undone already" in run("undo", "--run", "run-1")
    assert "no operation in namespace 'default' is by actor 'nobody'" in run(
        "undo", "--actor", "nobody", "--since", "2020-01-01"
    )
    assert "--actor, --run or --source" in run("undo", status=2)
    assert query(database, "select actor, run from supersede.operation where verb = 'undo'") == [
        ("me", "mending")
    ]
    assert held(database) == {"a": '[["2020-01-01", null]]', "b": "[]"}


# --- random histories


@pytest.fixture
def drawn(module_database: str) -> Iterator[Callable[[str, int], Drawn]]:
    """Draws histories in namespaces of their own, in which one predicate is one-valued."""
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")

        def new(name: str, seed: int) -> Drawn:
            history = Drawn(connection, f"{name}-{seed}", seed)
            history.write("declare_predicate", {"name": "hq", "cardinality": "one"}, actor="owner")
            return history

        yield new


def stamp_in(done: dict[str, Any] | None) -> str | None:
    """The stamp that a random call got; None where it wrote nothing."""
    if done is None:
        return None
    if "operations" in done:
        return next((o["undone_at"] for o in done["operations"]), None)
    return None if done["repeated"] else done["stamp"]


@pytest.mark.parametrize("seed", range(8))
def test_undo_of_the_last_operation_leaves_what_was_before_it_whatever_it_was(
    drawn: Callable[[str, int], Drawn], seed: int
) -> None:
    random = Random(seed)
    history = drawn("last", seed)
    tried = 0
    for _ in range(16):
        before = history.state()
        stamp = stamp_in(history.step())
        if stamp is None:
            continue
        after = history.state()
        tried += 1
        undone = history.undo(stamp)
        assert history.state() == before
        if undone["skipped"]:
            assert (undone["skipped"], after) == ("history", before)
            continue
        assert undone["left_alone"] == []
        redone = history.undo(undone["undone_at"])
        assert history.state() == after
        if random.random() < 0.3:
            history.undo(redone["undone_at"])
            assert history.state() == before
    assert tried > 5


@pytest.mark.parametrize("seed", range(12))
def test_undo_of_all_operations_since_an_instant_leaves_what_was_known_before_it(
    drawn: Callable[[str, int], Drawn], seed: int
) -> None:
    random = Random(seed)
    history = drawn("all", seed)
    stamps = [stamp for stamp in (stamp_in(history.step()) for _ in range(20)) if stamp]
    assert len(stamps) > 5
    for number in range(2):
        since = random.choice(stamps)
        before = (datetime.fromisoformat(since) - timedelta(microseconds=1)).isoformat()
        now = history.state()
        selected = {"actor": "someone", "since": since, "dry_run": False}
        history.write("undo", selected, actor=f"undoer-{number}")
        assert history.state() == history.state(before)
        history.write("undo", {**selected, "actor": f"undoer-{number}"}, actor="redoer")
        assert history.state() == now


@pytest.mark.parametrize("seed", range(8))
def test_among_the_writes_of_others_a_plan_is_what_is_done_and_can_be_undone(
    drawn: Callable[[str, int], Drawn], seed: int
) -> None:
    random = Random(seed)
    history = drawn("among", seed)
    for _ in range(24):
        history.step(actor=random.choice(["model", "someone"]))
    before = history.state()
    selected = {"actor": "model", "since": START}
    plan = history.write("undo", selected, actor="undoer")
    assert plan is not None
    assert history.state() == before
    done = history.write("undo", {**selected, "plan": plan["plan"], "dry_run": False}, actor="undoer")
    assert done is not None
    moved = {
        given["id"]
        for operation in done["operations"]
        for given in operation["withdrawn"] + operation["given_back"]
    }
    after = history.state()
    assert {fact for fact in before.keys() | after.keys() if before.get(fact) != after.get(fact)} <= moved
    history.write("undo", {"actor": "undoer", "since": START, "dry_run": False}, actor="redoer")
    assert history.state() == before
