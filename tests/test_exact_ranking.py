"""A ranked answer depends on the question and the facts, and on nothing else that the database does."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

from databases import execute, query
from fakes import BagOfWords
from supersede import FactStore
from supersede.ports import Vectors

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "sql").rglob("*.sql"), *(ROOT / "alembic").rglob("*.py")]


def words(number: int) -> str:
    return f"the port of service {number} in region {number % 7} is {5000 + number}"


@pytest.fixture
def asked(vector_store: FactStore) -> FactStore:
    vector_store.remember_many([{"claim": words(n), "ref": str(n)} for n in range(60)])
    vector_store.supersede("3", "the port of service 3 is closed", ref="closed")
    return vector_store


def test_near_facts_recorded_later_do_not_move_an_answer(asked: FactStore) -> None:
    answer = asked.ask("port of service 3", top_k=10, explain=True)
    past = asked.ask("port of service 3", as_of=answer.facts[0].recorded, explain=True)
    asked.remember_many([f"port of service 3, note {n}" for n in range(1000)])
    assert asked.ask(basis=answer.basis) == answer
    assert asked.ask(basis=past.basis) == past
    assert asked.ask("port of service 3").facts != answer.facts, "or the notes are not near"


def test_nor_do_an_index_built_anew_a_table_rewritten_or_statistics(
    asked: FactStore, vector_database: str
) -> None:
    answer = asked.ask("port of service 3", top_k=10, explain=True)
    for maintain in ("reindex schema supersede", "vacuum full", "analyze"):
        execute(vector_database, maintain)
        assert asked.ask(basis=answer.basis).model_dump_json() == answer.model_dump_json()


def test_nor_does_a_plan_made_for_any_question(asked: FactStore) -> None:
    """The driver prepares a statement after a few calls, and the server then plans it once for all."""
    answers = [asked.ask("port of service 3", as_of=asked.get("closed").recorded) for _ in range(34)]
    assert len(set(map(str, (answer.facts for answer in answers)))) == 1
    assert len(answers[0].facts) == 10


def test_closing_a_version_leaves_the_vectors_alone(asked: FactStore, vector_database: str) -> None:
    statement = (
        "select sum(n_tup_ins), sum(n_tup_upd) from pg_stat_user_tables where schemaname = 'supersede' "
        "and relname in ('embedding', 'fact')"
    )
    for number in range(10, 40):
        asked.supersede(str(number), f"service {number} is gone", valid_from="2030-01-01")
    asked.close()  # a connection tells what it did when it ends, a little later
    until = time.monotonic() + 30
    while (found := query(vector_database, statement)[0]) < (2 * 91, 0) and time.monotonic() < until:
        time.sleep(0.05)
    assert found == (2 * 91, 0), "91 facts, each with its vector"


class NearTies(BagOfWords):
    """Vectors whose cosines to the question differ by less than six digits show."""

    def embed(self, texts: list[str]) -> Vectors:
        found = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            row[0], row[1] = 1.0, 0.0005 if "tilted" in text else 0.0
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("claims", [("tilted", "straight"), ("straight", "tilted")])
def test_what_differs_in_the_last_bits_is_a_tie_and_the_newest_comes_first(
    vector_database: str, claims: tuple[str, str]
) -> None:
    with FactStore.open(vector_database, embedder=NearTies()) as store:
        for claim in claims:
            store.remember(f"{claim} {claim}")
        answer = store.ask("anything at all")
    assert [fact.claim.split()[0] for fact in answer.facts] == list(reversed(claims))
    assert {fact.similarity for fact in answer.facts} == {1.0}


@pytest.fixture
def wide() -> BagOfWords:
    return BagOfWords(model="fake-wide", dimensions=3072)


def test_a_model_of_more_than_two_thousand_dimensions_is_stored_in_half_precision(
    database: str, wide: BagOfWords
) -> None:
    FactStore.init(database, embedder=wide)
    with FactStore.open(database, embedder=wide) as store:
        store.remember("a wide vector", ref="wide")
        assert [fact.ref for fact in store.ask("a wide vector").facts] == ["wide"]
        assert store.ask("a wide vector").facts[0].similarity == 1.0


def test_one_distance_is_used_and_no_row_number_stands_for_time() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in SOURCES}
    assert len(found) > 100
    # It asks which sessions may still see what was erased, and answers no question about the past.
    del found["scrubbing.py"]
    for name, text in found.items():
        assert "<#>" not in text, f"{name}: an inner product ranks by length"
        assert "<+>" not in text, name
        words = re.search(r"\b(xmin|xmax|pg_xact_commit_timestamp|txid_current|pg_current_xact_id)\b", text)
        assert words is None, f"{name}: {words} does not outlive a dump"


def test_no_setting_of_the_vector_extension_is_relied_on() -> None:
    """A misspelt one is accepted before the library is loaded, and a session's leaks to the next borrower."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?i)\bset\s+(local\s+|session\s+)?(hnsw|ivfflat)\.", text), path.name
