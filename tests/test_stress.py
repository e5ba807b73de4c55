"""Every answer given while others wrote is the same when all is quiet; and this test can fail."""

from __future__ import annotations

import stress


def test_no_answer_changes_while_six_write_and_two_read(empty_database: str) -> None:
    report = stress.run(stress.Plan(empty_database, facts=20_000, seconds=30, answers=500))
    print(*report.lines(), sep="\n")
    assert report.problems == []
    assert report.recorded >= 500
    assert report.writes.total() > 500
    assert report.filled > 100
    assert set(report.integrity.values()) == {0}


def test_readers_that_do_not_stop_at_the_head_see_answers_change(empty_database: str) -> None:
    plan = stress.Plan(empty_database, facts=900, seconds=4, answers=100, gap=0.03, clamp=False)
    report = stress.run(plan)
    assert report.errors == []
    assert report.changed > 0, "or the test above proves nothing"
    assert set(report.integrity.values()) == {0}, "the clamp is the readers' half alone"
