"""What facts say and how they hang together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from supersede.periods import When
from supersede.queries.scope import Scope, Statement, among, current, known
from supersede.schema import (
    INSTANT,
    embedding,
    evidence,
    fact,
    fact_ref,
    fact_version,
    operation,
    supersedes,
)

# The one form of an id that the SQL verbs know, too.
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def details(scope: Scope, ids: Sequence[UUID], *, valid_at: When) -> Statement:
    """The content of facts, with the periods in which they are current, earliest first: none, or one.

    Where ``valid_at`` is a period, all that overlap it.
    """
    rows = scope.rows()
    held = sa.func.array(
        sa.select(fact_version.c.valid_time)
        .where(current(rows, valid_at))
        .order_by(fact_version.c.valid_time)
        .correlate(fact, rows)
        .scalar_subquery(),
        type_=pg.ARRAY(pg.TSTZRANGE),
    )
    return (
        sa.select(fact, held.label("held"))
        .select_from(rows.join(fact, known(rows)))
        .where(among(fact.c.fact_id, ids))
    )


def vectors(scope: Scope, ids: Sequence[UUID], space_id: int | None) -> Statement:
    """The vectors of facts in a space, and whether the embedder saw all of the claim."""
    rows = scope.rows()
    return sa.select(
        embedding.c.namespace, embedding.c.fact_id, embedding.c.vector, embedding.c.truncated
    ).select_from(
        rows.join(
            embedding,
            sa.and_(
                embedding.c.namespace == rows.c.namespace,
                embedding.c.stamp <= rows.c.head,
                embedding.c.space_id == space_id,
                among(embedding.c.fact_id, ids),
            ),
        )
    )


def refs(scope: Scope, ids: Sequence[UUID]) -> Statement:
    """The refs of facts that were known by then, first given first."""
    rows = scope.rows()
    return (
        sa.select(fact_ref.c.namespace, fact_ref.c.fact_id, fact_ref.c.ref)
        .join(
            rows,
            sa.and_(fact_ref.c.namespace == rows.c.namespace, fact_ref.c.stamp <= rows.c.known_at),
        )
        .where(among(fact_ref.c.fact_id, ids))
        .order_by(fact_ref.c.stamp, fact_ref.c.ref)
    )


def sources(scope: Scope, ids: Sequence[UUID]) -> Statement:
    """The evidence of facts that was known by then, newest assertion first."""
    rows = scope.rows()
    return (
        sa.select(evidence)
        .join(
            rows,
            sa.and_(evidence.c.namespace == rows.c.namespace, evidence.c.stamp <= rows.c.known_at),
        )
        .where(among(evidence.c.fact_id, ids))
        .order_by(
            evidence.c.asserted_at.desc().nulls_last(),
            evidence.c.stamp.desc(),
            evidence.c.source_uri,
        )
    )


def edges(scope: Scope, ids: Sequence[UUID], *, side: str) -> Statement:
    """The edges known by then whose new (or old) end is among ``ids``, oldest first.

    :param side: ``new`` or ``old``: which end the ids are.
    """
    rows = scope.rows()
    end = {"new": supersedes.c.new_fact_id, "old": supersedes.c.old_fact_id}[side]
    other = {"new": supersedes.c.old_fact_id, "old": supersedes.c.new_fact_id}[side]
    return (
        sa.select(supersedes)
        .join(
            rows,
            sa.and_(supersedes.c.namespace == rows.c.namespace, supersedes.c.stamp <= rows.c.known_at),
        )
        .join(fact, sa.and_(fact.c.namespace == supersedes.c.namespace, fact.c.fact_id == other))
        .where(among(end, ids))
        .order_by(fact.c.stamp, supersedes.c.stamp, other)
    )


def versions(name: str, fact_id: UUID) -> Statement:
    """All rectangles of a fact with the verbs that opened and closed each, oldest first."""
    opened, closed = operation.alias("opened"), operation.alias("closed")
    return (
        sa.select(fact_version.c.valid_time, fact_version.c.tx_time, opened.c.verb, closed.c.verb)
        .outerjoin(
            opened,
            sa.and_(
                opened.c.namespace == fact_version.c.namespace,
                opened.c.stamp == sa.func.lower(fact_version.c.tx_time),
            ),
        )
        .outerjoin(
            closed,
            sa.and_(
                closed.c.namespace == fact_version.c.namespace,
                closed.c.stamp == sa.func.upper(fact_version.c.tx_time),
            ),
        )
        .where(fact_version.c.namespace == name, fact_version.c.fact_id == fact_id)
        .order_by(sa.func.lower(fact_version.c.tx_time), fact_version.c.valid_time)
    )


def resolve(name: str, wanted: str) -> Statement:
    """The id of a fact named by its id or a ref; no row where there is none."""
    by_ref = sa.select(fact_ref.c.fact_id).where(fact_ref.c.namespace == name, fact_ref.c.ref == wanted)
    if not _ID.fullmatch(wanted):
        return by_ref
    fact_id = UUID(wanted)
    by_id = sa.select(fact.c.fact_id).where(fact.c.namespace == name, fact.c.fact_id == fact_id)
    return sa.union_all(by_id, by_ref).limit(1)  # type: ignore[return-value]


def changes(name: str, known_from: datetime, known_to: datetime) -> sa.TextualSelect:
    """Facts whose validity was believed otherwise at the second instant than at the first.

    Rows: fact id, claim, validity gained, validity lost; by the stamp of the first change between.
    """
    return (
        sa.text(
            """
            with held as (
                select v.fact_id,
                       coalesce(range_agg(v.valid_time) filter (
                           where v.tx_time @> cast(:known_from as timestamptz)), '{}') as before,
                       coalesce(range_agg(v.valid_time) filter (
                           where v.tx_time @> cast(:known_to as timestamptz)), '{}') as after,
                       min(case when lower(v.tx_time) > :known_from then lower(v.tx_time)
                                else upper(v.tx_time) end) as since
                from supersede.fact_version v
                where v.namespace = :namespace
                  and v.tx_time && tstzrange(:known_from, :known_to, '[]')
                group by v.fact_id)
            select f.fact_id, f.claim, held.after - held.before as gained, held.before - held.after as lost
            from held
            join supersede.fact f on f.namespace = :namespace and f.fact_id = held.fact_id
            where held.before <> held.after
            order by held.since, f.fact_id
            """
        )
        .bindparams(
            sa.bindparam("known_from", known_from, INSTANT),
            sa.bindparam("known_to", known_to, INSTANT),
            sa.bindparam("namespace", name),
        )
        .columns(fact_id=sa.Uuid, claim=sa.Text, gained=pg.TSTZMULTIRANGE, lost=pg.TSTZMULTIRANGE)
    )


def walk(scope: Scope, fact_id: UUID, *, down: bool) -> Statement:
    """Every edge up (or down) the chains of supersessions from a fact, each once, the newest first.

    Without depths, which would tell the paths to a fact apart: a braid of edges has more of those than can
    be walked.

    :param down: towards what superseded the fact; else towards what it superseded.
    """
    rows = scope.rows()
    here, there = (
        (supersedes.c.old_fact_id, supersedes.c.new_fact_id)
        if down
        else (supersedes.c.new_fact_id, supersedes.c.old_fact_id)
    )
    known = sa.and_(
        supersedes.c.namespace == rows.c.namespace,
        supersedes.c.stamp <= rows.c.known_at,
        supersedes.c.reason != "amendment",
    )
    chain = (
        sa.select(
            there.label("fact_id"),
            here.label("next_to"),
            supersedes.c.reason,
            supersedes.c.stamp,
        )
        .join(rows, known)
        .where(here == fact_id)
        .cte("chain", recursive=True)
    )
    chain = chain.union(
        sa.select(there, here, supersedes.c.reason, supersedes.c.stamp)
        .join(rows, known)
        .join(chain, here == chain.c.fact_id)
    )
    return sa.select(chain).order_by(chain.c.stamp.desc(), chain.c.next_to, chain.c.fact_id)
