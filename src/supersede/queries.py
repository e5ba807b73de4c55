"""Builders of statements: pure, they never execute. The reads of the store are all here.

Every read first fixes a :class:`Scope`: per namespace, what is known (``known_at``, clamped to the head) and
the head itself. It enters each statement as rows, so one plan serves any number of namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql as pg

from supersede.models import Filters
from supersede.schema import (
    INSTANT,
    configuration,
    embedding,
    evidence,
    fact,
    fact_ref,
    fact_version,
    namespace,
    operation,
    supersedes,
)

# ts_rank of a text that holds the only lexeme of a question: the unit of coverage.
FULL_MATCH = 0.0607927


@dataclass(frozen=True)
class Scope:
    """Which namespaces a read sees, and up to when: two lists in step with the first."""

    namespaces: Sequence[str]
    known_at: Sequence[datetime]
    heads: Sequence[datetime]

    def rows(self) -> sa.TableValuedAlias:
        """``(namespace, known_at, head)`` as a table to select from."""
        return sa.func.unnest(
            sa.cast(list(self.namespaces), pg.ARRAY(sa.Text)),
            sa.cast(list(self.known_at), pg.ARRAY(INSTANT)),
            sa.cast(list(self.heads), pg.ARRAY(INSTANT)),
        ).table_valued(
            sa.column("namespace", sa.Text),
            sa.column("known_at", INSTANT),
            sa.column("head", INSTANT),
            name="scope",
            joins_implicitly=True,
        ).render_derived()


def clock() -> sa.Select[tuple[datetime]]:
    """The database's time."""
    return sa.select(sa.func.supersede.clock(type_=INSTANT))


def heads(names: Sequence[str]) -> sa.Select[tuple[str, datetime, datetime | None]]:
    """Per existing namespace its head and the stamp of its first operation."""
    first = (
        sa.select(sa.func.min(operation.c.stamp))
        .where(operation.c.namespace == namespace.c.namespace)
        .scalar_subquery()
    )
    return sa.select(namespace.c.namespace, namespace.c.head, first).where(
        namespace.c.namespace.in_(list(names))
    )


def text_search() -> sa.Select[tuple[str]]:
    """The text-search configuration that was chosen at init."""
    return sa.select(sa.cast(configuration.c.text_search, sa.Text))


def _matches(filters: Filters) -> list[sa.ColumnElement[bool]]:
    fold = sa.func.supersede.fold
    conditions: list[sa.ColumnElement[bool]] = []
    if filters.subject is not None:
        conditions.append(fact.c.subject_key == fold(filters.subject))
    if filters.predicate is not None:
        conditions.append(fact.c.predicate_key == fold(filters.predicate))
    if filters.object is not None:
        conditions.append(fact.c.object_key == fold(filters.object))
    if filters.kind is not None:
        conditions.append(fact.c.kind == filters.kind)
    return conditions


def _known(scope: sa.TableValuedAlias) -> sa.ColumnElement[bool]:
    return sa.and_(fact.c.namespace == scope.c.namespace, fact.c.stamp <= scope.c.known_at)


