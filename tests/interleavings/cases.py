"""What happens at once, and what is to come of it: one case each, its outcomes written by hand.

A row of a table holds for every order in which its steps *end* as said; together the rows of a case cover
every order, each once, except that a row standing twice allows either outcome. Shown are the outcomes of
verbs and reads, then what is believed at the end, then the edges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import psycopg
from schedules import BEGIN, COMMIT, ROLLBACK, Row, Session, Step, look, opening, table, verb, write

from fakes import BagOfWords
from supersede import FactStore, Recorded, facts
from supersede import engine as db
from supersede.embedding import Embedding
from supersede.ports import Vectors

SLOT: dict[str, Any] = {"subject": "Ann", "predicate": "works at"}
PATIENCE = 60
YEAR: dict[str, Any] = {"valid_from": "2020-01-01"}


@dataclass(frozen=True)
class Case:
    """Sessions with their steps, what is there before, and the table of what comes out.

    ``roads``: the roads of the sessions, one pair or triple a variant. ``sample``: how many orders, where not
    all are run; the first roads get all of these, the others half. ``erases``: answers given before may have
    lost what was erased since.
    """

    name: str
    setup: Callable[[FactStore], object]
    sessions: Mapping[str, Sequence[Step]]
    outcomes: str
    roads: Sequence[Sequence[str]] = (("store", "store"), ("sql", "async"))
    sample: int = 4
    erases: bool = False

    def table(self) -> list[Row]:
        return table(self.outcomes)


def whole(*steps: Step) -> list[Step]:
    """A transaction from its beginning to its commit."""
    return [BEGIN, *steps, COMMIT]


def now(me: Session) -> list[str]:
    """What is believed, by a read of its own."""
    return claims(me.reads)


def filled_by(store: FactStore, embedder: BagOfWords) -> FactStore:
    """The same store with an embedder."""
    with db.reading(store._engine) as connection:
        embedding = Embedding.choose(embedder, facts.spaces(connection))
    return FactStore(store._engine, namespace=store.namespace, actor=store.actor, embedding=embedding)


def in_background(call: Callable[[], Any]) -> Future[Any]:
    """Call it in a thread of its own."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run).start()
    return future


def claims(store: FactStore, **point: Any) -> list[str]:
    return sorted(fact.claim for fact in store.facts(**point).facts)


def nothing(store: FactStore) -> None:
    """A namespace without a write."""


# --- two values of one slot


def one_valued(store: FactStore) -> None:
    store.declare_predicate("works at", cardinality="one")


def add(name: str, **more: Any) -> Step:
    return verb("add", lambda me: me.write.remember(name, ref=me.name, **SLOT, **more))


ADD_ADD = Case(
    "add and add in a slot",
    one_valued,
    {"a": whole(add("Acme", **YEAR)), "b": whole(add("Bolt", **YEAR))},
    """
a.add < b.add
    a.add: recorded
    b.add: recorded
    believed: Bolt
    edges: b correction a
b.add < a.add
    a.add: recorded
    b.add: recorded
    believed: Acme
    edges: a correction b
""",
    sample=6,
)

ADD_ADD_FROM_NOW = Case(
    "add and add in a slot, from now",
    one_valued,
    {"a": whole(add("Acme")), "b": [BEGIN, add("Bolt"), ROLLBACK]},
    """
a.add < b.add
    a.add: recorded
    b.add: recorded
    believed: Acme
    edges: none
b.add < a.add
    a.add: recorded
    b.add: recorded
    believed: Acme
    edges: none
""",
)

ADD_THE_SAME = Case(
    "add the same value in a slot",
    one_valued,
    {
        "a": whole(verb("add", lambda me: me.write.remember("Acme", sources=["a"], **SLOT, **YEAR).created)),
        "b": whole(verb("add", lambda me: me.write.remember("Acme", sources=["b"], **SLOT, **YEAR).created)),
    },
    """
a.add < b.add
    a.add: True
    b.add: False
    believed: Acme
    edges: none
b.add < a.add
    a.add: False
    b.add: True
    believed: Acme
    edges: none
""",
)


