"""What erasing leaves in the files of a database: dead rows, dead index entries, statistics."""

from __future__ import annotations

import sqlalchemy as sa

from supersede import engine as db
from supersede import migrate
from supersede.errors import Conflict, PrivilegeMissing
from supersede.models import Frozen

# Those that hold what a fact says, or what is made of it.
TABLES = ("fact", "fact_ref", "fact_version", "evidence", "operation", "embedding", "contested")

# A row that some snapshot of this database, or of a replica, might still see is copied with the living ones.
_STILL_SEEING = """
with newest as (select min(age(e.xmin)) as age from supersede.erasure e)
select 'session ' || a.pid from pg_catalog.pg_stat_activity a, newest
where coalesce(a.datname, current_database()) = current_database() and a.pid <> pg_backend_pid()
  and age(a.backend_xmin) >= newest.age
union all
select 'prepared transaction ' || p.gid from pg_catalog.pg_prepared_xacts p, newest
where p.database = current_database() and age(p.transaction) >= newest.age
union all
select 'replication slot ' || s.slot_name from pg_catalog.pg_replication_slots s, newest
where age(s.xmin) >= newest.age
"""
_MAY = """
select bool_and(has_table_privilege(format('supersede.%I', t), 'MAINTAIN'))
from unnest(cast(:tables as text[])) as t
"""
_OWNS_DATABASE = """
select pg_has_role(d.datdba, 'USAGE') from pg_catalog.pg_database d where d.datname = current_database()
"""
_CLEAR_STATISTICS = """
select pg_clear_attribute_stats(schemaname, tablename, attname, inherited)
from pg_catalog.pg_stats where schemaname = 'supersede'
"""
_DROP_STATISTICS = """
delete from pg_catalog.pg_statistic s using pg_catalog.pg_class c
where c.oid = s.starelid and c.relnamespace = 'supersede'::regnamespace
"""


class Scrubbed(Frozen):
    """What a scrub rewrote.

    ``statistics``: whether the planner's samples, which hold values, were cleared and their table rewritten;
    it takes the owner of the database (and before PostgreSQL 18 a superuser). ``checkpointed``: whether the
    old files were given up at once, and not at the next checkpoint; it takes the role ``pg_checkpoint``.
    """

    tables: tuple[str, ...]
    statistics: bool
    checkpointed: bool


def scrub(url: str) -> Scrubbed:
    """Rewrite the tables that held content, so that no file of the database keeps what was erased.

    Each table is locked while it is rewritten, and needs as much room again. For the owner; whether a session
    of another user still sees what was erased is told to a member of ``pg_read_all_stats`` alone.

    :raises PrivilegeMissing: if this user may not.
    :raises Conflict: if a session still sees what was erased, or holds a table.
    """
    engine = db.make_engine(url)
    try:
        with (
            db.translated_errors(),
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            migrate.check_revision(connection)
            return _scrub(connection)
    finally:
        engine.dispose()


def _scrub(connection: sa.Connection) -> Scrubbed:
    if not connection.execute(sa.text(_MAY), {"tables": list(TABLES)}).scalar_one():
        raise PrivilegeMissing("scrub rewrites the tables, which only their owner may")
    # Outside a transaction the settings of our sessions do not last.
    connection.exec_driver_sql("set lock_timeout = '60s'")
    seeing = connection.execute(sa.text(_STILL_SEEING)).scalars().all()
    if seeing:
        raise Conflict(f"what was erased is still seen by {', '.join(seeing)}; end it, and scrub again")
    cleared = _clear_statistics(connection)
    for table in TABLES:
        connection.exec_driver_sql(f"vacuum (full, analyze) supersede.{table}")
    if cleared:
        connection.exec_driver_sql("vacuum (full) pg_catalog.pg_statistic")
    return Scrubbed(tables=TABLES, statistics=cleared, checkpointed=_allowed(connection, "checkpoint"))


def _clear_statistics(connection: sa.Connection) -> bool:
    """An ANALYZE of a table that became empty would leave its old samples."""
    if not connection.execute(sa.text(_OWNS_DATABASE)).scalar_one():
        return False
    version = connection.execute(sa.text("select current_setting('server_version_num')::int")).scalar_one()
    return _allowed(connection, _CLEAR_STATISTICS if version >= 180_000 else _DROP_STATISTICS)


def _allowed(connection: sa.Connection, statement: str) -> bool:
    try:
        connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":
            raise
        return False
    return True
