"""What the store should say, worked out by brute force from its rules alone.

Plain lists of rectangles and dictionaries: every question looks at everything. Nothing of the package is
used here, so that a mistake in it cannot be made twice. Instants are whole microseconds, an unknown end is
``FOREVER``, an unknown start ``NEVER``; a list of periods is a list of ``(start, end)``, end exclusive.

Where several rules refuse one event, :class:`Refused` names all of them: which is told first is of no
interest.
"""

from __future__ import annotations

import copy
import json
import math
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

NEVER = -math.inf
FOREVER = math.inf

Time = float
Period = tuple[Time, Time]
Event = dict[str, Any]

TRUST = {"summary": 1, "extracted": 2, "verbatim": 3}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Refused(Exception):
    """The event changes nothing; ``errors`` are the names of every error that applies."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = frozenset(errors)
        super().__init__(", ".join(sorted(self.errors)))


# -- time ---------------------------------------------------------------------------------------------------


def instant(text: str) -> int:
    at = datetime.fromisoformat(text)
    assert at.tzinfo is not None
    return (at - EPOCH) // timedelta(microseconds=1)


def printed(at: Time) -> str:
    return (EPOCH + timedelta(microseconds=int(at))).isoformat().replace("+00:00", "Z")


def bound(text: str | None) -> Time | None:
    if text is None:
        return None
    return {"no_start": NEVER, "no_end": FOREVER}.get(text) or instant(text)


def both(some: list[Period], others: list[Period]) -> list[Period]:
    """What lies in both."""
    found = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
    return joined([(a, b) for a, b in found if a < b])


def minus(some: list[Period], others: list[Period]) -> list[Period]:
    """What lies in the first and not in the second."""
    for c, d in others:
        some = [(x, y) for a, b in some for x, y in ((a, min(b, c)), (max(a, d), b)) if x < y]
    return joined(some)


def joined(some: list[Period]) -> list[Period]:
    """In order, those that overlap or touch made one."""
    found: list[Period] = []
    for a, b in sorted(some):
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(b, found[-1][1]))
        else:
            found.append((a, b))
    return found


def holds(some: list[Period], at: Time) -> bool:
    return any(a <= at < b for a, b in some)


def malformed(event: Event) -> set[str]:
    """What is wrong with an event whatever is recorded."""
    pairs = [(event.get(first), event.get(last)) for first, last in _BOUNDS_SAID]
    found = {"InvalidPeriod" for a, b in pairs if a and b and bound(a) >= bound(b)}
    if event.get("by") is not None and any(event.get(key) is not None for key in _CONTENT):
        found.add("InvalidInput")  # the content of an existing fact is its own
    return found


_CONTENT = ("claim", "ref", "subject", "predicate", "object", "kind", "data", "trust")
_BOUNDS_SAID = [("valid_from", "valid_to"), ("when", "until")]


def fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def contains(data: Any, wanted: Any) -> bool:
    """Whether JSON holds other JSON, key by key; of a list every element somewhere."""
    if isinstance(wanted, dict):
        return isinstance(data, dict) and all(
            key in data and contains(data[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(data, list) and all(any(contains(d, w) for d in data) for w in wanted)
    return type(data) is type(wanted) and bool(data == wanted)


# -- what is recorded ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    number: int
    claim: str | None  # None once it was erased
    subject: str | None
    predicate: str | None
    object: str | None
    trust: str
    stamp: int
    kind: str = "fact"
    data: Any = None

    @property
    def value(self) -> str:
        return fold(self.object if self.object is not None else self.claim or "")

    @property
    def marks(self) -> set[tuple[str, ...]]:
        """By what it is known again after it was erased."""
        triple = [self.subject, self.predicate, self.object]
        found: set[tuple[str, ...]] = {(fold(self.claim or ""),)}
        if None not in triple:
            found.add(tuple(fold(part or "") for part in triple))
        return found

    def matches(self, which: dict[str, Any]) -> bool:
        """Whether a question with these filters is about it."""
        for key in ("subject", "predicate", "object"):
            if which.get(key) is not None and fold(getattr(self, key) or "") != fold(which[key]):
                return False
        if which.get("kind") is not None and self.kind != which["kind"]:
            return False
        return which.get("where") is None or contains(self.data, which["where"])


@dataclass
class Version:
    fact: int
    start: Time
    end: Time
    opened: int
    closed: Time = FOREVER


@dataclass(frozen=True)
class Edge:
    new: int
    old: int
    reason: str
    taken: list[Period]
    stamp: int


@dataclass(frozen=True)
class Loss:
    """Validity that a fact lost, and to what: ``superseded``, ``ended``, ``retracted``, ``undone`` or
    ``erased``.

    ``said`` is the period that an end spoke of, whatever of it there was to lose.
    """

    fact: int
    periods: list[Period]
    why: str
    stamp: int
    said: list[Period] = field(default_factory=list)


@dataclass(frozen=True)
class Operation:
    """One line of the ledger. ``undoes``: the stamp of what it undid."""

    stamp: int
    verb: str
    actor: str | None = None
    undoes: int | None = None


@dataclass
class Done:
    """What an event did: the same fields as the package's own result."""

    stamp: int
    fact: int | None = None
    created: bool = False
    repeated: bool = False
    valid: list[Period] = field(default_factory=list)
    cut: list[tuple[int, str, list[Period]]] = field(default_factory=list)
    amends: list[int] = field(default_factory=list)
    taken: list[Period] = field(default_factory=list)
    given_back: dict[int, list[Period]] = field(default_factory=dict)


