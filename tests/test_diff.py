"""What was believed otherwise at one instant than at another."""

from __future__ import annotations

import pytest

from supersede import FactStore, InvalidInstant, InvalidPeriod

EVENTS = [
    {
        "op": "remember",
        "recorded_at": "2020-01-01",
        "ref": "lima",
        "claim": "in Lima",
        "valid_from": "2019-01-01",
    },
    {"op": "remember", "recorded_at": "2020-02-01", "ref": "noise", "claim": "noise"},
    {
        "op": "supersede",
        "recorded_at": "2021-01-01",
        "old": ["lima"],
        "ref": "quito",
        "claim": "in Quito",
        "valid_from": "2020-06-01",
    },
    {"op": "end", "recorded_at": "2022-01-01", "ref": "quito", "when": "2021-06-01"},
    {"op": "retract", "recorded_at": "2023-01-01", "ref": "noise"},
]


def printed(store: FactStore, *known: str, **asked: str) -> dict[str, tuple[list[str], list[str]]]:
    changes = store.diff(*known, **asked).changes
    return {
        change.ref: ([str(p) for p in change.gained], [str(p) for p in change.lost]) for change in changes
    }


def test_a_change_is_what_the_old_lost_and_the_new_gained(store: FactStore) -> None:
    store.replay(EVENTS)
    diff = store.diff("2020-12-31", "2021-01-01")
    assert [change.ref for change in diff.changes] == ["lima", "quito"]
    assert printed(store, "2020-12-31", "2021-01-01") == {
        "lima": ([], ["2020-06-01 –"]),
        "quito": (["2020-06-01 –"], []),
    }
    assert [(edge.ref, edge.reason) for edge in diff.changes[0].superseded_by] == [("quito", "change")]


def test_what_came_and_went_between_is_no_change(store: FactStore) -> None:
    store.replay(EVENTS)
    assert printed(store, "2020-01-15", "2023-06-01") == {
        "lima": ([], ["2020-06-01 –"]),
        "quito": (["2020-06-01 – 2021-06-01"], []),
    }


def test_only_what_concerns_an_instant(store: FactStore) -> None:
    store.replay(EVENTS)
    assert list(printed(store, "2020-12-31", "2022-06-01", valid_at="2020-03-01")) == []
    assert list(printed(store, "2021-06-01", "2022-06-01", valid_at="2021-07-01")) == ["quito"]
    assert list(printed(store, "2021-06-01", "2022-06-01", valid_at="2021-05-01")) == []


def test_until_now_where_no_second_instant_is_said(store: FactStore) -> None:
    store.replay(EVENTS)
    assert printed(store, "2022-06-01") == {"noise": ([], ["2020-02-01 –"])}


def test_a_diff_does_not_look_into_the_future_or_backwards(store: FactStore) -> None:
    store.replay(EVENTS)
    with pytest.raises(InvalidInstant, match="future"):
        store.diff("2020-01-01", "2999-01-01")
    with pytest.raises(InvalidPeriod, match="known_from"):
        store.diff("2021-01-01", "2020-01-01")
