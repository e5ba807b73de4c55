"""Input of every wrong kind, and what a person might do by accident: a typed error, and nothing lost."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

import fakes
from databases import dump, query
from supersede import FactStore, InvalidInput, InvalidInstant, RefConflict, SupersedeError
from supersede import engine as db
from supersede import facts as executor
from supersede.periods import parse_instant
from supersede.queries import Scope

SLOT: dict[str, Any] = {"subject": "s", "predicate": "hq"}
LATE, EARLY = "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"


def claims(store: FactStore, **point: Any) -> list[str]:
    return sorted(fact.claim for fact in store.facts(**point).facts)


# --- every later read of the namespace fails


@pytest.mark.parametrize("instant", [LATE, EARLY])
@pytest.mark.parametrize("where", ["asserted", "sources", "valid_from", "valid_to", "recorded_at"])
def test_an_event_beyond_the_years_in_utc_is_refused_and_no_read_breaks(
    store: FactStore, instant: str, where: str
) -> None:
    event = {
        "op": "remember",
        "claim": "c",
        "ref": "a",
        "recorded_at": "2020-01-01",
        "valid_from": "no_start",
    }
    event[where] = [["uri", instant]] if where == "sources" else instant  # type: ignore[assignment]
    try:
        with pytest.raises(InvalidInstant):
            store.replay([event], out_of_order="next_stamp")
    finally:
        store.facts(explain=True)
        store.ask("c", explain=True)


def test_an_end_beyond_the_years_in_utc_is_refused(database: str, store: FactStore) -> None:
    store.remember("c", ref="a")
    before = dump(database)
    with pytest.raises(InvalidInstant):
        store.replay(
            [{"op": "end", "ref": "a", "when": EARLY, "recorded_at": "2020-01-01"}], out_of_order="next_stamp"
        )
    assert dump(database) == before


# --- Python takes offsets that SQL (and ISO 8601) does not


@pytest.mark.parametrize(
    "text", ["2026-05-01T00:00:00+05:99", "2026-05-01T00:00+0560", "2026-05-01T00:00:00+16:00"]
)
def test_an_offset_that_sql_refuses_is_refused_by_python(text: str) -> None:
    with pytest.raises(InvalidInstant):
        parse_instant(text)


# --- sources wander between facts that only hold the same value


def test_holders_of_one_value_do_not_take_over_each_others_sources(store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    store.remember("Boston", ref="h1", valid_from="2018-01-01", valid_to="2019-01-01", sources=["u1"], **SLOT)
    store.remember("Boston", ref="h2", valid_from="2020-01-01", valid_to="2021-01-01", sources=["u2"], **SLOT)
    store.remember("Boston", ref="h3", valid_from="2018-01-01", valid_to="2021-01-01", sources=["u3"], **SLOT)
    assert sorted(store.get("h1").sources) == ["u1", "u3"]
    assert sorted(store.get("h2").sources) == ["u2", "u3"]
    assert sorted(store.get("h3").sources) == ["u3"]


# --- what was ended since is given back, where a later edge of the same pair exists


def test_giving_back_does_not_undo_an_end_that_came_after_the_taking(store: FactStore) -> None:
    store.remember("old", ref="old", valid_from="2018-01-01")
    store.remember("new", ref="new", valid_from="2015-01-01", valid_to="2016-01-01")
    store.supersede("old", by="new", valid_from="2020-01-01", valid_to="2021-01-01")
    store.end("old", at="2019-06-01", until="2020-07-01")
    store.supersede("old", by="new", valid_from="2022-01-01", valid_to="2023-01-01")
    store.retract("new", give_back=True)
    assert claims(store, valid_at="2020-09-01") == ["old"]
    assert claims(store, valid_at="2022-06-01") == ["old"]
    assert claims(store, valid_at="2020-03-01") == [], "it was ended for that time after new took it"


# --- an amendment in a slot that cuts what it amends


def test_an_amendment_that_would_cut_what_it_amends_says_so(database: str, store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    store.remember("Boston", ref="a", valid_from="2018-01-01", **SLOT)
    before = dump(database)
    with pytest.raises(SupersedeError) as refused:
        store.amend("a", "Denver", valid_from="2019-01-01", **SLOT)
    assert "supersedes_pkey" not in str(refused.value)
    assert "supersede" in str(refused.value)
    assert dump(database) == before


# --- data that is stored and can never be read again


@pytest.mark.parametrize("depth", [100, 200, 300, 600, 5000])
def test_data_that_could_not_be_read_back_is_refused(store: FactStore, depth: int) -> None:
    data: Any = "x"
    for _ in range(depth):
        data = {"k": data}
    try:
        store.remember("nested", ref="a", data=data)
    except InvalidInput:
        assert depth > 50
    assert len(store.facts().facts) <= 1


def test_data_that_holds_itself_is_refused(store: FactStore) -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    with pytest.raises(InvalidInput):
        store.remember("c", data=ring)


def test_a_number_too_long_for_python_is_refused_everywhere(database: str, store: FactStore) -> None:
    with pytest.raises(InvalidInput):
        store.remember("c", data={"n": 10**5000})
    with psycopg.connect(database, autocommit=True) as connection, pytest.raises(psycopg.Error):
        connection.execute("""select supersede.remember('{"claim": "c", "data": {"n": 1e5000}}')""")
    store.facts()


def test_deep_data_by_sql_is_refused(database: str, store: FactStore) -> None:
    data = '{"k": ' * 300 + "1" + "}" * 300
    with psycopg.connect(database, autocommit=True) as connection, pytest.raises(psycopg.Error):
        connection.execute("select supersede.remember(%s::jsonb)", [f'{{"claim": "c", "data": {data}}}'])
    store.facts()


# --- one claim that cannot be embedded keeps all others from being filled


def test_a_claim_that_has_no_vector_does_not_keep_others_from_theirs(vector_database: str) -> None:
    with FactStore.open(vector_database, embedder=fakes.Down()) as deaf:
        deaf.remember("poison")
        deaf.remember_many([f"claim {n}" for n in range(5)])
    with FactStore.open(vector_database, embedder=fakes.BrokenFor("poison")) as store:
        try:
            filled = store.fill_embeddings()
        except SupersedeError:
            filled = -1
        assert query(vector_database, "select count(*) from supersede.embedding") == [(5,)], filled
        assert store.fill_embeddings() == 0, "and it must not loop for ever over what stays without"


# --- the next page after a ref is empty


def test_a_page_may_begin_after_a_ref_or_a_fact(store: FactStore) -> None:
    first = store.remember("one", ref="1", valid_from="2020-01-01")
    store.remember("two", ref="2", valid_from="2021-01-01")
    assert claims(store, after=first) == ["two"]
    assert claims(store, after="1") == ["two"]
    assert claims(store, after=str(first.id).upper()) == ["two"]


def test_a_page_after_a_fact_that_is_not_there_is_an_error(store: FactStore) -> None:
    store.remember("one")
    with pytest.raises(SupersedeError):
        store.facts(after="nonsense")


# --- more than 65,535 ids in one read


def test_a_read_of_very_many_facts(store: FactStore) -> None:
    from datetime import UTC, datetime
    from uuid import uuid4

    now = datetime.now(UTC)
    with db.reading(store._engine) as connection:
        keys = [("default", uuid4()) for _ in range(70_000)]
        assert (
            executor.load(connection, Scope(["default"], [now], [now]), keys, valid_at=now, space_id=None)
            == {}
        )


# --- names


def test_a_ref_may_not_be_the_id_of_another_fact(store: FactStore) -> None:
    fact = store.remember("one")
    with pytest.raises(RefConflict):
        store.remember("impostor", ref=str(fact.id))


@pytest.mark.parametrize("form", ["urn:uuid:{}", "{{{}}}", "{}"])
def test_reads_and_writes_find_a_fact_by_the_same_names(store: FactStore, form: str) -> None:
    fact = store.remember("one")
    name = form.format(fact.id if form != "{}" else str(fact.id).replace("-", ""))
    found = []
    for call in (lambda: store.get(name), lambda: store.cite(name, sources=["u"])):
        try:
            call()
            found.append(True)
        except SupersedeError:
            found.append(False)
    assert found in ([True, True], [False, False])


# --- untyped errors and what is silently misread

BAD_CALLS: dict[str, Any] = {
    "item key": lambda s: s.remember_many([{1: "x"}]),
    "item with old": lambda s: s.remember_many([{"claim": "c", "old": "a"}]),
    "no items": lambda s: s.remember_many(None),
    "no events": lambda s: s.replay(None),
    "event key": lambda s: s.replay([{("a",): 1}]),
    "surrogate key": lambda s: s.replay(
        [{"op": "remember", "claim": "x", "recorded_at": "2020-01-01", "\ud800": 1}]
    ),
    "similarity": lambda s: s.ask("x", min_similarity="0.5"),
    "namespaces": lambda s: s.facts(namespaces=5),
    "unhashable namespace": lambda s: s.facts(namespaces=[["a"]]),
    "basis": lambda s: s.ask(basis=5),
    "basis mapping": lambda s: s.ask(basis={}),
    "verify": lambda s: s.verify(None),
    "over_trust": lambda s: s.remember("c", over_trust="no"),
    "give_back": lambda s: s.retract("a", give_back="no"),
    "item with fact": lambda s: s.remember_many([{"claim": "c", "fact": "zz"}]),
    "item with op": lambda s: s.remember_many([{"claim": "c", "op": "retract"}]),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_argument_is_an_input_error(store: FactStore, name: str) -> None:
    store.remember("a", ref="a", valid_from="2020-01-01")
    with pytest.raises(InvalidInput):
        BAD_CALLS[name](store)


CHANGED: dict[str, dict[str, Any]] = {
    "padding": {"vector": "AAA"},
    "odd": {"vector": "AAAA"},
    "nul in query": {"query": "a\x00"},
    "nul in filter": {"filters": {"subject": "a\x00"}},
    "nul in head": {"heads": {"a\x00": None}},
    "configuration": {"text_search": "nope"},
    "limit": {"limit": -1},
    "weight": {"cosine_weight": float("nan")},
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_basis_that_was_tampered_with_is_an_input_error(vector_store: FactStore, name: str) -> None:
    vector_store.remember("the port is 5432")
    basis = vector_store.ask("port").basis.model_dump(mode="json") | CHANGED[name]
    with pytest.raises(InvalidInput):
        vector_store.ask(basis=json.dumps(basis))


@pytest.mark.parametrize("actor", ["a\x00", "\ud800", 5])
def test_an_actor_that_is_no_text_is_an_input_error(database: str, actor: Any) -> None:
    with pytest.raises(InvalidInput):
        FactStore.open(database, actor=actor).close()


def test_a_question_of_a_book_is_an_input_error(store: FactStore) -> None:
    store.remember("one")
    with pytest.raises(InvalidInput, match="characters"):
        store.ask(" ".join(f"w{n}" for n in range(200_000)))


def test_an_event_that_python_refuses_is_named_by_its_position(store: FactStore) -> None:
    good = {"op": "remember", "claim": "x", "recorded_at": "2020-01-01"}
    for bad in (
        {**good, "sources": "docs"},
        {**good, "data": {"x": float("nan")}},
        {**good, "valid_from": 5.5},
    ):
        with pytest.raises(InvalidInput) as refused:
            store.replay([good, bad])
        assert refused.value.details.get("position") == 2, bad


class BadWindow(fakes.BagOfWords):
    def exceeds_window(self, texts: list[str]) -> list[bool]:
        raise ConnectionError("secret")


class ShortFlags(fakes.BagOfWords):
    def exceeds_window(self, texts: list[str]) -> list[bool]:
        return []


@pytest.mark.parametrize("embedder", [BadWindow, ShortFlags])
def test_an_embedder_whose_window_cannot_be_asked_loses_no_fact(vector_database: str, embedder: Any) -> None:
    with FactStore.open(vector_database, embedder=embedder()) as store:
        assert store.remember("c").created


@pytest.mark.parametrize("event", ['"x"', "[]", "5", "null"])
def test_an_event_that_is_no_object_is_told_so_by_sql(database: str, store: FactStore, event: str) -> None:
    with psycopg.connect(database) as connection:
        for verb in ("remember", "replay", "end"):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(f'select supersede."{verb}"(%s::jsonb)', [event])
            connection.rollback()
            assert refused.value.sqlstate == "SU013"
