"""The command that loads a history: a file of events."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from supersede.cli.app import app, command
from supersede.cli.ending import Misused
from supersede.cli.ledgers import import_ledger
from supersede.cli.progress import counting
from supersede.cli.session import Session
from supersede.errors import EmbedderUnavailable, InvalidInput, SupersedeError

if TYPE_CHECKING:
    from supersede.ports import Embedder
    from supersede.results import Recorded
    from supersede.store import FactStore


BATCH = 1_000
_LEDGER = re.compile(rb'\s*\{\s*"supersede"\s*:\s*"ledger"')


class OutOfOrder(StrEnum):
    """What to do about an event that was recorded before those that are there."""

    refuse = "refuse"
    next_stamp = "next_stamp"


class Line(NamedTuple):
    """One line of a file: its number, counted from 1, and the event on it."""

    number: int
    event: dict[str, Any]


@command(app, "import", panel="Write")
def import_events(
    session: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON Lines in UTF-8, packed if it ends in .gz; - is stdin.")
    ],
    out_of_order: Annotated[
        OutOfOrder,
        typer.Option(help="For events older than what is there: refuse, or give them the next free stamp."),
    ] = OutOfOrder.refuse,
    unguarded_erasures: Annotated[  # noqa: FBT002 - an option, never passed by position
        bool,
        typer.Option(
            "--unguarded-erasures", help="Import a ledger that holds erasures without the key to them."
        ),
    ] = False,
) -> None:
    """Replay a history, or import a ledger that `supersede export` wrote: JSON Lines, packed or not.

    A ledger is written as it was, into namespaces that do not exist yet, all of it or nothing.

    An event of a history has "op" (remember, supersede, amend, end, retract, cite, declare_predicate),
    "recorded_at" and the arguments of that verb. Events are recorded by the thousand, all or none; run it
    again after a failure: what is there is recognised and skipped.
    """
    source = "stdin" if file == "-" else file
    counts = {"events": 0, "recorded": 0, "repeated": 0, "unembedded": 0}
    with _opened(file) as lines, session.open() as store:
        if _LEDGER.match(lines.peek(200)):
            import_ledger(session, store, lines, source, unguarded_erasures=unguarded_erasures)
            return
        with counting(f"replaying {source}", unit="events") as show:
            for batch, before in _batches(lines, source):
                for result in _replay(store, batch, source, before=before, out_of_order=out_of_order):
                    counts["repeated" if result.repeated else "recorded"] += 1
                    missing = result.created and result.embedded is False and not result.repeated
                    counts["unembedded"] += missing
                counts["events"] += len(batch)
                show(counts["events"])
    from supersede.cli import printing

    printing.as_json(counts) if session.json else printing.imported(counts, source)


@command(app, "embed", panel="Write")
def embed(
    session: Session,
    move_to: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compute the vectors of all facts in all namespaces with this model, then make it the "
            "active one; for the owner. Run it again after a failure: it goes on.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compute the vectors that facts lack, such as those recorded before a model was installed."""
    from supersede.cli import printing

    done = 0
    with session.open() as store, counting("embedding", unit="facts") as show:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            show(done)

        if move_to is not None:
            moved = store.move_embeddings(_embedder(move_to), progress=advance)
        else:
            filled = store.fill_embeddings(progress=advance)
    if move_to is not None:
        printing.as_json(moved.model_dump(mode="json")) if session.json else printing.moved(moved)
    else:
        printing.as_json({"embedded": filled}) if session.json else printing.embedded(filled)


def _embedder(name: str) -> Embedder:
    """The embedder of a model that can be had by its name.

    :raises EmbedderUnavailable: if it is none of ours, or its packages are not installed.
    """
    from supersede import adapters

    if name != adapters.LIGHT_MODEL:
        raise EmbedderUnavailable(
            f"no model {name!r} comes with this program, only {adapters.LIGHT_MODEL!r}; for any other, call "
            "FactStore.move_embeddings(embedder) in Python"
        )
    return adapters.load(name)


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    """A file, unpacked, or stdin, which stays open; its beginning can be looked at."""
    if file == "-":
        looked_at = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
        try:
            yield looked_at
        finally:
            looked_at.detach()
        return
    try:
        plain = Path(file).open("rb")  # noqa: SIM115 - closed below; what fails in between is not of opening
    except OSError as error:
        raise Misused(f"{file} cannot be read: {error.strerror}") from error
    with plain:
        try:
            with gzip.GzipFile(fileobj=plain) if file.endswith(".gz") else nullcontext(plain) as lines:
                yield lines
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InvalidInput(f"{file} is cut off, or not packed by gzip") from error


def _events(lines: Iterable[bytes], source: str) -> Iterator[Line]:
    """The events of a file; empty lines are skipped.

    :raises InvalidInput: naming the line that holds none.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{source}, line {number}: not UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{source}, line {number}: no JSON ({error})") from error
        if not isinstance(event, dict):
            raise InvalidInput(f"{source}, line {number}: no JSON object, but an event must be one")
        yield Line(number, event)


def _batches(lines: Iterable[bytes], source: str) -> Iterator[tuple[list[Line], int]]:
    """The events in lists that are each recorded in one transaction, with the last line before each.

    :raises InvalidInput: naming the line that holds no event, and what is recorded by then.
    """
    events = _events(lines, source)
    done = 0
    while True:
        try:
            batch = list(islice(events, BATCH))
        except InvalidInput as error:
            raise _placed(error, error.message, done) from error
        if not batch:
            return
        yield batch, done
        done = batch[-1].number


def _replay(
    store: FactStore, batch: list[Line], source: str, *, before: int, out_of_order: OutOfOrder
) -> list[Recorded]:
    """Replay one transaction's worth of events.

    :raises SupersedeError: what the failing event raised, with the line it stands on.
    """
    try:
        return store.replay([line.event for line in batch], out_of_order=out_of_order.value)
    except SupersedeError as error:
        position = error.details.get("position")
        if position is None:
            raise _placed(error, error.message, before) from error
        number, event = batch[position - 1]
        # The store counts within the batch; who wrote the file counts its lines.
        message = error.message.removeprefix(f"event {position} ").removeprefix(
            f"({event.get('op')} {event.get('ref') or event.get('by') or ''}): "
        )
        raise _placed(error, f"{source}, line {number}: {message}", before) from error


def _placed(error: SupersedeError, message: str, done: int) -> SupersedeError:
    """The error with another message, and with how far the file got."""
    so_far = f"lines 1 to {done:,} are recorded, nothing after them" if done else "nothing of it is recorded"
    return type(error)(f"{message} ({so_far})", details=error.details)
