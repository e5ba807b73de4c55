"""The commands that write facts: each is a verb of the store."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supersede.cli import options
from supersede.cli.app import app, command
from supersede.cli.ending import Misused
from supersede.cli.session import Session

if TYPE_CHECKING:
    from supersede.results import Recorded
    from supersede.store import FactStore

_PANEL = "Write"


class Cardinality(StrEnum):
    """How many values a predicate holds at one instant."""

    one = "one"
    many = "many"


@command(app, "remember", panel=_PANEL, options=options.CONTENT)
def remember(session: Session, claim: options.Claim, **content: Any) -> None:  # noqa: ANN401
    """Record a claim."""
    with session.open() as store:
        _report(session, store.remember(options.read_text(claim), **options.said(content)))


@command(app, "replace", panel=_PANEL, options=options.CONTENT)
def replace(
    session: Session,
    old: options.Old,
    claim: options.MaybeClaim = None,
    by: options.By = None,
    also: options.Also = None,
    reason: Annotated[options.Reason, typer.Option(help="Why it is replaced.")] = options.Reason.change,
    if_not_current: Annotated[
        options.IfNotCurrent,
        typer.Option(help="Where an old fact is not believed: refuse, or record the edge all the same."),
    ] = options.IfNotCurrent.refuse,
    **content: Any,  # noqa: ANN401
) -> None:
    """Supersede a fact by a new claim, or by a fact that is there.

    A change takes over from now, or from --valid-from; the other reasons take all that the old fact held.
    """
    with session.open() as store:
        _report(
            session,
            store.supersede(
                [old, *(also or [])],
                _claim(store, claim, by),
                by=by,
                reason=reason.value,
                if_not_current=if_not_current.value,
                **options.said(content),
            ),
        )


@command(app, "amend", panel=_PANEL, options=options.CONTENT)
def amend(
    session: Session,
    old: options.Old,
    claim: options.MaybeClaim = None,
    by: options.By = None,
    also: options.Also = None,
    **content: Any,  # noqa: ANN401
) -> None:
    """Add to a fact, and take nothing from it; each is shown on the other."""
    with session.open() as store:
        olds = [old, *(also or [])]
        _report(session, store.amend(olds, _claim(store, claim, by), by=by, **options.said(content)))


@command(app, "end", panel=_PANEL, options=options.CALL)
def end(
    session: Session,
    fact: options.Fact,
    at: Annotated[str | None, options.when("From when on it no longer holds, else now.")] = None,
    until: Annotated[str | None, options.when("When it holds again, else never.")] = None,
    **call: Any,  # noqa: ANN401
) -> None:
    """End a fact that has no successor."""
    with session.open() as store:
        done = store.end(fact, at=at, until=until, **options.said(call))
        held = any(version.known.end is None for version in store.history(fact).versions)
    _report(session, done)
    if not (held or session.json or done.repeated):
        print("  nothing of it is left: it was valid at no other time")


@command(app, "retract", panel=_PANEL, options=options.CALL)
def retract(
    session: Session,
    fact: options.Fact,
    give_back: Annotated[  # noqa: FBT002 - an option, never passed by position
        bool, typer.Option("--give-back", help="Give its old facts what it took from them and still holds.")
    ] = False,
    **call: Any,  # noqa: ANN401
) -> None:
    """Withdraw a fact that was never true; earlier answers stay as they were."""
    with session.open() as store:
        _report(session, store.retract(fact, give_back=give_back, **options.said(call)))


@command(app, "reinstate", panel=_PANEL, options=options.CALL)
def reinstate(
    session: Session,
    fact: options.Fact,
    valid_from: Annotated[
        str | None, options.when("From when on, else what it lost last.", parser=options.read_start)
    ] = None,
    valid_to: Annotated[
        str | None, options.when("Until when, else what it lost last.", parser=options.read_end)
    ] = None,
    **call: Any,  # noqa: ANN401
) -> None:
    """Believe a fact again, over what was taken from it."""
    with session.open() as store:
        _report(
            session,
            store.reinstate(fact, valid_from=valid_from, valid_to=valid_to, **options.said(call)),
        )


@command(app, "cite", panel=_PANEL, options=options.CALL)
def cite(
    session: Session,
    fact: options.Fact,
    sources: Annotated[list[str], typer.Argument(metavar="URI...", help="Where it is said.")],
    asserted: Annotated[str | None, options.when("When they asserted it, else now.")] = None,
    **call: Any,  # noqa: ANN401
) -> None:
    """Add sources to a fact."""
    with session.open() as store:
        _report(session, store.cite(fact, sources=sources, asserted=asserted, **options.said(call)))


@command(app, "declare", panel=_PANEL)
def declare(
    session: Session,
    predicate: Annotated[str, typer.Argument(metavar="PREDICATE", help="Its name.")],
    cardinality: Annotated[Cardinality, typer.Argument(help="Values that it holds at any instant.")],
    handle: options.Handle = None,
) -> None:
    """Declare whether a predicate holds one value at any instant, or many."""
    with session.open() as store:
        _report(session, store.declare_predicate(predicate, cardinality=cardinality.value, handle=handle))


def _claim(store: FactStore, claim: str | None, by: str | None) -> str | None:
    """The claim that was said, unless it is the name of a fact: then --by or --also was meant."""
    from supersede.errors import FactNotFound

    if (claim is None) == (by is None):
        raise Misused("give the new claim, or --by with a fact that is there; not both")
    if claim is None:
        return None
    text = options.read_text(claim)
    if len(text.split()) == 1:
        try:
            store.get(text)
        except FactNotFound:
            return text
        raise Misused(f"{text!r} is the name of a fact, and no claim; did you mean --by {text}?")
    return text


def _report(session: Session, result: Recorded) -> None:
    from supersede.cli import printing

    if session.json:
        printing.as_json(result)
    else:
        printing.recorded(result)
