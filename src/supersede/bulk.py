"""Many writes at once: in order, in transactions of 1,000, embedded in batches before each begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import sqlalchemy as sa

from supersede import engine as db
from supersede import events, facts
from supersede.embedding import Embedding
from supersede.errors import InvalidInput, SupersedeError
from supersede.models import Recorded

OutOfOrderPolicy = Literal["refuse", "next_stamp"]
Progress = Callable[[int], None]
"""Called after each transaction with the number of records it held."""

BATCH = 1_000
_T = TypeVar("_T")


class Writer(NamedTuple):
    """Who writes where: the database, the namespace, the actor for the ledger, the embedder."""

    engine: sa.Engine
    namespace: str
    actor: str | None
    embedding: Embedding


def remember_many(
    writer: Writer,
    items: Iterable[str | Mapping[str, Any]],
    *,
    progress: Progress | None,
) -> list[Recorded]:
    """Record claims, as ``FactStore.remember_many`` describes."""
    results: list[Recorded] = []
    for batch in _batches(items):
        said = [_said(item, position) for position, item in enumerate(batch, len(results) + 1)]
        carried = writer.embedding.carry([event.get("claim") for event in said])
        done: list[Recorded] = []
        with db.writing(writer.engine) as connection:
            for event, vector in zip(said, carried, strict=True):
                with _at(len(results) + len(done) + 1), db.translated_errors():
                    done.append(
                        facts.write(
                            connection,
                            "remember",
                            event,
                            namespace=writer.namespace,
                            actor=writer.actor,
                            vector=vector,
                        )
                    )
        results.extend(done)
        if progress is not None:
            progress(len(batch))
    return results


def replay(
    writer: Writer,
    history: Iterable[Mapping[str, Any]],
    *,
    out_of_order: OutOfOrderPolicy,
    progress: Progress | None,
) -> list[Recorded]:
    """Record a history, as ``FactStore.replay`` describes."""
    if out_of_order not in ("refuse", "next_stamp"):
        raise InvalidInput(f"out_of_order: {out_of_order!r} is neither refuse nor next_stamp")
    results: list[Recorded] = []
    for batch in _batches(history):
        plain = [events.replayable(event, n) for n, event in enumerate(batch, len(results) + 1)]
        carried = writer.embedding.carry([event.get("claim") for event in plain])
        with db.writing(writer.engine) as connection:
            done = facts.replay(
                connection,
                plain,
                carried,
                namespace=writer.namespace,
                actor=writer.actor,
                out_of_order=out_of_order,
                offset=len(results),
            )
        results.extend(done)
        if progress is not None:
            progress(len(batch))
    return results


def fill_embeddings(writer: Writer, *, progress: Progress | None) -> int:
    """Fill what lacks a vector, as ``FactStore.fill_embeddings`` describes."""
    space = writer.embedding.required_space()
    filled = 0
    while True:
        with db.reading(writer.engine) as connection:
            missing = facts.unfilled(connection, namespace=writer.namespace, space=space, limit=BATCH)
        if not missing:
            return filled
        rows = writer.embedding.rows(missing)
        with db.writing(writer.engine) as connection:
            filled += facts.fill_embeddings(
                connection, rows, namespace=writer.namespace, space=space, actor=writer.actor
            )
        if progress is not None:
            progress(len(rows))


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _said(item: str | Mapping[str, Any], position: int) -> dict[str, Any]:
    with _at(position):
        if isinstance(item, str):
            return events.said(claim=item)
        if not isinstance(item, Mapping):
            raise InvalidInput("is neither a claim nor a mapping of the arguments of remember()")
        return events.said(**item)


class _at:  # noqa: N801 - reads as a preposition
    """Names the position, counted from 1, in whatever error is raised inside."""

    def __init__(self, position: int) -> None:
        self._position = position

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, SupersedeError) and "position" not in error.details:
            error.located(f"item {self._position}", self._position)
