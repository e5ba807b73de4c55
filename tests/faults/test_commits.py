"""The connection cut around a commit: the caller learns that nobody can tell, and the same call finds out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from clusters import Cluster
from databases import dump, query
from faults.cases import CASES
from faults.proxy import Cut, Proxy, proxy_to
from supersede import AsyncFactStore, FactStore, OutcomeUnknown, ServerUnavailable

CUTS = get_args(Cut)


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with proxy_to(str(cluster.pgdata / ".s.PGSQL.5432")) as proxy:
        yield proxy


@pytest.fixture
def through(copy: str, proxy: Proxy) -> str:
    """The URL of the copy, by way of the proxy."""
    name = copy.rpartition("/")[2].partition("?")[0]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}"


@pytest.mark.parametrize("when", CUTS)
def test_a_cut_around_the_commit_is_told_and_the_retry_is_recorded_once(
    when: Cut, copy: str, through: str, proxy: Proxy
) -> None:
    carried_out = when == "after it was carried out"
    before = dump(copy)
    with FactStore.open(through) as store:
        proxy.cut_the_next_commit(when)
        with pytest.raises(OutcomeUnknown, match="same handle") as unknown:
            store.remember("claim", ref="n")
        assert unknown.value.__cause__ is not None
        assert (dump(copy) != before) == carried_out
        again = store.remember("claim", ref="n")
    assert again.repeated == carried_out
    assert query(copy, "select count(*) from supersede.fact where claim = 'claim'") == [(1,)]
    assert proxy.cuts == 1


@pytest.mark.parametrize("when", CUTS)
def test_a_store_for_asyncio_says_the_same(when: Cut, copy: str, through: str, proxy: Proxy) -> None:
    async def remember_twice() -> bool:
        async with await AsyncFactStore.open(through) as store:
            proxy.cut_the_next_commit(when)
            with pytest.raises(OutcomeUnknown, match="same handle"):
                await store.remember("claim", ref="n")
            again = await store.remember("claim", ref="n")
            proxy.cut_the_next_commit(when)
            with pytest.raises(OutcomeUnknown):
                async with store.transaction() as together:
                    await together.retract("n", handle="k")
            assert (await store.retract("n", handle="k")).repeated == again.repeated
            return again.repeated

    assert asyncio.run(remember_twice()) == (when == "after it was carried out")
    assert query(copy, "select count(*) from supersede.fact where claim = 'claim'") == [(1,)]


@pytest.mark.parametrize("when", CUTS)
@pytest.mark.parametrize("case", ["transaction", "replay", "remember_many", "cite", "declare_predicate"])
def test_what_was_cut_is_found_again_whatever_made_it(
    case: str, when: Cut, copy: str, through: str, proxy: Proxy
) -> None:
    with FactStore.open(through) as store:
        proxy.cut_the_next_commit(when)
        with pytest.raises(OutcomeUnknown):
            CASES[case](store)
        between = dump(copy)
        again: Any = CASES[case](store)
        assert {one.repeated for one in again} == {when == "after it was carried out"}
        assert (dump(copy) == between) == (when == "after it was carried out")


def test_a_call_without_a_handle_is_not_made_again_by_the_store(
    copy: str, through: str, proxy: Proxy
) -> None:
    with FactStore.open(through) as store:
        proxy.cut_the_next_commit("after it was carried out")
        with pytest.raises(OutcomeUnknown, match="look first"):
            store.remember("claim")
    assert query(copy, "select count(*) from supersede.fact where claim = 'claim'") == [(1,)]
    assert proxy.cuts == 1


def test_a_read_whose_end_is_cut_has_nothing_to_be_unknown(through: str, proxy: Proxy) -> None:
    with FactStore.open(through) as store:
        expected = store.facts()
        proxy.cut_the_next_commit("before it arrives")
        with pytest.raises(ServerUnavailable):
            store.facts()
        assert proxy.cuts == 1
        assert store.facts(basis=str(expected.basis)) == expected
