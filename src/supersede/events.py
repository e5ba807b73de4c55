"""Arguments of the verbs as events: the JSON that the SQL functions take, the ledger keeps and files hold.

Only what was said is in an event; defaults are filled in by the database, so a retry with the same
arguments has the same digest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypedDict, get_args
from uuid import UUID

from supersede.errors import InvalidInput
from supersede.models import Answer, Basis, Fact, Reason, Related, Trust
from supersede.periods import (
    NO_END,
    NO_START,
    InstantLike,
    Unbounded,
    check_period,
    event_bound,
    format_instant,
    parse_instant,
)
from supersede.results import Recorded

FactLike = Fact | Recorded | Related | UUID | str
"""A fact, or its id, or one of its refs."""

BasedOn = Answer | Basis | str
"""An answer, its basis, or the text of one."""

Source = str | tuple[str, InstantLike]
"""A source URI, alone or with the date at which it asserted the claim."""


class Call(TypedDict, total=False):
    """What every verb takes; all of it optional.

    ``handle``: the same call with the same handle is recorded once. ``note``: why, for the ledger.
    ``run``: the run of a program that the call belongs to, which can be undone as a whole.
    ``based_on``: the answer, or its basis, that the decision to write came from; where what the call
    acts on (its facts, its slot) has moved since, it is refused with ``Conflict``.
    """

    handle: str | None
    note: str | None
    run: str | None
    based_on: BasedOn | None


class Content(Call, total=False):
    """What the verbs that record a claim take beside it; all of it optional.

    ``ref``: an external name, unique in the namespace, and the default handle. ``valid_from``: when the
    claim begins to hold, else now; ``NO_START``: nobody knows. ``valid_to``: when it stops (exclusive),
    else without end or, for a one-valued predicate, when the next value is known to start; ``NO_END``:
    for good, whatever is known to come later. ``sources``: URIs, or pairs of a URI and the date at which
    it asserted the claim. ``asserted``: that date for all of them, else ``valid_from``. ``subject``,
    ``predicate``, ``object``, ``kind`` (else ``fact``) and ``data`` (a small JSON object) describe the
    claim. ``trust``: fidelity of the wording, ``verbatim``, ``extracted`` (the default) or ``summary``.
    ``over_trust``: let it take validity from facts of higher trust.
    """

    ref: str | None
    valid_from: InstantLike | Unbounded | None
    valid_to: InstantLike | Unbounded | None
    sources: Iterable[Source]
    asserted: InstantLike | None
    subject: str | None
    predicate: str | None
    object: str | None
    kind: str
    data: Mapping[str, Any] | None
    trust: Trust
    over_trust: bool


_FLAGS = frozenset({"over_trust", "give_back"})


def fact_name(fact: FactLike, what: str = "fact") -> str:
    """The id or ref by which SQL will find a fact.

    :raises InvalidInput: if it is neither a fact nor a name.
    """
    if isinstance(fact, Fact | Related):
        return fact.id
    if isinstance(fact, Recorded):
        if fact.id is None:
            raise InvalidInput(f"{what}: {fact.verb} made no fact to refer to")
        return fact.id
    if isinstance(fact, UUID):
        return str(fact)
    return text(fact, what)


def text(value: object, what: str) -> str:
    """A text that PostgreSQL can hold, and that says something.

    :raises InvalidInput: naming what is wrong with it.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInput(f"{what} is empty")
    if "\x00" in value:
        raise InvalidInput(f"{what} holds a NUL character, which PostgreSQL cannot store")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} holds half of a surrogate pair, which is no text") from error
    return value


def actor(said: str | None, otherwise: str | None) -> str | None:
    """Who is writing, for the ledger.

    :raises InvalidInput: for what is no text.
    """
    chosen = otherwise if said is None else said
    return None if chosen is None else text(chosen, "actor")


def run(said: str | None, otherwise: str | None) -> str | None:
    """The run that writes belong to, for the ledger.

    :raises InvalidInput: for what is no text.
    """
    chosen = otherwise if said is None else said
    return None if chosen is None else text(chosen, "run")


def in_run(event: Mapping[str, Any], run: str | None) -> Mapping[str, Any]:
    """An event with the run that it belongs to, unless it names another."""
    return event if run is None or "run" in event else {**event, "run": run}


def instant(value: InstantLike, what: str) -> str:
    """An instant as an event holds it."""
    return format_instant(parse_instant(value, what))


def _sources(sources: Iterable[Source]) -> list[Any]:
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise InvalidInput(f'sources must be a list, such as ["docs/adr/0003.md"], not {sources!r}')
    found: list[Any] = []
    for source in sources:
        if isinstance(source, str):
            found.append(text(source, "source"))
        elif isinstance(source, Sequence) and len(source) == 2:
            found.append([text(source[0], "source"), instant(source[1], "source date")])
        else:
            raise InvalidInput(f"a source is a URI or a pair of one and a date, not {source!r}")
    return found


