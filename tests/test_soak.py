"""Workers and their server are killed at random for a while, and nothing they were told is lost or changed.

``scripts/soak.py`` does the same for as long as one likes.
"""

from __future__ import annotations

import soak


def test_what_was_answered_and_acknowledged_survives_random_kills() -> None:
    report = soak.run(soak.Plan(seconds=15, seed=3, between_kills=1.0))
    print(*report.lines(), sep="\n")
    assert report.problems == []
    assert report.kills.total() > 0
    assert report.interruptions.total() > 0, "or the kills hit nothing"
    assert report.operations.total() > 0
    assert report.asked_again_at_the_end > 0
    assert report.ledger >= report.acknowledged
