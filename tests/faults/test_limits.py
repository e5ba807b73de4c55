"""Limits of time and room: each has its own error, leaves nothing half-applied, and the store goes on."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

import stress
from clusters import Cluster, until
from databases import dump, execute, query
from servers import drop_database, make_database
from supersede import (
    Conflict,
    FactStore,
    OutcomeUnknown,
    ServerFull,
    ServerReadOnly,
    ServerUnavailable,
    TimedOut,
)
from supersede import engine as db
from supersede.adapters import postgres_wheel

# --- time


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a session, made short."""
    limits = {"lock_timeout": "50ms", "idle_in_transaction_session_timeout": "50ms"}
    settings = ", ".join(
        f"set_config('{name}', '{value}', true)" for name, value in {**db._SESSION, **limits}.items()
    )
    monkeypatch.setattr(db, "_SET_LOCAL", sa.text(f"select {settings}"))
    monkeypatch.setattr(db, "_SET_ALL", sa.text(f"select {settings}, set_config('search_path', :path, true)"))


@contextmanager
def idle_transaction(url: str) -> Iterator[None]:
    """Somebody else's transaction, which has written and stands idle."""
    with psycopg.connect(url) as other:
        other.execute("""select supersede.remember('{"claim": "not committed"}')""")
        yield
        other.rollback()


def test_a_writer_gives_up_behind_an_idle_transaction_and_says_what_to_look_for(
    database: str, store: FactStore, short: None
) -> None:
    store.remember("claim", ref="a")
    before = dump(database)
    with idle_transaction(database):
        with pytest.raises(Conflict, match=r"lock_timeout.*repeat the call.*idle in transaction") as gave_up:
            store.retract("a", handle="k")
        assert gave_up.value.details == {"sqlstate": "55P03"}
        with pytest.raises(Conflict), store.transaction() as together:
            together.retract("a", handle="k")
        assert [fact.ref for fact in store.facts().facts] == ["a"], "readers wait for nobody"
        with FactStore.open(database, namespace="another") as other:
            other.remember("a namespace of its own does not wait")
    assert dump(database)["fact_version"] != before["fact_version"]
    assert not store.retract("a", handle="k").repeated


def test_every_session_of_a_store_has_limits(store: FactStore) -> None:
    with db.writing(store._engine) as connection:
        limits = connection.execute(
            sa.text(
                "select current_setting('lock_timeout'), "
                "current_setting('idle_in_transaction_session_timeout')"
            )
        ).one()
    assert tuple(limits) == ("15s", "5min")


def test_a_statement_that_takes_too_long_is_timed_out(database: str) -> None:
    with FactStore.open(database) as store:
        store.remember("claim", ref="a")
    before = dump(database)
    name = database.rpartition("/")[2].partition("?")[0]
    execute(
        database, sql.SQL("alter database {} set statement_timeout = '100ms'").format(sql.Identifier(name))
    )
    execute(
        database,
        "create function public.linger() returns trigger language plpgsql as "
        "'begin perform pg_sleep(600); return new; end'; "
        "create trigger linger before insert on supersede.operation "
        "for each row execute function public.linger()",
    )
    with FactStore.open(database) as store:
        with pytest.raises(TimedOut, match="statement_timeout of the role or the database"):
            store.retract("a", handle="k")
        assert dump(database) == before
        execute(database, "drop trigger linger on supersede.operation")
        assert not store.retract("a", handle="k").repeated


def test_a_cancelled_statement_changed_nothing(database: str, store: FactStore) -> None:
    store.remember("claim", ref="a")
    before = dump(database)
    execute(
        database,
        "create function public.cancel() returns trigger language plpgsql as "
        "'begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(600); return new; end'; "
        "create trigger cancel before insert on supersede.operation "
        "for each row execute function public.cancel()",
    )
    with pytest.raises(TimedOut, match="user request"):
        store.retract("a")
    execute(database, "drop trigger cancel on supersede.operation")
    assert dump(database) == before


@pytest.mark.parametrize("then", ["another verb", "the end of the block"])
def test_a_block_that_stands_idle_for_too_long_is_ended(
    database: str, store: FactStore, short: None, then: str
) -> None:
    def linger() -> None:
        with store.transaction() as together:
            together.remember("claim", ref="a")
            until(
                lambda: (
                    query(
                        database,
                        "select count(*) from pg_stat_activity where datname = current_database() "
                        "and pid <> pg_backend_pid()",
                    )
                    == [(0,)]
                ),
                "the end of the idle session",
            )
            if then == "another verb":
                together.remember("claim", ref="b")

    before = dump(database)
    with pytest.raises(TimedOut, match=r"idle-in-transaction timeout.*block shorter"):
        linger()
    assert dump(database) == before
    assert not store.remember("claim", ref="a").repeated


def test_a_server_that_never_answers_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(db._PATIENCE, "connect_timeout", "2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ServerUnavailable, match="timeout"):
            FactStore.open(f"postgresql://postgres@127.0.0.1:{port}/x")


def test_limits_of_the_network_can_be_said_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://postgres@127.0.0.1/x"
    assert db.make_engine(url).url.query["connect_timeout"] == "10"
    assert db.make_engine(f"{url}?connect_timeout=77").url.query["connect_timeout"] == "77"
    assert "connect_timeout" not in db.make_engine(f"{url}?service=mine").url.query
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "33")
    query_of = db.make_engine(url).url.query
    assert "connect_timeout" not in query_of
    assert query_of["keepalives_idle"] == "60"


