"""The sync and the async store, put through the same: every verb, every read, and their errors."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import FROZEN_AT
from databases import dump, query, set_clock, set_clock_over
from fakes import BagOfWords, OtherModel
from servers import new_database
from supersede import (
    AsyncFactStore,
    Conflict,
    Erased,
    FactNotCurrent,
    FactNotFound,
    FactStore,
    InvalidInput,
    InvalidInstant,
    InvalidLedger,
    InvalidPeriod,
    NamespaceExists,
    NamespaceNotFound,
    OutOfOrder,
    RefConflict,
    SlotOverlap,
    SlotTaken,
    SupersedeError,
    SupersessionCycle,
    TrustConflict,
)
from test_conformance import BY_VERBS, CASES, Bench, Case, by_verb, check, comparable, point, said

Open = Callable[..., Any]


class Driven:
    """An async store, or a transaction of one, whose methods are called as those of a sync one.

    What a method returns to be awaited is awaited in the loop of the store.
    """

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner = inner
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.ismethod(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            called = found(*arguments, **options)
            if inspect.isawaitable(called):
                return self._runner.run(_awaited(called))
            return _Block(called, self._runner)

        return call

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_error: object) -> None:
        self._runner.run(self._inner.close())


class _Block:
    """An ``async with`` block as a ``with`` block."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner = inner
        self._runner = runner

    def __enter__(self) -> Driven:
        return Driven(self._runner.run(self._inner.__aenter__()), self._runner)

    def __exit__(self, *error: Any) -> Any:
        return self._runner.run(self._inner.__aexit__(*error))


async def _awaited(called: Any) -> Any:
    return await called


@pytest.fixture(params=["sync", "async"])
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a store of either kind, to be used as the sync one."""
    if request.param == "sync":
        yield FactStore.open
        return
    with asyncio.Runner() as runner:
        yield lambda *arguments, **options: Driven(
            runner.run(AsyncFactStore.open(*arguments, **options)), runner
        )


@pytest.fixture
def either(open_store: Open, vector_database: str) -> Iterator[Any]:
    """A store of either kind on ``vector_database`` with the fake embedder."""
    with open_store(vector_database, embedder=BagOfWords()) as store:
        yield store


def refs(answer: Any) -> set[str | None]:
    return {fact.ref for fact in answer.facts}


class Noting:
    """A store that notes which of its methods were called."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._store, name)


def public_methods() -> set[str]:
    return {name for name, _ in inspect.getmembers(FactStore, callable) if not name.startswith("_")}


