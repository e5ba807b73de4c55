"""The store and the model side by side: each step is taken by both, and they must not differ.

A step is JSON, so that what went wrong can be kept as it is:

- ``{"clock": instant}``: the database's clock stands there from now on;
- ``{"write": namespace, "event": event}``: a verb, called live;
- ``{"replay": namespace, "events": [...], "late": "refuse" or "next_stamp"}``;
- ``{"together": namespace, "events": [...], "raises": bool}``: a transaction, committed or not;
- ``{"ask": [namespaces], "valid_at": instant or null, "known_at": instant or null}``;
  with ``"subject"`` only facts about that;
- ``{"look": namespace, "fact": name}``: one fact as it is now, its history, where it came from;
- ``{"recall": n}``: the n-th answer so far, asked again by its basis and by its point;
- ``{"reconnect": true}``;
- ``{"maintain": statement}``: what an administrator does at night.

Events are written as a history writes them. A fact is named by a ref, or by ``#`` and its number in the
order in which the namespace's facts were made; ``based_on`` is the number of an answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from databases import set_clock_over
from model.oracle import (
    FOREVER,
    NEVER,
    Book,
    Done,
    Event,
    Oracle,
    Period,
    Refused,
    Shown,
    Time,
    both,
    instant,
    joined,
)
from supersede import NO_END, NO_START, FactNotFound, FactStore, Recorded, SupersedeError
from supersede import periods as product
from supersede.models import Answer, Fact
from supersede.verbs import Verbs

Step = dict[str, Any]

_numbers = itertools.count()
_BOUNDS = {"no_start": NO_START, "no_end": NO_END}


class Undo(Exception):
    """Raised inside a transaction to have it undone."""


def time(at: datetime | None, unbounded: Time) -> Time:
    return unbounded if at is None else instant(at.isoformat())


def period(some: Any) -> Period:
    return time(some[0], NEVER), time(some[1], FOREVER)


def periods(some: Iterable[product.Period]) -> list[Period]:
    return [period(one) for one in some]


class Pair:
    """A store and a model, with namespaces of their own in a database that others may use too."""

    def __init__(self, url: str, *, check: bool = True) -> None:
        self.url = url
        self.check = check
        self.prefix = f"m{next(_numbers)}-{uuid4().hex[:8]}-"
        self.look: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.look.execute("set timezone = 'UTC'")
        self.oracle = Oracle()
        self.stores: dict[str, FactStore] = {}
        self.ids: dict[str, list[str]] = {}
        self.answers: list[Answer] = []
        self.steps: list[Step] = []

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        self.stores = {}
        self.look.close()

    def store(self, namespace: str) -> FactStore:
        if namespace not in self.stores:
            self.stores[namespace] = FactStore.open(self.url, namespace=self.prefix + namespace)
        return self.stores[namespace]

    # -- steps --------------------------------------------------------------------------------------------

    def run(self, steps: Iterable[Step]) -> None:
        """Steps as they were kept; every answer is asked again at the end."""
        for step in steps:
            self.step(step)
        self.recall_all()

    def step(self, step: Step) -> None:
        self.steps.append(step)
        try:
            self._step(step)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n\nafter these steps:\n{self.story()}") from difference

    def story(self) -> str:
        return "[\n" + "".join(f"    {step!r},\n" for step in self.steps) + "]"

    def _step(self, step: Step) -> None:
        if "clock" in step:
            set_clock_over(self.look, step["clock"])
            self.oracle.clock = instant(step["clock"])
        elif "write" in step:
            self._write(step["write"], step["event"], self.store(step["write"]))
            self.compare_tables(step["write"])
        elif "replay" in step:
            self._replay(step)
            self.compare_tables(step["replay"])
        elif "together" in step:
            self._together(step)
            self.compare_tables(step["together"])
        elif "ask" in step:
            self._ask(step)
        elif "look" in step:
            self._look(step["look"], step["fact"])
        elif "recall" in step:
            self._recall(self.answers[step["recall"]])
        elif "maintain" in step:
            self.look.execute(step["maintain"])
        elif "reconnect" in step:
            for store in self.stores.values():
                store.close()
            self.stores = {}

    def _write(self, namespace: str, event: Event, verbs: Verbs) -> None:
        expected: Done | Refused
        try:
            expected = self.oracle.write(namespace, self._as_model(namespace, event))
        except Refused as refused:
            expected = refused
        actual: Recorded | SupersedeError
        try:
            actual = self._call(verbs, namespace, event)
        except SupersedeError as error:
            actual = error
        self._compare(namespace, expected, actual)

    def _replay(self, step: Step) -> None:
        namespace, late = step["replay"], step.get("late", "refuse")
        expected: list[Done] | Refused
        try:
            expected = self.oracle.replay(namespace, step["events"], late=late)
        except Refused as refused:
            expected = refused
        try:
            actual = self.store(namespace).replay(
                [self._named(namespace, event) for event in step["events"]], out_of_order=late
            )
        except SupersedeError as error:
            self._compare(namespace, expected if isinstance(expected, Refused) else expected[0], error)
            return
        assert not isinstance(expected, Refused), f"the model refused by {expected!r}, the store did not"
        for done, recorded in zip(expected, actual, strict=True):
            self._compare(namespace, done, recorded)

    def _together(self, step: Step) -> None:
        namespace = step["together"]
        before, ids = self.oracle.snapshot(), list(self.ids.get(namespace, []))
        try:
            with self.store(namespace).transaction() as transaction:
                for event in step["events"]:
                    self._write(namespace, event, transaction)
                after, self.oracle.books = self.oracle.books, before
                self.compare_tables(namespace)  # nobody sees anything of it yet
                self.oracle.books = after
                if step["raises"]:
                    raise Undo
        except Undo:
            self.oracle.restore(before)
            self.ids[namespace] = ids

    def _ask(self, step: Step) -> None:
        point = {key: step[key] for key in ("valid_at", "known_at") if step.get(key) is not None}
        names = [self.prefix + namespace for namespace in step["ask"]]
        which = {"subject": step["subject"]} if "subject" in step else {}
        answer = self.store(step["ask"][0]).facts(**point, **which, namespaces=names, explain=True)
        self.answers.append(answer)
        self.compare_answer(answer)

    def _recall(self, answer: Answer) -> None:
        store = self.store(next(iter(answer.basis.heads)).removeprefix(self.prefix))
        again = store.facts(basis=answer.basis)
        assert again == answer, f"by its basis:\n{again}\nis not\n{answer}"
        heads = answer.basis.heads.values()
        if all(head is not None and answer.known_at <= head for head in heads):
            by_point = store.facts(
                valid_at=answer.valid_at,
                known_at=answer.known_at,
                namespaces=list(answer.basis.heads),
                explain=True,
                subject=answer.basis.filters.subject,
            )
            now, then = (a.model_dump(exclude={"basis", "notice"}) for a in (by_point, answer))
            assert now == then, f"by its point:\n{by_point}\nis not\n{answer}"

    def _look(self, namespace: str, name: str) -> None:
        """One fact: now, through time, and what it came from."""
        book = self.oracle.book(namespace)
        fact = book.find(name)
        store, named = self.store(namespace), self._name(namespace, name)
        for read in (store.get, store.history, store.lineage):
            if fact is None:
                with pytest.raises(FactNotFound):
                    read(named)
        if fact is None:
            return
        now = self.oracle.now(namespace)
        current = store.get(named)
        assert self.number(current.id) == (namespace, fact.number)
        expected = book.show(fact.number, now, now)
        assert self.shown(current) == expected, f"get: the store\n{current}\nthe model\n{expected}"

        history = store.history(named)
        versions = [(fact.number, *period(v.valid), *period(v.known)) for v in history.versions]
        own = [(v.fact, v.start, v.end, v.opened, v.closed) for v in book.versions if v.fact == fact.number]
        assert believed(versions) == believed(own), f"history: the store\n{versions}\nthe model\n{own}"
        # A source that says the same of the same date again adds nothing, so only the first is told.
        cited, learnt = {}, {}
        for evidence in reversed(history.evidence):
            cited[evidence.source] = time(evidence.recorded, NEVER)
        for source, at in [(s, at) for f, s, at in book.evidence if f == fact.number]:
            learnt.setdefault(source, at)
        assert cited == learnt, f"history of evidence: the store {cited}, the model {learnt}"
        for edges, mine, other in (
            (history.supersedes, "new", "old"),
            (history.superseded_by, "old", "new"),
        ):
            found = sorted(
                (self.number(e.id)[1], e.reason, time(e.recorded, NEVER), periods(e.taken)) for e in edges
            )
            wanted = sorted(
                (getattr(e, other), e.reason, e.stamp, e.taken)
                for e in book.edges
                if getattr(e, mine) == fact.number and e.reason != "amendment"
            )
            assert found == wanted, f"history of edges: the store\n{found}\nthe model\n{wanted}"

        lineage = store.lineage(named)
        for found, reach in (
            (lineage.ancestors, lambda other: book.reaches(fact.number, other)),
            (lineage.descendants, lambda other: book.reaches(other, fact.number)),
        ):
            told = {self.number(f.id)[1] for f in found}
            wanted = {f.number for f in book.facts if f != fact and reach(f.number)}
            assert told == wanted, f"lineage: the store\n{told}\nthe model\n{wanted}"

    def recall_all(self) -> None:
        self.steps.append({"recall": "all"})
        try:
            for answer in self.answers:
                self._recall(answer)
                self.compare_sql(answer)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n\nafter these steps:\n{self.story()}") from difference

    # -- the same event for both --------------------------------------------------------------------------

    def _as_model(self, namespace: str, event: Event) -> Event:
        event = dict(event)
        if "based_on" in event:
            basis = self.answers[event["based_on"]].basis
            head = basis.heads[self.prefix + namespace]
            # An answer about the past saw no more than was known then.
            event["based_on"] = None if head is None else time(min(head, basis.known_at), NEVER)
        return event

    def _named(self, namespace: str, event: Event) -> Event:
        """Facts named as the store knows them."""
        event = dict(event)
        acts_on = "ref" if event["op"] in {"end", "retract", "reinstate", "cite"} else "by"
        if event.get(acts_on) is not None:
            event[acts_on] = self._name(namespace, event[acts_on])
        if "old" in event:
            event["old"] = [self._name(namespace, old) for old in event["old"]]
        return event

    def _name(self, namespace: str, name: str) -> str:
        ids = self.ids.get(namespace, [])
        if not name.startswith("#"):
            return name
        number = int(name[1:])
        return ids[number] if number < len(ids) else str(uuid4())

    def _call(self, verbs: Verbs, namespace: str, event: Event) -> Recorded:
        event = self._named(namespace, event)
        op = event.pop("op")
        if "based_on" in event:
            event["based_on"] = self.answers[event["based_on"]]
        for key in ("valid_from", "valid_to"):
            if event.get(key) in _BOUNDS:
                event[key] = _BOUNDS[event[key]]
        if op == "declare_predicate":
            return verbs.declare_predicate(event.pop("name"), **event)
        if op == "remember":
            return verbs.remember(event.pop("claim"), **event)
        if op in {"supersede", "amend"}:
            old, claim = event.pop("old"), event.pop("claim", None)
            return getattr(verbs, op)(old, claim, **event)
        if "when" in event:
            event["at"] = event.pop("when")
        return getattr(verbs, op)(event.pop("ref"), **event)

    # -- comparing ----------------------------------------------------------------------------------------

    def number(self, fact_id: str) -> tuple[str, int]:
        """Namespace and number of a fact."""
        return next((n, ids.index(fact_id)) for n, ids in self.ids.items() if fact_id in ids)

    def _compare(self, namespace: str, expected: Done | Refused, actual: Recorded | SupersedeError) -> None:
        if isinstance(actual, SupersedeError):
            assert isinstance(expected, Refused), f"the store raised {actual!r}, the model did {expected}"
            assert type(actual).__name__ in expected.errors, f"{actual!r} is not {expected!r}"
            return
        assert isinstance(expected, Done), f"the model refused by {expected}, the store did {actual}"
        if expected.created and not expected.repeated:
            assert actual.id is not None
            self.ids.setdefault(namespace, []).append(actual.id)
        given: dict[int, list[Period]] = {}
        for old in actual.given_back:  # one entry for each edge
            number = self.number(old.id)[1]
            given[number] = joined(given.get(number, []) + periods(old.valid))
        found = {
            "stamp": time(actual.stamp, NEVER),
            "fact": None if actual.id is None else self.number(actual.id)[1],
            "created": actual.created,
            "repeated": actual.repeated,
            "valid": joined(periods(actual.valid)),
            "cut": sorted((self.number(c.id)[1], c.reason, periods(c.taken)) for c in actual.supersedes),
            "amends": sorted(self.number(old.id)[1] for old in actual.amends),
            "taken": periods(actual.taken),
            "given_back": given,
        }
        wanted = vars(expected) | {
            "valid": joined(expected.valid),
            "cut": sorted(expected.cut),
            "amends": sorted(expected.amends),
        }
        assert found == wanted, f"result: the store\n{found}\nthe model\n{wanted}"

    def compare_tables(self, namespace: str) -> None:
        """What is stored is what the model holds: versions, edges, evidence, refs, stamps."""
        if not self.check:
            return
        book = self.oracle.book(namespace)
        tables = self.look.execute(
            """
            select jsonb_build_object(
                'versions', (select jsonb_agg(jsonb_build_array(fact_id, lower(valid_time), upper(valid_time),
                    lower(tx_time), upper(tx_time))) from supersede.fact_version where namespace = n),
                'facts', (select jsonb_agg(jsonb_build_array(fact_id, claim, subject, predicate, object,
                    trust, stamp)) from supersede.fact where namespace = n),
                'edges', (select jsonb_agg(jsonb_build_array(new_fact_id, old_fact_id, reason, stamp, (select
                    jsonb_agg(jsonb_build_array(lower(r), upper(r))) from unnest(taken) as r)))
                    from supersede.supersedes where namespace = n),
                'evidence', (select jsonb_agg(jsonb_build_array(fact_id, source_uri))
                    from supersede.evidence where namespace = n),
                'refs', (select jsonb_agg(jsonb_build_array(ref, fact_id, stamp))
                    from supersede.fact_ref where namespace = n),
                'stamps', (select jsonb_agg(stamp order by stamp)
                    from supersede.operation where namespace = n),
                'head', (select head from supersede.namespace where namespace = n)
            ) from (select %s::text) as t (n)
            """,
            [self.prefix + namespace],
        ).fetchone()
        assert tables is not None
        found: dict[str, Any] = tables[0]
        number = {fact_id: number for number, fact_id in enumerate(self.ids.get(namespace, []))}

        def at(text: str | None, unbounded: Time = FOREVER) -> Time:
            return unbounded if text is None else instant(text)

        rows = [(number[f], at(a, NEVER), at(b), at(c), at(d)) for f, a, b, c, d in found["versions"] or []]
        expected = [(v.fact, v.start, v.end, v.opened, v.closed) for v in book.versions]
        told, wanted = believed(rows), believed(expected)
        assert told == wanted, f"versions: the store\n{told}\nthe model\n{wanted}"
        overlap = slot_overlaps(book, rows)
        assert not overlap, f"two values in one slot: {overlap}"

        facts = {number[f]: (*content, at(stamp)) for f, *content, stamp in found["facts"] or []}
        wanted_facts = {
            f.number: (f.claim, f.subject, f.predicate, f.object, f.trust, f.stamp) for f in book.facts
        }
        assert facts == wanted_facts, f"facts: the store\n{facts}\nthe model\n{wanted_facts}"
        edges = sorted(
            (number[new], number[old], reason, at(stamp), [(at(a, NEVER), at(b)) for a, b in taken or []])
            for new, old, reason, stamp, taken in found["edges"] or []
        )
        wanted_edges = sorted((e.new, e.old, e.reason, e.stamp, e.taken) for e in book.edges)
        assert edges == wanted_edges, f"edges: the store\n{edges}\nthe model\n{wanted_edges}"
        cited = {(number[f], source) for f, source in found["evidence"] or []}
        wanted_cited = {(f, source) for f, source, _ in book.evidence}
        assert cited == wanted_cited, f"evidence: the store\n{cited}\nthe model\n{wanted_cited}"
        refs = {ref: (number[f], at(stamp)) for ref, f, stamp in found["refs"] or []}
        assert refs == book.refs, f"refs: the store\n{refs}\nthe model\n{book.refs}"
        stamps = [at(stamp) for stamp in found["stamps"] or []]
        assert stamps == book.stamps == sorted(set(stamps)), f"stamps: {stamps}\nthe model {book.stamps}"
        head = None if found["head"] is None else at(found["head"])
        assert head == book.head, f"head: {head}, the model {book.head}"

    def shown(self, fact: Fact) -> Shown:
        """What the store tells of a fact, as the model writes it."""
        assert len(set(fact.sources)) == len(fact.sources)
        return Shown(
            valid=None if fact.valid is None else period(fact.valid),
            recorded=int(time(fact.recorded, NEVER)),
            refs=list(fact.refs),
            supersedes={self.number(e.id)[1]: e.reason for e in fact.supersedes},
            amends={self.number(e.id)[1] for e in fact.amends},
            amended_by={self.number(e.id)[1] for e in fact.amended_by},
            sources=set(fact.sources),
        )

    def compare_answer(self, answer: Answer) -> None:
        """An answer of the store, just given, is the model's."""
        valid_at, known_at = time(answer.valid_at, NEVER), time(answer.known_at, NEVER)
        found: dict[str, Any] = {}
        for fact in answer.facts:
            assert fact.valid is not None
            found["{}{}".format(*self.number(fact.id))] = vars(self.shown(fact))
        withheld = {"{}{}".format(*self.number(f.id)): f.reason for f in answer.withheld_facts}
        wanted: dict[str, Any] = {}
        wanted_withheld: dict[str, str] = {}
        for name in answer.basis.heads:
            namespace = name.removeprefix(self.prefix)
            book = self.oracle.book(namespace)
            model = book.answer(valid_at, known_at, about=answer.basis.filters.subject)
            for fact, shown in model.shown.items():
                wanted[f"{namespace}{fact}"] = vars(shown)
            wanted_withheld |= {f"{namespace}{fact}": why for fact, why in model.withheld.items()}
        assert found == wanted, f"facts: the store\n{found}\nthe model\n{wanted}"
        assert withheld == wanted_withheld, f"withheld: the store\n{withheld}\nthe model\n{wanted_withheld}"
        assert len(answer.withheld_facts) == answer.withheld.total
        for told in answer.withheld_facts:
            namespace, number = self.number(told.id)
            takers = set()
            if told.reason == "superseded":
                takers = self.oracle.book(namespace).takers(number, valid_at, known_at)
            replaced = {self.number(edge.id)[1] for edge in told.superseded_by}
            assert replaced == takers, f"what replaced {told}: the store {replaced}, the model {takers}"
        order = [(time(fact.valid.start, NEVER), fact.recorded) for fact in answer.facts if fact.valid]
        assert order == sorted(order), order

    def compare_sql(self, answer: Answer) -> None:
        """The analysts' function says the same at the point of an answer that is closed."""
        if any(head is None for head in answer.basis.heads.values()) or answer.basis.filters.subject:
            return
        rows = self.look.execute(
            "select fact_id::text, ref, valid_from, valid_to, recorded_at, sources "
            "from supersede.facts_on(%s)",
            [answer.basis.model_dump_json()],
        ).fetchall()
        found = {row[0]: (row[1], period(row[2:4]), row[4], set(row[5] or [])) for row in rows}
        wanted = {f.id: (f.ref, period(f.valid), f.recorded, set(f.sources)) for f in answer.facts}
        assert found == wanted, f"facts_on: {found}\nPython: {wanted}"
        if all(answer.known_at <= head for head in answer.basis.heads.values()):
            rows = self.look.execute(
                "select fact_id::text, ref, valid_from, valid_to, recorded_at, sources "
                "from supersede.facts_as_of(%s, %s, %s)",
                [answer.valid_at, answer.known_at, list(answer.basis.heads)],
            ).fetchall()
            found = {row[0]: (row[1], period(row[2:4]), row[4], set(row[5] or [])) for row in rows}
            assert found == wanted, f"facts_as_of: {found}\nPython: {wanted}"


