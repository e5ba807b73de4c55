"""Adapters to models and services; each needs an optional extra and is loaded on first use."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from supersede.errors import EmbedderUnavailable
from supersede.settings import Settings

if TYPE_CHECKING:  # ports loads numpy, which the commands about the server do without
    from supersede.ports import Embedder

LIGHT_MODEL = "all-MiniLM-L6-v2-int8"


class Thresholds(NamedTuple):
    """Cosines of one embedding space: the least a match needs, and from where two claims may be one."""

    min_similarity: float
    near_duplicate: float


UNMEASURED = Thresholds(0.25, 0.92)
"""Of a model that nobody measured: a low floor, which rather shows too much."""


def thresholds(embedder: Embedder) -> Thresholds:
    """The thresholds of an embedder's space: its own, where it knows them."""
    return Thresholds(
        getattr(embedder, "min_similarity", UNMEASURED.min_similarity),
        getattr(embedder, "near_duplicate", UNMEASURED.near_duplicate),
    )


def load(model: str) -> Embedder:
    """The embedder of a model.

    :raises EmbedderUnavailable: if it is not one of ours, or its packages are not installed.
    """
    if model != LIGHT_MODEL:
        raise EmbedderUnavailable(
            f"the store's embedding space is of {model!r}; pass its embedder to FactStore.open"
        )
    from supersede.adapters.minilm import MiniLMEmbedder

    return MiniLMEmbedder(Settings().tokenizer)


def default() -> Embedder | None:
    """The light embedder where it is installed, else None."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return None
    try:
        return load(LIGHT_MODEL)
    except EmbedderUnavailable:
        return None
