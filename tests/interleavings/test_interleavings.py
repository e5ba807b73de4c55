"""Two and three sessions at once, in all orders of their steps: what comes of it is what the tables say.

After every order: stamps have risen, every answer given on the way is still the same; and at the end no rule
of the tables is broken. ``INTERLEAVINGS=all`` runs every order; else a sample, always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import psycopg
import pytest
from cases import CASES, Case, claims, edges
from roads import ROADS, elsewhere, named
from schedules import ALL_ORDERS, BEGIN, Run, Session, Step, orders

from databases import execute, query
from fakes import BagOfWords
from servers import new_database
from stress import INTEGRITY, integrity
from supersede import Answer, FactStore

VARIANTS = [
    pytest.param(case, roads, id=f"{case.name}: {', '.join(roads)}") for case in CASES for roads in case.roads
]

# Orders of a sample, by when every row of a table must have been reached.
PLENTY = 100
SLOTS = "versions outside the slot of their fact"
FORWARD = """
    select count(*) from supersede.supersedes s
    join supersede.fact f on f.namespace = s.namespace and f.fact_id in (s.new_fact_id, s.old_fact_id)
    where f.stamp > s.stamp
"""


@pytest.fixture(scope="module")
def url(server_url: str, vector_template_database: str) -> Iterator[str]:
    """A database in which a deadlock is noticed at once; each order has a namespace of its own."""
    with new_database(server_url, "test", vector_template_database) as (name, url):
        execute(url, f"alter database {name} set deadlock_timeout = '50ms'")
        yield url


class Probe:
    """A reader at the side: what it is told on the way, it must be told again at the end."""

    def __init__(self, store: FactStore, watch: psycopg.Connection[Any]) -> None:
        self.store = store
        self.watch = watch
        self.answers: list[Answer] = [store.facts()]
        self.head: Any = None
        self.operations = 0
        self._stamps_rise()

    def after(self, step: Step) -> None:
        """Ask, where something may have changed: with a write in flight, and when one has ended."""
        self._stamps_rise()
        if ALL_ORDERS or (step.locks and len(self.answers) == 1):
            self.answers.append(self.store.ask("the old one", min_similarity=0.0))
        if ALL_ORDERS or (not step.shown and step is not BEGIN):
            self.answers.append(self.store.facts(explain=True))

    def _stamps_rise(self) -> None:
        (head, operations), *_ = self.watch.execute(
            "select max(n.head), count(o.stamp) from supersede.namespace n "
            "left join supersede.operation o using (namespace) where n.namespace = %s",
            [self.store.namespace],
        ).fetchall()
        if operations != self.operations:
            assert operations > self.operations, "the ledger only grows"
            assert self.head is None or head > self.head, "each operation has a later stamp"
        else:
            assert head == self.head, "the head moves with an operation alone"
        self.head, self.operations = head, operations

    def ask_again(self, *, erased: str | None) -> None:
        for answer in self.answers:
            again = (self.store.ask if answer.basis.question == "ask" else self.store.facts)(
                basis=str(answer.basis)
            )
            if erased is None:
                assert again == answer
            else:
                # Erasure is the one exception: the old answer without the fact, whose names are gone, too.
                assert [f.id for f in again.facts] == [f.id for f in answer.facts if f.id != erased]


class Cast:
    """Who takes part: made when first needed, kept for all cases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: dict[tuple[str, str], Session] = {}
        self._stack = ExitStack()
        self.watch = self._stack.enter_context(psycopg.connect(url, autocommit=True))
        # The space is there, but only who is told so embeds: vectors come later.
        self.first = self._stack.enter_context(FactStore.open(url))
        self.aside = self._stack.enter_context(FactStore.open(url, embedder=BagOfWords()))

    def session(self, name: str, road: str) -> Session:
        if (name, road) not in self._made:
            known_as = named(self._url, name)
            session = Session(
                name, partial(ROADS[road], known_as, name), FactStore.open(known_as, actor=name)
            )
            self._stack.callback(session.close)
            self._made[name, road] = session
        return self._made[name, road]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def cast(url: str) -> Iterator[Cast]:
    with closing(Cast(url)) as cast:
        yield cast


@pytest.mark.parametrize(("case", "roads"), VARIANTS)
def test_every_order_of_the_steps_comes_out_as_listed(cast: Cast, case: Case, roads: Sequence[str]) -> None:
    rows, seen = case.table(), set()
    reachable = len({row.order for row in rows})
    sample = case.sample if roads is case.roads[0] else case.sample // 2
    sessions = {name: cast.session(name, road) for name, road in zip(case.sessions, roads, strict=True)}
    steps = {name: len(own) for name, own in case.sessions.items()}
    for number, order in enumerate(orders(steps)):
        if not ALL_ORDERS and (number >= PLENTY or (number >= sample and len(seen) == reachable)):
            break
        namespace = f"{case.name} {'/'.join(roads)} {number}"
        given = case.setup(elsewhere(cast.first, namespace))
        for name, session in sessions.items():
            session.enter(namespace, case.sessions[name], given)
        probe = Probe(elsewhere(cast.aside, namespace), cast.watch)
        run = Run(sessions, cast.watch, probe.after)
        run.play(order)
        probe.ask_again(erased=given.id if case.erases else None)

        came_out = {f"{step}: {outcome}" for step, outcome in run.outcome.items()}
        came_out.add(f"believed: {', '.join(claims(probe.store)) or 'nothing'}")
        came_out.add(f"edges: {', '.join(edges(cast.watch, namespace)) or 'none'}")
        fitting = [row for row in rows if row.fits(run.ended)]
        assert len({row.order for row in fitting}) == 1, f"no row, or several, for {run.ended}"
        assert came_out in [set(row.lines) for row in fitting], f"after {run.ended}"
        seen.add(fitting[0].order)
    assert len(seen) == reachable, f"a row that no order reaches: { ({row.order for row in rows} - seen) }"


def test_after_all_that_no_rule_is_broken(url: str) -> None:
    """Rows are closed and never removed, so whatever an order broke would still show."""
    assert not broken_rules(url)


def broken_rules(url: str) -> dict[str, int]:
    """Of the rules that hold in every database, those that do not hold here."""
    # In a namespace that declares later on, versions from before rightly have no slot.
    of_open = INTEGRITY[SLOTS] + " and v.is_open"
    found = {
        **integrity(url),
        SLOTS: query(url, of_open)[0][0],
        "edges before their facts": query(url, FORWARD)[0][0],
    }
    return {rule: times for rule, times in found.items() if times}
