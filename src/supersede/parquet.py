"""The tables as Parquet files, for those who analyse them elsewhere; they cannot be imported again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from supersede import facts, queries
from supersede.bulk import Progress
from supersede.errors import InvalidInput, NamespaceNotFound, ParquetMissing


def require() -> None:
    """See that Parquet files can be written.

    :raises ParquetMissing: if pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ParquetMissing from error


def export(
    connection: sa.Connection,
    folder: str | os.PathLike[str],
    *,
    namespaces: Sequence[str] | None,
    progress: Progress | None,
) -> dict[str, int]:
    """Write each table to a file of the folder, over a connection that reads one snapshot.

    :returns: rows by table.
    """
    found = {each.name for each in facts.exported(connection, namespaces)}
    if missing := sorted(set(namespaces or ()) - found):
        raise NamespaceNotFound(f"namespace {', '.join(map(repr, missing))} does not exist")
    home = Path(folder)
    parts = {name: home / f".{name}.{uuid4().hex}.part" for name in queries.TABLES}
    counts: dict[str, int] = {}
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{home}: {error.strerror}") from error
    try:
        for name, part in parts.items():
            counts[name] = _write(connection, name, part, namespaces, progress)
        for name, part in parts.items():
            part.replace(home / f"{name}.parquet")
    except OSError as error:
        raise InvalidInput(f"{home}: {error.strerror or error}") from error
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return counts


def _write(
    connection: sa.Connection,
    name: str,
    path: Path,
    namespaces: Sequence[str] | None,
    progress: Progress | None,
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(name)
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for rows in facts.table(connection, name, namespaces):
            columns = list(zip(*rows, strict=True))
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            count += len(rows)
            if progress is not None:
                progress(len(rows))
    return count


def _schema(name: str) -> Any:  # noqa: ANN401 - pyarrow is optional, and untyped
    import pyarrow as pa

    kinds = {"text": pa.string(), "instant": pa.timestamp("us", tz="UTC"), "boolean": pa.bool_()}
    return pa.schema([(column, kinds[kind]) for column, kind, _ in queries.TABLES[name]])
