"""Many writes at once: in order, in transactions of 1,000, embedded in batches before each begins.

Each job is three steps, so that the sync and the async store can run them in their own way: take a batch,
prepare it (check and embed, no database), apply it inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

import sqlalchemy as sa

from supersede import attempts, events, facts
from supersede import engine as db
from supersede.embedding import Embedding
from supersede.errors import InvalidInput, SupersedeError
from supersede.results import Recorded

OutOfOrderPolicy = Literal["refuse", "next_stamp"]
Progress = Callable[[int], None]
"""Called after each transaction with the number of records it held."""

BATCH = 1_000
_T = TypeVar("_T")


class Writer(NamedTuple):
    """Who writes where: the namespace, the actor for the ledger, the embedder, the run it belongs to."""

    namespace: str
    actor: str | None
    embedding: Embedding
    run: str | None = None


class Prepared(NamedTuple):
    """A batch of events with their vectors, and how many records came before it."""

    events: list[dict[str, Any]]
    vectors: list[facts.Vector]
    offset: int


class Job(Protocol):
    """Records to write, batch by batch."""

    def prepare(self, batch: list[Any], offset: int) -> Prepared:
        """Check and embed a batch; errors name the position, counted from 1 over all batches."""
        ...

    def apply(self, connection: sa.Connection, prepared: Prepared) -> list[Recorded]:
        """Write a batch inside the caller's transaction."""
        ...


@dataclass(frozen=True)
class Remember:
    """Claims to remember; see ``FactStore.remember_many``."""

    writer: Writer

    def prepare(self, batch: list[Any], offset: int) -> Prepared:
        """As :meth:`Job.prepare`."""
        said = [_said(item, position) for position, item in enumerate(batch, offset + 1)]
        carried = self.writer.embedding.carry([event.get("claim") for event in said])
        return Prepared(said, carried, offset)

    def apply(self, connection: sa.Connection, prepared: Prepared) -> list[Recorded]:
        """As :meth:`Job.apply`."""
        done: list[Recorded] = []
        for event, vector in zip(prepared.events, prepared.vectors, strict=True):
            with _at(prepared.offset + len(done) + 1), db.translated_errors():
                done.append(
                    facts.write(
                        connection,
                        "remember",
                        events.in_run(event, self.writer.run),
                        namespace=self.writer.namespace,
                        actor=self.writer.actor,
                        vector=vector,
                    )
                )
        self.writer.embedding.warn_of_elsewhere(prepared.vectors, done)
        return done


@dataclass(frozen=True)
class Replay:
    """A history to replay; see ``FactStore.replay``."""

    writer: Writer
    out_of_order: OutOfOrderPolicy

    def __post_init__(self) -> None:
        if self.out_of_order not in ("refuse", "next_stamp"):
            raise InvalidInput(f"out_of_order: {self.out_of_order!r} is neither refuse nor next_stamp")

    def prepare(self, batch: list[Any], offset: int) -> Prepared:
        """As :meth:`Job.prepare`."""
        plain = [_plain(event, position) for position, event in enumerate(batch, offset + 1)]
        carried = self.writer.embedding.carry([event.get("claim") for event in plain])
        return Prepared(plain, carried, offset)

    def apply(self, connection: sa.Connection, prepared: Prepared) -> list[Recorded]:
        """As :meth:`Job.apply`."""
        done: list[Recorded] = []
        for event, vector in zip(prepared.events, prepared.vectors, strict=True):
            position = prepared.offset + len(done) + 1
            name = event.get("ref") or event.get("by") or event.get("name") or ""
            with _at(position, f"event {position} ({event.get('op')} {name})"), db.translated_errors():
                done.append(
                    facts.replay(
                        connection,
                        events.in_run(event, self.writer.run),
                        namespace=self.writer.namespace,
                        actor=self.writer.actor,
                        vector=vector,
                        out_of_order=self.out_of_order,
                    )
                )
        self.writer.embedding.warn_of_elsewhere(prepared.vectors, done)
        return done


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    """The items in lists of 1,000, taken as they are needed.

    :raises InvalidInput: for what is no series of items.
    """
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InvalidInput(f"a list (or another series) of records is needed, not {type(items).__name__}")
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def run(engine: sa.Engine, job: Job, items: Iterable[Any], *, progress: Progress | None) -> list[Recorded]:
    """Run a job to its end over a sync engine."""
    results: list[Recorded] = []
    for batch in batches(items):
        prepared = job.prepare(batch, len(results))
        done = attempts.write(engine, lambda connection, prepared=prepared: job.apply(connection, prepared))  # type: ignore[misc]
        results.extend(done)
        if progress is not None:
            progress(len(done))
    return results


class Missing(NamedTuple):
    """Facts that lack a vector, and where the next batch of them begins."""

    claims: list[tuple[UUID, str]]
    after: tuple[datetime, UUID]


def missing(connection: sa.Connection, writer: Writer, after: tuple[datetime, UUID] | None) -> Missing | None:
    """A batch of facts that lack a vector; None where there is none left.

    :param after: where the last batch ended: what could not be embedded is not tried again.
    :raises EmbedderUnavailable: if there is no embedder to make one.
    """
    space = writer.embedding.required_space()
    rows = facts.unfilled(connection, namespace=writer.namespace, space=space, limit=BATCH, after=after)
    if not rows:
        return None
    return Missing([(row[0], row[1]) for row in rows], (rows[-1][2], rows[-1][0]))


def fill(connection: sa.Connection, writer: Writer, rows: list[tuple[UUID, str, bool]]) -> int:
    """Store vectors inside the caller's transaction; returns how many were missing."""
    if not rows:
        return 0
    space = writer.embedding.required_space()
    return facts.fill_embeddings(
        connection, rows, namespace=writer.namespace, space=space, actor=writer.actor
    )


def fill_made(connection: sa.Connection, writer: Writer, rows: list[tuple[UUID, str, bool]]) -> None:
    """Store the vectors of facts that a transaction made, and log it if its space is not the active one."""
    filled = fill(connection, writer, rows)
    if filled and not facts.is_active(connection, writer.embedding.required_space()):
        writer.embedding.log_elsewhere(filled)


def _plain(event: Mapping[str, Any], position: int) -> dict[str, Any]:
    with _at(position, f"event {position}"):
        return events.replayable(event)


def _said(item: str | Mapping[str, Any], position: int) -> dict[str, Any]:
    with _at(position):
        if isinstance(item, str):
            return events.said(claim=item)
        if not isinstance(item, Mapping):
            raise InvalidInput("neither a claim nor a mapping of the arguments of remember()")
        return events.said(**events.arguments_of_remember(item))


class _at:  # noqa: N801 - reads as a preposition
    """Names the position, counted from 1, in whatever error is raised inside."""

    def __init__(self, position: int, place: str | None = None) -> None:
        self._position = position
        self._place = place or f"item {position}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, SupersedeError) and "position" not in error.details:
            error.located(self._place, self._position)
