"""Arguments of the reads, checked and put in the form in which a basis holds them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from supersede.errors import InvalidInput
from supersede.events import FactLike, choice, fact_name, json_value, text
from supersede.models import Basis, Filters, Trust
from supersede.periods import InstantLike, PeriodLike, parse_instant, parse_period

MOST = 1_000_000
LONGEST_QUERY = 100_000
LARGEST_WHERE = 65_536
LONGEST_FILTER = 10_000

Asked = Mapping[str, Any]
"""The fields of a basis that a question brings; the heads and the point are added to them."""

Point = tuple[datetime | None, datetime | None]
"""``valid_at`` and ``known_at`` as they were said; None is the present."""


def whole(value: int, name: str) -> int:
    """How many facts a read may return.

    :raises InvalidInput: unless it is a whole number from 1 to a million.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise InvalidInput(f"{name} must be a whole number from 1 to {MOST:,}, not {value!r}")
    return value


def share(value: float, name: str) -> float:
    """A number from 0 to 1.

    :raises InvalidInput: for anything else.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number between 0 and 1, not {value!r}")
    return value


class Which(TypedDict, total=False):
    """Which facts a read is about; all of it optional, and what is not said is any.

    ``subject``, ``predicate`` and ``object`` are compared folded, as slots are; ``kind`` is exact.
    ``where``: what the fact's ``data`` must contain, key by key. ``min_trust``: facts below it are
    withheld as ``below_trust``.
    """

    subject: str | None
    predicate: str | None
    object: str | None
    kind: str | None
    where: Mapping[str, Any] | None
    min_trust: Trust | None


def which(asked: Which) -> Asked:
    """The filters of a read, as a basis holds them.

    :raises InvalidInput: for what is no text, no JSON, or no filter.
    """
    unknown = set(asked) - set(Which.__annotations__)
    if unknown:
        raise InvalidInput(f"there is no filter {', '.join(sorted(unknown))}")
    given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    min_trust = given.pop("min_trust", None)
    if min_trust is not None:
        choice(min_trust, Trust, "min_trust")
    where = given.pop("where", None)
    if where is not None and not isinstance(where, Mapping):
        raise InvalidInput("where must be a mapping (a JSON object)")
    plain: dict[str, Any] = {key: text(value, key) for key, value in given.items()}
    if any(len(value) > LONGEST_FILTER for value in plain.values()):
        raise InvalidInput(f"a filter has at most {LONGEST_FILTER:,} characters")
    if where is not None:
        plain["where"] = json_value(where, "where")
        if len(json.dumps(plain["where"], ensure_ascii=False).encode()) > LARGEST_WHERE:
            raise InvalidInput(f"where has at most {LARGEST_WHERE:,} bytes of JSON")
    return {"filters": Filters(**plain), "min_trust": min_trust}


def point(
    as_of: InstantLike | None,
    valid_at: InstantLike | None,
    known_at: InstantLike | None,
    valid_during: PeriodLike | None = None,
) -> Point:
    """The point of the two times as it was said; None where it was not.

    :raises InvalidInput: if ``as_of`` comes with one of the others, or ``valid_during`` with an instant.
    :raises InvalidInstant: for what is no instant.
    """
    if valid_during is not None and (as_of is not None or valid_at is not None):
        raise InvalidInput(
            "valid_during= stands in place of valid_at=; as_of= sets both times, so for what was known "
            "by then pass known_at= beside valid_during="
        )
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
    if isinstance(namespaces, str) or not isinstance(namespaces, Iterable):
        raise InvalidInput('namespaces must be a list of names, such as ["default"]')
    found = list(dict.fromkeys([text(name, "namespace") for name in namespaces]))
    if not found:
        raise InvalidInput("namespaces is empty")
    return found


def again(basis: Basis | str, question: str, *beside: object) -> Basis:
    """A basis to ask again.

    :param beside: what else was said, which a basis holds itself; all of it must be unsaid.
    :raises InvalidInput: if it is no basis, or one of another kind of question, or not alone.
    """
    if any(said is not None and said is not False for said in beside):
        raise InvalidInput("a basis holds its whole question; pass nothing beside it")
    found = Basis.read(basis)
    if found.question != question:
        raise InvalidInput(f"this basis is of {found.question}(), not of {question}()")
    return found


def ask(
    query: str | None,
    *,
    top_k: int,
    which: Asked,
    min_similarity: float | None,
    lineage_credit: float,
    explain: bool,
) -> Asked:
    """The fields of a basis that an ``ask`` brings; its vector and space are still to be added.

    :raises InvalidInput: for what cannot be asked.
    """
    if min_similarity is not None:
        share(min_similarity, "min_similarity")
    share(lineage_credit, "lineage_credit")
    if len(text(query, "query")) > LONGEST_QUERY:
        raise InvalidInput(f"a question has at most {LONGEST_QUERY:,} characters")
    return {
        "question": "ask",
        "query": text(query, "query"),
        "limit": whole(top_k, "top_k"),
        **which,
        "min_similarity": min_similarity,
        "lineage_credit": lineage_credit,
        "explain": explain,
    }


def facts(
    *,
    which: Asked,
    valid_during: PeriodLike | None,
    limit: int,
    after: FactLike | None,
    explain: bool,
) -> Asked:
    """The fields of a basis that ``facts`` brings.

    :raises InvalidInput: for what cannot be asked.
    :raises InvalidPeriod: for a ``valid_during`` that is no period.
    """
    return {
        "question": "facts",
        "valid_during": None if valid_during is None else parse_period(valid_during, "valid_during"),
        "limit": whole(limit, "limit"),
        "after": None if after is None else _named(after),
        **which,
        "explain": explain,
    }


def _named(after: FactLike) -> tuple[str | None, str]:
    return getattr(after, "namespace", None), fact_name(after, "after")


def diff(
    known_from: InstantLike, known_to: InstantLike | None, valid_at: InstantLike | None
) -> dict[str, Any]:
    """The instants between which belief is compared, and the one that it is about.

    :raises InvalidInstant: for what is no instant.
    """
    return {
        "known_from": parse_instant(known_from, "known_from"),
        "known_to": None if known_to is None else parse_instant(known_to, "known_to"),
        "valid_at": None if valid_at is None else parse_instant(valid_at, "valid_at"),
    }
