"""Connections: how they are made, what every session is set to, which servers are refused.

Every setting is made with SET LOCAL at the start of a transaction, so nothing leaks through a pooler, and
whatever the role or the database says, answers come out the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from supersede import errors
from supersede.settings import normalise_url

_T = TypeVar("_T")

MINIMUM_SERVER = 17
MINIMUM_VECTOR = (0, 7)
EXTENSIONS = ("vector", "btree_gist", "pg_trgm")

_SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    # The functions hold backslashes in their patterns.
    "standard_conforming_strings": "on",
    # A basis holds the name of a text-search configuration.
    "quote_all_identifiers": "off",
    "client_min_messages": "warning",
    # A write waits this long for its turn, then says Conflict.
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "5min",
    # Exact answers come in one order from every plan; JIT costs more than it saves at this size.
    "jit": "off",
}
_SETTINGS = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SESSION.items())
_SET_LOCAL = sa.text(f"select {_SETTINGS}")
_SET_ALL = sa.text(f"select {_SETTINGS}, set_config('search_path', :path, true)")

# All of these mean: somebody else was faster; nothing was changed.
_CONFLICT_STATES = {"23P01", "40P01", "40001", "55P03"}
_BY_STATE = {
    kind.sqlstate: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.SupersedeError) and kind.sqlstate
}
_BY_CONSTRAINT = {
    "fact_pkey": errors.RefConflict,
    "fact_ref_pkey": errors.RefConflict,
    "operation_handle_key": errors.RefConflict,
}


_OPTIONS: dict[str, Any] = {
    "isolation_level": "READ COMMITTED",
    "pool_pre_ping": True,
    "pool_size": 5,
    "max_overflow": 15,
    "hide_parameters": True,
    # No prepared statements: after some executions PostgreSQL would plan without looking at the point
    # in time (measured: five times slower), and a transaction pooler would mix them up.
    # The client's encoding said, so that texts of a database in another one arrive as texts, and it can be
    # refused in words.
    "connect_args": {"prepare_threshold": None, "client_encoding": "utf8"},
}
_SNAPSHOT: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def make_engine(url: str | sa.URL) -> sa.Engine:
    """An engine whose transactions are READ COMMITTED and set up as this package needs them.

    :raises ServerUnavailable: if the URL cannot be read; the message does not repeat it.
    """
    engine = sa.create_engine(normalise_url(url) if isinstance(url, str) else url, **_OPTIONS)
    _prepare_sessions(engine)
    return engine


def make_async_engine(url: str | sa.URL) -> AsyncEngine:
    """As :func:`make_engine`, for asyncio.

    :raises ServerUnavailable: if the URL cannot be read; the message does not repeat it.
    """
    engine = create_async_engine(normalise_url(url) if isinstance(url, str) else url, **_OPTIONS)
    _prepare_sessions(engine.sync_engine)
    return engine


def _prepare_sessions(engine: sa.Engine) -> None:
    known_path: list[str] = []

    def set_session(connection: sa.Connection) -> None:
        if not known_path:
            connection.execute(_SET_LOCAL)
            path, complete = search_path(connection)
            if complete:
                # Only once all extensions are there: during init they are still being made.
                known_path.append(path)
        else:
            path = known_path[0]
        connection.execute(_SET_ALL, {"path": path})

    sa.event.listen(engine, "begin", set_session)


def search_path(connection: sa.Connection) -> tuple[str, bool]:
    """The search path of a session, and whether all extensions were found for it.

    It holds this schema and those of the extensions' types. ``pg_temp`` stands last and named, so that
    no temporary object can pose as one of ours.
    """
    found = connection.execute(
        sa.text(
            "select e.extname, quote_ident(n.nspname) from pg_catalog.pg_extension e "
            "join pg_catalog.pg_namespace n on n.oid = e.extnamespace "
            "where e.extname = any (:names)"
        ),
        {"names": list(EXTENSIONS)},
    ).all()
    path = ", ".join(dict.fromkeys(["pg_catalog", "supersede", *(s for _, s in found), "pg_temp"]))
    return path, len(found) == len(EXTENSIONS)


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One snapshot for a whole read: REPEATABLE READ, READ ONLY."""
    with translated_errors(), engine.connect() as connection:
        snapshot = connection.execution_options(**_SNAPSHOT)
        with snapshot.begin():
            yield snapshot


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction for a write: READ COMMITTED, committed at the end or not at all."""
    with translated_errors(), engine.begin() as connection:
        yield connection


async def read_async(engine: AsyncEngine, work: Callable[[sa.Connection], _T]) -> _T:
    """Run sync code that reads, on one snapshot, over an async connection."""
    with translated_errors():
        async with engine.connect() as connection:
            snapshot = await connection.execution_options(**_SNAPSHOT)
            async with snapshot.begin():
                return await snapshot.run_sync(work)


async def write_async(engine: AsyncEngine, work: Callable[[sa.Connection], _T]) -> _T:
    """Run sync code that writes, in one transaction, over an async connection.

    Cancelled at any await before the commit, it leaves nothing.
    """
    with translated_errors():
        async with engine.begin() as connection:
            return await connection.run_sync(work)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Driver errors come out as this package's, with the driver's own as the cause."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        cause = error.orig if isinstance(error.orig, psycopg.Error) else error
        raise translate(cause) from cause
    except psycopg.Error as error:
        raise translate(error) from error
    except sa.exc.TimeoutError as error:
        raise errors.ServerUnavailable("all connections of this store's pool are in use") from error


def translate(error: BaseException) -> errors.SupersedeError:
    """The error of this package that a driver error stands for; values are never repeated from it."""
    state: str | None = getattr(error, "sqlstate", None)
    diagnostic = getattr(error, "diag", None)
    if state is None and isinstance(error, psycopg.DataError):
        return errors.InvalidInput("a value cannot be put into the form that PostgreSQL reads, or read back")
    if state is None or state.startswith(("08", "28", "3D", "57P", "25P03")):
        return errors.ServerUnavailable(f"no connection to PostgreSQL: {_reason(error)}")
    if state in _BY_STATE:
        detail = getattr(diagnostic, "message_detail", None)
        details: dict[str, Any] = json.loads(detail) if detail else {}
        return _BY_STATE[state](getattr(diagnostic, "message_primary", None), details=details)
    if state in _CONFLICT_STATES:
        return errors.Conflict(details={"sqlstate": state})
    constraint = getattr(diagnostic, "constraint_name", None) or ""
    for prefix, kind in _BY_CONSTRAINT.items():
        if constraint.startswith(prefix):
            return kind()
    if state == "42501":
        return errors.PrivilegeMissing(f"{getattr(diagnostic, 'message_primary', 'denied')}")
    if state[:2] in {"22", "23", "54"} or state == "42704":
        return errors.InvalidInput(
            f"PostgreSQL refused a value ({state}{', ' + constraint if constraint else ''})"
        )
    return errors.SupersedeError(f"PostgreSQL answered with error {state}: {type(error).__name__}")


def _reason(error: BaseException) -> str:
    """The driver's reason in one line. It names host, user and database, never a password."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "failed" in line or "refused" in line), (lines or ["lost"])[0])


