"""FactStore: the store as a program sees it. A thin shell: events in, models out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

import sqlalchemy as sa
import structlog

from supersede import adapters, embedded, events, facts, migrate, reads
from supersede import engine as db
from supersede.adapters import vectors
from supersede.errors import (
    DimensionMismatch,
    EmbedderUnavailable,
    InvalidInput,
    SchemaOutOfDate,
    ServerUnavailable,
)
from supersede.events import Content, FactLike, Source
from supersede.models import (
    Answer,
    Basis,
    Cardinality,
    Fact,
    Filters,
    History,
    Lineage,
    Reason,
    Recorded,
    Verification,
)
from supersede.periods import InstantLike, parse_instant
from supersede.ports import Embedder, WindowedEmbedder
from supersede.settings import Settings

IfNotCurrent = Literal["refuse", "link"]
OutOfOrderPolicy = Literal["refuse", "next_stamp"]
Progress = Callable[[int], None]

_BATCH = 1_000
_MOST = 1_000_000
_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class FactStore:
    """A bitemporal fact store; open it with :meth:`open`, close it or use it in a ``with`` block.

    One store writes to one namespace and may read others. It is safe to share between threads.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        namespace: str,
        embedder: Embedder | None,
        actor: str | None,
        spaces: Sequence[facts.Space],
    ) -> None:
        self._engine = engine
        self.namespace = namespace
        self.actor = actor
        self._active = next((space for space in spaces if space.active), None)
        self._space = self._active
        self._no_embedder: str | None = None
        if embedder is not None:
            self._space = next((s for s in spaces if s.model == embedder.model), None)
            if self._space is None:
                raise SchemaOutOfDate(
                    f"no embedding space of model {embedder.model!r} is registered in this database; "
                    "run FactStore.init(url, embedder=...) once"
                )
            if embedder.dimensions != self._space.dimensions:
                raise DimensionMismatch(
                    f"this embedder of {embedder.model!r} says {embedder.dimensions} dimensions; the "
                    f"space of that name has {self._space.dimensions}"
                )
        elif self._active is None:
            self._no_embedder = "this store has no embedding space"
        else:
            try:
                embedder = adapters.load(self._active.model)
            except EmbedderUnavailable as error:
                self._no_embedder = error.message
        self._embedder = embedder

    # --- opening and closing

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        namespace: str | None = None,
        embedder: Embedder | None = None,
        actor: str | None = None,
    ) -> Self:
        """Open a store.

        :param url: the server; else ``SUPERSEDE_URL``; else an embedded server in the user's data
            folder, started on demand, created and upgraded as needed. A server given by URL is left
            as it is: prepare it once with :meth:`init`.
        :param namespace: what this store writes to and reads by default; else ``SUPERSEDE_NAMESPACE``,
            else ``default``.
        :param embedder: ranks questions and is stored with claims; else the one that the store's active
            space names, where it is installed. Without any, words alone rank.
        :param actor: who is writing, for the ledger; else ``SUPERSEDE_ACTOR``.
        :raises ServerUnavailable: if no usable server answers.
        :raises SchemaOutOfDate: if the schema is older or newer than this version needs.
        """
        settings = Settings()
        given = url or (settings.url.get_secret_value() if settings.url else None)
        if given is None:
            given = embedded.start(settings.data_dir).url
            cls._prepare_embedded(given, embedder)
        engine = db.make_engine(given)
        try:
            with db.reading(engine) as connection:
                db.check_server(connection)
                migrate.check_revision(connection)
                db.check_extensions(connection)
                spaces = facts.spaces(connection)
            return cls(
                engine,
                namespace=events.text(namespace or settings.namespace, "namespace"),
                embedder=embedder,
                actor=actor or settings.actor,
                spaces=spaces,
            )
        except BaseException:
            engine.dispose()
            raise

    @staticmethod
    def init(
        url: str, *, embedder: Embedder | None = None, text_search: str = "english"
    ) -> None:
        """Prepare a database: extensions, schema, embedding space. Safe to repeat; upgrades an older one.

        :param embedder: whose space to register; else the light one, where it is installed. The first
            space registered is the active one.
        :param text_search: PostgreSQL text-search configuration; fixed at the first call.
        :raises ServerUnsupported: if the server is too old or lacks an extension.
        :raises SchemaOutOfDate: if a newer supersede made the schema.
        """
        engine = db.make_engine(url)
        try:
            with db.translated_errors():
                migrate.init(engine, text_search=text_search)
            chosen = embedder or adapters.default()
            if chosen is not None:
                thresholds = adapters.thresholds(chosen.model)
                with db.writing(engine) as connection:
                    facts.register_space(
                        connection,
                        model=chosen.model,
                        dimensions=chosen.dimensions,
                        min_similarity=thresholds.min_similarity,
                        near_duplicate=thresholds.near_duplicate,
                    )
        finally:
            engine.dispose()

    @classmethod
    def _prepare_embedded(cls, url: str, embedder: Embedder | None) -> None:
        engine = db.make_engine(url)
        try:
            with db.reading(engine) as connection:
                revision = migrate.current_revision(connection)
                models = (
                    {s.model for s in facts.spaces(connection)}
                    if revision == migrate.HEAD_REVISION
                    else set()
                )
        finally:
            engine.dispose()
        wanted = embedder or adapters.default()
        ready = revision == migrate.HEAD_REVISION and (wanted is None or wanted.model in models)
        if not ready:
            cls.init(url, embedder=embedder)

    def close(self) -> None:
        """Give the connections back; an embedded server stays up for others."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- write verbs

    def remember(self, claim: str, **content: Unpack[Content]) -> Recorded:
        """Record a claim.

        :param content: see :class:`supersede.events.Content`; every part is optional.
        :raises RefConflict: if the ref or handle stands for something else.
        :raises TrustConflict: if it would cut a fact that its trust may not cut.
        :raises InvalidInput: for arguments that cannot be accepted, with its subclasses.
        """
        return self._write("remember", events.said(claim=claim, **content))

    def supersede(
        self,
        old: FactLike | Iterable[FactLike],
        claim: str | None = None,
        *,
        by: FactLike | None = None,
        reason: Reason = "change",
        if_not_current: IfNotCurrent = "refuse",
        **content: Unpack[Content],
    ) -> Recorded:
        """Take validity from one or several facts for a new claim, or for an existing fact (``by``).

        :param reason: ``change`` (the world moved: from now on), ``correction`` (it was wrong),
            ``refinement`` (the same, said better) or ``duplicate``; the last three cover what the old
            facts cover, unless bounds are said.
        :param if_not_current: ``link`` records the edge even to facts that are not believed in the
            period, and cuts what is there to cut.
        :raises FactNotCurrent: naming the facts that are not believed in the period.
        :raises SupersessionCycle: if the edge would close a ring.

        Content and further errors as in :meth:`remember`.
        """
        if (claim is None) == (by is None):
            raise InvalidInput("supersede needs a claim, or by= with an existing fact; not both")
        event = events.said(
            old=old,
            claim=claim,
            by=by,
            reason=reason,
            if_not_current=_unless(if_not_current, "refuse"),
            **content,
        )
        return self._write("supersede", event)

    def amend(
        self,
        old: FactLike | Iterable[FactLike],
        claim: str | None = None,
        *,
        by: FactLike | None = None,
        **content: Unpack[Content],
    ) -> Recorded:
        """Record a claim that adds to others and takes nothing from them; each is shown on the other.

        Content and errors as in :meth:`supersede`.
        """
        if (claim is None) == (by is None):
            raise InvalidInput("amend needs a claim, or by= with an existing fact; not both")
        return self._write("amend", events.said(old=old, claim=claim, by=by, **content))

    def end(
        self,
        fact: FactLike,
        *,
        at: InstantLike | None = None,
        until: InstantLike | None = None,
        handle: str | None = None,
        note: str | None = None,
    ) -> Recorded:
        """End a fact's validity without a successor: from ``at`` (else now) until ``until`` (else for good).

        :raises FactNotCurrent: if it is not believed in that period.
        """
        event = events.said(fact=fact, when=at, until=until, handle=handle, note=note)
        return self._write("end", event)

    def retract(
        self, fact: FactLike, *, note: str | None = None, handle: str | None = None
    ) -> Recorded:
        """Withdraw belief in a fact: it was never true. What was answered before stays as it was.

        :raises FactNotCurrent: if it is not believed at any time.
        """
        return self._write("retract", events.said(fact=fact, handle=handle, note=note))

    def cite(
        self,
        fact: FactLike,
        *,
        sources: Iterable[Source],
        asserted: InstantLike | None = None,
        handle: str | None = None,
        note: str | None = None,
    ) -> Recorded:
        """Add sources to a fact.

        :param asserted: when they asserted it; else now.
        """
        event = events.said(
            fact=fact, sources=sources, asserted=asserted, handle=handle, note=note
        )
        return self._write("cite", event)

    def declare_predicate(
        self, name: str, *, cardinality: Cardinality, handle: str | None = None
    ) -> Recorded:
        """Declare whether a predicate holds ``one`` value at any instant, or ``many``.

        :raises SlotOverlap: if values of it overlap, with the list.
        """
        event = events.said(name=name, cardinality=cardinality, handle=handle)
        return self._write("declare_predicate", event)

    def remember_many(
        self, items: Iterable[str | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> list[Recorded]:
        """Record many claims in order, in transactions of 1,000; claims are embedded in batches.

        :param items: claims, or mappings of the arguments of :meth:`remember`.
        :param progress: called with the number of items done after each transaction.
        :raises SupersedeError: what the failing item raised, with its position; its transaction is undone.
        """
        results: list[Recorded] = []
        for batch in _batches(items):
            said = [
                events.said(**({"claim": item} if isinstance(item, str) else item)) for item in batch
            ]
            carried = self._vectors([event.get("claim") for event in said])
            with db.writing(self._engine) as connection:
                for event, vector in zip(said, carried, strict=True):
                    results.append(
                        facts.write(
                            connection,
                            "remember",
                            event,
                            namespace=self.namespace,
                            actor=self.actor,
                            vector=vector,
                        )
                    )
            if progress is not None:
                progress(len(batch))
        return results

    def replay(
        self,
        history: Iterable[Mapping[str, Any]],
        *,
        out_of_order: OutOfOrderPolicy = "refuse",
        progress: Progress | None = None,
    ) -> list[Recorded]:
        """Record a history with its own recording times (``recorded_at``), in transactions of 1,000.

        A second run of the same events writes nothing. Needs the importer's privilege.

        :param history: events; ``op`` names the verb, and the rest are its arguments.
        :param out_of_order: ``next_stamp`` gives a late event the next free stamp and keeps its own time
            as ``asserted``.
        :param progress: called with the number of events done after each transaction.
        :raises OutOfOrder: for an event recorded before the newest in the ledger, or in the future.
        :raises SupersedeError: what the failing event raised, with its position; its transaction is undone.
        """
        if out_of_order not in ("refuse", "next_stamp"):
            raise InvalidInput(f"out_of_order: {out_of_order!r} is neither refuse nor next_stamp")
        results: list[Recorded] = []
        for batch in _batches(history):
            plain = [
                events.replayable(event, position)
                for position, event in enumerate(batch, len(results) + 1)
            ]
            carried = self._vectors([event.get("claim") for event in plain])
            with db.writing(self._engine) as connection:
                results.extend(
                    facts.replay(
                        connection,
                        plain,
                        carried,
                        namespace=self.namespace,
                        actor=self.actor,
                        out_of_order=out_of_order,
                        offset=len(results),
                    )
                )
            if progress is not None:
                progress(len(batch))
        return results

    def fill_embeddings(self, *, progress: Progress | None = None) -> int:
        """Compute the vectors that this namespace's facts lack; the past does not move by it.

        :returns: how many were stored.
        :raises EmbedderUnavailable: if the embedder does not answer.
        """
        if self._embedder is None or self._space is None:
            raise EmbedderUnavailable(self._no_embedder)
        filled = 0
        while True:
            with db.reading(self._engine) as connection:
                missing = facts.unfilled(
                    connection, namespace=self.namespace, space=self._space, limit=_BATCH
                )
            if not missing:
                return filled
            claims = [claim for _, claim in missing]
            found = vectors.embed_checked(self._embedder, claims)
            rows = [
                (fact_id, facts.vector_text(vector), cut)
                for (fact_id, _), vector, cut in zip(
                    missing, found, self._truncated(claims), strict=True
                )
            ]
            with db.writing(self._engine) as connection:
                filled += facts.fill_embeddings(
                    connection, rows, namespace=self.namespace, space=self._space, actor=self.actor
                )
            if progress is not None:
                progress(len(rows))

    # --- reads

    def ask(
        self,
        query: str | None = None,
        *,
        as_of: InstantLike | None = None,
        valid_at: InstantLike | None = None,
        known_at: InstantLike | None = None,
        namespaces: Sequence[str] | None = None,
        top_k: int = 10,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,  # noqa: A002 - the field's word
        kind: str | None = None,
        min_similarity: float | None = None,
        explain: bool = False,
        basis: Basis | str | None = None,
    ) -> Answer:
        """What was believed that answers a question, best first.

        :param as_of: both times at once: what did we believe then, about then.
        :param valid_at: the instant the question is about; else now.
        :param known_at: what was known by then; else now. Nothing learnt later shows, in no count.
        :param top_k: how many distinct facts.
        :param min_similarity: floor of the cosine, 0 to 1; else the embedding space's.
        :param explain: list the withheld facts, and what replaced each.
        :param basis: ask this again instead; the same basis gives the same answer.
        :raises InvalidInstant: for a ``known_at`` in the future, or what is no instant.
        :raises NamespaceNotFound: for a namespace that nobody wrote to, other than the store's own.
        :raises EmbedderError: if the embedder returns what cannot be ranked.
        """
        if basis is not None:
            return self._ask_again(basis, "ask", query)
        asked = events.text(query, "query")
        if min_similarity is not None and not 0 <= min_similarity <= 1:
            raise InvalidInput("min_similarity must lie between 0 and 1")
        vector, reason = self._query_vector(asked)
        space = self._space
        return self._answer(
            {
                "question": "ask",
                "query": asked,
                "vector": vector,
                "no_vector": reason,
                "space": space.model if space else None,
                "limit": _limit(top_k, "top_k"),
                "filters": _filters(subject, predicate, object, kind),
                "min_similarity": (
                    min_similarity if min_similarity is not None or space is None
                    else space.min_similarity
                ),
                "near_duplicate": space.near_duplicate if space else None,
                "explain": explain,
            },
            point=_point(as_of, valid_at, known_at),
            namespaces=namespaces,
        )

    def facts(
        self,
        *,
        as_of: InstantLike | None = None,
        valid_at: InstantLike | None = None,
        known_at: InstantLike | None = None,
        namespaces: Sequence[str] | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,  # noqa: A002 - the field's word
        kind: str | None = None,
        limit: int = 1_000,
        after: FactLike | None = None,
        explain: bool = False,
        basis: Basis | str | None = None,
    ) -> Answer:
        """Every fact believed at a point, unranked: by the start of its validity, then stamp, then id.

        :param limit: how many; ``after`` the last id of a page gives the next. Counts are of all.

        Other parameters and errors as in :meth:`ask`.
        """
        if basis is not None:
            return self._ask_again(basis, "facts", None)
        return self._answer(
            {
                "question": "facts",
                "limit": _limit(limit, "limit"),
                "after": None if after is None else events.fact_name(after, "after"),
                "filters": _filters(subject, predicate, object, kind),
                "explain": explain,
            },
            point=_point(as_of, valid_at, known_at),
            namespaces=namespaces,
        )

    def verify(self, answer: Answer) -> Verification:
        """Ask an answer's basis again and say whether the answer is the same."""
        with db.reading(self._engine) as connection:
            firsts = self._firsts(connection, answer.basis)
            return reads.verify(connection, answer, firsts)

    def get(self, fact: FactLike) -> Fact:
        """One fact by its id or ref, as believed now.

        :raises FactNotFound: if there is none.
        """
        with db.reading(self._engine) as connection:
            return reads.get(connection, self.namespace, events.fact_name(fact))

    def history(self, fact: FactLike) -> History:
        """Everything ever held about a fact: versions, sources, edges.

        :raises FactNotFound: if there is none.
        """
        with db.reading(self._engine) as connection:
            return reads.history(connection, self.namespace, events.fact_name(fact))

    def lineage(self, fact: FactLike) -> Lineage:
        """What a fact superseded and what superseded it, directly and through others.

        :raises FactNotFound: if there is none.
        """
        with db.reading(self._engine) as connection:
            return reads.lineage(connection, self.namespace, events.fact_name(fact))

    # --- one jump down

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        (vector,) = self._vectors([event.get("claim")])
        with db.writing(self._engine) as connection:
            return facts.write(
                connection, verb, event, namespace=self.namespace, actor=self.actor, vector=vector
            )

    def _vectors(self, claims: Sequence[str | None]) -> list[facts.Vector]:
        """Vectors for the claims of a batch, computed before the transaction begins."""
        texts = [claim for claim in claims if isinstance(claim, str) and claim.strip()]
        if self._embedder is None or self._space is None or not texts:
            return [facts.NO_VECTOR] * len(claims)
        found = vectors.embed_or_none(self._embedder, texts)
        carried = {
            text: facts.Vector(facts.vector_text(vector), self._space.id, cut)
            for text, vector, cut in zip(texts, found, self._truncated(texts), strict=True)
            if vector is not None
        }
        return [carried.get(claim or "", facts.NO_VECTOR) for claim in claims]

    def _truncated(self, texts: Sequence[str]) -> list[bool]:
        if not isinstance(self._embedder, WindowedEmbedder):
            return [False] * len(texts)
        cut = self._embedder.exceeds_window(texts)
        if any(cut):
            _log.warning("claim_exceeds_window", model=self._embedder.model, claims=sum(cut))
        return cut

    def _query_vector(self, query: str) -> tuple[str | None, str | None]:
        """The question's vector as a basis holds it, or why there is none."""
        if self._embedder is None:
            return None, self._no_embedder
        try:
            return reads.pack_vector(vectors.embed_checked(self._embedder, [query])[0]), None
        except EmbedderUnavailable as error:
            _log.warning("embedder_failed", error=error.message)
            return None, f"the embedder of {self._embedder.model} did not answer"

    def _answer(
        self,
        asked: Mapping[str, Any],
        *,
        point: tuple[datetime | None, datetime | None],
        namespaces: Sequence[str] | None,
    ) -> Answer:
        names = _names(namespaces, self.namespace)
        with db.reading(self._engine) as connection:
            heads = facts.heads(connection, names, own=self.namespace)
            valid_at, known_at = reads.points(
                connection, heads, valid_at=point[0], known_at=point[1]
            )
            basis = Basis(
                heads={name: head.last for name, head in heads.items()},
                valid_at=valid_at,
                known_at=known_at,
                known_at_said=point[1] is not None,
                text_search=facts.text_search(connection),
                **asked,
            )
            return reads.answer(
                connection, basis, {name: head.first for name, head in heads.items()}
            )

    def _ask_again(self, basis: Basis | str, question: str, query: str | None) -> Answer:
        again = Basis.parse(basis) if isinstance(basis, str) else basis
        if query is not None:
            raise InvalidInput("a basis holds its own query; pass one or the other")
        if again.question != question:
            raise InvalidInput(f"this basis is of {again.question}(), not of {question}()")
        with db.reading(self._engine) as connection:
            return reads.answer(connection, again, self._firsts(connection, again))

    def _firsts(
        self, connection: sa.Connection, basis: Basis
    ) -> dict[str, datetime | None]:
        heads = facts.heads(connection, list(basis.heads), own=self.namespace, missing_ok=True)
        reads.check_heads(basis, heads)
        return {name: head.first for name, head in heads.items()}


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def _unless(value: str, default: str) -> str | None:
    return None if value == default else value


