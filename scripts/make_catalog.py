"""Write docs/catalog.txt: the schema as PostgreSQL holds it, on one page.

    python scripts/make_catalog.py            # writes the page anew
    python scripts/make_catalog.py --check    # exit code 1 where it is out of date

A database is made on the server that the tests use, brought to the newest revision, read and dropped.
``alembic check`` does not see CHECKs, EXCLUDEs, partial predicates, defaults, functions or grants;
this page shows them all, so a change of any is a line in a diff. ``tests/test_schema.py`` compares it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "catalog.txt"

_HEADER = """\
The schema `supersede` as PostgreSQL holds it. Made by scripts/make_catalog.py; do not edit.
Columns: null where a column may be NULL. Functions: i immutable, s stable, v volatile; strict: NULL in,
NULL out; definer: runs as the owner. In brackets, what whom is granted beside the owner; roles are named
without their supersede_, and "all roles" are the four of them.
"""

_TYPES = """
select t.typname, string_agg(e.enumlabel, ', ' order by e.enumsortorder)
from pg_type t join pg_enum e on e.enumtypid = t.oid
where t.typnamespace = 'supersede'::regnamespace group by t.typname order by t.typname
"""

# Tables before their partitions; sequences and the like would show up with their kind.
_RELATIONS = """
select c.oid, c.relname, c.relkind::text, obj_description(c.oid, 'pg_class'),
       case when c.relkind = 'p' then 'partition by ' || pg_get_partkeydef(c.oid) end,
       (select i.inhparent::regclass::text from pg_inherits i where i.inhrelid = c.oid),
       pg_get_expr(c.relpartbound, c.oid),
       nullif(concat_ws(' ', case c.relpersistence when 'u' then 'unlogged' end,
              case when c.relrowsecurity then 'row security' end,
              case when c.relforcerowsecurity then 'forced' end,
              array_to_string(c.reloptions, ' ')), '')
from pg_class c
where c.relnamespace = 'supersede'::regnamespace and c.relkind not in ('i', 'I', 'c')
order by coalesce((select i.inhparent::regclass::text from pg_inherits i where i.inhrelid = c.oid),
                  c.oid::regclass::text), c.relispartition, c.relname