def test_a_life_with_every_method(open_store: Open, vector_database: str, tmp_path: Path) -> None:
    with open_store(vector_database, embedder=BagOfWords(), actor="ann", run="r1") as opened:
        store = Noting(opened)
        store.declare_predicate("hq", cardinality="one")
        slot = {"subject": "acme", "predicate": "hq"}
        a = store.remember("Acme sits in Lima", ref="a", object="lima", **slot)
        b = store.supersede(a, "Acme sits in Quito", ref="b", object="quito")
        assert [cut.id for cut in b.supersedes] == [a.id]
        store.amend(b, "The office is on the third floor", ref="c")
        store.cite(b, sources=["press/1", ("press/2", "2026-01-01")])
        assert [given.id for given in store.retract("b", give_back=True).given_back] == [a.id]
        store.end("c")
        store.reinstate("c")
        many: list[int] = []
        done = store.remember_many([{"claim": "x one", "ref": "x"}, "x two"], progress=many.append)
        assert [each.ref for each in done] == ["x", None]
        assert many == [2]

        answer = store.ask("Acme Lima", explain=True)
        assert (answer.facts[0].ref, answer.ranking) == ("a", "exact")
        assert store.ask(basis=answer.basis) == store.ask(basis=str(answer.basis)) == answer
        assert store.verify(answer).outcome == "equal"
        listed = store.facts()
        assert refs(listed) == {"a", "c", "x", None}
        assert store.facts(basis=listed.basis) == listed
        assert store.get("b").valid is None
        assert [edge.ref for edge in store.history("b").amended_by] == ["c"]
        assert [fact.ref for fact in store.lineage("b").ancestors] == ["a"]
        changes = store.diff("2020-01-01").changes
        assert {change.ref for change in changes if change.gained} == {"a", "c", "x", None}

        plan = store.undo(run="r1", since=done[0].stamp)
        assert (plan.dry_run, [each.verb for each in plan.operations]) == (True, ["remember", "remember"])
        assert store.undo(run="r1", since=done[0].stamp, dry_run=False, based_on=plan).plan == plan.plan
        assert refs(store.facts()) == {"a", "c"}
        assert store.erase("x", note="by law").certificate.fact_id == done[0].id
        store.lift_erasure(done[0].id, note="it may be said again")

        with store.transaction(actor="ben", run="r2") as transaction:
            transaction.remember("in one", ref="one")
            transaction.supersede("one", "in two", ref="two", reason="correction")
        assert store.get("two").supersedes[0].ref == "one"

        (space,) = store.embedding_spaces()
        assert (space.model, space.active, space.missing) == ("fake-bag-of-words", True, 0)
        with FactStore.open(vector_database) as plain:
            plain.remember("without a vector")
        assert store.fill_embeddings() == 1

        ledger, folder = tmp_path / "ledger.jsonl.gz", tmp_path / "tables"
        exported = store.export_ledger(ledger, with_erasure_key=True)
        assert exported.operations == len(query(vector_database, "select from supersede.operation"))
        assert store.export_parquet(folder)["operations"] == exported.operations
        assert store.move_embeddings(OtherModel()).switched
        store.close()
    assert query(vector_database, "select distinct actor from supersede.operation where run = 'r2'") == [
        ("ben",)
    ]
    assert json.loads(gzip.decompress(ledger.read_bytes()).splitlines()[0])["supersede"] == "ledger"
    called = store.called
    # Into an empty database: the rest of what a store can do.
    assert public_methods() - called == {"open", "init", "import_ledger", "replay"}


def test_a_database_is_made_and_a_ledger_imported(
    open_store: Open, empty_database: str, vector_database: str
) -> None:
    with open_store(vector_database, embedder=BagOfWords()) as store:
        store.remember("the port is 5432", ref="port")
        store.supersede("port", "the port is 5433", ref="new")
        answer = store.ask("port")
        file = io.BytesIO()
        store.export_ledger(file)
    if isinstance(store, FactStore):
        assert FactStore.init(empty_database) == ()
    else:
        assert asyncio.run(AsyncFactStore.init(empty_database)) == ()
    with open_store(empty_database) as store:
        file.seek(0)
        assert store.import_ledger(file).operations == 2
        assert store.ask(basis=answer.basis) == answer
        file.seek(0)
        with pytest.raises(NamespaceExists, match="default"):
            store.import_ledger(file)


def test_a_history_is_replayed_in_its_own_time(either: Any) -> None:
    events = [
        {"op": "remember", "claim": "one", "ref": "one", "recorded_at": "2020-01-01"},
        {"op": "supersede", "old": ["one"], "claim": "two", "ref": "two", "recorded_at": "2020-02-01"},
    ]
    counts: list[int] = []
    either.replay(events, progress=counts.append)
    assert counts == [2]
    assert refs(either.facts(as_of="2020-01-15")) == {"one"}
    assert [each.repeated for each in either.replay(events)] == [True, True]
    late = {"op": "remember", "claim": "late", "ref": "late", "recorded_at": "2020-01-15"}
    with pytest.raises(OutOfOrder, match="event 1"):
        either.replay([late])
    either.replay([late], out_of_order="next_stamp")
    assert either.get("late").recorded.isoformat() == "2020-02-01T00:00:00.000001+00:00"


LATE = "2999-01-01"


def forgotten(store: Any) -> str:
    """The id of the erased fact: its ref is gone."""
    repeated: str = store.erase("forgotten", note="by law", handle="erasure").id
    return repeated


