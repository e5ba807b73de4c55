"""The commands that destroy what a fact said, and what is left of it in the files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from supersede.cli import options
from supersede.cli.app import app, command
from supersede.cli.ending import FAILED, Misused
from supersede.cli.progress import waiting
from supersede.cli.server import db
from supersede.cli.session import Session

_PANEL = "Erase"

Why = Annotated[
    str, typer.Option("--note", metavar="TEXT", help="Why; it is kept, so let it not repeat the claim.")
]


@command(app, "erase", panel=_PANEL)
def erase(
    session: Session,
    fact: options.Fact,
    note: Why,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,  # noqa: FBT002
    handle: options.Handle = None,
) -> int:
    """Destroy the content of a fact for good, keep its shape, and print a certificate.

    The owner then runs `supersede db scrub`.
    """
    with session.open() as store:
        if not yes and not _confirmed(store.get(fact).claim):
            print("supersede: nothing was erased", file=sys.stderr)
            return FAILED
        done = store.erase(fact, note=note, handle=handle)
    from supersede.cli import printing

    printing.as_json(done) if session.json else printing.erased(done)
    return 0


@command(app, "lift-erasure", panel=_PANEL)
def lift_erasure(
    session: Session,
    fact: Annotated[str, typer.Argument(metavar="ID", help="The id of the erased fact.")],
    note: Why,
    handle: options.Handle = None,
) -> None:
    """Let what an erased fact said be recorded anew; its content does not come back."""
    with session.open() as store:
        done = store.lift_erasure(fact, note=note, handle=handle)
    from supersede.cli import printing

    printing.as_json(done) if session.json else printing.recorded(done)


@command(db, "scrub")
def scrub(session: Session) -> None:
    """Rewrite the tables, so that no file of the database keeps what was erased. For the owner."""
    from supersede import embedded
    from supersede.cli import printing
    from supersede.scrubbing import scrub as run
    from supersede.settings import Settings, normalise_url

    session.set_up_log()
    given = session.url or Settings().url or embedded.url(Settings().data_dir)
    with waiting("rewriting the tables"):
        done = run(normalise_url(given).render_as_string(hide_password=False))
    printing.as_json(done) if session.json else printing.scrubbed(done)


def _confirmed(claim: str) -> bool:
    from supersede.cli.printing import line

    print(f"Destroy for good: {line(claim)}\nErase it? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise Misused("nobody is there to confirm it; give --yes")
    return answer.strip().lower() in ("y", "yes")
