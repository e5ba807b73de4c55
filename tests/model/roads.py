"""The ways in which a program calls the store, each made to look like the first: sync, async, SQL alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from supersede import AsyncFactStore, Recorded, SupersedeError, errors

ROADS = ("sync", "async", "sql")

# What Python leaves out of an event because it is what a call means anyway.
_DEFAULTS = {
    "trust": "extracted",
    "reason": "change",
    "if_not_current": "refuse",
    "kind": "fact",
    "over_trust": False,
    "give_back": False,
}
# A client of its own with settings of its own: none of them may show in what it writes.
_ODD_SESSION = (
    "set timezone = 'Pacific/Kiritimati'; set datestyle = 'SQL, DMY'; set intervalstyle = 'sql_standard'; "
    "set extra_float_digits = -5; set bytea_output = 'escape'"
)
_BY_STATE = {
    kind.sqlstate: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SupersedeError) and kind.sqlstate
}


class Awaited:
    """An async store, or what one of its transactions gives, each call waited for."""

    def __init__(self, verbs: Any, wait: Callable[[Awaitable[Any]], Any]) -> None:
        self._verbs = verbs
        self._wait = wait

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = getattr(self._verbs, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._wait(found(*arguments, **keywords))

        return call

    @contextmanager
    def transaction(self, **keywords: Any) -> Iterator[Awaited]:
        manager = self._verbs.transaction(**keywords)
        inside = self._wait(manager.__aenter__())
        try:
            yield Awaited(inside, self._wait)
        except BaseException as error:
            if not self._wait(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._wait(manager.__aexit__(None, None, None))


class Loop:
    """An event loop that runs only while something is waited for."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._stores: dict[tuple[str, str | None], AsyncFactStore] = {}

    def wait(self, what: Awaitable[Any]) -> Any:
        async def alone() -> Any:
            return await what

        return self._runner.run(alone())

    def store(self, namespace: str, actor: str | None) -> Awaited:
        key = namespace, actor
        if key not in self._stores:
            opened = AsyncFactStore.open(self._url, namespace=namespace, actor=actor)
            self._stores[key] = self.wait(opened)
        return Awaited(self._stores[key], self.wait)

    def disconnect(self) -> None:
        for store in self._stores.values():
            self.wait(store.close())
        self._stores = {}

    def close(self) -> None:
        self.disconnect()
        self._runner.close()


class Statements:
    """The verbs as somebody calls them who has SQL alone."""

    def __init__(self, connection: psycopg.Connection[Any], namespace: str, actor: str | None) -> None:
        self._connection = connection
        self._actor = actor
        self.namespace = namespace

    @staticmethod
    def connect(url: str) -> psycopg.Connection[Any]:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(_ODD_SESSION)
        return connection

    def run(self, event: Mapping[str, Any]) -> Recorded:
        """One event as a history writes it; what goes without saying is left unsaid."""
        said = {key: value for key, value in event.items() if value != _DEFAULTS.get(key, ...)}
        return self._write(said.pop("op"), said)

    @contextmanager
    def transaction(self, *, actor: str | None = None) -> Iterator[Statements]:
        with self._connection.transaction():
            yield Statements(self._connection, self.namespace, actor or self._actor)

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        with self._connection.transaction():  # inside another one a savepoint
            return self._execute(verb, event)

    def _execute(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        try:
            row = self._connection.execute(
                f'select supersede."{verb}"(%s::jsonb, %s, %s)',
                [json.dumps(event), self.namespace, self._actor],
            ).fetchone()
        except psycopg.Error as error:
            if error.sqlstate in _BY_STATE:
                raise _BY_STATE[error.sqlstate](str(error)) from error
            raise
        assert row is not None
        return Recorded.model_validate(row[0])
