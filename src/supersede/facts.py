"""Executes the statements: the only module that reads and writes facts over a connection."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

import numpy as np
import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Range

from supersede import queries
from supersede.engine import translate
from supersede.errors import FactNotFound, NamespaceNotFound, SpaceGone
from supersede.models import Edge, Fact, Filters, Recorded, Related
from supersede.periods import Period
from supersede.queries import Question, Scope
from supersede.schema import embedding_space, fact

Key = tuple[str, UUID]
# Verbs whose SQL function takes a vector.
_MAKES_FACTS = frozenset({"remember", "supersede", "amend", "replay"})


class Space(NamedTuple):
    """An embedding space as registered in the database."""

    id: int
    model: str
    dimensions: int
    min_similarity: float
    near_duplicate: float
    active: bool


class Vector(NamedTuple):
    """A claim's vector on its way to the database: its text form, its space, whether it was cut."""

    text: str | None
    space_id: int | None
    truncated: bool = False


class Head(NamedTuple):
    """The last stamp of a namespace and the first; both None where nothing was recorded."""

    last: datetime | None
    first: datetime | None


class RankedRow(NamedTuple):
    """One fact in the order of its score."""

    key: Key
    current: bool
    similarity: float | None
    score: float


class ReasonRow(NamedTuple):
    """Why a fact is not current, and since which stamp."""

    key: Key
    reason: str
    stamp: datetime | None


NO_VECTOR = Vector(None, None)


