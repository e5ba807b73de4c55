"""Writers, readers and late vectors at once on a store with a past; then every answer is asked again.

The promise under test: the same question on the same basis gives the same answer, for ever. Processes
are used, not threads alone, so that Python's lock does not take turns for us. A trigger in the test
database holds every write open for some milliseconds between its stamp and its commit: that is the
gap through which a later write could slip into a past that was already answered.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier, Event
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

import fakes
from databases import execute, query
from supersede import Answer, FactStore, SupersedeError, bulk, reads
from supersede.queries import Scope

NAMESPACES = ("atlas", "borealis", "cygnus")
PREDICATE = "hq"
HEADS = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu"]
WORDS = [head + tail for head in HEADS for tail in ("ran", "del", "mos", "tik", "vor")]
PATIENCE = 120.0
CUT = "no vector at first"  # claims that end so are stored without a vector, and filled later


@dataclass(frozen=True)
class Plan:
    """What to do, for how long, to which database."""

    url: str
    facts: int = 20_000
    seconds: float = 30.0  # at least, until there are as many answers
    answers: int = 500
    clamp: bool = True
    writers: int = 6
    readers: int = 2
    dimensions: int = 64
    pause: float = 0.05
    gap: float = 0.004
    seed: int = 1

    def embedder(self) -> fakes.BagOfWords:
        return Forgetful(self.dimensions)


class Forgetful(fakes.BagOfWords):
    """Gives no usable vector the first time it sees some claims, as a service under load does."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(model="fake-stress", dimensions=dimensions)
        self.forgets = True

    def embed(self, texts: list[str]) -> Any:
        vectors = super().embed(texts)
        if self.forgets:
            vectors[[text.endswith(CUT) for text in texts]] = 0.0
        return vectors


@dataclass
class Report:
    """What happened. ``problems`` is empty when the store kept its promises."""

    loaded: float = 0.0
    writes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    filled: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    latencies: dict[str, list[float]] = field(default_factory=dict)
    changed: int = 0
    first_change: str | None = None
    errors: list[str] = field(default_factory=list)
    integrity: dict[str, int] = field(default_factory=dict)

    @property
    def recorded(self) -> int:
        return self.answers.total()

    @property
    def problems(self) -> list[str]:
        found = [f"{name}: {count}" for name, count in self.integrity.items() if count]
        if self.changed:
            found.append(f"{self.changed} of {self.recorded} answers changed; the first: {self.first_change}")
        return found + self.errors

    def add(self, other: Report) -> None:
        self.writes += other.writes
        self.refusals += other.refusals
        self.filled += other.filled
        self.answers += other.answers
        for kind, times in other.latencies.items():
            self.latencies.setdefault(kind, []).extend(times)
        self.changed += other.changed
        self.first_change = self.first_change or other.first_change
        self.errors += other.errors

    def lines(self) -> Iterator[str]:
        yield f"loaded in {self.loaded:.1f} s"
        yield f"{self.writes.total()} writes ({dict(self.writes)}), refused: {dict(self.refusals)}"
        yield f"{self.filled} vectors came later"
        for kind, times in sorted(self.latencies.items()):
            ms = sorted(1000 * t for t in times)
            yield (
                f"  {kind:34} {len(ms):5} answers, p50 {statistics.median(ms):6.1f} ms, "
                f"p95 {ms[int(len(ms) * 0.95)]:6.1f} ms"
            )
        yield f"{self.recorded} answers asked again, {self.changed} changed"
        yield f"integrity: {self.integrity}"
        yield from self.problems


