"""Append-only is a privilege: what readers, writers and importers may do, tried as real roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from databases import dump, execute, query
from supersede import Erased, FactStore, InvalidInput, OutOfOrder, PrivilegeMissing
from supersede.results import Recorded
from supersede.settings import normalise_url

ROLES = ["supersede_reader", "supersede_writer", "supersede_importer", "supersede_analyst"]
VERBS = {
    "remember(jsonb,text,text,halfvec,smallint,boolean)",
    "supersede(jsonb,text,text,halfvec,smallint,boolean)",
    "amend(jsonb,text,text,halfvec,smallint,boolean)",
    '"end"(jsonb,text,text)',
    "retract(jsonb,text,text)",
    "reinstate(jsonb,text,text)",
    "undo(jsonb,text,text)",
    "cite(jsonb,text,text)",
    "declare_predicate(jsonb,text,text)",
    "fill_embeddings(text,smallint,uuid[],halfvec[],boolean[],text)",
}
REPLAY = {
    "replay(jsonb,text,text,halfvec,smallint,boolean,text)",
    "begin_import(jsonb,boolean)",
    "import_operations(text,jsonb[])",
    "end_import(jsonb)",
}
ERASE = {"erase(jsonb,text,text)", "lift_erasure(jsonb,text,text)"}

AsRole = Callable[..., str]
EVENT = {"op": "remember", "recorded_at": "2020-01-01", "claim": "an old fact", "ref": "old"}


@pytest.fixture
def as_role(server_url: str, database: str, store: FactStore) -> Iterator[AsRole]:
    """Gives the URL of a login that has one of the roles and nothing else, in a store with a fact."""
    store.remember("The port is 5432", ref="port", sources=["docs/ports.md"])
    name = normalise_url(database).database
    made: list[str] = []

    def url_of(*roles: str) -> str:
        login = f"login{len(made)}_{name}"
        execute(server_url, f"create role {login} login password 'login'")
        made.append(login)
        for role in roles:
            execute(server_url, f"grant {role} to {login}")
        url = normalise_url(database).set(drivername="postgresql", username=login, password="login")
        return url.render_as_string(hide_password=False)

    yield url_of
    for login in made:
        execute(server_url, f"drop role {login}")


def verbs(store: FactStore) -> list[Callable[[], Recorded]]:
    """One call of every verb, each of which would succeed in this order."""
    return [
        lambda: store.remember("The host is db1", ref="host"),
        lambda: store.supersede("port", "The port is 5433", ref="port2"),
        lambda: store.amend("port2", "It is open inside the network only", ref="inside"),
        lambda: store.end("host", at="2100-01-01"),
        lambda: store.cite("port2", sources=["mail/1"]),
        lambda: store.declare_predicate("port", cardinality="one"),
        lambda: store.retract("inside", note="it is open to all"),
    ]


def reads(store: FactStore) -> None:
    assert store.ask("which port").facts
    assert store.facts().facts
    assert store.verify(store.ask("port")).outcome == "equal"
    assert store.get("port").claim == "The port is 5432"
    assert store.history("port").versions
    assert store.lineage("port").fact.ref == "port"


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reads(as_role: AsRole, role: str) -> None:
    with FactStore.open(as_role(role)) as store:
        reads(store)


@pytest.mark.parametrize("role", ["supersede_reader", "supersede_analyst"])
def test_readers_call_no_verb(database: str, as_role: AsRole, role: str) -> None:
    before = dump(database)
    with FactStore.open(as_role(role)) as store:
        for verb in verbs(store):
            with pytest.raises(PrivilegeMissing, match="permission denied for function"):
                verb()
        with pytest.raises(PrivilegeMissing, match="permission denied for function replay"):
            store.replay([EVENT])
    assert dump(database) == before


@pytest.mark.parametrize("role", ["supersede_writer", "supersede_importer"])
def test_writers_call_every_verb(as_role: AsRole, role: str) -> None:
    with FactStore.open(as_role(role), actor="the writer") as store:
        for verb in verbs(store):
            assert verb().stamp
        assert {fact.ref for fact in store.facts().facts} == {"host", "port2"}


def test_writers_do_not_replay(database: str, as_role: AsRole) -> None:
    before = dump(database)
    with (
        FactStore.open(as_role("supersede_writer"), namespace="history") as store,
        pytest.raises(PrivilegeMissing, match="permission denied for function replay"),
    ):
        store.replay([EVENT])
    assert dump(database) == before


def test_importers_replay(as_role: AsRole) -> None:
    with FactStore.open(as_role("supersede_importer"), namespace="history") as store:
        store.replay([EVENT])
        assert store.facts(as_of="2020-01-01").facts[0].ref == "old"


def test_importers_do_not_go_behind_the_ledger(database: str, as_role: AsRole) -> None:
    before = dump(database)
    with (
        FactStore.open(as_role("supersede_importer")) as store,
        pytest.raises(OutOfOrder, match="already in the ledger"),
    ):
        store.replay([EVENT])
    assert dump(database) == before


@pytest.mark.parametrize("key", ["recorded_at", "id"])
def test_nobody_sets_system_time_through_a_verb(database: str, as_role: AsRole, key: str) -> None:
    """Transaction time is the store's alone."""
    before = dump(database)
    event = f'{{"claim": "old news", "{key}": "1999-01-01"}}'
    with psycopg.connect(as_role("supersede_writer")) as connection:
        with pytest.raises(psycopg.Error, match="set by the store; use replay") as failure:
            connection.execute("select supersede.remember(%s)", [event])
        assert failure.value.sqlstate == InvalidInput.sqlstate
    assert dump(database) == before


