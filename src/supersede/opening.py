"""From a URL, or from none, to a database that is fit to use."""

from __future__ import annotations

import sqlalchemy as sa

from supersede import adapters, embedded, facts, migrate, questions
from supersede import engine as db
from supersede.ports import Embedder
from supersede.schema import HEAD_REVISION
from supersede.settings import Settings


def target(url: str | None, settings: Settings, embedder: Embedder | None) -> str:
    """The URL of the server that is meant: the given one, the environment's, else the embedded one.

    Only the embedded database is created and upgraded here.

    :raises ServerUnavailable: if the embedded server does not start.
    """
    given = url or (settings.url.get_secret_value() if settings.url else None)
    if given is not None:
        return given
    own = embedded.url(settings.data_dir)
    _prepare(own, embedder)
    return own


def check(connection: sa.Connection) -> list[facts.Space]:
    """Refuse a database that is not fit; returns its embedding spaces.

    :raises ServerUnsupported: for a server that is too old, or lacks an extension.
    :raises SchemaOutOfDate: if its schema is not the one this version needs.
    """
    db.check_server(connection)
    migrate.check_revision(connection)
    db.check_extensions(connection)
    return facts.spaces(connection)


def init(
    url: str,
    *,
    embedder: Embedder | None,
    text_search: str | None,
    min_similarity: float | None = None,
    near_duplicate: float | None = None,
) -> tuple[str, ...]:
    """Prepare a database, as ``FactStore.init`` describes."""
    for name, said in (("min_similarity", min_similarity), ("near_duplicate", near_duplicate)):
        if said is not None:
            questions.share(said, name)
    engine = db.make_engine(url)
    try:
        with db.translated_errors():
            roles = migrate.init(engine, text_search=text_search)
        chosen = embedder or adapters.default()
        if chosen is not None:
            with db.writing(engine) as connection:
                facts.register_space(
                    connection,
                    model=chosen.model,
                    dimensions=chosen.dimensions,
                    measured=adapters.thresholds(chosen),
                    said=(min_similarity, near_duplicate),
                )
        return tuple(roles)
    finally:
        engine.dispose()


def _prepare(url: str, embedder: Embedder | None) -> None:
    engine = db.make_engine(url)
    try:
        with db.reading(engine) as connection:
            current = migrate.current_revision(connection) == HEAD_REVISION
            models = {space.model for space in facts.spaces(connection)} if current else set()
    finally:
        engine.dispose()
    wanted = embedder or adapters.default()
    if not current or (wanted is not None and wanted.model not in models):
        init(url, embedder=embedder, text_search=None)
