"""Writers and readers in processes of their own, killed at random with their server; nothing is lost.

Each worker keeps a journal in a file before it goes on: answers with what they stood on, and writes that
were acknowledged. So a worker that is killed loses nothing it was told. At the end, and now and then on
the way, every answer is asked again; every acknowledged write must be in the ledger, once and at its
stamp; and the tables must keep the rules of ``stress.INTEGRITY``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import random
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

import psycopg

import fakes
import stress
from clusters import Cluster, answers, new_cluster, until
from databases import query
from supersede import (
    Answer,
    FactStore,
    OutcomeUnknown,
    Recorded,
    ServerUnavailable,
    SupersedeError,
    TimedOut,
)

NAMESPACES = ("atlas", "borealis")
SUBJECTS = 12
LATEST = 40  # writers act on what was made lately, so that they meet

# After these the call is made again, with the same handle, until there is an answer.
INTERRUPTED = (ServerUnavailable, OutcomeUnknown, TimedOut)


@dataclass(frozen=True)
class Plan:
    """What to do, and for how long."""

    seconds: float = 20.0
    seed: int = 1
    writers: int = 3
    readers: int = 2
    between_kills: float = 1.5  # mean, in seconds
    operations: int = 0  # it goes on until there were as many
    answers: int = 0  # and as many of these


@dataclass
class Report:
    """What happened. ``problems`` is empty when the store kept its promises."""

    seconds: float = 0.0
    operations: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    interruptions: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    upkeep: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    asked_again_meanwhile: int = 0
    asked_again_at_the_end: int = 0
    differences: int = 0
    first_difference: str | None = None
    acknowledged: int = 0
    lost: int = 0
    ledger: int = 0
    integrity: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        found = [f"{name}: {count}" for name, count in self.integrity.items() if count]
        if self.differences:
            found.append(f"{self.differences} answers differ; the first: {self.first_difference}")
        if self.lost:
            found.append(f"{self.lost} acknowledged writes are not in the ledger as they were acknowledged")
        return found + self.errors

    def lines(self) -> Iterator[str]:
        done = f"{self.operations.total()} operations in {self.seconds:.0f} s"
        yield f"{done} ({self.repeated} found their own write), {self.ledger} in the ledger"
        yield f"  by verb: {_listed(self.operations)}"
        yield f"  refused: {_listed(self.refusals)}"
        yield f"  interrupted: {_listed(self.interruptions)}"
        yield f"kills: {_listed(self.kills)}"
        yield f"upkeep: {_listed(self.upkeep)}"
        yield f"{self.answers.total()} answers kept ({_listed(self.answers)})"
        yield (
            f"{self.asked_again_meanwhile} probes asked again meanwhile, {self.asked_again_at_the_end} "
            f"at the end, {self.differences} differences"
        )
        yield f"{self.acknowledged} acknowledged writes looked up, {self.lost} lost"
        yield f"rules broken: {sum(self.integrity.values())} of {len(self.integrity)} kinds"
        yield from self.problems

    def as_json(self) -> str:
        return json.dumps({**vars(self), "problems": self.problems}, indent=1)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def embedder() -> fakes.BagOfWords:
    return stress.Forgetful(64)


# --- the driver


def run(plan: Plan, say: Callable[[str], None] = lambda _: None) -> Report:
    """The whole of it, on a server that is made for it."""
    report = Report()
    with new_cluster() as cluster, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        url = cluster.database("supersede")
        FactStore.init(url, embedder=embedder())
        for name in NAMESPACES:
            with FactStore.open(url, namespace=name, embedder=embedder()) as store:
                store.declare_predicate(stress.PREDICATE, cardinality="one")
        crew = Crew(plan, url, Path(folder))
        began = time.monotonic()
        try:
            crew.start()
            say("writing and reading")
            disturb(plan, cluster, crew, report, say)
        finally:
            crew.stop()
        report.seconds = time.monotonic() - began
        say("quiet; asking everything again")
        until(lambda: answers(url), "recovery")
        for journal in sorted(crew.folder.iterdir()):
            settle(journal, url, report)
        report.integrity = stress.integrity(url)
        report.ledger = query(url, "select count(*) from supersede.operation")[0][0]
    return report


class Crew:
    """The worker processes; one that was killed is replaced."""

    def __init__(self, plan: Plan, url: str, folder: Path) -> None:
        self.folder = folder
        self._plan, self._url = plan, url
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._made = 0
        self._members: list[tuple[Callable[..., None], BaseProcess]] = []

    def start(self) -> None:
        for work, count in ((write, self._plan.writers), (read, self._plan.readers)):
            for _ in range(count):
                self._members.append((work, self._launch(work)))
        until(lambda: len(list(self.folder.iterdir())) == self._made, "the workers")

    def has(self, kind: str, count: int) -> bool:
        """Whether the journals hold as many entries of a kind."""
        start = f'["{kind}"'
        found = (
            line.startswith(start)
            for journal in self.folder.iterdir()
            for line in journal.read_text(encoding="utf-8").splitlines()
        )
        return not count or sum(found) >= count

    def _launch(self, work: Callable[..., None]) -> BaseProcess:
        self._made += 1
        journal = self.folder / f"{self._made:04}"
        seed = self._plan.seed * 1_000_003 + self._made
        process = self._context.Process(target=work, args=(self._url, journal, seed, self._stop))
        process.start()
        return process

    def kill_one(self, rng: random.Random) -> str:
        place = rng.randrange(len(self._members))
        work, process = self._members[place]
        process.kill()
        process.join()
        self._members[place] = (work, self._launch(work))
        return f"a {'writer' if work is write else 'reader'}"

    def stop(self) -> None:
        self._stop.set()
        for _, process in self._members:
            process.join(stress.PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()


def disturb(plan: Plan, cluster: Cluster, crew: Crew, report: Report, say: Callable[[str], None]) -> None:
    rng = random.Random(plan.seed)
    deadline = time.monotonic() + plan.seconds
    told = time.monotonic()
    while (left := deadline - time.monotonic()) > 0 or not (
        -left > stress.PATIENCE
        or (crew.has("recorded", plan.operations) and crew.has("answer", plan.answers))
    ):
        time.sleep(min(max(left, 0.5), rng.expovariate(1 / plan.between_kills)))
        deed: Callable[..., tuple[Counter[str], str] | None] = rng.choices(
            [kill_worker, kill_backend, end_backend, kill_server, look_after], [6, 3, 3, 2, 3]
        )[0]
        with contextlib.suppress(psycopg.OperationalError):  # the server is recovering
            if (done := deed(cluster, crew, report, rng)) is not None:
                done[0][done[1]] += 1
        if time.monotonic() - told > 30:
            told = time.monotonic()
            say(f"{left:.0f} s left, killed: {_listed(report.kills)}")


Done = tuple[Counter[str], str] | None


def kill_worker(_cluster: Cluster, crew: Crew, report: Report, rng: random.Random) -> Done:
    return report.kills, crew.kill_one(rng)


def kill_backend(cluster: Cluster, _crew: Crew, report: Report, rng: random.Random) -> Done:
    pid = some_backend(cluster, rng)
    if pid is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # the postmaster ends all others, and recovers
    return report.kills, "a backend, -9"


def end_backend(cluster: Cluster, _crew: Crew, report: Report, rng: random.Random) -> Done:
    pid = some_backend(cluster, rng)
    if pid is None:
        return None
    query(cluster.url, "select pg_terminate_backend(%s)", pid)
    return report.kills, "a backend, terminated"


def kill_server(cluster: Cluster, _crew: Crew, report: Report, rng: random.Random) -> Done:
    cluster.kill()
    time.sleep(rng.random())
    cluster.restart()
    return report.kills, "the server, -9"


def look_after(cluster: Cluster, _crew: Crew, report: Report, rng: random.Random) -> Done:
    statement = rng.choice(["reindex schema supersede", "vacuum analyze", "vacuum full", "checkpoint"])
    with psycopg.connect(cluster.database("supersede"), autocommit=True) as connection:
        connection.execute("set lock_timeout = '5s'")
        try:
            connection.execute(statement)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return report.upkeep, f"{statement}, given up"
    return report.upkeep, statement


def some_backend(cluster: Cluster, rng: random.Random) -> int | None:
    """One of the workers' backends, rather one in the middle of something."""
    rows = query(
        cluster.url,
        "select pid, state from pg_stat_activity where datname = 'supersede' and pid <> pg_backend_pid()",
    )
    busy = [pid for pid, state in rows if state != "idle"]
    return rng.choice(busy or [pid for pid, _ in rows] or [None])


