"""Fewer steps that still go wrong in the same way: what a person wants to read, and a test to keep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from model.pair import Pair, Step

SAME = 20  # letters of what it says that tell one difference from another


def difference(make: Callable[[], Pair], steps: list[Step]) -> str | None:
    """How store and model differ after these steps, if they do."""
    pair = make()
    try:
        pair.run(steps)
    except AssertionError as failure:
        return str(failure)
    except Exception as failure:  # steps that make no sense without others
        return f"{type(failure).__name__}: {failure}"
    finally:
        pair.close()
    return None


def shrink(make: Callable[[], Pair], steps: list[Step], *, like: str, seconds: float) -> list[Step]:
    """The shortest such list that could be found in that time.

    :param like: what the difference says; whatever else goes wrong on the way is another one.
    """
    until = time.monotonic() + seconds
    wanted = like[:SAME]
    shorter = (difference(make, steps) or "").startswith(wanted)
    while shorter:
        shorter = False
        for fewer in _fewer(steps):
            if time.monotonic() > until:
                return steps
            if (difference(make, fewer) or "").startswith(wanted):
                steps, shorter = fewer, True
                break
    return steps


def _fewer(steps: list[Step]) -> Iterator[list[Step]]:
    """The steps without some of them, then without parts of some; the first sets the clock and stays."""
    size = len(steps) // 2
    while size:
        for last in range(len(steps), 1, -size):
            yield steps[: max(1, last - size)] + steps[last:]
        size //= 2
    for number, step in enumerate(steps):
        for less in _less(step):
            yield [*steps[:number], less, *steps[number + 1 :]]


def _less(step: Step) -> Iterator[Step]:
    """A step with fewer events, fewer olds, or fewer arguments."""
    events = step.get("events", [])
    for number in range(len(events) if len(events) > 1 else 0):
        yield step | {"events": events[:number] + events[number + 1 :]}
    for number, event in enumerate([step["event"]] if "event" in step else events):
        needed = {"op", "claim", "old", "recorded_at"} | (set() if "claim" in event else {"ref", "note"})
        for key in [key for key in event if key not in needed]:
            yield _with(step, number, {k: v for k, v in event.items() if k != key})
        olds = event.get("old", [])
        for old in olds if len(olds) > 1 else []:
            yield _with(step, number, event | {"old": [other for other in olds if other != old] or [old]})


def _with(step: Step, number: int, event: Step) -> Step:
    if "event" in step:
        return step | {"event": event}
    return step | {"events": [*step["events"][:number], event, *step["events"][number + 1 :]]}
