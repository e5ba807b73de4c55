"""A store's embedder and the space its vectors belong to; or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from supersede import adapters, facts
from supersede.adapters import vectors
from supersede.errors import DimensionMismatch, EmbedderError, EmbedderUnavailable, SchemaOutOfDate
from supersede.facts import NO_VECTOR, Space, Vector
from supersede.logs import get_logger
from supersede.ports import Embedder, WindowedEmbedder
from supersede.questions import Asked
from supersede.results import Recorded

_log = get_logger(__name__)


@dataclass(frozen=True)
class Embedding:
    """How a store turns texts into vectors.

    ``space`` is where its vectors belong, ``missing`` says why there is no embedder.
    """

    embedder: Embedder | None
    space: Space | None
    missing: str | None

    @classmethod
    def choose(cls, embedder: Embedder | None, spaces: Sequence[Space]) -> Self:
        """The given embedder with its space, else the one that the active space names, if installed.

        :raises SchemaOutOfDate: if the space of the given embedder is not registered.
        :raises DimensionMismatch: if it is registered with another number of dimensions.
        """
        if embedder is not None:
            space = next((s for s in spaces if s.model == embedder.model), None)
            if space is None:
                raise SchemaOutOfDate(
                    f"no embedding space of model {embedder.model!r} is registered in this database; "
                    "run FactStore.init(url, embedder=...) once"
                )
            if embedder.dimensions != space.dimensions:
                raise DimensionMismatch(
                    f"this embedder of {embedder.model!r} says {embedder.dimensions} dimensions; the "
                    f"space of that name has {space.dimensions}"
                )
            return cls(embedder, space, None)
        active = next((space for space in spaces if space.active), None)
        if active is None:
            return cls(None, None, "this store has no embedding space")
        try:
            return cls(adapters.load(active.model), active, None)
        except EmbedderUnavailable as error:
            return cls(None, active, error.message)

    def required_space(self) -> Space:
        """The space of an embedder that is there.

        :raises EmbedderUnavailable: if there is none.
        """
        if self.embedder is None or self.space is None:
            raise EmbedderUnavailable(self.missing)
        return self.space

    def carry(self, claims: Sequence[str | None]) -> list[Vector]:
        """Vectors for the claims of a batch, each on its way to the database.

        A claim whose vector is not to be had goes without: it is stored and counted as unembedded.

        :raises DimensionMismatch: if the embedder returns another number of dimensions than it says.
        """
        texts = [claim for claim in claims if isinstance(claim, str) and claim.strip()]
        if self.embedder is None or self.space is None or not texts:
            return [NO_VECTOR] * len(claims)
        distinct = list(dict.fromkeys(texts))
        found = vectors.embed_or_none(self.embedder, distinct)
        carried = {
            text: Vector(facts.vector_text(vector), self.space.id, cut)
            for text, vector, cut in zip(distinct, found, self._exceeding(distinct), strict=True)
            if vector is not None
        }
        return [carried.get(claim or "", NO_VECTOR) for claim in claims]

    def warn_of_elsewhere(self, carried: Sequence[Vector], done: Sequence[Recorded]) -> None:
        """Log that vectors went to a space that is not the active one (any more), where some did.

        A store keeps the space it was opened with, so that its answers and its writes stay of one kind.
        """
        elsewhere = sum(
            vector.text is not None and result.created and not result.repeated and not result.embedded
            for vector, result in zip(carried, done, strict=True)
        )
        if elsewhere:
            self.log_elsewhere(elsewhere)

    def log_elsewhere(self, count: int) -> None:
        """Log how many vectors went to this store's space, which is not the active one."""
        model = self.space.model if self.space else None
        _log.warning("vectors_of_an_inactive_space", model=model, facts=count)

    def rows(self, missing: Sequence[tuple[UUID, str]]) -> list[tuple[UUID, str, bool]]:
        """Vectors for facts that lack them: id, vector as text, whether the claim exceeds the window.

        A claim of which the embedder makes nothing that can be ranked is left out.

        :raises EmbedderUnavailable: if the embedder does not answer.
        :raises DimensionMismatch: if it returns another number of dimensions than it says.
        """
        if self.embedder is None:
            raise EmbedderUnavailable(self.missing)
        claims = [claim for _, claim in missing]
        found: Sequence[vectors.Vector | None]
        try:
            found = list(vectors.embed_checked(self.embedder, claims))
        except EmbedderUnavailable:
            raise
        except EmbedderError:
            found = vectors.embed_or_none(self.embedder, claims)
        return [
            (fact_id, facts.vector_text(vector), cut)
            for (fact_id, _), vector, cut in zip(missing, found, self._exceeding(claims), strict=True)
            if vector is not None
        ]

    def complete(self, asked: Asked) -> Asked:
        """A question with its vector, space and thresholds; or with the reason why it has no vector.

        :raises EmbedderError: if the embedder returns what cannot be ranked.
        """
        vector, reason = self._of_query(asked["query"])
        if self.space is None:
            return {**asked, "vector": vector, "no_vector": reason}
        said = asked["min_similarity"]
        return {
            **asked,
            "vector": vector,
            "no_vector": reason,
            "space": self.space.model,
            "min_similarity": self.space.min_similarity if said is None else said,
            "near_duplicate": self.space.near_duplicate,
        }

    def _of_query(self, query: str) -> tuple[str | None, str | None]:
        if self.embedder is None:
            return None, self.missing
        try:
            return vectors.pack(vectors.embed_checked(self.embedder, [query])[0]), None
        except EmbedderUnavailable as error:
            _log.warning("embedder_failed", error=error.message)
            return None, f"the embedder of {self.embedder.model} did not answer"

    def _exceeding(self, texts: Sequence[str]) -> list[bool]:
        if not isinstance(self.embedder, WindowedEmbedder):
            return [False] * len(texts)
        try:
            cut = list(self.embedder.exceeds_window(texts))
        except Exception as error:  # a foreign embedder may raise anything; its vectors are good
            _log.warning("embedder_window_failed", error=type(error).__name__)
            cut = []
        if len(cut) != len(texts):
            return [False] * len(texts)
        if any(cut):
            _log.warning("claims_exceed_window", model=self.embedder.model, claims=sum(cut))
        return cut
