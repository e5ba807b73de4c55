"""Is this database fit, and is anything going wrong in it? Looks, and changes nothing."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from supersede import engine as db
from supersede import errors, migrate
from supersede.logs import get_logger
from supersede.periods import format_instant
from supersede.schema import HEAD_REVISION

State = Literal["ok", "warn", "fail", "unknown"]

# Below it, a vacuum can corrupt an HNSW index, so that approximate ranking stays off.
SOUND_VECTOR = (0, 8, 4)
LONG_AGO = timedelta(hours=1)
_log = get_logger(__name__)


class Finding(NamedTuple):
    """One thing looked at: how it is, and what to do where it is not well.

    ``state``: ``ok``; ``warn``, it works but look at it; ``fail``, mend it; ``unknown``, this user may not
    see it.
    """

    name: str
    state: State
    said: str
    advice: str | None = None


def examine(url: str | sa.URL, *, version: str) -> list[Finding]:
    """Look at a database as one who may only read can.

    :param version: of this package, which is the first thing anybody asks.
    :raises ServerUnavailable: if no server answers.
    """
    engine = db.make_engine(url)
    found = [Finding("versions", "ok", f"supersede {version}, Python {platform.python_version()}")]
    try:
        for check in _SERVER:
            found.extend(_looked(engine, check))
        schema = _looked(engine, _schema)
        found.extend(schema)
        if all(finding.state == "ok" for finding in schema):
            for check in _STORE:
                found.extend(_looked(engine, check))
    finally:
        engine.dispose()
    return found


Check = Callable[[sa.Connection], Iterator[Finding]]


def _looked(engine: sa.Engine, check: Check) -> list[Finding]:
    """What a check finds, each in a transaction of its own: one that may not look spoils no other."""
    try:
        with db.reading(engine) as connection:
            return list(check(connection))
    except errors.PrivilegeMissing as error:
        return [Finding(_name(check), "unknown", f"this user may not see it: {error.message}")]


def _name(check: Check) -> str:
    return check.__name__.strip("_").replace("_", " ")


def _rows(connection: sa.Connection, statement: str, **parameters: Any) -> list[Any]:  # noqa: ANN401
    return list(connection.execute(sa.text(statement), parameters))


def _row(connection: sa.Connection, statement: str, **parameters: Any) -> Any:  # noqa: ANN401
    return connection.execute(sa.text(statement), parameters).one()


# --- the server


def _server(connection: sa.Connection) -> Iterator[Finding]:
    row = _row(
        connection,
        "select current_setting('server_version') as version, "
        "current_setting('server_version_num')::int as number, "
        "current_setting('server_encoding') as encoding, pg_is_in_recovery() as replica",
    )
    fit = row.number >= db.MINIMUM_SERVER * 10_000
    yield Finding(
        "server",
        "ok" if fit else "fail",
        f"PostgreSQL {row.version}" + (", a replica: it answers by its own head" if row.replica else ""),
        None if fit else f"upgrade it to {db.MINIMUM_SERVER} or newer",
    )
    if row.encoding != "UTF8":
        yield Finding("encoding", "fail", row.encoding, "make a database with encoding 'UTF8'")


def _extensions(connection: sa.Connection) -> Iterator[Finding]:
    found = {
        row.extname: row
        for row in _rows(
            connection,
            "select e.extname, e.extversion, n.nspname from pg_extension e "
            "join pg_namespace n on n.oid = e.extnamespace",
        )
    }
    missing = [name for name in db.EXTENSIONS if name not in found]
    if missing:
        yield Finding("extensions", "fail", f"missing: {', '.join(missing)}", "run `supersede init`")
        return
    vector = found["vector"]
    said = ", ".join(f"{n} {found[n].extversion} in {found[n].nspname}" for n in db.EXTENSIONS)
    parts = tuple(int(part) for part in vector.extversion.split(".")[:3])
    if parts < SOUND_VECTOR:
        yield Finding(
            "extensions",
            "warn",
            f"{said}; below 0.8.4 a vacuum can corrupt HNSW indexes, so ranking stays exact",
            "install a newer pgvector, then ALTER EXTENSION vector UPDATE",
        )
    else:
        yield Finding("extensions", "ok", said)


def _roles(connection: sa.Connection) -> Iterator[Finding]:
    row = _row(
        connection,
        "select current_user as name, r.rolsuper, r.rolbypassrls, "
        "(select count(*) from pg_roles where rolname = any (:roles)) as roles "
        "from pg_roles r where r.rolname = current_user",
        roles=list(migrate.ROLES),
    )
    kind = "superuser" if row.rolsuper else "bypasses row security" if row.rolbypassrls else None
    said = f"connected as {row.name}" + (f" ({kind})" if kind else "")
    if row.roles < len(migrate.ROLES):
        yield Finding(
            "roles",
            "warn",
            f"{said}; {len(migrate.ROLES) - row.roles} of the roles of the store are missing",
            "have somebody who may create roles run what `supersede init` prints, then run it again",
        )
    else:
        yield Finding("roles", "ok", said)


def _durability(connection: sa.Connection) -> Iterator[Finding]:
    off = [
        row.name
        for row in _rows(
            connection,
            "select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') "
            "and setting = 'off' order by name",
        )
    ]
    if off:
        lost = "a crash may corrupt it" if off != ["synchronous_commit"] else "a crash loses the last writes"
        yield Finding("durability", "warn", f"{', '.join(off)} off: {lost}", f"switch {', '.join(off)} on")
    else:
        yield Finding("durability", "ok", "what was committed survives a crash")


def _collation(connection: sa.Connection) -> Iterator[Finding]:
    row = _row(
        connection,
        "select d.datname, d.datcollversion, pg_database_collation_actual_version(d.oid) as actual "
        "from pg_database d where d.datname = current_database()",
    )
    if row.datcollversion != row.actual:
        yield Finding(
            "collation",
            "warn",
            f"the database was made with version {row.datcollversion}, the system now has {row.actual}; "
            "the keys of the store do not depend on it, other indexes may",
            "REINDEX DATABASE, then ALTER DATABASE ... REFRESH COLLATION VERSION",
        )
    else:
        yield Finding("collation", "ok", f"version {row.actual or 'none'}")


def _sessions(connection: sa.Connection) -> Iterator[Finding]:
    row = _row(
        connection,
        "select now() as now, min(a.xact_start) as oldest, "
        "count(*) filter (where a.state like 'idle in transaction%' "
        "and now() - a.xact_start > :long) as idle, "
        "(select count(*) from pg_prepared_xacts x where now() - x.prepared > :long) as prepared, "
        "pg_has_role('pg_read_all_stats', 'usage') as sees_all "
        "from pg_stat_activity a where a.datname = current_database() and a.pid <> pg_backend_pid()",
        long=LONG_AGO,
    )
    age = row.now - row.oldest if row.oldest else timedelta(0)
    said = f"oldest transaction: {timedelta(seconds=int(age.total_seconds()))} ago" if age else "none is old"
    if row.idle:
        said += f"; {row.idle} session(s) do nothing in a transaction"
    if row.prepared:
        said += f"; {row.prepared} prepared transaction(s) wait for their second phase"
    if age > LONG_AGO or row.prepared:
        yield Finding(
            "sessions",
            "warn",
            f"{said}; vacuum cannot clean up behind it",
            "end it (pg_terminate_backend, ROLLBACK PREPARED), and set idle_in_transaction_session_timeout",
        )
    elif not row.sees_all:
        yield Finding("sessions", "unknown", "this user sees no transactions but its own")
    else:
        yield Finding("sessions", "ok", said)


def _indexes(connection: sa.Connection) -> Iterator[Finding]:
    broken = [
        row.name
        for row in _rows(
            connection,
            "select format('%I.%I', n.nspname, c.relname) as name from pg_index i "
            "join pg_class c on c.oid = i.indexrelid "
            "join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname = 'supersede' and not (i.indisvalid and i.indisready) order by 1",
        )
    ]
    if broken:
        yield Finding(
            "indexes",
            "fail",
            f"invalid, left behind by a build that failed: {', '.join(broken)}",
            "; ".join(f"REINDEX INDEX CONCURRENTLY {name}" for name in broken),
        )
    else:
        yield Finding("indexes", "ok", "all valid")


# --- the store


def _schema(connection: sa.Connection) -> Iterator[Finding]:
    revision = migrate.current_revision(connection)
    if revision == HEAD_REVISION:
        row = _row(connection, "select c.text_search::text as text_search from supersede.configuration c")
        yield Finding("schema", "ok", f"revision {HEAD_REVISION}, text search {row.text_search}")
    elif revision is None:
        yield Finding("schema", "fail", "this database is not prepared", "run `supersede init`")
    elif revision > HEAD_REVISION:
        yield Finding(
            "schema", "fail", f"revision {revision}, newer than {HEAD_REVISION}", "upgrade the package"
        )
    else:
        yield Finding(
            "schema",
            "fail",
            f"revision {revision}; this version needs {HEAD_REVISION}",
            "run `supersede init`",
        )


def _clock(connection: sa.Connection) -> Iterator[Finding]:
    rows = _rows(
        connection,
        "select n.namespace, n.head, supersede.clock() as clock from supersede.namespace n order by 1",
    )
    ahead = [row for row in rows if row.head > row.clock + timedelta(seconds=1)]
    for row in ahead:
        yield Finding(
            "clock",
            "warn",
            f"the head of namespace {row.namespace!r} ({format_instant(row.head)}) lies "
            f"{row.head - row.clock} ahead of the clock ({format_instant(row.clock)}): writes get stamps "
            "right after it until the clock has caught up",
            "set the server's clock right",
        )
    if not ahead:
        yield Finding("clock", "ok", "no head lies ahead of it")


def _facts(connection: sa.Connection) -> Iterator[Finding]:
    row = _row(
        connection,
        "select (select count(*) from supersede.namespace) as namespaces, "
        "(select count(*) from supersede.fact) as facts, "
        "(select count(*) from supersede.fact_version_open) as open, "
        "(select count(*) from supersede.fact_version_closed) as closed, "
        "(select count(*) from supersede.operation) as operations, "
        "(select count(distinct (e.namespace, e.fact_id)) from supersede.erasure e) as erased",
    )
    yield Finding(
        "facts",
        "ok",
        f"{row.facts:,} in {row.namespaces:,} namespace(s): {row.open:,} open versions, {row.closed:,} "
        f"closed, {row.operations:,} operations, {row.erased:,} erased",
    )


def _embeddings(connection: sa.Connection) -> Iterator[Finding]:
    rows = _rows(
        connection,
        "select s.model, s.dimensions, s.active, f.namespace, count(f.fact_id) as facts, "
        "count(e.fact_id) as embedded "
        "from supersede.embedding_space s "
        "left join supersede.fact f on f.claim is not null "
        "left join supersede.embedding e on e.namespace = f.namespace and e.fact_id = f.fact_id "
        "and e.space_id = s.id group by s.id, f.namespace order by s.active desc, s.model, f.namespace",
    )
    if not rows:
        yield Finding(
            "embeddings", "warn", "no embedding space: words alone rank", "`supersede init` with an embedder"
        )
    for row in rows:
        kind = "active" if row.active else "not active"
        space = f"{row.model} ({row.dimensions} dimensions, {kind})"
        if row.namespace is None:
            yield Finding("embeddings", "ok", f"{space}: no facts yet")
            continue
        lacking = row.facts - row.embedded
        said = f"{space}, namespace {row.namespace!r}: {row.embedded:,} of {row.facts:,} facts"
        if row.active and lacking:
            yield Finding(
                "embeddings",
                "warn",
                f"{said}; {lacking:,} wait for their vector",
                f"`supersede embed --namespace {row.namespace}`",
            )
        else:
            yield Finding("embeddings", "ok", said)


_SERVER: tuple[Check, ...] = (
    _server,
    _extensions,
    _roles,
    _durability,
    _collation,
    _sessions,
    _indexes,
)
_STORE: tuple[Check, ...] = (_clock, _facts, _embeddings)
