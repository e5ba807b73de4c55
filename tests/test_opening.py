"""Which databases are refused, in which words; and that neither role nor database changes an answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from databases import Dump, dump, execute, named_dump, query, rename
from fakes import BagOfWords
from servers import database_url, drop_database, new_database
from supersede import (
    Answer,
    FactStore,
    InvalidInput,
    SchemaOutOfDate,
    ServerUnavailable,
    ServerUnsupported,
    engine,
    migrate,
)
from supersede.schema import HEAD_REVISION
from supersede.settings import normalise_url

# --- what is refused


def test_a_database_without_schema_is_refused_and_left_alone(empty_database: str) -> None:
    with pytest.raises(SchemaOutOfDate, match="no supersede schema yet; run `supersede init`"):
        FactStore.open(empty_database)
    assert query(empty_database, "select to_regnamespace('supersede')") == [(None,)]
    assert query(empty_database, "select extname from pg_extension") == [("plpgsql",)]


def test_an_older_schema_is_refused_and_init_upgrades_it(database: str, store: FactStore) -> None:
    store.remember("a fact of the older schema", ref="old")
    own = engine.make_engine(database)
    with own.begin() as connection:
        migrate.downgrade(connection, "0001")
    own.dispose()
    needed = rf"revision 0001, this supersede needs {HEAD_REVISION}; run `supersede init`"
    with pytest.raises(SchemaOutOfDate, match=needed):
        FactStore.open(database)
    FactStore.init(database)
    with FactStore.open(database) as again:
        assert again.get("old").claim == "a fact of the older schema"


def test_a_newer_schema_is_refused_by_open_and_by_init(database: str) -> None:
    execute(database, "update supersede.alembic_version set version_num = '9999'")
    before = dump(database)
    for refused in (FactStore.open, FactStore.init):
        with pytest.raises(SchemaOutOfDate, match=r"9999, made by a newer supersede.*upgrade the package"):
            refused(database)
    assert dump(database) == before


def test_a_missing_extension_is_named_and_init_makes_it(database: str) -> None:
    execute(database, "drop extension pg_trgm")
    with pytest.raises(ServerUnsupported, match=r"extension pg_trgm is missing.*run `supersede init`"):
        FactStore.open(database)
    FactStore.init(database)
    FactStore.open(database).close()


def test_an_extension_that_the_server_lacks_is_named(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "EXTENSIONS", (*engine.EXTENSIONS, "not_on_this_server"))
    with pytest.raises(ServerUnsupported, match=r"not_on_this_server could not be created.*install it"):
        FactStore.init(empty_database)
    assert query(empty_database, "select extname from pg_extension") == [("plpgsql",)]


def test_an_old_pgvector_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MINIMUM_VECTOR", (99, 0))
    with pytest.raises(ServerUnsupported, match=r"needs 99\.0 or newer: ALTER EXTENSION vector UPDATE"):
        FactStore.open(database)


def test_an_old_postgresql_is_refused_by_open_and_by_init(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minimum is raised, since no old server is at hand."""
    monkeypatch.setattr(engine, "MINIMUM_SERVER", 99)
    for refused in (FactStore.open, FactStore.init):
        with pytest.raises(ServerUnsupported, match=r"this is PostgreSQL \d\d; supersede needs 99 or newer"):
            refused(empty_database)
    assert query(empty_database, "select to_regnamespace('supersede')") == [(None,)]


def test_a_database_of_another_encoding_is_refused(server_url: str) -> None:
    with new_database(server_url, "test") as (name, url):
        drop_database(server_url, name)
        create = "create database {} template template0 encoding 'LATIN1' locale_provider libc locale 'C'"
        execute(server_url, sql.SQL(create).format(sql.Identifier(name)))
        for refused in (FactStore.open, FactStore.init):
            with pytest.raises(ServerUnsupported, match="encoded as LATIN1; create one with encoding 'UTF8'"):
                refused(url)


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(ServerUnavailable):
        FactStore.open("postgresql://postgres:hunter2@127.0.0.1:9/postgres?connect_timeout=2")


def test_a_database_that_does_not_exist_is_unavailable(server_url: str) -> None:
    with pytest.raises(ServerUnavailable, match="no_such_database"):
        FactStore.open(database_url(server_url, "no_such_database"))


# --- init


def test_init_twice_changes_nothing(empty_database: str) -> None:
    FactStore.init(empty_database, embedder=BagOfWords())
    with FactStore.open(empty_database, embedder=BagOfWords()) as store:
        store.remember("a fact", sources=["somewhere"])
    before = dump(empty_database)
    FactStore.init(empty_database, embedder=BagOfWords())
    assert dump(empty_database) == before


def test_four_processes_may_init_one_database_at_once(empty_database: str) -> None:
    program = (
        "import sys; from supersede import FactStore; url = sys.argv[1]; FactStore.init(url); "
        "store = FactStore.open(url); store.remember('made by ' + sys.argv[2]); store.close()"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, empty_database, str(number)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    results = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0], results
    with FactStore.open(empty_database) as store:
        assert len(store.facts().facts) == 4
    assert query(empty_database, "select count(*) from supersede.alembic_version") == [(1,)]
    assert query(empty_database, "select count(*) from supersede.configuration") == [(1,)]