def decide(me: Session) -> list[str]:
    me.kept["answer"] = me.reads.facts()
    return [fact.claim for fact in me.kept["answer"].facts]


def add_based_on(name: str) -> Step:
    return verb(
        "add",
        lambda me: me.write.remember(name, ref=me.name, based_on=me.kept["answer"], **SLOT, **YEAR),
    )


READ_ADD_READ_ADD = Case(
    "read, then add in a slot by what was read",
    one_valued,
    {
        "a": whole(look("read", decide), add_based_on("Acme")),
        "b": whole(look("read", decide), add_based_on("Bolt")),
    },
    """
a.commit < b.read
    a.read: nothing
    b.read: Acme
    a.add: recorded
    b.add: recorded
    believed: Bolt
    edges: b correction a
b.commit < a.read
    a.read: Bolt
    b.read: nothing
    a.add: recorded
    b.add: recorded
    believed: Acme
    edges: a correction b
a.read < b.commit, b.read < a.commit, a.add < b.add
    a.read: nothing
    b.read: nothing
    a.add: recorded
    b.add: Conflict
    believed: Acme
    edges: none
a.read < b.commit, b.read < a.commit, b.add < a.add
    a.read: nothing
    b.read: nothing
    a.add: Conflict
    b.add: recorded
    believed: Bolt
    edges: none
""",
    sample=10,
)


# --- two ends of one fact


def old(store: FactStore) -> Recorded:
    return store.remember("old", ref="old", **YEAR)


def replace(name: str) -> Step:
    return verb("supersede", lambda me: me.write.supersede("old", name, ref=me.name))


SUPERSEDE_SUPERSEDE = Case(
    "supersede and supersede",
    old,
    {"a": whole(replace("new of a")), "b": whole(replace("new of b"))},
    """
a.supersede < b.supersede
    a.supersede: recorded
    b.supersede: FactNotCurrent
    believed: new of a
    edges: a change old
b.supersede < a.supersede
    a.supersede: FactNotCurrent
    b.supersede: recorded
    believed: new of b
    edges: b change old
""",
    roads=(("store", "store"), ("sql", "sql"), ("async", "store")),
    sample=6,
)

SUPERSEDE_UNDONE = Case(
    "supersede, rolled back, and supersede",
    old,
    {"a": [BEGIN, replace("new of a"), ROLLBACK], "b": whole(replace("new of b"))},
    """
b.commit < a.supersede
    a.supersede: FactNotCurrent
    b.supersede: recorded
    believed: new of b
    edges: b change old
a.supersede < b.supersede
    a.supersede: recorded
    b.supersede: recorded
    believed: new of b
    edges: b change old
""",
)

SUPERSEDE_RETRACT = Case(
    "supersede and retract",
    old,
    {"a": whole(replace("new")), "b": whole(verb("retract", lambda me: me.write.retract("old")))},
    """
a.supersede < b.retract
    a.supersede: recorded
    b.retract: recorded
    believed: new
    edges: a change old
b.retract < a.supersede
    a.supersede: FactNotCurrent
    b.retract: recorded
    believed: nothing
    edges: none
""",
)

SUPERSEDE_ERASE = Case(
    "supersede and erase",
    old,
    {
        "a": whole(verb("supersede", lambda me: me.write.supersede(me.given, "new", ref="a"))),
        "b": whole(verb("erase", lambda me: me.write.erase(me.given, note="asked for"))),
    },
    # The shape stays: the edge, though the old fact has lost its name with its content.
    """
a.supersede < b.erase
    a.supersede: recorded
    b.erase: recorded
    believed: new
    edges: a change (erased)
b.erase < a.supersede
    a.supersede: Erased
    b.erase: recorded
    believed: nothing
    edges: none
""",
    erases=True,
)