def vector_text(vector: np.ndarray[Any, Any]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(np.format_float_positional(x, unique=True) for x in vector) + "]"


# --- writes


def write(
    connection: sa.Connection,
    verb: str,
    event: Mapping[str, Any],
    *,
    namespace: str,
    actor: str | None,
    vector: Vector = NO_VECTOR,
) -> Recorded:
    """Run one verb and return what it did."""
    parameters: dict[str, Any] = {
        "event": json.dumps(event, ensure_ascii=False),
        "namespace": namespace,
        "actor": actor,
    }
    call = f'supersede."{verb}"(cast(:event as jsonb), :namespace, :actor'
    if verb in _MAKES_FACTS:
        call += ", cast(:vector as halfvec), cast(:space as smallint), :truncated"
        parameters |= {
            "vector": vector.text,
            "space": vector.space_id,
            "truncated": vector.truncated,
        }
    result = connection.execute(sa.text(f"select {call})"), parameters).scalar_one()
    return recorded(result, truncated=vector.truncated)


_REPLAY = "select supersede.replay(%s::jsonb, %s, %s, %s::halfvec, %s::smallint, %s, %s)"


def replay(
    connection: sa.Connection,
    events: Sequence[Mapping[str, Any]],
    vectors: Sequence[Vector],
    *,
    namespace: str,
    actor: str | None,
    out_of_order: str,
    offset: int = 0,
) -> list[Recorded]:
    """Record events in order, inside the caller's transaction.

    :param offset: how many events came before these; errors count from the first of all.
    :raises SupersedeError: what the failing event raised, with its position, counted from 1.
    """
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    results: list[Recorded] = []
    with driver.cursor() as cursor:
        for position, (event, vector) in enumerate(zip(events, vectors, strict=True), offset + 1):
            try:
                cursor.execute(
                    _REPLAY,
                    (
                        json.dumps(event, ensure_ascii=False),
                        namespace,
                        actor,
                        *vector,
                        out_of_order,
                    ),
                    prepare=True,
                )
            except psycopg.Error as error:
                failure = translate(error)
                name = event.get("ref") or event.get("by") or ""
                failure.message = f"event {position} ({event.get('op')} {name}): {failure.message}"
                failure.args = (failure.message,)
                failure.details["position"] = position
                raise failure from error
            (result,) = cast("tuple[Any]", cursor.fetchone())
            results.append(recorded(result, truncated=vector.truncated))
    return results


def recorded(result: Mapping[str, Any], *, truncated: bool = False) -> Recorded:
    """The result of a verb, as a model."""
    return Recorded.model_validate({**result, "truncated": truncated})


def fill_embeddings(
    connection: sa.Connection,
    rows: Sequence[tuple[UUID, str, bool]],
    *,
    namespace: str,
    space: Space,
    actor: str | None,
) -> int:
    """Store vectors for facts that have none; returns how many were missing."""
    return int(
        connection.execute(
            sa.text(
                "select supersede.fill_embeddings(:namespace, cast(:space as smallint), "
                "cast(:ids as uuid[]), cast(cast(:vectors as text[]) as halfvec[]), "
                "cast(:truncated as boolean[]), :actor)"
            ),
            {
                "namespace": namespace,
                "space": space.id,
                "ids": [row[0] for row in rows],
                "vectors": [row[1] for row in rows],
                "truncated": [row[2] for row in rows],
                "actor": actor,
            },
        ).scalar_one()
    )


def unfilled(
    connection: sa.Connection, *, namespace: str, space: Space, limit: int
) -> list[tuple[UUID, str]]:
    """Facts without a vector in a space, oldest first: id and claim."""
    rows = connection.execute(queries.unfilled(namespace, space.id).limit(limit))
    return [(row[0], row[1]) for row in rows]


# --- the store's own state


def spaces(connection: sa.Connection) -> list[Space]:
    """All registered embedding spaces."""
    columns = [embedding_space.c[name] for name in Space._fields]
    return [Space(*row) for row in connection.execute(sa.select(*columns))]


def space_of(connection: sa.Connection, model: str) -> Space:
    """The space of a model.

    :raises SpaceGone: if it is not registered here.
    """
    for space in spaces(connection):
        if space.model == model:
            return space
    raise SpaceGone(f"no embedding space of model {model!r} is registered in this database")


def register_space(
    connection: sa.Connection,
    *,
    model: str,
    dimensions: int,
    min_similarity: float,
    near_duplicate: float,
) -> Space:
    """Register the space of a model unless it is there; the first one becomes the active one."""
    connection.execute(sa.text("lock table supersede.embedding_space in share row exclusive mode"))
    known = spaces(connection)
    for space in known:
        if space.model == model:
            return space
    space = Space(
        max((s.id for s in known), default=0) + 1,
        model,
        dimensions,
        min_similarity,
        near_duplicate,
        not any(s.active for s in known),
    )
    connection.execute(sa.insert(embedding_space).values(**space._asdict()))
    return space


def clock(connection: sa.Connection) -> datetime:
    """The database's time."""
    return connection.execute(queries.clock()).scalar_one()


def text_search(connection: sa.Connection) -> str:
    """The text-search configuration chosen at init."""
    return connection.execute(queries.text_search()).scalar_one()


def heads(
    connection: sa.Connection, names: Sequence[str], *, own: str, missing_ok: bool = False
) -> dict[str, Head]:
    """The head of each namespace.

    :param own: the store's namespace, which may not exist yet.
    :param missing_ok: let any namespace be missing, as one without a head.
    :raises NamespaceNotFound: if any other does not exist.
    """
    found = {row[0]: Head(row[1], row[2]) for row in connection.execute(queries.heads(names))}
    for name in names:
        if name not in found and name != own and not missing_ok:
            raise NamespaceNotFound(
                f"namespace {name!r} does not exist; a namespace is made by its first write"
            )
    return {name: found.get(name, Head(None, None)) for name in names}


# --- reads


def any_known(connection: sa.Connection, scope: Scope) -> bool:
    """Whether any fact at all was known by then."""
    return bool(connection.execute(queries.any_known(scope)).scalar_one())


def known_facts(
    connection: sa.Connection, scope: Scope, *, filters: Filters, valid_at: datetime
) -> list[tuple[Key, bool]]:
    """Keys of all facts known by then within the filters, and whether each is current."""
    rows = connection.execute(queries.known_facts(scope, filters=filters, valid_at=valid_at))
    return [((row[0], row[1]), row[2]) for row in rows]


def ranked(
    connection: sa.Connection, scope: Scope, question: Question, *, filters: Filters, valid_at: datetime
) -> Iterator[list[RankedRow]]:
    """The ranking in pages, best first; a page is fetched when it is asked for."""
    statement = queries.ranked(scope, question, filters=filters, valid_at=valid_at)
    with connection.execution_options(stream_results=True, yield_per=200).execute(statement) as result:
        for page in result.partitions():
            yield [
                RankedRow(
                    (row[0], row[1]), row[2], None if row[3] is None else float(row[3]), float(row[4])
                )
                for row in page
            ]


def unembedded(
    connection: sa.Connection, scope: Scope, question: Question, *, filters: Filters, valid_at: datetime
) -> list[Key]:
    """Current facts that could not be compared with the question."""
    rows = connection.execute(
        queries.unembedded(scope, question, filters=filters, valid_at=valid_at)
    )
    return [(row[0], row[1]) for row in rows]


def reasons(
    connection: sa.Connection, scope: Scope, keys: Sequence[Key], *, valid_at: datetime
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
    return {
        (row[0], row[1]): np.asarray(row[2].to_numpy(), dtype=np.float32)
        for row in rows
    }


def folded(
    connection: sa.Connection, keys: Sequence[Key]
) -> dict[Key, tuple[str | None, str | None, str | None]]:
    """The folded subject, predicate and object of facts."""
    if not keys:
        return {}
    columns = [fact.c.namespace, fact.c.fact_id]
    parts = [fact.c.subject_key, fact.c.predicate_key, fact.c.object_key]
    rows = connection.execute(
        sa.select(*columns, *parts).where(fact.c.fact_id.in_([key[1] for key in keys]))
    )
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def taken_by(
    connection: sa.Connection, scope: Scope, rows: Sequence[ReasonRow], *, valid_at: datetime
) -> dict[Key, list[Edge]]:
    """For superseded facts, what took ``valid_at`` from each at the stamp in question."""
    stamps = {row.key: row.stamp for row in rows if row.reason == "superseded"}
    if not stamps:
        return {}
    found = [
        row
        for row in connection.execute(
            queries.edges(scope, [key[1] for key in stamps], side="old")
        )
        if row.stamp == stamps.get((row.namespace, row.old_fact_id))
        and any(valid_at in Period(r.lower, r.upper) for r in row.taken)
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
    for row in connection.execute(queries.refs(scope, ids)):
        found[row[0], row[1]].append(row[2])
    return found


def as_period(value: Range[datetime] | None) -> Period | None:
    """A range of the driver as a period."""
    return None if value is None else Period(value.lower, value.upper)


def load(
    connection: sa.Connection, scope: Scope, keys: Sequence[Key], *, valid_at: datetime, space_id: int | None
) -> dict[Key, Fact]:
    """Facts with their refs, sources and edges, all as known by then.

    Facts that were not known by then are left out.
    """
    if not keys:
        return {}
    ids = list({key[1] for key in keys})
    evidence: dict[Key, list[Any]] = defaultdict(list)
    for row in connection.execute(queries.sources(scope, ids)):
        evidence[row.namespace, row.fact_id].append(row)
    up: dict[Key, dict[UUID, Any]] = defaultdict(dict)
    for row in connection.execute(queries.edges(scope, ids, side="new")):
        known = up[row.namespace, row.new_fact_id].get(row.old_fact_id)
        if known is None or row.stamp >= known.stamp:
            up[row.namespace, row.new_fact_id][row.old_fact_id] = row
    amended: dict[Key, list[UUID]] = defaultdict(list)
    for row in connection.execute(queries.edges(scope, ids, side="old")):
        if row.reason == "amendment":
            amended[row.namespace, row.old_fact_id].append(row.new_fact_id)
    others = [*{o for olds in up.values() for o in olds}, *{n for new in amended.values() for n in new}]
    names = refs(connection, scope, [*ids, *others])
    own_source = newest_own_sources(connection, scope, others)
    truncated = {
        (row.namespace, row.fact_id)
        for row in connection.execute(queries.vectors(scope, ids, space_id))
        if row.truncated
    }
    loaded = {}
    for row in connection.execute(queries.details(scope, ids, valid_at=valid_at)):
        key = (row.namespace, row.fact_id)
        own = [e for e in evidence[key] if e.inherited_from is None]
        first = [e.asserted_at for e in own if e.stamp == row.stamp and e.asserted_at]
        ordered = dict.fromkeys(e.source_uri for e in [*own, *evidence[key]])
        loaded[key] = Fact(
            claim=row.claim,
            id=str(row.fact_id),
            ref=next(iter(names[key]), None),
            refs=tuple(names[key]),
            namespace=row.namespace,
            kind=row.kind,
            subject=row.subject,
            predicate=row.predicate,
            object=row.object,
            data=row.data,
            valid=as_period(row.valid_time),
            asserted=min(first, default=row.asserted_at),
            recorded=row.stamp,
            confirmed=next((e.asserted_at for e in evidence[key] if e.asserted_at), None),
            source=own[0].source_uri if own else None,
            sources=tuple(ordered),
            trust=row.trust,
            supersedes=tuple(
                Edge(
                    id=str(old),
                    ref=_first(names, (row.namespace, old)),
                    reason=edge.reason,
                    source=own_source.get((row.namespace, old)),
                )
                for old, edge in up[key].items()
                if edge.reason != "amendment"
            ),
            amends=_related(
                names, row.namespace, [o for o, e in up[key].items() if e.reason == "amendment"]
            ),
            amended_by=_related(names, row.namespace, amended[key]),
            truncated=key in truncated,
        )
    return loaded


def newest_own_sources(
    connection: sa.Connection, scope: Scope, ids: Sequence[UUID]
) -> dict[Key, str]:
    """Per fact the newest source of its own."""
    found: dict[Key, str] = {}
    for row in connection.execute(queries.sources(scope, ids)):
        if row.inherited_from is None:
            found.setdefault((row.namespace, row.fact_id), row.source_uri)
    return found


def _first(names: Mapping[Key, list[str]], key: Key) -> str | None:
    return next(iter(names.get(key, ())), None)


def _related(names: Mapping[Key, list[str]], namespace: str, ids: Sequence[UUID]) -> tuple[Related, ...]:
    return tuple(
        Related(id=str(i), ref=_first(names, (namespace, i))) for i in dict.fromkeys(ids)
    )

