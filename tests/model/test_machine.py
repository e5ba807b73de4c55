"""Every verb at random, against a real database and against the model, step by step.

The universe is small, so that things collide. In the suite it runs a fixed list of seeds, a minute or two;
``SUPERSEDE_MACHINE_SECONDS`` makes it run as long as you like, from a seed of its own, and with
``SUPERSEDE_MACHINE_RESTARTS`` on a server that it stops and kills. A failure prints the seed that replays it
(``SUPERSEDE_MACHINE_SEED``) and the steps that lead to it, which :class:`model.pair.Pair` takes as they are.
"""

from __future__ import annotations

import itertools
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from model.chance import ACTORS, Chance, day
from model.oracle import printed
from model.pair import Pair, Step
from model.shrink import shrink
from servers import new_database, temporary_data_dir
from supersede import FactStore, embedded, engine, migrate

SECONDS = os.environ.get("SUPERSEDE_MACHINE_SECONDS")
SEED = os.environ.get("SUPERSEDE_MACHINE_SEED")
RESTARTS = os.environ.get("SUPERSEDE_MACHINE_RESTARTS")
EXAMPLES = 10  # of one seed: what a failure has to replay
STEPS = 20
SEEDS = 5  # in the suite
SHRINKING = 120  # seconds that a failure may take to make its steps fewer

NAMESPACES = ["a", "a", "a", "a", "b"]

NIGHTLY = ["vacuum (analyze) supersede.{}", "vacuum (full) supersede.{}", "reindex table supersede.{}"]
TABLES = ["fact_version_open", "fact_version_closed", "supersedes", "operation", "evidence", "fact_ref"]
RARELY = 5  # one in so many chances to stop a server is taken
SELDOM = 6  # one in so many new connections is to a new database
FEW = 4  # examples of one seed, where the server is stopped

# A generator of its own, seeded by hypothesis: what it draws is spread evenly, and depends on what is stored.
chance = st.randoms(use_true_random=True)
namespaces = st.sampled_from(NAMESPACES)


class Machine(RuleBasedStateMachine):
    """Draws what happens next; ``Pair`` does it twice and compares."""

    make: ClassVar[Callable[[], Pair]]
    last: ClassVar[Pair]
    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.pair = Machine.last = Machine.make()
        self.calls: list[Step] = []

    def teardown(self) -> None:
        try:
            self.pair.recall_all()
        finally:
            self.pair.close()
            self.tally["examples"] += 1
            self.tally.update(self.pair.tally)

    def take(self, step: Step) -> None:
        self.pair.step(step)
        if "write" in step or "replay" in step:
            self.calls.append(step)

    def look(self, random: Random, asked: list[str]) -> None:
        """Ask something new, and something of before."""
        draw = Chance(random, self.pair, asked[0])
        if all(self.pair.oracle.book(namespace).stamps for namespace in asked):
            self.take({"ask": asked, **draw.question(asked)})
            if random.randrange(4) == 0:
                self.take({"rank": asked, **draw.ranking(asked)})
            if random.randrange(4) == 0:
                self.take({"diff": asked[0], **draw.period()})
        if random.randrange(4) == 0:
            self.take({"look": asked[0], "fact": draw.fact(), **draw.road()})
        if self.pair.answers and random.randrange(3) == 0:
            self.take({"recall": random.randrange(len(self.pair.answers))})

    @initialize(declared=st.sampled_from(["a", "a", "both", "no"]), begin=st.integers(0, 8), random=chance)
    def begin(self, declared: str, begin: int, random: Random) -> None:
        self.take({"clock": day(begin)})
        for namespace in {"a": ["a"], "both": ["a", "b"], "no": []}[declared]:
            event = {"op": "declare_predicate", "name": "hq", "cardinality": "one"}
            self.take({"write": namespace, "event": event})
        for _ in range(4):
            self.take({"write": "a", "event": Chance(random, self.pair, "a").remember()})

    @rule(namespace=namespaces, random=chance, calls=st.integers(1, 5))
    def write(self, namespace: str, random: Random, calls: int) -> None:
        draw = Chance(random, self.pair, namespace)
        for _ in range(calls):
            self.take({"write": namespace, "event": draw.event(), **draw.caller()})
        if random.randrange(3) == 0:
            for event in draw.dispute():
                self.take({"write": namespace, "event": event, **draw.caller()})
        if random.randrange(2) == 0:
            self.undo(namespace, random)
        self.look(random, [namespace])

    @rule(
        namespace=namespaces,
        random=chance,
        events=st.sampled_from([1, 1, 2, 3]),  # one that fails undoes them all
        late=st.sampled_from(["refuse", "next_stamp"]),
    )
    def replay(self, namespace: str, random: Random, events: int, late: str) -> None:
        """Recorded some hours before or after the newest event there."""
        book = self.pair.oracle.book(namespace)
        last = int(book.recorded) if book.stamps else self.pair.oracle.clock
        hours = [0, 1, 1, 2, 5]
        if random.randrange(10) == 0 or late == "next_stamp":
            hours.append(-3)
        found = []
        for _ in range(events):
            last += random.choice(hours) * 3_600_000_000
            event = Chance(random, self.pair, namespace).without_basis()
            found.append(event | {"recorded_at": printed(last)})
        if random.randrange(10):
            self.take({"clock": printed(max(last, self.pair.oracle.clock))})
        road = Chance(random, self.pair, namespace).road()
        self.take({"replay": namespace, "events": found, "late": late, **road})
        self.look(random, [namespace])

    @rule(namespace=namespaces, random=chance, events=st.integers(1, 4), raises=st.booleans())
    def together(self, namespace: str, random: Random, events: int, raises: bool) -> None:
        draw = Chance(random, self.pair, namespace)
        found = [draw.event() for _ in range(events)]
        killed = {"killed": True} if not raises and self.dies(random) else {}
        self.take({"together": namespace, "events": found, "raises": raises, **killed, **draw.caller()})
        self.look(random, [namespace])

    def undo(self, namespace: str, random: Random) -> None:
        """What an actor did is undone; sometimes that, too."""
        draw = Chance(random, self.pair, namespace)
        for _ in range(random.choice([1, 1, 2]) if hasattr(FactStore, "undo") else 0):
            if any(operation.actor for operation in draw.book.operations):
                road = draw.road() | {"actor": random.choice(ACTORS)}
                self.take({"undo": namespace, **draw.undoing(), **road})

    @precondition(lambda self: self.calls)
    @rule(random=chance)
    def again(self, random: Random) -> None:
        """The same call once more: a retry, where it has a handle."""
        self.take(random.choice(self.calls[-6:]))

    @rule(seconds=st.sampled_from([1, 3600, 86400, 86400, -1, -3600, -86400]))
    def move_clock(self, seconds: int) -> None:
        self.take({"clock": printed(self.pair.oracle.clock + seconds * 1_000_000)})

    def dies(self, random: Random) -> bool:
        """Whether a server of its own is to be stopped now: seldom, for it takes seconds."""
        return self.pair.server is not None and random.randrange(RARELY) == 0

    @rule(random=chance)
    def reconnect(self, random: Random) -> None:
        if self.dies(random):
            self.take({"restart": random.choice(["stop", "kill"])})
        elif random.randrange(SELDOM) == 0:
            self.take({"move": True})
        else:
            self.take({"reconnect": True})
        if random.randrange(8) == 0:
            table = random.choice(TABLES)
            self.take({"maintain": random.choice(NIGHTLY).format(table)})
        self.look(random, random.choice([["a"], ["a", "b"], ["b", "a"]]))