def _limit(value: int, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise InvalidInput(f"{name} must be a whole number from 1 to {_MOST:,}, not {value!r}")
    return value


def _filters(
    subject: str | None, predicate: str | None, object: str | None, kind: str | None  # noqa: A002
) -> Filters:
    given = {"subject": subject, "predicate": predicate, "object": object, "kind": kind}
    return Filters(**{k: events.text(v, k) for k, v in given.items() if v is not None})


def _point(
    as_of: InstantLike | None, valid_at: InstantLike | None, known_at: InstantLike | None
) -> tuple[datetime | None, datetime | None]:
    if as_of is not None:
        if valid_at is not None or known_at is not None:
            raise InvalidInput("as_of= sets both times; leave out valid_at= and known_at=")
        both = parse_instant(as_of, "as_of")
        return both, both
    return (
        None if valid_at is None else parse_instant(valid_at, "valid_at"),
        None if known_at is None else parse_instant(known_at, "known_at"),
    )


def _names(namespaces: Sequence[str] | None, own: str) -> list[str]:
    if namespaces is None:
        return [own]
    if isinstance(namespaces, str) or not namespaces:
        raise InvalidInput('namespaces must be a list of names, such as ["default"]')
    return [events.text(name, "namespace") for name in dict.fromkeys(namespaces)]
