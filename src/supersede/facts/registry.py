"""The store's own state: namespaces and their heads, the clock, the embedding spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from supersede import queries
from supersede.errors import InvalidInput, NamespaceNotFound, SpaceGone
from supersede.facts.rows import Head, Space
from supersede.schema import embedding_space

MAXIMUM_DIMENSIONS = 4_000


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
    measured: tuple[float, float],
    said: tuple[float | None, float | None] = (None, None),
    first_is_active: bool = True,
) -> Space:
    """Register the space of a model unless it is there.

    :param measured: floor and near-duplicate cosine of a new space.
    :param said: the same, where somebody wants others; also for a space that is there.
    :param first_is_active: whether the first space of a database becomes the active one.
    :raises InvalidInput: for more dimensions than a vector of half precision can have.
    """
    if not 1 <= dimensions <= MAXIMUM_DIMENSIONS:
        raise InvalidInput(
            f"the embedder of {model!r} says {dimensions} dimensions; a space has 1 to {MAXIMUM_DIMENSIONS:,}"
        )
    connection.execute(sa.text("lock table supersede.embedding_space in share row exclusive mode"))
    known = spaces(connection)
    for space in known:
        if space.model == model:
            return _changed(connection, space, said)
    min_similarity, near_duplicate = (
        kept if wanted is None else wanted for kept, wanted in zip(measured, said, strict=True)
    )
    space = Space(
        max((s.id for s in known), default=0) + 1,
        model,
        dimensions,
        min_similarity,
        near_duplicate,
        first_is_active and not any(s.active for s in known),
    )
    connection.execute(sa.insert(embedding_space).values(**space._asdict()))
    return space


def _changed(connection: sa.Connection, space: Space, said: tuple[float | None, float | None]) -> Space:
    floor, near = said
    changed = space._replace(
        min_similarity=space.min_similarity if floor is None else floor,
        near_duplicate=space.near_duplicate if near is None else near,
    )
    if changed != space:
        own = sa.update(embedding_space).where(embedding_space.c.id == space.id)
        connection.execute(own.values(changed._asdict()))
    return changed


def state(connection: sa.Connection) -> tuple[datetime, str]:
    """The database's time, and the text-search configuration chosen at init."""
    row = connection.execute(queries.state()).one()
    return row[0], str(row[1])


def heads(connection: sa.Connection, names: Sequence[str], *, own: str | None) -> dict[str, Head]:
    """The head of each namespace; one without a head for a namespace that may be missing.

    :param own: the store's namespace, which may not exist yet; None: none of them need exist.
    :raises NamespaceNotFound: if any other does not exist.
    """
    found = {row[0]: Head(row[1], row[2]) for row in connection.execute(queries.heads(names))}
    for name in names:
        if own is not None and name != own and name not in found:
            raise NamespaceNotFound(
                f"namespace {name!r} does not exist; a namespace is made by its first write"
            )
    return {name: found.get(name, Head(None, None)) for name in names}


def require_seen(connection: sa.Connection, seen: Mapping[str, datetime | None]) -> None:
    """Refuse heads that this server never had, whether they lie ahead of it or were lost.

    :raises OutOfSync: naming the namespace.
    """
    for name, head in seen.items():
        if head is not None:
            connection.execute(queries.has_seen(name, head))
