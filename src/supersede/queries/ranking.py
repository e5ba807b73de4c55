"""Which facts match, in which order, and why some are not current."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql as pg

from supersede.models import Filters
from supersede.periods import Period, When
from supersede.queries.erasing import is_erased
from supersede.queries.scope import Scope, Statement, current, known, matches
from supersede.schema import (
    INSTANT,
    embedding,
    fact,
    fact_version,
    supersedes,
)

# ts_rank of a text that holds the only lexeme of a question: the unit of coverage.
FULL_MATCH = 0.0607927


def known_facts(scope: Scope, *, filters: Filters, valid_at: When) -> Statement:
    """Every fact known by then within the filters: its key, whether it is current, its trust, whether erased.

    One row each, ordered by the start of the (first) current period, then stamp, namespace and id.
    """
    rows = scope.rows()
    is_current, start = fact_version.c.fact_id.is_not(None), sa.func.lower(fact_version.c.valid_time)
    found = (
        sa.select(fact.c.namespace, fact.c.fact_id, is_current, fact.c.trust, is_erased)
        .select_from(rows.join(fact, known(rows)).outerjoin(fact_version, current(rows, valid_at)))
        .where(*matches(filters))
    )
    if isinstance(valid_at, Period):
        key = fact.c.namespace, fact.c.fact_id
        start = sa.func.lower(sa.func.range_agg(fact_version.c.valid_time))
        found = found.group_by(*key, fact.c.trust, fact.c.stamp, is_current, is_erased)
    return found.order_by(start.asc().nulls_first(), fact.c.stamp, fact.c.namespace, fact.c.fact_id)


def any_known(scope: Scope) -> Statement:
    """Whether any fact at all was known by then."""
    rows = scope.rows()
    return sa.select(sa.exists(sa.select(1).select_from(rows.join(fact, known(rows)))))


@dataclass(frozen=True)
class Question:
    """What facts are ranked by: the words, the vector of a space, the weights and the floor.

    ``vector`` is the text form that pgvector reads. ``space_id`` None: no vectors are looked at.
    ``lineage_credit`` is the share of an old fact's score that what superseded it gets; 0: none.
    """

    query: str
    text_search: str
    vector: str | None
    space_id: int | None
    cosine_weight: float
    coverage_weight: float
    min_similarity: float
    lineage_credit: float


def ranked(scope: Scope, question: Question, *, filters: Filters, valid_at: datetime) -> Statement:
    """Every known fact that matches the question, current or not, best first, ranked exactly.

    Rows: namespace, fact id, whether it is current, cosine (six digits), score (six digits), trust, and
    the id of the fact whose score it has where that is one it superseded. A fact with a vector matches
    if its cosine reaches the floor or it holds every word of the question; one without, if it holds any;
    a current one also if one that it superseded matches.
    """
    own = _own_scores(scope, question, filters=filters, valid_at=valid_at)
    if question.lineage_credit == 0:
        return (
            sa.select(
                own.c.namespace,
                own.c.fact_id,
                own.c.is_current,
                own.c.similarity,
                own.c.score,
                own.c.trust,
                sa.cast(sa.null(), sa.Uuid).label("via"),
            )
            .where(own.c.passes)
            .order_by(own.c.score.desc(), own.c.stamp.desc(), own.c.namespace, own.c.fact_id)
        )
    inherited = _inherited(scope, own)
    credit = sa.func.round(sa.cast(question.lineage_credit * inherited.c.score, sa.Numeric), 6)
    own_score = sa.case((own.c.passes, own.c.score), else_=0)
    score = sa.func.greatest(own_score, credit).label("score")
    return (
        sa.select(
            own.c.namespace,
            own.c.fact_id,
            own.c.is_current,
            own.c.similarity,
            score,
            own.c.trust,
            sa.case((credit > own_score, inherited.c.source_id)).label("via"),
        )
        .select_from(
            own.outerjoin(
                inherited,
                sa.and_(inherited.c.namespace == own.c.namespace, inherited.c.fact_id == own.c.fact_id),
            )
        )
        .where(sa.or_(own.c.passes, inherited.c.source_id.is_not(None)))
        .order_by(score.desc(), own.c.stamp.desc(), own.c.namespace, own.c.fact_id)
    )


def _own_scores(scope: Scope, question: Question, *, filters: Filters, valid_at: datetime) -> sa.CTE:
    """Every known fact within the filters, by its own words and vector alone."""
    rows = scope.rows()
    cosine, coverage = _cosine(question), _coverage(question)
    score = sa.func.round(
        sa.cast(
            question.cosine_weight * sa.func.coalesce(cosine, 0.0) + question.coverage_weight * coverage,
            sa.Numeric,
        ),
        6,
    )
    passes = sa.case(
        (cosine.is_not(None), sa.or_(cosine >= question.min_similarity, _every_word(question))),
        else_=coverage > 0,
    )
    return (
        sa.select(
            fact.c.namespace,
            fact.c.fact_id,
            fact.c.stamp,
            fact.c.trust,
            fact_version.c.fact_id.is_not(None).label("is_current"),
            cosine.label("similarity"),
            score.label("score"),
            passes.label("passes"),
        )
        .select_from(_with_vectors(rows, question).outerjoin(fact_version, current(rows, valid_at)))
        .where(*matches(filters))
        .cte("own_scores")
    )


def _inherited(scope: Scope, own: sa.CTE) -> sa.Subquery:
    """Per current fact the best own score among those it superseded, directly or through others, as known.

    From the current ones downwards: a chain of n has n ancestors of its head, but n squared pairs.
    """
    rows = scope.rows()
    edge = sa.and_(
        supersedes.c.namespace == rows.c.namespace,
        supersedes.c.stamp <= rows.c.known_at,
        supersedes.c.reason != "amendment",
    )
    reach = (
        sa.select(own.c.namespace, own.c.fact_id, supersedes.c.old_fact_id.label("ancestor_id"))
        .select_from(rows)
        .join(supersedes, edge)
        .join(
            own,
            sa.and_(own.c.namespace == supersedes.c.namespace, own.c.fact_id == supersedes.c.new_fact_id),
        )
        .where(own.c.is_current)
        .cte("reach", recursive=True)
    )
    reach = reach.union(
        sa.select(reach.c.namespace, reach.c.fact_id, supersedes.c.old_fact_id)
        .select_from(rows)
        .join(supersedes, edge)
        .join(
            reach,
            sa.and_(
                reach.c.namespace == supersedes.c.namespace,
                reach.c.ancestor_id == supersedes.c.new_fact_id,
            ),
        )
    )
    source = own.alias("source")
    return (
        sa.select(reach.c.namespace, reach.c.fact_id, source.c.fact_id.label("source_id"), source.c.score)
        .join(
            source,
            sa.and_(source.c.namespace == reach.c.namespace, source.c.fact_id == reach.c.ancestor_id),
        )
        .where(source.c.passes)
        .ext(pg.distinct_on(reach.c.namespace, reach.c.fact_id))
        .order_by(reach.c.namespace, reach.c.fact_id, source.c.score.desc(), source.c.fact_id)
        .subquery("inherited")
    )


def unembedded(scope: Scope, question: Question, *, filters: Filters, valid_at: datetime) -> Statement:
    """Current facts that could not be compared: no vector in the space, and no word in common."""
    rows = scope.rows()
    return (
        sa.select(fact.c.namespace, fact.c.fact_id)
        .select_from(_with_vectors(rows, question).join(fact_version, current(rows, valid_at)))
        .where(*matches(filters), embedding.c.vector.is_(None), sa.not_(_any_word(question)))
        .order_by(fact.c.stamp.desc(), fact.c.namespace, fact.c.fact_id)
    )


def _with_vectors(rows: sa.TableValuedAlias, question: Question) -> sa.Join:
    # An erased fact has nothing to be compared with. A vector newer than the head the answer stands on was
    # not there for it.
    return rows.join(fact, sa.and_(known(rows), sa.not_(is_erased))).outerjoin(
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


def _words(question: Question) -> sa.ScalarSelect[Any]:
    # A subquery, so that the question is parsed once and not for every fact.
    return sa.select(
        sa.func.supersede.any_word(
            sa.cast(sa.literal(question.text_search), pg.REGCONFIG), sa.literal(question.query)
        )
    ).scalar_subquery()


def _any_word(question: Question) -> sa.ColumnElement[bool]:
    return sa.func.coalesce(fact.c.search.bool_op("@@")(_words(question)), sa.false())


def _coverage(question: Question) -> sa.ColumnElement[float]:
    # A question of stop words alone has no words at all, and LEAST passes over NULL.
    rank = sa.func.coalesce(sa.func.ts_rank(fact.c.search, _words(question)), 0.0) / FULL_MATCH
    return sa.func.least(1.0, rank)


def _every_word(question: Question) -> sa.ColumnElement[bool]:
    # A question of one or two words lies far from every sentence: asked for "hybrid", all claims that
    # hold the word were below the floor.
    words = sa.select(
        sa.func.plainto_tsquery(
            sa.cast(sa.literal(question.text_search), pg.REGCONFIG), sa.literal(question.query)
        )
    ).scalar_subquery()
    return fact.c.search.bool_op("@@")(words)


def reasons(scope: Scope, keys: Sequence[tuple[str, UUID]], *, valid_at: When) -> sa.TextualSelect:
    """For facts that are known and not current: what last took ``valid_at`` away from each.

    Of a period, what took the last of it. Rows: namespace, fact id, reason, and the stamp at which it was
    taken (None where it never reached).
    """
    if isinstance(valid_at, Period):
        start, end, bounds = valid_at.start, valid_at.end, "[)"
    else:
        start, end, bounds = valid_at, valid_at, "[]"
    return (
        sa.text(
            """
        select f.namespace, f.fact_id,
               case when took.stamp is null then
                        case when tstzrange(reach.starts, null) >> asked.about
                             then 'not_yet_valid' else 'expired' end
                    when exists (
                        select from supersede.supersedes s
                        where s.namespace = f.namespace and s.old_fact_id = f.fact_id
                          and s.stamp = took.stamp and s.taken && asked.about)
                    then 'superseded'
                    when took.verb in ('retract', 'undo') then 'retracted'
                    when took.verb = 'erase' then 'erased'
                    else 'expired' end as reason,
               took.stamp
        from unnest(cast(:namespaces as text[]), cast(:ids as uuid[])) with ordinality
                 as f(namespace, fact_id, place)
        join unnest(cast(:scope_namespaces as text[]), cast(:known_at as timestamptz[]))
                 as k(namespace, known_at) on k.namespace = f.namespace
        cross join (select tstzrange(:asked_from, :asked_to, :asked_bounds)) as asked(about)
        left join lateral (
            select upper(v.tx_time) as stamp, o.verb
            from supersede.fact_version v
            join supersede.operation o on o.namespace = v.namespace and o.stamp = upper(v.tx_time)
            where not v.is_open and v.namespace = f.namespace and v.fact_id = f.fact_id
              and upper(v.tx_time) <= k.known_at and v.valid_time && asked.about
            order by upper(v.tx_time) desc
            limit 1) as took on true
        left join lateral (
            select min(case when lower_inf(v.valid_time) then '-infinity' else lower(v.valid_time) end)
                       as starts
            from supersede.fact_version v
            where v.namespace = f.namespace and v.fact_id = f.fact_id
              and took.stamp is null and lower(v.tx_time) <= k.known_at) as reach on true
        order by f.place
        """
        )
        .bindparams(
            sa.bindparam("asked_from", start, INSTANT),
            sa.bindparam("asked_to", end, INSTANT),
            asked_bounds=bounds,
            namespaces=[name for name, _ in keys],
            ids=[fact_id for _, fact_id in keys],
            scope_namespaces=list(scope.namespaces),
            known_at=list(scope.known_at),
        )
        .columns(namespace=sa.Text, fact_id=sa.Uuid, reason=sa.Text, stamp=INSTANT)
    )
