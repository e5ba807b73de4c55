"""Fixtures that every test may use; where the server comes from is in servers.py.

Each test gets a database of its own, copied from a template that is made once a session: ``database``
and ``store`` rank by words alone, ``vector_database`` and ``vector_store`` have the space of the fake
embedder. The superuser owns them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from databases import set_clock
from fakes import BagOfWords
from servers import find_server, new_database
from supersede import FactStore, engine, migrate


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The superuser URL of a maintenance database."""
    with find_server() as url:
        yield url


@pytest.fixture
def empty_database(server_url: str) -> Iterator[str]:
    """The URL of a database of this test's own, without a table."""
    with new_database(server_url, "test") as (_, url):
        yield url


@pytest.fixture(scope="session")
def template_database(server_url: str) -> Iterator[str]:
    """The name of a prepared database without an embedding space; nobody may stay connected to it."""
    with new_database(server_url, "template") as (name, url):
        own = engine.make_engine(url)
        try:
            migrate.init(own, text_search="english")
        finally:
            own.dispose()
        yield name


@pytest.fixture(scope="session")
def vector_template_database(server_url: str, template_database: str) -> Iterator[str]:
    """As ``template_database``, with the space of the fake embedder."""
    with new_database(server_url, "template", template_database) as (name, url):
        FactStore.init(url, embedder=BagOfWords())
        yield name


@pytest.fixture
def database(server_url: str, template_database: str) -> Iterator[str]:
    """The URL of a prepared database of this test's own, where words alone rank."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


@pytest.fixture(scope="module")
def module_database(server_url: str, template_database: str) -> Iterator[str]:
    """As ``database``, for all tests of a module that keep apart by namespaces."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


@pytest.fixture
def vector_database(server_url: str, vector_template_database: str) -> Iterator[str]:
    """The URL of a prepared database of this test's own, with the space of the fake embedder."""
    with new_database(server_url, "test", vector_template_database) as (_, url):
        yield url


@pytest.fixture
def store(database: str) -> Iterator[FactStore]:
    """A store on ``database``."""
    with FactStore.open(database) as store:
        yield store


@pytest.fixture
def vector_store(vector_database: str) -> Iterator[FactStore]:
    """A store on ``vector_database`` with the fake embedder."""
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        yield store


FROZEN_AT = "2026-07-24T00:00:00Z"


@pytest.fixture
def frozen_clock(database: str) -> str:
    """Stops the clock of ``database`` and returns the instant; ``databases.set_clock`` moves it."""
    set_clock(database, FROZEN_AT)
    return FROZEN_AT


@pytest.fixture(autouse=True)
def settings_of_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test talks to the store that the developer uses, or is shaped by its settings."""
    for name in os.environ:
        if name.startswith("SUPERSEDE_") and name != "SUPERSEDE_TEST_URL":
            monkeypatch.delenv(name)
