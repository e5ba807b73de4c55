"""What is an instant and what is not: decided before SQL, and the same in Python and in SQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import make_url

from databases import dump, execute, query
from supersede import FactStore, InvalidInput, InvalidInstant
from supersede.periods import format_instant, format_short, parse_instant

MAY = datetime(2026, 5, 1, tzinfo=UTC)

REFUSED = {
    "words that PostgreSQL would take": [
        "now", "today", "tomorrow", "yesterday", "epoch", "infinity", "-infinity", "allballs",
    ],
    "words of a model": ["last week", "Q3 2024", "unknown", "none", "null", "n/a", "2 days ago"],
    "no zone": ["2026-05-01T00:00:00", "2026-05-01 00:00", "2024-03-10T02:30:00", "2024-11-03T01:30:00"],
    "a zone by name": [
        "2026-05-01T00:00:00 UTC", "2026-05-01T00:00:00 UTC+3", "2026-05-01T00:00:00UTC+3",
        "2026-05-01T00:00:00 GMT-3", "2026-05-01T00:00:00 America/New_York", "2026-05-01 00:00:00 EST",
    ],
    "the order of day and month": [
        "12/01/2024", "01.12.2024", "12-01-2024", "1 December 2024", "Dec 1 2024", "20240112",
    ],
    "a part of a date": ["2024", "2024-05", "2024-W10", "2024-W10-1", "2024-130", "24-05-01", "12:00:00Z"],
    "beyond the years that both can hold": [
        "44 BC", "0044-03-15 BC", "0000-01-01", "-0044-03-15", "99999-01-01", "10000-01-01T00:00:00Z",
    ],
    "beyond those years in UTC": ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"],
    "no such day or time": [
        "2026-02-29", "2026-13-01", "2026-00-10", "2026-04-31T00:00:00Z", "2026-05-01T25:00:00Z",
        "2026-05-01T12:60:00Z", "2026-05-01T12:00:00+25:00",
    ],
    "what PostgreSQL reads and Python does not": [
        "2016-12-31T23:59:60Z", "2026-05-01T24:00:00Z", "2026-05-01T00:00:00z", "2026-05-01t00:00:00Z",
        "2026-05-01T00:00:00.0000001Z", "J2451187", "2026-05-01 04:05 PM +00",
    ],
    "what Python reads and PostgreSQL does not": ["2026-05-01T00:00:00,5Z", "2026-05-01x00:00:00Z"],
    "what looks right": [
        "", " ", "2026-05-01 ", " 2026-05-01", "2026-05-01\n", "2026-05-01T00:00:00Z\n", "２０２６-05-01",
        "2026-05-01T00:00:00\u2212" "05:00", "2026‐05‐01", "٢٠٢٦-05-01", "2026-05-01\x00", "2026-05-01\ud800",
    ],
}  # fmt: skip


def refused() -> list[str]:
    return [text for texts in REFUSED.values() for text in texts]


# --- pure


@pytest.mark.parametrize("text", refused(), ids=ascii)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInstant, match="valid_from: "):
        parse_instant(text, "valid_from")


@pytest.mark.parametrize(
    "value", [None, 0, 1767225600, 1.5, True, b"2026-05-01", [2026, 5, 1], object(), timedelta(1), MAY.time()]
)
def test_what_is_not_even_a_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidInstant):
        parse_instant(value)


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInstant, match="valid_from: 2026-05-01T00:00:00 is naive"):
        parse_instant(datetime(2026, 5, 1), "valid_from")


@pytest.mark.parametrize(
    "value",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=1))),
    ],
)
def test_a_datetime_that_leaves_the_years_in_utc_is_refused(value: datetime) -> None:
    with pytest.raises(InvalidInstant, match="outside the years 1 to 9999"):
        parse_instant(value)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (date(2026, 5, 1), "2026-05-01T00:00:00Z"),
        ("2026-05-01", "2026-05-01T00:00:00Z"),
        ("2026-05-01T02:00:00+02:00", "2026-05-01T00:00:00Z"),
        ("2026-05-01 02:00+02", "2026-05-01T00:00:00Z"),
        ("2026-05-01T00:00:00.25Z", "2026-05-01T00:00:00.25Z"),
        ("2026-05-01T00:00:00.000001Z", "2026-05-01T00:00:00.000001Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        # The two sides of the hour that New York skips, and of the one it has twice.
        ("2024-03-10T01:59:59-05:00", "2024-03-10T06:59:59Z"),
        ("2024-03-10T03:00:00-04:00", "2024-03-10T07:00:00Z"),
        ("2024-11-03T01:30:00-04:00", "2024-11-03T05:30:00Z"),
        ("2024-11-03T01:30:00-05:00", "2024-11-03T06:30:00Z"),
        (datetime(2024, 11, 3, 1, 30, tzinfo=ZoneInfo("America/New_York")), "2024-11-03T05:30:00Z"),
        (datetime(2024, 11, 3, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")), "2024-11-03T06:30:00Z"),
        # ISO 8601 signs: +03 is east of Greenwich, unlike PostgreSQL's "UTC+3".
        ("2026-05-01T00:00:00+03", "2026-04-30T21:00:00Z"),
    ],
)
def test_an_instant_is_read_exactly(value: Any, instant: str) -> None:
    assert format_instant(parse_instant(value)) == instant


aware = st.datetimes(timezones=st.timezones()).filter(lambda at: 1 < at.year < 9999)


@given(aware)
def test_an_instant_survives_its_printed_form(at: datetime) -> None:
    parsed = parse_instant(at)
    assert parsed == at.astimezone(UTC)
    assert parsed.tzinfo is UTC
    assert parse_instant(format_instant(at)) == parsed
    assert parse_instant(format_short(at)) == parsed
    if not at.utcoffset() % timedelta(minutes=1):  # local mean times of old have offsets in seconds
        assert parse_instant(at.isoformat()) == parsed


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_printed_instants_of_whole_seconds_sort_as_they_follow(one: datetime, two: datetime) -> None:
    one, two = one.replace(microsecond=0), two.replace(microsecond=0)
    assert (format_instant(one) < format_instant(two)) == (one < two)


@given(st.dates())
def test_a_date_is_its_midnight_in_utc(day: date) -> None:
    assert parse_instant(day) == parse_instant(day.isoformat()) == datetime(*day.timetuple()[:3], tzinfo=UTC)


# --- Python and SQL


Read = Callable[[str], str | None]


@pytest.fixture
def read_by_sql(database: str) -> Iterator[Read]:
    """What ``supersede.instant`` makes of a text, in the printed form; None where it refuses."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "create function pg_temp.read(t text) returns text language plpgsql as "
            "$$ begin return supersede.iso(supersede.instant(t)); "
            "exception when sqlstate 'SU002' then return null; end $$"
        )
        yield lambda text: connection.execute("select pg_temp.read(%s)", [text], prepare=True).fetchall()[0][
            0
        ]


