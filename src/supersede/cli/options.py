"""Arguments and options that several commands take, and how their texts are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from supersede.cli.ending import Misused
from supersede.cli.session import Options


class Reason(StrEnum):
    """Why one fact supersedes another."""

    change = "change"
    correction = "correction"
    refinement = "refinement"
    duplicate = "duplicate"


class Trust(StrEnum):
    """Fidelity of the wording."""

    verbatim = "verbatim"
    extracted = "extracted"
    summary = "summary"


class IfNotCurrent(StrEnum):
    """What to do about an old fact that is not believed in the period."""

    refuse = "refuse"
    link = "link"


def read_instant(text: str) -> str:
    """An instant, checked and otherwise left as it was said."""
    from supersede.errors import InvalidInstant
    from supersede.periods import parse_instant

    try:
        parse_instant(text, "this")
    except InvalidInstant as error:
        said = error.message.removeprefix("this: ")
        if "is not an instant" in said:
            said = (
                f"{text!r} is not an instant; give a date, or ISO 8601 with an offset (2026-07-24T00:00:00Z)"
            )
        raise typer.BadParameter(said) from error
    return text


def read_start(text: str) -> str:
    """The start of a period: an instant, or that nobody knows it."""
    return text if text == "no_start" else read_instant(text)


def read_end(text: str) -> str:
    """The end of a period: an instant, or that there is none."""
    return text if text == "no_end" else read_instant(text)


def read_period(text: str) -> tuple[str | None, str | None]:
    """A period: two instants with two points between them, either of which may be missing."""
    from supersede.errors import InvalidPeriod
    from supersede.periods import parse_period

    start, points, end = text.partition("..")
    if not points:
        raise typer.BadParameter(f"{text!r} is no period; give FROM..TO, such as 2024-01-01..2024-07-01")
    period = tuple(read_instant(bound) if bound else None for bound in (start, end))
    try:
        parse_period(period, "it")
    except InvalidPeriod as error:
        raise typer.BadParameter(error.message) from error
    return period[0], period[1]


def read_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter('it must be a JSON object, such as {"pages": 3}')
    return value


def read_text(text: str) -> str:
    """A text; ``-`` stands for what stdin holds."""
    return sys.stdin.read().strip() if text == "-" else text


def when(help: str, *, parser: Callable[[str], str] = read_instant) -> Any:  # noqa: ANN401 - as typer's
    """An option that takes an instant."""
    return typer.Option(help=help, metavar="WHEN", parser=parser, show_default=False)


Fact = Annotated[str, typer.Argument(metavar="FACT", help="Its ref or its id.")]
Old = Annotated[str, typer.Argument(metavar="OLD", help="Ref or id of the old fact.")]
Claim = Annotated[str, typer.Argument(metavar="CLAIM", help="The claim; - reads it from stdin.")]
MaybeClaim = Annotated[
    str | None,
    typer.Argument(metavar="[CLAIM]", help="The new claim; - reads it from stdin.", show_default=False),
]
By = Annotated[
    str | None,
    typer.Option(metavar="FACT", help="An existing fact, in place of CLAIM.", show_default=False),
]
Also = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD", help="Another old fact; may be repeated.", show_default=False),
]

Sources = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="URI", help="Where it comes from; may be repeated.", show_default=False),
]
Asserted = Annotated[str | None, when("When the sources asserted it, else when it begins to hold.")]
Subject = Annotated[str | None, typer.Option(metavar="TEXT", help="What it is about.", show_default=False)]
Predicate = Annotated[str | None, typer.Option(metavar="TEXT", help="Which property.", show_default=False)]
Object = Annotated[str | None, typer.Option(metavar="TEXT", help="Its value.", show_default=False)]
Kind = Annotated[str | None, typer.Option(metavar="TEXT", help="The kind of fact.", show_default=False)]
Handle = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="The same call with the same handle is recorded once.", show_default=False
    ),
]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the ledger.", show_default=False)]
BasedOn = Annotated[
    str | None,
    typer.Option(
        metavar="BASIS",
        help="What the decision came from: a basis, or a file (- for stdin) with one or with the JSON of an "
        "answer. Refused if what it acts on has moved since.",
        show_default=False,
    ),
]

CALL: Options = {"based_on": (BasedOn, None), "handle": (Handle, None), "note": (Note, None)}
"""What every verb takes."""

CONTENT: Options = {
    "ref": (
        Annotated[
            str | None,
            typer.Option(metavar="REF", help="A name of its own, such as adr/0014.", show_default=False),
        ],
        None,
    ),
    "valid_from": (
        Annotated[
            str | None,
            when("When it begins to hold, else now; no_start: nobody knows.", parser=read_start),
        ],
        None,
    ),
    "valid_to": (
        Annotated[
            str | None,
            when("When it stops to hold; no_end: never, whatever comes later.", parser=read_end),
        ],
        None,
    ),
    "sources": (Sources, None),
    "asserted": (Asserted, None),
    "subject": (Subject, None),
    "predicate": (Predicate, None),
    "object": (Object, None),
    "kind": (Kind, None),
    "data": (
        Annotated[
            dict[str, Any] | None,
            typer.Option(metavar="JSON", help="A small JSON object.", parser=read_object, show_default=False),
        ],
        None,
    ),
    "trust": (
        Annotated[
            Trust | None, typer.Option(help="Fidelity of the wording, else extracted.", show_default=False)
        ],
        None,
    ),
    "over_trust": (
        Annotated[bool, typer.Option("--over-trust", help="Let it supersede facts of higher trust.")],
        False,
    ),
    **CALL,
}
"""What may be said of a claim beside it."""

POINT: Options = {
    "as_of": (Annotated[str | None, when("What was believed then, about then.")], None),
    "valid_at": (Annotated[str | None, when("The instant the question is about, else now.")], None),
    "known_at": (Annotated[str | None, when("What was known by then, else now.")], None),
    "namespaces": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--in", metavar="NAME", help="Read this namespace; may be repeated.", show_default=False
            ),
        ],
        None,
    ),
    "subject": (Subject, None),
    "predicate": (Predicate, None),
    "object": (Object, None),
    "kind": (Kind, None),
    "where": (
        Annotated[
            dict[str, Any] | None,
            typer.Option(
                metavar="JSON",
                help="What its data must contain: a JSON object.",
                parser=read_object,
                show_default=False,
            ),
        ],
        None,
    ),
    "min_trust": (
        Annotated[
            Trust | None,
            typer.Option(help="Withhold what is of lower trust.", show_default=False),
        ],
        None,
    ),
    "explain": (
        Annotated[bool, typer.Option("--explain", help="List what was withheld, and what replaced it.")],
        False,
    ),
}
"""Which point of the two times a question is about, and which facts."""

During = Annotated[
    Any,  # typer takes no union beside a parser
    typer.Option(
        "--during",
        metavar="FROM..TO",
        parser=read_period,
        help="Believed of any part of this period; FROM or TO may be missing.",
        show_default=False,
    ),
]
Brief = Annotated[bool, typer.Option("--brief", help="Print the short form as JSON.")]
Basis = Annotated[
    str | None,
    typer.Option(
        metavar="BASIS",
        help="Ask again: a basis, or a file (- for stdin) with one or with the JSON of an answer.",
        show_default=False,
    ),
]


def read_basis(text: str | None) -> str | None:
    """A basis as it was said, or out of a file, alone or as part of an answer.

    :raises Misused: if the file cannot be read.
    """
    if text is None or text.startswith(("sb1.", "{")):
        return text
    try:
        found = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Misused(f"{text} is no basis, and no file that can be read") from error
    try:
        document = json.loads(found)
    except (ValueError, RecursionError):
        return found.strip()
    inner = document.get("basis", document) if isinstance(document, dict) else document
    return inner if isinstance(inner, str) else json.dumps(inner)


def said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were said, with the plain values of choices and the basis out of a file.

    :raises Misused: if that file cannot be read.
    """
    said = {
        key: value.value if isinstance(value, StrEnum) else value
        for key, value in arguments.items()
        if not (value is None or value is False or value == [])
    }
    if "based_on" in said:
        said["based_on"] = read_basis(said["based_on"])
    return said
