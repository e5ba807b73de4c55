"""Which facts were erased: their content is gone, their shape is still counted."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from supersede.models import Filters
from supersede.queries.scope import Scope, Statement, current, known, matches
from supersede.schema import erasure, fact, fact_version

is_erased = fact.c.claim.is_(None)
"""That the content of a fact was destroyed: nothing else leaves one without a claim."""


def erased_current(scope: Scope, *, filters: Filters, valid_at: datetime) -> Statement:
    """Erased facts that were current, newest first: namespace and id.

    Of the filters, those on what was destroyed match none.
    """
    rows = scope.rows()
    return (
        sa.select(fact.c.namespace, fact.c.fact_id)
        .select_from(rows.join(fact, known(rows)).join(fact_version, current(rows, valid_at)))
        .where(is_erased, *matches(filters))
        .order_by(fact.c.stamp.desc(), fact.c.namespace, fact.c.fact_id)
    )


def erased_since(scope: Scope) -> Statement:
    """Ids of facts that were known by then and erased after the head that a basis stood on."""
    rows = scope.rows()
    return (
        sa.select(erasure.c.fact_id)
        .select_from(rows.join(fact, known(rows)))
        .join(
            erasure,
            sa.and_(
                erasure.c.namespace == fact.c.namespace,
                erasure.c.fact_id == fact.c.fact_id,
                erasure.c.stamp > rows.c.head,
            ),
        )
    )
