"""An embedding space's two lines: an embedder says them, or who prepares the database; a basis keeps them."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest
from typer.testing import CliRunner

from databases import query
from fakes import BagOfWords
from supersede import AsyncFactStore, FactStore, InvalidInput
from supersede.adapters import UNMEASURED, default
from supersede.cli import app


class Measured(BagOfWords):
    """Knows where its space draws its lines."""

    min_similarity = 0.4
    near_duplicate = 0.8


def thresholds(url: str) -> list[tuple[float, float]]:
    return query(url, "select min_similarity, near_duplicate from supersede.embedding_space order by id")


def test_an_embedder_says_its_own(database: str) -> None:
    FactStore.init(database, embedder=Measured())
    assert thresholds(database) == [(0.4, 0.8)]
    with FactStore.open(database, embedder=Measured()) as store:
        store.remember("port five")
        basis = store.ask("port").basis
    assert (basis.min_similarity, basis.near_duplicate) == (0.4, 0.8)


def test_one_that_nobody_measured_gets_a_low_floor(database: str) -> None:
    FactStore.init(database, embedder=BagOfWords())
    assert thresholds(database) == [tuple(UNMEASURED)]


def test_who_prepares_the_database_may_say_others(database: str) -> None:
    FactStore.init(database, embedder=Measured(), min_similarity=0.1)
    assert thresholds(database) == [(0.1, 0.8)]
    FactStore.init(database, embedder=Measured())
    assert thresholds(database) == [(0.1, 0.8)], "an upgrade leaves them as they are"
    asyncio.run(AsyncFactStore.init(database, embedder=Measured(), near_duplicate=0.95))
    assert thresholds(database) == [(0.1, 0.95)]


@pytest.mark.parametrize("said", [{"min_similarity": 1.5}, {"near_duplicate": -0.1}])
def test_what_is_no_cosine_is_refused(database: str, said: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(said))):
        FactStore.init(database, embedder=Measured(), **said)
    assert thresholds(database) == []


def test_a_change_leaves_what_was_answered(database: str) -> None:
    FactStore.init(database, embedder=Measured(), min_similarity=0)
    with FactStore.open(database, embedder=Measured()) as store:
        store.remember("the port of the staging database", ref="port")
        store.remember("lunch is at noon", ref="lunch")
        before = store.ask("the database")
        assert {fact.ref for fact in before.facts} == {"port", "lunch"}
    FactStore.init(database, embedder=Measured(), min_similarity=0.4)
    with FactStore.open(database, embedder=Measured()) as store:
        assert [fact.ref for fact in store.ask("the database").facts] == ["port"]
        assert store.ask(basis=before.basis) == before
        assert store.verify(before).outcome == "equal"


def test_on_the_command_line(database: str) -> None:
    FactStore.init(database, embedder=Measured())
    if default() is None:
        pytest.skip('needs pip install "supersede[light]": init on the command line has no other embedder')
    words = ["--url", database, "init", "--min-similarity", "0.2", "--near-duplicate", "0.9"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert thresholds(database) == [(0.4, 0.8), (0.2, 0.9)]
    assert CliRunner().invoke(app, ["--url", database, "init", "--min-similarity", "2"]).exit_code == 2


@pytest.mark.skipif(default() is None, reason='needs pip install "supersede[light]"')
def test_the_light_model_brings_what_was_measured(database: str) -> None:
    FactStore.init(database)
    assert thresholds(database) == [(0.34, 0.92)]


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="needs sentence-transformers: scripts/test --all",
)
@pytest.mark.parametrize(
    ("model", "floor"),
    [("sentence-transformers/all-MiniLM-L6-v2", 0.34), ("all-MiniLM-L6-v2", 0.34), ("another", 0.25)],
)
def test_a_local_model_that_was_measured_too(model: str, floor: float) -> None:
    from supersede.adapters.local import SentenceTransformerEmbedder

    embedder = SentenceTransformerEmbedder(model)
    assert (embedder.min_similarity, embedder.near_duplicate) == (floor, 0.92)
    other = SentenceTransformerEmbedder(model, min_similarity=0.5, near_duplicate=0.99)
    assert (other.min_similarity, other.near_duplicate) == (0.5, 0.99)