TABLES = [
    *("alembic_version", "configuration", "contested", "derivation", "embedding", "embedding_space"),
    *("erasure", "evidence", "fact", "fact_ref", "fact_version", "fact_version_closed"),
    *("fact_version_open", "namespace", "operation", "predicate", "secret", "supersedes"),
]

BYPASSES = {
    "insert": "insert into {table} select * from {table}",
    "update": "update {table} set {column} = {column}",
    "delete": "delete from {table}",
    "truncate": "truncate {table} cascade",
    "merge": "merge into {table} using {table} as s on false when not matched then do nothing "
    "when matched then delete",
    "lock": "lock table {table} in share row exclusive mode",
    "row lock": "select from {table} for update",
    "alter": "alter table {table} add column mine integer",
    "drop": "drop table {table} cascade",
}


def test_the_list_of_tables_is_complete(database: str) -> None:
    found = query(
        database,
        "select relname from pg_class where relnamespace = 'supersede'::regnamespace "
        "and relkind in ('r', 'p') order by relname",
    )
    assert [name for (name,) in found] == TABLES


@pytest.mark.parametrize("role", ROLES)
def test_nobody_but_the_owner_reads_the_key(database: str, as_role: AsRole, role: str) -> None:
    with (
        psycopg.connect(as_role(role)) as connection,
        pytest.raises(InsufficientPrivilege, match="secret"),
    ):
        connection.execute("select * from supersede.secret")


