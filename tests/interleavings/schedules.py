"""Sessions stepped through in a given order, as PostgreSQL's isolation tester does it.

A step runs in its session's own thread. It is over when it returns, or *waits* when the server says that its
backend is blocked by a session that itself stands still; then it goes on by itself once it is let through,
and the session's next steps come after it. Nothing here goes by time: the server is asked who blocks whom.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from roads import Road, elsewhere

from supersede import FactStore, Recorded, SupersedeError

# How long anything may take before a test fails rather than hangs, in looks at the server.
PATIENCE = 3_000
ALL_ORDERS = bool(os.environ.get("INTERLEAVINGS"))
"""Every order of the steps, however many; else a sample of them, always the same."""

_BLOCKED = """
    select waiting.application_name, array_agg(distinct blocking.application_name)
    from pg_stat_activity waiting
    cross join lateral unnest(pg_blocking_pids(waiting.pid)) as by(pid)
    join pg_stat_activity blocking on blocking.pid = by.pid
    where waiting.datname = current_database() and blocking.datname = current_database()
      and waiting.application_name = any (%(names)s) and blocking.application_name = any (%(names)s)
    group by waiting.application_name
"""


@dataclass(frozen=True)
class Step:
    """One step: its name, what it does, whether its outcome is in the table, whether it takes the lock of a
    namespace (``where`` tells several apart), and whether it still holds it afterwards."""

    name: str
    act: Callable[[Session], Any]
    shown: bool = True
    locks: bool = False
    holds: bool = False
    where: str = ""


BEGIN = Step("begin", lambda me: me.road.begin(), shown=False)
COMMIT = Step("commit", lambda me: me.road.commit(), shown=False)
ROLLBACK = Step("rollback", lambda me: me.road.rollback(), shown=False)


def verb(name: str, act: Callable[[Session], Any], where: str = "") -> Step:
    """A write inside the session's transaction: it holds the namespace from then on, if it succeeds."""
    return Step(name, act, locks=True, holds=True, where=where)


def opening(step: Step) -> Step:
    """The same step as the first of its transaction, which it begins."""

    def act(me: Session) -> Any:
        me.road.begin()
        return step.act(me)

    return replace(step, act=act)


def write(name: str, act: Callable[[Session], Any]) -> Step:
    """A write in a transaction of its own."""
    return Step(name, act, locks=True)


def look(name: str, act: Callable[[Session], Any]) -> Step:
    """A step that waits for nobody."""
    return Step(name, act)


class Session:
    """One session: the road it writes by, a store to read with, its steps, and what it keeps in mind."""

    def __init__(self, name: str, road: Callable[[], Road], reads: FactStore) -> None:
        self.name = name
        self.running: Step | None = None
        self.result: Future[Any]
        self.reads = reads
        self._thread = ThreadPoolExecutor(1, name)
        self.road = self._thread.submit(road).result()

    def enter(self, namespace: str, steps: Sequence[Step], given: Any) -> None:
        """Begin with other steps in another namespace; ``given`` is what made that ready."""
        self.reads = elsewhere(self.reads, namespace)
        self.given = given
        self.kept: dict[str, Any] = {}
        self.running = None
        self._left = deque(steps)
        self.road.enter(namespace)

    @property
    def write(self) -> Any:
        """The verbs of the open transaction."""
        return self.road.verbs

    def start(self) -> Step:
        self.running = self._left.popleft()
        self.result = self._thread.submit(self.running.act, self)
        return self.running

    def close(self) -> None:
        try:
            self._thread.submit(self.road.close).result()
            self.reads.close()
        finally:
            self._thread.shutdown()


def shown(result: Future[Any]) -> str:
    """What a step came to, in a word."""
    error = result.exception()
    if isinstance(error, SupersedeError):
        return type(error).__name__
    if error is not None:
        raise error
    value = result.result()
    if isinstance(value, Recorded):
        return "repeated" if value.repeated else "recorded"
    if isinstance(value, list):
        return ", ".join(value) or "nothing"
    return str(value)