# --- the workers


class Journal:
    """What a worker did, line by line; a line is on its way to the file before the worker goes on."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def note(self, kind: str, *details: Any) -> None:
        print(json.dumps([kind, *details]), file=self._file, flush=True)


def write(url: str, path: Path, seed: int, stop: Any) -> None:
    """The body of a writer."""
    logging.disable(logging.WARNING)  # an embedder that fails now and then is part of it
    with contextlib.closing(Working(url, path, seed)) as work:
        while not stop.is_set():
            verb = work.rng.choice(VERBS)
            call = verb(work, work.new_handle())
            work.insist(verb.__name__, call, stop)


def read(url: str, path: Path, seed: int, stop: Any) -> None:
    """The body of a reader: asks, keeps the answer, and asks an older one again."""
    logging.disable(logging.WARNING)
    with contextlib.closing(Working(url, path, seed)) as work:
        kept: list[str] = []
        while not stop.is_set():
            kind = work.rng.choice(list(QUESTIONS))
            answer = work.insist(kind, lambda kind=kind: QUESTIONS[kind](work), stop)
            if answer is None:
                continue
            text = answer.model_dump_json()
            work.journal.note("answer", kind, text)
            kept.append(text)
            probe = work.rng.choice(kept)
            again = work.insist("again", lambda probe=probe: ask_again(work.store(), probe), stop)
            if again is not None:
                difference = None if again.model_dump_json() == probe else differing(probe, again)
                work.journal.note("again", difference)


class Working:
    """A worker's store for each namespace, its journal and its chance."""

    def __init__(self, url: str, path: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.journal = Journal(path)
        self._url, self._name = url, path.name
        self._stores: dict[str, FactStore] = {}
        self._calls = 0

    def store(self, namespace: str = NAMESPACES[0]) -> FactStore:
        """Opened when it is first needed: the server may be down."""
        if namespace not in self._stores:
            self._stores[namespace] = FactStore.open(
                self._url, namespace=namespace, embedder=embedder(), actor=self._name
            )
        return self._stores[namespace]

    def close(self) -> None:
        for store in self._stores.values():
            store.close()

    def new_handle(self) -> str:
        self._calls += 1
        return f"{self._name}/{self._calls}"

    def lately(self, namespace: str) -> str:
        """The ref of a fact that was made not long ago."""
        rows = query(
            self._url,
            "select ref from supersede.fact_ref where namespace = %s order by stamp desc limit %s",
            namespace,
            LATEST,
        )
        return str(self.rng.choice(rows)[0]) if rows else "none"

    def insist(self, name: str, call: Callable[[], Any], stop: Any) -> Any:
        """Make one call until it gives a result or is refused; what was interrupted is made again."""
        until_when = time.monotonic() + stress.PATIENCE
        while True:
            try:
                result = call()
            except INTERRUPTED as error:
                self.journal.note("interrupted", type(error).__name__)
                if stop.is_set() or time.monotonic() > until_when:
                    return None
                time.sleep(0.05)
                continue
            except psycopg.OperationalError:  # of the look at the latest facts
                time.sleep(0.05)
                if stop.is_set():
                    return None
                continue
            except SupersedeError as error:
                self.journal.note("refused", f"{name} {type(error).__name__}")
                return None
            except Exception:
                self.journal.note("error", f"{name}: {traceback.format_exc()}")
                return None
            if isinstance(result, int):
                self.journal.note("filled", name)
            done = [result] if isinstance(result, Recorded) else result
            for one in done if isinstance(done, list) else []:
                self.journal.note("recorded", name, one.model_dump(mode="json"), one.repeated)
            return result


Call = Callable[[], Any]


def _made_once(choose: Callable[[], Call]) -> Call:
    """What is chosen at the first attempt stays, so that a second one is the same call."""
    chosen: list[Call] = []

    def call() -> Any:
        if not chosen:
            chosen.append(choose())
        return chosen[0]()

    return call


def remember(work: Working, handle: str) -> Call:
    name, rng = work.rng.choice(NAMESPACES), work.rng
    content = {**stress.period_of(rng), "sources": [f"doc/{rng.randrange(50)}"]}
    claim = stress.claim_of(rng)
    return lambda: work.store(name).remember(claim, ref=handle, handle=handle, **content)


def remember_in_slot(work: Working, handle: str) -> Call:
    name, rng = work.rng.choice(NAMESPACES), work.rng
    value = rng.choice(["Boston", "Denver", "Oslo", "Rome", stress.claim_of(rng)])
    content = {**stress.period_of(rng), "subject": f"s{rng.randrange(SUBJECTS)}"}
    content["predicate"] = stress.PREDICATE
    return lambda: work.store(name).remember(value, ref=handle, handle=handle, **content)


def supersede(work: Working, handle: str) -> Call:
    name, rng = work.rng.choice(NAMESPACES), work.rng
    reason: Any = rng.choice(["change", "correction", "refinement", "duplicate"])
    link: Any = rng.choice(["link", "refuse"])
    period, claim, count = stress.period_of(rng), stress.claim_of(rng), rng.randrange(1, 3)

    def choose() -> Call:
        olds = [work.lately(name) for _ in range(count)]
        return lambda: work.store(name).supersede(
            olds, claim, ref=handle, handle=handle, reason=reason, if_not_current=link, **period
        )

    return _made_once(choose)


def supersede_by(work: Working, handle: str) -> Call:
    name, period = work.rng.choice(NAMESPACES), stress.period_of(work.rng)

    def choose() -> Call:
        old, by = work.lately(name), work.lately(name)
        return lambda: work.store(name).supersede(old, by=by, handle=handle, **period)

    return _made_once(choose)


def amend(work: Working, handle: str) -> Call:
    name, claim = work.rng.choice(NAMESPACES), stress.claim_of(work.rng)

    def choose() -> Call:
        old = work.lately(name)
        return lambda: work.store(name).amend(old, claim, ref=handle, handle=handle)

    return _made_once(choose)


def end(work: Working, handle: str) -> Call:
    name, at = work.rng.choice(NAMESPACES), stress.instant_of(work.rng)

    def choose() -> Call:
        fact = work.lately(name)
        return lambda: work.store(name).end(fact, at=at, handle=handle)

    return _made_once(choose)


def retract(work: Working, handle: str) -> Call:
    name, give_back = work.rng.choice(NAMESPACES), work.rng.random() < 0.5

    def choose() -> Call:
        fact = work.lately(name)
        return lambda: work.store(name).retract(fact, give_back=give_back, handle=handle)

    return _made_once(choose)


def reinstate(work: Working, handle: str) -> Call:
    name = work.rng.choice(NAMESPACES)

    def choose() -> Call:
        fact = work.lately(name)
        return lambda: work.store(name).reinstate(fact, handle=handle)

    return _made_once(choose)


def cite(work: Working, handle: str) -> Call:
    name, source = work.rng.choice(NAMESPACES), f"doc/{work.rng.randrange(500)}"

    def choose() -> Call:
        fact = work.lately(name)
        return lambda: work.store(name).cite(fact, sources=[source], handle=handle)

    return _made_once(choose)


def replay(work: Working, handle: str) -> Call:
    name, at = work.rng.choice(NAMESPACES), stress.instant_of(work.rng).isoformat()
    event = {"op": "remember", "claim": stress.claim_of(work.rng), "ref": handle, "handle": handle}
    event["recorded_at"] = at
    return lambda: work.store(name).replay([event], out_of_order="next_stamp")


def transaction(work: Working, handle: str) -> Call:
    name, claims = work.rng.choice(NAMESPACES), [stress.claim_of(work.rng) for _ in range(3)]

    def call() -> list[Recorded]:
        with work.store(name).transaction() as together:
            return [
                together.remember(claim, ref=f"{handle}/{n}", handle=f"{handle}/{n}")
                for n, claim in enumerate(claims)
            ]

    return call


def remember_many(work: Working, handle: str) -> Call:
    name = work.rng.choice(NAMESPACES)
    items = [{"claim": stress.claim_of(work.rng), "ref": f"{handle}/{n}"} for n in range(5)]
    return lambda: work.store(name).remember_many(items)


def fill_embeddings(work: Working, _handle: str) -> Call:
    name = work.rng.choice(NAMESPACES)

    def call() -> int:
        full = fakes.BagOfWords(model="fake-stress", dimensions=64)
        with FactStore.open(work._url, namespace=name, embedder=full) as store:
            return store.fill_embeddings()

    return call


# A verb that is added here is killed, repeated and looked up with the others.
VERBS: list[Callable[[Working, str], Call]] = [
    remember, remember, remember_in_slot, remember_in_slot, remember_in_slot, supersede, supersede,
    supersede_by, amend, end, retract, reinstate, cite, replay, transaction, remember_many,
    fill_embeddings,
]  # fmt: skip


def _past(work: Working) -> Any:
    head = work.store().facts(subject="nobody").known_at
    return head - stress.timedelta(seconds=work.rng.random() * 20)


QUESTIONS: dict[str, Callable[[Working], Answer]] = {
    "facts of one subject, now": lambda work: work.store().facts(
        subject=f"s{work.rng.randrange(SUBJECTS)}", namespaces=NAMESPACES, explain=True
    ),
    "facts of one subject, past": lambda work: work.store().facts(
        subject=f"s{work.rng.randrange(SUBJECTS)}",
        valid_at=stress.instant_of(work.rng),
        known_at=_past(work),
        namespaces=NAMESPACES,
    ),
    "ask, now": lambda work: work.store().ask(stress.sentence(work.rng), namespaces=NAMESPACES),
    "ask, past": lambda work: work.store().ask(
        stress.sentence(work.rng), as_of=_past(work), namespaces=NAMESPACES, explain=True
    ),
    "a page of all": lambda work: work.store().facts(
        limit=20, valid_at=stress.instant_of(work.rng), namespaces=NAMESPACES
    ),
}


def ask_again(store: FactStore, text: str) -> Answer:
    """The answer of a kept one's basis."""
    basis = Answer.model_validate_json(text).basis
    return (store.ask if basis.question == "ask" else store.facts)(basis=str(basis))


def differing(text: str, again: Answer) -> str:
    return f"{stress.difference(Answer.model_validate_json(text), again)} (basis {again.basis})"


# --- the end


def settle(journal: Path, url: str, report: Report) -> None:
    """Add up a journal; ask its answers again, and look for its writes in the ledger."""
    stamps = {
        (row[0], row[1]): row[2]
        for row in query(
            url,
            "select namespace, supersede.iso(stamp), handle from supersede.operation where handle like %s",
            f"{journal.name}/%",
        )
    }
    with FactStore.open(url, namespace=NAMESPACES[0], embedder=embedder()) as store:
        for line in journal.read_text(encoding="utf-8").splitlines():
            try:
                kind, *details = json.loads(line)
            except ValueError:  # the last line of a worker that was killed
                continue
            _KINDS[kind](report, details, stamps, store)


def _answered(report: Report, details: list[Any], _stamps: Any, store: FactStore) -> None:
    kind, text = details
    report.answers[kind] += 1
    report.asked_again_at_the_end += 1
    again = ask_again(store, text)
    if again.model_dump_json() != text:
        report.differences += 1
        report.first_difference = report.first_difference or differing(text, again)


def _asked_again(report: Report, details: list[Any], _stamps: Any, _store: FactStore) -> None:
    report.asked_again_meanwhile += 1
    if details[0] is not None:
        report.differences += 1
        report.first_difference = report.first_difference or f"meanwhile: {details[0]}"


def _recorded(report: Report, details: list[Any], stamps: dict[Any, Any], _store: FactStore) -> None:
    verb, result, repeated = details
    report.operations[verb] += 1
    report.repeated += bool(repeated)
    report.acknowledged += 1
    if (result["namespace"], result["stamp"]) not in stamps:
        report.lost += 1


_KINDS: dict[str, Callable[[Report, list[Any], Any, FactStore], None]] = {
    "answer": _answered,
    "again": _asked_again,
    "recorded": _recorded,
    "filled": lambda report, details, *_: report.operations.update(details),
    "refused": lambda report, details, *_: report.refusals.update(details),
    "interrupted": lambda report, details, *_: report.interruptions.update(details),
    "error": lambda report, details, *_: report.errors.extend(details),
}
