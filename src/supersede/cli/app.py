"""The program itself: its help, its own options, and how a function becomes a command of it.

Whatever a command needs beyond typer is imported when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NoReturn, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from supersede import __version__
from supersede.cli.ending import INTERRUPTED, MISUSED, PIPE_CLOSED, ending, stop_printing
from supersede.cli.session import SHARED, Actor, Debug, Json, Namespace, Options, Run, Session, Url

_EPILOG = (
    "A FACT is named by its ref or its id. WHEN is an instant in ISO 8601 with an offset, such as "
    "2026-07-24T09:00:00Z, or a date, which means midnight UTC.\n\n"
    "Exit status: 0 done, or answered; 1 failed: one line on stderr says why, and what to do; "
    "2 the command was not understood; 3 nothing was found (ask, facts), or the server does not run "
    "(db status); 130 interrupted."
)

C = TypeVar("C", bound=Callable[..., int | None])


class Program(TyperGroup):
    """The group of all commands: its errors come out in one line, and its end is an exit status."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run the command line; leaves by ``SystemExit`` unless ``standalone_mode`` is off."""
        session = Session()
        standalone = options.pop("standalone_mode", True)
        options |= {"standalone_mode": False, "obj": session}
        run = partial(super().main, *args, **options)
        status = ending(run, session)
        if standalone:
            sys.exit(status)
        return status


app = typer.Typer(
    name="supersede",
    cls=Program,
    help="A bitemporal fact store: what was believed, and valid, at the instant you ask about.",
    epilog=_EPILOG,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """The entry point of the program ``supersede``."""
    for stream in (sys.stdout, sys.stderr):
        # A claim may hold what the terminal's encoding lacks: better a ? than no answer.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        app(prog_name="supersede")
    except KeyboardInterrupt:  # before the command had begun
        sys.exit(INTERRUPTED)
    raise AssertionError("the program leaves by SystemExit")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature
    if wanted:
        typer.echo(f"supersede {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    *,
    url: Url = None,
    namespace: Namespace = None,
    actor: Actor = None,
    run: Run = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    del version  # its callback has printed it
    context.obj.take(
        {"url": url, "namespace": namespace, "actor": actor, "run": run, "json": json, "debug": debug}
    )
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(MISUSED)


def command(
    group: typer.Typer, name: str, *, panel: str | None = None, options: Options | None = None
) -> Callable[[C], C]:
    """Make a function a command of a group; it is passed the session, and returns the exit status.

    None is success.

    :param options: what it takes beside the options in its signature; the shared ones are always added,
        but for those that its signature has under the same name, which are its own.
    """

    def register(function: C) -> C:
        own = _own_parameters(function)
        mine = {each.name for each in own}

        def run(context: typer.Context, **said: Any) -> None:  # noqa: ANN401 - the command's options
            kept = {name: said.pop(name) for name in mine & said.keys()}
            context.obj.take(said)
            try:
                status = function(context.obj, **kept, **said)
                sys.stdout.flush()
            except BrokenPipeError:
                stop_printing()
                status = PIPE_CLOSED
            raise typer.Exit(status or 0)

        run.__doc__ = function.__doc__
        parameters = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *own,
            *(
                inspect.Parameter(
                    option, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
                )
                for option, (annotation, default) in {**(options or {}), **SHARED}.items()
                if option not in mine
            ),
        ]
        # typer reads the options from the signature, older versions from the annotations as well.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        group.command(name, rich_help_panel=panel)(run)
        return function

    return register


def _own_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
        for each in list(inspect.signature(function).parameters.values())[1:]
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
