"""Vectors that come later: those that facts lack, and all of them once more in the space of another model.

What is done stands here once, as generators of steps; the sync and the async store take them in their own
way. Each step is a read, a write, or work without the database, which may take long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar, cast
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from supersede import adapters, attempts, bulk, facts
from supersede import engine as db
from supersede.adapters import vectors
from supersede.bulk import Progress, Writer
from supersede.embedding import Embedding
from supersede.errors import Conflict, EmbedderError, SupersedeError
from supersede.facts import Key, Space
from supersede.logs import get_logger
from supersede.ports import Embedder
from supersede.spaces import EmbeddingSpace, Moved

_log = get_logger(__name__)
_T = TypeVar("_T")

# How often a move tries to switch before it says that there is too much going on.
ATTEMPTS = 10
# How long one try waits for writers, while others wait behind it; a write itself waits for 15 seconds.
PATIENCE = "2s"


class Step(NamedTuple):
    """Something to do next: over a reading, a writing or the guarding connection, or over none."""

    kind: Literal["read", "write", "guard", "compute"]
    work: Callable[..., Any]


Steps = Generator[Step, Any, _T]


class Embeddings:
    """The part of a store that computes vectors after the facts were recorded."""

    _engine: sa.Engine
    _writer: Writer

    def fill_embeddings(self, *, progress: Progress | None = None) -> int:
        """Compute the vectors that this namespace's facts lack; the past does not move by it.

        :param progress: called with the number of facts looked at after each transaction.
        :returns: how many were stored.
        :raises EmbedderUnavailable: if the embedder does not answer.
        """
        return run(self._engine, fill(self._writer, progress))

    def move_embeddings(self, embedder: Embedder, *, progress: Progress | None = None) -> Moved:
        """Make another model's space the active one: fill it for every namespace, then switch in one step.

        Readers and writers go on, and the old space answers, until the switch. Killed at any point, the
        next call goes on where this one stopped. A store that was opened before, this one included, keeps
        its embedder and its space: open it anew to ask in the new one. What was asked in the old space can
        be asked again for ever, and its vectors stay for a move back.

        :param embedder: of the new space; its thresholds are those known for its model, else the default.
        :param progress: called with the number of facts looked at after each transaction.
        :raises PrivilegeMissing: for anybody but the owner of the tables.
        :raises EmbedderUnavailable: if the embedder does not answer; what was filled stays.
        :raises EmbedderError: if it makes nothing of most claims, so that there is nothing to switch to.
        :raises DimensionMismatch: if it returns another number of dimensions than it or its space says.
        :raises Conflict: if embeddings are being moved already, or writers left no moment for the switch.
        """
        with db.writing(self._engine) as guard:
            return run(self._engine, move(embedder, self._writer, progress), guard=guard)

    def embedding_spaces(self) -> list[EmbeddingSpace]:
        """The registered spaces, each with its counts per namespace."""
        with db.reading(self._engine) as connection:
            return facts.embedding_spaces(connection)


class AsyncEmbeddings:
    """As :class:`Embeddings`, for asyncio."""

    _engine: AsyncEngine
    _writer: Writer

    async def fill_embeddings(self, *, progress: Progress | None = None) -> int:
        """Compute the vectors that this namespace's facts lack."""
        return await run_async(self._engine, fill(self._writer, progress))

    async def move_embeddings(self, embedder: Embedder, *, progress: Progress | None = None) -> Moved:
        """Make another model's space the active one."""
        with db.translated_errors():
            async with self._engine.begin() as guard:
                return await run_async(self._engine, move(embedder, self._writer, progress), guard=guard)

    async def embedding_spaces(self) -> list[EmbeddingSpace]:
        """The registered spaces, each with its counts per namespace."""
        return await db.read_async(self._engine, facts.embedding_spaces)


def run(engine: sa.Engine, steps: Steps[_T], *, guard: sa.Connection | None = None) -> _T:
    """Take all steps over a sync engine."""

    def take(step: Step) -> Any:  # noqa: ANN401 - whatever the step returns
        if step.kind == "compute":
            return step.work()
        if step.kind == "guard":
            with db.translated_errors():
                return step.work(guard)
        if step.kind == "write":
            return attempts.write(engine, step.work)
        with db.reading(engine) as connection:
            return step.work(connection)

    try:
        step = next(steps)
        while True:
            try:
                result = take(step)
            except SupersedeError as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def run_async(engine: AsyncEngine, steps: Steps[_T], *, guard: AsyncConnection | None = None) -> _T:
    """Take all steps over an async engine; computing is done in a thread."""

    async def take(step: Step) -> Any:  # noqa: ANN401 - whatever the step returns
        if step.kind == "compute":
            return await asyncio.to_thread(step.work)
        if step.kind == "guard":
            with db.translated_errors():
                return await cast("AsyncConnection", guard).run_sync(step.work)
        return await (db.read_async if step.kind == "read" else attempts.write_async)(engine, step.work)

    try:
        step = next(steps)
        while True:
            try:
                result = await take(step)
            except SupersedeError as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def fill(writer: Writer, progress: Progress | None) -> Steps[int]:
    """Fill in what one namespace lacks; returns how many vectors were stored."""
    namespace = _Namespace(writer)
    yield from namespace.fill(progress, guarded=False)
    space = writer.embedding.required_space()
    if namespace.filled and not (yield Step("read", lambda c: facts.is_active(c, space))):
        writer.embedding.log_elsewhere(namespace.filled)
    return namespace.filled


