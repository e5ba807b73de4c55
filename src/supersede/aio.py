"""AsyncFactStore: the store for asyncio, with the names and signatures of FactStore.

The same code runs under it: each method hands a function to a connection's ``run_sync``. Embedders, which
compute and block, run in a thread, always before a transaction begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, Unpack

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from supersede import attempts, bulk, events, facts, histories, opening, questions, reads
from supersede import engine as db
from supersede.aioverbs import AsyncTransaction, AsyncVerbs
from supersede.bulk import OutOfOrderPolicy, Progress, Writer
from supersede.embedding import Embedding
from supersede.events import FactLike
from supersede.filling import AsyncEmbeddings
from supersede.models import Answer, Basis, Fact, Verification
from supersede.periods import InstantLike, PeriodLike
from supersede.ports import Embedder
from supersede.questions import Which
from supersede.results import Recorded
from supersede.settings import Settings
from supersede.timelines import Diff, History, Lineage
from supersede.transfers import AsyncTransfers
from supersede.undoing import Work
from supersede.undone import Undoing
from supersede.verbs import afterwards

_T = TypeVar("_T")


class AsyncFactStore(AsyncVerbs, AsyncEmbeddings, AsyncTransfers):
    """A bitemporal fact store for asyncio; see :class:`supersede.store.FactStore` for every method."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        namespace: str,
        actor: str | None,
        embedding: Embedding,
        run: str | None = None,
    ) -> None:
        self._engine = engine
        self._embedding = embedding
        self._writer = Writer(namespace, actor, embedding, run)
        self.namespace = namespace
        self.actor = actor
        self.run = run

    @classmethod
    async def open(
        cls,
        url: str | None = None,
        *,
        namespace: str | None = None,
        embedder: Embedder | None = None,
        actor: str | None = None,
        run: str | None = None,
    ) -> Self:
        """Open a store."""
        settings = Settings()
        target = await asyncio.to_thread(opening.target, url, settings, embedder)
        engine = db.make_async_engine(target)
        try:
            spaces = await db.read_async(engine, opening.check)
            return cls(
                engine,
                namespace=events.text(namespace or settings.namespace, "namespace"),
                actor=events.actor(actor, settings.actor),
                embedding=Embedding.choose(embedder, spaces),
                run=events.run(run, settings.run),
            )
        except BaseException:
            await engine.dispose()
            raise

    @staticmethod
    async def init(
        url: str,
        *,
        embedder: Embedder | None = None,
        text_search: str | None = None,
        min_similarity: float | None = None,
        near_duplicate: float | None = None,
    ) -> tuple[str, ...]:
        """Prepare a database."""
        thresholds = {"min_similarity": min_similarity, "near_duplicate": near_duplicate}
        return await asyncio.to_thread(
            opening.init, url, embedder=embedder, text_search=text_search, **thresholds
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        event = events.in_run(event, self.run)
        (vector,) = await asyncio.to_thread(self._embedding.carry, [event.get("claim")])
        done = await attempts.write_async(
            self._engine,
            lambda connection: facts.write(
                connection, verb, event, namespace=self.namespace, actor=self.actor, vector=vector
            ),
        )
        self._embedding.warn_of_elsewhere([vector], [done])
        return done

    async def _undo(self, work: Work) -> Undoing:
        return await attempts.write_async(self._engine, work)

    @asynccontextmanager
    async def transaction(
        self, *, actor: str | None = None, run: str | None = None
    ) -> AsyncIterator[AsyncTransaction]:
        """Several verbs as one: all are recorded when the block ends, or none where it raises."""
        writer = self._writer._replace(actor=events.actor(actor, self.actor), run=events.run(run, self.run))
        async with db.writing_async(self._engine) as connection:
            transaction = AsyncTransaction(connection, writer)
            yield transaction
        with afterwards():
            rows = await transaction.vectors()
            await attempts.write_async(self._engine, lambda c: bulk.fill_made(c, self._writer, rows))

    async def _run(self, job: bulk.Job, items: Iterable[Any], progress: Progress | None) -> list[Recorded]:
        results: list[Recorded] = []
        for batch in bulk.batches(items):
            prepared = await asyncio.to_thread(job.prepare, batch, len(results))
            done = await attempts.write_async(
                self._engine,
                lambda connection, prepared=prepared: job.apply(connection, prepared),  # type: ignore[misc]
            )
            results.extend(done)
            if progress is not None:
                progress(len(done))
        return results

    async def remember_many(
        self, items: Iterable[str | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> list[Recorded]:
        """Record many claims in order, in transactions of 1,000."""
        return await self._run(bulk.Remember(self._writer), items, progress)

    async def replay(
        self,
        history: Iterable[Mapping[str, Any]],
        *,
        out_of_order: OutOfOrderPolicy = "refuse",
        progress: Progress | None = None,
    ) -> list[Recorded]:
        """Record a history with its own recording times, in transactions of 1,000."""
        return await self._run(bulk.Replay(self._writer, out_of_order), history, progress)

    async def ask(
        self,
        query: str | None = None,
        *,
        as_of: InstantLike | None = None,
        valid_at: InstantLike | None = None,
        known_at: InstantLike | None = None,
        namespaces: Sequence[str] | None = None,
        top_k: int = 10,
        min_similarity: float | None = None,
        lineage_credit: float = 0.9,
        explain: bool = False,
        basis: Basis | str | None = None,
        **which: Unpack[Which],
    ) -> Answer:
        """What was believed that answers a question, best first."""
        if basis is not None:
            return await self._ask_again(
                questions.again(
                    basis,
                    "ask",
                    query,
                    as_of,
                    valid_at,
                    known_at,
                    namespaces,
                    min_similarity,
                    explain,
                    top_k != 10,
                    lineage_credit != 0.9,
                    which or None,
                )
            )
        asked = questions.ask(
            query,
            top_k=top_k,
            which=questions.which(which),
            min_similarity=min_similarity,
            lineage_credit=lineage_credit,
            explain=explain,
        )
        question = await asyncio.to_thread(self._embedding.complete, asked)
        return await self._answer(question, questions.point(as_of, valid_at, known_at), namespaces)

    async def facts(
        self,
        *,
        as_of: InstantLike | None = None,
        valid_at: InstantLike | None = None,
        valid_during: PeriodLike | None = None,
        known_at: InstantLike | None = None,
        namespaces: Sequence[str] | None = None,
        limit: int = 1_000,
        after: FactLike | None = None,
        explain: bool = False,
        basis: Basis | str | None = None,
        **which: Unpack[Which],
    ) -> Answer:
        """Every fact believed at a point, unranked."""
        point = as_of, valid_at, known_at, valid_during
        if basis is not None:
            said = *point, namespaces, after, explain, limit != 1_000, which or None
            return await self._ask_again(questions.again(basis, "facts", *said))
        asked = questions.facts(
            which=questions.which(which),
            valid_during=valid_during,
            limit=limit,
            after=after,
            explain=explain,
        )
        return await self._answer(asked, questions.point(*point), namespaces)

    async def verify(self, answer: Answer) -> Verification:
        """Ask an answer's basis again and say whether the answer is the same."""
        return await db.read_async(self._engine, lambda c: reads.verify(c, answer))

    async def diff(
        self,
        known_from: InstantLike,
        known_to: InstantLike | None = None,
        *,
        valid_at: InstantLike | None = None,
    ) -> Diff:
        """What this namespace believed otherwise at one instant than at an earlier one."""
        asked = questions.diff(known_from, known_to, valid_at)
        return await db.read_async(self._engine, lambda c: histories.diff(c, self.namespace, **asked))

    async def get(self, fact: FactLike) -> Fact:
        """One fact by its id or ref, as believed now."""
        return await self._one(histories.get, fact)

    async def history(self, fact: FactLike) -> History:
        """Everything ever held about a fact."""
        return await self._one(histories.history, fact)

    async def lineage(self, fact: FactLike) -> Lineage:
        """What a fact superseded and what superseded it."""
        return await self._one(histories.lineage, fact)

    async def _one(self, read: Callable[[sa.Connection, str, str], _T], fact: FactLike) -> _T:
        name = events.fact_name(fact)
        return await db.read_async(self._engine, lambda c: read(c, self.namespace, name))

    async def _answer(
        self, asked: questions.Asked, point: questions.Point, namespaces: Sequence[str] | None
    ) -> Answer:
        names = questions.names(namespaces, self.namespace)
        return await db.read_async(
            self._engine, lambda c: reads.ask(c, asked, point=point, names=names, own=self.namespace)
        )

    async def _ask_again(self, basis: Basis) -> Answer:
        return await db.read_async(self._engine, lambda c: reads.ask_again(c, basis))
