"""What a read may see, and the conditions that every read shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from supersede.models import Filters
from supersede.periods import Period, When
from supersede.schema import (
    INSTANT,
    fact,
    fact_version,
)

if TYPE_CHECKING:
    Statement = sa.Select[*tuple[Any, ...]]
    """A statement whose rows are described in its builder's docstring."""
else:
    Statement = sa.Select


@dataclass(frozen=True)
class Scope:
    """Which namespaces a read sees, and up to when: two lists in step with the first."""

    namespaces: Sequence[str]
    known_at: Sequence[datetime]
    heads: Sequence[datetime]

    def rows(self) -> sa.TableValuedAlias:
        """``(namespace, known_at, head)`` as a table to select from."""
        return (
            sa.func.unnest(
                sa.cast(list(self.namespaces), pg.ARRAY(sa.Text)),
                sa.cast(list(self.known_at), pg.ARRAY(INSTANT)),
                sa.cast(list(self.heads), pg.ARRAY(INSTANT)),
            )
            .table_valued(
                sa.column("namespace", sa.Text),
                sa.column("known_at", INSTANT),
                sa.column("head", INSTANT),
                name="scope",
                joins_implicitly=True,
            )
            .render_derived()
        )


def among(column: sa.ColumnElement[UUID], ids: Sequence[UUID]) -> sa.ColumnElement[bool]:
    """That a column holds one of some ids: one parameter, however many there are."""
    return column == sa.any_(sa.cast(list(ids), pg.ARRAY(sa.Uuid)))


def these(keys: Sequence[tuple[str, UUID]]) -> sa.ColumnElement[bool]:
    """That a fact is one of some, by namespace and id: an id alone finds no index, and no isolation."""
    return sa.and_(
        fact.c.namespace == sa.any_(sa.cast(sorted({key[0] for key in keys}), pg.ARRAY(sa.Text))),
        among(fact.c.fact_id, [key[1] for key in keys]),
    )


def matches(filters: Filters) -> list[sa.ColumnElement[bool]]:
    """The conditions of a question's filters on ``fact``, folded as the stored keys are."""
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
    if filters.where is not None:
        conditions.append(fact.c.data.contains(sa.cast(filters.where, pg.JSONB)))
    return conditions


def known(scope: sa.TableValuedAlias) -> sa.ColumnElement[bool]:
    """That a fact was recorded by then in one of the namespaces."""
    return sa.and_(fact.c.namespace == scope.c.namespace, fact.c.stamp <= scope.c.known_at)


def current(scope: sa.TableValuedAlias, valid_at: When) -> sa.ColumnElement[bool]:
    """That a version of the fact holds the instant on both axes; at most one does.

    Of a period, that it has an instant in common with the version; several versions may.
    """
    if isinstance(valid_at, Period):
        holds = sa.func.supersede.is_current_within
        when: sa.ColumnElement[Any] = sa.func.tstzrange(
            sa.literal(valid_at.start, INSTANT), sa.literal(valid_at.end, INSTANT)
        )
    else:
        holds, when = sa.func.supersede.is_current, sa.literal(valid_at, INSTANT)
    return sa.and_(
        fact_version.c.namespace == fact.c.namespace,
        fact_version.c.fact_id == fact.c.fact_id,
        holds(fact_version.c.valid_time, fact_version.c.tx_time, when, scope.c.known_at, type_=sa.Boolean),
    )
