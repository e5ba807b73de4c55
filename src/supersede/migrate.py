"""From an empty database to the schema this version needs: extensions, revisions, functions, views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from supersede import engine as db
from supersede.errors import InvalidInput, SchemaOutOfDate, ServerUnsupported
from supersede.schema import HEAD_REVISION, SCHEMA

ROLES = ("supersede_reader", "supersede_writer", "supersede_importer", "supersede_analyst")
# As a cast to regconfig finds one, but without an error where there is none.
_REGCONFIG = """
select c.oid from pg_catalog.pg_ts_config c
where c.cfgname = :name
  and case when :schema = '' then pg_catalog.pg_ts_config_is_visible(c.oid)
           else c.cfgnamespace = to_regnamespace(:schema) end
"""
# Two processes that open the same new database at once take turns.
_INIT_LOCK = 0x7375_7065


def _files(kind: str) -> Path:
    """A folder of this project's SQL or revisions: inside the wheel, else in the source tree."""
    here = Path(__file__).resolve().parent
    packaged = here / f"_{kind}"
    return packaged if packaged.is_dir() else here.parent.parent / kind


def prepare_session(connection: sa.Connection) -> None:
    """Put the schema of the extensions on the search path, where vector's types and operators live."""
    connection.execute(
        sa.text("select set_config('search_path', :path, true)"),
        {"path": db.search_path(connection)[0]},
    )


@contextmanager
def connect_for_migration(url: str) -> Iterator[sa.Connection]:
    """A connection in a transaction, for alembic's own command line."""
    with db.make_engine(url).begin() as connection:
        yield connection


def is_compared(
    item: Any,  # noqa: ANN401 - alembic passes any schema item
    name: str | None,
    kind: str,
    _reflected: bool,  # noqa: FBT001 - alembic's signature
    _compare_to: Any,  # noqa: ANN401
) -> bool:
    """Whether ``alembic check`` compares an object: not the partitions, which metadata cannot express."""
    table = name if kind == "table" else getattr(getattr(item, "table", None), "name", None)
    return table not in {"fact_version_open", "fact_version_closed", "alembic_version"}


def types_differ(
    _context: Any,  # noqa: ANN401 - alembic's signature
    _inspected: Any,  # noqa: ANN401
    _column: Any,  # noqa: ANN401
    inspected_type: Any,  # noqa: ANN401
    metadata_type: Any,  # noqa: ANN401
) -> bool | None:
    """Compare enums by name and labels: which schema a reflected one names depends on the search path."""
    if isinstance(inspected_type, sa.Enum) and isinstance(metadata_type, sa.Enum):
        return (inspected_type.name, inspected_type.enums) != (metadata_type.name, metadata_type.enums)
    return None


def apply_sql(connection: sa.Connection) -> None:
    """Apply every function and view, then the grants; one object a file, in the order of their names."""
    root = _files("sql")
    for path in [
        *sorted((root / "functions").glob("*.sql")),
        *sorted((root / "views").glob("*.sql")),
        root / "grants.sql",
    ]:
        # Straight to the driver: a colon or a percent sign in a body is no parameter.
        connection.execution_options(no_parameters=True).exec_driver_sql(path.read_text(encoding="utf-8"))


def _config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_files("alembic")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def init(engine: sa.Engine, *, text_search: str | None = None) -> list[str]:
    """Create the extensions and bring the schema to head; safe to repeat.

    :returns: statements for somebody who may create roles, where the owner may not; else none. After
        them, ``init`` once more grants the roles what they need.
    :param text_search: PostgreSQL text-search configuration, fixed at the first ``init``; else the one
        that was chosen then, or ``english``.
    :raises ServerUnsupported: if an extension is missing or may not be created.
    :raises SchemaOutOfDate: if the database was made by a newer supersede.
    :raises InvalidInput: if the configuration does not exist or another one was chosen before.
    """
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": _INIT_LOCK})
        db.check_server(connection)
        revision = current_revision(connection)
        if revision is not None and revision > HEAD_REVISION:
            raise SchemaOutOfDate(_newer(revision))
        connection.execute(sa.text(f"create schema if not exists {SCHEMA}"))
        _create_extensions(connection)
        if revision == HEAD_REVISION:
            prepare_session(connection)
            apply_sql(connection)
        else:
            command.upgrade(_config(connection), "head")
        _choose_text_search(connection, text_search)
        return missing_roles(connection)


