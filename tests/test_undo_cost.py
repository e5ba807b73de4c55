"""What an undo costs grows with what it looks at, on a store without statistics too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

from supersede import FactStore

# What prints instants is called once for each that is asked about.
CALLS = """
select sum(calls) filter (where funcname not in ('iso', 'iso_periods')), sum(calls)
from pg_stat_xact_user_functions where schemaname = 'supersede'
"""


def calls(url: str, event: str) -> tuple[int, int]:
    """How often a dry run calls functions: those that do not print instants, and all."""
    with psycopg.connect(url) as connection:
        connection.execute("set track_functions = 'all'")
        connection.execute("select supersede.undo(%s::jsonb, actor => 'somebody')", [event])
        row = connection.execute(CALLS).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def ended(store: FactStore, first: int, last: int) -> None:
    for day in range(first, last):
        at = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=day)
        store.end("base", at=at, until=at + timedelta(hours=12))


def test_undoing_many_operations_of_one_fact_looks_at_each_once(database: str) -> None:
    with FactStore.open(database, run="run-1") as store:
        store.remember("base", ref="base", valid_from="2000-01-01")
        ended(store, 0, 10)
        few, few_in_all = calls(database, '{"run": "run-1"}')
        ended(store, 10, 40)
        many, many_in_all = calls(database, '{"run": "run-1"}')
    assert many < 4.5 * few
    assert many_in_all < 10 * few_in_all


def test_an_undo_at_the_end_of_a_long_row_of_undos_asks_no_more_than_an_early_one(database: str) -> None:
    with FactStore.open(database) as store:
        stamp = store.remember("alpha", ref="a", valid_from="2020-01-01").stamp
        found = {}
        for number in range(1, 41):
            done = store.undo(stamp=stamp, dry_run=False).operations[0].undone_at
            assert done is not None
            stamp = done
            if number in (9, 10, 39, 40):
                found[number] = calls(database, f'{{"stamp": "{stamp.isoformat()}"}}')
    assert found[39][0] == found[9][0]
    assert found[40][0] == found[10][0]
    assert found[39][1] < 6 * found[9][1]