@dataclass
class Shown:
    """What is told of a fact: ``valid`` is the period that holds the instant asked about."""

    said: tuple[Any, ...]  # claim, subject, predicate, object, kind, data, trust
    valid: Period | None
    recorded: int
    refs: list[str]
    supersedes: dict[int, str]
    amends: set[int]
    amended_by: set[int]
    sources: set[str]


@dataclass
class Answer:
    """Everything known at a point: what is current, and why the rest is not."""

    shown: dict[int, Shown]
    withheld: dict[int, str]


class Book:
    """One namespace."""

    def __init__(self) -> None:
        self.head: int | None = None
        self.recorded: Time = NEVER  # the newest recording time
        self.facts: list[Fact] = []
        self.versions: list[Version] = []
        self.edges: list[Edge] = []
        self.losses: list[Loss] = []
        self.evidence: list[tuple[int, str, int]] = []  # fact, source, stamp
        self.refs: dict[str, tuple[int, int]] = {}  # fact, stamp
        self.predicates: list[tuple[str, str, int]] = []  # folded name, cardinality, stamp
        self.handles: dict[tuple[str, str], tuple[str, Done]] = {}
        self.operations: list[Operation] = []
        self.erased: dict[int, int] = {}  # fact, stamp
        self.banned: list[tuple[int, set[tuple[str, ...]]]] = []  # what was erased and not lifted
        self.problems: set[str] = set()

    @property
    def stamps(self) -> list[int]:
        return [operation.stamp for operation in self.operations]

    # -- looking ------------------------------------------------------------------------------------------

    def covers(self, fact: int) -> list[Period]:
        """Where a fact is believed."""
        return joined([(v.start, v.end) for v in self.open(fact)])

    def open(self, fact: int) -> list[Version]:
        return [v for v in self.versions if v.fact == fact and v.closed == FOREVER]

    def cardinality(self, predicate: str, known_at: Time = FOREVER) -> str:
        said = [
            cardinality
            for name, cardinality, stamp in self.predicates
            if name == fold(predicate) and stamp <= known_at
        ]
        return said[-1] if said else "many"

    def slot(self, fact: Fact, known_at: Time = FOREVER) -> tuple[str, str] | None:
        if fact.subject is None or fact.predicate is None:
            return None
        if self.cardinality(fact.predicate, known_at) != "one":
            return None
        return fold(fact.subject), fold(fact.predicate)

    def neighbours(self, fact: Fact) -> list[Fact]:
        """The other facts of its slot."""
        slot = self.slot(fact)
        others = [f for f in self.facts if f.number != fact.number]
        return [f for f in others if slot is not None and self.slot(f) == slot]

    def find(self, ref: str) -> Fact | None:
        """By one of its refs, or by ``#`` and its number."""
        if ref.startswith("#"):
            return next((fact for fact in self.facts if f"#{fact.number}" == ref), None)
        return self.facts[self.refs[ref][0]] if ref in self.refs else None

    def reaches(self, start: int, goal: int, known_at: Time = FOREVER) -> bool:
        """Whether one fact superseded the other, directly or through others."""
        seen, ahead = set(), [start]
        while ahead:
            fact = ahead.pop()
            if fact == goal:
                return True
            if fact not in seen:
                seen.add(fact)
                ahead += [
                    e.old
                    for e in self.edges
                    if e.new == fact and e.reason != "amendment" and e.stamp <= known_at
                ]
        return False

    # -- the algebra --------------------------------------------------------------------------------------

    def take(self, fact: int, periods: list[Period], stamp: int) -> list[Period]:
        """Cut periods out of what a fact holds; returns what it lost."""
        taken = both(self.covers(fact), periods)
        for version in self.open(fact):
            kept = minus([(version.start, version.end)], periods)
            if kept != [(version.start, version.end)]:
                version.closed = stamp
                self.insert(fact, kept, stamp)
        return taken

    def insert(self, fact: int, periods: list[Period], stamp: int) -> None:
        self.versions += [Version(fact, a, b, stamp) for a, b in periods]

    def link(self, new: Fact, old: int, reason: str, taken: list[Period], stamp: int) -> None:
        if new.number == old or (reason != "amendment" and self.reaches(old, new.number)):
            self.problems.add("SupersessionCycle")
        self.edges.append(Edge(new.number, old, reason, taken, stamp))
        if reason != "amendment" and taken:
            self.losses.append(Loss(old, taken, "superseded", stamp))

    def gate(self, trust: str, reason: str, old: int, *, over: bool) -> None:
        """May something of this trust cut that fact?"""
        has = self.facts[old].trust
        below = TRUST[trust] < TRUST[has]
        if not over and ((trust == "summary" and has != "summary") or (reason == "correction" and below)):
            self.problems.add("TrustConflict")

    def cite(self, fact: int, sources: Iterable[str], stamp: int) -> None:
        self.evidence += [(fact, source, stamp) for source in sources]

    def sources(self, fact: int) -> list[str]:
        return [source for f, source, _ in self.evidence if f == fact]

    def next_start(self, fact: Fact, start: Time, besides: list[int]) -> Time:
        """When the next version of another fact in the slot starts, those of some facts not counted."""
        later = [
            v.start
            for other in self.neighbours(fact)
            if other.number not in besides
            for v in self.open(other.number)
            if v.start > start
        ]
        return min(later, default=FOREVER)

    def believe(
        self, fact: Fact, periods: list[Period], sources: list[str], *, over: bool, stamp: int
    ) -> tuple[Fact, list[Period], list[tuple[int, str, list[Period]]]]:
        """The slot rule: who holds the periods now, what was inserted, what was cut.

        ``fact`` may be new (not in ``self.facts`` yet) or existing.
        """
        existing = fact.number < len(self.facts)
        standing = [f for f in self.neighbours(fact) if both(self.covers(f.number), periods)]
        same = [f for f in standing if f.value == fact.value]
        kept = [f for f in same if TRUST[f.trust] >= TRUST[fact.trust]]
        refined = [f for f in same if TRUST[f.trust] < TRUST[fact.trust]]
        others = [f for f in standing if f.value != fact.value]

        lacking = periods
        for holder in [*kept, *([fact] if existing else [])]:
            lacking = minus(lacking, self.covers(holder.number))
        sources = sources + [source for old in refined for source in self.sources(old.number)]
        for holder in kept:
            self.cite(holder.number, sources, stamp)
        if not lacking and not existing:
            first = [f for f in kept if holds(self.covers(f.number), periods[0][0])]
            return first[0], [], []

        if not existing:
            self.facts.append(fact)
        cut = []
        for old in refined:
            taken = self.take(old.number, periods, stamp)
            self.link(fact, old.number, "refinement", taken, stamp)
            cut.append((old.number, "refinement", taken))
        for old in others:
            taken = self.take(old.number, periods, stamp)
            before = any(a < taken[0][0] for a, _ in self.covers(old.number))
            reason = "change" if before else "correction"
            self.gate(fact.trust, reason, old.number, over=over)
            self.link(fact, old.number, reason, taken, stamp)
            cut.append((old.number, reason, taken))
        self.insert(fact.number, lacking, stamp)
        self.cite(fact.number, sources, stamp)
        return fact, lacking, cut

    # -- the verbs ----------------------------------------------------------------------------------------

    def run(self, event: Event, stamp: int, now: int) -> Done:
        """Carry out one event, whose handle is not known yet; problems are collected, not raised."""
        verbs: dict[str, Callable[[Event, int, int], Done]] = {
            "declare_predicate": self.declare,
            "remember": self.remember,
            "supersede": self.supersede,
            "amend": self.amend,
            "end": self.end,
            "retract": self.retract,
            "reinstate": self.reinstate,
            "cite": self.add_sources,
            "erase": self.erase,
            "lift_erasure": self.lift,
        }
        return verbs[event["op"]](event, stamp, now)

    def guard(self, event: Event, facts: list[Fact], fact: Fact | None = None) -> None:
        """Has anything moved that the call acts on, or the slot of a fact, since what its decision saw?"""
        if "based_on" in event:
            acted = {fact.number for fact in facts}
            seen = NEVER if event["based_on"] is None else event["based_on"]
            if fact is not None and self.slot(fact) is not None:
                acted |= {other.number for other in self.neighbours(fact)}
                # Which slot an erased fact was in is destroyed with it: it may have been this one.
                acted |= self.erased.keys()
            moved = [v for v in self.versions if v.opened > seen or FOREVER > v.closed > seen]
            if acted & {version.fact for version in moved}:
                self.problems.add("Conflict")

    def declare(self, event: Event, stamp: int, _now: int) -> Done:
        moved = self.cardinality(event["name"]) != event["cardinality"]
        self.predicates.append((fold(event["name"]), event["cardinality"], stamp))
        for fact in self.facts:
            about = fact.subject is not None and fold(fact.predicate or "") == fold(event["name"])
            for version in self.open(fact.number) if about and moved else []:
                version.closed = stamp
                self.insert(fact.number, [(version.start, version.end)], stamp)
        open_versions = [v for v in self.versions if v.closed == FOREVER]
        for one in open_versions:
            for other in open_versions:
                slots = {self.slot(self.facts[one.fact]), self.slot(self.facts[other.fact])}
                overlap = both([(one.start, one.end)], [(other.start, other.end)])
                if one is not other and len(slots) == 1 and None not in slots and overlap:
                    self.problems.add("SlotOverlap")
        return Done(stamp)

    def remember(self, event: Event, stamp: int, now: int) -> Done:
        fact = self.draft(event, stamp)
        self.guard(event, [], fact)
        return self.record(event, fact, [], self.said_period(event, fact, [], now), stamp)

    def supersede(self, event: Event, stamp: int, now: int) -> Done:
        olds = self.olds(event)
        reason = event.get("reason", "change")
        by = self.by(event, olds)
        fact = by or self.draft(self.taken_over(event, olds, reason), stamp)
        self.guard(event, [fact, *olds], fact)
        start, end = bound(event.get("valid_from")), bound(event.get("valid_to"))
        if start is not None and end is not None and start >= end:
            raise Refused({"InvalidPeriod"} | self.problems)
        if reason == "change" and by and start is None and end is None:
            periods = self.covers(by.number)
        elif reason == "change" or (start is not None and end is not None):
            periods = self.said_period(event, fact, [old.number for old in olds], now)
        else:
            covered = joined([period for old in olds for period in self.covers(old.number)])
            side = (NEVER if start is None else start, FOREVER if end is None else end)
            periods = both(covered, [side])
        dead = [old for old in olds if not both(self.covers(old.number), periods)]
        if not periods or (dead and event.get("if_not_current", "refuse") != "link"):
            self.problems.add("FactNotCurrent")
        if not periods:
            raise Refused(self.problems)
        return self.record(event, fact, [(old.number, reason) for old in olds], periods, stamp)

    def amend(self, event: Event, stamp: int, now: int) -> Done:
        olds = self.olds(event)
        by = self.by(event, olds)
        fact = by or self.draft(event, stamp)
        self.guard(event, [fact, *olds], fact)
        if by and event.get("valid_from") is None and event.get("valid_to") is None:
            periods = self.covers(by.number)
        else:
            periods = self.said_period(event, fact, [], now)
        if not periods:
            raise Refused(self.problems)
        return self.record(event, fact, [(old.number, "amendment") for old in olds], periods, stamp)

    def record(
        self, event: Event, fact: Fact, olds: list[tuple[int, str]], periods: list[Period], stamp: int
    ) -> Done:
        """Cut the olds, believe the fact over the periods, link: what all verbs with a claim share."""
        over = event.get("over_trust", False)
        existing = fact.number < len(self.facts)
        sources = list(event.get("sources", []))
        for old, reason in olds:
            if reason in {"refinement", "duplicate"}:
                sources += self.sources(old)
        taken = {old: self.take(old, periods, stamp) for old, reason in olds if reason != "amendment"}
        holder, valid, cut = self.believe(fact, periods, sources, over=over, stamp=stamp)
        done = Done(stamp, holder.number, created=holder is fact and not existing, valid=valid)
        for old, reason in olds:
            if taken.get(old):
                self.gate(fact.trust, reason, old, over=over)
            self.link(holder, old, reason, taken.get(old, []), stamp)
            if reason == "amendment":
                if old == holder.number:
                    self.problems.add("SupersessionCycle")  # nothing amends itself
                if any(old == lost for lost, _, _ in cut):
                    self.problems.add("InvalidInput")  # what is amended stays current
                done.amends.append(old)
            else:
                done.cut.append((old, reason, taken[old]))
        done.cut += cut
        if event.get("ref") is not None:
            named, _ = self.refs.setdefault(event["ref"], (holder.number, stamp))
            if named != holder.number:
                self.problems.add("RefConflict")
        return done

    def end(self, event: Event, stamp: int, now: int) -> Done:
        fact = self.need(event["ref"])
        self.guard(event, [fact])
        start, end = bound(event.get("when")), bound(event.get("until"))
        period = (now if start is None else start, FOREVER if end is None else end)
        if period[0] >= period[1]:
            raise Refused({"InvalidPeriod"} | self.problems)
        taken = self.take(fact.number, [period], stamp)
        if not taken:
            self.problems.add("FactNotCurrent")
        self.losses.append(Loss(fact.number, taken, "ended", stamp, [period]))
        return Done(stamp, fact.number, taken=taken)

    def retract(self, event: Event, stamp: int, _now: int) -> Done:
        fact = self.need(event["ref"])
        self.guard(event, [fact])
        held = self.take(fact.number, [(NEVER, FOREVER)], stamp)
        if not held:
            self.problems.add("FactNotCurrent")
        self.losses.append(Loss(fact.number, held, "retracted", stamp))
        done = Done(stamp, fact.number, taken=held)
        if event.get("give_back", False):
            own = [edge for edge in self.edges if edge.new == fact.number and edge.reason != "amendment"]
            for edge in self.in_turn(own):
                back = self.can_go_back(edge, held)
                self.insert(edge.old, back, stamp)
                if back:
                    done.given_back[edge.old] = joined(done.given_back.get(edge.old, []) + back)
        return done

    def in_turn(self, edges: list[Edge]) -> list[Edge]:
        """Who gets something back first: an old that supersedes others, then what was taken last."""
        olds = {edge.old for edge in edges}

        def rank(edge: Edge) -> tuple[int, Time, Time]:
            above = sum(self.reaches(other, edge.old) for other in olds - {edge.old})
            return above, -edge.stamp, -self.facts[edge.old].stamp

        return sorted(edges, key=rank)

    def can_go_back(self, edge: Edge, held: list[Period]) -> list[Period]:
        """What a retracted fact took from an old one by this edge and may be given back."""
        if edge.old in self.erased:
            return []
        since = [
            loss
            for loss in self.losses
            if loss.fact == edge.old and loss.stamp > edge.stamp and not self.undone(loss.stamp)
        ]
        if any(loss.why == "retracted" for loss in since):
            return []
        back = minus(both(edge.taken, held), self.covers(edge.old))
        back = minus(back, self.given_by_undone(edge.old, edge.stamp))
        for other in self.edges:
            stands = other.reason != "amendment" and not self.undone(other.stamp)
            if other.old == edge.old and other.new != edge.new and stands:
                back = minus(back, self.covers(other.new))
        for other in self.neighbours(self.facts[edge.old]):
            back = minus(back, self.covers(other.number))
        for loss in since:
            if loss.why == "ended":
                back = minus(back, loss.said)
        return back

    def reinstate(self, event: Event, stamp: int, _now: int) -> Done:
        fact = self.need(event["ref"])
        self.guard(event, [fact], fact)
        start, end = bound(event.get("valid_from")), bound(event.get("valid_to"))
        if start is not None and end is not None:
            periods = [(start, end)] if start < end else []
        else:
            losses = [loss for loss in self.losses if loss.fact == fact.number and loss.periods]
            last = max((loss.stamp for loss in losses), default=None)
            lost = joined([p for loss in losses if loss.stamp == last for p in loss.periods])
            side = (NEVER if start is None else start, FOREVER if end is None else end)
            periods = both(lost, [side]) if side[0] < side[1] else []
        if not periods:
            raise Refused({"InvalidPeriod"} | self.problems)
        missing = minus(periods, self.covers(fact.number))
        for other in self.neighbours(fact):
            if other.value != fact.value and both(missing, self.covers(other.number)):
                self.problems.add("SlotTaken")
            missing = minus(missing, self.covers(other.number))
        self.insert(fact.number, missing, stamp)
        return Done(stamp, fact.number, valid=missing)

    def add_sources(self, event: Event, stamp: int, _now: int) -> Done:
        fact = self.need(event["ref"])
        self.guard(event, [fact])
        self.cite(fact.number, event["sources"], stamp)
        return Done(stamp, fact.number)

    # -- erasing ------------------------------------------------------------------------------------------

    def erase(self, event: Event, stamp: int, _now: int) -> Done:
        fact = self.need(event["ref"])
        held = self.take(fact.number, [(NEVER, FOREVER)], stamp)
        self.losses.append(Loss(fact.number, held, "erased", stamp))
        self.erased[fact.number] = stamp
        self.banned.append((fact.number, fact.marks))
        nothing = {"claim": None, "subject": None, "predicate": None, "object": None, "data": None}
        self.facts[fact.number] = replace(fact, **nothing)
        self.refs = {ref: named for ref, named in self.refs.items() if named[0] != fact.number}
        self.evidence = [cited for cited in self.evidence if cited[0] != fact.number]
        # By what a retry of its own operations would be known is gone, too.
        self.handles = {key: kept for key, kept in self.handles.items() if kept[1].fact != fact.number}
        return Done(stamp, fact.number, taken=held)

    def lift(self, event: Event, stamp: int, _now: int) -> Done:
        fact = self.find(event["ref"])
        if fact is None:
            raise Refused({"FactNotFound"} | self.problems)
        left = [(number, marks) for number, marks in self.banned if number != fact.number]
        if left == self.banned:
            self.problems.add("InvalidInput")  # not erased, or lifted already
        self.banned = left
        return Done(stamp, fact.number)

    # -- undoing ------------------------------------------------------------------------------------------

    def undone(self, stamp: int) -> bool:
        """Whether an operation stands undone: an undo of it does, that was not undone in its turn."""
        return any(o.undoes == stamp and not self.undone(o.stamp) for o in self.operations)

    def gained(self, fact: int, stamp: int) -> list[Period]:
        return minus(self.held(fact, stamp), self.held(fact, stamp - 1))

    def lost(self, fact: int, stamp: int) -> list[Period]:
        return minus(self.held(fact, stamp - 1), self.held(fact, stamp))

    def given_by_undone(self, fact: int, before: int) -> list[Period]:
        """What a fact held just before a stamp by the grace of operations that stand undone."""
        found: list[Period] = []
        for operation in self.operations:
            if operation.stamp < before:
                found = minus(found, self.gained(fact, operation.stamp))
                if self.undone(operation.stamp):
                    found = joined(found + self.gained(fact, operation.stamp))
        return found

    def moved_by(self, stamp: int) -> set[int]:
        return {v.fact for v in self.versions if stamp in {v.opened, v.closed}}

    def untouched_since(self, stamp: int) -> bool:
        """Whether nothing that an operation moved, nor anything in its slots or above it, was moved since."""
        facts = self.moved_by(stamp)
        near = facts | {other.number for f in facts for other in self.neighbours(self.facts[f])}
        near |= {edge.new for edge in self.edges if edge.old in facts}
        later = {v.fact for v in self.versions if v.opened > stamp or FOREVER > v.closed > stamp}
        return not near & later and not facts & self.erased.keys()

    def undo(
        self, stamp: int, of: int, withdrawn: dict[int, list[Period]], given: dict[int, list[Period]]
    ) -> None:
        """One operation undone, as the store says that it was; whether it may have been is checked here.

        What stands in the way of a piece of validity is for the store to say; here are the bounds within
        which it may, and the whole of it where nothing else happened to these facts.
        """
        for fact, periods in withdrawn.items():
            assert not minus(periods, both(self.gained(fact, of), self.covers(fact))), "cut what it had not"
        for fact, periods in given.items():
            assert not minus(periods, self.lost(fact, of)), "gave back what was not taken"
            assert fact not in self.erased, "gave to an erased fact"
            assert not both(periods, self.covers(fact)), "gave back what is held"
        if self.untouched_since(of):
            facts = self.moved_by(of)
            # What a fact held by the grace of something undone since is not its own to have again.
            lost = lambda fact, at: minus(self.lost(fact, at), self.given_by_undone(fact, at))  # noqa: E731
            for found, rule in ((withdrawn, self.gained), (given, lost)):
                wanted = {fact: rule(fact, of) for fact in facts if rule(fact, of)}
                assert found == wanted, f"undone alone: the store\n{found}\nthe model\n{wanted}"
        for fact, periods in withdrawn.items():
            self.losses.append(Loss(fact, self.take(fact, periods, stamp), "undone", stamp))
        for fact, periods in given.items():
            self.insert(fact, periods, stamp)

    # -- arguments ----------------------------------------------------------------------------------------

    def need(self, ref: str) -> Fact:
        fact = self.find(ref)
        if fact is None:
            raise Refused({"FactNotFound"} | self.problems)
        if fact.number in self.erased:
            raise Refused({"Erased"} | self.problems)
        return fact

    def olds(self, event: Event) -> list[Fact]:
        """The facts that a call acts on, each once."""
        if not event["old"]:
            raise Refused({"InvalidPeriod"} | self.problems)
        found: list[Fact] = []
        for ref in event["old"]:
            if (fact := self.need(ref)) not in found:
                found.append(fact)
        return found

    def by(self, event: Event, olds: list[Fact]) -> Fact | None:
        if event.get("by") is None:
            return None
        fact = self.need(event["by"])
        if fact in olds:
            self.problems |= {"SupersessionCycle", "InvalidInput", "FactNotCurrent"}
        if not self.covers(fact.number):
            self.problems.add("FactNotCurrent")
        return fact

    def draft(self, event: Event, stamp: int) -> Fact:
        said = {key: event.get(key) for key in ("subject", "predicate", "object")}
        trust = event.get("trust", "extracted")
        more = {"kind": event.get("kind", "fact"), "data": event.get("data")}
        fact = Fact(len(self.facts), event["claim"], **said, trust=trust, stamp=stamp, **more)
        if any(marks & fact.marks for _, marks in self.banned):
            self.problems.add("Erased")
        return fact

    def taken_over(self, event: Event, olds: list[Fact], reason: str) -> Event:
        """The event with what it takes over from olds that are about one thing, if it is about that too."""
        shared = {(fold(f.subject or ""), fold(f.predicate or "")) for f in olds}
        if len(shared) > 1 or olds[0].subject is None:
            return event
        ((subject, predicate),) = shared
        if fold(event.get("subject", subject)) != subject:
            return event
        if predicate and fold(event.get("predicate", predicate)) != predicate:
            return event
        taken = {"subject": olds[0].subject, "predicate": olds[0].predicate}
        same = fold(event.get("predicate", predicate)) == predicate
        if same and reason in {"refinement", "duplicate"} and len({fold(f.object or "") for f in olds}) == 1:
            taken["object"] = olds[0].object
        return {key: value for key, value in taken.items() if value is not None} | event

    def said_period(self, event: Event, fact: Fact, replaced: list[int], now: int) -> list[Period]:
        """From what is said, else now, until what is said, else the next in the slot."""
        start, end = bound(event.get("valid_from")), bound(event.get("valid_to"))
        start = now if start is None else start
        end = self.next_start(fact, start, replaced) if end is None else end
        if start >= end:
            raise Refused({"InvalidPeriod"} | self.problems)
        return [(start, end)]

    # -- reading ------------------------------------------------------------------------------------------

    def current(self, fact: int, valid_at: Time, known_at: Time) -> bool:
        return any(
            v.fact == fact and v.start <= valid_at < v.end and v.opened <= known_at < v.closed
            for v in self.versions
        )

    def why_not(self, fact: int, valid_at: Time, known_at: Time) -> str:
        """The one reason why a fact known by then is withheld."""
        lost = [
            loss
            for loss in self.losses
            if loss.fact == fact and loss.stamp <= known_at and holds(loss.periods, valid_at)
        ]
        if lost:
            last = max(lost, key=lambda loss: loss.stamp)
            return {"ended": "expired", "undone": "retracted"}.get(last.why, last.why)
        known = [v for v in self.versions if v.fact == fact and v.opened <= known_at]
        return "not_yet_valid" if all(v.start > valid_at for v in known) else "expired"

    def takers(self, fact: int, valid_at: Time, known_at: Time) -> set[int]:
        """What last superseded a fact, by then, at that instant."""
        known = [e for e in self.edges if e.old == fact and e.reason != "amendment" and e.stamp <= known_at]
        took = [e for e in known if holds(e.taken, valid_at)]
        return {e.new for e in took if e.stamp == max(e.stamp for e in took)}

    def answer(self, valid_at: Time, known_at: Time, **which: Any) -> Answer:
        """Everything known by then, or of it what is asked for; facts by their number."""
        at_least = TRUST[which.pop("min_trust", None) or "summary"]
        asked = [f for f in self.facts if f.stamp <= known_at and f.matches(which)]
        current = [f for f in asked if self.current(f.number, valid_at, known_at)]
        left = [f for f in current if f.number not in self.erased]
        shown = [f.number for f in left if TRUST[f.trust] >= at_least]
        withheld = {f.number: "below_trust" for f in left if f.number not in shown}
        withheld |= {f.number: "erased" for f in current if f not in left}
        withheld |= {f.number: self.why_not(f.number, valid_at, known_at) for f in asked if f not in current}
        return Answer({f: self.show(f, valid_at, known_at) for f in shown}, withheld)

    def matching(self, word: str, valid_at: Time, known_at: Time) -> tuple[set[int], dict[int, str]]:
        """What a question of one word is about: current facts, and why the others are withheld.

        A current fact is there, too, where one holds the word that it superseded, directly or not.
        """
        known = [f for f in self.facts if f.stamp <= known_at]
        own = {f.number for f in known if word.lower() in (f.claim or "").lower().split()}
        current = {f.number for f in known if self.current(f.number, valid_at, known_at)}
        erased = current & self.erased.keys()
        current -= erased
        heirs = {f for f in current if any(self.reaches(f, old, known_at) for old in own if old != f)}
        dead = {f: self.why_not(f, valid_at, known_at) for f in own - current}
        return current & own | heirs, dead | dict.fromkeys(erased, "erased")

    def changes(
        self, known_from: Time, known_to: Time, valid_at: Time | None
    ) -> dict[int, tuple[list[Period], list[Period], set[tuple[int, str]]]]:
        """Per fact that was believed otherwise: what it gained, what it lost, and what took it."""
        found = {}
        for fact in self.facts:
            before, after = (self.held(fact.number, at) for at in (known_from, known_to))
            gained, lost = minus(after, before), minus(before, after)
            about = gained + lost if valid_at is None else [p for p in gained + lost if holds([p], valid_at)]
            if about:
                took = {
                    (e.new, e.reason)
                    for e in self.edges
                    if e.old == fact.number and e.taken and known_from < e.stamp <= known_to
                }
                found[fact.number] = gained, lost, took
        return found

    def held(self, fact: int, known_at: Time) -> list[Period]:
        """Where a fact was believed."""
        return joined(
            [(v.start, v.end) for v in self.versions if v.fact == fact and v.opened <= known_at < v.closed]
        )

    def show(self, fact: int, valid_at: Time, known_at: Time) -> Shown:
        """What is told of a fact beside its claim."""
        newest = {(e.new, e.old): e for e in self.edges if e.stamp <= known_at}
        edges = list(newest.values())
        added = [e for e in edges if e.reason == "amendment"]
        valid = [
            (v.start, v.end)
            for v in self.versions
            if v.fact == fact and v.start <= valid_at < v.end and v.opened <= known_at < v.closed
        ]
        f = self.facts[fact]
        return Shown(
            said=(f.claim, f.subject, f.predicate, f.object, f.kind, f.data, f.trust),
            valid=valid[0] if valid else None,
            recorded=self.facts[fact].stamp,
            refs=[ref for ref, (f, stamp) in self.refs.items() if f == fact and stamp <= known_at],
            supersedes={e.old: e.reason for e in edges if e.new == fact and e not in added},
            amends={e.old for e in added if e.new == fact},
            amended_by={e.new for e in added if e.old == fact},
            sources={source for f, source, at in self.evidence if f == fact and at <= known_at},
        )

    def name(self, fact: int) -> str:
        """By its first ref, else by its number: what ``find`` takes."""
        return next((ref for ref, (f, _) in self.refs.items() if f == fact), f"#{fact}")


