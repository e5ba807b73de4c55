"""The fixtures do what other tests rely on."""

from __future__ import annotations

import numpy as np
import pytest

import fakes
from databases import dump, set_clock
from supersede import FactStore


def test_the_clock_of_a_database_can_be_stopped_and_moved(
    database: str, store: FactStore, frozen_clock: str
) -> None:
    assert store.remember("a").model_dump(mode="json")["stamp"] == frozen_clock
    set_clock(database, "2026-08-01T12:00:00+02:00")
    assert store.remember("b").model_dump(mode="json")["stamp"] == "2026-08-01T10:00:00Z"


def test_the_words_only_store_has_no_space_and_the_vector_store_the_fake_one(
    store: FactStore, vector_store: FactStore
) -> None:
    store.remember("the port is 5432")
    vector_store.remember("the port is 5432")
    assert store.ask("port").ranking == "words"
    answer = vector_store.ask("the port is 5432")
    assert answer.ranking == "exact"
    assert answer.basis.space == "fake-bag-of-words"
    assert answer.facts[0].similarity == pytest.approx(1, abs=1e-3)


def test_a_dump_sees_every_write(database: str, store: FactStore) -> None:
    before = dump(database)
    assert before == dump(database)
    store.remember("a")
    assert before != dump(database)


def test_the_fake_embedder_is_deterministic_and_of_unit_length() -> None:
    texts = ["one port", "another port", "", "...", "ὁ λόγος"]
    vectors = fakes.BagOfWords().embed(texts)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.stack([fakes.BagOfWords().embed([text])[0] for text in texts]))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
