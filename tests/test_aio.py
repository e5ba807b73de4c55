"""The async store: the sync one's names and signatures, the same answers, and nothing half-applied."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from databases import query
from fakes import BagOfWords
from supersede import AsyncFactStore, FactNotCurrent, FactStore, NamespaceNotFound, OutOfOrder

VERBS = ["remember", "supersede", "amend", "end", "retract", "reinstate", "cite", "declare_predicate", "undo"]


def public(kind: type) -> dict[str, inspect.Signature]:
    found = {}
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and callable(member):
            signature = inspect.signature(member)
            found[name] = signature.replace(return_annotation=inspect.Signature.empty)
    return found


def test_both_stores_have_the_same_names_and_signatures() -> None:
    assert public(AsyncFactStore) == public(FactStore)
    assert set(VERBS) < set(public(FactStore))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[AsyncFactStore]:
    async with await AsyncFactStore.open(url, embedder=BagOfWords()) as store:
        yield store


def test_a_life_through_every_verb_and_read(vector_database: str) -> None:
    async def life() -> None:
        async with opened(vector_database) as store:
            await store.declare_predicate("hq", cardinality="one")
            a = await store.remember(
                "Acme sits in Lima", ref="a", subject="acme", predicate="hq", object="lima"
            )
            b = await store.supersede(a, "Acme sits in Quito", ref="b", object="quito")
            await store.amend(b, "The office is on the third floor", ref="c")
            await store.cite(b, sources=["press/1"])
            await store.retract("b", give_back=True)
            await store.end("c")
            await store.reinstate("c")
            assert [r.ref for r in await store.remember_many([{"claim": "x one", "ref": "x"}, "x two"])] == [
                "x",
                None,
            ]
            answer = await store.ask("Acme Lima", explain=True)
            assert answer.facts[0].ref == "a"
            assert await store.ask(basis=answer.basis) == answer
            assert (await store.verify(answer)).outcome == "equal"
            assert {f.ref for f in (await store.facts()).facts} == {"a", "c", "x", None}
            assert (await store.get("b")).valid is None
            assert [edge.ref for edge in (await store.history("b")).amended_by] == ["c"]
            assert [f.ref for f in (await store.lineage("b")).ancestors] == ["a"]
            assert (await store.diff("2020-01-01")).changes
            assert await store.fill_embeddings() == 0

    run(life())
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        assert store.ask("Acme Lima").facts[0].ref == "a"


def test_errors_are_the_sync_ones(vector_database: str) -> None:
    async def fail() -> None:
        async with opened(vector_database) as store:
            await store.remember("gone", ref="gone")
            await store.retract("gone")
            with pytest.raises(FactNotCurrent, match="gone"):
                await store.end("gone")
            with pytest.raises(NamespaceNotFound, match="elsewhere"):
                await store.facts(namespaces=["elsewhere"])
            with pytest.raises(OutOfOrder, match="event 1"):
                await store.replay([{"op": "remember", "claim": "x", "recorded_at": "2999-01-01"}])

    run(fail())


def test_a_transaction_is_all_or_nothing(vector_database: str) -> None:
    async def half(store: AsyncFactStore) -> None:
        async with store.transaction() as transaction:
            await transaction.remember("first", ref="first")
            raise RuntimeError("half way")

    async def both() -> None:
        async with opened(vector_database) as store:
            with pytest.raises(RuntimeError, match="half way"):
                await half(store)
            async with store.transaction(actor="agent") as transaction:
                await transaction.remember("second", ref="second")
                with pytest.raises(FactNotCurrent):
                    await transaction.end("second", at="1999-01-01", until="1999-01-02")
                await transaction.remember("third", ref="third")
            assert {f.ref for f in (await store.facts()).facts} == {"second", "third"}
            answer = await store.ask("third")
            assert answer.facts[0].similarity == pytest.approx(1.0, abs=1e-3)

    run(both())
    actors = query(vector_database, "select distinct actor from supersede.operation where verb = 'remember'")
    assert actors == [("agent",)]


@pytest.mark.parametrize("pauses", range(0, 40, 4))
def test_a_task_cancelled_at_any_await_leaves_nothing_or_all(vector_database: str, pauses: int) -> None:
    """Cancelled after so many turns of the loop, the write is there whole, or not at all."""

    async def cancelled() -> None:
        async with opened(vector_database) as store:
            await store.remember("old", ref="old")
            task = asyncio.create_task(store.supersede("old", "new", ref="new", sources=["s"]))
            for _ in range(pauses):
                await asyncio.sleep(0.0005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.remember("after", ref="after")

    run(cancelled())
    counts = query(
        vector_database,
        """
        select (select count(*) from supersede.fact_ref where ref = 'new'),
               (select count(*) from supersede.supersedes),
               (select count(*) from supersede.evidence),
               (select count(*) from supersede.operation where verb = 'supersede'),
               (select count(*) from supersede.fact_version where not is_open)
        """,
    )
    assert counts in ([(0, 0, 0, 0, 0)], [(1, 1, 1, 1, 1)])


def test_many_tasks_share_one_store(vector_database: str) -> None:
    async def together() -> None:
        async with opened(vector_database) as store:
            await store.remember("base", ref="base")
            tasks: list[Callable[[], Any]] = [
                *(lambda n=n: store.remember(f"claim {n}", ref=f"r{n}") for n in range(20)),
                *(lambda: store.ask("claim") for _ in range(20)),
            ]
            await asyncio.gather(*(task() for task in tasks))
            assert len((await store.facts()).facts) == 21

    run(together())
