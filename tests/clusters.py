"""Servers of a test's own, to be killed, filled, cut off and copied: the shared one is never touched."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from servers import database_url
from supersede import embedded
from supersede.adapters import postgres_wheel, postmaster

PATIENCE = 60.0
"""Seconds after which what should have happened counts as not happening."""


def until(happened: Callable[[], object], what: str) -> None:
    """Wait for something that comes by itself."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.01)


def answers(url: str) -> bool:
    """Whether a server lets one in."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


@dataclass
class Cluster:
    """An embedded server; durable as it comes, unless a test says otherwise."""

    home: Path

    @property
    def pgdata(self) -> Path:
        return self.home / "pgdata"

    @property
    def url(self) -> str:
        """The URL of its maintenance database, whether or not it runs."""
        return f"postgresql://postgres@/postgres?host={self.pgdata}&port=5432"

    def start(self) -> None:
        embedded.start(self.home)

    def stop(self) -> None:
        embedded.stop(self.home)

    def kill(self) -> None:
        """End the postmaster as a power cut would, and wait until it and its children are gone."""
        pid = embedded.status(self.home).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: postmaster.live(self.pgdata) is None, "the postmaster's end")

    def restart(self) -> None:
        """Start it again after it was killed; it recovers."""
        self.start()
        until(lambda: answers(self.url), "recovery")

    def database(self, name: str) -> str:
        return database_url(self.url, name)

    def configure(self, **settings: str) -> None:
        """Set what holds from the next start on, or after :meth:`reload`."""
        with (self.pgdata / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def admit_its_own_user(self) -> None:
        """Let its system user in, so that a standby can copy and follow it."""
        with (self.pgdata / "pg_ident.conf").open("a") as file:
            file.write(f"owner {postgres_wheel.server_user().name} all\n")

    def reload(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_reload_conf()")


@contextmanager
def new_cluster() -> Iterator[Cluster]:
    """A running embedded server in a folder of its own, both gone at the end."""
    parent = Path(tempfile.mkdtemp(prefix="supersede-test-", dir="/tmp"))
    parent.chmod(0o711)
    cluster = Cluster(parent / "data")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent)


@contextmanager
def standby_of(primary: Cluster) -> Iterator[Cluster]:
    """A streaming copy of a server, already following it."""
    programs = postgres_wheel._programs(primary.home)
    user = postgres_wheel.server_user()
    parent = Path(tempfile.mkdtemp(prefix="supersede-test-", dir="/tmp"))
    parent.chmod(0o711)
    copy = Cluster(parent / "data")
    copy.home.mkdir(mode=0o755)
    os.chown(copy.home, user.uid, user.gid)
    primary.admit_its_own_user()
    primary.reload()
    try:
        done = postgres_wheel._run(
            [
                str(programs / "pg_basebackup"),
                *("-D", str(copy.pgdata), "-R", "-X", "stream", "-c", "fast"),
                *("-d", f"postgresql://postgres@/?host={primary.pgdata}&port=5432"),
            ],
            user,
        )
        assert done.ok, done.output
        copy.start()
        yield copy
    finally:
        copy.stop()
        shutil.rmtree(parent)


def processes_of(cluster: Cluster) -> list[psutil.Process]:
    """Its backends."""
    pid = embedded.status(cluster.home).pid
    return psutil.Process(pid).children() if pid else []