def run(plan: Plan, say: Callable[[str], None] = lambda _: None) -> Report:
    """Load, write and read at once, then ask everything again and look for what must not be."""
    report = Report()
    began = time.monotonic()
    load(plan)
    report.loaded = time.monotonic() - began
    say(f"{plan.facts} facts loaded in {report.loaded:.1f} s")
    context = multiprocessing.get_context("spawn")
    pairs = (plan.writers + 1) // 2
    gate, stop, quiet = context.Barrier(pairs + plan.readers + 1), context.Event(), context.Event()
    recorded, results = context.Value("i", 0), context.Queue()
    processes = [
        context.Process(target=work, args=(role, n, plan, gate, stop, quiet, recorded, results))
        for role, count in ((write, pairs), (read, plan.readers))
        for n in range(count)
    ]
    for process in processes:
        process.start()
    try:
        gate.wait(PATIENCE)
        say("writing and reading")
        stop.wait(plan.seconds)
        while recorded.value < plan.answers and time.monotonic() < began + 2 * PATIENCE:
            stop.wait(1)
        stop.set()
        for _ in range(pairs):
            report.add(results.get(timeout=PATIENCE))
        quiet.set()
        say(f"{report.writes.total()} writes; asking every answer again")
        for _ in range(plan.readers):
            report.add(results.get(timeout=PATIENCE + 10 * plan.seconds))
    finally:
        stop.set()
        quiet.set()
        for process in processes:
            process.join(PATIENCE)
        results.close()
        results.join_thread()
    report.integrity = integrity(plan.url)
    return report


def work(
    role: Callable[..., Report],
    number: int,
    plan: Plan,
    gate: Barrier,
    stop: Event,
    quiet: Event,
    recorded: Any,
    results: Any,
) -> None:
    """The body of a process: whatever goes wrong in it is told, not lost."""
    try:
        report = role(number, plan, gate, stop, quiet, recorded)
    except BaseException:
        report = Report(errors=[traceback.format_exc()])
        gate.abort()
    results.put(report)


# --- what is there before it starts


def load(plan: Plan) -> None:
    """Facts with a past, as the verbs would have left them, by SQL in bulk."""
    embedder = fakes.BagOfWords(model="fake-stress", dimensions=plan.dimensions)
    FactStore.init(plan.url, embedder=embedder)
    rng = random.Random(plan.seed)
    share = plan.facts // len(NAMESPACES)
    with psycopg.connect(plan.url) as connection:
        connection.execute(
            "create temporary table loading (namespace text, place integer, claim text, subject text, "
            "part integer, vector text) on commit drop"
        )
        with connection.cursor().copy("copy loading from stdin") as copy:
            for namespace in NAMESPACES:
                bare = [place % 7 == 0 for place in range(share)]
                claims = [f"{sentence(rng)} {place}" + f" {CUT}" * bare[place] for place in range(share)]
                for place, vector in enumerate(embedder.embed(claims).tolist()):
                    subject, part = divmod(place, 3)
                    slotted = f"s{subject}" if subject < subjects(share) else None
                    text = None if bare[place] else str(vector)
                    copy.write_row((namespace, place, claims[place], slotted, part, text))
        for statement in LOADING.split(";\n"):
            connection.execute(statement)
    execute(plan.url, "analyze")
    execute(
        plan.url,
        sql.SQL(
            "create function public.gap() returns trigger language plpgsql as "
            "$$ begin perform pg_sleep(random() * {}); return new; end $$; "
            "create trigger gap before insert on supersede.operation "
            "for each row execute function public.gap()"
        ).format(sql.Literal(plan.gap)),
    )


def subjects(share: int) -> int:
    """How many subjects a namespace has, of the facts it begins with."""
    return share // 5


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(8))