def missing_roles(connection: sa.Connection) -> list[str]:
    """Statements that make the roles which this cluster lacks."""
    found = connection.execute(
        sa.text("select rolname from pg_catalog.pg_roles where rolname = any (:names)"),
        {"names": list(ROLES)},
    ).scalars()
    present = set(found)
    return [f"CREATE ROLE {role} NOLOGIN;" for role in ROLES if role not in present]


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Run the revisions up to one of them, inside the caller's transaction."""
    command.upgrade(_config(connection), revision)


def downgrade(connection: sa.Connection, revision: str) -> None:
    """Run the revisions down to one of them, inside the caller's transaction."""
    command.downgrade(_config(connection), revision)


def _create_extensions(connection: sa.Connection) -> None:
    # Said, since under our search path they would land in pg_catalog. One that is there stays where it is.
    # Not into ours either, whose routines are closed to everybody but our roles.
    if connection.execute(sa.text("select to_regnamespace('public')")).scalar() is not None:
        home = "public"
    else:
        home = f"{SCHEMA}_extensions"
        connection.execute(sa.text(f"create schema if not exists {home}"))
        connection.execute(sa.text(f"grant usage on schema {home} to public"))
    for name in db.EXTENSIONS:
        try:
            with connection.begin_nested():
                connection.execute(sa.text(f"create extension if not exists {name} schema {home}"))
        except sa.exc.DBAPIError as error:
            raise ServerUnsupported(
                f"extension {name} could not be created: {_first_line(error)}; install it on the "
                f"server (pgvector: package postgresql-NN-pgvector) or have a superuser run "
                f"CREATE EXTENSION {name}"
            ) from error.orig


def _choose_text_search(connection: sa.Connection, text_search: str | None) -> None:
    row = connection.execute(
        sa.text("select text_search::oid, text_search::text from supersede.configuration")
    ).one_or_none()
    chosen, chosen_name = (None, None) if row is None else (row[0], row[1])
    if chosen is not None and text_search is None:
        return
    name = "english" if text_search is None else text_search
    if not re.fullmatch(r"[a-z_][a-z0-9_.]*", name):
        raise InvalidInput(f"text search configuration {name!r} is not a plain name")
    wanted = connection.execute(
        sa.text(_REGCONFIG), {"schema": name.rpartition(".")[0], "name": name.rpartition(".")[2]}
    ).scalar()
    if wanted is None:
        raise InvalidInput(f"there is no text search configuration {name!r}; psql's " r"\dF lists them")
    if chosen is None:
        connection.execute(
            sa.text(
                "insert into supersede.configuration (text_search) values (cast(:oid as oid)::regconfig)"
            ),
            {"oid": wanted},
        )
    elif chosen != wanted:
        raise InvalidInput(
            f"this database was made with text search configuration {chosen_name!r}; the text columns of "
            f"its facts cannot be changed to {name!r}"
        )


def current_revision(connection: sa.Connection) -> str | None:
    """The revision of the database's schema, or None where there is none."""
    if connection.execute(sa.text("select to_regclass('supersede.alembic_version')")).scalar() is None:
        return None
    return connection.execute(sa.text("select version_num from supersede.alembic_version")).scalar()


def check_revision(connection: sa.Connection) -> None:
    """Raise unless the database's schema is exactly the one this version needs.

    :raises SchemaOutOfDate: saying what to do.
    """
    revision = current_revision(connection)
    if revision == HEAD_REVISION:
        return
    if revision is None:
        raise SchemaOutOfDate("this database has no supersede schema yet; run `supersede init` on it")
    if revision > HEAD_REVISION:
        raise SchemaOutOfDate(_newer(revision))
    raise SchemaOutOfDate(
        f"the database's schema is revision {revision}, this supersede needs {HEAD_REVISION}; run "
        "`supersede init` to upgrade it"
    )


def _newer(revision: str) -> str:
    return (
        f"the database's schema is revision {revision}, made by a newer supersede than this one "
        f"({HEAD_REVISION}); upgrade the package"
    )


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]
