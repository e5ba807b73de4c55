"""How the program ends: an exit status, and one line on stderr where something went wrong."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from supersede import errors
from supersede.cli.session import Session

FAILED, MISUSED, NOTHING, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141

_ADVICE: dict[type[errors.SupersedeError], str] = {
    errors.FactNotFound: "`supersede facts` lists what is there",
    errors.Conflict: "run it again",
    errors.PrivilegeMissing: "ask the owner for the role it needs, or use another --url",
}

_IN_OPTIONS = {
    "pass over_trust": "give --over-trust",
    "use replay()": "use `supersede import`",
    "pass after= the last id": "give --after and the last of these",
    "fill_embeddings()": "`supersede embed`",
    "export with with_erasure_key=True": "export it with --with-erasure-key",
    "unguarded_erasures=True": "--unguarded-erasures",
    "lift_erasure": "`supersede lift-erasure`",
}

# An argument at the beginning of a message, which says what is wrong with it.
_ARGUMENT = re.compile(
    r"^(valid_from|valid_to|valid_at|valid_during|known_at|known_from|known_to|as_of|asserted|when|since|until"
    r"|stamp|based_on|sources|where|min_trust)(:| (?=\S+ lies in the future))"
)
_NAMED_OTHERWISE = {"valid_during": "during", "when": "at", "sources": "source"}

# Most messages about the server do; those about a connection only say what happened.
_SAYS_WHAT_TO_DO = re.compile(r"must|give|set |see |pip install|try again")


class Misused(Exception):
    """The arguments of a command do not go together."""


def ending(run: Callable[[], Any], session: Session) -> int:
    """Run to the end, say in one line what went wrong, and return the exit status."""
    try:
        status = int(run() or 0)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Misused as error:
        return _complain(str(error), session, MISUSED)
    except errors.SupersedeError as error:
        return _complain(_advised(error), session, FAILED)
    except Exception as error:
        if hasattr(error, "format_message"):  # the parser's own, whichever module typer has it in
            return _complain(_usage(error), session, MISUSED)
        return _complain(_unexpected(error), session, FAILED)
    if status == INTERRUPTED:
        print("supersede: interrupted", file=sys.stderr)
    return status


def in_options(text: str) -> str:
    """A message of the store as the command line says it: arguments and methods as options and commands."""
    said = re.sub(
        r'(pass )?\b(valid_at|known_at|as_of|out_of_order|if_not_current)="([^"]*)"',
        lambda m: f"{'give ' if m[1] else ''}--{m[2].replace('_', '-')} {m[3]}",
        text,
    )
    said = _ARGUMENT.sub(lambda m: "--" + _NAMED_OTHERWISE.get(m[1], m[1].replace("_", "-")) + m[2], said)
    for python, shell in _IN_OPTIONS.items():
        said = said.replace(python, shell)
    return said


def stop_printing() -> None:
    """Send what is still to be printed nowhere: the reader of our output has gone.

    Otherwise Python would try again at exit, and complain.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any) -> str:  # noqa: ANN401 - see above
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    said = error.format_message().replace("Value error, ", "")  # pydantic's, before its own message
    return f"{said.rstrip('.')}{hint}"


def _advised(error: errors.SupersedeError) -> str:
    """The error's message, with what to do where that is not in it."""
    said = in_options(error.message)
    if isinstance(error, errors.SchemaOutOfDate) and "supersede init" not in said:
        return f"{said}; on the command line: `supersede init`"
    if type(error) is errors.ServerUnavailable and not _SAYS_WHAT_TO_DO.search(said):
        return f"{said}; see that the server of --url or SUPERSEDE_URL runs and lets you in"
    advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), None)
    return f"{said}; {advice}" if advice else said


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"


def _complain(message: str, session: Session, status: int) -> int:
    if session.debug:
        traceback.print_exc()
    print("supersede:", " ".join(message.split()), file=sys.stderr)
    return status