def read_by_python(text: str) -> str | None:
    try:
        return format_instant(parse_instant(text))
    except InvalidInstant:
        return None


digits = st.text("0123456789", min_size=1, max_size=4)
times = st.one_of(
    st.just(""),
    st.builds("{:02}:{:02}".format, st.integers(0, 25), st.integers(0, 61)),
    st.builds("{:02}:{:02}:{:02}".format, st.integers(0, 25), st.integers(0, 61), st.integers(0, 61)),
    st.builds("{:02}:{:02}:00.{}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 10**7)),
)
zones = st.one_of(
    st.sampled_from(["", "Z", "z", " ", "UTC", "UTC+3"]),
    st.builds("{}{:02}".format, st.sampled_from("+-"), st.integers(0, 16)),
    st.builds("{}{:02}:{:02}".format, st.sampled_from("+-"), st.integers(0, 25), st.integers(0, 61)),
    st.builds("{}{:02}{:02}".format, st.sampled_from("+-"), st.integers(0, 15), st.integers(0, 59)),
)
days = st.one_of(
    st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)),
    st.dates().map(str),
    st.builds("{}-{}-{}".format, digits, digits, digits),
)
nearly_instants = st.builds("{}{}{}{}".format, days, st.sampled_from(["T", " ", "", "t"]), times, zones)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=nearly_instants | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(Z|[+-]\d\d:?\d\d)", fullmatch=True)
)
@example(text="2026-05-01T00:00:00+05:99")
@example(text="2026-05-01T00:00:00+16:00")
@example(text="0001-01-01T00:00:00+00:01")
@example(text="9999-12-31T23:59:59.999999-00:01")
def test_python_and_sql_read_the_same(read_by_sql: Read, text: str) -> None:
    assert read_by_sql(text) == read_by_python(text)


