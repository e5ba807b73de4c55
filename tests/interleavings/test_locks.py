"""What holds of every lock and every insert in the code, so that no pooler and no race can undo it."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

from databases import execute, query
from supersede import FactStore

ROOT = Path(__file__).parents[2]


def code() -> dict[str, str]:
    """Every file of the product, comments of SQL left out."""
    files = [file for folder in ("src", "sql", "alembic") for file in (ROOT / folder).rglob("*")]
    return {
        str(file): re.sub(r"--.*", "", file.read_text("utf-8"))
        for file in files
        if file.suffix in {".py", ".sql"}
    }


def test_no_lock_outlives_its_transaction() -> None:
    """A lock of the session would stay behind on a pooled connection."""
    found = {name: re.findall(r"pg_(?:try_)?advisory_\w*lock\w*", text) for name, text in code().items()}
    used = {lock for locks in found.values() for lock in locks}
    assert used, "the search finds what there is"
    assert all("_xact_" in lock for lock in used), found


def test_no_insert_overwrites_what_it_meets() -> None:
    """DO UPDATE does not work with exclusion constraints, and would rewrite a row that was recorded."""
    found = {
        name: re.findall(r"on\s+conflict\b[^;]*?do\s+(\w+)|on_conflict_do_(\w+)", text, re.IGNORECASE)
        for name, text in code().items()
    }
    deeds = {deed.lower() for pairs in found.values() for pair in pairs for deed in pair if deed}
    assert deeds == {"nothing"}, found


def test_a_lineage_ends_where_a_ring_was_planted(database: str, store: FactStore) -> None:
    """No verb makes one; who owns the tables can, and no read may run for ever then."""
    ids = [str(store.remember(f"alpha {n}", ref=n, valid_from="2020-01-01").id) for n in ("a", "b", "c")]
    for new, old in ((1, 0), (2, 1), (0, 2)):
        execute(
            database,
            "insert into supersede.supersedes (namespace, new_fact_id, old_fact_id, reason, taken, stamp) "
            f"select namespace, '{UUID(ids[new])}', '{UUID(ids[old])}', 'change', '{{}}', head "
            "from supersede.namespace",
        )
    assert query(database, "select count(*) from supersede.supersedes") == [(3,)]
    lineage = store.lineage("a")
    assert {fact.ref for fact in lineage.ancestors} <= {"a", "b", "c"}
    assert {"b", "c"} <= {fact.ref for fact in lineage.ancestors}
    assert {"b", "c"} <= {fact.ref for fact in lineage.descendants}
    assert len(store.facts(explain=True).facts) == 3
    assert store.ask("alpha", min_similarity=0.0, explain=True).facts