SUPERSEDE_END = Case(
    "supersede and end",
    old,
    {"a": whole(replace("new")), "b": whole(verb("end", lambda me: me.write.end("old")))},
    """
a.supersede < b.end
    a.supersede: recorded
    b.end: FactNotCurrent
    believed: new
    edges: a change old
b.end < a.supersede
    a.supersede: FactNotCurrent
    b.end: recorded
    believed: nothing
    edges: none
""",
)


def replace_based_on(reason: Any, **period: Any) -> Step:
    return verb(
        "supersede",
        lambda me: me.write.supersede(
            "old", f"new of {me.name}", ref=me.name, reason=reason, based_on=me.kept["answer"], **period
        ),
    )


APART_BASED_ON = Case(
    "supersede for June and supersede for January, by what was read",
    old,
    {
        "a": whole(
            look("read", decide), replace_based_on("change", valid_from="2021-06-01", valid_to="2021-07-01")
        ),
        "b": whole(
            look("read", decide), replace_based_on("change", valid_from="2021-01-01", valid_to="2021-02-01")
        ),
    },
    """
a.commit < b.read
    a.read: old
    b.read: old
    a.supersede: recorded
    b.supersede: recorded
    believed: old
    edges: a change old, b change old
b.commit < a.read
    a.read: old
    b.read: old
    a.supersede: recorded
    b.supersede: recorded
    believed: old
    edges: a change old, b change old
a.read < b.commit, b.read < a.commit, a.supersede < b.supersede
    a.read: old
    b.read: old
    a.supersede: recorded
    b.supersede: Conflict
    believed: old
    edges: a change old
a.read < b.commit, b.read < a.commit, b.supersede < a.supersede
    a.read: old
    b.read: old
    a.supersede: Conflict
    b.supersede: recorded
    believed: old
    edges: b change old
""",
    sample=10,
)


def two_facts(store: FactStore) -> None:
    store.remember("first", ref="first", **YEAR)
    store.remember("second", ref="second", **YEAR)


RING = Case(
    "a ring closed from both sides",
    two_facts,
    {
        "a": whole(
            verb(
                "supersede",
                lambda me: me.write.supersede(
                    "first", by="second", valid_from="2021-01-01", valid_to="2022-01-01"
                ),
            )
        ),
        "b": whole(
            verb(
                "supersede",
                lambda me: me.write.supersede(
                    "second", by="first", valid_from="2022-01-01", valid_to="2023-01-01"
                ),
            )
        ),
    },
    """
a.supersede < b.supersede
    a.supersede: recorded
    b.supersede: SupersessionCycle
    believed: first, second
    edges: second change first
b.supersede < a.supersede
    a.supersede: SupersessionCycle
    b.supersede: recorded
    believed: first, second
    edges: first change second
""",
)


# --- one call twice


def same_call(me: Session) -> Any:
    return me.write.remember("claim", ref="r")


ONE_CALL_TWICE = Case(
    "one call sent twice",
    old,
    {"a": whole(verb("remember", same_call)), "b": whole(verb("remember", same_call))},
    """
a.remember < b.remember
    a.remember: recorded
    b.remember: repeated
    believed: claim, old
    edges: none
b.remember < a.remember
    a.remember: repeated
    b.remember: recorded
    believed: claim, old
    edges: none
""",
)

FIRST_WRITES = Case(
    "the first writes of a namespace",
    nothing,
    {
        "a": [BEGIN, verb("remember", lambda me: me.write.remember("of a", ref="a")), ROLLBACK],
        "b": whole(verb("remember", lambda me: me.write.remember("of b", ref="b"))),
    },
    """
a.remember < b.remember
    a.remember: recorded
    b.remember: recorded
    believed: of b
    edges: none
b.remember < a.remember
    a.remember: recorded
    b.remember: recorded
    believed: of b
    edges: none
""",
)

