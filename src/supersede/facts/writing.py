"""Runs the write verbs, each in one round trip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from supersede import queries
from supersede.facts.rows import NO_VECTOR, Space, Vector
from supersede.results import Recorded
from supersede.undone import Undoing

# Verbs whose SQL function takes a vector.
_MAKES_FACTS = frozenset({"remember", "supersede", "amend"})
_REPLAY = sa.text(
    "select supersede.replay(cast(:event as jsonb), :namespace, :actor, cast(:vector as halfvec), "
    "cast(:space as smallint), :truncated, :out_of_order)"
)


def write(
    connection: sa.Connection,
    verb: str,
    event: Mapping[str, Any],
    *,
    namespace: str,
    actor: str | None,
    vector: Vector = NO_VECTOR,
) -> Recorded:
    """Run one verb and return what it did."""
    parameters: dict[str, Any] = {
        "event": json.dumps(event, ensure_ascii=False),
        "namespace": namespace,
        "actor": actor,
    }
    call = f'supersede."{verb}"(cast(:event as jsonb), :namespace, :actor'
    if verb in _MAKES_FACTS:
        call += ", cast(:vector as halfvec), cast(:space as smallint), :truncated"
        parameters |= {
            "vector": vector.text,
            "space": vector.space_id,
            "truncated": vector.truncated,
        }
    result = connection.execute(sa.text(f"select {call})"), parameters).scalar_one()
    return recorded(result, truncated=vector.truncated)


def replay(
    connection: sa.Connection,
    event: Mapping[str, Any],
    *,
    namespace: str,
    actor: str | None,
    vector: Vector,
    out_of_order: str,
) -> Recorded:
    """Record one event of a history, with its own recording time."""
    result = connection.execute(
        _REPLAY,
        {
            "event": json.dumps(event, ensure_ascii=False),
            "namespace": namespace,
            "actor": actor,
            "vector": vector.text,
            "space": vector.space_id,
            "truncated": vector.truncated,
            "out_of_order": out_of_order,
        },
    ).scalar_one()
    return recorded(result, truncated=vector.truncated)


def undo(
    connection: sa.Connection, event: Mapping[str, Any], *, namespace: str, actor: str | None
) -> Undoing:
    """Undo what an event selects, or say what would be done, and return which."""
    result = connection.execute(
        sa.text("select supersede.undo(cast(:event as jsonb), :namespace, :actor)"),
        {"event": json.dumps(event, ensure_ascii=False), "namespace": namespace, "actor": actor},
    ).scalar_one()
    return Undoing.model_validate(result)


def recorded(result: Mapping[str, Any], *, truncated: bool = False) -> Recorded:
    """The result of a verb, as a model."""
    return Recorded.model_validate({**result, "truncated": truncated})


def fill_embeddings(
    connection: sa.Connection,
    rows: Sequence[tuple[UUID, str, bool]],
    *,
    namespace: str,
    space: Space,
    actor: str | None,
) -> int:
    """Store vectors for facts that have none; returns how many were missing."""
    return int(
        connection.execute(
            sa.text(
                "select supersede.fill_embeddings(:namespace, cast(:space as smallint), "
                "cast(:ids as uuid[]), cast(cast(:vectors as text[]) as halfvec[]), "
                "cast(:truncated as boolean[]), :actor)"
            ),
            {
                "namespace": namespace,
                "space": space.id,
                "ids": [row[0] for row in rows],
                "vectors": [row[1] for row in rows],
                "truncated": [row[2] for row in rows],
                "actor": actor,
            },
        ).scalar_one()
    )


def unfilled(
    connection: sa.Connection,
    *,
    namespace: str,
    space: Space,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> list[tuple[UUID, str, datetime]]:
    """Facts without a vector in a space, oldest first: id, claim and stamp."""
    rows = connection.execute(queries.unfilled(namespace, space.id, after).limit(limit))
    return [(row[0], row[1], row[2]) for row in rows]
