"""Instants, periods and points in the two times: pure, and the only place where texts become instants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from supersede.errors import InvalidInstant, InvalidPeriod

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-](0\d|1[0-5])(:?[0-5]\d)?))?",
    re.ASCII,
)


class Unbounded(Enum):
    """The ends that a period need not have."""

    NO_START = "no_start"
    NO_END = "no_end"


NO_START = Unbounded.NO_START
"""Nobody knows when it began."""
NO_END = Unbounded.NO_END
"""It goes on, whatever is known to come later in its slot."""

InstantLike = datetime | date | str

PeriodLike = Sequence[InstantLike | Unbounded | None]
"""Two bounds, ``(from, to)``; None where there is none."""


def parse_instant(value: object, name: str = "instant") -> datetime:
    """The instant that a value names, in UTC.

    Takes an aware datetime, a date (midnight UTC), or ISO 8601 text with an offset or as a bare date.
    Leap seconds, 24:00 and a lower-case ``z`` are refused, as PostgreSQL and Python differ on them.

    :param name: what to call the value in an error.
    :raises InvalidInstant: for a naive datetime, words such as ``yesterday``, and everything else.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise InvalidInstant(
                f"{name}: {value.isoformat()} is naive; give it a zone, such as tzinfo=timezone.utc"
            )
        parsed = value
    elif isinstance(value, date):
        parsed = datetime.combine(value, time(), UTC)
    elif isinstance(value, str) and _ISO.fullmatch(value):
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidInstant(f"{name}: there is no such instant as {value!r}") from error
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
    else:
        raise InvalidInstant(
            f"{name}: {value!r} is not an instant; give an aware datetime, a date, or ISO 8601 with an "
            "offset (2026-07-24T00:00:00Z)"
        )
    try:
        return parsed.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInstant(f"{name}: {value!r} lies outside the years 1 to 9999 in UTC") from error


def format_instant(at: datetime) -> str:
    """The one printed form: ISO 8601 in UTC, with as many decimals as the instant needs."""
    utc = at.astimezone(UTC)
    text = utc.replace(microsecond=0, tzinfo=None).isoformat()
    decimals = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{text}{decimals}Z"


def format_short(at: datetime) -> str:
    """As :func:`format_instant`, but midnight UTC prints as its date alone."""
    utc = at.astimezone(UTC)
    return utc.date().isoformat() if utc.timetz() == time(tzinfo=UTC) else format_instant(utc)


Instant = Annotated[
    datetime,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,5}[1-9])?Z$",
        },
        mode="serialization",
    ),
]
"""A datetime field that reads what :func:`parse_instant` takes and prints one form in JSON."""


class Period(NamedTuple):
    """``[start, end)``; None where it is unbounded."""

    start: Instant | None
    end: Instant | None

    def __contains__(self, at: object) -> bool:
        """Whether an instant lies in the period."""
        return (
            isinstance(at, datetime)
            and (self.start is None or self.start <= at)
            and (self.end is None or at < self.end)
        )

    def overlaps(self, other: Period) -> bool:
        """Whether some instant lies in both periods."""
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )

    def __str__(self) -> str:
        start = format_short(self.start) if self.start else "?"
        end = format_short(self.end) if self.end else ""
        return f"{start} – {end}".rstrip()


When = datetime | Period
"""What a read is about on the valid axis: an instant, or a period, anywhere within which will do."""


def touches(when: When, period: Period) -> bool:
    """Whether a period holds an instant, or has one in common with another period."""
    return period.overlaps(when) if isinstance(when, Period) else when in period


def parse_period(value: object, name: str = "period") -> Period:
    """The period that a pair of bounds names.

    Each bound is what :func:`parse_instant` takes, or None (or NO_START, NO_END) where there is none.

    :param name: what to call the value in an error.
    :raises InvalidPeriod: for what is no pair, and for a period that is empty or ends before it starts.
    :raises InvalidInstant: as :func:`parse_instant`.
    """
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InvalidPeriod(
            f"{name} takes a pair of instants, (from, to), either of which may be None; not {value!r}"
        )
    start = None if value[0] is None else event_bound(value[0], Unbounded.NO_START, f"{name}[0]")
    end = None if value[1] is None else event_bound(value[1], Unbounded.NO_END, f"{name}[1]")
    check_period(start, end)
    return Period(
        None if start in (None, Unbounded.NO_START.value) else parse_instant(start),
        None if end in (None, Unbounded.NO_END.value) else parse_instant(end),
    )


def event_bound(value: InstantLike | Unbounded | None, side: Unbounded, name: str) -> str | None:
    """One end of a period as an event says it; None where it was not said.

    :raises InvalidPeriod: for the unbounded end of the other side.
    :raises InvalidInstant: as :func:`parse_instant`.
    """
    if value is None:
        return None
    if isinstance(value, Unbounded) or value in (Unbounded.NO_START.value, Unbounded.NO_END.value):
        if Unbounded(value) is not side:
            raise InvalidPeriod(f"{name} takes an instant or {side.name}")
        return side.value
    return format_instant(parse_instant(value, name))


def check_period(start: str | None, end: str | None) -> None:
    """Refuse an empty or reversed period before it reaches the database.

    :param start: as :func:`event_bound` returns it; likewise ``end``.
    :raises InvalidPeriod: naming both ends.
    """
    unbounded = {Unbounded.NO_START.value, Unbounded.NO_END.value, None}
    if start in unbounded or end in unbounded:
        return
    if parse_instant(start) >= parse_instant(end):
        raise InvalidPeriod(
            f"the period would be empty: it starts at {start} and ends at {end}; "
            "its end must lie after its start"
        )
