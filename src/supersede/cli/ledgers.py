"""The commands that move whole ledgers: export, and the import of what it wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from supersede.cli.app import app, command
from supersede.cli.ending import Misused
from supersede.cli.progress import counting
from supersede.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from supersede.ledger import LedgerSummary
    from supersede.store import FactStore


@command(app, "export", panel="Read")
def export(
    session: Session,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Packed if it ends in .gz; - is stdout.", show_default=False),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(
            "--parquet", metavar="FOLDER", help="Write the tables as Parquet files.", show_default=False
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--in", metavar="NAME", help="Only this namespace; may be repeated.", show_default=False
        ),
    ] = None,
    with_erasure_key: Annotated[  # noqa: FBT002 - an option, never passed by position
        bool,
        typer.Option("--with-erasure-key", help="Put the key into the file that keeps erased facts out."),
    ] = False,
) -> None:
    """Write the ledger to a file that `supersede import` reads: all namespaces, or those of --in.

    Imported elsewhere, it gives the same answers for every instant. The form is described in docs/export.md.
    """
    if (file is None) == (parquet is None):
        raise Misused("give a FILE, or --parquet with a FOLDER; not both")
    chosen = namespaces or ([session.namespace] if session.namespace else None)
    with session.open() as store:
        if parquet is not None:
            _export_parquet(session, store, parquet, chosen)
        elif file is not None:
            _export_ledger(session, store, file, chosen, with_erasure_key=with_erasure_key)


def _export_ledger(
    session: Session, store: FactStore, file: str, namespaces: list[str] | None, *, with_erasure_key: bool
) -> None:
    with counting("exporting", unit="operations") as show:
        done = store.export_ledger(
            sys.stdout.buffer if file == "-" else file,
            namespaces=namespaces,
            with_erasure_key=with_erasure_key,
            progress=_adding(show),
        )
    if file != "-":  # else stdout holds the ledger
        _say(session, done, f"{file}: ")
    if done.erasures and not done.erasure_key:
        print(
            f"supersede: warning: the file holds {done.erasures:,} erasures without their key: imported "
            "elsewhere, nothing keeps what was erased from being recorded again; give "
            "--with-erasure-key to include it",
            file=sys.stderr,
        )


def _export_parquet(session: Session, store: FactStore, folder: str, namespaces: list[str] | None) -> None:
    with counting("exporting", unit="rows") as show:
        rows = store.export_parquet(folder, namespaces=namespaces, progress=_adding(show))
    from supersede.cli import printing

    if session.json:
        printing.as_json(rows)
    else:
        print(f"{folder}: " + ", ".join(f"{count:,} {table}" for table, count in rows.items()))


def import_ledger(
    session: Session,
    store: FactStore,
    file: BinaryIO,
    source: str,
    *,
    unguarded_erasures: bool,
) -> None:
    """Import a ledger, into the namespaces that it names.

    :raises Misused: if a namespace was said.
    """
    if session.namespace:
        raise Misused(f"{source} is a ledger, which names its own namespaces: leave --namespace out")
    with counting(f"importing {source}", unit="operations") as show:
        done = store.import_ledger(file, unguarded_erasures=unguarded_erasures, progress=_adding(show))
    _say(session, done, f"{source}: ")


def _adding(show: Callable[[float], None]) -> Callable[[int], None]:
    total = 0

    def add(count: int) -> None:
        nonlocal total
        total += count
        show(total)

    return add


def _say(session: Session, done: LedgerSummary, start: str) -> None:
    from supersede.cli import printing

    if session.json:
        printing.as_json(done)
    else:
        counts = [
            f"{count:,} {unit}{'' if count == 1 else 's'}"
            for count, unit in (
                (done.operations, "operation"),
                (done.facts, "fact"),
                (len(done.heads), "namespace"),
            )
        ]
        print(f"{start}{counts[0]} on {counts[1]} in {counts[2]}")
