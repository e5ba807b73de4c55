"""An embedder that is down, wrong or another one never loses a fact, and never ranks what it may not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

import fakes
from databases import dump, execute, query
from supersede import (
    Answer,
    DimensionMismatch,
    EmbedderError,
    FactStore,
    InvalidInput,
    SchemaOutOfDate,
)

MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def opened(vector_database: str) -> Iterator[Any]:
    """Opens further stores on ``vector_database``, each with an embedder of its own."""
    stores: list[FactStore] = []

    def opening(embedder: Any) -> FactStore:
        stores.append(FactStore.open(vector_database, embedder=embedder))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


def claims(answer: Answer) -> list[str]:
    return sorted(fact.claim for fact in answer.facts)


def vectors_of(database: str) -> list[tuple[str, str]]:
    return query(
        database,
        "select claim, model from supersede.embedding e join supersede.fact using (namespace, fact_id) "
        "join supersede.embedding_space s on s.id = e.space_id order by 1, 2",
    )


class Overflowing(fakes.BagOfWords):
    """Returns vectors whose length not even double precision can hold."""

    def embed(self, texts: list[str]) -> Any:
        return np.full((len(texts), self.dimensions), 1e300)


class Large(fakes.BagOfWords):
    """Returns vectors of a length that half precision cannot hold."""

    def embed(self, texts: list[str]) -> Any:
        return super().embed(texts) * 70_000


class Infinite(fakes.BagOfWords):
    def embed(self, texts: list[str]) -> Any:
        vectors = super().embed(texts)
        vectors[:, 0] = np.inf
        return vectors


class Ragged(fakes.BagOfWords):
    def embed(self, texts: list[str]) -> Any:
        return [list(row)[: 63 + n % 2] for n, row in enumerate(super().embed(texts))]


class TooFew(fakes.BagOfWords):
    def embed(self, texts: list[str]) -> Any:
        return super().embed(texts)[1:]


class Nothing(fakes.BagOfWords):
    def embed(self, texts: list[str]) -> Any:
        return None


class Sideways(fakes.BagOfWords):
    """Has 64 dimensions, as its space does, but gives its vectors in the wrong shape."""

    def embed(self, texts: list[str]) -> Any:
        return super().embed(texts)[0]


UNUSABLE = [fakes.Zero, fakes.NotANumber, Infinite, Overflowing, Nothing, TooFew, Sideways]


# --- what cannot be ranked


@pytest.mark.parametrize("broken", [*UNUSABLE, fakes.Down])
def test_a_fact_whose_vector_is_unusable_is_stored_and_counted(
    vector_database: str, vector_store: FactStore, opened: Any, broken: type[fakes.BagOfWords]
) -> None:
    recorded = opened(broken()).remember("the port is 5432", ref="a", sources=["u"])
    assert (recorded.created, recorded.embedded) == (True, False)
    assert vectors_of(vector_database) == []
    assert claims(vector_store.facts()) == ["the port is 5432"]
    answer = vector_store.ask("which retrieval")
    assert (answer.outcome, answer.withheld.nonzero()) == ("all_withheld", {"unembedded": 1})
    assert "fill_embeddings()" in (answer.notice or "")
    assert claims(vector_store.ask("port")) == ["the port is 5432"], "a word in common still finds it"


@pytest.mark.parametrize("broken", UNUSABLE)
def test_a_question_whose_vector_is_unusable_is_an_error_not_an_answer(
    vector_store: FactStore, opened: Any, broken: type[fakes.BagOfWords]
) -> None:
    vector_store.remember("the port is 5432")
    with pytest.raises(EmbedderError):
        opened(broken()).ask("port")


def test_a_question_to_an_embedder_that_is_down_is_answered_by_words_and_says_so(
    vector_store: FactStore, opened: Any
) -> None:
    vector_store.remember("the port is 5432")
    deaf = opened(fakes.Down())
    answer = deaf.ask("port")
    assert claims(answer) == ["the port is 5432"]
    assert answer.ranking == "words"
    assert "did not answer" in (answer.notice or "")
    assert "hunter2" not in answer.model_dump_json()
    assert vector_store.ask(basis=answer.basis) == answer, "whoever asks again, with whatever embedder"


@pytest.mark.parametrize("vector", ["zeros", "NaN", "Infinity", "70000"])
def test_the_tables_refuse_a_vector_without_direction(
    vector_database: str, vector_store: FactStore, vector: str
) -> None:
    with pytest.raises(psycopg.DataError if vector != "zeros" else psycopg.errors.CheckViolation):
        execute(
            vector_database,
            "select supersede.remember('{\"claim\": \"c\"}', embedding => ('[' || array_to_string("
            f"array_fill('{0 if vector == 'zeros' else vector}'::text, array[64]), ',') || ']')::halfvec, "
            "space_id => 1::smallint)",
        )
    assert vector_store.facts().outcome == "nothing_recorded"


def test_a_vector_too_long_for_half_precision_is_only_a_direction(
    vector_store: FactStore, opened: Any
) -> None:
    assert opened(Large()).remember("the port is 5432").embedded
    for store in (vector_store, opened(Large())):
        answer = store.ask("the port is 5432")
        assert answer.facts[0].similarity == pytest.approx(1, abs=1e-3)


def test_one_bad_vector_does_not_cost_the_others_theirs(vector_database: str, opened: Any) -> None:
    store = opened(fakes.BrokenFor("poison"))
    results = store.remember_many(["one port", "poison", "another port"])
    assert [result.embedded for result in results] == [True, False, True]
    assert [claim for claim, _ in vectors_of(vector_database)] == ["another port", "one port"]


# --- dimensions


@pytest.mark.parametrize("wrong", [fakes.WrongDimension, Ragged])
def test_a_vector_of_another_length_is_refused_before_sql(
    vector_database: str, vector_store: FactStore, opened: Any, wrong: type[fakes.BagOfWords]
) -> None:
    vector_store.remember("claim", ref="a")
    before = dump(vector_database)
    store = opened(wrong())
    statements: list[str] = []
    sa.event.listen(store._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    history = [{"op": "remember", "claim": "c", "recorded_at": "2020-01-01"}]
    for call in (
        lambda: store.remember("c"),
        lambda: store.remember_many(["c", "d"]),
        lambda: store.supersede("a", "c"),
        lambda: store.replay(history, out_of_order="next_stamp"),
        lambda: store.ask("c"),
    ):
        with pytest.raises(DimensionMismatch) as refused:
            call()
        assert refused.value.details["expected"] == 64
        assert statements == []
    assert dump(vector_database) == before


def test_an_embedder_that_disagrees_with_its_space_cannot_be_opened(vector_database: str) -> None:
    with pytest.raises(DimensionMismatch, match="says 63 dimensions; the space of that name has 64"):
        FactStore.open(vector_database, embedder=fakes.BagOfWords(dimensions=63))


def test_an_embedder_without_a_space_cannot_be_opened(vector_database: str) -> None:
    with pytest.raises(SchemaOutOfDate, match=r"FactStore\.init"):
        FactStore.open(vector_database, embedder=fakes.OtherModel())


@pytest.mark.parametrize("dimensions", [63, 65, 1])
def test_sql_refuses_a_vector_of_another_length(
    vector_database: str, vector_store: FactStore, dimensions: int
) -> None:
    before = dump(vector_database)
    vector = "[" + ",".join(["1"] * dimensions) + "]"
    with psycopg.connect(vector_database) as connection:
        with pytest.raises(psycopg.DatabaseError) as refused:
            connection.execute(
                'select supersede.remember(\'{"claim": "c"}\', embedding => %s::halfvec, '
                "space_id => 1::smallint)",
                [vector],
            )
        assert refused.value.sqlstate == DimensionMismatch.sqlstate
    assert dump(vector_database) == before


def test_a_question_by_a_vector_of_another_length_is_refused(vector_store: FactStore) -> None:
    vector_store.remember("the port is 5432")
    basis = vector_store.ask("port").basis
    assert basis.vector is not None
    with pytest.raises((DimensionMismatch, InvalidInput)):
        vector_store.ask(basis=basis.model_copy(update={"vector": basis.vector[:80]}))


# --- two models


def test_vectors_of_two_models_never_meet(vector_database: str, vector_store: FactStore, opened: Any) -> None:
    FactStore.init(vector_database, embedder=fakes.OtherModel())
    other = opened(fakes.OtherModel())
    vector_store.remember("the port is 5432")
    other.remember("lamp")
    assert {model for _, model in vectors_of(vector_database)} == {"fake-bag-of-words", "fake-other-model"}
    # Read backwards, "lamp" has the very vector that "pmal" has for the first model.
    crossed = vector_store.ask("pmal", min_similarity=0.0)
    assert claims(crossed) == ["the port is 5432"]
    assert crossed.withheld.nonzero() == {"unembedded": 1}
    own = other.ask("lamp", min_similarity=0.0)
    assert claims(own) == ["lamp"]
    assert own.facts[0].similarity == pytest.approx(1, abs=1e-3)
    assert own.withheld.nonzero() == {"unembedded": 1}


def test_an_answer_keeps_its_model_whoever_asks_again(
    vector_database: str, vector_store: FactStore, opened: Any
) -> None:
    vector_store.remember("the port is 5432")
    answer = vector_store.ask("port")
    FactStore.init(vector_database, embedder=fakes.OtherModel())
    other = opened(fakes.OtherModel())
    assert other.fill_embeddings() == 1
    assert other.ask(basis=answer.basis) == answer
    assert other.ask("port").basis.space == "fake-other-model"


# --- vectors that come later


def test_a_vector_filled_later_moves_no_transaction_time_and_no_past_answer(
    vector_database: str, vector_store: FactStore, opened: Any
) -> None:
    deaf = opened(fakes.Down())
    deaf.remember("the port is 5432", ref="a", valid_from="2020-01-01")
    deaf.remember("the port is 5433", ref="b", valid_from="2020-01-01", valid_to="2021-01-01")
    deaf.supersede("a", "the port is 5434", ref="c", valid_from="2025-01-01")
    versions = "select version_id, valid_time, tx_time from supersede.fact_version order by 1"
    before, heads = query(vector_database, versions), vector_store.facts().basis.heads
    answers = [vector_store.ask("which socket"), vector_store.ask("port"), vector_store.ask("port 5432")]
    assert [answer.withheld.unembedded for answer in answers] == [1, 0, 0]
    assert vector_store.fill_embeddings() == 3
    assert query(vector_database, versions) == before
    after = vector_store.facts().basis.heads
    assert after["default"] == (heads["default"] or 0) + MICROSECOND, "an operation of its own"
    assert [vector_store.ask(basis=answer.basis) for answer in answers] == answers
    now = vector_store.ask("the port is 5434", min_similarity=0.0)
    assert (claims(now), now.withheld.unembedded) == (["the port is 5434"], 0)
    assert now.facts[0].similarity == pytest.approx(1, abs=1e-3)
    assert vector_store.fill_embeddings() == 0


def test_filling_vectors_does_not_disturb_the_order_of_a_later_replay(
    vector_store: FactStore, opened: Any
) -> None:
    event = {"op": "remember", "recorded_at": "2020-01-01T00:00:00Z"}
    opened(fakes.Down()).replay([{**event, "claim": "one"}])
    assert vector_store.fill_embeddings() == 1
    vector_store.replay([{**event, "claim": "two"}])
    assert claims(vector_store.facts()) == ["one", "two"]


def test_an_embedder_that_is_down_cannot_fill_and_says_so(vector_database: str, opened: Any) -> None:
    deaf = opened(fakes.Down())
    deaf.remember("the port is 5432")
    before = dump(vector_database)
    with pytest.raises(EmbedderError) as refused:
        deaf.fill_embeddings()
    assert "hunter2" not in str(refused.value)
    assert dump(vector_database) == before


def test_a_claim_longer_than_the_window_is_flagged_not_cut(opened: Any) -> None:
    store = opened(fakes.ShortWindow(words=5))
    long = "retrieval uses full text search and a reranker that was added in June"
    result = store.remember(long, ref="long")
    assert result.truncated
    assert not store.remember("retrieval uses search").truncated
    found = {fact.claim: fact.truncated for fact in store.ask("retrieval uses full text search").facts}
    assert found[long] is True
    assert found["retrieval uses search"] is False


def test_two_long_claims_with_one_beginning_are_two_answers(opened: Any) -> None:
    store = opened(fakes.ShortWindow(words=5))
    store.remember("The reranker was put live by the search team and kept after a review of costs")
    store.remember("The reranker was put live by the platform team and dropped after a review of delays")
    answer = store.ask("The reranker was put live")
    assert len(answer.facts) == 2
    assert answer.withheld.near_duplicate == 0