Rectangle = tuple[int, Time, Time, Time, Time]


def believed(rectangles: list[Rectangle]) -> dict[int, list[tuple[Time, list[Period]]]]:
    """Per fact, what it held from each stamp on that changed it."""
    found: dict[int, list[tuple[Time, list[Period]]]] = {}
    for fact in sorted({r[0] for r in rectangles}):
        own = [r for r in rectangles if r[0] == fact]
        changes: list[tuple[Time, list[Period]]] = []
        for stamp in sorted({r[3] for r in own} | {r[4] for r in own} - {FOREVER}):
            holding = [(a, b) for _, a, b, opened, closed in own if opened <= stamp < closed]
            covered = joined(holding)
            for one, other in itertools.combinations(holding, 2):
                assert not both([one], [other]), f"a fact overlaps itself: {own}"
            if not changes or changes[-1][1] != covered:
                changes.append((stamp, covered))
        found[fact] = changes
    return found


def slot_overlaps(book: Book, rows: list[Rectangle]) -> list[Any]:
    """Open versions of one slot that overlap, whatever their values."""
    standing = [row for row in rows if row[4] == FOREVER]
    return [
        (one, other)
        for one, other in itertools.combinations(standing, 2)
        if one[0] != other[0]
        and book.slot(book.facts[one[0]]) is not None
        and book.slot(book.facts[one[0]]) == book.slot(book.facts[other[0]])
        and max(one[1], other[1]) < min(one[2], other[2])
    ]
