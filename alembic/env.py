"""Runs the revisions over the connection that supersede.migrate passes, or over a URL of alembic's own.

Functions and views are applied again after an upgrade that ends at head, in the same transaction; not by
``alembic check``, ``current`` or a downgrade, for which this file runs too.
"""

from __future__ import annotations

import os

import sqlalchemy as sa
from alembic import context
from alembic.script import ScriptDirectory

from supersede import engine, migrate
from supersede.schema import SCHEMA, metadata

config = context.config


def _upgrades_to_head() -> bool:
    """Whether the command at hand is an upgrade whose target is the newest revision."""
    try:
        target = context.get_revision_argument()
    except KeyError:
        return False
    return target is not None and target == ScriptDirectory.from_config(config).get_current_head()


def _run(connection: sa.Connection) -> None:
    migrate.prepare_session(connection)
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_schemas=True,
        include_name=lambda name, kind, _: name == SCHEMA if kind == "schema" else True,
        include_object=migrate.is_compared,
        version_table_schema=SCHEMA,
        compare_type=migrate.types_differ,
        transaction_per_migration=False,
    )
    with context.begin_transaction():
        if _has_target():
            engine.check_extensions(connection)
            connection.execute(sa.text(f"create schema if not exists {SCHEMA}"))
        context.run_migrations()
        if _upgrades_to_head():
            migrate.apply_sql(connection)


def _has_target() -> bool:
    try:
        context.get_revision_argument()
    except KeyError:
        return False
    return True


def _url() -> str:
    url = context.get_x_argument(as_dictionary=True).get("url") or os.environ.get("SUPERSEDE_URL")
    if not url:
        raise SystemExit("say which database: alembic -x url=postgresql://... , or set SUPERSEDE_URL")
    return url


if context.is_offline_mode():
    raise SystemExit("supersede's revisions need a connection; offline SQL is not supported")

shared = config.attributes.get("connection")
if shared is not None:
    _run(shared)
else:
    with migrate.connect_for_migration(_url()) as own:
        _run(own)
