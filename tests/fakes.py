"""Embedders for tests: one that works and needs no model, and some that fail as real ones do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from supersede.ports import Vectors

_WORD = re.compile(r"\w+")


class BagOfWords:
    """Hashes each word to a place: claims that share words have a high cosine, the same everywhere.

    A text without a word points to a place of its own, so that no vector is zero.
    """

    def __init__(self, *, model: str = "fake-bag-of-words", dimensions: int = 64) -> None:
        self.model = model
        self.dimensions = dimensions

    def embed(self, texts: list[str]) -> Vectors:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        vector = np.zeros(self.dimensions, dtype=np.float32)
        for word in _WORD.findall(text.casefold()) or [""]:
            digest = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            vector[digest % self.dimensions] += 1.0 if digest >> 63 else -1.0
        if not vector.any():  # two words at one place with opposite signs
            vector[0] = 1.0
        return vector / np.linalg.norm(vector)


class OtherModel(BagOfWords):
    """As many dimensions, another meaning: its vectors must never meet those of :class:`BagOfWords`."""

    def __init__(self) -> None:
        super().__init__(model="fake-other-model")

    def embed(self, texts: list[str]) -> Vectors:
        return super().embed([text[::-1] for text in texts])


class Recording(BagOfWords):
    """Remembers what it was asked to embed, in ``seen``; one list per call."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[str]] = []

    def embed(self, texts: list[str]) -> Vectors:
        self.seen.append(list(texts))
        return super().embed(texts)


class Down(BagOfWords):
    """Does not answer; its own message holds what must not be repeated."""

    def embed(self, texts: list[str]) -> Vectors:
        raise ConnectionError("https://user:hunter2@models.example refused the connection")


class Zero(BagOfWords):
    """Returns vectors without a direction."""

    def embed(self, texts: list[str]) -> Vectors:
        return np.zeros((len(texts), self.dimensions), dtype=np.float32)


class NotANumber(BagOfWords):
    """Returns vectors with a NaN in each."""

    def embed(self, texts: list[str]) -> Vectors:
        vectors = super().embed(texts)
        vectors[:, 3] = np.nan
        return vectors


class WrongDimension(BagOfWords):
    """Returns one component fewer than it says."""

    def embed(self, texts: list[str]) -> Vectors:
        return super().embed(texts)[:, :-1]


class BrokenFor(BagOfWords):
    """Works, but returns a zero vector for texts that hold a given word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def embed(self, texts: list[str]) -> Vectors:
        vectors = super().embed(texts)
        vectors[[self.word in text for text in texts]] = 0.0
        return vectors


class ShortWindow(BagOfWords):
    """Reads the first words of a text only, and says so."""

    def __init__(self, words: int = 5) -> None:
        super().__init__()
        self.words = words

    def embed(self, texts: list[str]) -> Vectors:
        return super().embed([" ".join(text.split()[: self.words]) for text in texts])

    def exceeds_window(self, texts: Sequence[str]) -> list[bool]:
        return [len(text.split()) > self.words for text in texts]
