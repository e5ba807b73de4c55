"""One fact through time: as it is now, everything held about it, what it came from and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from supersede import facts, queries
from supersede.errors import InvalidPeriod
from supersede.models import Edge, Fact, Related
from supersede.periods import Period
from supersede.queries import Scope
from supersede.reads import now, points
from supersede.timelines import Change, Diff, Evidence, History, HistoryEdge, Lineage, LineageFact, Version


def present(connection: sa.Connection, namespace: str) -> tuple[Scope, datetime]:
    """Everything a namespace holds, and now."""
    heads = facts.heads(connection, [namespace], own=namespace)
    at = now(heads, facts.state(connection)[0])
    head = heads[namespace].last
    return (Scope([namespace], [head], [head]) if head else Scope([], [], [])), at


def get(connection: sa.Connection, namespace: str, wanted: str) -> Fact:
    """One fact as it is believed now; ``valid`` is None where no period of it holds now.

    :raises FactNotFound: if there is none of this name.
    :raises Erased: if its content was destroyed.
    """
    key = facts.resolve(connection, namespace, wanted)
    facts.refuse_erased(connection, key)
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
        erased=facts.erased_at(connection, key),
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
        supersedes=tuple(edge(r, r.old_fact_id) for r in up if r.reason != "amendment"),
        superseded_by=tuple(edge(r, r.new_fact_id) for r in down if r.reason != "amendment"),
        amends=tuple(edge(r, r.old_fact_id) for r in up if r.reason == "amendment"),
        amended_by=tuple(edge(r, r.new_fact_id) for r in down if r.reason == "amendment"),
    )


def lineage(connection: sa.Connection, namespace: str, wanted: str) -> Lineage:
    """What a fact superseded and what superseded it, directly and through others.

    :raises FactNotFound: if there is none of this name.
    """
    key = facts.resolve(connection, namespace, wanted)
    scope, at = present(connection, namespace)

    def walk(*, down: bool) -> tuple[LineageFact, ...]:
        rows = _nearest(connection.execute(queries.walk(scope, key[1], down=down)), key[1])
        keys = [(namespace, row.fact_id) for _, row in rows]
        loaded = facts.load(connection, scope, [*keys, key], valid_at=at, space_id=None)
        return tuple(
            LineageFact(
                id=str(row.fact_id),
                ref=loaded[namespace, row.fact_id].ref,
                claim=loaded[namespace, row.fact_id].claim or None,
                reason=row.reason,
                depth=depth,
                next_to=Related(id=str(row.next_to), ref=loaded[namespace, row.next_to].ref),
            )
            for depth, row in sorted(rows, key=lambda row: (row[0], row[1].stamp, row[1].fact_id))
        )

    return Lineage(
        fact=facts.load(connection, scope, [key], valid_at=at, space_id=None)[key],
        erased=facts.erased_at(connection, key),
        ancestors=walk(down=False),
        descendants=walk(down=True),
    )


def _nearest(edges: Iterable[Any], root: Any) -> list[tuple[int, Any]]:  # noqa: ANN401 - rows and ids
    """Per fact that the edges reach its distance from the root, and the newest edge that comes from there."""
    onward: dict[Any, list[Any]] = {}
    for edge in edges:
        onward.setdefault(edge.next_to, []).append(edge)
    found: list[tuple[int, Any]] = []
    seen, level, depth = {root}, [root], 0
    while level:
        depth += 1
        nearest: dict[Any, Any] = {}
        steps = [edge for here in sorted(level) for edge in onward.get(here, ())]
        for edge in sorted(steps, key=lambda edge: edge.stamp, reverse=True):  # stable: then by next_to
            if edge.fact_id not in seen:
                nearest.setdefault(edge.fact_id, edge)
        seen |= nearest.keys()
        level = list(nearest)
        found += [(depth, edge) for edge in nearest.values()]
    return found


def diff(
    connection: sa.Connection,
    namespace: str,
    *,
    known_from: datetime,
    known_to: datetime | None,
    valid_at: datetime | None,
) -> Diff:
    """What was believed otherwise at ``known_to`` (else now) than at ``known_from``.

    :raises InvalidInstant: for a ``known_to`` in the future.
    :raises InvalidPeriod: if ``known_to`` does not come after ``known_from``.
    """
    scope, at = present(connection, namespace)
    _, until = points(at, (None, known_to))
    if known_from >= until:
        raise InvalidPeriod("known_to must come after known_from")
    scope = Scope(scope.namespaces, [min(until, head) for head in scope.heads], scope.heads)
    rows = [
        row
        for row in connection.execute(queries.changes(namespace, known_from, until))
        if valid_at is None or any(valid_at in _period(r) for r in (*row.gained, *row.lost))
    ]
    ids = [row.fact_id for row in rows]
    names = facts.refs(connection, scope, ids)
    by: dict[Any, list[Edge]] = {}
    if ids:
        edges = [
            edge
            for edge in connection.execute(queries.edges(scope, ids, side="old"))
            if known_from < edge.stamp <= until and edge.taken
        ]
        others = facts.refs(connection, scope, [edge.new_fact_id for edge in edges])
        for edge in edges:
            new = others.get((namespace, edge.new_fact_id), ())
            by.setdefault(edge.old_fact_id, []).append(
                Edge(id=str(edge.new_fact_id), ref=next(iter(new), None), reason=edge.reason)
            )
    return Diff(
        known_from=known_from,
        known_to=until,
        valid_at=valid_at,
        changes=tuple(
            Change(
                id=str(row.fact_id),
                ref=next(iter(names.get((namespace, row.fact_id), ())), None),
                claim=row.claim,
                gained=tuple(_period(r) for r in row.gained),
                lost=tuple(_period(r) for r in row.lost),
                superseded_by=tuple(by.get(row.fact_id, ())),
            )
            for row in rows
        ),
    )


def _period(value: Any) -> Period:  # noqa: ANN401 - a range of the driver
    return Period(value.lower, value.upper)