def move(embedder: Embedder, writer: Writer, progress: Progress | None) -> Steps[Moved]:
    """Move all namespaces to the space of an embedder; see :meth:`Embeddings.move_embeddings`."""
    yield Step("guard", facts.hold_move)
    previous = _active((yield Step("read", facts.spaces)))
    if previous is not None and previous.model == embedder.model:
        return Moved(
            model=previous.model,
            previous=previous.model,
            switched=False,
            notice=f"{previous.model!r} is the active space already, so there is nothing to move; "
            "fill_embeddings() computes what is missing in it",
        )
    # Before anything is registered under the model's name: its dimensions could never be changed.
    yield Step("compute", lambda: vectors.embed_checked(embedder, ["a claim"]))
    space = yield Step("write", lambda connection: _register(connection, embedder))
    yield Step("guard", lambda guard: facts.name_move(guard, space))
    job = _Move(writer._replace(embedding=Embedding.choose(embedder, [space])), space, progress)
    yield from job.complete()
    _log.info("embeddings_moved", model=space.model, filled=job.filled)
    unembedded = _counted((yield Step("read", facts.embedding_spaces)), space).missing
    return Moved(
        model=space.model,
        previous=previous.model if previous else None,
        switched=True,
        filled=job.filled,
        unembedded=unembedded,
        notice=_said_of(unembedded),
    )


@dataclass
class _Namespace:
    """How far the vectors of a namespace have come.

    A fact's stamp is past those of all facts that were there before, so that what comes later lies behind
    ``after``. ``without`` are those of which the embedder makes nothing.
    """

    writer: Writer
    after: tuple[datetime, UUID] | None = None
    filled: int = 0
    without: list[UUID] = field(default_factory=list)

    def fill(self, progress: Progress | None, *, guarded: bool) -> Steps[None]:
        """Fill in what is lacking behind ``after``, batch by batch, each an operation of its own."""
        writer = self.writer
        while True:
            missing = yield Step("read", lambda c: bulk.missing(c, writer, self.after))
            if missing is None:
                return
            rows = yield Step("compute", lambda m=missing: writer.embedding.rows(m.claims))
            if guarded:
                yield Step("guard", facts.check_move)
            self.filled += yield from _patient(Step("write", lambda c, r=rows: bulk.fill(c, writer, r)))
            made = {row[0] for row in rows}
            self.without += [fact_id for fact_id, _ in missing.claims if fact_id not in made]
            self.after = missing.after
            if progress is not None:
                progress(len(missing.claims))
            if len(missing.claims) < bulk.BATCH:
                return  # what was written meanwhile is for the next time: a busy writer would keep us here


@dataclass
class _Move:
    """A move on its way: what is filled, namespace by namespace, until nothing is lacking."""

    writer: Writer
    space: Space
    progress: Progress | None
    namespaces: dict[str, _Namespace] = field(default_factory=dict)

    @property
    def filled(self) -> int:
        return sum(namespace.filled for namespace in self.namespaces.values())

    def complete(self) -> Steps[None]:
        """Fill and switch; fill again what was written meanwhile.

        :raises Conflict: when writers were faster every time.
        """
        lacking = 0
        names = yield Step("read", facts.namespaces)
        for _ in range(ATTEMPTS):
            yield from self._fill(names)
            try:
                lacking, names = yield Step("write", self._switch)
            except Conflict:  # a writer held its namespace for longer than others should wait for us
                names = []
                continue
            if not lacking:
                return
        raise Conflict(
            f"the space of {self.space.model!r} is filled, but writers left no moment for the switch in "
            f"{ATTEMPTS} attempts (at the last one {lacking:,} new facts had no vector in it); nothing was "
            "switched: run it again, best when less is being written"
        )

    def _fill(self, names: list[str]) -> Steps[None]:
        for name in names:
            state = self.namespaces.setdefault(name, _Namespace(self.writer._replace(namespace=name)))
            yield from state.fill(self.progress, guarded=True)
        if any(state.without for state in self.namespaces.values()):
            self._check(_counted((yield Step("read", facts.embedding_spaces)), self.space))

    def _check(self, counted: EmbeddingSpace) -> None:
        without = sum(len(state.without) for state in self.namespaces.values())
        if without > counted.embedded:
            raise EmbedderError(
                f"the embedder of {self.space.model!r} made nothing that can be ranked of {without:,} "
                f"claims, and only {counted.embedded:,} have a vector; nothing was switched",
                details={"without": without, "embedded": counted.embedded},
            )

    def _switch(self, connection: sa.Connection) -> tuple[int, list[str]]:
        without: list[Key] = [
            (name, fact_id) for name, state in self.namespaces.items() for fact_id in state.without
        ]
        return facts.activate_space(connection, self.space, without=without, patience=PATIENCE)


def _patient(step: Step) -> Steps[Any]:
    """A write that is tried again while another writer is in the way: a move may take hours."""
    for left in range(ATTEMPTS, 0, -1):
        try:
            return (yield step)
        except Conflict:
            if left == 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _register(connection: sa.Connection, embedder: Embedder) -> Space:
    return facts.register_space(
        connection,
        model=embedder.model,
        dimensions=embedder.dimensions,
        measured=adapters.thresholds(embedder),
        first_is_active=False,
    )


def _active(spaces: list[Space]) -> Space | None:
    return next((space for space in spaces if space.active), None)


def _counted(spaces: list[EmbeddingSpace], space: Space) -> EmbeddingSpace:
    return next(counted for counted in spaces if counted.model == space.model)


def _said_of(unembedded: int) -> str | None:
    if not unembedded:
        return None
    lacking = "1 fact has" if unembedded == 1 else f"{unembedded:,} facts have"
    return f"{lacking} no vector in the new space, where only words find what lacks one"