CITE_CITE = Case(
    "cite and cite",
    old,
    {
        "a": [
            *whole(verb("cite", lambda me: me.write.cite("old", sources=["of a", "of both"]))),
            look("sources", lambda me: sorted(me.reads.get("old").sources)),
        ],
        "b": whole(verb("cite", lambda me: me.write.cite("old", sources=["of b", "of both"]))),
    },
    """
b.commit < a.sources
    a.cite: recorded
    b.cite: recorded
    a.sources: of a, of b, of both
    believed: old
    edges: none
a.sources < b.commit
    a.cite: recorded
    b.cite: recorded
    a.sources: of a, of both
    believed: old
    edges: none
""",
)


# --- declarations and reinstatements


def two_values(store: FactStore) -> None:
    store.remember("Acme", ref="acme", **SLOT, **YEAR)


DECLARE_ADD = Case(
    "declare one-valued and add",
    two_values,
    {
        "a": whole(verb("declare", lambda me: me.write.declare_predicate("works at", cardinality="one"))),
        "b": whole(add("Bolt", valid_from="2021-01-01")),
    },
    """
a.declare < b.add
    a.declare: recorded
    b.add: recorded
    believed: Bolt
    edges: b change acme
b.add < a.declare
    a.declare: SlotOverlap
    b.add: recorded
    believed: Acme, Bolt
    edges: none
""",
)


def retracted(store: FactStore) -> None:
    one_valued(store)
    two_values(store)
    store.retract("acme")


REINSTATE_ADD = Case(
    "reinstate and add in its slot",
    retracted,
    {
        "a": whole(verb("reinstate", lambda me: me.write.reinstate("acme"))),
        "b": whole(add("Bolt", valid_from="2021-01-01")),
    },
    """
a.reinstate < b.add
    a.reinstate: recorded
    b.add: recorded
    believed: Bolt
    edges: b change acme
b.add < a.reinstate
    a.reinstate: SlotTaken
    b.add: recorded
    believed: Bolt
    edges: none
""",
)

RETRACT_GIVING_BACK = Case(
    "retract with give_back and supersede of what it took",
    lambda store: (old(store), store.supersede("old", "wrong", ref="wrong", valid_from="2021-01-01")),
    {
        "a": whole(verb("retract", lambda me: me.write.retract("wrong", give_back=True))),
        "b": whole(
            verb("supersede", lambda me: me.write.supersede("old", "right", ref="b", valid_from="2020-06-01"))
        ),
    },
    # What is given back is what nothing else holds: the other supersession of the old fact stands.
    """
a.retract < b.supersede
    a.retract: recorded
    b.supersede: recorded
    believed: right
    edges: b change old, wrong change old
b.supersede < a.retract
    a.retract: recorded
    b.supersede: recorded
    believed: right
    edges: b change old, wrong change old
""",
)


# --- a write and a reader


def snapshot(me: Session) -> None:
    me.road.connection.execute("begin isolation level repeatable read read only")


def seen(me: Session) -> list[str]:
    return list(
        me.road.connection.execute(
            "select claim from supersede.facts_as_of(namespaces => array[%s]) order by claim",
            [me.road.namespace],
        )
    )


WRITE_READ = Case(
    "a write under a reader's snapshot",
    old,
    {
        "r": [
            Step("begin", snapshot, shown=False),
            look("look", seen),
            look("again", seen),
            Step("commit", lambda me: me.road.commit(), shown=False),
        ],
        "w": whole(replace("new"), verb("cite", lambda me: me.write.cite("w", sources=["u"]))),
    },
    # The snapshot is taken with the first look, and the second sees the same.
    """
w.commit < r.look
    w.supersede: recorded
    w.cite: recorded
    r.look: new
    r.again: new
    believed: new
    edges: w change old
r.look < w.commit
    w.supersede: recorded
    w.cite: recorded
    r.look: old
    r.again: old
    believed: new
    edges: w change old
""",
    roads=(("sql", "store"), ("sql", "sql")),
    sample=10,
)


