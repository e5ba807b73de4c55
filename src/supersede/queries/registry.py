"""Statements about the store's own state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from supersede.queries.scope import Statement
from supersede.schema import (
    INSTANT,
    configuration,
    embedding,
    embedding_space,
    fact,
    namespace,
)


def state() -> Statement:
    """The database's time, and the text-search configuration that was chosen at init."""
    return sa.select(
        sa.func.supersede.clock(type_=INSTANT),
        sa.select(sa.cast(configuration.c.text_search, sa.Text)).scalar_subquery(),
    )


def heads(names: Sequence[str]) -> Statement:
    """Per existing namespace its head and the stamp of its first fact."""
    first = (
        sa.select(sa.func.min(fact.c.stamp))
        .where(fact.c.namespace == namespace.c.namespace)
        .scalar_subquery()
    )
    return sa.select(namespace.c.namespace, namespace.c.head, first).where(
        namespace.c.namespace.in_(list(names))
    )


def has_seen(name: str, head: datetime) -> Statement:
    """Refused, by name, where this server does not hold what a basis saw."""
    return sa.select(sa.func.supersede.has_seen(name, sa.cast(head, INSTANT)))


def unfilled(name: str, space_id: int, after: tuple[datetime, UUID] | None) -> Statement:
    """Facts of a namespace that have no vector in a space, oldest first: id, claim and stamp.

    :param after: stamp and id of the last one seen, to go on behind it.
    """
    seen = [] if after is None else [sa.tuple_(fact.c.stamp, fact.c.fact_id) > sa.tuple_(*after)]
    return (
        sa.select(fact.c.fact_id, fact.c.claim, fact.c.stamp)
        .outerjoin(
            embedding,
            sa.and_(
                embedding.c.namespace == fact.c.namespace,
                embedding.c.fact_id == fact.c.fact_id,
                embedding.c.space_id == space_id,
            ),
        )
        .where(fact.c.namespace == name, fact.c.claim.is_not(None), embedding.c.vector.is_(None), *seen)
        .order_by(fact.c.stamp, fact.c.fact_id)
    )


def namespaces() -> Statement:
    """All namespaces, in text order."""
    return sa.select(namespace.c.namespace).order_by(namespace.c.namespace)


def is_active(space_id: int) -> Statement:
    """Whether a space is the active one."""
    return sa.select(embedding_space.c.active).where(embedding_space.c.id == space_id)


def space_counts() -> Statement:
    """Per space and namespace: facts that have a vector in it, and facts that lack one."""
    held = sa.and_(
        embedding.c.namespace == fact.c.namespace,
        embedding.c.fact_id == fact.c.fact_id,
        embedding.c.space_id == embedding_space.c.id,
    )
    facts = (
        embedding_space.outerjoin(namespace, sa.true())
        .outerjoin(fact, sa.and_(fact.c.namespace == namespace.c.namespace, fact.c.claim.is_not(None)))
        .outerjoin(embedding, held)
    )
    embedded = sa.func.count(embedding.c.fact_id)
    return (
        sa.select(
            *embedding_space.c,
            namespace.c.namespace,
            embedded.label("embedded"),
            (sa.func.count(fact.c.fact_id) - embedded).label("missing"),
        )
        .select_from(facts)
        .group_by(embedding_space.c.id, namespace.c.namespace)
        .order_by(embedding_space.c.id, namespace.c.namespace)
    )
