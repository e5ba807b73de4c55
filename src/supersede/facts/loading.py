"""Reads facts: which are known, how they rank, what they say, why they are withheld."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Range

from supersede import queries
from supersede.errors import FactNotFound
from supersede.facts.rows import Key, KnownRow, RankedRow, ReasonRow
from supersede.models import Edge, Fact, Filters, Related
from supersede.periods import Period, When, touches
from supersede.queries import Question, Scope
from supersede.schema import fact

_PAGES = (64, 1_024, None)


def any_known(connection: sa.Connection, scope: Scope) -> bool:
    """Whether any fact at all was known by then."""
    return bool(connection.execute(queries.any_known(scope)).scalar_one())


def known_facts(
    connection: sa.Connection, scope: Scope, *, filters: Filters, valid_at: When
) -> list[KnownRow]:
    """All facts known by then within the filters, in the order of an unranked answer."""
    rows = connection.execute(queries.known_facts(scope, filters=filters, valid_at=valid_at))
    return [KnownRow((row[0], row[1]), row[2], row[3], row[4]) for row in rows]


def ranked(
    connection: sa.Connection,
    scope: Scope,
    question: Question,
    *,
    filters: Filters,
    valid_at: datetime,
) -> Iterator[list[RankedRow]]:
    """The ranking in pages, best first; a page is fetched when it is asked for."""
    statement = queries.ranked(scope, question, filters=filters, valid_at=valid_at)
    offset = 0
    # Most questions end on the first page. Ranking again for a further one costs less than a cursor,
    # under which PostgreSQL neither sorts only the top nor works in parallel.
    for size in _PAGES:
        rows = connection.execute(statement.offset(offset).limit(size)).all()
        yield [
            RankedRow(
                key=(row[0], row[1]),
                current=row[2],
                similarity=None if row[3] is None else float(row[3]),
                score=float(row[4]),
                trust=row[5],
                via=row[6],
            )
            for row in rows
        ]
        if size is None or len(rows) < size:
            return
        offset += size


def unembedded(
    connection: sa.Connection,
    scope: Scope,
    question: Question,
    *,
    filters: Filters,
    valid_at: datetime,
) -> list[Key]:
    """Current facts that could not be compared with the question."""
    rows = connection.execute(queries.unembedded(scope, question, filters=filters, valid_at=valid_at))
    return [(row[0], row[1]) for row in rows]


def reasons(
    connection: sa.Connection, scope: Scope, keys: Sequence[Key], *, valid_at: When
) -> list[ReasonRow]:
    """Why each of these facts is not current, in their order."""
    if not keys:
        return []
    rows = connection.execute(queries.reasons(scope, keys, valid_at=valid_at))
    return [ReasonRow((row[0], row[1]), row[2], row[3]) for row in rows]


def vectors(
    connection: sa.Connection, scope: Scope, keys: Sequence[Key], space_id: int | None
) -> dict[Key, np.ndarray[Any, Any]]:
    """The vectors of facts in a space, as float32."""
    if space_id is None or not keys:
        return {}
    rows = connection.execute(queries.vectors(scope, [key[1] for key in keys], space_id))
    return {(row[0], row[1]): np.asarray(row[2], dtype=np.float32) for row in rows}


def folded(
    connection: sa.Connection, keys: Sequence[Key]
) -> dict[Key, tuple[str | None, str | None, str | None]]:
    """The folded subject, predicate and object of facts."""
    if not keys:
        return {}
    columns = [fact.c.namespace, fact.c.fact_id]
    parts = [fact.c.subject_key, fact.c.predicate_key, fact.c.object_key]
    rows = connection.execute(sa.select(*columns, *parts).where(queries.these(keys)))
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def taken_by(
    connection: sa.Connection, scope: Scope, rows: Sequence[ReasonRow], *, valid_at: When
) -> dict[Key, list[Edge]]:
    """For superseded facts, what took ``valid_at`` from each at the stamp in question."""
    stamps = {row.key: row.stamp for row in rows if row.reason == "superseded"}
    if not stamps:
        return {}
    found = [
        row
        for row in connection.execute(queries.edges(scope, [key[1] for key in stamps], side="old"))
        if row.stamp == stamps.get((row.namespace, row.old_fact_id))
        and any(touches(valid_at, Period(r.lower, r.upper)) for r in row.taken)
    ]
    names = refs(connection, scope, [row.new_fact_id for row in found])
    taken: dict[Key, list[Edge]] = defaultdict(list)
    for row in found:
        taken[row.namespace, row.old_fact_id].append(
            Edge(
                id=str(row.new_fact_id),
                ref=_first(names, (row.namespace, row.new_fact_id)),
                reason=row.reason,
            )
        )
    return taken


def resolve(connection: sa.Connection, name: str, wanted: str) -> Key:
    """The key of a fact named by its id or a ref.

    :raises FactNotFound: if there is none.
    """
    found = connection.execute(queries.resolve(name, wanted)).scalar()
    if found is None:
        raise FactNotFound(
            f"no fact in namespace {name!r} has the id or ref {wanted!r}",
            details={"fact": wanted, "namespace": name},
        )
    return name, found


def refs(connection: sa.Connection, scope: Scope, ids: Sequence[UUID]) -> dict[Key, list[str]]:
    """The refs of facts, first given first."""
    found: dict[Key, list[str]] = defaultdict(list)
    for row in connection.execute(queries.refs(scope, ids)) if ids else ():
        found[row[0], row[1]].append(row[2])
    return found


def as_period(value: Range[datetime] | None) -> Period | None:
    """A range of the driver as a period."""
    return None if value is None else Period(value.lower, value.upper)


def load(
    connection: sa.Connection,
    scope: Scope,
    keys: Sequence[Key],
    *,
    valid_at: When,
    space_id: int | None,
) -> dict[Key, Fact]:
    """Facts with their refs, sources and edges, all as known by then.

    Facts that were not known by then are left out.
    """
    if not keys:
        return {}
    ids = list({key[1] for key in keys})
    up = _newest_edges(connection.execute(queries.edges(scope, ids, side="new")), "new", "old")
    down = _newest_edges(connection.execute(queries.edges(scope, ids, side="old")), "old", "new")
    amended = {
        key: [new for new, edge in edges.items() if edge.reason == "amendment"] for key, edges in down.items()
    }
    others = [
        *{o for olds in up.values() for o in olds},
        *{n for new in amended.values() for n in new},
    ]
    names = refs(connection, scope, [*ids, *others])
    evidence: dict[Key, list[Any]] = defaultdict(list)
    own_source: dict[Key, str] = {}
    for row in connection.execute(queries.sources(scope, [*ids, *others])):
        evidence[row.namespace, row.fact_id].append(row)
        if row.inherited_from is None:
            own_source.setdefault((row.namespace, row.fact_id), row.source_uri)
    truncated = (
        set()
        if space_id is None
        else {
            (row.namespace, row.fact_id)
            for row in connection.execute(queries.vectors(scope, ids, space_id))
            if row.truncated
        }
    )
    loaded = {}
    for row in connection.execute(queries.details(scope, ids, valid_at=valid_at)):
        key = (row.namespace, row.fact_id)
        own = [e for e in evidence[key] if e.inherited_from is None]
        periods = tuple(Period(held.lower, held.upper) for held in row.held)
        ordered = dict.fromkeys(e.source_uri for e in [*own, *evidence[key]])
        loaded[key] = Fact(
            # Of an erased fact, which histories and lineages show, nothing but the shape is left.
            claim=row.claim or "",
            id=str(row.fact_id),
            ref=next(iter(names[key]), None),
            refs=tuple(names[key]),
            namespace=row.namespace,
            kind=row.kind,
            subject=row.subject,
            predicate=row.predicate,
            object=row.object,
            data=row.data,
            valid=next(iter(periods), None),
            periods=periods if isinstance(valid_at, Period) else (),
            asserted=row.asserted_at,
            recorded=row.stamp,
            confirmed=next((e.asserted_at for e in evidence[key] if e.asserted_at), None),
            source=own_source.get(key),
            sources=tuple(ordered),
            trust=row.trust,
            supersedes=tuple(
                Edge(
                    id=str(old),
                    ref=_first(names, (row.namespace, old)),
                    reason=edge.reason,
                    source=own_source.get((row.namespace, old)),
                )
                for old, edge in up.get(key, {}).items()
                if edge.reason != "amendment"
            ),
            amends=_related(
                names, row.namespace, [o for o, e in up.get(key, {}).items() if e.reason == "amendment"]
            ),
            amended_by=_related(names, row.namespace, amended.get(key, ())),
            truncated=key in truncated,
        )
    return loaded


def _newest_edges(rows: Iterable[Any], here: str, there: str) -> dict[Key, dict[UUID, Any]]:
    """Per fact at one end of the edges, what stands at their other ends; of a pair, the newest edge."""
    found: dict[Key, dict[UUID, Any]] = defaultdict(dict)
    for row in rows:
        edges = found[row.namespace, getattr(row, f"{here}_fact_id")]
        other = getattr(row, f"{there}_fact_id")
        if other not in edges or row.stamp >= edges[other].stamp:
            edges[other] = row
    return found


def _amendments(edges: Mapping[UUID, Any]) -> list[UUID]:
    return [other for other, edge in edges.items() if edge.reason == "amendment"]


def titles(
    connection: sa.Connection, scope: Scope, keys: Sequence[Key]
) -> dict[Key, tuple[str | None, str | None]]:
    """What a person calls facts: the first ref and the claim of each."""
    if not keys:
        return {}
    ids = [key[1] for key in keys]
    names = refs(connection, scope, ids)
    rows = connection.execute(
        sa.select(fact.c.namespace, fact.c.fact_id, fact.c.claim).where(queries.these(keys))
    )
    return {(row[0], row[1]): (_first(names, (row[0], row[1])), row[2]) for row in rows}


def _first(names: Mapping[Key, list[str]], key: Key) -> str | None:
    return next(iter(names.get(key, ())), None)


def _related(names: Mapping[Key, list[str]], namespace: str, ids: Sequence[UUID]) -> tuple[Related, ...]:
    return tuple(Related(id=str(i), ref=_first(names, (namespace, i))) for i in dict.fromkeys(ids))
