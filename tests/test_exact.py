"""Ranking is exact by its shape: no vector index is ever asked, however cheap the planner finds one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from databases import execute, query
from fakes import BagOfWords
from supersede import FactStore

WORDS = [f"word{n}" for n in range(30)]
QUESTIONS = [" ".join(random.Random(n).sample(WORDS, 3)) for n in range(10)]

HNSW = """
create index embedding_hnsw on supersede.embedding
    using hnsw ((vector::halfvec(64)) halfvec_cosine_ops) with (m = 4, ef_construction = 10);
create index version_hnsw on supersede.fact_version_open
    using hnsw ((embedding::halfvec(64)) halfvec_cosine_ops) with (m = 4, ef_construction = 10);
analyze
"""


def claims(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{' '.join(rng.sample(WORDS, 6))} number {seed} {n}" for n in range(count)]


def answers(url: str, **at: Any) -> list[Any]:
    with FactStore.open(url, embedder=BagOfWords()) as store:
        return [store.ask(question, min_similarity=0, **at) for question in QUESTIONS]


@pytest.fixture
def filled(vector_database: str) -> str:
    """300 facts, and a planner that prefers any index to reading them all."""
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        store.remember_many({"claim": claim, "valid_from": "2026-01-01"} for claim in claims(1, 300))
    (name,) = query(vector_database, "select quote_ident(current_database())")[0]
    execute(vector_database, f"alter database {name} set enable_seqscan = off")
    return vector_database


def test_a_vector_index_changes_no_answer_and_is_not_read(filled: str) -> None:
    at = {"known_at": query(filled, "select max(head) from supersede.namespace")[0][0]}
    before = [answer.facts for answer in answers(filled, valid_at="2026-06-01", **at)]
    assert all(len(facts) == 10 for facts in before)
    execute(filled, HNSW)
    assert [a.facts for a in answers(filled, valid_at="2026-06-01", **at)] == before
    execute(filled, "reindex index supersede.embedding_hnsw")
    execute(filled, "reindex index supersede.version_hnsw")
    assert [a.facts for a in answers(filled, valid_at="2026-06-01", **at)] == before
    # A backend reports what it did when it ends.
    used = query(
        filled,
        "select indexrelname, idx_scan from pg_stat_user_indexes where indexrelname like '%_hnsw' order by 1",
    )
    assert used == [("embedding_hnsw", 0), ("version_hnsw", 0)]


def test_what_is_recorded_later_does_not_crowd_out_the_past(filled: str) -> None:
    execute(filled, HNSW)
    before = answers(filled)
    with FactStore.open(filled, embedder=BagOfWords()) as store:
        store.remember_many(claims(2, 300))
        assert [store.verify(answer).outcome for answer in before] == ["equal"] * len(before)
