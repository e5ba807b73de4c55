"""One fact through time: as it is now, everything held about it, what it came from and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from supersede import facts, queries
from supersede.models import (
    Evidence,
    Fact,
    History,
    HistoryEdge,
    Lineage,
    LineageFact,
    Related,
    Version,
)
from supersede.periods import Period
from supersede.queries import Scope
from supersede.reads import now


def present(connection: sa.Connection, namespace: str) -> tuple[Scope, datetime]:
    """Everything a namespace holds, and now."""
    heads = facts.heads(connection, [namespace], own=namespace)
    at = now(heads, facts.state(connection)[0])
    head = heads[namespace].last
    return (Scope([namespace], [head], [head]) if head else Scope([], [], [])), at


def get(connection: sa.Connection, namespace: str, wanted: str) -> Fact:
    """One fact as it is believed now; ``valid`` is None where no period of it holds now.

    :raises FactNotFound: if there is none of this name.
    """
    key = facts.resolve(connection, namespace, wanted)
    scope, at = present(connection, namespace)
    return facts.load(connection, scope, [key], valid_at=at, space_id=None)[key]


def history(connection: sa.Connection, namespace: str, wanted: str) -> History:
    """Every rectangle, source and edge of a fact.

    :raises FactNotFound: if there is none of this name.
    """
    key = facts.resolve(connection, namespace, wanted)
    scope, at = present(connection, namespace)
    fact = facts.load(connection, scope, [key], valid_at=at, space_id=None)[key]
    up = list(connection.execute(queries.edges(scope, [key[1]], side="new")))
    down = list(connection.execute(queries.edges(scope, [key[1]], side="old")))
    evidence = list(connection.execute(queries.sources(scope, [key[1]])))
    names = facts.refs(
        connection,
        scope,
        [
            *(row.old_fact_id for row in up),
            *(row.new_fact_id for row in down),
            *(row.inherited_from for row in evidence if row.inherited_from),
        ],
    )

    def related(fact_id: Any) -> Related:  # noqa: ANN401 - a UUID
        return Related(id=str(fact_id), ref=next(iter(names.get((namespace, fact_id), ())), None))

    def edge(row: Any, other: Any) -> HistoryEdge:  # noqa: ANN401 - a row, a UUID
        return HistoryEdge(
            **related(other).model_dump(),
            reason=row.reason,
            taken=tuple(Period(r.lower, r.upper) for r in row.taken),
            recorded=row.stamp,
        )

    return History(
        fact=fact,
        versions=tuple(
            Version(
                valid=Period(row[0].lower, row[0].upper),
                known=Period(row[1].lower, row[1].upper),
                opened_by=row[2],
                closed_by=row[3],
            )
            for row in connection.execute(queries.versions(*key))
        ),
        evidence=tuple(
            Evidence(
                source=row.source_uri,
                asserted=row.asserted_at,
                recorded=row.stamp,
                inherited_from=related(row.inherited_from) if row.inherited_from else None,
            )
            for row in sorted(evidence, key=lambda row: (row.stamp, row.source_uri))
        ),
        supersedes=tuple(edge(row, row.old_fact_id) for row in up),
        superseded_by=tuple(edge(row, row.new_fact_id) for row in down),
    )


def lineage(connection: sa.Connection, namespace: str, wanted: str) -> Lineage:
    """What a fact superseded and what superseded it, directly and through others.

    :raises FactNotFound: if there is none of this name.
    """
    key = facts.resolve(connection, namespace, wanted)
    scope, at = present(connection, namespace)

    def walk(*, down: bool) -> tuple[LineageFact, ...]:
        rows: dict[Any, Any] = {}
        for row in connection.execute(queries.walk(scope, key[1], down=down)):
            rows.setdefault(row.fact_id, row)
        keys = [(namespace, fact_id) for fact_id in rows]
        loaded = facts.load(connection, scope, [*keys, key], valid_at=at, space_id=None)
        return tuple(
            LineageFact(
                id=str(row.fact_id),
                ref=loaded[namespace, row.fact_id].ref,
                claim=loaded[namespace, row.fact_id].claim,
                reason=row.reason,
                depth=row.depth,
                next_to=Related(id=str(row.next_to), ref=loaded[namespace, row.next_to].ref),
            )
            for row in rows.values()
        )

    return Lineage(
        fact=facts.load(connection, scope, [key], valid_at=at, space_id=None)[key],
        ancestors=walk(down=False),
        descendants=walk(down=True),
    )
