"""The doctor finds what is wrong, says what to do, and changes nothing; each finding is produced."""

from __future__ import annotations

import json

import psycopg
import pytest
from typer.testing import CliRunner

from databases import dump, execute, query, set_clock
from fakes import BagOfWords
from supersede import FactStore, doctor
from supersede.cli import app
from supersede.doctor import Finding
from supersede.settings import normalise_url


def findings(url: str) -> dict[str, Finding]:
    """What was found, the last of each name."""
    return {finding.name: finding for finding in doctor.examine(url, version="9.9")}


def states(url: str) -> set[tuple[str, str]]:
    return {(f.name, f.state) for f in findings(url).values() if f.state != "ok" and f.name != "durability"}


def test_a_database_that_is_well(vector_database: str) -> None:
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        store.remember("the port is 5432")
    before = dump(vector_database)
    found = findings(vector_database)
    assert states(vector_database) == set()
    assert found["versions"].said.startswith("supersede 9.9, Python 3.")
    assert "1 in 1 namespace(s): 1 open versions, 0 closed, 1 operations, 0 erased" in found["facts"].said
    assert "1 of 1 facts" in found["embeddings"].said
    assert dump(vector_database) == before


def test_a_database_that_nobody_prepared(empty_database: str) -> None:
    assert states(empty_database) == {("extensions", "fail"), ("schema", "fail")}
    assert findings(empty_database)["schema"].advice == "run `supersede init`"


@pytest.mark.parametrize(
    ("revision", "advice"), [("0001", "run `supersede init`"), ("9999", "upgrade the package")]
)
def test_a_schema_of_another_version(database: str, revision: str, advice: str) -> None:
    execute(database, f"update supersede.alembic_version set version_num = '{revision}'")
    found = findings(database)
    assert (found["schema"].state, found["schema"].advice) == ("fail", advice)
    assert "clock" not in found  # its tables may not be there


def test_an_index_whose_build_failed(database: str) -> None:
    with FactStore.open(database) as store:
        store.remember("one")
        store.remember("two")
    with (
        psycopg.connect(database, autocommit=True) as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute("create unique index concurrently broken on supersede.fact (namespace)")
    found = findings(database)["indexes"]
    assert found.state == "fail"
    assert "supersede.broken" in found.said
    assert found.advice == "REINDEX INDEX CONCURRENTLY supersede.broken"


def test_a_head_ahead_of_the_clock(database: str) -> None:
    set_clock(database, "2026-07-24T10:00:00Z")
    with FactStore.open(database, namespace="early") as store:
        store.remember("one")
    set_clock(database, "2026-07-24T09:00:00Z")
    found = findings(database)["clock"]
    assert found.state == "warn"
    assert (
        "'early' (2026-07-24T10:00:00Z) lies 1:00:00 ahead of the clock (2026-07-24T09:00:00Z)" in found.said
    )


def test_facts_that_wait_for_their_vector(vector_database: str) -> None:
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        store.remember("with a vector")
    execute(vector_database, "delete from supersede.embedding")
    found = findings(vector_database)["embeddings"]
    assert found.state == "warn"
    assert "0 of 1 facts; 1 wait for their vector" in found.said
    assert found.advice == "`supersede embed --namespace default`"


def test_a_database_without_a_space(database: str) -> None:
    assert findings(database)["embeddings"].said == "no embedding space: words alone rank"


def test_a_transaction_that_has_been_open_for_long(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LONG_AGO", doctor.timedelta(0))
    with psycopg.connect(database) as connection:
        connection.execute("select 1")
        found = findings(database)["sessions"]
    assert found.state == "warn"
    assert "1 session(s) do nothing in a transaction; vacuum cannot clean up behind it" in found.said


def test_a_collation_that_changed_under_the_database(database: str) -> None:
    ((name,),) = query(database, "select current_database()")
    execute(database, f"update pg_database set datcollversion = '1.0' where datname = '{name}'")
    found = findings(database)["collation"]
    assert found.state == "warn"
    assert "made with version 1.0" in found.said


def test_who_may_only_read_is_told_what_stays_unseen(database: str, server_url: str) -> None:
    ((name,),) = query(database, "select current_database()")
    login = f"peeks_{name}"
    execute(server_url, f"create role {login} login password 'peeks' in role supersede_reader")
    try:
        url = normalise_url(database).set(drivername="postgresql", username=login, password="peeks")
        found = findings(url.render_as_string(hide_password=False))
        assert found["sessions"].state == "unknown"
        assert found["roles"].said == f"connected as {login}"
        assert found["facts"].state == "ok"
        execute(server_url, f"revoke supersede_reader from {login}")
        found = findings(url.render_as_string(hide_password=False))
        assert found["schema"].state == "unknown"
        assert "permission denied for schema supersede" in found["schema"].said
        assert "facts" not in found
    finally:
        execute(server_url, f"drop role {login}")


def test_the_command_prints_it_and_its_exit_status_tells(database: str, empty_database: str) -> None:
    well = CliRunner().invoke(app, ["--url", database, "doctor"])
    assert well.exit_code == 0, well.output
    assert "schema      revision" in well.stdout
    ill = CliRunner().invoke(app, ["--url", empty_database, "doctor", "--json"])
    assert ill.exit_code == 1
    assert (json.loads(ill.stdout)[-1]["name"], json.loads(ill.stdout)[-1]["state"]) == ("schema", "fail")