def _current(scope: sa.TableValuedAlias, valid_at: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(
        fact_version.c.namespace == fact.c.namespace,
        fact_version.c.fact_id == fact.c.fact_id,
        sa.func.supersede.is_current(
            fact_version.c.valid_time,
            fact_version.c.tx_time,
            sa.literal(valid_at, INSTANT),
            scope.c.known_at,
            type_=sa.Boolean,
        ),
    )


def known_facts(scope: Scope, *, filters: Filters, valid_at: datetime) -> sa.Select[tuple[str, UUID, bool]]:
    """Every fact known by then within the filters: its key, and whether it is current.

    Ordered by the start of the current period, then stamp, namespace and id.
    """
    rows = scope.rows()
    return (
        sa.select(fact.c.namespace, fact.c.fact_id, fact_version.c.fact_id.is_not(None))
        .select_from(
            rows.join(fact, _known(rows)).outerjoin(fact_version, _current(rows, valid_at))
        )
        .where(*_matches(filters))
        .order_by(
            sa.func.lower(fact_version.c.valid_time).asc().nulls_first(),
            fact.c.stamp,
            fact.c.namespace,
            fact.c.fact_id,
        )
    )


def any_known(scope: Scope) -> sa.Select[tuple[bool]]:
    """Whether any fact at all was known by then."""
    rows = scope.rows()
    return sa.select(sa.exists(sa.select(1).select_from(rows.join(fact, _known(rows)))))


@dataclass(frozen=True)
class Question:
    """What facts are ranked by: the words, the vector of a space, the weights and the floor.

    ``vector`` is the text form that pgvector reads. ``space_id`` None: no vectors are looked at.
    """

    query: str
    text_search: str
    vector: str | None
    space_id: int | None
    cosine_weight: float
    coverage_weight: float
    min_similarity: float


def ranked(
    scope: Scope, question: Question, *, filters: Filters, valid_at: datetime
) -> sa.Select[tuple[str, UUID, bool, float | None, float]]:
    """Every known fact that matches the question, current or not, best first, ranked exactly.

    Rows: namespace, fact id, whether it is current, cosine (six digits), score (six digits). A fact
    with a vector matches if its cosine reaches the floor; one without, if any word does.
    """
    rows = scope.rows()
    cosine, coverage = _cosine(question), _coverage(question)
    score = sa.func.round(
        sa.cast(
            question.cosine_weight * sa.func.coalesce(cosine, 0.0) + question.coverage_weight * coverage,
            sa.Numeric,
        ),
        6,
    ).label("score")
    return (
        sa.select(
            fact.c.namespace,
            fact.c.fact_id,
            fact_version.c.fact_id.is_not(None),
            cosine.label("similarity"),
            score,
        )
        .select_from(_with_vectors(rows, question).outerjoin(fact_version, _current(rows, valid_at)))
        .where(
            *_matches(filters),
            sa.case((cosine.is_not(None), cosine >= question.min_similarity), else_=coverage > 0),
        )
        .order_by(score.desc(), fact.c.stamp.desc(), fact.c.namespace, fact.c.fact_id)
    )


def unembedded(
    scope: Scope, question: Question, *, filters: Filters, valid_at: datetime
) -> sa.Select[tuple[str, UUID]]:
    """Current facts that could not be compared: no vector in the space, and no word in common."""
    rows = scope.rows()
    return (
        sa.select(fact.c.namespace, fact.c.fact_id)
        .select_from(_with_vectors(rows, question).join(fact_version, _current(rows, valid_at)))
        .where(*_matches(filters), embedding.c.vector.is_(None), _coverage(question) == 0)
        .order_by(fact.c.stamp.desc(), fact.c.namespace, fact.c.fact_id)
    )


def _with_vectors(rows: sa.TableValuedAlias, question: Question) -> sa.Join:
    # A vector newer than the head the answer stands on was not there for it.
    return rows.join(fact, _known(rows)).outerjoin(
        embedding,
        sa.and_(
            embedding.c.namespace == fact.c.namespace,
            embedding.c.fact_id == fact.c.fact_id,
            embedding.c.space_id == question.space_id,
            embedding.c.stamp <= rows.c.head,
        ),
    )


def _cosine(question: Question) -> sa.ColumnElement[float]:
    if question.vector is None:
        return sa.cast(sa.null(), sa.Float)
    distance = embedding.c.vector.op("<=>")(sa.cast(sa.literal(question.vector), HALFVEC))
    # Adding nothing keeps any vector index out: exact is a query shape, not a planner setting.
    exact = sa.cast(distance, sa.Float) + 0
    return sa.case(
        (
            embedding.c.vector.is_not(None),
            sa.func.round(sa.cast(sa.func.greatest(0.0, 1.0 - exact), sa.Numeric), 6),
        )
    )


def _coverage(question: Question) -> sa.ColumnElement[float]:
    words = sa.func.supersede.any_word(
        sa.cast(sa.literal(question.text_search), pg.REGCONFIG), question.query
    )
    return sa.func.coalesce(
        sa.func.least(1.0, sa.func.ts_rank(fact.c.search, words) / FULL_MATCH), 0.0
    )


def reasons(scope: Scope, keys: Sequence[tuple[str, UUID]], *, valid_at: datetime) -> sa.TextClause:
    """For facts that are known and not current: what last took ``valid_at`` away from each.

    Rows: namespace, fact id, reason, and the stamp at which it was taken (None where it never reached).
    """
    return sa.text(
        """
        select f.namespace, f.fact_id,
               case when took.stamp is null then
                        case when reach.starts > :valid_at then 'not_yet_valid' else 'expired' end
                    when exists (
                        select from supersede.supersedes s
                        where s.namespace = f.namespace and s.old_fact_id = f.fact_id
                          and s.stamp = took.stamp and s.taken @> cast(:valid_at as timestamptz))
                    then 'superseded'
                    when took.verb = 'retract' then 'retracted'
                    else 'expired' end as reason,
               took.stamp
        from unnest(cast(:namespaces as text[]), cast(:ids as uuid[])) with ordinality
                 as f(namespace, fact_id, place)
        join unnest(cast(:scope_namespaces as text[]), cast(:known_at as timestamptz[]))
                 as k(namespace, known_at) on k.namespace = f.namespace
        left join lateral (
            select upper(v.tx_time) as stamp, o.verb
            from supersede.fact_version v
            join supersede.operation o on o.namespace = v.namespace and o.stamp = upper(v.tx_time)
            where not v.is_open and v.namespace = f.namespace and v.fact_id = f.fact_id
              and upper(v.tx_time) <= k.known_at and v.valid_time @> cast(:valid_at as timestamptz)
            order by upper(v.tx_time) desc
            limit 1) as took on true
        left join lateral (
            select min(case when lower_inf(v.valid_time) then '-infinity' else lower(v.valid_time) end)
                       as starts
            from supersede.fact_version v
            where v.namespace = f.namespace and v.fact_id = f.fact_id
              and lower(v.tx_time) <= k.known_at) as reach on took.stamp is null
        order by f.place
        """
    ).bindparams(
        valid_at=valid_at,
        namespaces=[name for name, _ in keys],
        ids=[fact_id for _, fact_id in keys],
        scope_namespaces=list(scope.namespaces),
        known_at=list(scope.known_at),
    ).columns(
        namespace=sa.Text, fact_id=sa.Uuid, reason=sa.Text, stamp=INSTANT
    )


def details(scope: Scope, ids: Sequence[UUID], *, valid_at: datetime) -> sa.Select[tuple[object, ...]]:
    """The content of facts, with the period that holds ``valid_at`` where they are current."""
    rows = scope.rows()
    return (
        sa.select(fact, fact_version.c.valid_time)
        .select_from(
            rows.join(fact, _known(rows)).outerjoin(fact_version, _current(rows, valid_at))
        )
        .where(fact.c.fact_id.in_(list(ids)))
    )


def vectors(scope: Scope, ids: Sequence[UUID], space_id: int | None) -> sa.Select[tuple[object, ...]]:
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
                embedding.c.fact_id.in_(list(ids)),
            ),
        )
    )