ERRORS: dict[str, tuple[type[SupersedeError], Callable[[Any], object]]] = {
    "remember with a ref that is taken": (RefConflict, lambda s: s.remember("other", ref="low")),
    "remember nothing": (InvalidInput, lambda s: s.remember(" ")),
    "remember backwards": (
        InvalidPeriod,
        lambda s: s.remember("x", valid_from="2020-02-01", valid_to="2020-01-01"),
    ),
    "remember by a summary": (
        TrustConflict,
        lambda s: s.remember("q", subject="a", predicate="one", object="q", trust="summary"),
    ),
    "remember what was erased": (Erased, lambda s: s.remember("to be forgotten")),
    "supersede what is gone": (FactNotCurrent, lambda s: s.supersede("gone", "x")),
    "supersede what never was": (FactNotFound, lambda s: s.supersede("never", "x")),
    "supersede in a ring": (
        SupersessionCycle,
        lambda s: s.supersede("new", by="low", if_not_current="link"),
    ),
    "supersede without a claim": (InvalidInput, lambda s: s.supersede("new")),
    "amend what never was": (FactNotFound, lambda s: s.amend("never", "x")),
    "end what is gone": (FactNotCurrent, lambda s: s.end("gone")),
    "retract what is gone": (FactNotCurrent, lambda s: s.retract("gone")),
    "reinstate into a slot that is held": (SlotTaken, lambda s: s.reinstate("v1")),
    "cite without a source": (InvalidInput, lambda s: s.cite("new", sources=[])),
    "declare what overlaps": (SlotOverlap, lambda s: s.declare_predicate("many", cardinality="one")),
    "erase twice": (Erased, lambda s: s.erase(forgotten(s), note="x")),
    "lift what is not erased": (InvalidInput, lambda s: s.lift_erasure("new", note="x")),
    "undo of whatever": (InvalidInput, lambda s: s.undo()),
    "undo of the future": (InvalidInstant, lambda s: s.undo(actor="x", since=LATE)),
    "remember many, one wrong": (InvalidInput, lambda s: s.remember_many(["fine", {"claim": ""}])),
    "replay of the future": (
        OutOfOrder,
        lambda s: s.replay([{"op": "remember", "claim": "x", "recorded_at": LATE}]),
    ),
    "write on what has moved": (Conflict, lambda s: s.retract("low2", based_on=s.facts(as_of="2020-01-01"))),
    "ask about no instant": (InvalidInstant, lambda s: s.ask("x", as_of="yesterday")),
    "ask about the future": (InvalidInstant, lambda s: s.ask("x", known_at=LATE)),
    "ask elsewhere": (NamespaceNotFound, lambda s: s.ask("x", namespaces=["elsewhere"])),
    "ask with a basis and more": (InvalidInput, lambda s: s.ask("x", basis="sb1.x")),
    "facts of an empty period": (
        InvalidPeriod,
        lambda s: s.facts(valid_during=("2020-01-01", "2020-01-01")),
    ),
    "verify what is no answer": (InvalidInput, lambda s: s.verify("x")),
    "diff backwards": (InvalidPeriod, lambda s: s.diff("2020-02-01", "2020-01-01")),
    "get what never was": (FactNotFound, lambda s: s.get("never")),
    "history of what never was": (FactNotFound, lambda s: s.history("never")),
    "lineage of what never was": (FactNotFound, lambda s: s.lineage("never")),
    "export of elsewhere": (
        NamespaceNotFound,
        lambda s: s.export_ledger(io.BytesIO(), namespaces=["elsewhere"]),
    ),
    "import of no ledger": (InvalidLedger, lambda s: s.import_ledger(io.BytesIO(b"no ledger"))),
}


def filled(url: str) -> None:
    """What the errors need to be there."""
    with FactStore.open(url, embedder=BagOfWords()) as store:
        store.remember("low", ref="low")
        store.supersede("low", "new", ref="new")
        store.remember("low2", ref="low2")
        store.remember("gone", ref="gone")
        store.retract("gone")
        store.remember("to be forgotten", ref="forgotten")
        store.erase("forgotten", note="by law", handle="erasure")
        for value in ("v1", "v2"):
            store.remember(value, ref=f"m/{value}", subject="a", predicate="many", object=value)
        store.declare_predicate("one", cardinality="one")
        slot = {"subject": "a", "predicate": "one", "valid_from": "2020-01-01"}
        store.remember("v1", ref="v1", object="v1", **slot)
        store.remember("v2", ref="v2", object="v2", trust="verbatim", **slot)