# A subject's three facts hold one after the other; each but the first cut the one before it.
LOADING = """
create temporary table loaded on commit drop as
select *, supersede.clock() - interval '1 day' + place * interval '1 millisecond' as stamp,
       supersede.new_id() as fact_id,
       make_timestamptz(2018 + 2 * part, 1, 1, 0, 0, 0, 'UTC') as starts,
       case when subject is not null then supersede.hash_key(
           jsonb_build_array(supersede.fold(subject), 'hq')::text) end as slot
from (select *, max(place) over () as last from loading) as l
order by place;
insert into supersede.namespace
select namespace, max(stamp), max(stamp) from loaded group by 1;
insert into supersede.operation (namespace, stamp, verb, digest, event, result)
select namespace, min(stamp) - interval '1 second', 'declare_predicate', '', '{}', '{}'
from loaded group by 1;
insert into supersede.predicate
select namespace, 'hq', stamp, 'hq', 'one' from supersede.operation;
insert into supersede.operation (namespace, stamp, verb, digest, event, result)
select namespace, stamp, 'remember', '', '{}', '{}' from loaded;
insert into supersede.fact
select namespace, fact_id, stamp, claim, subject, case when subject is not null then 'hq' end, null, 'fact',
       null, 'extracted', starts, supersede.fold(subject), case when subject is not null then 'hq' end, null,
       supersede.hash_key(supersede.fold(claim)), to_tsvector('english', claim)
from loaded;
insert into supersede.fact_ref select namespace, 'r/' || place, fact_id, stamp from loaded;
insert into supersede.evidence
select namespace, fact_id, 'doc/' || place % 50, starts, stamp, null from loaded;
insert into supersede.embedding
select namespace, fact_id, s.id, vector::halfvec, false, stamp
from loaded, supersede.embedding_space s where s.model = 'fake-stress' and vector is not null;
insert into supersede.fact_version
select a.namespace, side.is_open, supersede.new_id(), a.fact_id,
       tstzrange(a.starts, case when side.is_open then b.starts end),
       tstzrange(a.stamp, case when not side.is_open then b.stamp end),
       a.slot, 'fact', 'extracted', a.stamp,
       case when side.is_open and b.fact_id is null then a.vector::halfvec end
from loaded a
left join loaded b on b.namespace = a.namespace and b.subject = a.subject and b.part = a.part + 1
join (values (true), (false)) as side(is_open) on side.is_open or b.fact_id is not null;
update supersede.fact_version v set tx_time = tstzrange(b.stamp, null)
from loaded a join loaded b on b.namespace = a.namespace and b.subject = a.subject and b.part = a.part + 1
where v.is_open and v.namespace = a.namespace and v.fact_id = a.fact_id;
insert into supersede.supersedes
select b.namespace, b.fact_id, a.fact_id, 'change', tstzmultirange(tstzrange(b.starts, null)), b.stamp
from loaded a join loaded b on b.namespace = a.namespace and b.subject = a.subject and b.part = a.part + 1
"""


# --- what happens


def write(number: int, plan: Plan, gate: Barrier, stop: Event, quiet: Event, recorded: Any) -> Report:
    """Two writers in one process, and in the first process also one who fills in vectors."""
    report = Report()
    with ExitStack() as stack:
        threads = []
        for place in range(2 * number, min(2 * number + 2, plan.writers)):
            rng = random.Random(plan.seed * 1000 + place)
            stores = [
                stack.enter_context(
                    FactStore.open(plan.url, namespace=name, embedder=plan.embedder(), actor=f"w{place}")
                )
                for name in NAMESPACES
            ]
            threads.append(threading.Thread(target=write_on, args=(plan, stores, rng, stop, report)))
        if number == 0:
            filler = plan.embedder()
            filler.forgets = False
            stores = [
                stack.enter_context(FactStore.open(plan.url, namespace=name, embedder=filler))
                for name in NAMESPACES
            ]
            threads.append(threading.Thread(target=fill_on, args=(plan, stores, stop, report)))
        gate.wait(PATIENCE)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return report


def write_on(plan: Plan, stores: list[FactStore], rng: random.Random, stop: Event, report: Report) -> None:
    share = plan.facts // len(NAMESPACES)
    while not stop.is_set():
        store = rng.choice(stores)
        verb = rng.choice(VERBS)
        try:
            verb(store, rng, share)
            report.writes[verb.__name__] += 1
        except SupersedeError as error:
            report.refusals[f"{verb.__name__} {type(error).__name__}"] += 1
        except Exception:
            report.errors.append(f"{verb.__name__}: {traceback.format_exc()}")
        time.sleep(rng.random() * 2 * plan.pause)