def check_server(connection: sa.Connection) -> None:
    """Refuse a server that cannot hold the promises.

    :raises ServerUnsupported: for PostgreSQL below 17, or a database that is not UTF-8.
    """
    version, encoding = connection.execute(
        sa.text("select current_setting('server_version_num')::int, current_setting('server_encoding')")
    ).one()
    if version < MINIMUM_SERVER * 10_000:
        raise errors.ServerUnsupported(
            f"this is PostgreSQL {version // 10_000}; supersede needs {MINIMUM_SERVER} or newer"
        )
    if encoding != "UTF8":
        raise errors.ServerUnsupported(
            f"this database is encoded as {encoding}; create one with encoding 'UTF8'"
        )


def check_extensions(connection: sa.Connection) -> None:
    """Refuse a database that lacks an extension.

    :raises ServerUnsupported: naming what is missing or too old.
    """
    rows = connection.execute(
        sa.text("select extname, extversion from pg_catalog.pg_extension where extname = any (:n)"),
        {"n": list(EXTENSIONS)},
    )
    found: dict[str, str] = {row[0]: row[1] for row in rows}
    missing = [name for name in EXTENSIONS if name not in found]
    if missing:
        raise errors.ServerUnsupported(
            f"extension {', '.join(missing)} is missing in this database; run `supersede init` on it"
        )
    if tuple(int(part) for part in found["vector"].split(".")[:2]) < MINIMUM_VECTOR:
        raise errors.ServerUnsupported(
            f"pgvector {found['vector']} is too old; supersede needs "
            f"{'.'.join(map(str, MINIMUM_VECTOR))} or newer: ALTER EXTENSION vector UPDATE"
        )
