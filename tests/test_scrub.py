"""After a scrub no file of the database keeps what was erased; nor does a dump, or a log."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from databases import execute, query
from fakes import BagOfWords
from servers import temporary_data_dir
from supersede import Conflict, FactStore, PrivilegeMissing, embedded
from supersede.adapters import postgres_wheel
from supersede.scrubbing import TABLES, scrub
from supersede.settings import normalise_url

WORDS = ["claim", "subject", "object", "data", "ref", "source", "note", "handle"]
SECRETS = [f"quagga{word}zebroid" for word in WORDS]


class Noise(BagOfWords):
    """A vector without a zero in it, whose bytes are like no others."""

    def _vector(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        seed = np.frombuffer(text.encode()[:8].ljust(8), dtype=np.uint32)
        return np.random.default_rng(seed).normal(size=self.dimensions).astype(np.float32)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A server of this module's own, whose files may be searched."""
    with temporary_data_dir() as data_dir:
        yield data_dir


@pytest.fixture
def url(home: Path) -> str:
    return embedded.url(home)


def found(folder: Path, needles: list[bytes]) -> set[bytes]:
    """Which of some bytes stand in the files of a folder."""
    there: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes().lower()
            there |= {needle for needle in needles if needle.lower() in content}
    return there


def in_files(home: Path, needles: list[bytes]) -> set[bytes]:
    data = postgres_wheel.pgdata(home)
    return found(data / "base", needles) | found(data / "global", needles)


def dumped(url: str) -> bytes:
    program = Path(postgres_wheel.package()) / "pginstall" / "bin" / "pg_dump"
    return subprocess.run([program, "--dbname", url], capture_output=True, check=True).stdout.lower()


def stored_vector(url: str, fact_id: str) -> bytes:
    """As its bytes stand in a page."""
    ((text,),) = query(url, "select vector::text from supersede.embedding where fact_id = %s", fact_id)
    return np.array(text.strip("[]").split(","), dtype=np.float16).tobytes()


def record(store: FactStore) -> Any:
    for n in range(60):  # so that the planner takes samples
        store.remember(f"Filler {n}", ref=f"filler/{n}", sources=[f"filler/{n}"])
    return store.remember(
        f"The {SECRETS[0]} is striped",
        subject=SECRETS[1],
        predicate="coat",
        object=SECRETS[2],
        data={"found": SECRETS[3]},
        ref=SECRETS[4],
        sources=[SECRETS[5]],
        note=SECRETS[6],
        handle=SECRETS[7],
    )


def test_erased_content_is_found_nowhere(home: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    FactStore.init(url, embedder=Noise())
    with FactStore.open(url, embedder=Noise()) as store:
        made = record(store)
        vector = stored_vector(url, made.id)
        needles = [secret.encode() for secret in SECRETS]
        execute(url, "analyze; checkpoint")
        searched = [*needles, vector]
        assert in_files(home, searched) == set(searched)
        assert all(needle in dumped(url) for needle in needles)

        store.erase(made, note="asked for by law")
        done = scrub(url)

        assert (done.tables, done.statistics, done.checkpointed) == (TABLES, True, True)
        execute(url, "checkpoint")
        assert in_files(home, searched) == set()
        assert not [needle for needle in needles if needle in dumped(url)]
        assert not [needle for needle in needles if needle in postgres_wheel.log(home).read_bytes().lower()]
        assert not [secret for secret in SECRETS if secret in caplog.text.lower()]
        # The one place that a scrub does not reach, and a switch of the log neither; docs/erasure.md says so.
        execute(url, "select pg_switch_wal()")
        execute(url, "checkpoint")
        assert found(postgres_wheel.pgdata(home) / "pg_wal", needles) == set(needles)
        assert store.facts().withheld.erased == 1
        assert len(store.facts().facts) == 60


def test_samples_of_a_table_that_became_empty_go_too(home: Path, url: str) -> None:
    """ANALYZE leaves the samples of an empty table as they were."""
    FactStore.init(url, embedder=Noise())
    with FactStore.open(url, namespace="alone", embedder=Noise()) as store:
        execute(url, "delete from supersede.fact_ref; delete from supersede.evidence")
        for n in range(3):
            store.remember(f"Okapi {n}", ref=f"okapiref/{n}", sources=["okapisource"])
        execute(url, "analyze supersede.fact_ref, supersede.evidence")
        assert query(url, "select from pg_stats where tablename = 'evidence' and schemaname = 'supersede'")
        for n in range(3):
            store.erase(f"okapiref/{n}", note="asked for by law")
        scrub(url)
        execute(url, "checkpoint")
        assert in_files(home, [b"okapiref", b"okapisource"]) == set()


def test_a_scrub_waits_for_nobody_who_still_sees_it(store: FactStore, database: str) -> None:
    made = store.remember("The quagga is striped")
    with psycopg.connect(database) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from supersede.fact")
        store.erase(made, note="asked for by law")
        with pytest.raises(Conflict, match=f"session {reader.info.backend_pid}"):
            scrub(database)
    assert scrub(database).tables == TABLES


def test_only_the_owner_scrubs(store: FactStore, server_url: str, database: str) -> None:
    store.remember("The quagga is striped")
    url = normalise_url(database)
    login = f"scrubber_{url.database}"
    execute(server_url, f"create role {login} login password 'login' in role supersede_importer")
    try:
        as_other = url.set(drivername="postgresql", username=login, password="login")
        with pytest.raises(PrivilegeMissing, match="owner"):
            scrub(as_other.render_as_string(hide_password=False))
    finally:
        execute(server_url, f"drop role {login}")