@pytest.mark.parametrize("role", ROLES)
def test_no_role_touches_a_row_by_itself(database: str, as_role: AsRole, role: str) -> None:
    """Every way around the verbs, for every table, is refused."""
    before = dump(database)
    allowed = []
    with psycopg.connect(as_role(role), autocommit=True) as connection:
        # Says that nothing was granted, and must be right.
        for table in TABLES:
            with suppress(InsufficientPrivilege):
                connection.execute(
                    sql.SQL("grant all on {} to current_user").format(sql.Identifier("supersede", table))
                )
            columns = connection.execute(
                "select attname from pg_attribute where attrelid = %s::regclass and attnum = 1",
                [f"supersede.{table}"],
            ).fetchall()
            for name, statement in BYPASSES.items():
                bypass = sql.SQL(statement).format(
                    table=sql.Identifier("supersede", table), column=sql.Identifier(columns[0][0])
                )
                try:
                    with connection.transaction():
                        connection.execute(bypass)
                    allowed.append((table, name))
                except psycopg.errors.InsufficientPrivilege:
                    pass
    assert allowed == []
    assert dump(database) == before


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "statement",
    [
        "set session_replication_role = replica",
        "create function supersede.clock() returns timestamptz return '1999-01-01'::timestamptz",
        "create or replace function supersede.clock() returns timestamptz return now()",
        "drop function supersede.clock()",
        "create table supersede.mine (a integer)",
        "create trigger mine before update on supersede.fact "
        "execute function suppress_redundant_updates_trigger()",
        "create rule mine as on insert to supersede.fact do instead nothing",
        "alter table supersede.fact disable trigger all",
        "alter schema supersede rename to mine",
        "drop extension btree_gist cascade",
    ],
)
def test_no_role_changes_the_rules(as_role: AsRole, role: str, statement: str) -> None:
    with psycopg.connect(as_role(role), autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as failure:
            connection.execute(statement)
        assert failure.value.sqlstate == "42501", failure.value


def test_each_role_executes_the_functions_meant_for_it(database: str) -> None:
    rows = query(
        database,
        "select r.role, replace(p.oid::regprocedure::text, 'supersede.', '') "
        "from pg_proc p, unnest(%s::text[]) as r(role) where p.pronamespace = 'supersede'::regnamespace "
        "and has_function_privilege(r.role, p.oid, 'execute')",
        ROLES,
    )
    allowed = {role: {function for r, function in rows if r == role} for role in ROLES}
    readers = allowed["supersede_reader"]
    assert allowed["supersede_analyst"] == readers
    assert allowed["supersede_writer"] - readers == VERBS
    assert allowed["supersede_importer"] - readers == VERBS | REPLAY | ERASE
    writes = query(
        database,
        "select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'supersede'::regnamespace "
        "and (p.prosecdef or p.prosrc ~* '\\m(insert into|update|delete from)\\M')",
    )
    assert readers.isdisjoint(name.replace("supersede.", "") for (name,) in writes)


def test_what_a_writer_plants_is_not_found_by_the_verbs(database: str, as_role: AsRole) -> None:
    """The verbs run as the owner: an object of the caller's must not stand in for one of ours."""
    with psycopg.connect(as_role("supersede_writer"), autocommit=True) as connection:
        connection.execute(
            "create temp table fact (like supersede.fact); "
            "create temp table operation (like supersede.operation); "
            "create temp table namespace (like supersede.namespace); "
            "create function pg_temp.clock() returns timestamptz return '1999-01-01'::timestamptz; "
            "create function pg_temp.greatest(timestamptz, timestamptz) returns timestamptz "
            "return '1999-01-01'::timestamptz; "
            "create function pg_temp.lower(text) returns text return 'planted'; "
            "set search_path = pg_temp, supersede, public"
        )
        connection.execute("""select supersede.remember('{"claim": "Straight", "ref": "straight", """
                           """"subject": "Who", "predicate": "is"}')""")  # fmt: skip
        assert connection.execute("select * from pg_temp.fact").fetchall() == []
        assert connection.execute("select * from pg_temp.operation").fetchall() == []
    stamped = query(
        database,
        "select f.stamp > '2020-01-01', f.subject_key from supersede.fact f join supersede.fact_ref r "
        "using (namespace, fact_id) where r.ref = 'straight'",
    )
    assert stamped == [(True, "who")]


def test_without_a_role_nothing_is_to_be_had(as_role: AsRole) -> None:
    with pytest.raises(PrivilegeMissing, match="permission denied for schema supersede"):
        FactStore.open(as_role())


def test_an_actor_is_a_note_not_a_privilege(as_role: AsRole, database: str) -> None:
    with FactStore.open(as_role("supersede_writer"), actor="postgres") as store:
        store.remember("a", ref="a")
        with pytest.raises(PrivilegeMissing):
            store.replay([EVENT])
    assert query(database, "select actor from supersede.operation where handle = 'a'") == [("postgres",)]


def test_a_refusal_repeats_no_claim(as_role: AsRole) -> None:
    with (
        FactStore.open(as_role("supersede_reader")) as store,
        pytest.raises(PrivilegeMissing) as failure,
    ):
        store.remember("the password is hunter2")
    assert "hunter2" not in str(failure.value)
    assert isinstance(failure.value.__cause__, psycopg.errors.InsufficientPrivilege)


def test_the_roles_cannot_log_in(database: str) -> None:
    assert (
        query(
            database,
            "select rolname from pg_roles where rolname = any (%s) and (rolcanlogin or rolsuper or "
            "rolcreatedb or rolcreaterole or rolbypassrls)",
            ROLES,
        )
        == []
    )


def test_init_as_a_writer_is_refused_in_a_sentence(as_role: AsRole, database: str) -> None:
    before = dump(database)
    with pytest.raises(PrivilegeMissing):
        FactStore.init(as_role("supersede_writer"))
    assert dump(database) == before


def test_only_an_importer_erases(database: str, as_role: AsRole) -> None:
    """Destruction is not for an agent that writes."""
    for role in ("supersede_reader", "supersede_analyst", "supersede_writer"):
        with FactStore.open(as_role(role)) as store, pytest.raises(PrivilegeMissing, match="erase"):
            store.erase("port", note="asked for by law")
    with FactStore.open(as_role("supersede_importer")) as store:
        done = store.erase("port", note="asked for by law")
        with pytest.raises(Erased):
            store.remember("The port is 5432")
    ((recorded,),) = query(database, "select stamp from supersede.fact")
    for role in ("supersede_writer", "supersede_reader"):
        with FactStore.open(as_role(role)) as store:
            assert store.facts(known_at=recorded).withheld.erased == 1
            with pytest.raises(PrivilegeMissing, match="lift_erasure"):
                store.lift_erasure(done, note="consent")
    with FactStore.open(as_role("supersede_importer")) as store:
        store.lift_erasure(done, note="consent")


def test_a_writer_is_told_what_was_erased(as_role: AsRole, store: FactStore) -> None:
    """Though it may not read the key."""
    store.erase("port", note="asked for by law")
    with FactStore.open(as_role("supersede_writer")) as writer, pytest.raises(Erased):
        writer.remember("the PORT is 5432")
