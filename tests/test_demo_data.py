"""The demo's history is whole, in order, and true to the index, its oddities included."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from supersede.demo_data import events_of, rfc_events, rfc_rows

ROWS = list(rfc_rows())
EVENTS = list(rfc_events())
DATE = {row["number"]: row["date"] for row in ROWS}
OBSOLETES = [(row["number"], old) for row in ROWS for old in row["obsoletes"]]
UPDATES = [(row["number"], old) for row in ROWS for old in row["updates"]]
SCRIPT = Path(__file__).parent.parent / "scripts" / "make_demo_data.py"


def number(ref: str) -> int:
    return int(ref.removeprefix("rfc/"))


def new_of(event: dict[str, Any]) -> int:
    return number(event["by"] if "by" in event else event["ref"])


def edges(verb: str) -> list[tuple[int, int]]:
    return [(new_of(event), number(old)) for event in EVENTS if event["op"] == verb for old in event["old"]]


def test_the_index_is_whole():
    assert len(ROWS) == 9345
    assert len(OBSOLETES) == len(set(OBSOLETES)) == 1480
    assert len(UPDATES) == len(set(UPDATES)) == 1922
    assert len({old for _, old in OBSOLETES}) == 1329


def test_the_oddities_of_the_index_are_in_it():
    first = {}
    for new, old in OBSOLETES:
        first[old] = min(first.get(old, DATE[new]), DATE[new])
    assert sum(first[old] == DATE[old] for old in first) == 44
    assert sum(first[old] < DATE[old] for old in first) == 3
    assert sum(count > 1 for count in Counter(old for _, old in OBSOLETES).values()) == 103
    assert sum(count > 1 for count in Counter(new for new, _ in OBSOLETES).values()) == 141
    olds = {row["number"]: row["obsoletes"] for row in ROWS}

    @cache
    def chain(new: int) -> int:
        return 1 + max((chain(old) for old in olds[new]), default=0)

    assert max(chain(row["number"]) for row in ROWS) == 33


def test_every_rfc_is_one_fact():
    facts = [event for event in EVENTS if "ref" in event]
    assert sorted(number(event["ref"]) for event in facts) == sorted(DATE)
    # Of 1,216 obsoleters two come too early for the only one they obsolete: a link says it, later.
    assert len({new for new, _ in OBSOLETES}) == 1216
    assert Counter(event["op"] for event in facts) == {
        "remember": 7098,
        "supersede": 1214,
        "amend": 1033,
    }


def test_every_obsoletes_edge_comes_exactly_once():
    assert sorted(edges("supersede")) == sorted(OBSOLETES)


def test_every_updates_edge_comes_once_unless_the_pair_is_an_obsoletes_edge():
    both = set(UPDATES) & set(OBSOLETES)
    assert both == {(24, 16), (198, 193), (293, 288)}
    assert sorted(edges("amend")) == sorted(set(UPDATES) - both)


def test_an_rfc_dated_before_the_one_it_obsoletes_is_linked_when_that_one_comes():
    late = [event for event in EVENTS if event["op"] == "supersede" and "by" in event]
    assert [event["handle"] for event in late] == [
        "rfc/obsoletes/4842/5143",
        "rfc/obsoletes/5415/5414",
        "rfc/obsoletes/5536/1849",
        "rfc/obsoletes/5537/1849",
    ]
    assert late[0] == {
        "op": "supersede",
        "recorded_at": "2008-02-01T00:00:00Z",
        "old": ["rfc/5143"],
        "by": "rfc/4842",
        "reason": "change",
        "valid_from": "2008-02-01T00:00:00Z",
        "if_not_current": "link",
        "handle": "rfc/obsoletes/4842/5143",
    }


def test_an_rfc_that_obsoletes_and_updates_is_one_fact_and_a_link():
    at = next(i for i, event in enumerate(EVENTS) if event.get("ref") == "rfc/7230")
    assert EVENTS[at]["op"] == "supersede"
    assert EVENTS[at]["old"] == ["rfc/2145", "rfc/2616"]
    assert EVENTS[at + 1] == {
        "op": "amend",
        "recorded_at": "2014-06-01T00:00:00Z",
        "old": ["rfc/2817", "rfc/2818"],
        "valid_from": "2014-06-01T00:00:00Z",
        "by": "rfc/7230",
        "handle": "rfc/updates/7230",
    }


def test_no_event_refers_to_what_is_not_there_yet():
    recorded: set[str] = set()
    for event in EVENTS:
        assert recorded.issuperset(event.get("old", []))
        if "by" in event:
            assert event["by"] in recorded
            assert event["by"] not in event["old"]
        else:
            recorded.add(event["ref"])


def test_events_are_in_the_order_they_are_recorded_in():
    times = [event["recorded_at"] for event in EVENTS]
    assert times == sorted(times)
    facts = [new_of(event) for event in EVENTS if "ref" in event]
    assert facts == sorted(DATE, key=lambda each: (DATE[each], each))
    assert all(event["valid_from"] == event["recorded_at"] for event in EVENTS)


def test_no_two_events_share_a_handle():
    handles = Counter(event.get("handle", event.get("ref")) for event in EVENTS)
    assert None not in handles
    assert max(handles.values()) == 1


def test_a_title_does_not_repeat_its_number():
    assert not [row for row in ROWS if row["title"].startswith(f"RFC {row['number']}:")]
    fact = next(event for event in EVENTS if event.get("ref") == "rfc/8200")
    assert fact == {
        "op": "supersede",
        "recorded_at": "2017-07-01T00:00:00Z",
        "old": ["rfc/2460"],
        "reason": "change",
        "valid_from": "2017-07-01T00:00:00Z",
        "if_not_current": "link",
        "ref": "rfc/8200",
        "claim": "Internet Protocol, Version 6 (IPv6) Specification",
        "subject": "RFC 8200",
        "kind": "rfc",
        "sources": ["https://www.rfc-editor.org/info/rfc8200"],
        "data": {"status": "INTERNET STANDARD", "status_as_of": "2024-03-06"},
    }


def test_nothing_obsoleted_by_the_fifteenth_of_any_month_is_current_then():
    first = {row["number"]: "9999" for row in ROWS}
    for new, old in OBSOLETES:
        first[old] = min(first[old], DATE[new])
    current: set[int] = set()
    events = iter(EVENTS)
    event = next(events, None)
    for month in months(last=(2024, 3)):
        fifteenth = f"{month}-15"
        # A brute-force store: every event takes effect when it is recorded, and for good, so what
        # is believed on a day about that day is all there is to keep.
        while event is not None and event["recorded_at"] < fifteenth:
            if event["op"] == "supersede":
                current -= {number(old) for old in event["old"]}
            if "by" in event:
                # What `by` lacks in the period would be believed again: it has to be current.
                assert new_of(event) in current, event
            else:
                current.add(new_of(event))
            event = next(events, None)
        assert current == {
            each for each, date in DATE.items() if date <= fifteenth and first[each] > fifteenth
        }
    assert event is None
    assert len(current) == 9345 - 1329


def months(*, last: tuple[int, int]) -> list[str]:
    every = [(year, month) for year in range(1968, last[0] + 1) for month in range(1, 13)]
    return [f"{year}-{month:02}" for year, month in every if (year, month) <= last]


def test_an_update_of_a_later_rfc_waits_for_it():
    def rfc(number: int, date: str, *, updates: list[int]) -> Any:
        row = {"number": number, "title": f"t{number}", "date": date, "status": "UNKNOWN"}
        return {**row, "obsoletes": [], "updates": updates}

    events = list(
        events_of(
            [
                rfc(1, "2000-01-01", updates=[]),
                rfc(2, "2000-02-01", updates=[1, 3]),
                rfc(3, "2000-03-01", updates=[]),
            ]
        )
    )
    assert [(event["op"], event.get("ref"), event.get("by"), event.get("old")) for event in events] == [
        ("remember", "rfc/1", None, None),
        ("amend", "rfc/2", None, ["rfc/1"]),
        ("remember", "rfc/3", None, None),
        ("amend", None, "rfc/2", ["rfc/3"]),
    ]
    assert events[-1]["handle"] == "rfc/updates/2/3"
    assert events[-1]["recorded_at"] == "2000-03-01T00:00:00Z"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The dump that the shipped data would have been made from."""
    path = tmp_path / "rfc.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for row in reversed(ROWS):
            dump = {
                "subject": f"RFC {row['number']}",
                "claim": f"RFC {row['number']}: {row['title']}",
                "valid_from": row["date"],
                "status": row["status"],
                "supersedes": [f"rfc:{old}" for old in row["obsoletes"]],
                "updates": [f"rfc:{old}" for old in row["updates"]],
            }
            lines.write(json.dumps(dump) + "\n")
    return path


def test_the_script_makes_the_same_bytes_each_time(tmp_path: Path, source: Path):
    targets = [tmp_path / "one.gz", tmp_path / "two.gz"]
    for target in targets:
        done = subprocess.run(
            [sys.executable, SCRIPT, source, target], check=True, capture_output=True, text=True
        )
        assert done.stdout.startswith("9345 RFCs, 1480 obsoletes edges")
    one, two = (target.read_bytes() for target in targets)
    assert one == two
    made = [json.loads(line) for line in gzip.decompress(one).splitlines()]
    assert made == ROWS
