"""Statements about the store's own state."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from supersede.queries.scope import Statement
from supersede.schema import (
    INSTANT,
    configuration,
    embedding,
    fact,
    namespace,
    operation,
)


def state() -> Statement:
    """The database's time, and the text-search configuration that was chosen at init."""
    return sa.select(
        sa.func.supersede.clock(type_=INSTANT),
        sa.select(sa.cast(configuration.c.text_search, sa.Text)).scalar_subquery(),
    )


def heads(names: Sequence[str]) -> Statement:
    """Per existing namespace its head and the stamp of its first operation."""
    first = (
        sa.select(sa.func.min(operation.c.stamp))
        .where(operation.c.namespace == namespace.c.namespace)
        .scalar_subquery()
    )
    return sa.select(namespace.c.namespace, namespace.c.head, first).where(
        namespace.c.namespace.in_(list(names))
    )


def unfilled(name: str, space_id: int) -> Statement:
    """Facts of a namespace that have no vector in a space, oldest first: id and claim."""
    return (
        sa.select(fact.c.fact_id, fact.c.claim)
        .outerjoin(
            embedding,
            sa.and_(
                embedding.c.namespace == fact.c.namespace,
                embedding.c.fact_id == fact.c.fact_id,
                embedding.c.space_id == space_id,
            ),
        )
        .where(fact.c.namespace == name, fact.c.claim.is_not(None), embedding.c.vector.is_(None))
        .order_by(fact.c.stamp, fact.c.fact_id)
    )
