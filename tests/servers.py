"""Where the tests find a PostgreSQL server, and how they make databases on it.

In this order: the superuser URL in ``SUPERSEDE_TEST_URL``; a container of the public pgvector image
where a Docker daemon answers; the embedded server, in a temporary folder. The last two are the
session's own, are not durable, and end with it.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from supersede import embedded
from supersede.settings import normalise_url

IMAGE = "pgvector/pgvector:pg18"
# What a crash would lose is of no interest to a test: this halves the time of one that commits.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


@contextmanager
def find_server() -> Iterator[str]:
    """The superuser URL of a maintenance database, for as long as the block lasts."""
    if given := os.environ.get("SUPERSEDE_TEST_URL"):
        yield given
    elif docker_answers():
        with container() as url:
            yield url
    else:
        with embedded_server() as url:
            yield url


def docker_answers() -> bool:
    """Whether there is a daemon; a ``docker`` program or an environment variable says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answers = _ping_docker()
        except Exception:  # no docker SDK, no socket, no permission: all the same to us
            answers = False
        gc.collect()  # a failed attempt leaves a socket open; closed now, it fails no later test
    return answers


def _ping_docker() -> bool:
    import docker

    client = docker.from_env(timeout=2)
    try:
        return bool(client.ping())
    finally:
        client.close()


@contextmanager
def container() -> Iterator[str]:
    # Its warnings are about itself, and would fail the suite.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        postgres = container_class()(IMAGE, username="postgres", dbname="postgres", driver=None)
        settings = " ".join(f"-c {name}={value}" for name, value in NOT_DURABLE.items())
        postgres.with_command(f"postgres {settings} -c max_connections=200")
        postgres.start()
    try:
        yield postgres.get_connection_url()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            postgres.stop()


def container_class() -> type:
    try:
        from testcontainers.community.postgres import PostgresContainer
    except ImportError:  # before testcontainers 4.15
        from testcontainers.postgres import PostgresContainer
    return PostgresContainer


@contextmanager
def embedded_server() -> Iterator[str]:
    with temporary_data_dir() as data_dir:
        url = database_url(embedded.url(data_dir), "postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            for name, value in NOT_DURABLE.items():
                connection.execute(f"alter system set {name} = {value}")
            connection.execute("select pg_reload_conf()")
        yield url


@contextmanager
def temporary_data_dir(name: str = "data") -> Iterator[Path]:
    """A folder for an embedded server, which is stopped at the end.

    Under /tmp, also if TMPDIR says otherwise: as root the server's user must be able to enter, and
    the path of a socket is short.
    """
    parent = Path(tempfile.mkdtemp(prefix="supersede-test-", dir="/tmp"))
    parent.chmod(0o711)
    try:
        yield parent / name
    finally:
        embedded.stop(parent / name)
        shutil.rmtree(parent)


def database_url(server_url: str, name: str) -> str:
    """The same server, user and options, with another database."""
    url = normalise_url(server_url).set(drivername="postgresql", database=name)
    return url.render_as_string(hide_password=False)


def make_database(server_url: str, name: str, template: str | None = None) -> str:
    """Make a database, a copy of ``template`` if given, and return its URL."""
    command = sql.SQL("create database {}").format(sql.Identifier(name))
    if template is not None:
        command += sql.SQL(" template {}").format(sql.Identifier(template))
    with psycopg.connect(database_url(server_url, "postgres"), autocommit=True) as connection:
        connection.execute(command)
    return database_url(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    """Drop a database, whoever is still connected to it."""
    command = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
    with psycopg.connect(database_url(server_url, "postgres"), autocommit=True) as connection:
        connection.execute(command)


@contextmanager
def new_database(server_url: str, kind: str, template: str | None = None) -> Iterator[tuple[str, str]]:
    """Name and URL of a new database; no two processes on one server choose the same name."""
    name = f"{kind}_{uuid.uuid4().hex}"
    try:
        yield name, make_database(server_url, name, template)
    finally:
        drop_database(server_url, name)
