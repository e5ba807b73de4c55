"""The tables as Parquet files, read back."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from databases import query
from histories import a_life
from supersede import AsyncFactStore, FactStore, InvalidInput, NamespaceNotFound, ParquetMissing
from supersede.cli import app

TABLES = ["edges", "evidence", "facts", "operations", "refs", "versions"]


def test_every_row_is_there_with_both_bounds_of_both_times(
    database: str, store: FactStore, tmp_path: Path
) -> None:
    a_life(store)
    counts = store.export_parquet(tmp_path / "new" / "folder")
    tables = {name: pq.read_table(tmp_path / "new" / "folder" / f"{name}.parquet") for name in TABLES}
    assert {name: table.num_rows for name, table in tables.items()} == counts
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"{name}.parquet" for name in TABLES
    ]
    read = [
        tuple(row.values())
        for row in tables["versions"]
        .select(["namespace", "version_id", "fact_id", "valid_from", "valid_to", "tx_from", "tx_to"])
        .to_pylist()
    ]
    held = query(
        database,
        "select namespace, version_id::text, fact_id::text, lower(valid_time), upper(valid_time), "
        "lower(tx_time), upper(tx_time) from supersede.fact_version "
        "order by namespace, lower(tx_time), version_id",
    )
    utc = [tuple(v.astimezone(UTC) if hasattr(v, "astimezone") else v for v in row) for row in held]
    assert [tuple(v.astimezone(UTC) if hasattr(v, "astimezone") else v for v in row) for row in read] == utc
    assert any(row[3] is None for row in read)
    assert any(row[6] is None for row in read)
    assert tables["versions"].schema.field("tx_from").type == pa.timestamp("us", tz="UTC")
    facts = {row["claim"]: row for row in tables["facts"].to_pylist()}
    data = json.loads(facts["Retrieval uses Postgres full-text search"]["data"])
    assert data == {"exact": 1.1, "none": None, "list": [1, {"deep": "ä\u2028"}]}
    edges = query(database, "select count(*) from supersede.supersedes")[0][0]
    assert counts["edges"] == edges > 0
    assert {json.loads(row["event"])["op"] for row in tables["operations"].to_pylist()} >= {"cite", "end"}


def test_rows_are_written_in_groups(
    store: FactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supersede.facts.ledger._GROUP", 2)
    store.remember_many([{"claim": f"claim {n}", "ref": f"r{n}"} for n in range(5)])
    told: list[int] = []
    store.export_parquet(tmp_path, progress=told.append)
    facts = pq.ParquetFile(tmp_path / "facts.parquet")
    assert (facts.num_row_groups, facts.metadata.num_rows) == (3, 5)
    assert sum(told) == 20  # facts, versions, refs and operations


def test_some_namespaces_alone_and_none(store: FactStore, tmp_path: Path) -> None:
    assert store.export_parquet(tmp_path) == dict.fromkeys(TABLES, 0)
    assert pq.read_table(tmp_path / "facts.parquet").num_rows == 0
    a_life(store)
    assert store.export_parquet(tmp_path, namespaces=["b.c"])["facts"] == 2
    with pytest.raises(NamespaceNotFound, match="elsewhere"):
        store.export_parquet(tmp_path, namespaces=["elsewhere"])
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="file"):
        store.export_parquet(tmp_path / "file")
    assert pq.read_table(tmp_path / "refs.parquet").num_rows == 1  # left as it was


def test_the_async_store_and_the_command_line_write_them_too(
    database: str, store: FactStore, tmp_path: Path
) -> None:
    a_life(store)

    async def write() -> dict[str, int]:
        async with await AsyncFactStore.open(database) as other:
            return await other.export_parquet(tmp_path / "async")

    counts = asyncio.run(write())
    folder = str(tmp_path / "cli")
    done = CliRunner().invoke(app, ["export", "--parquet", folder, "--json", "--url", database])
    assert (done.exit_code, json.loads(done.stdout)) == (0, counts)
    for name in TABLES:
        assert pq.read_table(tmp_path / "async" / f"{name}.parquet") == pq.read_table(
            f"{folder}/{name}.parquet"
        )


def test_without_pyarrow_the_extra_is_named(
    store: FactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ParquetMissing, match=r'pip install "supersede\[parquet\]"'):
        store.export_parquet(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
