"""The embedding spaces as a whole: how full each is, who moves to another one, and the switch itself."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from supersede import queries
from supersede.errors import Conflict, PrivilegeMissing
from supersede.facts.rows import Key, Space
from supersede.spaces import EmbeddingSpace, Filled

# Held while embeddings are moved: with 0 by the one that moves, and with the id of the space, to name it.
_MOVE_LOCK = 0x7375_706D
_CONFLICTS = ("55P03", "40P01")


def namespaces(connection: sa.Connection) -> list[str]:
    """All namespaces, in text order."""
    return list(connection.execute(queries.namespaces()).scalars())


def embedding_spaces(connection: sa.Connection) -> list[EmbeddingSpace]:
    """Every registered space with its counts per namespace, in the order in which they were registered."""
    found: dict[int, EmbeddingSpace] = {}
    for row in connection.execute(queries.space_counts()):
        space = found.setdefault(
            row.id,
            EmbeddingSpace(
                model=row.model,
                dimensions=row.dimensions,
                active=row.active,
                min_similarity=row.min_similarity,
                near_duplicate=row.near_duplicate,
                namespaces={},
            ),
        )
        if row.namespace is not None:
            space.namespaces[row.namespace] = Filled(embedded=row.embedded, missing=row.missing)
    return list(found.values())


def is_active(connection: sa.Connection, space: Space) -> bool:
    """Whether a space is the active one by now."""
    return bool(connection.execute(queries.is_active(space.id)).scalar())


def hold_move(guard: sa.Connection) -> None:
    """Be the one who moves embeddings in this database, until the transaction of ``guard`` ends.

    :raises PrivilegeMissing: for anybody but the owner of the tables.
    :raises Conflict: naming the model, if somebody else is moving them.
    """
    owns = "select has_table_privilege('supersede.embedding_space', 'insert, update')"
    if not guard.execute(sa.text(owns)).scalar():
        raise PrivilegeMissing(
            "only the owner of the tables may move embeddings to another space, as only the owner may "
            "prepare a database; a writer may fill in what facts lack"
        )
    # Nothing happens on this connection while vectors are computed, which may take hours.
    guard.execute(sa.text("select set_config('idle_in_transaction_session_timeout', '0', true)"))
    # One that was killed may still be on its way out.
    guard.execute(sa.text("select set_config('lock_timeout', '3s', true)"))
    try:
        with guard.begin_nested():
            guard.execute(sa.text("select pg_advisory_xact_lock(:lock, 0)"), {"lock": _MOVE_LOCK})
    except sa.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in _CONFLICTS:
            raise
        raise Conflict(_mover(guard)) from error


def name_move(guard: sa.Connection, space: Space) -> None:
    """Say to others which space embeddings are moved to."""
    guard.execute(sa.text("select pg_advisory_xact_lock(:lock, :id)"), {"lock": _MOVE_LOCK, "id": space.id})


def check_move(guard: sa.Connection) -> None:
    """See that the connection that stands for the move is still there.

    :raises ServerUnavailable: through the driver, if it is not.
    """
    guard.execute(sa.text("select 1"))


def _mover(guard: sa.Connection) -> str:
    row = guard.execute(
        sa.text(
            "select l.pid, s.model from pg_catalog.pg_locks l "
            "left join supersede.embedding_space s on s.id = l.objid::int "
            "where l.locktype = 'advisory' and l.database = ("
            "select d.oid from pg_catalog.pg_database d where d.datname = current_database()) "
            "and l.classid::bigint = :lock and l.objsubid = 2 and l.granted "
            "order by l.objid desc limit 1"
        ),
        {"lock": _MOVE_LOCK},
    ).one_or_none()
    to = f" to {row.model!r}" if row is not None and row.model is not None else ""
    by = f" (server process {row.pid})" if row is not None else ""
    return f"embeddings are being moved{to} already{by}; wait for that, nothing was changed"


def activate_space(
    connection: sa.Connection, space: Space, *, without: Sequence[Key], patience: str
) -> tuple[int, list[str]]:
    """Make a space the active one, unless facts lack a vector in it: how many, and in which namespaces.

    :param without: facts of which its model makes no vector.
    :param patience: how long to wait for writers, who wait behind it.
    """
    connection.execute(sa.text("select set_config('lock_timeout', :patience, true)"), {"patience": patience})
    row = connection.execute(
        sa.text(
            "select lacking, namespaces from supersede.activate_space("
            "cast(:space as smallint), cast(:names as text[]), cast(:ids as uuid[]))"
        ),
        {
            "space": space.id,
            "names": [name for name, _ in without],
            "ids": [fact_id for _, fact_id in without],
        },
    ).one()
    return row.lacking, row.namespaces
