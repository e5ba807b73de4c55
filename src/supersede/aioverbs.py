"""The write verbs for asyncio: a store awaits each in a transaction of its own, a transaction several."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from sqlalchemy.ext.asyncio import AsyncConnection

from supersede import engine as db
from supersede import events
from supersede.bulk import Writer
from supersede.events import BasedOn, Call, Content, FactLike, Source
from supersede.models import Reason
from supersede.periods import InstantLike, Unbounded
from supersede.results import Cardinality, Recorded
from supersede.undoing import AsyncUndo, Work
from supersede.undone import Undoing
from supersede.verbs import IfNotCurrent, Made


class AsyncVerbs(AsyncUndo):
    """The write verbs; each is documented in :class:`supersede.verbs.Verbs`."""

    namespace: str

    async def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        raise NotImplementedError

    async def _call(self, verb: str, based_on: BasedOn | None = None, **arguments: Any) -> Recorded:  # noqa: ANN401
        return await self._write(verb, events.call(self.namespace, based_on, **arguments))

    async def remember(self, claim: str, **content: Unpack[Content]) -> Recorded:
        """Record a claim."""
        return await self._call("remember", claim=claim, **content)

    async def supersede(
        self,
        old: FactLike | Iterable[FactLike],
        claim: str | None = None,
        *,
        by: FactLike | None = None,
        reason: Reason = "change",
        if_not_current: IfNotCurrent = "refuse",
        **content: Unpack[Content],
    ) -> Recorded:
        """Take validity from one or several facts for a new claim, or for an existing fact."""
        return await self._call(
            "supersede",
            old=old,
            claim=claim,
            by=by,
            reason=reason,
            if_not_current=if_not_current,
            **content,
        )

    async def amend(
        self,
        old: FactLike | Iterable[FactLike],
        claim: str | None = None,
        *,
        by: FactLike | None = None,
        **content: Unpack[Content],
    ) -> Recorded:
        """Record a claim that adds to others and takes nothing from them."""
        return await self._call("amend", old=old, claim=claim, by=by, **content)

    async def end(
        self,
        fact: FactLike,
        *,
        at: InstantLike | None = None,
        until: InstantLike | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """End a fact's validity without a successor."""
        return await self._call("end", fact=fact, when=at, until=until, **call)

    async def retract(self, fact: FactLike, *, give_back: bool = False, **call: Unpack[Call]) -> Recorded:
        """Withdraw belief in a fact."""
        return await self._call("retract", fact=fact, give_back=give_back, **call)

    async def reinstate(
        self,
        fact: FactLike,
        *,
        valid_from: InstantLike | Unbounded | None = None,
        valid_to: InstantLike | Unbounded | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """Believe a fact again over a period."""
        return await self._call("reinstate", fact=fact, valid_from=valid_from, valid_to=valid_to, **call)

    async def cite(
        self,
        fact: FactLike,
        *,
        sources: Iterable[Source],
        asserted: InstantLike | None = None,
        **call: Unpack[Call],
    ) -> Recorded:
        """Add sources to a fact."""
        return await self._call("cite", fact=fact, sources=sources, asserted=asserted, **call)

    async def erase(self, fact: FactLike, *, note: str, handle: str | None = None) -> Recorded:
        """Destroy a fact's content for good; its shape stays."""
        return await self._call("erase", fact=fact, note=note, handle=handle)

    async def lift_erasure(self, fact: FactLike, *, note: str, handle: str | None = None) -> Recorded:
        """Let what an erased fact said be recorded anew, as another fact."""
        return await self._call("lift_erasure", fact=fact, note=note, handle=handle)

    async def declare_predicate(
        self, name: str, *, cardinality: Cardinality, handle: str | None = None, run: str | None = None
    ) -> Recorded:
        """Declare whether a predicate holds one value at any instant, or many."""
        return await self._call(
            "declare_predicate", name=name, cardinality=cardinality, handle=handle, run=run
        )


class AsyncTransaction(AsyncVerbs):
    """Verbs inside one transaction; see ``FactStore.transaction``."""

    def __init__(self, connection: AsyncConnection, writer: Writer) -> None:
        self._connection = connection
        self._made = Made(writer)
        self.namespace = writer.namespace
        self.actor = writer.actor
        self.run = writer.run

    async def _write(self, verb: str, event: Mapping[str, Any]) -> Recorded:
        with db.translated_errors():
            return await self._connection.run_sync(self._made.write, verb, event)

    async def _undo(self, work: Work) -> Undoing:
        with db.translated_errors():
            async with self._connection.begin_nested():
                return await self._connection.run_sync(work)

    async def vectors(self) -> list[Any]:
        """Vectors of the facts that were made, to be stored once the block is over."""
        return await asyncio.to_thread(self._made.vectors)
