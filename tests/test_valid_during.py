"""``valid_during``: what is believed of any part of a period, each fact once; and why the rest is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from model.chance import DAY, DAYS, FIRST, Chance, day
from model.compare import period, time
from model.oracle import FOREVER, NEVER, Book, Time, fold, printed
from model.pair import Pair
from supersede import (
    NO_END,
    NO_START,
    Answer,
    AsyncFactStore,
    Basis,
    FactStore,
    InvalidInput,
    InvalidInstant,
    InvalidPeriod,
    Period,
)
from supersede.cli import app

Periods = list[tuple[Time, Time]]

TEAM = [
    {
        "op": "remember",
        "recorded_at": "2020-01-01",
        "ref": "lima",
        "claim": "in Lima",
        "valid_from": "2019-01-01",
    },
    {"op": "end", "recorded_at": "2021-01-01", "ref": "lima", "when": "2020-06-01", "until": "2020-09-01"},
    {
        "op": "supersede",
        "recorded_at": "2022-01-01",
        "old": ["lima"],
        "ref": "quito",
        "claim": "in Quito",
        "valid_from": "2021-06-01",
    },
    {
        "op": "remember",
        "recorded_at": "2022-06-01",
        "ref": "rome",
        "claim": "in Rome",
        "valid_from": "2030-01-01",
    },
    {
        "op": "remember",
        "recorded_at": "2022-07-01",
        "ref": "noise",
        "claim": "noise",
        "valid_from": "2018-01-01",
    },
    {"op": "retract", "recorded_at": "2022-08-01", "ref": "noise"},
]


def spans(answer: Answer) -> dict[str | None, list[str]]:
    return {fact.ref: [str(held) for held in fact.periods] for fact in answer.facts}


def why(answer: Answer) -> dict[str | None, str]:
    return {fact.ref: fact.reason for fact in answer.withheld_facts}


def test_a_fact_shows_once_with_every_period_that_overlaps(store: FactStore) -> None:
    store.replay(TEAM)
    answer = store.facts(valid_during=("2020-05-01", "2021-07-01"), explain=True)
    assert spans(answer) == {
        "lima": ["2019-01-01 – 2020-06-01", "2020-09-01 – 2021-06-01"],
        "quito": ["2021-06-01 –"],
    }
    assert [fact.valid for fact in answer.facts] == [fact.periods[0] for fact in answer.facts]
    assert why(answer) == {"rome": "not_yet_valid", "noise": "retracted"}
    assert (answer.valid_at, answer.valid_during) == (None, Period(*answer.basis.valid_during or ()))
    assert answer.brief()["valid_during"] == ["2020-05-01T00:00:00Z", "2021-07-01T00:00:00Z"]


def test_what_is_believed_of_none_of_it_is_withheld_by_what_took_the_last_of_it(store: FactStore) -> None:
    store.replay(TEAM)
    answer = store.facts(valid_during=("2021-06-01", "2022-01-01"), explain=True)
    assert why(answer) == {"lima": "superseded", "rome": "not_yet_valid", "noise": "retracted"}
    taken = next(fact for fact in answer.withheld_facts if fact.ref == "lima")
    assert [edge.ref for edge in taken.superseded_by] == ["quito"]
    assert why(store.facts(valid_during=("2020-06-01", "2020-09-01"), explain=True))["lima"] == "expired"
    assert (
        why(store.facts(valid_during=("2018-06-01", "2019-01-01"), explain=True))["lima"] == "not_yet_valid"
    )


def test_as_known_before_a_change(store: FactStore) -> None:
    store.replay(TEAM)
    answer = store.facts(valid_during=("2021-06-01", "2022-01-01"), known_at="2021-06-01")
    assert spans(answer) == {"lima": ["2020-09-01 –"]}
    assert answer.withheld.total == 0
    before = store.facts(valid_during=("2021-06-01", "2022-01-01"), known_at="2019-06-01")
    assert before.outcome == "nothing_recorded"
    assert "leave out known_at" in (before.notice or "")


def test_ends_may_be_missing(store: FactStore) -> None:
    store.replay(TEAM)
    everything = {"lima", "quito", "rome"}
    for whole in [(None, None), (NO_START, NO_END), ("no_start", "no_end"), Period(None, None)]:
        assert set(spans(store.facts(valid_during=whole))) == everything
    assert set(spans(store.facts(valid_during=(None, "2020-01-01")))) == {"lima"}
    assert set(spans(store.facts(valid_during=("2022-01-01", None)))) == {"quito", "rome"}


def test_a_basis_carries_the_period(store: FactStore) -> None:
    store.replay(TEAM)
    answer = store.facts(valid_during=("2020-05-01", "2021-07-01"), explain=True)
    store.remember("later", valid_from="2020-06-01")
    assert store.facts(basis=str(answer.basis)) == answer
    assert store.facts(basis=answer.basis.model_dump_json()) == answer
    assert store.verify(Answer.model_validate_json(answer.model_dump_json())).outcome == "equal"
    moved = answer.model_copy(update={"valid_during": Period(None, None)})
    assert store.verify(moved).differences == ("valid_during",)


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("valid_at", "2020-01-01T00:00:00Z"),
        ("valid_during", None),
        ("valid_during", ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]),
        ("question", "ask"),
    ],
)
def test_a_basis_is_about_an_instant_or_a_period(store: FactStore, changed: str, value: Any) -> None:
    plain = store.facts(valid_during=("2020-05-01", None)).basis.model_dump(mode="json")
    Basis.parse(json.dumps(plain))
    with pytest.raises(InvalidInput, match="no basis"):
        Basis.parse(json.dumps(plain | {changed: value}))


def test_pages_go_on_where_the_last_one_ended(store: FactStore) -> None:
    for number in range(7):
        store.remember(f"fact {number}", ref=str(number), valid_from=f"2020-0{1 + number // 2}-01")
    asked: dict[str, Any] = {"valid_during": ("2020-01-15", "2021-01-01"), "limit": 3}
    found, after = [], None
    for _ in range(3):
        page = store.facts(**asked, after=after)
        found += [fact.ref for fact in page.facts]
        after = page.facts[-1]
    assert found == [str(number) for number in range(7)]
    assert page.notice is None


def test_filters_and_trust(store: FactStore) -> None:
    store.remember("a", ref="a", subject="x", valid_from="2020-01-01", trust="summary")
    store.remember("b", ref="b", subject="x", valid_from="2020-01-01", trust="verbatim")
    store.remember("c", ref="c", subject="y", valid_from="2020-01-01")
    answer = store.facts(valid_during=("2020-02-01", None), subject="X", min_trust="extracted", explain=True)
    assert set(spans(answer)) == {"b"}
    assert why(answer) == {"a": "below_trust"}


def test_an_instant_beside_the_period_is_refused(store: FactStore) -> None:
    with pytest.raises(InvalidInput, match="known_at= beside valid_during="):
        store.facts(valid_during=("2020-01-01", None), as_of="2020-01-01")
    with pytest.raises(InvalidInput, match="in place of valid_at="):
        store.facts(valid_during=("2020-01-01", None), valid_at="2020-01-01")
    basis = store.facts().basis
    with pytest.raises(InvalidInput, match="nothing beside"):
        store.facts(valid_during=("2020-01-01", None), basis=basis)


@pytest.mark.parametrize(
    "period",
    ["2020-01-01", ("2020-01-01",), ("2020-01-01", "2020-01-01"), ("2020-01-01", "2019-01-01"),
     (NO_END, None), (None, "no_start"), 7],
)  # fmt: skip
def test_what_is_no_period_is_refused(store: FactStore, period: Any) -> None:
    with pytest.raises(InvalidPeriod):
        store.facts(valid_during=period)


def test_a_bound_that_is_no_instant_is_refused(store: FactStore) -> None:
    with pytest.raises(InvalidInstant, match=r"valid_during\[1\]"):
        store.facts(valid_during=("2020-01-01", "tomorrow"))


def test_the_async_store_asks_the_same(store: FactStore, database: str) -> None:
    store.replay(TEAM)
    wanted = store.facts(valid_during=("2020-05-01", None), known_at="2022-07-01", explain=True)

    async def ask() -> Answer:
        async with await AsyncFactStore.open(database) as other:
            return await other.facts(valid_during=("2020-05-01", None), known_at="2022-07-01", explain=True)

    assert asyncio.run(ask()) == wanted


def test_on_the_command_line(store: FactStore, database: str) -> None:
    store.replay(TEAM)

    def run(*words: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, words, env={"SUPERSEDE_URL": database})
        assert result.exit_code == status, result.output
        return result.output

    found = Answer.model_validate_json(run("--json", "facts", "--during", "2020-05-01..2021-07-01"))
    assert found.facts == store.facts(valid_during=("2020-05-01", "2021-07-01")).facts
    out = run("facts", "--during", "2020-05-01..2021-07-01")
    assert "valid during 2020-05-01 to 2021-07-01, as known now" in out
    assert "2020-09-01" in out
    assert "FROM..TO" in run("facts", "--during", "2020-05-01", status=2)
    assert "empty" in run("facts", "--during", "2021-05-01..2020-05-01", status=2)
    run("facts", "--during", "..2010-01-01", status=3)
    refused = run("facts", "--during", "..2010-01-01", "--basis", str(found.basis), status=2)
    assert "leave out --during" in refused


# -- against brute force ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def histories(module_database: str) -> Iterator[list[Pair]]:
    """Random histories of every verb, each in a store and in the model."""
    pairs = []
    for number in range(3):
        random, pair = Random(number), Pair(module_database)
        pair.step({"clock": day(number)})
        if number:
            event = {"op": "declare_predicate", "name": "hq", "cardinality": "one"}
            pair.step({"write": "a", "event": event})
        for _ in range(70):
            pair.step({"write": "a", "event": Chance(random, pair, "a").event()})
            if random.randrange(3) == 0:
                pair.step({"clock": printed(pair.oracle.clock + random.choice([1, 3600, 86400]) * 1_000_000)})
        pairs.append(pair)
    yield pairs
    for pair in pairs:
        pair.close()


def asked_about(random: Random, book: Book) -> tuple[tuple[Time, Time], int, str | None]:
    """A period near where something happened, what is known by when, and perhaps one subject."""
    edges = [at for v in book.versions for at in (v.start, v.end) if NEVER < at < FOREVER]
    edges += [FIRST + number * DAY for number in range(-1, DAYS + 2)]
    one, other = (random.choice(edges) + random.choice([0, 0, 1, -1]) for _ in range(2))
    start, end = min(one, other), max(one, other) + (1 if one == other else 0)
    start = NEVER if random.randrange(12) == 0 else start
    end = FOREVER if random.randrange(12) == 0 else end
    known_at = random.choice(book.stamps) - random.choice([0, 0, 1])
    return (start, end), known_at, "acme" if random.randrange(6) == 0 else None


def overlap(periods: Periods, start: Time, end: Time) -> Periods:
    return sorted((a, b) for a, b in periods if a < end and start < b)


def by_brute_force(
    book: Book, start: Time, end: Time, known_at: int, about: str | None
) -> tuple[dict[int, Periods], dict[int, tuple[str, set[int]]]]:
    """Per fact believed of a part of the period, what it holds there; per other, why not and its takers."""
    shown: dict[int, Periods] = {}
    withheld: dict[int, tuple[str, set[int]]] = {}
    for fact in book.facts:
        if fact.stamp > known_at or (about is not None and fold(fact.subject or "") != fold(about)):
            continue
        known = [v for v in book.versions if v.fact == fact.number and v.opened <= known_at]
        held = overlap([(v.start, v.end) for v in known if known_at < v.closed], start, end)
        lost = [
            loss
            for loss in book.losses
            if loss.fact == fact.number and loss.stamp <= known_at and overlap(loss.periods, start, end)
        ]
        if held and fact.number in book.erased:
            withheld[fact.number] = "erased", set()
        elif held:
            shown[fact.number] = held
        elif lost:
            last = max(lost, key=lambda loss: loss.stamp)
            takers = {
                edge.new
                for edge in book.edges
                if edge.old == fact.number and edge.stamp == last.stamp and overlap(edge.taken, start, end)
            }
            reason = {"ended": "expired", "undone": "retracted"}.get(last.why, last.why)
            withheld[fact.number] = reason, takers if reason == "superseded" else set()
        else:
            later = all(v.start >= end for v in known)
            withheld[fact.number] = "not_yet_valid" if later else "expired", set()
    return shown, withheld


def number_of(pair: Pair, fact: Any) -> int:
    return pair.number(fact.id)[1]


def bounds(start: Time, end: Time) -> tuple[str | None, str | None]:
    return None if start == NEVER else printed(start), None if end == FOREVER else printed(end)


def test_random_histories_say_what_brute_force_says(histories: list[Pair]) -> None:
    reasons: set[str] = set()
    several = 0
    for number, pair in enumerate(histories):
        random, book, store = Random(number), pair.oracle.book("a"), pair.store("a")
        for _ in range(40):
            (start, end), known_at, about = asked_about(random, book)
            answer = store.facts(
                valid_during=bounds(start, end), known_at=printed(known_at), subject=about, explain=True
            )
            shown, withheld = by_brute_force(book, start, end, known_at, about)
            found = {
                pair.number(fact.id)[1]: [period(held) for held in fact.periods] for fact in answer.facts
            }
            assert found == shown, (number, start, end, known_at)
            assert {
                pair.number(fact.id)[1]: (
                    fact.reason,
                    {pair.number(edge.id)[1] for edge in fact.superseded_by},
                )
                for fact in answer.withheld_facts
            } == withheld, (number, start, end, known_at)
            assert len(found) == len(answer.facts), "a fact shows once"
            order = [
                (time(held.start, NEVER), fact.recorded) for fact in answer.facts if (held := fact.valid)
            ]
            assert order == sorted(order)
            assert store.verify(answer).outcome == "equal"
            reasons |= {reason for reason, _ in withheld.values()}
            several += any(len(held) > 1 for held in shown.values())
    assert reasons == {"superseded", "retracted", "expired", "not_yet_valid", "erased"}
    assert several > 5, "or the questions prove little"


def test_a_microsecond_is_its_instant(histories: list[Pair]) -> None:
    shown = 0
    for number, pair in enumerate(histories):
        random, book, store = Random(number), pair.oracle.book("a"), pair.store("a")
        for _ in range(20):
            (start, end), known_at, about = asked_about(random, book)
            at = int(end - 1 if start == NEVER else start) if end < FOREVER or start > NEVER else FIRST
            common: dict[str, Any] = {"known_at": printed(known_at), "subject": about, "explain": True}
            by_instant = store.facts(valid_at=printed(at), **common)
            by_period = store.facts(valid_during=(printed(at), printed(at + 1)), **common)
            skipped = {"basis", "valid_at", "valid_during", "facts", "notice"}
            assert by_period.model_dump(exclude=skipped) == by_instant.model_dump(exclude=skipped)
            for one, other in zip(by_period.facts, by_instant.facts, strict=True):
                assert one.periods == (one.valid,)
                assert one.model_copy(update={"periods": ()}) == other
            shown += len(by_instant.facts)
    assert shown > 20


def test_sql_says_the_same(histories: list[Pair], module_database: str) -> None:
    columns = "fact_id::text, ref, valid_from, valid_to, recorded_at, sources"
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        for number, pair in enumerate(histories):
            random, book, store = Random(number), pair.oracle.book("a"), pair.store("a")
            for _ in range(12):
                (start, end), known_at, _ = asked_about(random, book)
                ends = bounds(start, end)
                answer = store.facts(valid_during=ends, known_at=printed(known_at))
                wanted = {f.id: (f.ref, *(f.valid or ()), f.recorded, list(f.sources)) for f in answer.facts}
                rows = connection.execute(
                    f"select {columns} from supersede.facts_on(%s)",
                    [answer.basis.model_dump_json()],
                ).fetchall()
                assert {row[0]: row[1:] for row in rows} == wanted
                rows = connection.execute(
                    f"select {columns}, periods from supersede.facts_during(tstzrange(%s, %s), %s, %s)",
                    [*ends, printed(known_at), [store.namespace]],
                ).fetchall()
                assert {row[0]: row[1:-1] for row in rows} == wanted
                assert {row[0]: tuple((p.lower, p.upper) for p in row[-1]) for row in rows} == {
                    fact.id: tuple(map(tuple, fact.periods)) for fact in answer.facts
                }
