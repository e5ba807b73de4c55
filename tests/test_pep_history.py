"""The history of all Python Enhancement Proposals, replayed: at any instant it is as the file says.

What is expected is read out of the file by the few lines of ``told``; none of the store's code helps.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from databases import set_clock
from supersede import Answer, FactStore, Recorded

DATA = Path(__file__).parent / "data" / "pep.jsonl.gz"
END_OF_FILE = "2026-09-01T00:00:00Z"
MOVED = "PEP 427"  # its first rows carry a time ten years before their place in the history

Row = dict[str, Any]
Values = dict[tuple[str, str], str]


def read() -> list[Row]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


ROWS = read()
EVENTS = sorted({datetime.fromisoformat(row["recorded_at"]) for row in ROWS})


def history() -> list[Row]:
    """The file as events, in the order of its commits."""
    successors = {(row["subject"], row["predicate"], row["seq"]) for row in ROWS}
    found: list[tuple[int, Row]] = []
    for row in ROWS:
        ref = f"{row['subject']}/{row['predicate']}/{row['seq']}"
        event = {key: row[key] for key in ("subject", "predicate", "object", "claim", "recorded_at")}
        event |= {"op": "remember", "ref": ref, "valid_from": row["recorded_at"], "sources": [row["source"]]}
        found.append((row["seq"], event))
        superseded = row["subject"], row["predicate"], row["superseded_seq"]
        if row["superseded_seq"] is not None and superseded not in successors:
            at = row["superseded_at"]
            found.append((row["superseded_seq"], {"op": "end", "ref": ref, "when": at, "recorded_at": at}))
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]


def told(at: datetime) -> Values:
    """Every title and status at an instant, as the file has them; case is no difference of a value."""
    found: Values = {}
    for row in ROWS:
        start, end = row["recorded_at"], row["superseded_at"]
        began = datetime.fromisoformat(start) <= at
        if began and (end is None or at < datetime.fromisoformat(end)) and row["subject"] != MOVED:
            assert (row["subject"], row["predicate"]) not in found
            found[row["subject"], row["predicate"]] = row["object"].lower()
    return found


def instants(number: int) -> list[datetime]:
    """Instants of the whole history, each a second or more from any event."""
    random, found = Random(2026), []
    span = (EVENTS[-1] - EVENTS[0]) + timedelta(days=2)
    while len(found) < number:
        at = EVENTS[0] - timedelta(days=1) + random.random() * span
        if all(abs(at - event) >= timedelta(seconds=1) for event in EVENTS):
            found.append(at)
    return sorted(found)


def said(answer: Answer) -> Values:
    facts = [fact for fact in answer.facts if fact.subject != MOVED]
    found = {(str(fact.subject), str(fact.predicate)): str(fact.object).lower() for fact in facts}
    assert len(found) == len(facts), "one value at a time"
    return found


@pytest.fixture(scope="module")
def replayed(module_database: str) -> Iterator[tuple[FactStore, list[Recorded]]]:
    set_clock(module_database, END_OF_FILE)
    with FactStore.open(module_database, namespace="pep") as store:
        first = EVENTS[0] - timedelta(days=1)
        declared = [
            {"op": "declare_predicate", "name": name, "cardinality": "one", "recorded_at": first.isoformat()}
            for name in ("title", "status")
        ]
        found = store.replay([*declared, *history()], out_of_order="next_stamp")
        yield store, found[len(declared) :]


@pytest.fixture(scope="module")
def store(replayed: tuple[FactStore, list[Recorded]]) -> FactStore:
    return replayed[0]


AXES = ["as_of", "valid_at", "known_at"]  # the other axis: the same instant, now, now


@pytest.mark.parametrize("axis", AXES)
def test_at_two_hundred_instants_it_is_as_the_file_says(
    store: FactStore, module_database: str, axis: str
) -> None:
    seen: set[int] = set()
    with psycopg.connect(module_database, autocommit=True) as connection:
        for at in instants(200):
            point = [at if axis in ("as_of", name) else None for name in ("valid_at", "known_at")]
            rows = connection.execute(
                "select subject, predicate, lower(object) from supersede.facts_as_of(%s, %s, %s) "
                "where subject <> %s",
                [*point, [store.namespace], MOVED],
            ).fetchall()
            found = {(subject, predicate): value for subject, predicate, value in rows}
            assert len(found) == len(rows), "one value at a time"
            assert found == told(at), at
            seen.add(len(found))
    assert len(seen) > 100, "or the instants lie too close together"


@pytest.mark.parametrize("axis", AXES)
def test_in_python_too(store: FactStore, axis: str) -> None:
    for at in instants(200)[::40]:
        asked: dict[str, Any] = {axis: at}
        answer = store.facts(**asked, limit=10_000)
        assert said(answer) == told(at), at


def test_where_only_the_case_of_a_title_changed_the_value_stays(
    replayed: tuple[FactStore, list[Recorded]],
) -> None:
    store, found = replayed
    by_ref = {event["ref"]: done for event, done in zip(history(), found, strict=True)}
    held = [ref for ref, done in by_ref.items() if done.verb == "remember" and not done.created]
    last: dict[tuple[str, str], Row] = {}
    recased = []
    for row in ROWS:
        before = last.get((row["subject"], row["predicate"]))
        if (
            before is not None
            and before["superseded_at"] == row["recorded_at"]
            and before["object"].lower() == row["object"].lower()
        ):
            recased.append(f"{row['subject']}/{row['predicate']}/{row['seq']}")
        last[row["subject"], row["predicate"]] = row
    assert held == recased
    assert len(held) == 14
    for ref in held:
        assert ref in store.get(ref).refs
        assert store.get(ref).ref != ref, "it is another name of the fact that was there"


def test_what_comes_late_gets_the_next_stamp_and_keeps_its_own_time(store: FactStore) -> None:
    rows = [row for row in ROWS if row["subject"] == MOVED]
    late = [row for row in rows if row["recorded_at"].startswith("2002")]
    assert len(late) == 2
    for row in late:
        before = max(
            datetime.fromisoformat(other["recorded_at"])
            for other in ROWS
            if other["seq"] < row["seq"] and other not in late
        )
        fact = store.get(f"{MOVED}/{row['predicate']}/{row['seq']}")
        assert before < fact.recorded < before + timedelta(seconds=1)
        assert fact.asserted == datetime.fromisoformat(row["recorded_at"])
    said_in_2010 = store.facts(as_of="2010-01-01", subject=MOVED, limit=10)
    assert said_in_2010.facts == (), "nobody knew of it then"
    known_now = store.facts(valid_at="2010-01-01", subject=MOVED, limit=10)
    assert {fact.object for fact in known_now.facts} == {row["object"] for row in late}
    today = {fact.predicate: fact.object for fact in store.facts(subject=MOVED).facts}
    assert today == {"title": "The Wheel Binary Package Format 1.0", "status": "Final"}