"""

_COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       case when a.attcollation <> t.typcollation
            then (select quote_ident(l.collname) from pg_collation l where l.oid = a.attcollation) end,
       pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '', a.attidentity <> '',
       col_description(a.attrelid, a.attnum)
from pg_attribute a
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""

# NOT NULL is told with the columns; only since PostgreSQL 18 is it a constraint as well.
_CONSTRAINTS = """
select conname, pg_get_constraintdef(oid), conparentid <> 0
from pg_constraint where conrelid = %s and contype <> 'n'
order by position(contype in 'pufxc'), conname
"""

_INDEXES = """
select c.relname, pg_get_indexdef(c.oid), c.relispartition, i.indisvalid
from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = %s
  and not exists (select from pg_constraint k
                  where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
order by c.relname
"""

_TRIGGERS = "select tgname, pg_get_triggerdef(oid) from pg_trigger where tgrelid = %s and not tgisinternal"

_FUNCTIONS = """
select p.oid, p.oid::regprocedure::text, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
       concat_ws(' ', l.lanname, p.provolatile, case when p.proisstrict then 'strict' end,
                 case when p.prosecdef then 'definer' end, case when p.proleakproof then 'leakproof' end,
                 'parallel ' || p.proparallel::text,
                 case when p.prokind <> 'f' then 'kind ' || p.prokind::text end),
       array_to_string(p.proconfig, '; '), obj_description(p.oid, 'pg_proc'), pg_get_functiondef(p.oid)
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = 'supersede'::regnamespace order by p.proname, p.oid::regprocedure::text
"""

# NULL means the built-in default: for a function that everybody may execute it.
_GRANTS = {
    "schema": "select nspacl, nspowner, 'n'::\"char\" from pg_namespace where oid = %s",
    "relation": "select relacl, relowner, 'r'::\"char\" from pg_class where oid = %s",
    "function": "select proacl, proowner, 'f'::\"char\" from pg_proc where oid = %s",
}
_GRANTED = """
select case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end,
       string_agg(a.privilege_type || case when a.is_grantable then ' (grantable)' else '' end, ' '
                  order by a.privilege_type)
from ({}) as o(acl, owner, kind),
     aclexplode(coalesce(o.acl, acldefault(o.kind, o.owner))) as a
where a.grantee <> o.owner group by 1 order by 1
"""
_ROLES = ["analyst", "importer", "reader", "writer"]
_COLUMN_GRANTS = """
select attname, attacl::text from pg_attribute where attrelid = %s and attacl is not null
"""


def catalog(connection: psycopg.Connection[Any], *, bodies: bool = False) -> str:
    """The page for the database of a connection; with ``bodies``, those of the functions as well."""
    with connection.transaction(force_rollback=True):
        # What pg_get_expr and the like qualify depends on the search path.
        connection.execute("set local search_path to pg_catalog")
        lines = [_HEADER]
        schema = connection.execute("select 'supersede'::regnamespace::oid").fetchall()[0][0]
        lines.append(f"schema supersede{_grants(connection, 'schema', schema)}\n")
        lines.extend(f"type {name}: {labels}" for name, labels in connection.execute(_TYPES))
        for relation in connection.execute(_RELATIONS).fetchall():
            lines.extend(["", *_relation(connection, relation)])
        lines.append("")
        for function in connection.execute(_FUNCTIONS).fetchall():
            lines.extend(_function(connection, function, bodies=bodies))
    return "\n".join(lines) + "\n"


def _relation(connection: psycopg.Connection[Any], relation: tuple[Any, ...]) -> list[str]:
    oid, name, kind, comment, parted, parent, bound, options = relation
    what = {"r": "table", "p": "table", "v": "view", "S": "sequence"}.get(kind, f"relation of kind {kind}")
    title = f"{what} {name}"
    title += "".join(f" {part}" for part in (parted, parent and f"of {parent} {bound}", options) if part)
    lines = [title + _grants(connection, "relation", oid)]
    if comment:
        lines.append(f"  -- {comment}")
    columns = _columns(connection, oid)
    if parent:
        own = connection.execute("select %s::regclass::oid", [parent]).fetchall()[0][0]
        inherited = _columns(connection, own)
        columns = [column for column in columns if column not in inherited]
    lines.extend(columns)
    lines.extend(
        f"  grants on {column}: {granted}" for column, granted in connection.execute(_COLUMN_GRANTS, [oid])
    )
    lines.extend(
        f"  {'inherited ' if inherited else ''}constraint {constraint} {definition}"
        for constraint, definition, inherited in connection.execute(_CONSTRAINTS, [oid])
    )
    lines.extend(
        f"  {'inherited ' if inherited else ''}{_short(definition)}{'' if valid else ' INVALID'}"
        for _, definition, inherited, valid in connection.execute(_INDEXES, [oid])
    )
    lines.extend(
        f"  trigger {trigger} {definition}" for trigger, definition in connection.execute(_TRIGGERS, [oid])
    )
    return lines


def _columns(connection: psycopg.Connection[Any], oid: int) -> list[str]:
    return [
        "  "
        + " ".join(
            str(part)
            for part in (
                name,
                type_,
                collation and f"collate {collation}",
                None if not_null else "null",
                default and f"{'generated' if generated else 'default'} {default}",
                "identity" if identity else None,
                comment and f"-- {comment}",
            )
            if part
        )
        for name, type_, not_null, collation, default, generated, identity, comment in connection.execute(
            _COLUMNS, [oid]
        ).fetchall()
    ]


def _short(definition: str) -> str:
    """An index without saying again where it is."""
    return definition.replace("CREATE ", "").replace("supersede.", "")


def _function(connection: psycopg.Connection[Any], function: tuple[Any, ...], *, bodies: bool) -> list[str]:
    oid, signature, arguments, result, properties, settings, comment, definition = function
    name = signature.partition("(")[0].removeprefix("supersede.")
    line = f"function {name}({arguments}) returns {result} [{properties}]"
    line += f" set {settings}" if settings else ""
    lines = [line + _grants(connection, "function", oid)]
    if comment:
        lines.append(f"  -- {comment}")
    if bodies:
        lines.append(definition)
    return lines


def _grants(connection: psycopg.Connection[Any], kind: str, oid: int) -> str:
    holders: dict[str, list[str]] = {}
    for role, privileges in connection.execute(_GRANTED.format(_GRANTS[kind]), [oid]):
        holders.setdefault(privileges, []).append(role.removeprefix("supersede_"))
    return "".join(
        f" ({privileges}: {'all roles' if roles == _ROLES else ' '.join(roles)})"
        for privileges, roles in sorted(holders.items())
    )


def current() -> str:
    """The page for the source tree as it is, from a database made for it."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    from servers import find_server, new_database
    from supersede import engine, migrate

    with find_server() as server, new_database(server, "catalog") as (_, url):
        own = engine.make_engine(url)
        try:
            migrate.init(own, text_search="english")
        finally:
            own.dispose()
        with psycopg.connect(url, autocommit=True) as connection:
            return catalog(connection)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    page = current()
    if arguments.check:
        if PAGE.read_text(encoding="utf-8") == page:
            return 0
        print(f"{PAGE} is out of date: run python scripts/make_catalog.py", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
