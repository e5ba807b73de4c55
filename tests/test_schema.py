"""The schema in the database: reversible, as the metadata and the page say, fit to be distributed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command

from databases import execute, query
from supersede import FactStore, SupersedeError, engine, migrate
from supersede.schema import HEAD_REVISION

ROOT = Path(__file__).parent.parent

# Copied to every node of a cluster, so without a namespace; and alembic's own.
REFERENCE_TABLES = {"secret", "configuration", "embedding_space", "alembic_version"}


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_catalog = load_script("make_catalog")


def catalog(url: str, *, bodies: bool = False) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        return make_catalog.catalog(connection, bodies=bodies)


@pytest.fixture
def own_engine(database: str) -> Iterator[sa.Engine]:
    own = engine.make_engine(database)
    yield own
    own.dispose()


# --- revisions


def test_up_down_up_gives_an_identical_catalog(
    database: str, own_engine: sa.Engine, store: FactStore
) -> None:
    store.remember("a fact that is in the way", sources=["somewhere"])
    before = catalog(database, bodies=True)
    assert "function remember" in before
    with own_engine.begin() as connection:
        migrate.downgrade(connection, "base")
    assert left_behind(database) == ["alembic_version", "alembic_version_pkc"]
    with own_engine.begin() as connection:
        migrate.upgrade(connection)
    assert catalog(database, bodies=True) == before


def left_behind(url: str) -> list[str]:
    """Everything in the schema, whatever it is, but the row types of tables."""
    rows = query(
        url,
        """
        select relname from pg_class where relnamespace = 'supersede'::regnamespace
        union all select proname from pg_proc where pronamespace = 'supersede'::regnamespace
        union all select typname from pg_type
                  where typnamespace = 'supersede'::regnamespace and typrelid = 0 and typelem = 0
        union all select oprname from pg_operator where oprnamespace = 'supersede'::regnamespace
        order by 1""",
    )
    return [name for (name,) in rows]


def test_each_revision_goes_down_and_up_alone(database: str, own_engine: sa.Engine) -> None:
    before = catalog(database, bodies=True)
    with own_engine.begin() as connection:
        migrate.downgrade(connection, "0001")
        assert migrate.current_revision(connection) == "0001"
    # The roles belong to the cluster, where another database may need them.
    assert query(database, "select count(*) from pg_roles where rolname like 'supersede\\_%'") == [(4,)]
    assert not re.search(r": (all roles|[a-z ]*(reader|writer)[a-z ]*)\)", catalog(database))
    with own_engine.begin() as connection:
        migrate.upgrade(connection)
    assert catalog(database, bodies=True) == before


def test_a_failing_init_leaves_the_database_as_it_was(empty_database: str) -> None:
    execute(empty_database, "create schema supersede; create table supersede.operation (mine integer)")
    with pytest.raises(SupersedeError):
        FactStore.init(empty_database)
    assert left_behind(empty_database) == ["operation"]
    assert query(empty_database, "select extname from pg_extension") == [("plpgsql",)]


def test_the_metadata_and_the_revisions_agree(own_engine: sa.Engine) -> None:
    """alembic check; what it cannot see is on the page."""
    with own_engine.begin() as connection:
        command.check(migrate._config(connection))


def test_alembic_check_would_find_a_difference(own_engine: sa.Engine) -> None:
    from alembic.util import CommandError

    with own_engine.begin() as connection:
        connection.execute(sa.text("alter table supersede.fact add column extra text"))
        connection.execute(sa.text("drop index supersede.fact_stamp_idx"))
        with pytest.raises(CommandError, match=r"(?s)extra|fact_stamp_idx"):
            command.check(migrate._config(connection))


@pytest.mark.parametrize("look", [command.check, command.current], ids=["check", "current"])
def test_only_an_upgrade_applies_the_functions(own_engine: sa.Engine, look: Any) -> None:
    gone = "select to_regprocedure('supersede.cite(jsonb, text, text)') is null"
    with own_engine.begin() as connection:
        connection.execute(sa.text("drop function supersede.cite(jsonb, text, text)"))
        look(migrate._config(connection))
        assert connection.execute(sa.text(gone)).scalar_one() is True
        migrate.upgrade(connection)
        assert connection.execute(sa.text(gone)).scalar_one() is False


def test_the_head_in_the_code_is_the_newest_revision(own_engine: sa.Engine) -> None:
    from alembic.script import ScriptDirectory

    with own_engine.begin() as connection:
        script = ScriptDirectory.from_config(migrate._config(connection))
        assert script.get_heads() == [HEAD_REVISION]
        # "Newer than this one" is decided by comparing the texts.
        revisions = [revision.revision for revision in script.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True)


def test_the_page_shows_the_schema_as_it_is(database: str) -> None:
    page = (ROOT / "docs" / "catalog.txt").read_text(encoding="utf-8")
    assert catalog(database) == page, "the schema changed: run python scripts/make_catalog.py"


@pytest.mark.parametrize(
    "change",
    [
        "alter table supersede.fact_version_open drop constraint fact_version_open_slot_excl",
        "alter table supersede.fact drop constraint fact_kind_size, "
        "add constraint fact_kind_size check (octet_length(kind) between 1 and 256)",
        "alter table supersede.configuration alter only_row set default false",
        "alter table supersede.fact alter claim set not null",
        "drop index supersede.operation_handle_key; create unique index operation_handle_key "
        "on supersede.operation (namespace, handle, verb)",
        "alter function supersede.remember(jsonb, text, text, halfvec, smallint, boolean) security invoker",
        "alter function supersede.cite(jsonb, text, text) set search_path = public",
        "alter function supersede.is_current(tstzrange, tstzrange, timestamptz, timestamptz) stable",
        "grant update (claim) on supersede.fact to supersede_writer",
        "grant execute on function supersede.digest(jsonb) to public",
        "alter type supersede.trust add value 'rumour'",
        "comment on table supersede.fact is null",
        "alter table supersede.fact enable row level security",
        "create view supersede.peek as select 1 as one",
        "create sequence supersede.counter",
    ],
)
def test_no_change_escapes_the_page(database: str, change: str) -> None:
    before = catalog(database)
    execute(database, change)
    assert catalog(database) != before


# --- what it takes to be distributed by namespace


def test_nothing_happens_by_triggers(database: str) -> None:
    assert (
        query(
            database,
            "select tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid "
            "where c.relnamespace = 'supersede'::regnamespace and not t.tgisinternal "
            "union all select evtname from pg_event_trigger "
            "union all select rulename from pg_rules where schemaname = 'supersede'",
        )
        == []
    )


def test_no_number_is_handed_out_for_the_whole_database(database: str) -> None:
    assert (
        query(
            database,
            "select relname from pg_class where relnamespace = 'supersede'::regnamespace and relkind = 'S' "
            "union all select attname from pg_attribute a join pg_class c on c.oid = a.attrelid "
            "where c.relnamespace = 'supersede'::regnamespace and a.attidentity <> ''",
        )
        == []
    )


KEYS = """
select c.relname, k.conname, k.contype::text, f.relname,
       array(select a.attname from unnest(k.conkey) with ordinality as u(n, i)
             join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n order by u.i),
       array(select a.attname from unnest(k.confkey) with ordinality as u(n, i)
             join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n order by u.i),
       array(select o.oprname from unnest(k.conexclop) with ordinality as u(n, i)
             join pg_operator o on o.oid = u.n order by u.i)
