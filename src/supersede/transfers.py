"""Export and import as methods of the stores, sync and async."""

from __future__ import annotations

import os
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from supersede import engine as db
from supersede import exchange, ledger, parquet
from supersede.bulk import Progress
from supersede.errors import InvalidInput
from supersede.events import text
from supersede.ledger import LedgerFile, LedgerSummary


class Transfers:
    """What moves whole ledgers; part of :class:`supersede.store.FactStore`."""

    _engine: sa.Engine

    def export_ledger(
        self,
        file: LedgerFile,
        *,
        namespaces: Sequence[str] | None = None,
        with_erasure_key: bool = False,
        progress: Progress | None = None,
    ) -> LedgerSummary:
        """Write the ledger to a file, as it stands at one moment; equal stores give equal files.

        :param file: a path (packed where it ends in ``.gz``), or a file open for bytes.
        :param namespaces: which; else all.
        :param with_erasure_key: put the key of the erasure digests into the file, so that what was erased
            stays out of the store that imports it. Keep such a file as you keep the database.
        :param progress: called now and then with the number of operations written since.
        :raises NamespaceNotFound: for a namespace that does not exist.
        :raises PrivilegeMissing: if the key is asked for by anybody but the owner.
        """
        chosen = names(namespaces)
        with db.reading(self._engine) as connection, ledger.opened(file, "wb") as out:
            return exchange.export(
                connection, out, namespaces=chosen, with_erasure_key=with_erasure_key, progress=progress
            )

    def export_parquet(
        self,
        folder: str | os.PathLike[str],
        *,
        namespaces: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write facts, versions, edges, evidence, refs and operations to Parquet files of these names.

        Times are UTC, in microseconds; a bound is NULL where the period has none. For analysis elsewhere:
        only a ledger can be imported again.

        :param folder: made if it is not there; files of these names in it are replaced.
        :param namespaces: which; else all.
        :param progress: called now and then with the number of rows written since.
        :returns: the number of rows by table.
        :raises ParquetMissing: if pyarrow is not installed.
        :raises NamespaceNotFound: for a namespace that does not exist.
        """
        chosen = names(namespaces)
        parquet.require()
        with db.reading(self._engine) as connection:
            return parquet.export(connection, folder, namespaces=chosen, progress=progress)

    def import_ledger(
        self, file: LedgerFile, *, unguarded_erasures: bool = False, progress: Progress | None = None
    ) -> LedgerSummary:
        """Write a ledger file into namespaces that do not exist yet, all of it or nothing.

        The past is taken over as it was, and not made anew by the verbs: answers on any basis are equal
        where the file came from and here. Spaces are registered, the file's active one as the active one
        where there was none: open the store anew to use it. Needs the importer's privilege.

        :param unguarded_erasures: import a ledger that holds erasures without their key; what was erased
            can then be recorded again.
        :param progress: called now and then with the number of operations read since.
        :raises NamespaceExists: naming the namespaces that exist already.
        :raises LedgerMismatch: if the ledger does not fit this database.
        :raises InvalidLedger: naming the line that is wrong, or saying that the file is cut off.
        """
        with ledger.opened(file, "rb") as lines:
            reader = ledger.Reader(lines)
            with db.writing(self._engine) as connection:
                return exchange.import_(
                    connection, reader, unguarded_erasures=unguarded_erasures, progress=progress
                )


class AsyncTransfers:
    """As :class:`Transfers`; the file is read and written between the awaits, piece by piece."""

    _engine: AsyncEngine

    async def export_ledger(
        self,
        file: LedgerFile,
        *,
        namespaces: Sequence[str] | None = None,
        with_erasure_key: bool = False,
        progress: Progress | None = None,
    ) -> LedgerSummary:
        """Write the ledger to a file, as it stands at one moment."""
        chosen = names(namespaces)
        with ledger.opened(file, "wb") as out:
            return await db.read_async(
                self._engine,
                lambda connection: exchange.export(
                    connection,
                    out,
                    namespaces=chosen,
                    with_erasure_key=with_erasure_key,
                    progress=progress,
                ),
            )

    async def export_parquet(
        self,
        folder: str | os.PathLike[str],
        *,
        namespaces: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write facts, versions, edges, evidence, refs and operations to Parquet files of these names."""
        chosen = names(namespaces)
        parquet.require()
        return await db.read_async(
            self._engine,
            lambda connection: parquet.export(connection, folder, namespaces=chosen, progress=progress),
        )

    async def import_ledger(
        self, file: LedgerFile, *, unguarded_erasures: bool = False, progress: Progress | None = None
    ) -> LedgerSummary:
        """Write a ledger file into namespaces that do not exist yet, all of it or nothing."""
        with ledger.opened(file, "rb") as lines:
            reader = ledger.Reader(lines)
            return await db.write_async(
                self._engine,
                lambda connection: exchange.import_(
                    connection, reader, unguarded_erasures=unguarded_erasures, progress=progress
                ),
            )


def names(namespaces: Sequence[str] | None) -> list[str] | None:
    """The namespaces to export, each once; None for all.

    :raises InvalidInput: for what is no list of names.
    """
    if namespaces is None:
        return None
    if isinstance(namespaces, str) or not namespaces:
        raise InvalidInput("namespaces must be a list of names; leave it out for all")
    return sorted({text(name, "namespace") for name in namespaces})
