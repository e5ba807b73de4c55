"""What the store asks of its surroundings, as protocols: any object with these members will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors of one embedding space.

    ``model`` names the space (two embedders with the same name must agree), ``dimensions`` is the
    length of its vectors.
    """

    @property
    def model(self) -> str:
        """The name of the model, which is the name of the embedding space."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        ...

    def embed(self, texts: list[str]) -> Vectors:
        """Vectors of shape ``[len(texts), dimensions]``, float32, each of unit length.

        :raises EmbedderUnavailable: when the model cannot be reached or loaded.
        """
        ...


@runtime_checkable
class MeasuredEmbedder(Protocol):
    """An embedder that knows where its space draws two lines; both are cosines, from 0 to 1.

    They become those of the space when it is registered.
    """

    @property
    def min_similarity(self) -> float:
        """The least cosine to the question that makes a claim a match."""
        ...

    @property
    def near_duplicate(self) -> float:
        """The cosine from which two claims may be one, unless their words contrast."""
        ...


@runtime_checkable
class WindowedEmbedder(Protocol):
    """An embedder that knows how much of a text it can see."""

    def exceeds_window(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it is longer than the model reads, so that its end has no say."""
        ...
