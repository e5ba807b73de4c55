"""What tests do to their databases from outside the store."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

_TICKING = sql.SQL("clock_timestamp()")


def set_clock(url: str, instant: str | None) -> None:
    """Stop the clock of a database at an instant; None lets it tick again."""
    time = _TICKING if instant is None else sql.SQL("{}::timestamptz").format(sql.Literal(instant))
    execute(
        url,
        sql.SQL(
            "set timezone = 'UTC'; create or replace function supersede.clock() returns timestamptz "
            "language sql volatile parallel safe return {}"
        ).format(time),
    )


def execute(url: str, statement: str | sql.Composable) -> None:
    """Run statements as they are, each committed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def query(url: str, statement: str | sql.Composable, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of one query."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchall()


def dump(url: str) -> dict[str, list[str]]:
    """Every row of every table of the schema, as text and sorted: equal dumps mean nothing changed."""
    with psycopg.connect(url, autocommit=True) as connection:
        return dump_over(connection)


def dump_over(connection: psycopg.Connection[Any], namespace: str | None = None) -> dict[str, list[str]]:
    """As :func:`dump`, over an open connection, and of one namespace's rows if one is given."""
    tables = connection.execute(
        "select c.relname, exists (select from pg_attribute a where a.attrelid = c.oid "
        "and a.attname = 'namespace') from pg_class c where c.relnamespace = 'supersede'::regnamespace "
        "and c.relkind in ('r', 'p') and not c.relispartition order by 1"
    ).fetchall()
    found: dict[str, list[str]] = {}
    for name, has_namespace in tables:
        statement = sql.SQL("select t::text from {} as t").format(sql.Identifier("supersede", name))
        if namespace is not None and has_namespace:
            statement += sql.SQL(" where t.namespace = {}").format(sql.Literal(namespace))
        found[name] = sorted(row[0] for row in connection.execute(statement))
    return found
