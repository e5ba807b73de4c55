"""What may happen next in a small universe, drawn so that things collide often and fail seldom."""

from __future__ import annotations

from random import Random
from typing import Any

from model.oracle import FOREVER, NEVER, Book, Event, instant, printed
from model.pair import Pair
from supersede import FactStore

DAYS = 12
DAY = 86_400_000_000
FIRST = instant("2024-01-01T00:00:00Z")

VALUES = ["lima", "lima", " Lima", "ＬＩＭＡ", "quito", "quito", "rome", "oslo"]
SOURCES = ["s0", "s1", "s2", "s3"]
KINDS = ["decision", "decision", "note"]
DATA = [{"team": "red"}, {"team": "blue", "tags": ["a", "b"]}, {"team": "red", "size": {"n": 1}}]
WHERE = [{"team": "red"}, {"tags": ["b"]}, {"size": {"n": 1}}, {"team": "red", "size": {}}, {"n": 1}]
ACTORS = ["ann", "bot", "bot"]
REASONS = ["change", "change", "correction", "refinement", "duplicate"]


def day(number: int) -> str:
    return printed(FIRST + number * DAY)


class Chance:
    """Draws events for one namespace, with an eye on what is recorded there."""

    def __init__(self, random: Random, pair: Pair, namespace: str) -> None:
        self.random = random
        self.pair = pair
        self.namespace = namespace

    @property
    def book(self) -> Book:
        return self.pair.oracle.book(self.namespace)

    def often(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def event(self) -> Event:
        """Any verb; with nothing recorded yet mostly a claim."""
        if len(self.book.facts) < 2 and self.often(80):
            return self.remember()
        verbs = {
            self.remember: 26,
            self.supersede: 24,
            self.supersede_by: 9,
            self.retract: 10,
            self.reinstate: 9,
            self.end: 9,
            self.amend: 5,
            self.cite: 3,
            self.declare: 5,
        }
        if hasattr(FactStore, "erase"):
            verbs |= {self.erase: 2} | ({self.lift: 8} if self.book.banned else {})
        (verb,) = self.random.choices(list(verbs), list(verbs.values()))
        event = verb()
        if self.often(8):
            event["handle"] = self.random.choice(["h0", "h1", "h2"])
        return event

    # -- verbs --------------------------------------------------------------------------------------------

    def remember(self) -> Event:
        return {"op": "remember", **self.content(said=85), **self.bounds(), **self.decided()}

    def supersede(self) -> Event:
        event = {"op": "supersede", "old": self.olds(), **self.content(said=25), **self.bounds()}
        return event | self.manner() | self.decided()

    def supersede_by(self) -> Event:
        event = {"op": "supersede", "old": self.olds(), "by": self.fact(), **self.bounds()}
        return event | self.extra() | self.manner() | self.decided()

    def manner(self) -> Event:
        event = {"reason": self.random.choice(REASONS)}
        return event | ({"if_not_current": "link"} if self.often(40) else {})

    def amend(self) -> Event:
        event = {"op": "amend", "old": self.olds(), **self.bounds(), **self.decided()}
        return event | ({"by": self.fact(), **self.extra()} if self.often(40) else self.content(said=50))

    def end(self) -> Event:
        event = {"op": "end", "ref": self.fact()} | self.decided()
        start, last = self.days()
        if self.often(75):
            event["when"] = start
        if self.often(40):
            event["until"] = last
        return event

    def retract(self) -> Event:
        event = {"op": "retract", "ref": self.fact()} | self.decided()
        return event | ({"give_back": True} if self.often(70) else {})

    def reinstate(self) -> Event:
        return {"op": "reinstate", "ref": self.fact(believed=30), **self.bounds(), **self.decided()}

    def cite(self) -> Event:
        return {"op": "cite", "ref": self.fact(), "sources": self.sources()} | self.decided()

    def declare(self) -> Event:
        cardinality = self.random.choice(["one", "one", "one", "many"])
        name = self.random.choice(["hq", "hq", "HQ", "tag"])
        return {"op": "declare_predicate", "name": name, "cardinality": cardinality}

    def dispute(self) -> list[Event]:
        """What one fact took from another; what happens to the loser then; and the taker is withdrawn."""
        book = self.book
        edges = [
            e
            for e in book.edges
            if e.taken and book.covers(e.new) and not {e.new, e.old} & book.erased.keys()
        ]
        if not edges:
            return [self.supersede()]
        edge = self.random.choice(edges[-6:])
        old = self.named(edge.old)
        start, last = self.days()
        later = {"subject": "acme", "predicate": "hq"} if self.often(50) else {}
        between: list[Event] = [
            {"op": "end", "ref": old, "when": start} | ({"until": last} if self.often(50) else {}),
            {"op": "retract", "ref": old},
            {"op": "reinstate", "ref": old, "valid_from": start, "valid_to": last},
            {"op": "supersede", "old": [old], "if_not_current": "link", "valid_from": start, "valid_to": last}
            | self.content(said=0)
            | later,
            {"op": "supersede", "old": [old], "by": self.named(edge.new), "valid_from": start},
            {"op": "supersede", "old": [self.named(edge.new)], "by": old, "reason": "correction"},
            self.event(),
        ]
        if (taken := edge.taken[0][0]) > NEVER:
            # Ended just before what was taken from it: the end speaks of that, too.
            between += [{"op": "end", "ref": old, "when": printed(taken - DAY)}] * 2
        found = self.random.sample(between, self.random.choice([1, 1, 2]))
        return [*found, {"op": "retract", "ref": self.named(edge.new), "give_back": True}]

    def named(self, fact: int) -> str:
        return self.random.choice([self.book.name(fact), f"#{fact}"])

    def erase(self) -> Event:
        return {"op": "erase", "ref": self.fact(believed=50), "note": "by law"}

    def lift(self) -> Event:
        fact, _ = self.random.choice(self.book.banned)
        return {"op": "lift_erasure", "ref": f"#{fact}", "note": "by law"}

    def undoing(self) -> dict[str, Any]:
        """What an actor did lately, or from some operation of before on."""
        found = [o for o in self.book.operations if o.actor is not None]
        one = self.random.choice(found[-4:] if self.often(70) else found)
        until = self.random.choice(self.book.stamps) + 1 if self.often(10) else None
        return {
            "by": one.actor,
            "since": printed(one.stamp - self.random.choice([0, 0, 1])),
            "until": None if until is None or until <= one.stamp else printed(until),
        }

    # -- arguments ----------------------------------------------------------------------------------------

    def fact(self, *, believed: int = 75) -> str:
        """One of the facts, by one of its names; seldom one that is not there."""
        book = self.book
        if not book.facts or self.often(1):
            return "nobody"
        facts = book.facts
        if self.often(believed):
            facts = [fact for fact in facts if book.covers(fact.number)] or facts
        fact = self.random.choice(facts if self.often(50) else facts[-4:])
        refs = [ref for ref, (number, _) in book.refs.items() if number == fact.number]
        return self.random.choice(refs) if refs and self.often(90) else f"#{fact.number}"

    def olds(self) -> list[str]:
        return [self.fact() for _ in range(self.random.choice([1, 1, 1, 1, 2, 2, 3]))]

    def days(self) -> tuple[str, str]:
        """Two instants in order; seldom reversed, sometimes where something stored begins or ends."""
        found = sorted(FIRST + number * DAY for number in self.random.sample(range(DAYS + 1), 2))
        edges = [at for v in self.book.versions for at in (v.start, v.end) if NEVER < at < FOREVER]
        if edges and self.often(25):
            found[self.random.randrange(2)] = int(self.random.choice(edges))
            found.sort()
        if found[0] == found[1]:
            found[1] += DAY
        if self.often(2):
            found.reverse()
        return printed(found[0]), printed(found[1])

    def bounds(self) -> Event:
        start, last = self.days()
        start = "no_start" if self.often(10) else start
        last = "no_end" if self.often(15) else last
        said = {"valid_from": start, "valid_to": last}
        keys = self.random.choice(
            [(), (), ("valid_from",), ("valid_from",), ("valid_to",), tuple(said), tuple(said)]
        )
        return {key: said[key] for key in keys}

    def content(self, *, said: int) -> Event:
        event: Event = {"claim": self.random.choice([*VALUES, f"so it is {self.random.randrange(3)}"])}
        if self.often(said):
            event["subject"] = self.random.choice(["acme", "acme", "acme", "Acme", "kim", "ops"])
        if self.often(said):
            event["predicate"] = self.random.choice(["hq", "hq", "hq", "HQ", "tag"])
        if self.often(50):
            event["object"] = self.random.choice(VALUES)
        if self.often(40):
            event["trust"] = self.random.choice(["summary", "verbatim", "verbatim", "extracted"])
        if self.often(25):
            event["kind"] = self.random.choice(KINDS)
        if self.often(25):
            event["data"] = self.random.choice(DATA)
        if (ref := self.ref()) is not None:
            event["ref"] = ref
        return event | self.extra()

    def extra(self) -> Event:
        event: Event = {"over_trust": True} if self.often(20) else {}
        return event | ({"sources": self.sources()} if self.often(40) else {})

    def ref(self) -> str | None:
        if self.often(10):
            return None
        if self.often(6) and self.book.refs:
            return self.random.choice(list(self.book.refs))
        return f"r{self.random.randrange(10**6)}"

    def sources(self) -> list[str]:
        return self.random.sample(SOURCES, self.random.choice([1, 1, 2]))

    def decided(self) -> Event:
        """Seldom a call is based on an answer of before."""
        name = self.pair.prefix + self.namespace
        seen = [number for number, answer in enumerate(self.pair.answers) if name in answer.basis.heads]
        return {"based_on": self.random.choice(seen[-3:])} if seen and self.often(8) else {}

    def without_basis(self) -> Event:
        return {key: value for key, value in self.event().items() if key != "based_on"}

    # -- points -------------------------------------------------------------------------------------------

    def point(self, namespaces: list[str]) -> dict[str, Any]:
        """An instant of each time, near where something happened."""
        books = [self.pair.oracle.book(namespace) for namespace in namespaces]
        edges = [at for book in books for v in book.versions for at in (v.start, v.end)]
        instants = [FIRST + number * DAY for number in range(-1, DAYS + 2)]
        instants += [at for at in edges if NEVER < at < FOREVER]
        stamps = [stamp for book in books for stamp in book.stamps]
        valid_at = self.random.choice(instants) + self.random.choice([0, 0, 0, -1])
        known_at = self.random.choice(stamps if self.often(60) else stamps[-5:]) + self.random.choice(
            [0, 0, -1]
        )
        return {
            "valid_at": printed(valid_at) if self.often(90) else None,
            "known_at": printed(known_at) if self.often(70) else None,
        }

    def question(self, namespaces: list[str]) -> dict[str, Any]:
        """A point, sometimes with filters, sometimes in pages."""
        filters = {
            "subject": ["acme", "ACME ", "ops"],
            "predicate": ["hq", "Hq", "tag"],
            "object": ["lima", "ｌｉｍａ", "rome"],
            "kind": ["decision", "note", "fact"],
            "where": WHERE,
            "min_trust": ["verbatim", "extracted", "summary"],
        }
        asked = self.point(namespaces)
        if self.often(30):
            chosen = self.random.sample(list(filters), self.random.choice([1, 1, 2]))
            asked["which"] = {key: self.random.choice(filters[key]) for key in chosen}
        if self.often(15):
            asked["page"] = self.random.choice([1, 2, 3])
        return asked | self.road()

    def ranking(self, namespaces: list[str]) -> dict[str, Any]:
        """A question of one word at a point."""
        word = self.random.choice(["lima", "Lima", "quito", "rome", "oslo", "2"])
        top_k = self.random.choice([1, 3, 1_000, 1_000])
        return {"word": word, "top_k": top_k, **self.point(namespaces), **self.road()}

    def period(self) -> dict[str, Any]:
        """Two instants between which belief may have changed."""
        stamps = sorted(self.random.choice(self.book.stamps) for _ in range(2))
        about = self.point([self.namespace])["valid_at"] if self.often(40) else None
        since = stamps[0] - self.random.choice([0, 0, 1])
        return {
            "from": printed(since),
            "to": None if self.often(40) else printed(stamps[1] - self.random.choice([0, 0, 1])),
            "valid_at": about,
        } | self.road()

    # -- who calls, and how -------------------------------------------------------------------------------

    def road(self) -> dict[str, Any]:
        """Python mostly; sometimes asyncio."""
        return {"road": "async"} if self.often(15) else {}

    def caller(self) -> dict[str, Any]:
        """Any road, and sometimes a name for the ledger."""
        road = {"road": self.random.choice(["async", "sql"])} if self.often(30) else {}
        return road | ({"actor": self.random.choice(ACTORS)} if self.often(50) else {})
