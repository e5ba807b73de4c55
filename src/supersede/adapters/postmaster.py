"""Which process, if any, is the server of a cluster. A pid file is a claim, not an answer.

A server killed with -9 leaves its ``postmaster.pid``; its pid may by now be another process, or a
zombie where nobody reaps. A process counts as the server only if its arguments name the cluster:
the arguments, since a container's root may not look at another user's working directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

ORPHAN_SECONDS = 5.0


class Postmaster(NamedTuple):
    """What ``postmaster.pid`` says."""

    pid: int
    socket_dir: Path


def read(cluster: Path) -> Postmaster | None:
    """What the pid file says, whether or not it is so."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        # The socket's folder may be relative to the cluster, and is empty while the server starts.
        return Postmaster(int(lines[0]), cluster / lines[4].strip())
    except (FileNotFoundError, IndexError, ValueError):
        return None


def live(cluster: Path) -> Postmaster | None:
    """The server's process, if it lives."""
    claimed = read(cluster)
    return claimed if claimed is not None and lives(claimed, cluster) else None


def lives(claimed: Postmaster, cluster: Path) -> bool:
    """Whether that process is there, and is the server of the cluster."""
    try:
        return _serves(_arguments(_psutil().Process(claimed.pid)), cluster)
    except _psutil().NoSuchProcess:
        return False


def drop_stale_files(cluster: Path) -> None:
    """Remove the lock files that PostgreSQL would take for a live server's: their pid is another's.

    A ``postmaster.pid`` whose pid is nobody's is left to PostgreSQL, which looks more closely. Only
    for who holds the lock of the data folder, and has found no live server.
    """
    claimed = read(cluster)
    if claimed is None or _psutil().pid_exists(claimed.pid):
        (cluster / "postmaster.pid").unlink(missing_ok=True)
    # Of the socket, whose folder is the cluster's own.
    (cluster / ".s.PGSQL.5432.lock").unlink(missing_ok=True)


def cluster_name(cluster: Path) -> str:
    """What the server's children carry in their titles, by which they are known when it is gone."""
    return f"supersede-{hashlib.sha256(os.fsencode(cluster)).hexdigest()[:12]}"


def end_orphans(cluster: Path, *, uid: int) -> None:
    """End what is left of a server that was killed, or whose cluster was deleted under it.

    A child busy with a query does not notice that its server is gone, and keeps the next from
    starting; the server of a deleted cluster lingers. Only for who holds the lock of the data
    folder, and has found no live server.
    """
    psutil = _psutil()
    title = f"postgres: {cluster_name(cluster)}: "
    orphans = []
    for process in psutil.process_iter(["uids"]):
        arguments = _arguments(process)
        ours = _serves(arguments, cluster) or " ".join(arguments).startswith(title)
        if ours and process.info["uids"] and process.info["uids"].real == uid:
            orphans.append(process)
    for process in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGQUIT)
    deadline = time.monotonic() + ORPHAN_SECONDS
    # A zombie has no arguments any more, and may stay for ever where nobody reaps.
    while any(_arguments(process) for process in orphans) and time.monotonic() < deadline:
        time.sleep(0.02)


def _psutil() -> Any:  # noqa: ANN401 - it has no types
    """Loaded on first use: it comes with the extra, and a server given by URL does not need it."""
    import psutil  # type: ignore[import-untyped]

    return psutil


def _arguments(process: Any) -> list[str]:  # noqa: ANN401
    try:
        return list(process.cmdline())
    except _psutil().Error:
        return []


def _serves(arguments: list[str], cluster: Path) -> bool:
    return arguments[1:3] == ["-D", str(cluster)]