@pytest.fixture(scope="module")
def filled_database(server_url: str, vector_template_database: str) -> Iterator[str]:
    """A database that no call of :data:`ERRORS` changes."""
    with new_database(server_url, "test", vector_template_database) as (_, url):
        set_clock(url, FROZEN_AT)
        filled(url)
        yield url


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_typed_and_change_nothing(open_store: Open, filled_database: str, name: str) -> None:
    kind, call = ERRORS[name]
    before = dump(filled_database)
    with open_store(filled_database, embedder=BagOfWords()) as store, pytest.raises(SupersedeError) as error:
        call(store)
    assert type(error.value) is kind, error.value
    assert str(error.value)
    assert dump(filled_database) == before


def test_both_stores_word_an_error_alike(filled_database: str) -> None:
    with (
        asyncio.Runner() as runner,
        FactStore.open(filled_database, embedder=BagOfWords()) as store,
        Driven(runner.run(AsyncFactStore.open(filled_database, embedder=BagOfWords())), runner) as other,
    ):
        for _, call in ERRORS.values():
            with pytest.raises(SupersedeError) as one:
                call(store)
            with pytest.raises(SupersedeError) as two:
                call(other)
            assert (one.value.message, one.value.details) == (two.value.message, two.value.details)


def test_a_transaction_is_all_or_nothing(either: Any) -> None:
    def fail() -> None:
        with either.transaction() as transaction:
            transaction.remember("first", ref="first")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    with either.transaction() as transaction:
        transaction.remember("second", ref="second")
        with pytest.raises(FactNotCurrent):
            transaction.end("second", at="1999-01-01", until="1999-01-02")
        transaction.remember("third", ref="third")
        assert transaction.undo(actor="nobody", since="2020-01-01").operations == ()
    assert refs(either.facts()) == {"second", "third"}
    assert either.ask("third").facts[0].similarity == pytest.approx(1.0, abs=1e-3)


# --- the conformance cases, by the async store


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


class AsyncBench(Bench):
    """A database whose stores are async ones."""

    def __init__(self, url: str, runner: asyncio.Runner) -> None:
        super().__init__(url)
        self.runner = runner

    def open(self, case: Case) -> Any:
        store = self.runner.run(AsyncFactStore.open(self.url, namespace=case["name"]))
        return Driven(store, self.runner)


@pytest.fixture(scope="module")
def async_bench(server_url: str, template_database: str, runner: asyncio.Runner) -> Iterator[AsyncBench]:
    with new_database(server_url, "test", template_database) as (_, url):
        bench = AsyncBench(url, runner)
        yield bench
        bench.connection.close()


@pytest.fixture(scope="module")
def replay_bench(server_url: str, template_database: str, runner: asyncio.Runner) -> Iterator[AsyncBench]:
    with new_database(server_url, "test", template_database) as (_, url):
        bench = AsyncBench(url, runner)
        yield bench
        bench.connection.close()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_is_answered_as_expected_by_the_async_store(
    replay_bench: AsyncBench, async_bench: AsyncBench, case: Case
) -> None:
    """Replayed event by event, and again by the verbs, each through the async store."""
    with replay_bench.open(case) as store:
        for event in case["ops"]:
            expect(event, lambda event=event: store.replay([said(event)]))
        for ask in case["asks"]:
            answer = store.facts(**point(ask), explain=True)
            check(answer, ask)
            assert store.facts(basis=answer.basis) == answer
    if case not in BY_VERBS:
        return
    with async_bench.open(case) as store:
        for event in case["ops"]:
            set_clock_over(async_bench.connection, event["recorded_at"])
            expect(event, lambda event=event: by_verb(store, event))
    assert comparable(async_bench, case, ledger=False) == comparable(replay_bench, case, ledger=False)


def expect(event: dict[str, Any], write: Callable[[], object]) -> None:
    if "error" not in event:
        write()
        return
    with pytest.raises(SupersedeError) as error:
        write()
    assert type(error.value).__name__ == event["error"]
