"""Reads the ledger row by row, and writes the lines of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
import sqlalchemy as sa

from supersede import queries
from supersede.errors import InvalidLedger

# Rows that are on their way from the server at a time.
_ROWS = 2_000
_GROUP = 20_000


class LedgerRow(NamedTuple):
    """A row of :func:`supersede.queries.ledger_rows`; ``kind`` is None for the operation itself."""

    stamp: datetime
    kind: str | None
    row: str
    event: str | None
    result: str | None


class Exported(NamedTuple):
    """A namespace on its way into a file."""

    name: str
    head: datetime
    recorded_at: datetime
    erasures: int


def exported(connection: sa.Connection, names: Sequence[str] | None) -> list[Exported]:
    """The namespaces to export that exist, by name; None: all."""
    rows = connection.execute(queries.exported(None if names is None else list(names)))
    return [Exported(*row) for row in rows]


def ledger_rows(connection: sa.Connection, namespace: str) -> Iterator[LedgerRow]:
    """The ledger of a namespace, each operation before the rows that it wrote; a few at a time."""
    rows = connection.execute(
        queries.ledger_rows(), {"namespace": namespace}, execution_options={"yield_per": _ROWS}
    )
    for stamp, place, _, row, event, result in rows:
        yield LedgerRow(stamp, queries.KINDS[place - 1] if place else None, row, event, result)


def table(
    connection: sa.Connection, name: str, namespaces: Sequence[str] | None
) -> Iterator[Sequence[sa.Row[Any]]]:
    """The rows of a table of :data:`supersede.queries.TABLES`, some thousands at a time."""
    statement = queries.table(name, None if namespaces is None else list(namespaces))
    rows = connection.execute(statement, execution_options={"yield_per": _GROUP})
    yield from rows.partitions(_GROUP)


def erasure_key(connection: sa.Connection) -> str:
    """The key of the erasure digests as hexadecimal digits; for the owner alone."""
    return str(
        connection.execute(sa.text("select encode(erasure_key, 'hex') from supersede.secret")).scalar_one()
    )


def begin_import(connection: sa.Connection, header: str, *, unguarded_erasures: bool) -> None:
    """Make the namespaces and spaces that the header of a ledger names."""
    connection.execute(
        sa.text("select supersede.begin_import(cast(:header as jsonb), :unguarded)"),
        {"header": header, "unguarded": unguarded_erasures},
    )


def import_operations(connection: sa.Connection, namespace: str, lines: Sequence[str], *, place: str) -> None:
    """Write lines of a ledger.

    :param place: where they stand, for errors.
    :raises InvalidLedger: if a constraint refuses what they say.
    """
    with _refused(place):
        connection.execute(
            sa.text(
                "select supersede.import_operations(:namespace, cast(cast(:lines as text[]) as jsonb[]))"
            ),
            {"namespace": namespace, "lines": list(lines)},
        )


def end_import(connection: sa.Connection, header: str) -> None:
    """Give the imported namespaces their heads."""
    connection.execute(sa.text("select supersede.end_import(cast(:header as jsonb))"), {"header": header})


@contextmanager
def _refused(place: str) -> Iterator[None]:
    try:
        yield
    except sa.exc.DBAPIError as error:
        cause = error.orig
        state = getattr(cause, "sqlstate", None) or ""
        if isinstance(cause, psycopg.Error) and (state[:2] in {"22", "23", "54"} or state == "SU032"):
            constraint = cause.diag.constraint_name
            said = cause.diag.message_primary if state == "SU032" else f"PostgreSQL refused a row ({state}"
            if state != "SU032":
                said = f"{said}, {constraint})" if constraint else f"{said})"
            raise InvalidLedger(f"{place}: {said}") from cause
        raise
