"""The commands that read: they ask the store and print what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from supersede.cli import options
from supersede.cli.app import app, command
from supersede.cli.ending import NOTHING, Misused
from supersede.cli.progress import waiting
from supersede.cli.session import Session

if TYPE_CHECKING:
    from supersede.models import Answer

_PANEL = "Read"


@command(app, "ask", panel=_PANEL, options=options.POINT)
def ask(
    session: Session,
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUESTION]", help="- reads it from stdin.", show_default=False),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many distinct facts, else 10.", show_default=False),
    ] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE", min=0, max=1, help="Least of a match, else the model's.", show_default=False
        ),
    ] = None,
    lineage_credit: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of an old fact's score that what superseded it gets, else 0.9; 0: none.",
            show_default=False,
        ),
    ] = None,
    basis: options.Basis = None,
    brief: options.Brief = False,  # noqa: FBT002 - an option, never passed by position
    **point: Any,  # noqa: ANN401 - options.POINT
) -> int:
    """Ask what was believed, best first. The exit status is 3 if nothing is found."""
    again = options.read_basis(basis)
    if (query is None) == (again is None):
        raise Misused("give a question, or --basis to ask one again; not both")
    said = options.said(
        {"top_k": top_k, "min_similarity": min_similarity, "lineage_credit": lineage_credit, **point}
    )
    if again is not None:
        said = _only_basis(again, said)
    else:
        said["query"] = options.read_text(query or "")
    with session.open() as store, waiting("asking"):
        found = store.ask(**said)
    return _report(session, found, title=found.basis.query or "", brief=brief)


@command(app, "facts", panel=_PANEL, options=options.POINT)
def facts(
    session: Session,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many at most, else 1,000.", show_default=False),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="FACT", help="The next page: the last fact of this one.", show_default=False),
    ] = None,
    valid_during: options.During = None,
    basis: options.Basis = None,
    brief: options.Brief = False,  # noqa: FBT002
    **point: Any,  # noqa: ANN401
) -> int:
    """List every fact believed, oldest first. The exit status is 3 if there is none."""
    said = options.said({"limit": limit, "after": after, "valid_during": valid_during, **point})
    if (again := options.read_basis(basis)) is not None:
        said = _only_basis(again, said)
    with session.open() as store, waiting("reading"):
        if after is not None:
            said["after"] = store.get(after).id
        found = store.facts(**said)
    return _report(session, found, title=_title(found), brief=brief)


@command(app, "get", panel=_PANEL)
def get(session: Session, fact: options.Fact) -> None:
    """Show one fact as it is believed now, with all that was said of it."""
    with session.open() as store, waiting("reading"):
        found = store.get(fact)
    from supersede.cli import printing
    from supersede.cli.tracing import print_fact

    printing.as_json(found) if session.json else print_fact(found)


@command(app, "history", panel=_PANEL)
def history(session: Session, fact: options.Fact) -> None:
    """Show everything ever held about a fact: periods, sources, what took it."""
    with session.open() as store, waiting("reading"):
        found = store.history(fact)
    from supersede.cli import printing
    from supersede.cli.tracing import print_history

    printing.as_json(found) if session.json else print_history(found)


@command(app, "lineage", panel=_PANEL)
def lineage(session: Session, fact: options.Fact) -> None:
    """Show what a fact superseded and what superseded it, directly and through others."""
    with session.open() as store, waiting("reading"):
        found = store.lineage(fact)
    from supersede.cli import printing
    from supersede.cli.tracing import print_lineage

    printing.as_json(found) if session.json else print_lineage(found)


def _only_basis(basis: str, said: dict[str, Any]) -> dict[str, Any]:
    if said:
        names = ", ".join(
            "--" + {"namespaces": "in", "valid_during": "during"}.get(key, key).replace("_", "-")
            for key in said
        )
        raise Misused(f"a basis says all there is to ask; leave out {names}")
    return {"basis": basis}


def _title(found: Answer) -> str:
    filters = found.basis.filters.model_dump(exclude_none=True)
    return "facts" + "".join(f", {key} {value}" for key, value in filters.items())


def _report(session: Session, found: Answer, *, title: str, brief: bool) -> int:
    from supersede.cli import printing
    from supersede.cli.answers import print_answer

    if brief:
        printing.as_json(found.brief())
    elif session.json:
        printing.as_json(found)
    else:
        print_answer(found, title=title)
    return 0 if found.outcome == "answered" else NOTHING