def json_value(value: Any, what: str, depth: int = 50) -> Any:  # noqa: ANN401 - any JSON
    """A value that JSON and PostgreSQL can hold, and that can be read back.

    :param depth: how deep it may be nested.
    :raises InvalidInput: naming what cannot be held.
    """
    if depth < 0:
        raise InvalidInput(f"{what} is nested more than 50 deep")
    if isinstance(value, str):
        return text(value, what) if value.strip() else value
    if isinstance(value, Mapping):
        return {text(k, f"a key of {what}"): json_value(v, what, depth - 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(v, what, depth - 1) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{what} holds {value}, which is no JSON")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**308:
        raise InvalidInput(f"{what} holds a number of more than 308 digits")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise InvalidInput(f"{what} holds a {type(value).__name__}, which is no JSON")


def choice(value: str, choices: Any, what: str) -> str:  # noqa: ANN401 - a Literal
    """One of the words that a Literal lists.

    :raises InvalidInput: listing them.
    """
    if value not in get_args(choices):
        raise InvalidInput(f"{what}: {value!r} is not one of {', '.join(get_args(choices))}")
    return value


def said(**arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - any argument of a verb
    """The event of a call: each argument checked and put in its JSON form, what was not said left out.

    :raises InvalidInput: for any argument of a wrong kind; its subclasses for times and periods.
    """
    if "old" in arguments and (arguments["claim"] is None) == (arguments["by"] is None):
        raise InvalidInput("a claim is needed, or by= with an existing fact; not both")
    event: dict[str, Any] = {}
    for key, value in arguments.items():
        if value is None or (key in _FLAGS and value is False):
            continue
        if key in {"valid_from", "valid_to"}:
            event[key] = event_bound(value, NO_START if key == "valid_from" else NO_END, key)
        elif key in {"asserted", "when", "until", "since", "stamp"}:
            event[key] = instant(value, key)
        elif key == "sources":
            event |= {key: found} if (found := _sources(value)) else {}
        elif key == "data":
            if not isinstance(value, Mapping):
                raise InvalidInput("data must be a mapping (a JSON object)")
            event[key] = json_value(value, key)
        elif key in _FLAGS:
            if value is not True:
                raise InvalidInput(f"{key} must be True or False, not {value!r}")
            event[key] = True
        elif key == "old":
            event[key] = olds(value)
        elif key in {"by", "fact"}:
            event["ref" if key == "fact" else key] = fact_name(value, key)
        elif key == "trust":
            event |= {} if choice(value, Trust, key) == "extracted" else {key: value}
        elif key == "reason":
            event |= {} if choice(value, Reason, key) == "change" else {key: value}
        elif key == "if_not_current":
            event |= {} if text(value, key) == "refuse" else {key: value}
        elif key == "kind":
            event |= {} if text(value, key) == "fact" else {key: value}
        else:
            event[key] = text(value, key)
    check_period(event.get("valid_from"), event.get("valid_to"))
    check_period(event.get("when") or event.get("since"), event.get("until"))
    return event


def call(namespace: str, based_on: BasedOn | None, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """As :func:`said`, with what the decision was based on.

    :param namespace: the one to write to, whose head the decision had seen.
    """
    event = said(**arguments)
    if based_on is not None:
        event["based_on"] = head_seen(based_on, namespace)
    return event


def head_seen(based_on: BasedOn, namespace: str) -> str:
    """The stamp up to which an answer saw a namespace, as an event holds it.

    :raises InvalidInput: if it is no basis, or did not look at the namespace.
    """
    basis = based_on.basis if isinstance(based_on, Answer) else Basis.read(based_on)
    if namespace not in basis.heads:
        raise InvalidInput(f"based_on: that answer did not look at namespace {namespace!r}")
    head = basis.heads[namespace]
    # An answer about the past saw no more than was known then, however far the head was.
    return format_instant(min(head, basis.known_at)) if head else "0001-01-01T00:00:00Z"


def olds(value: FactLike | Iterable[FactLike]) -> list[str]:
    """The facts that a call acts on, one or several."""
    if isinstance(value, Fact | Recorded | Related | UUID | str):
        return [fact_name(value, "old")]
    if not isinstance(value, Iterable):
        raise InvalidInput(f"old must be a fact, an id, a ref, or a list of these, not {value!r}")
    return [fact_name(each, "old") for each in value]


def arguments_of_remember(item: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping of the arguments of ``remember``, its keys checked.

    :raises InvalidInput: for a key that is none of them.
    """
    known = {"claim", *Content.__annotations__, *Call.__annotations__} - {"based_on"}
    unknown = [repr(key) for key in item if key not in known]
    if unknown:
        raise InvalidInput(f"remember takes no {', '.join(unknown)}; it takes {', '.join(sorted(known))}")
    return dict(item)


def replayable(event: Mapping[str, Any]) -> dict[str, Any]:
    """One event of a history, its instants put in their printed form.

    :raises InvalidInput: if it is no JSON object or holds what JSON cannot.
    """
    if not isinstance(event, Mapping):
        raise InvalidInput("an event is a JSON object")
    plain: dict[str, Any] = {}
    for key, value in event.items():
        name = text(key, "a key")
        if isinstance(value, Unbounded):
            plain[name] = value.value
        elif isinstance(value, datetime | date):
            plain[name] = instant(value, name)
        elif name == "sources" and value is not None:
            plain[name] = _sources(value)
        else:
            plain[name] = json_value(value, name)
    return plain