def test_a_database_set_to_read_only_says_so(database: str) -> None:
    name = database.rpartition("/")[2].partition("?")[0]
    execute(
        database,
        sql.SQL("alter database {} set default_transaction_read_only = on").format(sql.Identifier(name)),
    )
    with FactStore.open(database) as store, pytest.raises(ServerReadOnly):
        store.remember("claim")


# --- room


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder on a file system of its own, which belongs to the server's user."""
    folder = Path(tempfile.mkdtemp(prefix="supersede-test-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    user = postgres_wheel.server_user()
    os.chown(folder, user.uid, user.gid)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(folder: Path) -> Path:
    """A file that leaves no room beside it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    assert shutil.disk_usage(folder).free == 0
    return ballast


def remember_until_refused(store: FactStore) -> tuple[list[str], Exception]:
    """The refs that were acknowledged, and what came then."""
    acknowledged: list[str] = []
    while True:
        ref = f"n{len(acknowledged)}"
        assert len(acknowledged) < 5_000, "there was room after all"
        try:
            store.remember(f"claim {ref} " + "much to say " * 150, ref=ref)
        except Exception as error:
            return acknowledged, error
        acknowledged.append(ref)


@as_root
def test_a_full_disk_refuses_a_write_and_nothing_is_half_applied(
    cluster: Cluster, cluster_template: str
) -> None:
    with small_disk(32) as folder:
        execute(cluster.url, sql.SQL("create tablespace small location {}").format(sql.Literal(str(folder))))
        url = make_database(cluster.url, "on_a_small_disk", cluster_template)
        try:
            execute(cluster.url, "alter database on_a_small_disk set tablespace small")
            with FactStore.open(url) as store:
                ballast = fill(folder)
                acknowledged, error = remember_until_refused(store)
                assert isinstance(error, ServerFull)
                assert "No space left on device" in error.message
                before = dump(url)
                with pytest.raises(ServerFull):
                    store.remember_many([{"claim": "filler " * 1_000, "ref": f"m{n}"} for n in range(50)])
                assert dump(url) == before
                ballast.unlink()
                acknowledged.append(f"n{len(acknowledged)}")
                again = store.remember(
                    f"claim {acknowledged[-1]} " + "much to say " * 150, ref=acknowledged[-1]
                )
                assert not again.repeated
            found = {row[0] for row in query(url, "select ref from supersede.fact_ref where ref like 'n%'")}
            assert found == set(acknowledged)
            assert set(stress.integrity(url).values()) == {0}
        finally:
            drop_database(cluster.url, "on_a_small_disk")
            execute(cluster.url, "drop tablespace small")


@as_root
def test_a_full_disk_under_the_log_stops_the_server_and_loses_nothing(
    cluster: Cluster, cluster_template: str
) -> None:
    url = make_database(cluster.url, "without_a_log", cluster_template)
    try:
        with small_disk(64) as folder, log_on(cluster, folder), FactStore.open(url) as store:
            ballast = fill(folder)
            acknowledged, error = remember_until_refused(store)
            # The server cannot promise anything any more, and stops: at the write, or at its commit.
            assert isinstance(error, ServerUnavailable | OutcomeUnknown | ServerFull)
            ballast.unlink()
            cluster.restart()
            last = f"n{len(acknowledged)}"
            store.remember(f"claim {last} " + "much to say " * 150, ref=last)
            assert query(url, "select count(*) from supersede.fact_ref where ref like 'n%'") == [
                (len(acknowledged) + 1,)
            ]
            assert set(stress.integrity(url).values()) == {0}
    finally:
        drop_database(cluster.url, "without_a_log")


@contextmanager
def log_on(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Keep the server's write-ahead log there, in small segments, so that it soon needs another one."""
    home = cluster.pgdata / "pg_wal"
    aside = cluster.pgdata / "pg_wal.aside"
    settings = cluster.pgdata / "postgresql.conf"
    earlier = settings.read_text()
    cluster.stop()
    _resize_segments(cluster, 1)
    cluster.configure(min_wal_size="2MB", max_wal_size="8MB")
    shutil.copytree(home, folder / "pg_wal")
    home.rename(aside)
    home.symlink_to(folder / "pg_wal")
    user = postgres_wheel.server_user()
    for path in (folder / "pg_wal", *(folder / "pg_wal").rglob("*")):
        os.chown(path, user.uid, user.gid)
    cluster.restart()
    try:
        yield
    finally:
        cluster.stop()
        home.unlink()
        shutil.rmtree(aside)
        shutil.copytree(folder / "pg_wal", home)
        for path in (home, *home.rglob("*")):
            os.chown(path, user.uid, user.gid)
        home.chmod(0o700)
        _resize_segments(cluster, 16)
        settings.write_text(earlier)
        cluster.restart()


def _resize_segments(cluster: Cluster, megabytes: int) -> None:
    programs = postgres_wheel._programs(cluster.home)
    done = postgres_wheel._run(
        [str(programs / "pg_resetwal"), f"--wal-segsize={megabytes}", str(cluster.pgdata)],
        postgres_wheel.server_user(),
    )
    assert done.ok, done.output
