"""The write verbs, once: a store runs each in a transaction of its own, a transaction runs several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Unpack
from uuid import UUID

import sqlalchemy as sa

from supersede import engine as db
from supersede import events, facts
from supersede.bulk import Writer
from supersede.errors import SupersedeError
from supersede.events import BasedOn, Call, Content, FactLike, Source
from supersede.logs import get_logger
from supersede.models import Reason
from supersede.periods import InstantLike, Unbounded
from supersede.results import Cardinality, Recorded
from supersede.undoing import Undo, Work
from supersede.undone import Undoing

_log = get_logger(__name__)

IfNotCurrent = Literal["refuse", "link"]


class Verbs(Undo):
    """What can be written, whoever runs it; see :class:`supersede.events.Call` for what all verbs take."""

    namespace: str

    @abstractmethod
    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded: ...

    def _call(self, verb: str, based_on: BasedOn | None = None, **arguments: Any) -> Recorded:  # noqa: ANN401
        return self._write(verb, events.call(self.namespace, based_on, **arguments))

    def remember(self, claim: str, **content: Unpack[Content]) -> Recorded:
        """Record a claim.

        :param content: see :class:`supersede.events.Content`; every part is optional.
        :raises RefConflict: if the ref or handle stands for something else.
        :raises TrustConflict: if it would cut a fact that its trust may not cut.
        :raises InvalidInput: for arguments that cannot be accepted, with its subclasses.
        """
        return self._call("remember", claim=claim, **content)

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
        return self._call(
            "supersede",
            old=old,
            claim=claim,
            by=by,
            reason=reason,
            if_not_current=if_not_current,
            **content,
        )

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
        return self._call("amend", old=old, claim=claim, by=by, **content)

    def end(
        self,
        fact: FactLike,
        *,
        at: InstantLike | None = None,
        until: InstantLike | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """End a fact's validity without a successor: from ``at`` (else now) until ``until`` (else for good).

        :raises FactNotCurrent: if it is not believed in that period.
        """
        return self._call("end", fact=fact, when=at, until=until, **call)

    def retract(self, fact: FactLike, *, give_back: bool = False, **call: Unpack[Call]) -> Recorded:
        """Withdraw belief in a fact: it was never true. What was answered before stays as it was.

        :param give_back: also give its olds what it took from them and still holds.
        :raises FactNotCurrent: if it is not believed at any time.
        """
        return self._call("retract", fact=fact, give_back=give_back, **call)

    def reinstate(
        self,
        fact: FactLike,
        *,
        valid_from: InstantLike | Unbounded | None = None,
        valid_to: InstantLike | Unbounded | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """Believe a fact again over a period, by default over what was last taken from it.

        :raises SlotTaken: naming another value that holds its slot there; nothing is taken from it.
        :raises InvalidPeriod: if nothing was taken in that period, and not both bounds are said.
        """
        return self._call("reinstate", fact=fact, valid_from=valid_from, valid_to=valid_to, **call)

    def cite(
        self,
        fact: FactLike,
        *,
        sources: Iterable[Source],
        asserted: InstantLike | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """Add sources to a fact.

        :param asserted: when they asserted it; else now.
        """
        return self._call("cite", fact=fact, sources=sources, asserted=asserted, **call)

    def erase(self, fact: FactLike, *, note: str, handle: str | None = None) -> Recorded:
        """Destroy a fact's content for good; its id, periods, edges and stamps stay, and are counted.

        The result holds a ``certificate``. Until ``lift_erasure`` the same claim, or the same subject,
        predicate and object, is recorded by nobody. Needs the importer's privilege.

        :param note: why; it is kept, so it must not repeat what the fact said.
        :raises Erased: if it was erased before.
        """
        return self._call("erase", fact=fact, note=note, handle=handle)

    def lift_erasure(self, fact: FactLike, *, note: str, handle: str | None = None) -> Recorded:
        """Let what an erased fact said be recorded anew, as another fact; its content does not come back.

        Needs the importer's privilege.

        :param fact: the erased one, by its id.
        :param note: why; it is kept.
        :raises InvalidInput: if it is not erased, or its erasure was lifted already.
        """
        return self._call("lift_erasure", fact=fact, note=note, handle=handle)

    def declare_predicate(
        self, name: str, *, cardinality: Cardinality, handle: str | None = None, run: str | None = None
    ) -> Recorded:
        """Declare whether a predicate holds ``one`` value at any instant, or ``many``.

        :raises SlotOverlap: if values of it overlap, with the list.
        """
        return self._call("declare_predicate", name=name, cardinality=cardinality, handle=handle, run=run)


class Transaction(Verbs):
    """Verbs inside one transaction; see ``FactStore.transaction``.

    A verb that raises changes nothing, and the block may go on with others.
    """

    def __init__(self, connection: sa.Connection, writer: Writer) -> None:
        self._connection = connection
        self._made = Made(writer)
        self.namespace = writer.namespace
        self.actor = writer.actor
        self.run = writer.run

    def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        with db.translated_errors():
            return self._made.write(self._connection, verb, event)

    def _undo(self, work: Work) -> Undoing:
        with db.translated_errors(), self._connection.begin_nested():
            return work(self._connection)

    def vectors(self) -> list[tuple[UUID, str, bool]]:
        """Vectors of the facts that were made, to be stored once the block is over."""
        return self._made.vectors()


@contextmanager
def afterwards() -> Iterator[None]:
    """Around what stores vectors after a commit: what was recorded stays so, whatever comes of them."""
    try:
        yield
    except SupersedeError as error:
        _log.warning("vectors_left_to_fill_embeddings", error=error.message)


class Made:
    """What a transaction writes, and the facts it made, whose vectors come after it."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._claims: list[tuple[UUID, str]] = []

    def write(self, connection: sa.Connection, verb: str, event: Mapping[str, Any]) -> Recorded:
        """Run a verb behind a savepoint."""
        with connection.begin_nested():
            done = facts.write(
                connection,
                verb,
                events.in_run(event, self._writer.run),
                namespace=self._writer.namespace,
                actor=self._writer.actor,
            )
        if done.created and not done.repeated and done.id is not None:
            self._claims.append((UUID(done.id), event["claim"]))
        return done

    def vectors(self) -> list[tuple[UUID, str, bool]]:
        """Id, vector as text, whether the claim exceeds the window; what is not to be had is left out."""
        found = self._writer.embedding.carry([claim for _, claim in self._claims])
        return [
            (fact_id, vector.text, vector.truncated)
            for (fact_id, _), vector in zip(self._claims, found, strict=True)
            if vector.text is not None
        ]
