"""A server that these tests may kill, with a prepared database to copy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters import Cluster, new_cluster
from databases import set_clock
from fakes import BagOfWords
from faults import cases
from servers import new_database
from supersede import FactStore


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """A running embedded server; who kills it starts it again. What was committed survives a kill -9."""
    with new_cluster() as cluster:
        cluster.configure(fsync="off")  # a power cut is not among the faults, and a commit is quicker
        cluster.reload()
        yield cluster


@pytest.fixture(scope="package")
def cluster_template(cluster: Cluster) -> Iterator[str]:
    """The name of a database on it with the past that ``cases`` need; its clock stands still."""
    with new_database(cluster.url, "template") as (name, url):
        FactStore.init(url, embedder=BagOfWords())
        set_clock(url, cases.NOW)
        cases.prepare(url)
        yield name


@pytest.fixture
def copy(cluster: Cluster, cluster_template: str) -> Iterator[str]:
    """The URL of a copy of it."""
    with new_database(cluster.url, "test", cluster_template) as (_, url):
        yield url
