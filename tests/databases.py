"""What tests do to their databases from outside the store."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from psycopg import sql

_TICKING = sql.SQL("clock_timestamp()")


def set_clock(url: str, instant: str | None) -> None:
    """Stop the clock of a database at an instant; None lets it tick again."""
    with psycopg.connect(url, autocommit=True) as connection:
        set_clock_over(connection, instant)


def set_clock_over(connection: psycopg.Connection[Any], instant: str | None) -> None:
    """As :func:`set_clock`, over an open connection."""
    time = _TICKING if instant is None else sql.SQL("{}::timestamptz").format(sql.Literal(instant))
    connection.execute(
        sql.SQL(
            "set timezone = 'UTC'; create or replace function supersede.clock() returns timestamptz "
            "language sql volatile parallel safe return {}"
        ).format(time)
    )


def execute(url: str, statement: str | sql.Composable) -> None:
    """Run statements as they are, each committed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def query(url: str, statement: str | sql.Composable, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of one query."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, parameters or None).fetchall()


Dump = dict[str, list[dict[str, Any]]]
"""Per table its rows, in an order of their own."""


def dump(url: str) -> Dump:
    """Every row of every table of the schema: equal dumps mean that nothing changed."""
    with psycopg.connect(url, autocommit=True) as connection:
        return dump_over(connection)


def dump_over(connection: psycopg.Connection[Any], *, namespace: str | None = None) -> Dump:
    """As :func:`dump`, over an open connection, and of one namespace's rows if one is given."""
    # What a row looks like as JSON depends on the session.
    connection.execute("set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set search_path = pg_catalog")
    tables = [
        name
        for (name,) in connection.execute(
            "select relname from pg_class where relnamespace = 'supersede'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition order by relname"
        )
    ]
    rows = sql.SQL(" union all ").join(
        sql.SQL("select {}, to_jsonb(t) from {} as t").format(
            sql.Literal(name), sql.Identifier("supersede", name)
        )
        for name in tables
    )
    found: Dump = {name: [] for name in tables}
    statement = sql.SQL(
        "select * from ({}) as r(name, row) where {ns}::text is null or row ->> 'namespace' = {ns} "
        "order by name, row::text"
    ).format(rows, ns=sql.Literal(namespace))
    for name, row in connection.execute(statement):
        found[name].append(row)
    return found


def named_dump(connection: psycopg.Connection[Any], namespace: str, *, ledger: bool) -> Dump:
    """What a namespace holds, its facts named by their first ref instead of the random id.

    ``ledger``: with the events as they were called, else only their verbs and stamps. Two namespaces of
    one name, in two databases, hold the same if these are equal.
    """
    rows = dump_over(connection, namespace=namespace)
    names: dict[str, str] = {}
    for row in sorted(rows["fact_ref"], key=lambda row: (row["stamp"], row["ref"])):
        names.setdefault(row["fact_id"], f"fact {row['ref']}")
    assert len(names) == len(rows["fact"]), "every fact needs a ref"
    for row in rows["fact_version"]:
        del row["version_id"]
    if not ledger:
        rows["operation"] = [{key: row[key] for key in ("stamp", "verb")} for row in rows["operation"]]
        rows["namespace"] = [{key: row[key] for key in ("namespace", "head")} for row in rows["namespace"]]
    return {table: sorted(json.loads(rename(found, names)), key=json.dumps) for table, found in rows.items()}


def rename(value: object, names: dict[str, str]) -> str:
    """A value as JSON, ids replaced by names wherever they stand."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    for fact_id, name in names.items():
        text = text.replace(fact_id, json.dumps(name)[1:-1])
    return text