def test_python_and_sql_refuse_the_same(read_by_sql: Read) -> None:
    texts = [text for text in refused() if "\x00" not in text and "\ud800" not in text]
    assert [text for text in texts if read_by_sql(text) is not None] == []


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("style", ["SQL, DMY", "German", "Postgres, MDY"])
def test_the_session_has_no_say_in_what_an_instant_is(database: str, zone: str, style: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(f"set timezone = '{zone}'")
        connection.execute(f"set datestyle = '{style}'")
        row = connection.execute(
            "select supersede.instant('2026-05-01') = timestamptz '2026-05-01 00:00:00+00', "
            "supersede.iso(supersede.instant('2026-05-01T00:00:00.5+05:30'))"
        ).fetchone()
    assert row == (True, "2026-04-30T18:30:00.5Z")


# --- through the store


ARGUMENTS: dict[str, Callable[[FactStore, Any], object]] = {
    "remember valid_from": lambda store, at: store.remember("c", valid_from=at),
    "remember valid_to": lambda store, at: store.remember("c", valid_from="1000-01-01", valid_to=at),
    "remember asserted": lambda store, at: store.remember("c", asserted=at),
    "remember source date": lambda store, at: store.remember("c", sources=[("uri", at)]),
    "supersede valid_from": lambda store, at: store.supersede("a", "c", valid_from=at),
    "amend valid_from": lambda store, at: store.amend("a", "c", valid_from=at),
    "end at": lambda store, at: store.end("a", at=at),
    "end until": lambda store, at: store.end("a", until=at),
    "cite asserted": lambda store, at: store.cite("a", sources=["uri"], asserted=at),
    "facts valid_at": lambda store, at: store.facts(valid_at=at),
    "facts known_at": lambda store, at: store.facts(known_at=at),
    "facts as_of": lambda store, at: store.facts(as_of=at),
    "ask valid_at": lambda store, at: store.ask("c", valid_at=at),
    "ask as_of": lambda store, at: store.ask("c", as_of=at),
}


def test_every_argument_that_is_an_instant_refuses_what_is_none_before_sql(
    database: str, store: FactStore
) -> None:
    store.remember("claim", ref="a", valid_from="2020-01-01")
    before = dump(database)
    statements: list[str] = []
    sa.event.listen(store._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    for name, call in ARGUMENTS.items():
        for value in [datetime(2026, 5, 1), *refused()]:
            with pytest.raises(InvalidInstant):
                call(store, value)
            assert statements == [], (name, value)
    assert dump(database) == before


@pytest.mark.parametrize(
    "key", ["recorded_at", "valid_from", "valid_to", "asserted", "sources", "when", "until"]
)
def test_an_event_refuses_what_is_no_instant(database: str, store: FactStore, key: str) -> None:
    store.remember("claim", ref="a", valid_from="2020-01-01")
    before = dump(database)
    for text in refused():
        event: dict[str, Any] = {"op": "remember", "claim": "c", "recorded_at": "2026-01-01"}
        if key in ("when", "until"):
            event = {"op": "end", "ref": "a", "when": "2025-01-01", "recorded_at": "2026-01-01"}
        event[key] = [["uri", text]] if key == "sources" else text
        with pytest.raises(InvalidInput):
            store.replay([event], out_of_order="next_stamp")
    assert dump(database) == before


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York"])
def test_a_bare_date_is_midnight_utc_whatever_the_database_says(
    server_url: str, database: str, zone: str
) -> None:
    name = make_url(database).database
    execute(server_url, f"alter database \"{name}\" set timezone = '{zone}'")
    execute(server_url, f"alter database \"{name}\" set datestyle = 'SQL, DMY'")
    assert query(database, "show timezone") == [(zone,)]
    with FactStore.open(database) as store:
        store.remember("claim", valid_from=date(2024, 6, 1), ref="a")
        assert store.get("a").valid == (datetime(2024, 6, 1, tzinfo=UTC), None)
        for at in ("2024-06-01", date(2024, 6, 1), "2024-06-01T00:00:00Z"):
            assert len(store.facts(valid_at=at).facts) == 1
        assert store.facts(valid_at="2024-05-31T23:59:59.999999Z").facts == ()
        assert '"2024-06-01T00:00:00Z"' in store.get("a").model_dump_json()


def test_the_zone_is_not_kept_only_the_instant(store: FactStore) -> None:
    store.remember(
        "The meeting began at nine in Berlin",
        ref="a",
        valid_from="2026-07-01T09:00:00+02:00",
        data={"local": "2026-07-01T09:00:00+02:00[Europe/Berlin]"},
    )
    fact = store.get("a")
    assert fact.model_dump(mode="json")["valid"] == ["2026-07-01T07:00:00Z", None]
    assert fact.data == {"local": "2026-07-01T09:00:00+02:00[Europe/Berlin]"}


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time is fourteen hours ahead."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_the_zone_of_the_machine_has_no_say_in_what_is_printed() -> None:
    at = datetime(2026, 7, 24, tzinfo=UTC)
    assert (format_short(at), format_instant(at)) == ("2026-07-24", "2026-07-24T00:00:00Z")
    assert format_short(at.astimezone(timezone(timedelta(hours=2)))) == "2026-07-24"
    assert format_short(datetime(2026, 7, 24, 10, tzinfo=UTC)) == "2026-07-24T10:00:00Z"
