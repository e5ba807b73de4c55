"""The command that undoes what others wrote: a plan first, then the deed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supersede.cli import options
from supersede.cli.app import app, command
from supersede.cli.ending import Misused
from supersede.cli.progress import waiting
from supersede.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text

    from supersede.results import Given, LeftAlone
    from supersede.undone import Undoing, UndoneOperation

_LEFT_ALONE = {
    "taken_since": "a later operation took it",
    "believed_since": "a later operation believes it",
    "confirmed_since": "sources that were added to it since; it is withdrawn all the same",
    "amends_it": "it amends what is withdrawn",
    "superseded_since": "superseded since",
    "ended_since": "ended since",
    "retracted_since": "retracted since",
    "undone_since": "the operation that had given it is undone",
    "slot_held": "another value holds the slot",
    "erased": "erased",
}
_SKIPPED = {
    "history": "gave and took no validity; stays",
    "already_undone": "undone already",
    "undo_of_selected": "undoes the one before it, which stays undone",
}


def _selector(help: str) -> object:
    return typer.Option(metavar="NAME", help=help, show_default=False)


@command(app, "undo", panel="Write")
def undo(
    session: Session,
    actor: Annotated[str | None, _selector("Undo what this actor did.")] = None,
    run: Annotated[str | None, _selector("Undo what belongs to this run; needs no --since.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="Undo what made facts that have no other source.", show_default=False
        ),
    ] = None,
    stamp: Annotated[str | None, options.when("Undo the one operation recorded then.")] = None,
    since: Annotated[str | None, options.when("Only what was recorded from then on.")] = None,
    until: Annotated[str | None, options.when("Only what was recorded before then.")] = None,
    apply: Annotated[  # noqa: FBT002 - an option, never passed by position
        bool, typer.Option("--apply", help="Do it; otherwise only the plan is printed.")
    ] = False,
    based_on: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The plan that `undo --json` printed (- is stdin); refused if it would do something else.",
            show_default=False,
        ),
    ] = None,
    handle: options.Handle = None,
    note: options.Note = None,
) -> None:
    """Undo what an over-eager actor, run or source did; without --apply, print what that would do.

    What it gave is withdrawn, what it took is believed again, and what others did since is left alone.

    Who undoes is said before the command: supersede --actor me undo --actor model --since 2026-07-01.
    """
    if actor is None and run is None and source is None and stamp is None:
        raise Misused("say whose operations: --actor, --run or --source (with --since), or --stamp")
    plan = _read_plan(based_on) if based_on is not None else None
    with session.open() as store, waiting("undoing" if apply else "planning"):
        found = store.undo(
            actor=actor,
            run=run,
            source=source,
            stamp=stamp,
            since=since,
            until=until,
            dry_run=not apply,
            based_on=plan,
            handle=handle,
            note=note,
        )
    from supersede.cli import printing

    printing.as_json(found) if session.json else _print(found)


def _read_plan(file: str) -> Undoing:
    """The plan in a file.

    :raises Misused: if it cannot be read, or holds none.
    """
    from pydantic import ValidationError

    from supersede.errors import SupersedeError
    from supersede.undone import Undoing

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        return Undoing.model_validate_json(text)
    except (ValidationError, SupersedeError) as error:
        raise Misused(f"{file} holds no plan; `supersede undo --json` prints one") from error


def _print(found: Undoing) -> None:
    from rich.table import Table
    from rich.text import Text

    from supersede.cli import printing

    out = printing.console()
    if found.operations:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("recorded", "operation", "by", "what becomes of it"):
            table.add_column(heading, overflow="fold")
        for operation in found.operations:
            table.add_row(
                printing.moment(operation.stamp),
                operation.verb,
                printing.line(operation.actor or ""),
                Text("\n").join(_lines(operation)),
            )
        out.print(table)
    done = sum(operation.skipped is None for operation in found.operations)
    said = f"{done:,} operation{'' if done == 1 else 's'}"
    if found.repeated:
        summary = f"{said} undone by this call before; nothing written"
    elif found.dry_run:
        summary = f"{said} would be undone; nothing written" + (", --apply does it" if done else "")
    else:
        summary = f"{said} undone"
    printing.paragraph(out, Text(summary))
    if found.notice:
        printing.paragraph(out, Text(printing.plain(found.notice), style="magenta"))


def _lines(operation: UndoneOperation) -> list[Text]:
    from rich.text import Text

    if operation.skipped is not None:
        return [Text(_SKIPPED[operation.skipped])]
    found = [
        *(Text(f"withdrawn: {each}") for each in _each(operation.withdrawn)),
        *(Text(f"given back: {each}") for each in _each(operation.given_back)),
        *(
            Text(f"left alone: {each}: {_LEFT_ALONE[given.reason]}{_by(given)}", style="yellow")
            for given, each in zip(operation.left_alone, _each(operation.left_alone), strict=True)
        ),
    ]
    return found or [Text("nothing is left of it to undo")]


def _each(facts: Iterable[Given | LeftAlone]) -> Iterator[str]:
    from supersede.cli import printing

    for fact in facts:
        yield ", ".join([printing.name(fact), *(printing.span(period) for period in fact.valid)])


def _by(given: LeftAlone) -> str:
    from supersede.cli import printing

    return f" ({printing.name(given.by)})" if given.by else ""
