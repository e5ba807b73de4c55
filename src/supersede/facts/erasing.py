"""Reads what is left of erased facts."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from supersede import queries
from supersede.errors import Erased
from supersede.facts.rows import Key
from supersede.models import Filters
from supersede.periods import format_instant
from supersede.queries import Scope
from supersede.schema import erasure


def erased_current(
    connection: sa.Connection, scope: Scope, *, filters: Filters, valid_at: datetime
) -> list[Key]:
    """Erased facts that were current, within the filters that can still be looked at."""
    rows = connection.execute(queries.erased_current(scope, filters=filters, valid_at=valid_at))
    return [(row[0], row[1]) for row in rows]


def erased_since(connection: sa.Connection, scope: Scope) -> set[str]:
    """Ids of facts that a basis could see and that were erased after its heads."""
    return {str(row[0]) for row in connection.execute(queries.erased_since(scope))}


def erased_at(connection: sa.Connection, key: Key) -> datetime | None:
    """When a fact was erased; None where it was not."""
    found: datetime | None = connection.execute(
        sa.select(sa.func.max(erasure.c.stamp)).where(
            erasure.c.namespace == key[0], erasure.c.fact_id == key[1]
        )
    ).scalar()
    return found


def refuse_erased(connection: sa.Connection, key: Key) -> None:
    """Raise where a fact has no content any more.

    :raises Erased: saying since when.
    """
    stamp = erased_at(connection, key)
    if stamp is not None:
        at = format_instant(stamp)
        raise Erased(
            f"fact {key[1]} was erased at {at}: its content was destroyed and does not come back; its "
            "history and its lineage show what is left",
            details={"fact": str(key[1]), "namespace": key[0], "erased_at": at},
        )