class Own:
    """An embedded server of the machine's own, which may be stopped and killed."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def start(self) -> None:
        embedded.start(self._home)

    def restart(self) -> None:
        embedded.stop(self._home)

    def kill(self) -> None:
        pid = embedded.status(self._home).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)


def prepare(url: str) -> None:
    """Words alone rank, as in every database of the suite."""
    owner = engine.make_engine(url)
    try:
        migrate.init(owner, text_search="english")
    finally:
        owner.dispose()


def run(
    make: Callable[[], Pair], *, number: int, runs: int = 1, until: float = 0, examples: int = EXAMPLES
) -> None:
    """So many seeds from this one on, and more until that time."""
    Machine.make, Machine.tally = staticmethod(make), Counter()
    profile = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    for turn in itertools.count():
        if turn >= runs and time.monotonic() >= until:
            break
        try:
            run_state_machine_as_test(seed(number + turn)(Machine), settings=profile)
        except Exception as failure:
            print(f"\nreplay with SUPERSEDE_MACHINE_SEED={number + turn}", flush=True)
            steps = [step for step in Machine.last.steps if step != {"recall": "all"}]
            fewer = shrink(make, steps, like=str(failure), seconds=SHRINKING)
            print("or with these steps:", *fewer, sep="\n    ")
            raise
        Machine.tally["seeds"] += 1
    print("", *(f"{n:9,}  {what}" for what, n in sorted(Machine.tally.items())), sep="\n")


@pytest.fixture
def databases(server_url: str, template_database: str) -> Iterator[Callable[[], str]]:
    """Makes prepared databases, which are gone after the test."""
    with ExitStack() as until_then:
        yield lambda: until_then.enter_context(new_database(server_url, "test", template_database))[1]


def test_the_store_and_the_model_agree(databases: Callable[[], str]) -> None:
    url = databases()
    make = lambda: Pair(url, fresh=databases)  # noqa: E731
    if SECONDS is not None and not RESTARTS:
        number = int(SEED) if SEED else secrets.randbelow(2**32)
        run(make, number=number, until=time.monotonic() + float(SECONDS))
    else:
        run(make, number=int(SEED or 0), runs=1 if SEED else SEEDS)


def test_they_agree_when_the_server_is_stopped_and_killed() -> None:
    """On a durable server of its own."""
    with temporary_data_dir() as home:
        own = Own(home)
        own.start()
        url = embedded.url(home)
        prepare(url)
        number = int(SEED or 0)
        until = time.monotonic() + float(SECONDS or 0) if RESTARTS else 0

        def make() -> Pair:
            own.start()  # a difference may have left it dead
            return Pair(url, server=own)

        run(make, number=number, until=until, examples=FEW)
        assert Machine.tally["server kill"] + Machine.tally["server killed in a transaction"] > 0