from pg_constraint k
join pg_class c on c.oid = k.conrelid
left join pg_class f on f.oid = k.confrelid
where c.relnamespace = 'supersede'::regnamespace and k.contype in ('p', 'u', 'x', 'f')
"""


def test_the_namespace_is_in_every_key_with_equality(database: str) -> None:
    seen = set()
    for table, name, kind, referenced, columns, referenced_columns, operators in query(database, KEYS):
        if table in REFERENCE_TABLES or referenced in REFERENCE_TABLES:
            continue
        seen.add(kind)
        assert "namespace" in columns, name
        if kind == "f":
            # From the same namespace to the same namespace: no edge crosses.
            assert referenced_columns[columns.index("namespace")] == "namespace", name
        if kind == "x":
            assert operators[columns.index("namespace")] == "=", name
    assert seen == {"p", "f", "x"}


def test_deleting_a_row_deletes_no_other(database: str) -> None:
    """A foreign key that cascades would be a way around append-only."""
    actions = query(
        database,
        "select distinct confdeltype::text, confupdtype::text from pg_constraint "
        "where contype = 'f' and connamespace = 'supersede'::regnamespace",
    )
    assert actions == [("a", "a")]


INDEXES = """
select c.relname, i.relname, m.amname, x.indisunique,
       array(select pg_get_indexdef(x.indexrelid, n, true) from generate_series(1, x.indnkeyatts) as n)
