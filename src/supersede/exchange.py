"""Export and import of the ledger: between a database and a file, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import sqlalchemy as sa

from supersede import facts
from supersede.bulk import BATCH, Progress
from supersede.errors import LedgerMismatch, NamespaceNotFound, SupersedeError
from supersede.facts import LedgerRow
from supersede.ledger import Header, LedgerSummary, NamespaceEntry, Reader, SpaceEntry, Writer
from supersede.periods import format_instant
from supersede.schema import HEAD_REVISION


def export(
    connection: sa.Connection,
    out: BinaryIO,
    *,
    namespaces: Sequence[str] | None,
    with_erasure_key: bool,
    progress: Progress | None,
) -> LedgerSummary:
    """Write the ledger of namespaces to an open file, over a connection that reads one snapshot.

    :raises NamespaceNotFound: for a namespace that does not exist.
    """
    header = _header(connection, namespaces, with_erasure_key=with_erasure_key)
    writer = Writer(out, header)
    told = 0
    for name in header.namespaces:
        for operation, rows in _operations(connection, name):
            _write(writer, name, operation, rows)
            if progress is not None and writer.operations - told >= BATCH:
                progress(writer.operations - told)
                told = writer.operations
    if progress is not None and writer.operations > told:
        progress(writer.operations - told)
    return writer.close()


def import_(
    connection: sa.Connection, reader: Reader, *, unguarded_erasures: bool, progress: Progress | None
) -> LedgerSummary:
    """Write a ledger into the database, inside the caller's transaction.

    :raises LedgerMismatch: if the ledger does not fit the database.
    :raises NamespaceExists: naming the namespaces that exist already.
    :raises InvalidLedger: naming the line, or the lines, that are wrong.
    """
    header = reader.header
    _, text_search = facts.state(connection)
    if header.text_search != text_search:
        raise LedgerMismatch(
            f"the ledger was made with text search configuration {header.text_search!r}, this database with "
            f"{text_search!r}: answers would differ; import it into a database made with "
            f"init(text_search={header.text_search!r})"
        )
    text = header.model_dump_json()
    facts.begin_import(connection, text, unguarded_erasures=unguarded_erasures)
    for batch in reader.batches():
        place = f"lines {batch.first} to {batch.last}"
        facts.import_operations(connection, batch.namespace, batch.lines, place=place)
        if progress is not None:
            progress(len(batch.lines))
    facts.end_import(connection, text)
    return reader.summary()


def _header(connection: sa.Connection, namespaces: Sequence[str] | None, *, with_erasure_key: bool) -> Header:
    found = facts.exported(connection, namespaces)
    missing = sorted(set(namespaces or ()) - {each.name for each in found})
    if missing:
        raise NamespaceNotFound(f"namespace {', '.join(map(repr, missing))} does not exist")
    _, text_search = facts.state(connection)
    spaces = sorted(facts.spaces(connection), key=lambda space: space.id)
    return Header(
        supersede="ledger",
        format=1,
        revision=HEAD_REVISION,
        text_search=text_search,
        spaces=tuple(
            SpaceEntry(
                model=space.model,
                dimensions=space.dimensions,
                min_similarity=space.min_similarity,
                near_duplicate=space.near_duplicate,
                active=space.active,
            )
            for space in spaces
        ),
        namespaces={
            each.name: NamespaceEntry(head=each.head, recorded_at=each.recorded_at) for each in found
        },
        erasures=sum(each.erasures for each in found),
        erasure_key=facts.erasure_key(connection) if with_erasure_key else None,
    )


def _operations(connection: sa.Connection, name: str) -> Iterator[tuple[LedgerRow, list[LedgerRow]]]:
    """Each operation with the rows that it wrote."""
    operation: LedgerRow | None = None
    rows: list[LedgerRow] = []
    for row in facts.ledger_rows(connection, name):
        if row.kind is None:
            if operation is not None:
                yield operation, rows
            operation, rows = row, []
        elif operation is None or row.stamp != operation.stamp:
            raise SupersedeError(
                f"namespace {name!r} holds {row.kind} at {row.stamp.isoformat()}, a stamp that is not in "
                "its ledger: this database was changed from outside"
            )
        else:
            rows.append(row)
    if operation is not None:
        yield operation, rows


def _write(writer: Writer, name: str, operation: LedgerRow, rows: list[LedgerRow]) -> None:
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(str(row.kind), []).append(row.row)
    wrote = ", ".join(f'"{kind}": [{", ".join(texts)}]' for kind, texts in kinds.items())
    writer.facts += len(kinds.get("facts", ()))
    writer.operation(
        {"namespace": name, "stamp": format_instant(operation.stamp), **json.loads(operation.row)},
        operation.event,
        operation.result,
        f"{{{wrote}}}" if wrote else "",
    )