@dataclass
class Run:
    """One order of steps, run: what each came to, in which order they ended."""

    sessions: dict[str, Session]
    watch: psycopg.Connection[Any]
    after_each: Callable[[Step], None]
    ended: list[str] = field(default_factory=list)
    outcome: dict[str, str] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)

    def play(self, order: Sequence[str]) -> None:
        """Run the steps in this order of sessions; those of one that waits come when it no longer does."""
        left = list(order)
        while left:
            place = next((i for i, name in enumerate(left) if not self.sessions[name].running), None)
            assert place is not None, f"all wait, nobody goes on: {self.ended}, then {left}"
            self._start(self.sessions[left.pop(place)])
        assert not self._busy(), f"still waiting at the end: {self.ended}"

    def _start(self, session: Session) -> None:
        step = session.start()
        holder = self.holders.get(step.where) if step.locks else None
        self._settle(session)
        waits = session.running is step
        must_wait = holder not in (None, session.name)
        # Who closes a ring of waits may be told so instead of waiting.
        told = self.outcome.get(f"{session.name}.{step.name}") == "Conflict"
        assert waits == must_wait or (told and must_wait), (
            f"{session.name}.{step.name} {'waited' if waits else 'went through'} while the lock was "
            f"{holder or 'nobody'}'s, after {self.ended}"
        )
        self.after_each(step)

    def _settle(self, newest: Session) -> None:
        """Until every step is over, or waits for a session that stands still."""
        for _ in range(PATIENCE):
            if newest.running and newest.result.done():
                self._end(newest)
            busy = self._busy()
            if not busy:
                return
            blocked = self._blocked()
            # What the newest step lets through ends after it, also where that is seen first.
            over = [session for session in busy if session.result.done()]
            if not over and all(name in self._still(blocked) for name in (session.name for session in busy)):
                return
            if not newest.running or newest.name in blocked:
                for session in over:
                    self._end(session)
            wait([session.result for session in busy], timeout=0.005, return_when="FIRST_COMPLETED")
        raise AssertionError(f"no end: {[(s.name, s.running) for s in self._busy()]} after {self.ended}")

    def _still(self, blocked: dict[str, set[str]]) -> set[str]:
        """Who has nothing to do, or waits for one who has nothing to do, directly or through others."""
        still = {name for name, session in self.sessions.items() if not session.running}
        while more := {name for name, by in blocked.items() if by & still} - still:
            still |= more
        return still

    def _blocked(self) -> dict[str, set[str]]:
        rows = self.watch.execute(_BLOCKED, {"names": list(self.sessions)}).fetchall()
        return {waiting: set(by) for waiting, by in rows}

    def _busy(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.running]

    def _end(self, session: Session) -> None:
        step = session.running
        assert step is not None
        session.running = None
        name = f"{session.name}.{step.name}"
        self.ended.append(name)
        came_to = shown(session.result)
        if step.shown:
            self.outcome[name] = came_to
        if step in (COMMIT, ROLLBACK):
            self.holders = {where: who for where, who in self.holders.items() if who != session.name}
        elif step.holds and not session.result.exception():
            self.holders[step.where] = session.name


def orders(steps: dict[str, int], seed: int = 1) -> Iterator[list[str]]:
    """Orders in which sessions with so many steps each can be stepped: one after the other, then mixed ones.

    Mixed ones come by chance, always the same, and without end; with ``INTERLEAVINGS=all`` every order comes.
    """
    turns = [[n for n in turn for _ in range(steps[n])] for turn in itertools.permutations(sorted(steps))]
    yield from turns
    if ALL_ORDERS:
        yield from (order for order in _every(Counter(steps)) if order not in turns)
        return
    chance, drawn = random.Random(seed), list(turns[0])
    while True:
        chance.shuffle(drawn)
        yield list(drawn)


def _every(left: Counter[str]) -> Iterator[list[str]]:
    if not left.total():
        yield []
    for name in sorted(left):
        if left[name]:
            for rest in _every(left - Counter([name])):
                yield [name, *rest]


# --- the table of what is expected


@dataclass(frozen=True)
class Row:
    """What is to come out where steps ended in this order (``a.x < b.y, b.y < a.commit``)."""

    order: str
    lines: tuple[str, ...]

    def fits(self, ended: Sequence[str]) -> bool:
        return all(
            ended.index(earlier) < ended.index(later)
            for chain in self.order.split(",")
            for earlier, later in itertools.pairwise(name.strip() for name in chain.split("<"))
        )


def table(text: str) -> list[Row]:
    """Read a table: an order at the left edge, indented below it what comes out."""
    rows: list[Row] = []
    for line in filter(str.strip, text.splitlines()):
        if line[0].isspace():
            rows[-1] = Row(rows[-1].order, (*rows[-1].lines, " ".join(line.split())))
        else:
            rows.append(Row(line.strip(), ()))
    return rows
