"""Workers and their server are killed at random for a while, and nothing they were told is lost or changed.

``scripts/soak.py`` does the same for as long as one likes.
"""

from __future__ import annotations

import soak


def test_what_was_answered_and_acknowledged_survives_random_kills() -> None:
    plan = soak.Plan(seconds=10, seed=3, writers=2, readers=1, between_kills=2.0, operations=50, answers=5)
    report = soak.run(plan)
    print(*report.lines(), sep="\n")
    assert report.problems == []
    assert report.kills.total() > 0
    assert report.operations.total() >= 50
    assert report.asked_again_at_the_end >= 5
    assert report.ledger >= report.acknowledged
