"""A list that several writers append to, each by superseding what it read: nothing lost, doubled or moved.

Each token is unique, so the order in which the store says they were appended can be read off every answer,
and an answer that knew less than its own basis would show.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import pytest
from test_interleavings import broken_rules

from databases import query
from supersede import Answer, AsyncFactStore, Conflict, FactNotCurrent, FactStore, RefConflict
from supersede.periods import parse_instant

WRITERS = 4
TOKENS = 4
LIST = {"subject": "list"}


@dataclass
class Told:
    """What one session did and saw, in its own order."""

    appended: list[tuple[str, datetime]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    lost: int = 0


def tokens(answer: Answer) -> list[str]:
    (fact,) = answer.facts
    return fact.claim.split()


async def append(store: AsyncFactStore, told: Told, token: str, *, slot: bool) -> None:
    """Read, decide, write; again, if somebody else was faster."""
    while True:
        answer = await store.facts(**LIST)
        told.answers.append(answer)
        claim, ref = f"{answer.facts[0].claim} {token}", token
        try:
            if slot:
                done = await store.remember(
                    claim, ref=ref, predicate="holds", subject="list", based_on=answer
                )
            else:
                done = await store.supersede(answer.facts[0], claim, ref=ref, based_on=answer, **LIST)
        except (Conflict, FactNotCurrent):
            told.lost += 1
            continue
        told.appended.append((token, parse_instant(done.stamp)))
        return


def in_threads(url: str, work: Callable[[str], Told]) -> list[Told]:
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(work, [f"w{n}" for n in range(WRITERS)]))


@pytest.mark.parametrize("slot", [False, True], ids=["supersede", "slot"])
def test_no_token_is_lost_doubled_or_moved(database: str, store: FactStore, slot: bool) -> None:
    if slot:
        store.declare_predicate("holds", cardinality="one")
    store.remember("begin", ref="begin", predicate="holds" if slot else None, **LIST)

    async def write(name: str) -> Told:
        told = Told()
        async with await AsyncFactStore.open(database, actor=name) as own:
            for n in range(TOKENS):
                await append(own, told, f"{name}.{n}", slot=slot)
                told.answers.append(await own.facts(**LIST))
        return told

    sessions = in_threads(database, lambda name: asyncio.run(write(name)))
    judge(database, store, sessions)


def judge(url: str, store: FactStore, sessions: list[Told]) -> None:
    appended = sorted(((stamp, token) for told in sessions for token, stamp in told.appended))
    final = tokens(store.facts(**LIST))
    assert final == ["begin", *(token for _, token in appended)], "in the order of the stamps, each once"
    assert len(final) == 1 + WRITERS * TOKENS
    stamps = [stamp for stamp, _ in appended]
    for told in sessions:
        heads = []
        for answer in told.answers:
            head = answer.basis.heads[store.namespace]
            assert head is not None
            heads.append(head)
            known = bisect_right(stamps, head)
            assert tokens(answer) == final[: 1 + known], "no more and no less than its basis had seen"
        again = told.answers[-1]
        assert store.facts(basis=str(again.basis)) == again
        assert all(one <= two for one, two in pairwise(heads)), "no session goes back in time"
        own = [final.index(token) for token, _ in told.appended]
        assert own == sorted(own), "a session's appends come in its order"
    assert not broken_rules(url)
    # One chain, without a fork.
    assert query(url, "select count(*), count(distinct old_fact_id) from supersede.supersedes") == [
        (len(appended), len(appended))
    ]


def test_without_a_basis_appends_are_lost_only_where_the_store_says_so(
    database: str, store: FactStore
) -> None:
    """No basis: an append over a list that moved must not go through, since its old fact is gone."""
    store.remember("begin", ref="begin", **LIST)

    def write(name: str) -> Told:
        told, chance = Told(), random.Random(name)
        with FactStore.open(database, actor=name) as own:
            left = [f"{name}.{n}" for n in range(TOKENS)]
            while left:
                answer = own.facts(**LIST)
                told.answers.append(answer)
                try:
                    done = own.supersede(
                        answer.facts[0], f"{answer.facts[0].claim} {left[0]}", ref=left[0], **LIST
                    )
                except FactNotCurrent:
                    told.lost += 1
                    continue
                told.appended.append((left.pop(0), parse_instant(done.stamp)))
                if chance.random() < 0.3:
                    # The same call again, as after a lost reply: it finds itself.
                    again = own.supersede(
                        answer.facts[0],
                        f"{answer.facts[0].claim} {told.appended[-1][0]}",
                        ref=told.appended[-1][0],
                        **LIST,
                    )
                    assert (again.repeated, again.id) == (True, done.id)
                    with pytest.raises(RefConflict):
                        own.remember("another", ref="begin")
        return told

    judge(database, store, in_threads(database, write))