def fill_on(plan: Plan, stores: list[FactStore], stop: Event, report: Report) -> None:
    bulk.BATCH = 20  # a trickle: vectors arrive all the time
    pace = threading.Event()

    def rest(_: int) -> None:
        if stop.is_set():
            raise InterruptedError
        pace.wait(0.3)

    while not stop.is_set():
        for store in stores:
            try:
                report.filled += store.fill_embeddings(progress=rest)
            except InterruptedError:
                report.filled += 1
            except Exception:
                report.errors.append(f"fill_embeddings: {traceback.format_exc()}")
        pace.wait(0.1)


def claim_of(rng: random.Random) -> str:
    return f"{sentence(rng)} {rng.randrange(10**6)}" + (f" {CUT}" if rng.random() < 0.2 else "")


def instant_of(rng: random.Random) -> datetime:
    return datetime(2017, 1, 1, tzinfo=UTC) + timedelta(days=rng.randrange(3600))


def period_of(rng: random.Random) -> dict[str, Any]:
    start, end = instant_of(rng), instant_of(rng)
    return {
        0: {},
        1: {"valid_from": start},
        2: {"valid_from": min(start, end), "valid_to": max(start, end) + timedelta(days=1)},
        3: {"valid_to": "no_end"},
    }[rng.randrange(4)]


def old_of(rng: random.Random, share: int) -> str:
    return f"r/{rng.randrange(share)}"


def remember(store: FactStore, rng: random.Random, share: int) -> None:
    store.remember(claim_of(rng), sources=[f"doc/{rng.randrange(50)}"], **period_of(rng))


def remember_in_slot(store: FactStore, rng: random.Random, share: int) -> None:
    value = rng.choice(["Boston", "Denver", "Oslo", "Rome", claim_of(rng)])
    store.remember(
        value, subject=subject_of(rng, share), predicate=PREDICATE, sources=["doc"], **period_of(rng)
    )


def remember_many(store: FactStore, rng: random.Random, share: int) -> None:
    store.remember_many([{"claim": claim_of(rng), **period_of(rng)} for _ in range(5)])


def replace(store: FactStore, rng: random.Random, share: int) -> None:
    reason: Any = rng.choice(["change", "correction", "refinement", "duplicate"])
    olds = [old_of(rng, share) for _ in range(rng.randrange(1, 3))]
    link: Any = rng.choice(["link", "refuse"])
    store.supersede(olds, claim_of(rng), reason=reason, if_not_current=link, **period_of(rng))


def replace_by(store: FactStore, rng: random.Random, share: int) -> None:
    store.supersede(old_of(rng, share), by=old_of(rng, share), **period_of(rng))


def amend(store: FactStore, rng: random.Random, share: int) -> None:
    store.amend(old_of(rng, share), claim_of(rng))


def end(store: FactStore, rng: random.Random, share: int) -> None:
    start = instant_of(rng)
    store.end(old_of(rng, share), at=start, until=rng.choice([None, start + timedelta(days=100)]))


def retract(store: FactStore, rng: random.Random, share: int) -> None:
    store.retract(old_of(rng, share))


def cite(store: FactStore, rng: random.Random, share: int) -> None:
    store.cite(old_of(rng, share), sources=[f"doc/{rng.randrange(500)}"])


def replay(store: FactStore, rng: random.Random, share: int) -> None:
    event = {"op": "remember", "claim": claim_of(rng), "recorded_at": instant_of(rng).isoformat()}
    store.replay([event], out_of_order="next_stamp")


