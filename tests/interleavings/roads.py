"""The roads by which a session writes, driven step by step: the store, the store for asyncio, SQL alone.

Each has ``begin``, ``verbs`` (the verbs of the transaction that is open), ``commit`` and ``rollback``; a verb
that fails is undone, and the transaction goes on.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.rows import scalar_row

from supersede import AsyncFactStore, FactStore, Recorded
from supersede import engine as db
from supersede.undone import Undoing
from supersede.verbs import Verbs


class RolledBack(Exception):
    """What a program raises to leave a transaction."""


def named(url: str, name: str) -> str:
    """The URL of connections by which a session is known to the server."""
    return sa.make_url(url).update_query_dict({"application_name": name}).render_as_string(False)


def elsewhere(store: Any, namespace: str) -> Any:
    """The same store on another namespace, over the same connections."""
    return type(store)(store._engine, namespace=namespace, actor=store.actor, embedding=store._embedding)


class Road(ABC):
    """One writer's way to one namespace; used by one thread alone."""

    verbs: Verbs
    namespace: str

    def __init__(self, url: str, actor: str) -> None:
        self.actor = actor

    @abstractmethod
    def enter(self, namespace: str) -> None:
        """From here on, write to this namespace."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class ByStore(Road):
    """``FactStore.transaction()``."""

    def __init__(self, url: str, actor: str) -> None:
        super().__init__(url, actor)
        self._store = FactStore.open(url, actor=actor)

    def enter(self, namespace: str) -> None:
        self.namespace = namespace
        self._store = elsewhere(self._store, namespace)

    def begin(self) -> None:
        self._block = self._store.transaction()
        self.verbs = self._block.__enter__()

    def commit(self) -> None:
        self._block.__exit__(None, None, None)

    def rollback(self) -> None:
        with suppress(RolledBack):
            assert not self._block.__exit__(RolledBack, RolledBack(), None), "an error never vanishes"

    def close(self) -> None:
        self._store.close()


class ByAsyncStore(Road):
    """``AsyncFactStore.transaction()``, on a loop of the session's own."""

    def __init__(self, url: str, actor: str) -> None:
        super().__init__(url, actor)
        self._runner = asyncio.Runner()
        self.run = self._runner.run
        self._store = self.run(AsyncFactStore.open(url, actor=actor))

    def enter(self, namespace: str) -> None:
        self.namespace = namespace
        self._store = elsewhere(self._store, namespace)

    def begin(self) -> None:
        self._block = self._store.transaction()
        self.verbs = _Awaited(self, self.run(self._block.__aenter__()))

    def commit(self) -> None:
        self.run(self._block.__aexit__(None, None, None))

    def rollback(self) -> None:
        with suppress(RolledBack):
            assert not self.run(self._block.__aexit__(RolledBack, RolledBack(), None)), (
                "an error never vanishes"
            )

    def close(self) -> None:
        self.run(self._store.close())
        self._runner.close()


class _Awaited(Verbs):
    def __init__(self, road: ByAsyncStore, transaction: Any) -> None:
        self.namespace = road.namespace
        self._road = road
        self._transaction = transaction

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        return self._road.run(self._transaction._write(verb, event))

    def _undo(self, work: Any) -> Undoing:
        return self._road.run(self._transaction._undo(work))


class BySql(Road):
    """The SQL functions over a plain connection, as any client may call them."""

    def __init__(self, url: str, actor: str) -> None:
        super().__init__(url, actor)
        self.connection = psycopg.connect(url, autocommit=True, row_factory=scalar_row)

    def enter(self, namespace: str) -> None:
        self.namespace = namespace
        self.verbs = _Called(self)

    def begin(self) -> None:
        self.connection.execute("begin isolation level read committed")

    def commit(self) -> None:
        self.connection.execute("commit")

    def rollback(self) -> None:
        self.connection.execute("rollback")

    def close(self) -> None:
        self.connection.close()

    def call(self, function: str, event: Mapping[str, Any], namespace: str | None = None) -> Recorded:
        """Call a function behind a savepoint where a transaction is open, else by itself."""
        with db.translated_errors(), self.connection.transaction():
            result = self.connection.execute(
                f"select supersede.{function}(%s::jsonb, %s, %s)",
                (json.dumps(event), namespace or self.namespace, self.actor),
            ).fetchone()
        return Recorded.model_validate(result)


class _Called(Verbs):
    def __init__(self, road: BySql) -> None:
        self.namespace = road.namespace
        self._road = road

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        return self._road.call(verb, event)

    def _undo(self, work: Any) -> Undoing:
        raise NotImplementedError("no case here undoes by SQL")


ROADS: dict[str, type[Road]] = {"store": ByStore, "async": ByAsyncStore, "sql": BySql}
