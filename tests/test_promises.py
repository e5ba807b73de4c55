"""What a second reader of the code asked: does the promise hold here, too?"""

from __future__ import annotations

import base64
import json
import zlib

import psycopg
import pytest

import fakes
from databases import execute, query
from servers import new_database
from supersede import Conflict, FactNotFound, FactStore, InvalidInput, engine, migrate
from supersede.models import Basis

SLOT = {"subject": "acme", "predicate": "hq"}


def test_a_transaction_that_was_committed_does_not_fail_for_want_of_a_vector(vector_database: str) -> None:
    with FactStore.open(vector_database, embedder=fakes.WrongDimension()) as store:
        with store.transaction() as transaction:
            transaction.remember("a claim", ref="a")
        assert store.get("a").claim == "a claim"
    with FactStore.open(vector_database, embedder=fakes.BagOfWords()) as store:
        assert store.fill_embeddings() == 1


def test_the_text_of_a_basis_does_not_rest_on_the_defaults_of_a_release(vector_store: FactStore) -> None:
    vector_store.remember("the port is 5432")
    basis = vector_store.ask("port").basis
    text = str(basis)
    packed = text.removeprefix("sb1.")
    plain = json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))))
    assert {"rules", "cosine_weight", "coverage_weight", "lineage_credit", "limit", "version"} <= set(plain)
    assert Basis.parse(text) == basis


def test_the_longest_question_survives_its_text(store: FactStore) -> None:
    store.remember("one")
    answer = store.ask("🚀" * 90_000, where={"k": "x" * 60_000})
    assert store.ask(basis=str(answer.basis)) == answer
    with pytest.raises(InvalidInput, match="where"):
        store.facts(where={"k": "x" * 70_000})


def test_a_basis_is_asked_alone(store: FactStore) -> None:
    store.remember("the port is 5432")
    basis = store.ask("port").basis
    for beside in ({"valid_at": "1999-01-01"}, {"namespaces": ["x"]}, {"top_k": 1}, {"kind": "rfc"}):
        with pytest.raises(InvalidInput, match="beside"):
            store.ask(basis=basis, **beside)


def test_an_answer_about_the_past_is_no_ground_for_what_has_moved_since(store: FactStore) -> None:
    store.remember("the port is 5432", ref="p", valid_from="2020-01-01")
    then = store.facts().known_at
    store.supersede("p", "the port is 5433", valid_from="2022-01-01", valid_to="2023-01-01")
    past = store.ask("port", as_of=then)
    with pytest.raises(Conflict, match="moved"):
        store.supersede("p", "the port is 5434", valid_from="2024-01-01", based_on=past)
    store.supersede("p", "the port is 5434", valid_from="2024-01-01", based_on=store.ask("port"))


def test_a_retry_with_a_fresher_answer_is_the_same_call(store: FactStore) -> None:
    store.remember("old", ref="old")
    first = store.supersede("old", "new", ref="new", based_on=store.facts())
    again = store.supersede("old", "new", ref="new", based_on=store.facts())
    assert (again.repeated, again.id) == (True, first.id)


def test_pages_end_where_one_id_stands_in_two_namespaces(database: str) -> None:
    ids = [f"00000000-0000-7000-8000-00000000000{n}" for n in range(2)]
    events = [
        {
            "op": "remember",
            "claim": f"c{n}",
            "id": fact_id,
            "recorded_at": f"2020-01-0{n + 1}",
            "ref": f"r{n}",
        }
        for n, fact_id in enumerate(ids)
    ]
    for name in ("x1", "x2"):
        with FactStore.open(database, namespace=name) as other:
            other.replay(events)
    with FactStore.open(database, namespace="x1") as store:
        seen, after = [], None
        for _ in range(4):
            (fact,) = store.facts(namespaces=["x1", "x2"], limit=1, after=after).facts
            seen.append((fact.namespace, fact.id))
            after = fact
        assert sorted(seen) == sorted((name, each) for name in ("x1", "x2") for each in ids)
        assert not store.facts(namespaces=["x1", "x2"], limit=1, after=after).facts
        with pytest.raises(InvalidInput, match="several"):
            store.facts(namespaces=["x1", "x2"], after="r0")
        with pytest.raises(FactNotFound, match="nonsense"):
            store.facts(after="nonsense")


