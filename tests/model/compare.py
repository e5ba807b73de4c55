"""What the store says and holds, beside what the model says: they must not differ."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import psycopg

from model.oracle import (
    FOREVER,
    NEVER,
    Book,
    Done,
    Oracle,
    Period,
    Refused,
    Shown,
    Time,
    both,
    instant,
    joined,
)
from model.oracle import Fact as Model
from model.tables import Row, Watch
from supersede import Recorded, SupersedeError
from supersede import periods as product
from supersede.models import Answer, Fact
from supersede.timelines import Diff, History, Lineage


def time(at: datetime | None, unbounded: Time) -> Time:
    return unbounded if at is None else instant(at.isoformat())


def period(some: Any) -> Period:
    return time(some[0], NEVER), time(some[1], FOREVER)


def periods(some: Iterable[product.Period]) -> list[Period]:
    return [period(one) for one in some]


def refuses(call: Callable[[], Any], *names: str) -> None:
    """That a call is refused by an error of one of these names."""
    found: object
    try:
        found = call()
    except SupersedeError as error:
        found = error
    assert type(found).__name__ in names, f"{found!r} is not {names}"


class Comparison:
    """A database, a model, and which fact of the one is which of the other."""

    def __init__(self, url: str, prefix: str) -> None:
        self.url = url
        self.prefix = prefix
        self.look: psycopg.Connection[Any]
        self.connect()
        self.oracle = Oracle()
        self.ids: dict[str, list[str]] = {}
        self.watched: dict[str, Watch] = {}
        self.tally: Counter[str] = Counter()

    def connect(self) -> None:
        """A connection of its own, to look at the tables from outside."""
        self.look = psycopg.connect(self.url, autocommit=True)
        self.look.execute("set timezone = 'UTC'")

    def number(self, fact_id: str) -> tuple[str, int]:
        """Namespace and number of a fact."""
        return next((n, ids.index(fact_id)) for n, ids in self.ids.items() if fact_id in ids)

    def compare_result(
        self, namespace: str, expected: Done | Refused, actual: Recorded | SupersedeError
    ) -> None:
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
            "believed": actual.believed if actual.repeated else None,
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
        if actual.repeated:
            book = self.oracle.book(namespace)
            wanted["believed"] = expected.fact is not None and bool(book.covers(expected.fact))
        else:
            wanted["believed"] = None
        assert found == wanted, f"result: the store\n{found}\nthe model\n{wanted}"

    def compare_tables(self, namespace: str) -> None:
        """What is stored is what the model holds: versions, edges, evidence, refs, stamps."""
        book = self.oracle.book(namespace)
        row = self.look.execute(_STORED, [self.prefix + namespace]).fetchone()
        assert row is not None
        found: dict[str, Any] = {key: value or [] for key, value in row[0].items()}
        number = {fact_id: number for number, fact_id in enumerate(self.ids.get(namespace, []))}

        def at(text: str | None, unbounded: Time = FOREVER) -> Time:
            return unbounded if text is None else instant(text)

        versions = [
            Row(v, number[f], at(a, NEVER), at(b), at(c), at(d), slot, is_open)
            for v, f, a, b, c, d, slot, is_open in found["versions"]
        ]
        stamps = [instant(stamp) for stamp in found["stamps"]]
        assert stamps == book.stamps == sorted(set(stamps)), f"stamps: {stamps}\nthe model {book.stamps}"
        self.watched.setdefault(namespace, Watch()).look(
            versions,
            stamps,
            {table: len(found[table]) for table in found if table != "head"},
            [(number[new], number[old], reason) for new, old, reason, *_ in found["edges"]],
            erased=len(book.erased),
        )
        rows = [(v.fact, v.start, v.end, v.opened, v.closed) for v in versions]
        expected = [(v.fact, v.start, v.end, v.opened, v.closed) for v in book.versions]
        told, wanted = believed(rows), believed(expected)
        assert told == wanted, f"versions: the store\n{told}\nthe model\n{wanted}"
        check_slots(book, versions)

        facts = {number[f]: (*content, at(stamp)) for f, *content, stamp in found["facts"]}
        wanted_facts = {
            f.number: (f.claim, f.subject, f.predicate, f.object, f.kind, f.data, f.trust, f.stamp)
            for f in book.facts
        }
        assert facts == wanted_facts, f"facts: the store\n{facts}\nthe model\n{wanted_facts}"
        edges = sorted(
            (number[new], number[old], reason, at(stamp), [(at(a, NEVER), at(b)) for a, b in taken or []])
            for new, old, reason, stamp, taken in found["edges"]
        )
        wanted_edges = sorted((e.new, e.old, e.reason, e.stamp, e.taken) for e in book.edges)
        assert edges == wanted_edges, f"edges: the store\n{edges}\nthe model\n{wanted_edges}"
        cited = {(number[f], source) for f, source in found["evidence"]}
        wanted_cited = {(f, source) for f, source, _ in book.evidence}
        assert cited == wanted_cited, f"evidence: the store\n{cited}\nthe model\n{wanted_cited}"
        refs = {ref: (number[f], at(stamp)) for ref, f, stamp in found["refs"]}
        assert refs == book.refs, f"refs: the store\n{refs}\nthe model\n{book.refs}"
        head = None if found["head"] == [] else at(found["head"])
        assert head == book.head, f"head: {head}, the model {book.head}"

    def shown(self, fact: Fact) -> Shown:
        """What the store tells of a fact, as the model writes it."""
        assert len(set(fact.sources)) == len(fact.sources)
        return Shown(
            said=(fact.claim, fact.subject, fact.predicate, fact.object, fact.kind, fact.data, fact.trust),
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
            seen = min(known_at, time(answer.basis.heads[name], NEVER))
            model = book.answer(valid_at, seen, **which_of(answer))
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
                seen = min(known_at, time(answer.basis.heads[self.prefix + namespace], NEVER))
                takers = self.oracle.book(namespace).takers(number, valid_at, seen)
            replaced = {self.number(edge.id)[1] for edge in told.superseded_by}
            assert replaced == takers, f"what replaced {told}: the store {replaced}, the model {takers}"
        in_order(answer.facts)

    def compare_pages(self, whole: Answer, pages: list[Answer]) -> None:
        """Pages are the whole, cut; none of them counts otherwise."""
        shown = [fact for page in pages for fact in page.facts]
        assert shown == list(whole.facts), f"pages of\n{whole}\nare\n{pages}"
        for page in pages:
            assert page.withheld_facts == whole.withheld_facts, f"a page of\n{whole}\nis\n{page}"
            assert page.withheld == whole.withheld

    def compare_ranked(self, answer: Answer, word: str) -> None:
        """A question of one word, answered to the end: nothing that matches is missing or twice."""
        valid_at, known_at = time(answer.valid_at, NEVER), time(answer.known_at, NEVER)
        current, dead = set(), {}
        for name in answer.basis.heads:
            namespace = name.removeprefix(self.prefix)
            live, lost = self.oracle.book(namespace).matching(word, valid_at, known_at)
            current |= {(namespace, fact) for fact in live}
            dead |= {(namespace, fact): why for fact, why in lost.items()}
        shown = [self.number(fact.id) for fact in answer.facts]
        withheld = {self.number(fact.id): fact.reason for fact in answer.withheld_facts}
        copies = {fact for fact, why in withheld.items() if why == "near_duplicate"}
        found = {fact: why for fact, why in withheld.items() if fact not in copies}
        assert found == dead, f"withheld from {word}: the store\n{found}\nthe model\n{dead}"
        assert {*shown, *copies} == current, f"shown of {word}: {shown}, {copies}\nthe model {current}"
        assert len(shown) + len(copies) == len(current), f"one is shown and withheld: {shown}, {copies}"
        for fact in answer.withheld_facts:
            leader = fact.duplicate_of
            assert (leader is not None) == (fact.reason == "near_duplicate")
            assert leader is None or self.number(leader.id) in shown
        scores = [fact.score for fact in answer.facts if not fact.restated]
        assert all(score is not None for score in scores)

    def compare_without_erased(self, again: Answer, then: Answer) -> None:
        """An answer from before an erasure, asked again: itself, without what was erased since.

        Nothing is named after an erased fact any more, so edges to one are left out of what is compared.
        """
        gone = {
            self.ids[namespace][fact] for namespace, book in self.oracle.books.items() for fact in book.erased
        }
        plain = [
            [_without(fact, gone) for fact in answer.facts if fact.id not in gone] for answer in (again, then)
        ]
        assert plain[0] == plain[1], f"without what was erased:\n{again}\nis not\n{then}"
        why = [
            {fact.id: fact.reason for fact in answer.withheld_facts if fact.id not in gone}
            for answer in (again, then)
        ]
        assert why[0] == why[1], f"without what was erased:\n{again}\nis not\n{then}"

    def compare_diff(self, namespace: str, diff: Diff) -> None:
        """What changed in belief between two instants."""
        about = None if diff.valid_at is None else time(diff.valid_at, NEVER)
        book = self.oracle.book(namespace)
        wanted = book.changes(time(diff.known_from, NEVER), time(diff.known_to, NEVER), about)
        found = {
            self.number(change.id)[1]: (
                joined(periods(change.gained)),
                joined(periods(change.lost)),
                {(self.number(edge.id)[1], edge.reason) for edge in change.superseded_by},
            )
            for change in diff.changes
        }
        assert found == wanted, f"diff: the store\n{found}\nthe model\n{wanted}"

    def compare_sql(self, answer: Answer) -> None:
        """The analysts' function says the same at the point of an answer that is closed."""
        if None in answer.basis.heads.values() or answer.basis.question != "facts" or which_of(answer):
            return
        if answer.basis.after is not None or answer.basis.limit != 1_000:
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

    def compare_fact(self, store: Any, namespace: str, fact: Model, named: str) -> None:
        """One fact: now, through time, and what it came from."""
        book = self.oracle.book(namespace)
        if fact.number in book.erased:
            refuses(lambda: store.get(named), "Erased")
        else:
            self._compare_now(book, fact, store.get(named))
        self._compare_history(book, fact, store.history(named))
        self._compare_lineage(book, fact, store.lineage(named))

    def _compare_now(self, book: Book, fact: Model, current: Fact) -> None:
        now = max(self.oracle.clock, book.head or 0)
        assert self.number(current.id)[1] == fact.number
        expected = book.show(fact.number, now, now)
        assert self.shown(current) == expected, f"get: the store\n{current}\nthe model\n{expected}"

    def _compare_history(self, book: Book, fact: Model, history: History) -> None:
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

    def _compare_lineage(self, book: Book, fact: Model, lineage: Lineage) -> None:
        for found, reach in (
            (lineage.ancestors, lambda other: book.reaches(fact.number, other)),
            (lineage.descendants, lambda other: book.reaches(other, fact.number)),
        ):
            told = {self.number(f.id)[1] for f in found}
            wanted = {f.number for f in book.facts if f != fact and reach(f.number)}
            assert told == wanted, f"lineage: the store\n{told}\nthe model\n{wanted}"


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