def test_the_text_search_configuration_is_fixed_at_the_first_init(empty_database: str) -> None:
    FactStore.init(empty_database, text_search="simple")
    FactStore.init(empty_database, text_search="simple")
    with pytest.raises(InvalidInput, match="made with text search configuration 'simple'"):
        FactStore.init(empty_database, text_search="german")
    with FactStore.open(empty_database) as store:
        assert store.facts().basis.text_search == "simple"


@pytest.mark.parametrize("name", ["klingon", "english'); drop schema supersede cascade; --", "", "public."])
def test_a_text_search_configuration_that_does_not_exist_is_refused(empty_database: str, name: str) -> None:
    with pytest.raises(InvalidInput, match="text search configuration"):
        FactStore.init(empty_database, text_search=name)
    assert query(empty_database, "select to_regnamespace('supersede')") == [(None,)]


def test_an_owner_without_other_privileges_can_init_and_use_a_database(
    server_url: str, empty_database: str
) -> None:
    """As on a managed server: the extensions are made by somebody else, the roles may be missing."""
    database = normalise_url(empty_database).database
    owner = f"owner_of_{database}"
    for extension in engine.EXTENSIONS:
        execute(empty_database, f"create extension {extension} schema public")
    execute(server_url, f"create role {owner} login password 'owner'")
    try:
        execute(server_url, f"alter database {database} owner to {owner}")
        url = normalise_url(empty_database).set(drivername="postgresql", username=owner, password="owner")
        own_url = url.render_as_string(hide_password=False)
        FactStore.init(own_url, embedder=BagOfWords())
        with FactStore.open(own_url, embedder=BagOfWords()) as store:
            store.remember("The port is 5432", subject="port")
            assert store.ask("which port").facts[0].similarity
        assert query(empty_database, "select nspowner::regrole::text from pg_namespace where nspname = "
                     "'supersede'") == [(owner,)]  # fmt: skip
    finally:
        execute(server_url, f"alter database {database} owner to current_user")
        execute(empty_database, f"drop owned by {owner} cascade")
        execute(server_url, f"drop role {owner}")


@pytest.mark.parametrize("schema", ["public", "extensions", 'Odd "name"'])
def test_the_extensions_may_lie_in_any_schema(empty_database: str, schema: str) -> None:
    name = sql.Identifier(schema)
    execute(empty_database, sql.SQL("create schema if not exists {}").format(name))
    for extension in engine.EXTENSIONS:
        create = sql.SQL("create extension {} schema {}").format(sql.Identifier(extension), name)
        execute(empty_database, create)
    FactStore.init(empty_database, embedder=BagOfWords())
    with FactStore.open(empty_database, embedder=BagOfWords()) as store:
        store.supersede(store.remember("The port is 5432"), "The port is 5433")
        assert [fact.claim for fact in store.ask("which port").facts] == ["The port is 5433"]


# --- sessions: whatever the role or the database says

HISTORY: list[dict[str, Any]] = [
    {
        "op": "declare_predicate",
        "recorded_at": "2019-01-01",
        "name": "HQ",
        "cardinality": "one",
    },
    {
        "op": "remember",
        "recorded_at": "2020-03-04T05:06:07.08+13:45",
        "ref": "boston",
        "claim": "Acme sits in Boston \\ 'quoted'",
        "subject": "ＡＣＭＥ  \t Inc",
        "predicate": "hq",
        "object": "Boston",
        "valid_from": "no_start",
        "sources": [["a", "1999-12-31"], "b"],
        "data": {"height": 1.10, "width": 1e300, "empty": None, "list": [0.1, "NULL"]},
    },
    {
        "op": "remember",
        "recorded_at": "2021-01-02",
        "ref": "denver",
        "claim": "Acme sits in Denver",
        "subject": "acme inc",
        "predicate": "hQ",
        "object": "Denver",
        "valid_from": "2020-12-31T23:59:59.999999-00:30",
        "trust": "verbatim",
        "sources": ["NULL", "null", "c\\d"],
    },
    {
        "op": "supersede",
        "recorded_at": "2022-10-11",
        "old": ["denver"],
        "ref": "oslo",
        "claim": "Acme sits in Oslo",
        "object": "Oslo",
        "valid_from": "2022-06-07",
        "valid_to": "2022-07-06",
        "trust": "verbatim",
    },
    {
        "op": "remember",
        "recorded_at": "2023-04-05",
        "ref": "founder",
        "claim": "Acme was founded by Ada in 1843",
        "valid_from": "1843-02-01",
        "valid_to": "2030-01-02",
    },
    {"op": "end", "recorded_at": "2024-05-06", "ref": "founder", "when": "2024-02-29T12:00Z"},
    {"op": "cite", "recorded_at": "2024-05-07", "ref": "oslo", "sources": ["d"], "asserted": "2024-03-02"},
    {"op": "retract", "recorded_at": "2025-06-07", "ref": "boston", "note": "it was never there"},
]