VERBS: list[Callable[[FactStore, random.Random, int], None]] = [
    remember, remember_in_slot, remember_in_slot, remember_in_slot, remember_many, replace, replace,
    replace_by, amend, end, retract, cite, replay,
]  # fmt: skip


# --- what is asked


def read(number: int, plan: Plan, gate: Barrier, stop: Event, quiet: Event, recorded: Any) -> Report:
    """Ask and keep the answers while others write; when all is quiet, ask each of them again."""
    if not plan.clamp:
        reads.scope_of = unclamped
    report, rng = Report(), random.Random(plan.seed * 2000 + number)
    answers: list[Answer] = []
    with FactStore.open(plan.url, namespace=NAMESPACES[0], embedder=plan.embedder()) as store:
        gate.wait(PATIENCE)
        while not stop.is_set():
            (kind,) = rng.choices(list(QUESTIONS), [often for often, _ in QUESTIONS.values()])
            began = time.monotonic()
            try:
                answers.append(QUESTIONS[kind][1](store, rng, plan.facts // len(NAMESPACES)))
            except Exception:
                report.errors.append(f"{kind}: {traceback.format_exc()}")
                continue
            report.answers[kind] += 1
            report.latencies.setdefault(kind, []).append(time.monotonic() - began)
            with recorded.get_lock():
                recorded.value += 1
        quiet.wait(PATIENCE)
        for answer in answers:
            again = (store.ask if answer.basis.question == "ask" else store.facts)(basis=str(answer.basis))
            if again != answer:
                report.changed += 1
                report.first_change = report.first_change or difference(answer, again)
    return report


def unclamped(basis: Any) -> Scope:
    """Readers without the clamp to the head: "now" is the clock, and what is known is all up to it."""
    seen = sorted(name for name, head in basis.heads.items() if head is not None)
    return Scope(seen, [basis.known_at] * len(seen), [basis.known_at] * len(seen))


def difference(one: Answer, two: Answer) -> str:
    names = [name for name in Answer.model_fields if getattr(one, name) != getattr(two, name)]
    counts = f"{one.withheld.nonzero()} -> {two.withheld.nonzero()}"
    return f"{one.basis.question} differs in {names}: {len(one.facts)} -> {len(two.facts)} facts, {counts}"


def past_of(store: FactStore, rng: random.Random) -> datetime:
    """A moment since which the writers may have been at work."""
    head = store.facts(subject="nobody").known_at
    return head - timedelta(seconds=rng.random() * 5)


def subject_of(rng: random.Random, share: int) -> str:
    return f"s{rng.randrange(1 + subjects(share) // 20)}"  # few of them, so that writers and readers meet


Question = Callable[[FactStore, random.Random, int], Answer]
QUESTIONS: dict[str, tuple[int, Question]] = {  # how often, in proportion
    "facts of one subject, now": (
        8,
        lambda store, rng, share: store.facts(subject=subject_of(rng, share), namespaces=NAMESPACES),
    ),
    "facts of one subject, past": (
        8,
        lambda store, rng, share: store.facts(
            subject=subject_of(rng, share),
            valid_at=instant_of(rng),
            known_at=past_of(store, rng),
            namespaces=NAMESPACES,
            explain=True,
        ),
    ),
    "ask about one subject, now": (
        8,
        lambda store, rng, share: store.ask(
            sentence(rng), subject=subject_of(rng, share), min_similarity=0.0
        ),
    ),
    "facts of one namespace, now": (
        1,
        lambda store, rng, share: store.facts(limit=20, namespaces=[rng.choice(NAMESPACES)]),
    ),
    "facts of one namespace, past": (
        1,
        lambda store, rng, share: store.facts(
            limit=20,
            valid_at=instant_of(rng),
            known_at=past_of(store, rng),
            namespaces=[rng.choice(NAMESPACES)],
        ),
    ),
    "ask one namespace, now": (
        1,
        lambda store, rng, share: store.ask(sentence(rng), namespaces=[rng.choice(NAMESPACES)]),
    ),
    "ask one namespace, valid_at": (
        1,
        lambda store, rng, share: store.ask(
            sentence(rng), valid_at=instant_of(rng), namespaces=[rng.choice(NAMESPACES)], explain=True
        ),
    ),
    "ask one namespace, past": (
        1,
        lambda store, rng, share: store.ask(
            sentence(rng), as_of=past_of(store, rng), namespaces=[rng.choice(NAMESPACES)]
        ),
    ),
    "ask all namespaces, now": (
        1,
        lambda store, rng, share: store.ask(sentence(rng), namespaces=NAMESPACES),
    ),
}


# --- what must not be


INTEGRITY = {
    "versions of one fact that overlap in both times": """
        select count(*) from supersede.fact_version a
        join supersede.fact_version b
          on a.namespace = b.namespace and a.fact_id = b.fact_id and a.version_id < b.version_id
         and a.valid_time && b.valid_time and a.tx_time && b.tx_time""",
    "slots with two values at one point": """
        select count(*) from supersede.fact_version a
        join supersede.fact_version b
          on a.namespace = b.namespace and a.slot_key = b.slot_key and a.fact_id < b.fact_id
         and a.valid_time && b.valid_time and a.tx_time && b.tx_time""",
    "versions outside the slot of their fact": """
        select count(*) from supersede.fact_version v
        join supersede.fact f on f.namespace = v.namespace and f.fact_id = v.fact_id
        where v.slot_key is distinct from
              supersede.slot_of(f.namespace, f.subject_key, f.predicate_key)""",
    "bounds that are no stamp of the ledger": """
        select count(*) from supersede.fact_version v
        where not exists (select from supersede.operation o
                          where o.namespace = v.namespace and o.stamp = lower(v.tx_time))
           or not v.is_open and not exists (select from supersede.operation o
                          where o.namespace = v.namespace and o.stamp = upper(v.tx_time))""",
    "stamps of edges, facts or vectors that are not in the ledger": """
        select count(*) from (
            select namespace, stamp from supersede.supersedes union
            select namespace, stamp from supersede.fact union
            select namespace, stamp from supersede.evidence union
            select namespace, stamp from supersede.fact_ref union
            select namespace, stamp from supersede.embedding) as s
        where not exists (select from supersede.operation o
                          where o.namespace = s.namespace and o.stamp = s.stamp)""",
    "heads that are not the last stamp": """
        select count(*) from supersede.namespace n
        where n.head <> (select max(stamp) from supersede.operation o where o.namespace = n.namespace)""",
    "validity taken that no closed version had": """
        select count(*) from supersede.supersedes s
        where not isempty(s.taken) and not s.taken <@ (
            select range_agg(v.valid_time) from supersede.fact_version v
            where v.namespace = s.namespace and v.fact_id = s.old_fact_id and upper(v.tx_time) = s.stamp)""",
    "copies of vectors that differ": """
        select count(*) from supersede.fact_version v
        left join supersede.embedding e on e.namespace = v.namespace and e.fact_id = v.fact_id
        where v.is_open and upper_inf(v.valid_time) and v.embedding is distinct from e.vector""",
}


def integrity(url: str) -> dict[str, int]:
    """Per rule, how often it is broken."""
    found = {name: query(url, statement)[0][0] for name, statement in INTEGRITY.items()}
    return {**found, "edges in a ring": in_a_ring(url)}


def in_a_ring(url: str) -> int:
    """How many facts lie on a ring of supersessions: what is left when the ends are taken off, in turn."""
    olds: dict[UUID, set[UUID]] = {}
    for new, old in query(
        url, "select new_fact_id, old_fact_id from supersede.supersedes where reason <> 'amendment'"
    ):
        olds.setdefault(new, set()).add(old)
    while ends := {new for new, taken in olds.items() if not taken & olds.keys()}:
        for end_ in ends:
            del olds[end_]
    return len(olds)
