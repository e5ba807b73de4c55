"""Arguments of the reads, checked and put in the form in which a basis holds them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from supersede.errors import InvalidInput
from supersede.events import text
from supersede.models import Basis, Filters
from supersede.periods import InstantLike, parse_instant

MOST = 1_000_000

Point = tuple[datetime | None, datetime | None]
"""``valid_at`` and ``known_at`` as they were said; None is the present."""


def limit(value: int, name: str) -> int:
    """How many facts a read may return.

    :raises InvalidInput: unless it is a whole number from 1 to a million.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise InvalidInput(f"{name} must be a whole number from 1 to {MOST:,}, not {value!r}")
    return value


def filters(subject: str | None, predicate: str | None, object: str | None, kind: str | None) -> Filters:
    """Which facts a read is about.

    :raises InvalidInput: for what is no text.
    """
    given = {"subject": subject, "predicate": predicate, "object": object, "kind": kind}
    return Filters(**{k: text(v, k) for k, v in given.items() if v is not None})


def point(as_of: InstantLike | None, valid_at: InstantLike | None, known_at: InstantLike | None) -> Point:
    """The point of the two times as it was said; None where it was not.

    :raises InvalidInput: if ``as_of`` comes with one of the others.
    :raises InvalidInstant: for what is no instant.
    """
    if as_of is not None:
        if valid_at is not None or known_at is not None:
            raise InvalidInput("as_of= sets both times; leave out valid_at= and known_at=")
        both = parse_instant(as_of, "as_of")
        return both, both
    return (
        None if valid_at is None else parse_instant(valid_at, "valid_at"),
        None if known_at is None else parse_instant(known_at, "known_at"),
    )


def names(namespaces: Sequence[str] | None, own: str) -> list[str]:
    """The namespaces to read, each once; the store\'s own where none are said.

    :raises InvalidInput: for a bare text, or an empty list.
    """
    if namespaces is None:
        return [own]
    if isinstance(namespaces, str) or not namespaces:
        raise InvalidInput('namespaces must be a list of names, such as ["default"]')
    return [text(name, "namespace") for name in dict.fromkeys(namespaces)]


def again(basis: Basis | str, question: str) -> Basis:
    """A basis to ask again.

    :raises InvalidInput: if it is no basis, or one of another kind of question.
    """
    found = Basis.parse(basis) if isinstance(basis, str) else basis
    if found.question != question:
        raise InvalidInput(f"this basis is of {found.question}(), not of {question}()")
    return found
