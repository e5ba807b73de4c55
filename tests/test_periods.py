"""Periods: half-open, never empty, without a hole that nobody asked for; in Python, in SQL, in answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import dump, query, set_clock
from supersede import NO_END, NO_START, FactStore, InvalidInput, InvalidInstant, InvalidPeriod, Period
from supersede.periods import check_period, event_bound, format_instant

MICROSECOND = timedelta(microseconds=1)
Insert = Callable[..., None]
instants = st.datetimes(timezones=st.just(UTC))
bounds = st.none() | instants
periods = st.builds(Period, bounds, bounds)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def claims(store: FactStore, **point: Any) -> list[str]:
    return sorted(fact.claim for fact in store.facts(**point).facts)


def stored(database: str, ref: str, *, is_open: bool = True) -> list[tuple[datetime | None, datetime | None]]:
    return query(
        database,
        "select lower(valid_time), upper(valid_time) from supersede.fact_version "
        "join supersede.fact_ref using (namespace, fact_id) where ref = %s and is_open = %s "
        "order by valid_time",
        ref,
        is_open,
    )


# --- pure


@given(periods, instants)
def test_a_period_holds_its_start_and_not_its_end(period: Period, instant: datetime) -> None:
    after_start = period.start is None or period.start <= instant
    before_end = period.end is None or instant < period.end
    assert (instant in period) == (after_start and before_end)


@given(instants, instants, instants)
def test_an_instant_lies_in_one_of_two_periods_that_touch(
    one: datetime, two: datetime, instant: datetime
) -> None:
    border, end = min(one, two), max(one, two)
    halves = [Period(None, border), Period(border, end), Period(end, None)]
    assert sum(instant in half for half in halves) == 1


@given(periods)
def test_what_is_no_instant_is_in_no_period(period: Period) -> None:
    assert "2026-05-01" not in period
    assert None not in period


@given(instants, instants)
def test_a_period_must_have_a_length(start: datetime, end: datetime) -> None:
    said = format_instant(start), format_instant(end)
    if start < end:
        check_period(*said)
    else:
        with pytest.raises(InvalidPeriod, match="empty"):
            check_period(*said)


@given(instants)
def test_a_bound_is_an_instant_or_has_none(instant: datetime) -> None:
    assert event_bound(instant, NO_END, "valid_to") == format_instant(instant)
    assert event_bound(None, NO_END, "valid_to") is None
    for said in (NO_END, "no_end"):
        assert event_bound(said, NO_END, "valid_to") == "no_end"
        with pytest.raises(InvalidPeriod, match="valid_from takes an instant or NO_START"):
            event_bound(said, NO_START, "valid_from")
    check_period(event_bound(NO_START, NO_START, "f"), format_instant(instant))
    check_period(format_instant(instant), event_bound(NO_END, NO_END, "t"))


# --- what the tables refuse, whoever writes


@pytest.fixture
def version(database: str, store: FactStore) -> Insert:
    """Inserts a version of one fact by SQL, as the owner, beside the verbs."""
    fact = store.remember("claim", valid_from="2000-01-01", valid_to="2001-01-01")

    def insert(
        valid: str, tx: str = "[2020-01-01,)", *, slot: str | None = None, fact_id: Any = fact.id
    ) -> None:
        with psycopg.connect(database) as connection:
            connection.execute("set timezone = 'UTC'")
            connection.execute(
                "insert into supersede.fact_version (namespace, is_open, version_id, fact_id, valid_time, "
                "tx_time, slot_key, kind, trust, recorded) values ('default', upper_inf(%(tx)s::tstzrange), "
                "gen_random_uuid(), %(fact)s, %(valid)s, %(tx)s, %(slot)s, 'fact', 'extracted', now())",
                {"tx": tx, "valid": valid, "slot": slot, "fact": fact_id},
            )

    return insert


OPEN, CLOSED = "[2020-01-01,)", "[2020-01-01,2021-01-01)"


@pytest.mark.parametrize("partition", ["open", "closed"])
def test_the_tables_refuse_what_is_no_period(version: Insert, partition: str) -> None:
    tx = {"open": OPEN, "closed": CLOSED}[partition]
    version("[2026-05-01,2026-06-01)", tx)
    version("(,1000-01-01)", tx)
    refused = {
        "shape": ["empty", "[2026-07-01,2026-07-01)", "[2026-07-01,2026-08-01]", "(2026-07-01,2026-08-01)",
                  "[2026-07-01,2026-07-01]"],
        "bounds": ["[2026-07-01,infinity)", "[-infinity,1000-01-01)", "[2026-07-01,10000-01-01)",
                   "[0044-03-15 BC,1000-01-01)", "[infinity,)"],
    }  # fmt: skip
    for kind, ranges in refused.items():
        for valid in ranges:
            with pytest.raises(psycopg.errors.CheckViolation) as violation:
                version(valid, tx)
            name = violation.value.diag.constraint_name or ""
            assert name.startswith(f"fact_version_{partition}_valid_time"), (kind, valid)


def test_the_tables_refuse_a_transaction_time_that_no_driver_could_read(version: Insert) -> None:
    shapes = ["empty", "(,)", "(,2021-01-01)", "[2020-01-01,2021-01-01]", "(2020-01-01,)"]
    bounds = ["[2020-01-01,infinity)", "[-infinity,)", "[2020-01-01,10000-01-01)", "[infinity,)"]
    for tx in shapes + bounds:
        with pytest.raises(psycopg.errors.CheckViolation) as violation:
            version("[2026-05-01,2026-06-01)", tx)
        assert "_tx_time_" in (violation.value.diag.constraint_name or ""), tx


def test_what_the_tables_hold_can_be_read_back(store: FactStore, version: Insert) -> None:
    version("[0001-01-01,0001-01-02)")
    version("[9999-12-31,9999-12-31 23:59:59.999999)")
    version("(,0001-01-01)", "[0001-01-01,0001-01-01 00:00:00.000001)")
    assert len(store.facts(valid_at="0001-01-01").facts) == 1
    assert len(store.history(store.facts(valid_at="2000-06-01").facts[0].id).versions) == 4


def test_a_null_cannot_switch_an_exclusion_off(database: str, version: Insert) -> None:
    """A fact cannot be believed twice, and a slot cannot hold two values, by way of a missing key."""
    version("[2026-05-01,2026-06-01)")
    with pytest.raises(psycopg.errors.ExclusionViolation) as violation:
        version("[2026-05-31 23:59:59.999999,2026-07-01)")
    assert violation.value.diag.constraint_name == "fact_version_open_fact_excl"
    with pytest.raises(psycopg.errors.NotNullViolation):
        version("[2026-05-01,2026-06-01)", fact_id=None)
    keys = query(
        database,
        "select c.conname, a.attname from pg_constraint c "
        "join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any (c.conkey) "
        "where c.contype = 'x' and c.connamespace = 'supersede'::regnamespace and not a.attnotnull",
    )
    assert keys == [("fact_version_open_slot_excl", "slot_key")], "a version without a slot has no rival"


def test_two_values_in_one_slot_are_refused_by_the_table_too(
    database: str, store: FactStore, version: Insert
) -> None:
    slot = "00000000-0000-0000-0000-000000000001"
    other = store.remember("other", valid_from="2000-01-01", valid_to="2001-01-01")
    version("[2026-05-01,2026-06-01)", slot=slot)
    version("[2026-06-01,)", slot=slot, fact_id=other.id)
    with pytest.raises(psycopg.errors.ExclusionViolation) as violation:
        version("[2026-01-01,2026-05-02)", slot=slot, fact_id=other.id)
    assert violation.value.diag.constraint_name == "fact_version_open_slot_excl"


def test_every_believed_version_of_a_one_valued_predicate_has_its_slot(
    database: str, store: FactStore
) -> None:
    store.remember("before", subject="s", predicate="P", valid_to=NO_END, valid_from="2020-01-01")
    store.declare_predicate("p", cardinality="one")
    store.remember("after", subject="S", predicate="p", valid_from="2021-01-01")
    store.remember("no subject", predicate="p")
    store.remember("many", subject="s", predicate="q")
    rows = query(
        database,
        "select claim, slot_key is not null from supersede.fact_version "
        "join supersede.fact using (namespace, fact_id) where is_open order by 1",
    )
    assert rows == [("after", True), ("before", True), ("many", False), ("no subject", False)]


# --- bounds as said


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-05-01", "2026-05-01"),
        ("2026-05-02", "2026-05-01"),
        ("2026-05-01T00:00:00+02:00", "2026-04-30T22:00:00Z"),
        ("2026-05-01T00:00:00Z", "2026-05-01T01:00:00+02:00"),
    ],
)
def test_an_end_before_its_start_is_refused_with_both_named(
    database: str, store: FactStore, start: str, end: str
) -> None:
    store.remember("claim", ref="a", valid_from="2020-01-01")
    before = dump(database)
    calls = [
        lambda: store.remember("c", valid_from=start, valid_to=end),
        lambda: store.supersede("a", "c", valid_from=start, valid_to=end),
        lambda: store.supersede("a", "c", valid_from=start, valid_to=end, reason="correction"),
        lambda: store.amend("a", "c", valid_from=start, valid_to=end),
        lambda: store.end("a", at=start, until=end),
        lambda: store.replay(
            [{"op": "remember", "claim": "c", "recorded_at": "2026-01-01", "ref": "b",
              "valid_from": start, "valid_to": end}],
            out_of_order="next_stamp",
        ),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(InvalidPeriod, match=r"starts at .*Z and ends at .*Z"):
            call()
    assert dump(database) == before


def test_the_event_with_the_reversed_period_is_named(store: FactStore) -> None:
    events = [
        {"op": "remember", "claim": "a", "ref": "a", "recorded_at": "2020-01-01"},
        {"op": "remember", "claim": "b", "ref": "adr/7", "recorded_at": "2020-01-01",
         "valid_from": "2019-01-01", "valid_to": "2018-01-01"},
    ]  # fmt: skip
    with pytest.raises(InvalidPeriod, match="adr/7") as refused:
        store.replay(events)
    assert refused.value.details["position"] == 2
    assert store.facts().outcome == "nothing_recorded", "its whole batch is undone"


def test_an_end_before_the_default_start_is_refused(database: str, store: FactStore) -> None:
    """Without a start, a claim begins now: an end in the past leaves it no time."""
    store.remember("claim", ref="a", valid_from="2020-01-01")
    before = dump(database)
    with pytest.raises(InvalidPeriod):
        store.remember("c", valid_to="2020-01-01")
    with pytest.raises(InvalidPeriod):
        store.supersede("a", "c", valid_to="2020-01-01")
    with pytest.raises(InvalidPeriod):
        store.end("a", until="2020-01-01")
    assert dump(database) == before


def test_unbounded_is_the_absence_of_a_bound_and_no_far_date(database: str, store: FactStore) -> None:
    store.remember("always", ref="always", valid_from=NO_START, valid_to=NO_END)
    store.remember("until", ref="until", valid_from=NO_START, valid_to="2020-01-01")
    store.remember("since", ref="since", valid_from="2020-01-01", valid_to=NO_END)
    assert stored(database, "always") == [(None, None)]
    assert stored(database, "until") == [(None, at("2020-01-01"))]
    assert stored(database, "since") == [(at("2020-01-01"), None)]
    assert claims(store, valid_at="0001-01-01") == ["always", "until"]
    assert claims(store, valid_at="9999-12-31") == ["always", "since"]
    assert query(
        database,
        "select count(*) from supersede.fact_version where lower(valid_time) = '-infinity' "
        "or upper(valid_time) = 'infinity'",
    ) == [(0,)]


def test_an_unbounded_side_is_refused_on_the_other_side(store: FactStore) -> None:
    with pytest.raises(InvalidPeriod):
        store.remember("c", valid_from=NO_END)
    with pytest.raises(InvalidPeriod):
        store.remember("c", valid_to="no_start")
    with pytest.raises(InvalidInput):
        store.replay([{"op": "remember", "claim": "c", "recorded_at": "2020-01-01", "valid_from": "no_end"}])


# --- at the borders


def test_at_the_very_instant_of_a_change_one_value_holds(database: str, store: FactStore) -> None:
    border = at("2022-01-01")
    set_clock(database, "2022-06-01T00:00:00Z")
    old = store.remember("Boston", ref="a", valid_from="2019-01-01")
    set_clock(database, "2022-07-01T00:00:00Z")
    new = store.supersede("a", "Denver", valid_from=border)
    assert claims(store, valid_at=border - MICROSECOND) == ["Boston"]
    assert claims(store, valid_at=border) == ["Denver"]
    assert claims(store, valid_at=border, known_at=new.stamp - MICROSECOND) == ["Boston"]
    assert claims(store, valid_at=border, known_at=new.stamp) == ["Denver"]
    assert claims(store, valid_at=border, known_at=old.stamp) == ["Boston"]
    assert claims(store, valid_at=border, known_at=old.stamp - MICROSECOND) == []


def test_a_fact_cut_in_the_middle_keeps_both_sides(database: str, store: FactStore) -> None:
    store.remember("year", ref="year", valid_from="2024-01-01", valid_to="2025-01-01")
    cut = store.supersede("year", "march", ref="march", valid_from="2024-03-01", valid_to="2024-04-01")
    january, march, april, december = map(at, ("2024-01-01", "2024-03-01", "2024-04-01", "2025-01-01"))
    assert stored(database, "year") == [(january, march), (april, december)]
    assert stored(database, "march") == [(march, april)]
    assert stored(database, "year", is_open=False) == [(january, december)]
    assert cut.supersedes[0].taken == (Period(march, april),)
    assert [(edge.ref, edge.reason) for edge in store.get("march").supersedes] == [("year", "change")]
    day = january
    while day < december:
        assert claims(store, valid_at=day) == ["march" if march <= day < april else "year"]
        day += timedelta(days=14)


def test_taking_all_of_a_period_leaves_nothing_of_it(database: str, store: FactStore) -> None:
    store.remember("year", ref="year", valid_from="2024-01-01", valid_to="2025-01-01")
    store.supersede("year", "better", ref="better", reason="correction")
    assert stored(database, "year") == []
    assert stored(database, "better") == [(at("2024-01-01"), at("2025-01-01"))]


def test_the_same_claim_at_two_times_is_two_facts(database: str, store: FactStore) -> None:
    store.declare_predicate("team", cardinality="one")
    person: dict[str, Any] = {"subject": "Ann", "predicate": "team"}
    first = store.remember("Payments", valid_from="2022-01-01", valid_to="2023-01-01", **person)
    between = store.remember("Search", valid_from="2023-01-01", valid_to="2025-01-01", **person)
    second = store.remember("Payments", valid_from="2025-01-01", **person)
    assert len({first.id, between.id, second.id}) == 3
    assert second.created
    assert query(database, "select count(*) from supersede.supersedes") == [(0,)]
    for year, fact in (("2022-06-01", first), ("2024-06-01", between), ("2026-06-01", second)):
        assert [found.id for found in store.facts(valid_at=year).facts] == [fact.id]
    assert claims(store, valid_at="2021-06-01") == []


def test_what_begins_later_is_not_there_yet_and_not_gone_either(database: str, store: FactStore) -> None:
    set_clock(database, "2026-07-24T00:00:00Z")
    store.remember("from January on", valid_from="2027-01-01", ref="a")
    answer = store.facts(explain=True)
    assert (answer.facts, answer.withheld.nonzero()) == ((), {"not_yet_valid": 1})
    assert answer.outcome == "all_withheld"
    assert claims(store, valid_at="2027-01-01") == ["from January on"]
    set_clock(database, "2027-01-01T00:00:00Z")
    assert claims(store) == ["from January on"]


def test_what_ends_later_is_still_there(database: str, store: FactStore) -> None:
    set_clock(database, "2026-07-24T00:00:00Z")
    store.remember("until January", valid_from="2020-01-01", valid_to="2027-01-01", ref="a")
    store.remember("ended ahead of time", valid_from="2020-01-01", ref="b")
    store.end("b", at="2026-12-01")
    answer = store.facts()
    assert sorted(fact.ref or "" for fact in answer.facts) == ["a", "b"]
    assert answer.withheld.total == 0
    assert store.get("b").valid == (at("2020-01-01"), at("2026-12-01"))
    set_clock(database, "2026-12-01T00:00:00Z")
    assert [fact.ref for fact in store.facts().facts] == ["a"]
    assert store.facts().withheld.nonzero() == {"expired": 1}


def test_late_news_about_the_past_does_not_push_out_the_present(store: FactStore) -> None:
    store.declare_predicate("hq", cardinality="one")
    hq: dict[str, Any] = {"subject": "Acme", "predicate": "hq"}
    store.remember("B", valid_from="2024-01-01", ref="b", **hq)
    late = store.remember("A", valid_from="2020-01-01", ref="a", sources=["letter of 2020"], **hq)
    assert late.valid == (Period(at("2020-01-01"), at("2024-01-01")),)
    assert late.supersedes == ()
    assert claims(store) == ["B"]
    assert claims(store, valid_at="2022-01-01") == ["A"]
    assert claims(store, valid_at=at("2024-01-01") - MICROSECOND) == ["A"]


def test_a_claim_without_a_date_has_that_of_its_document_not_todays(store: FactStore) -> None:
    result = store.replay(
        [
            {"op": "remember", "claim": "Boston", "ref": "a", "recorded_at": "2019-05-04T10:00:00Z"},
            {"op": "remember", "claim": "asserted before", "ref": "b", "recorded_at": "2019-05-05",
             "asserted": "2018-01-01", "sources": ["letter"]},
        ]
    )  # fmt: skip
    assert [fact.valid for fact in result] == [
        (Period(at("2019-05-04T10:00:00"), None),),
        (Period(at("2019-05-05"), None),),
    ]
    assert store.get("a").asserted == at("2019-05-04T10:00:00")
    assert store.get("b").asserted == at("2018-01-01")
    late = store.replay(
        [{"op": "remember", "claim": "late", "ref": "c", "recorded_at": "2017-03-01"}],
        out_of_order="next_stamp",
    )
    assert late[0].valid == (Period(at("2017-03-01"), None),)
    assert store.get("c").asserted == at("2017-03-01")
    assert claims(store, as_of="2018-06-01") == [], "it was not known then"


START, END = datetime(2026, 3, 12, tzinfo=UTC), datetime(2026, 6, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "printed"),
    [
        (Period(START, END), "2026-03-12 – 2026-06-30T12:00:00Z"),
        (Period(START, None), "2026-03-12 –"),
        (Period(None, END), "? – 2026-06-30T12:00:00Z"),
        (Period(None, None), "? –"),
    ],
)
def test_a_period_is_printed_with_its_open_ends(period: Period, printed: str) -> None:
    assert str(period) == printed


def test_an_instant_at_an_end_of_a_period() -> None:
    moment = timedelta(microseconds=1)
    assert START in Period(START, END)
    assert END - moment in Period(START, END)
    assert END not in Period(START, END)
    assert START - moment not in Period(START, END)
    assert START in Period(None, None)
    assert "2026-04-01" not in Period(START, END)


def test_what_is_wrong_with_a_bound_is_said_by_its_name() -> None:
    with pytest.raises(InvalidInstant, match=r"^valid_to: 'soon' is not an instant"):
        event_bound("soon", NO_END, "valid_to")
    with pytest.raises(InvalidPeriod, match=r"^valid_to takes an instant or NO_END$"):
        event_bound(NO_START, NO_END, "valid_to")


def test_a_period_that_would_be_empty_is_named_with_both_ends() -> None:
    with pytest.raises(InvalidPeriod) as failure:
        check_period("2026-03-12T00:00:00Z", "2026-03-12T00:00:00Z")
    assert failure.value.message == (
        "the period would be empty: it starts at 2026-03-12T00:00:00Z and ends at 2026-03-12T00:00:00Z; "
        "its end must lie after its start"
    )
