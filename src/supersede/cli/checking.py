"""The commands that check: what changed, whether an answer still stands, whether the database is well."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supersede.cli import options
from supersede.cli.app import app, command
from supersede.cli.ending import FAILED, Misused
from supersede.cli.progress import waiting
from supersede.cli.session import Session

if TYPE_CHECKING:
    from supersede.models import Answer, Verification
    from supersede.store import FactStore

_PANEL = "Check"


@command(app, "diff", panel=_PANEL)
def diff(
    session: Session,
    known_from: Annotated[str, options.when("What was believed then ...")],
    known_to: Annotated[str | None, options.when("... and what at this instant, else now.")] = None,
    valid_at: Annotated[str | None, options.when("Only what concerns this instant.")] = None,
) -> None:
    """Show what was believed otherwise at one instant than at an earlier one."""
    with session.open() as store, waiting("reading"):
        found = store.diff(known_from, known_to, valid_at=valid_at)
    from supersede.cli import printing
    from supersede.cli.tracing import print_diff

    printing.as_json(found) if session.json else print_diff(found)


@command(app, "verify", panel=_PANEL)
def verify(
    session: Session,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Answers as `ask --json` prints them; - is stdin."),
    ],
) -> int:
    """Ask recorded answers again and say whether they still stand.

    A file holds one answer, or one on each line. The exit status is 0 if all are equal, or were ranked
    approximately and share what can be shared; else 1.
    """
    answers = [(name, answer) for file in files for name, answer in _read_answers(file)]
    with session.open() as store, waiting("asking again"):
        found = [(name, answer, _verify(store, answer, name)) for name, answer in answers]
    from supersede.cli import printing

    if session.json:
        printing.as_json([{"answer": name, **result.model_dump(mode="json")} for name, _, result in found])
    else:
        printing.verified([(name, answer.basis.query, result) for name, answer, result in found])
    return 0 if all(result.outcome in ("equal", "approximate") for *_, result in found) else FAILED


def _verify(store: FactStore, answer: Answer, name: str) -> Verification:
    """Ask one answer again.

    :raises SupersedeError: as the store does, with where the answer stands.
    """
    from supersede.errors import SupersedeError

    try:
        return store.verify(answer)
    except SupersedeError as error:
        raise type(error)(f"{name}: {error.message}", details=error.details) from error


def _read_answers(file: str) -> Iterator[tuple[str, Answer]]:
    """The answers in a file, each with where it stands.

    :raises Misused: for what is no answer, saying where.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        documents = [(file, json.loads(text))]
    except (ValueError, RecursionError):
        documents = [
            (f"{file}, line {number}", _json(line, f"{file}, line {number}"))
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    if not documents:
        raise Misused(f"{file} holds no answer; `supersede ask --json` prints one")
    for name, document in documents:
        yield name, _answer(document, name)


def _json(line: str, name: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{name}: it is no JSON; `supersede ask --json` prints an answer") from error


def _answer(document: Any, name: str) -> Answer:  # noqa: ANN401 - any JSON
    from pydantic import ValidationError

    from supersede.errors import SupersedeError
    from supersede.models import Answer

    try:
        return Answer.model_validate_json(json.dumps(document))
    except (ValidationError, SupersedeError) as error:
        raise Misused(
            f"{name}: it is no answer; `supersede ask --json` prints one (--brief leaves out its basis)"
        ) from error


@command(app, "spaces", panel=_PANEL)
def spaces(session: Session) -> None:
    """List the embedding spaces: model, thresholds, and how many facts have a vector in each."""
    with session.open() as store, waiting("counting"):
        found = store.embedding_spaces()
    from supersede.cli import printing

    if session.json:
        printing.as_json([space.model_dump(mode="json") for space in found])
    else:
        printing.spaces(found)


@command(app, "doctor", panel=_PANEL)
def doctor(session: Session) -> int:
    """Look at the database: versions, indexes, clock, vectors, sessions. It changes nothing.

    The exit status is 1 if something has to be mended.
    """
    from supersede import __version__
    from supersede import doctor as doctors
    from supersede.settings import Settings

    session.set_up_log()
    settings = Settings()
    url: Any = session.url or (settings.url.get_secret_value() if settings.url else None)
    with waiting("looking"):
        if url is None:
            from supersede import embedded

            url = embedded.url(settings.data_dir)
        found = doctors.examine(url, version=__version__)
    from supersede.cli import printing

    if session.json:
        printing.as_json([finding._asdict() for finding in found])
    else:
        printing.findings(found)
    return FAILED if any(finding.state == "fail" for finding in found) else 0
