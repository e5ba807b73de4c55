"""A write in a transaction of its own, attempted again where it lost against another."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from supersede import engine as db
from supersede.errors import Conflict

_T = TypeVar("_T")

# Who lost in one of these ways lost at once, was undone, and may win the next time. A wait that timed out
# (55P03) was long enough, and a basis that moved asks for another decision.
_LOST = {"23P01", "40P01", "40001"}
# The longest pause before each further attempt, in seconds.
_PAUSES = (0.02, 0.1, 0.5)


def write(engine: sa.Engine, work: Callable[[sa.Connection], _T]) -> _T:
    """Run code that writes, in one transaction; where that lost against another, up to three times more.

    A lost transaction is undone before the next begins: the work is applied once, or not at all.

    :param work: nothing but what it does over its connection.
    :raises Conflict: if the last attempt lost too, or lost in a way that waiting does not mend.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            with db.writing(engine) as connection:
                return work(connection)
        except Conflict as conflict:
            pause = _pause_after(conflict, pauses)
        time.sleep(pause)


async def write_async(engine: AsyncEngine, work: Callable[[sa.Connection], _T]) -> _T:
    """As :func:`write`, over an async connection. Cancelled before the commit, it leaves nothing."""
    pauses = iter(_PAUSES)
    while True:
        try:
            return await db.write_async(engine, work)
        except Conflict as conflict:
            pause = _pause_after(conflict, pauses)
        await asyncio.sleep(pause)


def _pause_after(conflict: Conflict, pauses: Iterator[float]) -> float:
    """Seconds until the next attempt, at random so that two losers part; raises where there is none."""
    longest = next(pauses, None) if conflict.details.get("sqlstate") in _LOST else None
    if longest is None:
        raise conflict
    return random.uniform(0, longest)  # noqa: S311 - no secret
