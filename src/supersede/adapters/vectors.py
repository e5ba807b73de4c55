"""What a foreign embedder returns, checked before any of it reaches the database.

A zero vector has no direction: its distance to everything is NaN, and NaN sorts as the nearest or
the farthest depending on how one asks. So nothing but finite rows of unit length and of the right
dimension leaves this module. Such rows also fit the database's half precision: no component exceeds
1, where half precision ends at 65,504, and at least one is far above its smallest step.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from supersede.errors import (
    DimensionMismatch,
    EmbedderError,
    EmbedderUnavailable,
    SupersedeError,
)
from supersede.logs import get_logger
from supersede.ports import Embedder, Vectors

Vector = npt.NDArray[np.float32]

# Half precision itself moves a length by up to 5e-4, so a smaller error is not worth touching: a
# row within it keeps its very bits.
_UNIT_TOLERANCE = 1e-3

# Shorter than this, a row is rounding noise around zero. Libraries that normalise stop here too.
_NO_DIRECTION = 1e-12

_UNUSABLE = "The embedder returned vectors that are zero, NaN or infinite."

_log = get_logger(__name__)


def embed_checked(embedder: Embedder, texts: list[str]) -> Vectors:
    """The vectors of all the texts, each finite and of unit length.

    For a question, which cannot do without its vector, and wherever half an answer is worse than
    none.

    :raises DimensionMismatch: when the vectors are longer or shorter than the embedder says.
    :raises EmbedderUnavailable: when the embedder raised; its own error is the ``__cause__``.
    :raises EmbedderError: when rows are zero, NaN or infinite (``details["rows"]`` says which), or
        there are not as many as texts.
    """
    vectors, usable = _embed(embedder, texts)
    if not usable.all():
        rows = _positions(~usable)
        raise EmbedderError(_UNUSABLE, details={"rows": rows, "texts": len(texts)})
    return vectors


def embed_or_none(embedder: Embedder, texts: list[str]) -> list[Vector | None]:
    """For each text its vector, or None where there is none to be had.

    For writes: a fact is worth storing without its vector, which can be filled in later. Each
    failure is logged once, without the texts and without what a foreign error says, since that may
    hold a key.

    :raises DimensionMismatch: when the vectors have the wrong length: no later try will mend that.
    """
    try:
        vectors, usable = _embed(embedder, texts)
    except EmbedderError as error:
        _log.warning("embedder_failed", error=error.message, unembedded=len(texts))
        return [None] * len(texts)
    if not usable.all():
        _log.warning("embedder_failed", error=_UNUSABLE, unembedded=int((~usable).sum()))
    return [row if good else None for row, good in zip(vectors, usable, strict=True)]


def _embed(embedder: Embedder, texts: list[str]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """The vectors at unit length, and for each row whether it is one that has a direction."""
    try:
        model, dimensions = embedder.model, embedder.dimensions
        returned: Any = embedder.embed(texts) if texts else np.empty((0, dimensions))
    except SupersedeError:
        raise
    except Exception as error:  # foreign code: whatever it raises, the caller sees one type
        # Its message stays in __cause__: it may quote a URL with a key in it.
        raise EmbedderUnavailable(f"The embedder did not answer ({type(error).__name__}).") from error
    matrix = _as_matrix(returned, model=model, dimensions=dimensions, texts=len(texts))
    return _unit_rows(matrix)


def _as_matrix(
    returned: Any,  # noqa: ANN401 - what foreign code returns is anything
    *,
    model: str,
    dimensions: int,
    texts: int,
) -> npt.NDArray[np.float64]:
    details = {"model": model, "expected": [texts, dimensions]}
    try:
        # Double precision, so that neither a length nor a conversion can overflow on the way.
        matrix = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        lengths = _row_lengths(returned)
        if lengths and lengths != {dimensions}:
            raise _mismatch(model, dimensions, max(lengths - {dimensions})) from error
        raise EmbedderError(
            f"The embedder {model!r} returned something that is not a matrix of numbers.",
            details=details,
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != texts:
        raise EmbedderError(
            f"The embedder {model!r} returned the shape {list(matrix.shape)} for {texts} texts of "
            f"{dimensions} dimensions.",
            details={**details, "got": list(matrix.shape)},
        )
    if matrix.shape[1] != dimensions:
        raise _mismatch(model, dimensions, matrix.shape[1])
    return matrix


def _mismatch(model: str, expected: int, got: int) -> DimensionMismatch:
    return DimensionMismatch(
        f"The embedder {model!r} has {expected} dimensions, but returned a vector of {got}.",
        details={"model": model, "expected": expected, "got": got},
    )


def _row_lengths(returned: Any) -> set[int]:  # noqa: ANN401
    """The lengths of the rows, where they are rows: 384, 384, 383 is no matrix."""
    try:
        return {len(row) for row in returned if not isinstance(row, str)}
    except TypeError:
        return set()


def _unit_rows(matrix: npt.NDArray[np.float64]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    with np.errstate(all="ignore"):  # rows without a direction are found below, not warned about
        lengths = np.linalg.norm(matrix, axis=1)
        usable = np.isfinite(lengths) & (lengths > _NO_DIRECTION)
        off = usable & (np.abs(lengths - 1) > _UNIT_TOLERANCE)
        vectors = matrix.astype(np.float32)  # always a copy: the embedder may keep what it returned
        vectors[off] = matrix[off] / lengths[off, np.newaxis]
    return vectors, usable


def _positions(mask: npt.NDArray[np.bool_]) -> list[int]:
    return [int(row) for row in np.flatnonzero(mask)]


def pack(vector: Vector) -> str:
    """A vector as a basis holds it: base64 of the halves that the database compares with."""
    return base64.b64encode(np.asarray(vector, dtype="<f2").tobytes()).decode()


def unpack(packed: str) -> Vector:
    """The vector that :func:`pack` wrote."""
    return np.frombuffer(base64.b64decode(packed), dtype="<f2").astype(np.float32)
