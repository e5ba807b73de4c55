"""What an erasure leaves of the undos that moved the erased fact, and what their handles stand for then."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from databases import dump, query
from supersede import FactStore, Recorded, RefConflict

WHY = "asked for by law"


def undone_at(store: FactStore, stamp: datetime, **named: str) -> datetime:
    """Undo one operation; the stamp of the undo."""
    (operation,) = store.undo(stamp=stamp, dry_run=False, **named).operations
    assert operation.undone_at is not None
    return operation.undone_at


def superseded(store: FactStore) -> Recorded:
    """One fact that takes from another."""
    store.remember("the old one", ref="a", valid_from="2020-01-01")
    return store.supersede("a", "the new one", ref="b", valid_from="2021-01-01")


def test_after_an_erasure_another_undo_with_the_same_handle_is_refused(store: FactStore) -> None:
    made = superseded(store)
    other = store.remember("another", ref="c")
    store.undo(stamp=made.stamp, dry_run=False, handle="h")
    store.erase("a", note=WHY)
    with pytest.raises(RefConflict, match="already stands for another undo"):
        store.undo(stamp=other.stamp, dry_run=False, handle="h")
    with pytest.raises(RefConflict, match="already stands for another undo"):
        store.undo(stamp=made.stamp, dry_run=False, handle="h", note="with a note")


def test_after_an_erasure_a_retry_of_an_undo_finds_what_it_did(store: FactStore) -> None:
    made = superseded(store)
    first = store.undo(stamp=made.stamp, dry_run=False, handle="h")
    store.erase("a", note=WHY)
    again = store.undo(stamp=made.stamp, dry_run=False, handle="h")
    assert again.repeated
    assert [o.undone_at for o in again.operations] == [o.undone_at for o in first.operations]


def test_a_selection_that_is_gone_from_the_ledger_is_not_taken_for_the_same(
    store: FactStore, database: str
) -> None:
    made = superseded(store)
    store.undo(stamp=made.stamp, dry_run=False, handle="h")
    query(database, "update supersede.operation set event = event - 'selection' returning 1")
    with pytest.raises(RefConflict, match="already stands for another undo"):
        store.undo(stamp=made.stamp, dry_run=False, handle="h")


def test_no_selection_without_the_key_is_left_of_an_undo_that_moved_it(
    store: FactStore, database: str
) -> None:
    made = superseded(store)
    store.undo(stamp=made.stamp, dry_run=False)
    left = "select left(event ->> 'selection', 2) from supersede.operation where verb = 'undo'"
    store.erase("a", note=WHY)
    assert query(database, left) == [("k:",)]
    store.erase("b", note=WHY)
    assert query(database, left) == [(None,)]


def test_an_undo_of_what_was_about_it_alone_goes_with_it(store: FactStore, database: str) -> None:
    made = store.remember("quagga", ref="q")
    undo = undone_at(store, made.stamp, handle="quagga/1", note="quagga one")
    redo = undone_at(store, undo, handle="quagga/2", note="quagga two")
    undone_at(store, redo, handle="quagga/3")
    certificate = store.erase(made, note=WHY).certificate
    assert certificate is not None
    assert "quagga" not in json.dumps(dump(database))
    assert (certificate.destroyed["events"], certificate.destroyed["notes"]) == (4, 2)
    assert certificate.destroyed["names_in_other_events"] == 0


def test_an_undo_that_found_nothing_to_move_goes_too(store: FactStore, database: str) -> None:
    store.remember("quagga", ref="q", valid_from="2020-01-01")
    ended = store.end("q", at="2021-01-01", until="2022-01-01")
    store.retract("q", note="x")
    store.reinstate("q")
    undone_at(store, ended.stamp, handle="quagga/1", note="quagga one")
    assert store.erase("q", note=WHY).certificate
    assert "quagga" not in json.dumps(dump(database))


def test_after_an_erasure_what_was_undone_counts_as_undone(store: FactStore) -> None:
    """The ledger still knows which operation an undo was of."""
    made = store.supersede(store.remember("old", ref="a", valid_from="2020-01-01"), "new", ref="b")
    undo = undone_at(store, made.stamp, handle="h")
    store.erase("b", note=WHY)
    assert [o.skipped for o in store.undo(stamp=made.stamp).operations] == ["already_undone"]
    assert [o.skipped for o in store.undo(stamp=undo).operations] == [None]
    assert store.undo(stamp=made.stamp, dry_run=False, handle="h").operations[0].skipped == "already_undone"
