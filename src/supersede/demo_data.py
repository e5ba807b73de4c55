"""The RFC index as a history to replay: what each RFC said, and what it obsoleted or updated.

The index knows months, not days, and it is not tidy. Forty-four RFCs were obsoleted in the month
they appeared in; three by an RFC dated earlier than they are; many have several obsoleters, or had
been obsolete for years when another RFC updated them. So every supersession says
``if_not_current="link"``: cut what is there to cut, and keep the edge in any case.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any, TypedDict

# The index has only the latest status of each RFC. An answer as of 1998 shows it with its date, so
# that it does not pass for what was known then.
_STATUS_AS_OF = "2024-03-06"


class RfcRow(TypedDict):
    """One RFC, as in the package's data; described in ``data/README.md``."""

    number: int
    title: str
    date: str
    status: str
    obsoletes: list[int]
    updates: list[int]


def rfc_rows() -> Iterator[RfcRow]:
    """The rows of the index, by number."""
    packed = (resources.files("supersede") / "data" / "rfc.jsonl.gz").read_bytes()
    for line in gzip.decompress(packed).splitlines():
        yield json.loads(line)


def rfc_events() -> Iterator[dict[str, Any]]:
    """The whole index as events for ``replay``, by date and number.

    An RFC is one event, of the verb that says most: ``supersede`` if it obsoletes others, else
    ``amend`` if it updates others, else ``remember``. What that event cannot say follows in events
    that link two facts already there (``by``), each with a handle of its own.
    """
    return events_of(rfc_rows())


def events_of(rows: Iterable[RfcRow]) -> Iterator[dict[str, Any]]:
    """The events of any part of the index that holds every RFC it refers to."""
    recorded: set[int] = set()
    # Edges to an RFC that comes later, kept until it is there.
    obsoleters: defaultdict[int, list[int]] = defaultdict(list)
    updaters: defaultdict[int, list[int]] = defaultdict(list)

    for row in sorted(rows, key=lambda each: (each["date"], each["number"])):
        number, when = row["number"], _instant(row["date"])
        # Three RFCs are listed as both obsoleting and updating one RFC. Of two edges of one pair a
        # reader is shown the newer, and an amendment would hide that the old one is gone.
        updates = [old for old in row["updates"] if old not in row["obsoletes"]]
        yield from _events_of_row(
            row,
            when,
            obsoletes=[old for old in row["obsoletes"] if old in recorded],
            updates=[old for old in updates if old in recorded],
        )
        recorded.add(number)
        for old in row["obsoletes"]:
            if old not in recorded:
                obsoleters[old].append(number)
        for old in updates:
            if old not in recorded:
                updaters[old].append(number)

        # The later of two dates is this one's: until now there was nothing to cut.
        for new in obsoleters.pop(number, []):
            yield {**_supersede([number], when), **_by(new, f"rfc/obsoletes/{new}/{number}")}
        for new in updaters.pop(number, []):
            yield {**_amend([number], when), **_by(new, f"rfc/updates/{new}/{number}")}


def _events_of_row(
    row: RfcRow, when: str, *, obsoletes: list[int], updates: list[int]
) -> Iterator[dict[str, Any]]:
    number = row["number"]
    fact = {
        "ref": _ref(number),
        "claim": row["title"],
        "subject": f"RFC {number}",
        "kind": "rfc",
        "valid_from": when,
        "sources": [f"https://www.rfc-editor.org/info/rfc{number}"],
        "data": {"status": row["status"], "status_as_of": _STATUS_AS_OF},
    }
    if obsoletes:
        yield {**_supersede(obsoletes, when), **fact}
        if updates:
            yield {**_amend(updates, when), **_by(number, f"rfc/updates/{number}")}
    elif updates:
        yield {**_amend(updates, when), **fact}
    else:
        yield {"op": "remember", "recorded_at": when, **fact}


def _supersede(olds: list[int], when: str) -> dict[str, Any]:
    return {
        "op": "supersede",
        "recorded_at": when,
        "old": [_ref(old) for old in olds],
        "reason": "change",
        "valid_from": when,
        "if_not_current": "link",
    }


def _amend(olds: list[int], when: str) -> dict[str, Any]:
    return {
        "op": "amend",
        "recorded_at": when,
        "old": [_ref(old) for old in olds],
        "valid_from": when,
    }


def _by(new: int, handle: str) -> dict[str, Any]:
    return {"by": _ref(new), "handle": handle}


def _ref(number: int) -> str:
    return f"rfc/{number}"


def _instant(date: str) -> str:
    return f"{date}T00:00:00Z"
