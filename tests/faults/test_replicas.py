"""A lagging replica answers by its own head; one promoted without the tail says what it never saw."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import psycopg
import pytest

from clusters import Cluster, new_cluster, standby_of, until
from databases import dump, execute, query
from fakes import BagOfWords
from supersede import Answer, FactStore, NamespaceNotFound, OutOfSync, ServerReadOnly
from supersede.cli.app import app


class Pair(NamedTuple):
    """A primary and its standby, with the URLs of one database on both."""

    primary: Cluster
    standby: Cluster
    url: str
    copy: str

    def catch_up(self) -> None:
        """Replay on the standby all that the primary has written."""
        execute(self.standby.url, "select pg_wal_replay_resume()")
        ((end,),) = query(self.primary.url, "select pg_current_wal_flush_lsn()::text")
        until(
            lambda: (
                query(self.standby.url, "select pg_last_wal_replay_lsn() >= %s::pg_lsn", end) == [(True,)]
            ),
            "the standby",
        )

    def hold_back(self) -> None:
        """Catch up, then replay nothing more."""
        self.catch_up()
        execute(self.standby.url, "select pg_wal_replay_pause()")
        until(
            lambda: query(self.standby.url, "select pg_get_wal_replay_pause_state()") == [("paused",)],
            "the pause",
        )

    def part(self) -> None:
        """Catch up, then receive nothing more."""
        self.catch_up()
        execute(self.standby.url, "alter system set primary_conninfo = ''")
        execute(self.standby.url, "select pg_reload_conf()")
        until(
            lambda: query(self.standby.url, "select count(*) from pg_stat_wal_receiver") == [(0,)],
            "the end of the stream",
        )


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with new_cluster() as primary:
        url = primary.database("supersede")
        FactStore.init(url, embedder=BagOfWords())
        with standby_of(primary) as standby:
            yield Pair(primary, standby, url, standby.database("supersede"))


@pytest.fixture
def primary(pair: Pair, request: pytest.FixtureRequest) -> Iterator[FactStore]:
    """A store on the primary, in a namespace of the test's own."""
    with FactStore.open(pair.url, namespace=request.node.name, embedder=BagOfWords()) as store:
        yield store
    pair.catch_up()


@pytest.fixture
def replica(pair: Pair, request: pytest.FixtureRequest) -> Iterator[FactStore]:
    with FactStore.open(pair.copy, namespace=request.node.name, embedder=BagOfWords()) as store:
        yield store


def all_answers(store: FactStore, *points: object) -> list[Answer]:
    """Answers of all kinds at some instants, with what each stood on left out where heads differ."""
    return [
        ask(as_of=point, explain=True)
        for point in points
        for ask in (store.facts, lambda **said: store.ask("the port of the host", **said))
    ]


def bare(answers: list[Answer]) -> list[dict[str, object]]:
    """Answers without the heads they saw: a standby's lies before its primary's."""
    return [answer.model_dump(exclude={"basis": {"heads"}}) for answer in answers]


def test_a_lagging_replica_answers_by_its_own_head(
    pair: Pair, primary: FactStore, replica: FactStore
) -> None:
    first = primary.remember("the port is 5432", ref="p", sources=["u1"])
    second = primary.supersede("p", "the port is 5433", ref="q", sources=["u2"])
    seen = primary.facts()
    pair.hold_back()
    third = primary.supersede("q", "the port is 5434", ref="r")
    ahead = primary.ask("the port")

    assert [fact.ref for fact in replica.facts().facts] == ["q"], "not what it has not seen"
    now = replica.ask("the port")
    assert now.basis.heads == {replica.namespace: second.stamp}
    assert replica.facts(basis=str(seen.basis)) == seen
    with pytest.raises(OutOfSync, match=replica.namespace):
        replica.ask(basis=ahead.basis)
    with pytest.raises(OutOfSync, match=replica.namespace):
        replica.facts(basis=primary.facts().basis)
    with pytest.raises(OutOfSync):
        replica.verify(ahead)
    with (
        psycopg.connect(pair.copy) as connection,
        pytest.raises(psycopg.Error, match="ask the primary, or wait") as refused,
    ):
        connection.execute("select * from supersede.facts_on(%s)", [ahead.basis.model_dump_json()])
    assert refused.value.sqlstate == OutOfSync.sqlstate

    points = (first.stamp, second.stamp - timedelta(microseconds=1), second.stamp)
    assert bare(all_answers(replica, *points)) == bare(all_answers(primary, *points))
    assert primary.ask(basis=str(now.basis)) == now, "and its answers hold on the primary"

    pair.catch_up()
    assert replica.ask(basis=str(ahead.basis)) == ahead
    assert bare(all_answers(replica, third.stamp)) == bare(all_answers(primary, third.stamp))