def test_a_diff_does_not_know_names_given_later(store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    before = store.facts().known_at
    store.remember("HQ is Paris", object="Paris", valid_from="2020-01-01", **SLOT)
    then = store.facts().known_at
    store.remember("HQ is in Paris", object="paris", valid_from="2020-01-01", ref="later", **SLOT)
    assert [change.ref for change in store.diff(before, then).changes] == [None]
    assert [change.ref for change in store.diff(before).changes] == ["later"]


def test_a_declaration_alone_is_no_record_and_later_facts_do_not_change_that(store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    answer = store.ask("anything")
    assert answer.outcome == "nothing_recorded"
    assert answer.notice.startswith("Nothing has been recorded in namespace 'default' yet.")
    store.remember("anything")
    assert store.ask(basis=answer.basis) == answer


def test_lineage_shows_the_newest_edge_of_a_pair_as_a_fact_does(store: FactStore) -> None:
    store.remember("one", ref="1", valid_from="2020-01-01")
    store.supersede("1", "two", ref="2", valid_from="2024-01-01")
    store.supersede("1", by="2", reason="correction", valid_from="2022-01-01", valid_to="2023-01-01")
    assert [edge.reason for edge in store.get("2").supersedes] == ["correction"]
    assert [fact.reason for fact in store.lineage("2").ancestors] == ["correction"]


def test_a_pair_is_shown_by_its_newest_edge_from_either_end(store: FactStore) -> None:
    store.remember("the rule", ref="rule", valid_from="2020-01-01")
    store.amend("rule", "an addition", ref="more", valid_from="2020-01-01")
    assert [other.ref for other in store.get("rule").amended_by] == ["more"]
    store.supersede("rule", by="more", valid_from="2021-01-01", valid_to="2022-01-01")
    assert store.get("rule").amended_by == ()
    assert (store.get("more").amends, [e.ref for e in store.get("more").supersedes]) == ((), ["rule"])


def test_one_source_with_two_dates_is_refused(store: FactStore) -> None:
    with pytest.raises(InvalidInput, match="twice"):
        store.remember("c", sources=[("u", "2020-01-01"), ("u", "2022-01-01")])


def test_rules_that_changed_are_told_from_a_promise_that_broke(store: FactStore) -> None:
    store.remember("the port is 5432")
    answer = store.ask("port")
    other = answer.model_copy(update={"facts": ()})
    assert store.verify(other).outcome == "different"
    older = other.model_copy(update={"basis": answer.basis.model_copy(update={"rules": 999})})
    assert store.verify(older).outcome == "rules_changed"


def test_the_text_search_of_a_database_stays_through_init(empty_database: str) -> None:
    FactStore.init(empty_database, text_search="simple")
    FactStore.init(empty_database)
    FactStore.init(empty_database, text_search="pg_catalog.simple")
    with pytest.raises(InvalidInput, match="made with text search configuration 'simple'"):
        FactStore.init(empty_database, text_search="english")
    with pytest.raises(InvalidInput, match="no text search configuration 'klingon'"):
        FactStore.init(empty_database, text_search="klingon")
    assert query(empty_database, "select text_search::text from supersede.configuration") == [("simple",)]


def test_filling_vectors_makes_no_namespace(vector_database: str) -> None:
    with psycopg.connect(vector_database) as connection, pytest.raises(psycopg.Error, match="ghost"):
        connection.execute("select supersede.fill_embeddings('ghost', 1::smallint, '{}', '{}', '{}')")


@pytest.fixture
def login(server_url: str, vector_database: str):
    """Makes a login with one of the roles and returns its URL of ``vector_database``."""
    from sqlalchemy import make_url

    made: list[str] = []

    def make(role: str, url: str = vector_database) -> str:
        name = f"login_of_{make_url(url).database}"[:60]
        if name not in made:
            execute(server_url, f"create role {name} login password 'x' in role {role}")
            made.append(name)
        return make_url(url).set(username=name, password="x").render_as_string(hide_password=False)

    yield make
    for name in made:
        with psycopg.connect(vector_database, autocommit=True) as connection:
            connection.execute(f"drop owned by {name} cascade")
        execute(server_url, f"drop role {name}")


def test_a_function_planted_in_public_does_not_run_as_the_owner(vector_database: str, login) -> None:
    """Where a writer may create functions beside the extensions' own."""
    execute(vector_database, "grant create on schema public to public")
    with FactStore.open(vector_database, embedder=fakes.BagOfWords()) as store:
        store.remember("the truth", ref="a", valid_from="2020-01-01")
    url = login("supersede_writer")
    with psycopg.connect(url, autocommit=True) as connection:
        for kind in ("tstzrange", "tstzmultirange"):
            for name in ("lower", "upper"):
                connection.execute(
                    f"create function public.{name}({kind}) returns timestamptz language plpgsql as "
                    "$$ begin update supersede.fact set claim = 'planted'; "
                    "return pg_catalog.lower($1); end $$"
                )
        connection.execute("""select supersede."end"('{"ref": "a", "when": "2024-01-01"}')""")
    assert query(vector_database, "select claim from supersede.fact") == [("the truth",)]


def test_a_reader_asks_and_the_schema_goes_down_where_there_is_no_public_schema(
    server_url: str, login
) -> None:
    with new_database(server_url, "test") as (_, url):
        execute(url, "drop schema public")
        FactStore.init(url, embedder=fakes.BagOfWords())
        with FactStore.open(url, embedder=fakes.BagOfWords()) as store:
            store.remember("the port is 5432")
        execute(url, "create role reader_without_public login password 'x' in role supersede_reader")
        try:
            from sqlalchemy import make_url

            reader = make_url(url).set(username="reader_without_public", password="x")
            with FactStore.open(
                reader.render_as_string(hide_password=False), embedder=fakes.BagOfWords()
            ) as store:
                assert store.ask("port").outcome == "answered"
        finally:
            execute(url, "drop role reader_without_public")
        own = engine.make_engine(url)
        with own.begin() as connection:
            migrate.downgrade(connection, "base")
        own.dispose()
