"""Connections: how they are made, what every session is set to, which servers are refused.

Every setting is made with SET LOCAL at the start of a transaction, so nothing leaks through a pooler, and
whatever the role or the database says, answers come out the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

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
_LOCKED = (
    "another session has held what this call must lock for longer than lock_timeout; nothing was changed: "
    "repeat the call, and look in pg_stat_activity for a session that stands 'idle in transaction'"
)
# Of the statement or the session: what to change where the limit is too short.
_TIME_LIMITS = {
    "57014": "raise the statement_timeout of the role or the database",
    "25P03": "keep the transaction() block shorter",
    "25P04": "raise the transaction_timeout of the role or the database",
}
_UNKNOWN_STATES = {"08007", "40003"}
_UNKNOWN = (
    "the connection was lost while this was being committed: it was recorded in full, or not at all. "
    "Repeat the same call with the same handle (or ref): it finds its own write, or records it now; "
    "without either, look first whether it is there"
)
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
# A peer that never answers, or is gone without a word, is noticed; a URL may say otherwise.
_PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "60",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "120000",
}
_SNAPSHOT: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def make_engine(url: str | sa.URL) -> sa.Engine:
    """An engine whose transactions are READ COMMITTED and set up as this package needs them.

    :raises ServerUnavailable: if the URL cannot be read; the message does not repeat it.
    """
    engine = sa.create_engine(_patient(url), **_OPTIONS)
    _prepare_sessions(engine)
    return engine


def make_async_engine(url: str | sa.URL) -> AsyncEngine:
    """As :func:`make_engine`, for asyncio.

    :raises ServerUnavailable: if the URL cannot be read; the message does not repeat it.
    """
    engine = create_async_engine(_patient(url), **_OPTIONS)
    _prepare_sessions(engine.sync_engine)
    return engine


def _patient(url: str | sa.URL) -> sa.URL:
    """The URL with limits to how long the network may be silent, where it says none itself."""
    said = normalise_url(url) if isinstance(url, str) else url
    if "service" in said.query or "PGSERVICE" in os.environ:
        return said  # whose file may hold them
    limits = dict(_PATIENCE)
    if "PGCONNECT_TIMEOUT" in os.environ:
        del limits["connect_timeout"]
    return said.set(query={**limits, **said.query})


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

    def forget_read_only(connection: Any, record: Any) -> None:  # noqa: ANN401 - of the driver
        # A read leaves "not read only" behind, which would override what the database is set to, and which
        # a replica refuses with a code that does not say so.
        if connection is not None and not record.driver_connection.closed:
            connection.set_read_only(None)

    sa.event.listen(engine, "begin", set_session)
    sa.event.listen(engine, "checkin", forget_read_only)


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
    with translated_errors(), engine.connect() as connection, connection.begin() as transaction:
        yield connection
        with _committing(connection):
            transaction.commit()


@asynccontextmanager
async def writing_async(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """As :func:`writing`, over an async connection. Cancelled before the commit, it leaves nothing."""
    with translated_errors():
        async with engine.connect() as connection, connection.begin() as transaction:
            yield connection
            with _committing(connection.sync_connection):
                await transaction.commit()


@contextmanager
def _committing(connection: sa.Connection | None) -> Iterator[None]:
    """Around a commit: where the connection is lost in it, nobody can tell whether it was carried out.

    :raises ServerUnavailable: if the connection had been lost before: nothing was recorded.
    :raises OutcomeUnknown: if it is lost meanwhile.
    """
    if connection is None or connection.invalidated or _is_closed(connection):
        raise errors.ServerUnavailable("the connection was lost before the commit: nothing was recorded")
    try:
        yield
    except (sa.exc.DBAPIError, psycopg.Error) as error:
        cause = _driver_error(error)
        state: str | None = getattr(cause, "sqlstate", None)
        # Idle for too long is said of the time before the commit arrived.
        if isinstance(cause, psycopg.OperationalError) and (
            state is None or state.startswith(("08", "57P", "25P04"))
        ):
            raise errors.OutcomeUnknown(_UNKNOWN) from cause
        raise


def _is_closed(connection: sa.Connection) -> bool:
    return bool(getattr(connection.connection.driver_connection, "closed", False))


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
    async with writing_async(engine) as connection:
        return await connection.run_sync(work)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Driver errors come out as this package's, with the driver's own as the cause."""
    try:
        yield
    except (sa.exc.DBAPIError, psycopg.Error) as error:
        cause = _driver_error(error)
        raise translate(cause) from cause
    except sa.exc.PendingRollbackError as error:
        raise errors.ServerUnavailable(
            "the connection was lost earlier in this transaction: nothing of it was recorded"
        ) from error
    except sa.exc.TimeoutError as error:
        raise errors.ServerUnavailable("all connections of this store's pool are in use") from error


def _driver_error(error: sa.exc.DBAPIError | psycopg.Error) -> BaseException:
    orig = getattr(error, "orig", None)
    return orig if isinstance(orig, psycopg.Error) else error


def translate(error: BaseException) -> errors.SupersedeError:
    """The error of this package that a driver error stands for; values are never repeated from it."""
    state: str | None = getattr(error, "sqlstate", None)
    diagnostic = getattr(error, "diag", None)
    if state is None and isinstance(error, psycopg.DataError):
        return errors.InvalidInput("a value cannot be put into the form that PostgreSQL reads, or read back")
    if state in _UNKNOWN_STATES:
        return errors.OutcomeUnknown(_UNKNOWN)
    if state in _TIME_LIMITS:
        said = getattr(diagnostic, "message_primary", None) or "a time limit of the server"
        return errors.TimedOut(f"{said}; nothing was changed: repeat the call, or {_TIME_LIMITS[state]}")
    if state is None or state.startswith(("08", "28", "3D", "57P")):
        return errors.ServerUnavailable(f"no connection to PostgreSQL: {_reason(error)}")
    if state in _BY_STATE:
        detail = getattr(diagnostic, "message_detail", None)
        details: dict[str, Any] = json.loads(detail) if detail else {}
        return _BY_STATE[state](getattr(diagnostic, "message_primary", None), details=details)
    if state == "55P03":
        return errors.Conflict(_LOCKED, details={"sqlstate": state})
    if state in _CONFLICT_STATES:
        return errors.Conflict(details={"sqlstate": state})
    constraint = getattr(diagnostic, "constraint_name", None) or ""
    for prefix, kind in _BY_CONSTRAINT.items():
        if constraint.startswith(prefix):
            return kind()
    if state == "25006":
        return errors.ServerReadOnly()
    if state.startswith("53"):
        said = getattr(diagnostic, "message_primary", None) or state
        return errors.ServerFull(f"the server has no room left ({said}); nothing was changed: make room")
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