from pg_index x
join pg_class c on c.oid = x.indrelid
join pg_class i on i.oid = x.indexrelid
join pg_am m on m.oid = i.relam
where c.relnamespace = 'supersede'::regnamespace
"""


def test_the_namespace_stands_first_in_btrees_and_last_in_gist_keys(database: str) -> None:
    methods = set()
    for table, name, method, unique, keys in query(database, INDEXES):
        if table in REFERENCE_TABLES:
            continue
        methods.add(method)
        if method == "btree":
            assert keys[0] == "namespace", name
        elif method == "gist":
            assert keys[-1] == "namespace", name
            assert "namespace" not in keys[:-1], name
        else:
            assert not unique, name
    assert methods >= {"btree", "gist"}


FUNCTIONS = """
select p.oid::regprocedure::text, p.prosecdef, p.provolatile::text, p.proisstrict, l.lanname,
       coalesce(p.proconfig, '{}'),
       exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
               where a.grantee = 0)
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = 'supersede'::regnamespace
"""


def test_no_function_sets_anything_but_its_search_path(database: str) -> None:
    definers = 0
    for name, definer, _, _, _, settings, _ in query(database, FUNCTIONS):
        assert all(setting.startswith("search_path=") for setting in settings), name
        if definer:
            definers += 1
            # No schema in which anybody else may create, and pg_temp named, so that it comes last.
            assert settings == ["search_path=pg_catalog, pg_temp"], name
    assert definers >= 9


def test_nothing_is_open_to_everybody(database: str) -> None:
    assert [row[0] for row in query(database, FUNCTIONS) if row[6]] == []
    assert (
        query(
            database,
            "select relname from pg_class, aclexplode(relacl) as a "
            "where relnamespace = 'supersede'::regnamespace and a.grantee = 0 "
            "union all select nspname from pg_namespace, aclexplode(nspacl) as a "
            "where nspname = 'supersede' and a.grantee = 0",
        )
        == []
    )


def test_currency_is_inlined_wherever_it_stands(database: str) -> None:
    plan = query(
        database,
        "explain (verbose, costs off) select fact_id from supersede.fact_version "
        "where supersede.is_current(valid_time, tx_time, '2026-01-01Z', '2026-01-01Z')",
    )
    text = "\n".join(line for (line,) in plan)
    assert "is_current" not in text
    assert "valid_time @>" in text
    assert "tx_time @>" in text


def test_alembic_is_no_package() -> None:
    """With an __init__.py, ``import alembic`` from the checkout would find this folder."""
    assert (ROOT / "alembic" / "versions").is_dir()
    assert list((ROOT / "alembic").rglob("__init__.py")) == []


def test_sessions_are_set_for_a_transaction_only() -> None:
    """What outlives a transaction reaches the next user of a pooled connection."""
    found = []
    for path in [
        *(ROOT / "sql").rglob("*.sql"),
        *(ROOT / "src").rglob("*.py"),
        *ROOT.glob("alembic/**/*.py"),
    ]:
        text = path.read_text(encoding="utf-8").casefold()
        found += [
            f"{path.name}: {match[0]}"
            for match in re.finditer(
                r"set\s+session\b|set_config\([^)]*,\s*false\)|(?<!update )\bset\s+role\b", text
            )
        ]
    assert found == []


def test_one_object_a_file() -> None:
    """sql/ can be re-applied in any state: every file is ``create or replace`` of what it is named for."""
    for path in sorted((ROOT / "sql").glob("*/*.sql")):
        made = re.findall(
            r"^create (?:or replace )?(?:function|view|procedure)\s+supersede\.\"?(\w+)\"?",
            path.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
        assert made == [path.stem.partition("_")[2]], path.name