def ask_again(me: Session) -> list[str]:
    answer = me.kept["answer"]
    again = me.reads.facts(basis=str(answer.basis))
    assert again == answer, "the same question on the same basis"
    assert me.reads.verify(answer).outcome == "equal"
    return [fact.claim for fact in again.facts]


READ_BY_BASIS = Case(
    "a write between an answer and the same question again",
    old,
    {
        "r": [look("ask", decide), look("again", ask_again), look("now", now), look("once more", ask_again)],
        "w": whole(verb("retract", lambda me: me.write.retract("old"))),
    },
    """
w.commit < r.ask
    w.retract: recorded
    r.ask: nothing
    r.again: nothing
    r.now: nothing
    r.once more: nothing
    believed: nothing
    edges: none
r.ask < w.commit < r.now
    w.retract: recorded
    r.ask: old
    r.again: old
    r.now: nothing
    r.once more: old
    believed: nothing
    edges: none
r.now < w.commit
    w.retract: recorded
    r.ask: old
    r.again: old
    r.now: old
    r.once more: old
    believed: nothing
    edges: none
""",
    roads=(("sql", "store"), ("sql", "sql")),
    sample=6,
)


# --- replay


def history(store: FactStore) -> None:
    store.replay([{"op": "remember", "claim": "old", "ref": "old", "recorded_at": "2020-01-01"}])


def replayed(me: Session) -> Any:
    event = {"op": "supersede", "old": ["old"], "claim": "told", "ref": "told", "recorded_at": "2021-01-01"}
    return me.road.call("replay", event)


REPLAY_WRITE = Case(
    "replay and supersede",
    history,
    {"a": whole(verb("replay", replayed)), "b": whole(replace("new"))},
    """
a.replay < b.supersede
    a.replay: recorded
    b.supersede: FactNotCurrent
    believed: told
    edges: told change old
b.supersede < a.replay
    a.replay: OutOfOrder
    b.supersede: recorded
    believed: new
    edges: b change old
""",
    roads=(("sql", "store"), ("sql", "sql")),
)


def replayed_late(me: Session) -> Any:
    event = {"op": "remember", "claim": "told", "ref": "told", "recorded_at": "2021-01-01"}
    (done,) = me.reads.replay([event], out_of_order="next_stamp")
    return done


REPLAY_LATE = Case(
    "replay of late events and add",
    history,
    {
        "a": [write("replay", replayed_late)],
        "b": whole(verb("remember", lambda me: me.write.remember("new", ref="b", valid_from="2020-01-01"))),
    },
    """
a.replay < b.remember
    a.replay: recorded
    b.remember: recorded
    believed: new, old, told
    edges: none
b.remember < a.replay
    a.replay: recorded
    b.remember: recorded
    believed: new, old, told
    edges: none
""",
    roads=(("sql", "store"), ("sql", "sql")),
    sample=4,
)


# --- vectors that come later


class Pausing(BagOfWords):
    """Stands still in its next call until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()

    def embed(self, texts: list[str]) -> Vectors:
        self.reached.set()
        assert self.go.wait(PATIENCE), "nobody let it go"
        return super().embed(texts)


def embed(me: Session) -> None:
    me.kept["embedder"] = embedder = Pausing()
    store = filled_by(me.reads, embedder)
    me.kept["filling"] = in_background(store.fill_embeddings)
    assert embedder.reached.wait(PATIENCE)


def let_go(me: Session) -> int:
    me.kept["embedder"].go.set()
    return me.kept["filling"].result(PATIENCE)


FILL_WRITE = Case(
    "fill_embeddings and supersede",
    old,
    {
        "a": [
            Step("embed", embed, shown=False),
            write("store", let_go),
        ],
        "b": whole(replace("new")),
    },
    # What was committed before the last look is filled, too.
    """
b.commit < a.store
    a.store: 2
    b.supersede: recorded
    believed: new
    edges: b change old
a.store < b.commit
    a.store: 1
    b.supersede: recorded
    believed: new
    edges: b change old
