"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from databases import set_clock
from supersede import FactStore

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
# The instant at which the README's store was filled.
WRITTEN = "2026-11-30T09:30:00Z"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def without_microseconds(text: str) -> str:
    """Stamps of one instant lie microseconds apart; the README shows the instant."""
    return text.replace("09:30:00.000001Z", "09:30:00Z")


@pytest.fixture
def example(database: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names that the README's Python defines, run on a store of its own."""
    pytest.importorskip("onnxruntime", reason="the quickstart ranks with the light embedder")
    FactStore.init(database)
    set_clock(database, WRITTEN)
    monkeypatch.setenv("SUPERSEDE_URL", database)
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_readme_prints_what_the_store_answers(example: dict[str, object]) -> None:
    shown = [json.loads(block) for block in blocks("json")]
    answers = [example["now"].brief(), example["may"].brief()]
    assert json.loads(without_microseconds(json.dumps(answers))) == shown


def test_the_readme_quotes_the_notice(example: dict[str, object]) -> None:
    notices = [block for block in blocks("text") if block.startswith("Nothing was recorded")]
    assert without_microseconds(example["then"].notice).split() == notices[0].split()
    assert not example["then"].facts


def test_the_readme_names_both_commands_and_stays_short() -> None:
    assert "scripts/demo" in README
    assert "scripts/test" in README
    assert 120 <= len(README.splitlines()) <= 150


def test_the_sql_of_the_readme_runs(database: str) -> None:
    import psycopg

    (sql,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    with psycopg.connect(database) as connection:
        connection.execute(sql)
    with FactStore.open(database) as store:
        history = store.history("adr/0021")
    assert [version.closed_by for version in history.versions] == ["retract"]
