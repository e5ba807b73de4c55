"""What statements are given and what they return, as plain tuples."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from supersede.models import Trust, WithheldReason

Key = tuple[str, UUID]
"""Namespace and id of a fact."""


class Space(NamedTuple):
    """An embedding space as registered in the database."""

    id: int
    model: str
    dimensions: int
    min_similarity: float
    near_duplicate: float
    active: bool


class Vector(NamedTuple):
    """A claim's vector on its way to the database: its text form, its space, whether it was cut."""

    text: str | None
    space_id: int | None
    truncated: bool = False


class Head(NamedTuple):
    """The last stamp of a namespace and the first; both None where nothing was recorded."""

    last: datetime | None
    first: datetime | None


class KnownRow(NamedTuple):
    """One fact that was known, whether it is current, its trust, and whether it was erased since."""

    key: Key
    current: bool
    trust: Trust
    erased: bool


class RankedRow(NamedTuple):
    """One fact in the order of its score."""

    key: Key
    current: bool
    similarity: float | None
    score: float
    trust: Trust
    via: UUID | None


class ReasonRow(NamedTuple):
    """Why a fact is not current, and since which stamp."""

    key: Key
    reason: WithheldReason
    stamp: datetime | None


NO_VECTOR = Vector(None, None)


def vector_text(vector: np.ndarray[Any, Any]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(np.format_float_positional(x, unique=True) for x in vector) + "]"
