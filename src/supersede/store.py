"""FactStore: the store as a program sees it. A thin shell: events in, models out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar, Unpack

import sqlalchemy as sa

from supersede import attempts, bulk, events, facts, histories, opening, questions, reads
from supersede import engine as db
from supersede.bulk import OutOfOrderPolicy, Progress, Writer
from supersede.embedding import Embedding
from supersede.events import FactLike
from supersede.filling import Embeddings
from supersede.models import Answer, Basis, Fact, Verification
from supersede.periods import InstantLike, PeriodLike
from supersede.ports import Embedder
from supersede.questions import Which
from supersede.results import Recorded
from supersede.settings import Settings
from supersede.timelines import Diff, History, Lineage
from supersede.transfers import Transfers
from supersede.undoing import Work
from supersede.undone import Undoing
from supersede.verbs import Transaction, Verbs, afterwards

_T = TypeVar("_T")


class FactStore(Verbs, Embeddings, Transfers):
    """A bitemporal fact store; open it with :meth:`open`, close it or use it in a ``with`` block.

    One store writes to one namespace and may read others. It is safe to share between threads.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        namespace: str,
        actor: str | None,
        embedding: Embedding,
        run: str | None = None,
    ) -> None:
        self._engine = engine
        self._embedding = embedding
        self._writer = Writer(namespace, actor, embedding, run)
        self.namespace = namespace
        self.actor = actor
        self.run = run

    # --- opening and closing

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        namespace: str | None = None,
        embedder: Embedder | None = None,
        actor: str | None = None,
        run: str | None = None,
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
        :param run: what all writes of this store belong to and can be undone with as a whole, such as one
            run of a model; else ``SUPERSEDE_RUN``.
        :raises ServerUnavailable: if no usable server answers.
        :raises SchemaOutOfDate: if the schema is older or newer than this version needs.
        """
        settings = Settings()
        engine = db.make_engine(opening.target(url, settings, embedder))
        try:
            with db.reading(engine) as connection:
                spaces = opening.check(connection)
            return cls(
                engine,
                namespace=events.text(namespace or settings.namespace, "namespace"),
                actor=events.actor(actor, settings.actor),
                embedding=Embedding.choose(embedder, spaces),
                run=events.run(run, settings.run),
            )
        except BaseException:
            engine.dispose()
            raise

    @staticmethod
    def init(
        url: str,
        *,
        embedder: Embedder | None = None,
        text_search: str | None = None,
        min_similarity: float | None = None,
        near_duplicate: float | None = None,
    ) -> tuple[str, ...]:
        """Prepare a database: extensions, schema, embedding space. Safe to repeat; upgrades an older one.

        :param embedder: whose space to register; else the light one, where it is installed. The first
            space registered is the active one.
        :param text_search: PostgreSQL text-search configuration, fixed at the first call; else
            ``english``.
        :param min_similarity: the least cosine that makes a claim a match in the embedder's space, 0 to
            1; else the one measured for its model. Said for a space that is there, it changes what later
            questions ask; earlier answers stand on the one in their basis.
        :param near_duplicate: likewise the cosine from which two claims may be one.
        :returns: statements that somebody who may create roles has to run, where the owner may not;
            after them, ``init`` once more grants the roles what they need.
        :raises ServerUnsupported: if the server is too old or lacks an extension.
        :raises SchemaOutOfDate: if a newer supersede made the schema.
        """
        return opening.init(
            url,
            embedder=embedder,
            text_search=text_search,
            min_similarity=min_similarity,
            near_duplicate=near_duplicate,
        )

    def close(self) -> None:
        """Give the connections back; an embedded server stays up for others."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # --- many writes

    @contextmanager
    def transaction(self, *, actor: str | None = None, run: str | None = None) -> Iterator[Transaction]:
        """Several verbs as one: all are recorded when the block ends, or none where it raises.

        The namespace stays locked from the first verb on, so keep the block short. Vectors are computed
        after it, outside the lock.

        :param actor: who is writing; else the store's.
        :param run: the run that they belong to; else the store's.
        """
        with db.writing(self._engine) as connection:
            transaction = Transaction(
                connection,
                self._writer._replace(actor=events.actor(actor, self.actor), run=events.run(run, self.run)),
            )
            yield transaction
        with afterwards():
            rows = transaction.vectors()
            attempts.write(self._engine, lambda c: bulk.fill_made(c, self._writer, rows))

    def remember_many(
        self, items: Iterable[str | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> list[Recorded]:
        """Record many claims in order, in transactions of 1,000; claims are embedded in batches.

        :param items: claims, or mappings of the arguments of :meth:`remember`.
        :param progress: called with the number of items done after each transaction.
        :raises SupersedeError: what the failing item raised, with its position; its transaction is undone.
        """
        return bulk.run(self._engine, bulk.Remember(self._writer), items, progress=progress)

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
        return bulk.run(self._engine, bulk.Replay(self._writer, out_of_order), history, progress=progress)

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
        min_similarity: float | None = None,
        lineage_credit: float = 0.9,
        explain: bool = False,
        basis: Basis | str | None = None,
        **which: Unpack[Which],
    ) -> Answer:
        """What was believed that answers a question, best first.

        :param as_of: both times at once: what did we believe then, about then.
        :param valid_at: the instant the question is about; else now.
        :param known_at: what was known by then; else now. Nothing learnt later shows, in no count.
        :param top_k: how many distinct facts.
        :param min_similarity: floor of the cosine, 0 to 1; else the embedding space's.
        :param lineage_credit: the share of an old fact's score that what superseded it gets: asked in
            yesterday's words, answered with today's fact. 0 switches it off.
        :param explain: list the withheld facts, and what replaced each.
        :param basis: ask this again instead; the same basis gives the same answer.
        :param which: filters, see :class:`supersede.questions.Which`.
        :raises InvalidInstant: for a ``known_at`` in the future, or what is no instant.
        :raises NamespaceNotFound: for a namespace that nobody wrote to, other than the store's own.
        :raises EmbedderError: if the embedder returns what cannot be ranked.
        """
        if basis is not None:
            return self._ask_again(
                questions.again(
                    basis,
                    "ask",
                    query,
                    as_of,
                    valid_at,
                    known_at,
                    namespaces,
                    min_similarity,
                    explain,
                    top_k != 10,
                    lineage_credit != 0.9,
                    which or None,
                )
            )
        asked = questions.ask(
            query,
            top_k=top_k,
            which=questions.which(which),
            min_similarity=min_similarity,
            lineage_credit=lineage_credit,
            explain=explain,
        )
        point = questions.point(as_of, valid_at, known_at)
        return self._answer(self._embedding.complete(asked), point, namespaces)

    def facts(
        self,
        *,
        as_of: InstantLike | None = None,
        valid_at: InstantLike | None = None,
        valid_during: PeriodLike | None = None,
        known_at: InstantLike | None = None,
        namespaces: Sequence[str] | None = None,
        limit: int = 1_000,
        after: FactLike | None = None,
        explain: bool = False,
        basis: Basis | str | None = None,
        **which: Unpack[Which],
    ) -> Answer:
        """Every fact believed at a point, unranked: by the start of its validity, then stamp, then id.

        :param valid_during: instead of an instant a period, ``(from, to)``, None for an end that is open:
            what is believed of any part of it, each fact once, with all its ``periods`` that overlap
            it. Withheld is what is believed of none of it, by what took the last of it.
        :param limit: how many; ``after`` the last id of a page gives the next. Counts are of all.

        Other parameters and errors as in :meth:`ask`.
        """
        point = as_of, valid_at, known_at, valid_during
        if basis is not None:
            said = *point, namespaces, after, explain, limit != 1_000, which or None
            return self._ask_again(questions.again(basis, "facts", *said))
        asked = questions.facts(
            which=questions.which(which),
            valid_during=valid_during,
            limit=limit,
            after=after,
            explain=explain,
        )
        return self._answer(asked, questions.point(*point), namespaces)

    def verify(self, answer: Answer) -> Verification:
        """Ask an answer's basis again and say whether the answer is the same."""
        with db.reading(self._engine) as connection:
            return reads.verify(connection, answer)

    def diff(
        self,
        known_from: InstantLike,
        known_to: InstantLike | None = None,
        *,
        valid_at: InstantLike | None = None,
    ) -> Diff:
        """What this namespace believed otherwise at one instant than at an earlier one.

        :param known_to: else now.
        :param valid_at: only what concerns this instant.
        :raises InvalidPeriod: if ``known_to`` does not come after ``known_from``.
        """
        asked = questions.diff(known_from, known_to, valid_at)
        with db.reading(self._engine) as connection:
            return histories.diff(connection, self.namespace, **asked)

    def get(self, fact: FactLike) -> Fact:
        """One fact by its id or ref, as believed now.

        :raises FactNotFound: if there is none.
        """
        return self._one(histories.get, fact)

    def history(self, fact: FactLike) -> History:
        """Everything ever held about a fact: versions, sources, edges.

        :raises FactNotFound: if there is none.
        """
        return self._one(histories.history, fact)

    def lineage(self, fact: FactLike) -> Lineage:
        """What a fact superseded and what superseded it, directly and through others.

        :raises FactNotFound: if there is none.
        """
        return self._one(histories.lineage, fact)

    # --- one jump down

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        event = events.in_run(event, self.run)
        (vector,) = self._embedding.carry([event.get("claim")])
        done = attempts.write(
            self._engine,
            lambda connection: facts.write(
                connection, verb, event, namespace=self.namespace, actor=self.actor, vector=vector
            ),
        )
        self._embedding.warn_of_elsewhere([vector], [done])
        return done

    def _undo(self, work: Work) -> Undoing:
        return attempts.write(self._engine, work)

    def _one(self, read: Callable[[sa.Connection, str, str], _T], fact: FactLike) -> _T:
        with db.reading(self._engine) as connection:
            return read(connection, self.namespace, events.fact_name(fact))

    def _answer(
        self, asked: questions.Asked, point: questions.Point, namespaces: Sequence[str] | None
    ) -> Answer:
        names = questions.names(namespaces, self.namespace)
        with db.reading(self._engine) as connection:
            return reads.ask(connection, asked, point=point, names=names, own=self.namespace)

    def _ask_again(self, basis: Basis) -> Answer:
        with db.reading(self._engine) as connection:
            return reads.ask_again(connection, basis)
