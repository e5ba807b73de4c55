"""Undo, the answer to an over-eager model: for the store, for a transaction, and for both in asyncio."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from supersede import events, facts
from supersede.errors import InvalidInput
from supersede.periods import InstantLike
from supersede.undone import Undoing

Work = Callable[[sa.Connection], Undoing]


class Undo(ABC):
    """What runs ``undo`` over a connection of its own kind."""

    namespace: str
    actor: str | None
    run: str | None

    @abstractmethod
    def _undo(self, work: Work) -> Undoing: ...

    def undo(
        self,
        *,
        actor: str | None = None,
        run: str | None = None,
        source: str | None = None,
        stamp: InstantLike | None = None,
        since: InstantLike | None = None,
        until: InstantLike | None = None,
        dry_run: bool = True,
        based_on: Undoing | None = None,
        handle: str | None = None,
        note: str | None = None,
    ) -> Undoing:
        """Undo what operations did to validity, or say what that would do: from the newest to the oldest.

        What an operation gave, and is still held by it, is withdrawn; what it took is believed again, but
        for what later operations of others decided about it. Sources, names, edges and declarations stay,
        and so does every earlier answer. An undo is an operation, and can be undone.

        :param actor: operations of this actor.
        :param run: operations of this run; the only ones that need no ``since``.
        :param source: operations that made facts all of whose evidence is this source.
        :param stamp: the one operation with this stamp.
        :param since: operations recorded from then on. Whatever else is said must hold as well.
        :param until: operations recorded before then.
        :param dry_run: only say what would be done (the default); nothing is written.
        :param based_on: the plan that a dry run gave: refused with ``Conflict`` if it would no longer do
            the same.
        :param handle: the same call with the same handle is done once.
        :param note: why, for the ledger.
        :raises Conflict: if ``based_on`` no longer holds.
        :raises InvalidInput: if nothing says whose operations; its subclasses for a ``since`` in the
            future or not before ``until``.
        :raises RefConflict: if the handle stands for another undo.
        """
        return self._undo(
            work(
                self,
                based_on,
                dry_run=dry_run,
                actor=actor,
                run=run,
                source=source,
                stamp=stamp,
                since=since,
                until=until,
                handle=handle,
                note=note,
            )
        )


class AsyncUndo:
    """As :class:`Undo`, for asyncio."""

    namespace: str
    actor: str | None
    run: str | None

    async def _undo(self, work: Work) -> Undoing:
        raise NotImplementedError

    async def undo(
        self,
        *,
        actor: str | None = None,
        run: str | None = None,
        source: str | None = None,
        stamp: InstantLike | None = None,
        since: InstantLike | None = None,
        until: InstantLike | None = None,
        dry_run: bool = True,
        based_on: Undoing | None = None,
        handle: str | None = None,
        note: str | None = None,
    ) -> Undoing:
        """Undo what operations did to validity, or say what that would do."""
        return await self._undo(
            work(
                self,
                based_on,
                dry_run=dry_run,
                actor=actor,
                run=run,
                source=source,
                stamp=stamp,
                since=since,
                until=until,
                handle=handle,
                note=note,
            )
        )


def work(by: Undo | AsyncUndo, based_on: Undoing | None, *, dry_run: bool, **said: Any) -> Work:  # noqa: ANN401
    """A call of undo, its arguments checked, to be run over a connection.

    :raises InvalidInput: for arguments of a wrong kind.
    """
    if not isinstance(dry_run, bool):
        raise InvalidInput(f"dry_run must be True or False, not {dry_run!r}")
    event = events.said(**said) | {"dry_run": dry_run}
    if based_on is not None:
        if not isinstance(based_on, Undoing) or based_on.namespace != by.namespace:
            raise InvalidInput("based_on takes the plan that undo gave for this namespace")
        event["plan"] = based_on.plan
    if by.run is not None:
        event["own_run"] = by.run
    return lambda connection: facts.undo(connection, event, namespace=by.namespace, actor=by.actor)