def refs(scope: Scope, ids: Sequence[UUID]) -> sa.Select[tuple[str, UUID, str]]:
    """The refs of facts that were known by then, first given first."""
    rows = scope.rows()
    return (
        sa.select(fact_ref.c.namespace, fact_ref.c.fact_id, fact_ref.c.ref)
        .join(
            rows,
            sa.and_(fact_ref.c.namespace == rows.c.namespace, fact_ref.c.stamp <= rows.c.known_at),
        )
        .where(fact_ref.c.fact_id.in_(list(ids)))
        .order_by(fact_ref.c.stamp, fact_ref.c.ref)
    )


def sources(scope: Scope, ids: Sequence[UUID]) -> sa.Select[tuple[object, ...]]:
    """The evidence of facts that was known by then, newest assertion first."""
    rows = scope.rows()
    return (
        sa.select(evidence)
        .join(
            rows,
            sa.and_(evidence.c.namespace == rows.c.namespace, evidence.c.stamp <= rows.c.known_at),
        )
        .where(evidence.c.fact_id.in_(list(ids)))
        .order_by(
            evidence.c.asserted_at.desc().nulls_last(), evidence.c.stamp.desc(), evidence.c.source_uri
        )
    )


def edges(
    scope: Scope, ids: Sequence[UUID], *, side: str
) -> sa.Select[tuple[object, ...]]:
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
        .where(end.in_(list(ids)))
        .order_by(fact.c.stamp, supersedes.c.stamp, other)
    )


def versions(name: str, fact_id: UUID) -> sa.Select[tuple[object, ...]]:
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


def resolve(name: str, wanted: str) -> sa.Select[tuple[UUID]]:
    """The id of a fact named by its id or a ref; no row where there is none."""
    by_ref = sa.select(fact_ref.c.fact_id).where(
        fact_ref.c.namespace == name, fact_ref.c.ref == wanted
    )
    try:
        fact_id = UUID(wanted)
    except ValueError:
        return by_ref
    by_id = sa.select(fact.c.fact_id).where(fact.c.namespace == name, fact.c.fact_id == fact_id)
    return sa.union_all(by_id, by_ref).limit(1)  # type: ignore[return-value]


def unfilled(name: str, space_id: int) -> sa.Select[tuple[UUID, str]]:
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


def walk(scope: Scope, fact_id: UUID, *, down: bool) -> sa.Select[tuple[object, ...]]:
    """The facts up (or down) the chain of supersessions, each at its smallest depth first.

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
            there.label("fact_id"), here.label("next_to"), supersedes.c.reason, sa.literal(1).label("depth")
        )
        .join(rows, known)
        .where(here == fact_id)
        .cte("chain", recursive=True)
    )
    chain = chain.union(
        sa.select(there, here, supersedes.c.reason, chain.c.depth + 1)
        .join(rows, known)
        .join(chain, here == chain.c.fact_id)
    )
    return sa.select(chain).order_by(chain.c.depth)