SETTINGS = {
    "timezone": "Pacific/Apia",
    "datestyle": "German, DMY",
    "intervalstyle": "postgres_verbose",
    "search_path": "pg_temp, public",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "default_text_search_config": "simple",
    "client_min_messages": "error",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "standard_conforming_strings": "off",
    "plpgsql.variable_conflict": "use_column",
    "plan_cache_mode": "force_generic_plan",
    "debug_parallel_query": "on",
    "enable_seqscan": "off",
    "jit_above_cost": "0",
    "row_security": "off",
}


def ask_everything(store: FactStore) -> list[Answer]:
    points = [{}, {"as_of": "2022-06-20"}, {"valid_at": "2021-01-01"}, {"known_at": "2023-05-05"}]
    return [
        answer
        for point in points
        for answer in (
            store.ask("where does Acme sit", **point, min_similarity=0, explain=True),
            store.facts(**point, explain=True),
            store.facts(**point, subject="acme INC", predicate="hq"),
        )
    ]


def stand_still(url: str) -> None:
    """So that "now" is one instant for all the answers that are compared."""
    execute(
        url,
        "set standard_conforming_strings = on; set search_path to pg_catalog; "
        "create or replace function supersede.clock() returns timestamptz "
        "language sql volatile parallel safe return '2026-07-24T00:00:00Z'::timestamptz",
    )


def through_python(url: str) -> tuple[Dump, list[str]]:
    """What the store holds after the history, and its answers, ids replaced by refs."""
    with FactStore.open(url, embedder=BagOfWords()) as store:
        store.replay(HISTORY)
        answers = ask_everything(store)
        for answer in answers:
            assert store.verify(answer).outcome == "equal"
        names = {store.get(ref).id: ref for ref in ("boston", "denver", "oslo", "founder")}
    with psycopg.connect(url) as connection:
        held = named_dump(connection, "default", ledger=True)
    return held, [rename(_in_order(answer), names) for answer in answers]


def _in_order(answer: Answer) -> dict[str, Any]:
    """Of the withheld, ties go by their ids, which differ from one database to the next."""
    plain = json.loads(answer.model_dump_json())
    plain["withheld_facts"].sort(key=lambda fact: fact["ref"])
    return plain


def through_sql(url: str) -> Dump:
    """What the store holds if the verbs are called in a session that nobody has set up."""
    with psycopg.connect(url, autocommit=True) as connection:
        for event in HISTORY:
            connection.execute("select supersede.replay(%s, 'sql')", [json.dumps(event)])
    with psycopg.connect(url) as connection:
        return named_dump(connection, "sql", ledger=True)


@pytest.fixture(scope="module")
def expected(server_url: str, vector_template_database: str) -> Iterator[tuple[Any, Dump]]:
    with new_database(server_url, "test", vector_template_database) as (_, url):
        stand_still(url)
        yield through_python(url), through_sql(url)


@pytest.mark.parametrize("setting", SETTINGS)
def test_answers_are_the_same_whatever_the_database_sets(
    vector_database: str, expected: tuple[Any, Dump], setting: str
) -> None:
    stand_still(vector_database)
    alter_database(vector_database, setting, SETTINGS[setting])
    held, answers = through_python(vector_database)
    assert (held, answers) == expected[0]


# A session that turns these on has asked for what it gets: backslashes as of old, and UnsafeIsolation.
ASKED_FOR = {"standard_conforming_strings", "default_transaction_isolation"}


@pytest.mark.parametrize("setting", [name for name in SETTINGS if name not in ASKED_FOR])
def test_the_verbs_in_sql_do_the_same_whatever_the_session_sets(
    vector_database: str, expected: tuple[Any, Dump], setting: str
) -> None:
    stand_still(vector_database)
    alter_database(vector_database, setting, SETTINGS[setting])
    assert through_sql(vector_database) == expected[1]


def test_answers_are_the_same_whatever_the_role_sets(
    server_url: str, vector_database: str, expected: tuple[Any, Dump]
) -> None:
    stand_still(vector_database)
    role = f"role_of_{normalise_url(vector_database).database}"
    execute(server_url, f"create role {role} superuser login password 'role'")
    try:
        for name, value in SETTINGS.items():
            assign = sql.SQL("alter role {} set {} = {}").format(
                sql.Identifier(role), sql.SQL(name), _value(name, value)
            )
            execute(server_url, assign)
        url = normalise_url(vector_database).set(drivername="postgresql", username=role, password="role")
        held, answers = through_python(url.render_as_string(hide_password=False))
        assert (held, answers) == expected[0]
    finally:
        execute(server_url, f"drop role {role}")


def alter_database(url: str, setting: str, value: str) -> None:
    database = sql.Identifier(normalise_url(url).database or "")
    assign = sql.SQL("alter database {} set {} = {}")
    execute(url, assign.format(database, sql.SQL(setting), _value(setting, value)))


def _value(setting: str, value: str) -> sql.Composable:
    return sql.SQL(value) if setting == "search_path" else sql.Literal(value)
