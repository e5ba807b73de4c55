"""Fixtures that every test may use; where the server comes from is in servers.py."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from servers import drop_database, find_server, make_database


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The superuser URL of a maintenance database."""
    with find_server() as url:
        yield url


@pytest.fixture
def empty_database(server_url: str) -> Iterator[str]:
    """The URL of a database of this test's own, without a table."""
    name = f"test_{uuid.uuid4().hex}"
    yield make_database(server_url, name)
    drop_database(server_url, name)


@pytest.fixture(autouse=True)
def settings_of_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test talks to the store that the developer uses, or is shaped by its settings."""
    for name in os.environ:
        if name.startswith("SUPERSEDE_") and name != "SUPERSEDE_TEST_URL":
            monkeypatch.delenv(name)