def check_slots(book: Book, rows: list[Row]) -> None:
    """Every version has the key of its slot, as its predicate was declared when it was opened."""
    keys: dict[tuple[str, str], str] = {}
    for row in rows:
        if row.fact in book.erased:
            assert row.slot is None, f"the slot of an erased fact: {row}"
            continue
        slot = book.slot(book.facts[row.fact], row.opened)
        assert (slot is None) == (row.slot is None), f"{row} is in the slot {slot}"
        if slot is not None and row.slot is not None:
            assert keys.setdefault(slot, row.slot) == row.slot, f"two keys of one slot: {slot}"
    assert len(set(keys.values())) == len(keys), f"one key for two slots: {keys}"


def _without(fact: Fact, gone: set[str]) -> Fact:
    """A fact without its ties to some others."""
    kept = {
        name: tuple(edge for edge in getattr(fact, name) if edge.id not in gone)
        for name in ("supersedes", "amends", "amended_by")
    }
    return fact.model_copy(update=kept)


def which_of(answer: Answer) -> dict[str, Any]:
    """The filters of an answer that are set."""
    said = answer.basis.filters.model_dump() | {"min_trust": answer.basis.min_trust}
    return {key: value for key, value in said.items() if value is not None}


def in_order(facts: Iterable[Fact]) -> None:
    """By the start of what is believed, then stamp, namespace, id."""
    keys = [(time(f.valid.start, NEVER), f.recorded, f.namespace.encode(), f.id) for f in facts if f.valid]
    assert keys == sorted(keys), keys


_STORED = """
    select jsonb_build_object(
        'versions', (select jsonb_agg(jsonb_build_array(version_id, fact_id, lower(valid_time),
            upper(valid_time), lower(tx_time), upper(tx_time), slot_key, is_open))
            from supersede.fact_version where namespace = n),
        'facts', (select jsonb_agg(jsonb_build_array(fact_id, claim, subject, predicate, object,
            kind, data, trust, stamp)) from supersede.fact where namespace = n),
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
"""