def test_a_quiet_replica_clamps_to_its_head_says_so_and_catches_up(
    pair: Pair, primary: FactStore, replica: FactStore
) -> None:
    primary.remember("the port is 5432", ref="p", sources=["u1"])
    pair.hold_back()
    # Nobody writes; the clock goes on, and no head ever reaches this instant.
    later = query(pair.url, "select supersede.clock()")[0][0]
    clamped = replica.facts(known_at=later)
    assert clamped.known_at == later
    assert [fact.ref for fact in clamped.facts] == ["p"]
    assert clamped.notice is not None
    assert "Nothing was recorded between" in clamped.notice
    assert clamped == primary.facts(known_at=later, valid_at=clamped.valid_at)
    # Somebody writes, which the replica has not seen: its answer stays what its basis says.
    primary.remember("the host is alpha", ref="h")
    assert replica.facts(basis=str(clamped.basis)) == clamped
    pair.catch_up()
    assert replica.facts(basis=str(clamped.basis)) == clamped
    assert sorted(str(fact.ref) for fact in replica.facts().facts) == ["h", "p"]


def test_a_namespace_that_has_not_arrived_is_not_there_yet(
    pair: Pair, primary: FactStore, replica: FactStore
) -> None:
    pair.hold_back()
    primary.remember("claim")
    assert replica.facts().outcome == "nothing_recorded"
    with FactStore.open(pair.copy) as other, pytest.raises(NamespaceNotFound):
        other.facts(namespaces=[primary.namespace])
    with pytest.raises(OutOfSync, match="nothing"):
        replica.facts(basis=primary.facts().basis)


def test_a_replica_is_read_in_every_way_and_written_to_in_none(
    pair: Pair, primary: FactStore, replica: FactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    primary.remember("claim", ref="a")
    primary.supersede("a", "another", ref="b")
    pair.catch_up()
    before = dump(pair.copy)
    answer = replica.ask("claim")
    assert replica.verify(answer).outcome == "equal"
    assert replica.get("a").claim == "claim"
    assert replica.history("a").versions
    assert [fact.ref for fact in replica.lineage("b").ancestors] == ["a"]
    assert replica.diff(answer.known_at - timedelta(days=1)).known_to
    for write in (
        lambda: replica.remember("claim", ref="c"),
        lambda: replica.retract("b"),
        lambda: replica.replay([{"op": "remember", "claim": "c", "recorded_at": "2020-01-01"}]),
        lambda: replica.declare_predicate("hq", cardinality="one"),
        lambda: FactStore.init(pair.copy, embedder=BagOfWords()),
    ):
        with pytest.raises(ServerReadOnly, match="primary"):
            write()
    with pytest.raises(ServerReadOnly), replica.transaction() as together:
        together.remember("claim")
    assert app(["remember", "claim", "--url", pair.copy], standalone_mode=False) == 1
    assert "primary" in capsys.readouterr().err
    assert dump(pair.copy) == before


def test_a_standby_is_started_again_like_any_embedded_server(pair: Pair, replica: FactStore) -> None:
    pair.standby.kill()
    pair.standby.restart()
    assert replica.facts().outcome == "nothing_recorded"


def test_after_a_failover_what_was_lost_is_never_mistaken_for_what_came_instead() -> None:
    """In a pair of its own, which it ends: the standby is promoted without the primary's last writes."""
    with new_cluster() as primary:
        url = primary.database("supersede")
        FactStore.init(url, embedder=BagOfWords())
        with standby_of(primary) as standby:
            pair = Pair(primary, standby, url, standby.database("supersede"))
            with FactStore.open(url, embedder=BagOfWords()) as store:
                kept = store.remember("the port is 5432", ref="p")
                seen = store.ask("the port")
                pair.part()
                lost = [store.supersede("p", "the port is 5433", ref="q"), store.remember("lost", ref="l")]
                ahead = store.ask("the port")
            primary.kill()
            ((promoted,),) = query(standby.url, "select pg_promote(true, 60)")
            assert promoted
            _after_the_failover(pair.copy, kept.stamp, seen, ahead, lost=[one.stamp for one in lost])
            lost_ids = {one.id for one in lost}
            assert not lost_ids & {
                str(row[0]) for row in query(pair.copy, "select fact_id from supersede.fact")
            }


def _after_the_failover(url: str, kept: object, seen: Answer, ahead: Answer, *, lost: list[object]) -> None:
    with FactStore.open(url, embedder=BagOfWords()) as store:
        assert store.ask(basis=str(seen.basis)) == seen
        with pytest.raises(OutOfSync, match="ask the primary, or wait"):
            store.ask(basis=str(ahead.basis))
        with pytest.raises(OutOfSync):
            store.supersede("p", "the port is 5434", ref="based", based_on=ahead)
        # The call that was lost, made again: it is recorded now, and with a stamp of its own.
        new = [store.supersede("p", "the port is 5433", ref="q"), store.remember("instead", ref="i")]
        assert not any(one.repeated for one in new)
        assert not {one.stamp for one in new} & {*lost, kept}
        assert new[0].stamp > kept
        # The head has passed the lost stamps by now, and still that basis is refused.
        assert max(one.stamp for one in new) > max(lost)
        with pytest.raises(OutOfSync, match="never recorded"):
            store.ask(basis=str(ahead.basis))
        with pytest.raises(OutOfSync):
            store.verify(ahead)
        with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="never recorded"):
            connection.execute("select * from supersede.facts_on(%s)", [ahead.basis.model_dump_json()])
        assert [fact.ref for fact in store.ask("the port").facts] == ["q"]