""",
    roads=(("sql", "sql"),),
    sample=6,
)


# --- two namespaces


def here(me: Session) -> Any:
    return me.road.call("remember", {"claim": f"{me.name} here"})


def there(me: Session) -> Any:
    return me.road.call("remember", {"claim": f"{me.name} there"}, me.road.namespace + " two")


OPPOSITE_ORDER = Case(
    "two namespaces in opposite order",
    old,
    {
        "a": whole(verb("here", here), verb("there", there, where="two")),
        "b": whole(verb("there", there, where="two"), verb("here", here)),
    },
    # Where each holds what the other wants, the server undoes one of the two verbs, whichever.
    """
a.commit < b.there
    a.here: recorded
    a.there: recorded
    b.there: recorded
    b.here: recorded
    believed: a here, b here, old
    edges: none
b.commit < a.here
    a.here: recorded
    a.there: recorded
    b.there: recorded
    b.here: recorded
    believed: a here, b here, old
    edges: none
a.here < b.commit, b.there < a.commit
    a.here: recorded
    a.there: Conflict
    b.there: recorded
    b.here: recorded
    believed: a here, b here, old
    edges: none
a.here < b.commit, b.there < a.commit
    a.here: recorded
    a.there: recorded
    b.there: recorded
    b.here: Conflict
    believed: a here, old
    edges: none
""",
    roads=(("sql", "sql"),),
    sample=6,
)

# --- three at once

THREE_ADD = Case(
    "add, add and add in a slot",
    one_valued,
    {
        name: [opening(add(value, **YEAR)), COMMIT]
        for name, value in (("a", "Acme"), ("b", "Bolt"), ("c", "Cord"))
    },
    "".join(
        f"""
{one}.add < {two}.add < {three}.add
    a.add: recorded
    b.add: recorded
    c.add: recorded
    believed: {values[three]}
    edges: {", ".join(sorted([f"{two} correction {one}", f"{three} correction {two}"]))}
"""
        for values in [{"a": "Acme", "b": "Bolt", "c": "Cord"}]
        for one, two, three in ["abc", "acb", "bac", "bca", "cab", "cba"]
    ),
    roads=(("store", "sql", "async"),),
    sample=10,
)

SUPERSEDE_SUPERSEDE_READ = Case(
    "supersede, supersede and read",
    old,
    {
        "a": [opening(replace("new of a")), COMMIT],
        "b": [opening(replace("new of b")), COMMIT],
        "r": [look("ask", decide), look("again", ask_again)],
    },
    """
a.supersede < b.supersede, r.ask < a.commit
    a.supersede: recorded
    b.supersede: FactNotCurrent
    r.ask: old
    r.again: old
    believed: new of a
    edges: a change old
a.supersede < b.supersede, a.commit < r.ask
    a.supersede: recorded
    b.supersede: FactNotCurrent
    r.ask: new of a
    r.again: new of a
    believed: new of a
    edges: a change old
b.supersede < a.supersede, r.ask < b.commit
    a.supersede: FactNotCurrent
    b.supersede: recorded
    r.ask: old
    r.again: old
    believed: new of b
    edges: b change old
b.supersede < a.supersede, b.commit < r.ask
    a.supersede: FactNotCurrent
    b.supersede: recorded
    r.ask: new of b
    r.again: new of b
    believed: new of b
    edges: b change old
""",
    roads=(("store", "async", "sql"),),
    sample=10,
)

CASES = [case for case in list(globals().values()) if isinstance(case, Case)]


def edges(connection: psycopg.Connection[Any], namespace: str) -> list[str]:
    """The edges of a namespace, ``new reason old``, by refs."""
    rows = connection.execute(
        "select coalesce(supersede.first_ref(namespace, new_fact_id), '(erased)'), reason, "
        "coalesce(supersede.first_ref(namespace, old_fact_id), '(erased)') "
        "from supersede.supersedes where namespace = %s",
        [namespace],
    )
    return sorted(" ".join(row) for row in rows)


__all__ = ["CASES", "Case", "claims", "edges"]