def handle_of(event: Event) -> tuple[str, str] | None:
    """What a retry is known by: a handle said is one name for all verbs, a ref counts for its verb."""
    if event.get("handle") is not None:
        return "", event["handle"]
    return (event["op"], event["ref"]) if "claim" in event and event.get("ref") is not None else None


class Oracle:
    """Several namespaces, and a clock that somebody else moves."""

    def __init__(self) -> None:
        self.books: dict[str, Book] = {}
        self.clock = 0

    def book(self, namespace: str) -> Book:
        return self.books.get(namespace, Book())

    def now(self, namespace: str) -> int:
        head = self.book(namespace).head
        return self.clock if head is None else max(self.clock, head)

    def next_stamp(self, namespace: str) -> int:
        head = self.book(namespace).head
        return self.clock if head is None else max(self.clock, head + 1)

    def write(self, namespace: str, event: Event, *, actor: str | None = None) -> Done:
        """A verb called live."""
        stamp = self.next_stamp(namespace)
        return self._write(namespace, event, handle_of(event), stamp, stamp, stamp, actor=actor)

    def selected(self, namespace: str, actor: str | None, since: int, until: Time) -> list[Operation]:
        """The operations of an actor (or of anybody) in a time, newest first."""
        found = [
            o
            for o in self.book(namespace).operations
            if since <= o.stamp < until and (actor is None or o.actor == actor)
        ]
        return found[::-1]

    def undo(
        self,
        namespace: str,
        of: int,
        withdrawn: dict[int, list[Period]],
        given: dict[int, list[Period]],
        *,
        actor: str | None = None,
    ) -> int:
        """One operation undone, as the store says that it was; its stamp."""
        book = copy.deepcopy(self.book(namespace))
        stamp = self.next_stamp(namespace)
        assert not book.undone(of), "undone twice"
        book.operations.append(Operation(stamp, "undo", actor, of))  # as things stand after it
        book.undo(stamp, of, withdrawn, given)
        book.head, book.recorded = stamp, max(book.recorded, stamp)
        self.books[namespace] = book
        return stamp

    def replay(
        self, namespace: str, events: list[Event], *, late: str = "refuse", actor: str | None = None
    ) -> list[Done]:
        """A history with recording times of its own, all of it or nothing."""
        before = self.snapshot()
        try:
            return [self._replay(namespace, event, late, actor) for event in events]
        except Refused:
            self.restore(before)
            raise

    def snapshot(self) -> dict[str, Book]:
        return copy.deepcopy(self.books)

    def restore(self, books: dict[str, Book]) -> None:
        self.books = books

    def _replay(self, namespace: str, event: Event, late: str, actor: str | None) -> Done:
        book = self.book(namespace)
        recorded = instant(event["recorded_at"])
        handle = handle_of(event) or (event["op"], json.dumps(event, sort_keys=True))
        disorder = recorded > self.clock or (recorded < book.recorded and late == "refuse")
        stamp = recorded if book.head is None else max(recorded, book.head + 1)
        return self._write(
            namespace, event, handle, stamp, recorded, recorded, disorder=disorder, actor=actor
        )

    def _write(
        self,
        namespace: str,
        event: Event,
        handle: tuple[str, str] | None,
        stamp: int,
        now: int,
        recorded: int,
        *,
        disorder: bool = False,
        actor: str | None = None,
    ) -> Done:
        book = copy.deepcopy(self.book(namespace))
        said = {k: v for k, v in event.items() if k not in {"handle", "based_on", "recorded_at"}}
        digest = json.dumps(said, sort_keys=True)  # the verb with it
        written, done = book.handles.get(handle, (None, None)) if handle else (None, None)
        if done is not None and written == digest:
            return Done(**{**vars(done), "repeated": True})
        book.problems = malformed(event)
        if done is not None:
            book.problems.add("RefConflict")
        if disorder:
            book.problems.add("OutOfOrder")
        done = book.run(event, stamp, now)
        if book.problems:
            raise Refused(book.problems)
        if handle is not None:
            book.handles[handle] = (digest, done)
        book.head = stamp
        book.operations.append(Operation(stamp, event["op"], actor))
        book.recorded = max(book.recorded, recorded)
        self.books[namespace] = book
        return done
