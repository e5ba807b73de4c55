"""What comes out about embedding spaces: how full each is, and what a move to another one did."""

from __future__ import annotations

from supersede.models import Frozen


class Filled(Frozen):
    """Of the facts of a namespace: how many have a vector in a space, and how many lack one."""

    embedded: int
    missing: int


class EmbeddingSpace(Frozen):
    """The vectors of one model; those of the active space stand for questions that name no embedder.

    ``min_similarity`` and ``near_duplicate`` are its thresholds, cosines from 0 to 1. ``namespaces`` counts
    facts, past ones included, erased ones not.
    """

    model: str
    dimensions: int
    active: bool
    min_similarity: float
    near_duplicate: float
    namespaces: dict[str, Filled]

    @property
    def embedded(self) -> int:
        """Facts that have a vector in it, over all namespaces."""
        return sum(filled.embedded for filled in self.namespaces.values())

    @property
    def missing(self) -> int:
        """Facts that lack one, over all namespaces."""
        return sum(filled.missing for filled in self.namespaces.values())


class Moved(Frozen):
    """What a move to the space of another model did.

    ``previous`` is the model that was active until now (None: there was none), ``switched`` whether it is
    another one now, ``filled`` how many vectors this call stored, ``unembedded`` how many facts have none in
    the new space. ``notice`` says what a person should know.
    """

    model: str
    previous: str | None
    switched: bool
    filled: int = 0
    unembedded: int = 0
    notice: str | None = None
