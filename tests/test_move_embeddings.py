"""Embeddings move to a second model while the store is in use; what was asked stays in its space."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

import fakes
from databases import dump, execute, query
from supersede import (
    Answer,
    AsyncFactStore,
    Conflict,
    DimensionMismatch,
    EmbedderError,
    EmbedderUnavailable,
    FactStore,
    InvalidInput,
    Moved,
    PrivilegeMissing,
    ServerUnavailable,
    SpaceGone,
    bulk,
)
from supersede.cli.app import app
from supersede.settings import normalise_url

OLD = "fake-bag-of-words"
NEW = "reversed"
OTHER_NAMESPACE = "a second one"
QUESTIONS = ["the port is 5434", "which host"]


class Reversed(fakes.BagOfWords):
    """Reads backwards: with as many dimensions as another model, its vectors mean something else."""

    def __init__(self, *, model: str = NEW, dimensions: int = 384) -> None:
        super().__init__(model=model, dimensions=dimensions)

    def embed(self, texts: list[str]) -> Any:
        return super().embed([text[::-1] for text in texts])


class Hooked(Reversed):
    """Calls a function with each batch of claims, before it embeds them."""

    def __init__(self, hook: Callable[[list[str]], Any]) -> None:
        super().__init__()
        self.hook = hook

    def embed(self, texts: list[str]) -> Any:
        if texts != ["a claim"]:  # the look at its dimensions, before anything is registered
            self.hook(texts)
        return super().embed(texts)


@pytest.fixture
def opened(vector_database: str) -> Iterator[Callable[..., FactStore]]:
    """Opens further stores on ``vector_database``."""
    stores: list[FactStore] = []

    def opening(embedder: Any, **options: Any) -> FactStore:
        stores.append(FactStore.open(vector_database, embedder=embedder, **options))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


@pytest.fixture
def old(vector_store: FactStore, opened: Callable[..., FactStore]) -> FactStore:
    """A store of the old model, over two namespaces with a past: 8 facts."""
    vector_store.remember("the port is 5432", ref="a", valid_from="2020-01-01", sources=["u"])
    vector_store.supersede("a", "the port is 5433", ref="b", valid_from="2024-01-01")
    vector_store.supersede("b", "the port is 5434", ref="c", valid_from="2025-01-01")
    vector_store.remember("the host is db1", ref="d", valid_to="2099-01-01")
    vector_store.remember("nobody uses the socket", ref="e")
    vector_store.retract("e")
    second = opened(fakes.BagOfWords(), namespace=OTHER_NAMESPACE)
    second.remember_many(["Acme sits in Lima", "the port is 80", "the host is web1"])
    return vector_store


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)


def ask_all(store: FactStore) -> list[Answer]:
    """Answers about now and then, over one namespace and over both."""
    return [
        store.ask(question, min_similarity=0.0, explain=True, **point)
        for question in QUESTIONS
        for point in ({}, {"valid_at": "2024-06-01"}, {"namespaces": ["default", OTHER_NAMESPACE]})
    ]


def claims(answer: Answer) -> list[str]:
    return sorted(fact.claim for fact in answer.facts)


def active(database: str) -> str:
    ((model,),) = query(database, "select model from supersede.embedding_space where active")
    return model


def assert_equal_again(store: FactStore, answers: list[Answer]) -> None:
    assert {store.verify(answer).outcome for answer in answers} == {"equal"}


def assert_copies_of_the_active_space(database: str) -> None:
    """A version carries a vector only if it stands, and then the active space's, or none."""
    wrong = query(
        database,
        "select f.claim from supersede.fact_version v join supersede.fact f using (namespace, fact_id) "
        "left join (supersede.embedding e join supersede.embedding_space s on s.id = e.space_id and s.active)"
        " on e.namespace = v.namespace and e.fact_id = v.fact_id where v.embedding is distinct from "
        "case when v.is_open and upper_inf(v.valid_time) then e.vector end",
    )
    assert wrong == []


def assert_moved(database: str, old: FactStore, answers: list[Answer]) -> None:
    """All is in the new space, and what was asked in the old one stays."""
    assert active(database) == NEW
    assert_copies_of_the_active_space(database)
    new_space = next(space for space in old.embedding_spaces() if space.active)
    assert (new_space.model, new_space.missing) == (NEW, 0)
    assert_equal_again(old, answers)
    with FactStore.open(database, embedder=Reversed()) as new:
        for answer in ask_all(new):
            assert answer.basis.space == NEW
            assert answer.withheld.unembedded == 0
        assert new.ask("the port is 5434").facts[0].similarity == pytest.approx(1, abs=1e-3)
        assert_equal_again(new, answers)


# --- the move


def test_a_move_takes_every_namespace_and_leaves_the_past_alone(vector_database: str, old: FactStore) -> None:
    versions = "select version_id, valid_time, tx_time from supersede.fact_version order by 1"
    before = query(vector_database, versions)
    kept = "select fact_id, vector, stamp, ctid::text from supersede.embedding where space_id = 1 order by 1"
    vectors = query(vector_database, kept)
    answers = ask_all(old)
    done: list[int] = []
    moved = old.move_embeddings(Reversed(), progress=done.append)
    assert moved == Moved(model=NEW, previous=OLD, switched=True, filled=8, unembedded=0)
    assert sum(done) == 8
    assert_moved(vector_database, old, answers)
    assert query(vector_database, versions) == before
    assert query(vector_database, kept) == vectors, "the table of the vectors is never updated"
    ledger = "select namespace, verb, actor, result ->> 'filled' from supersede.operation"
    assert query(vector_database, f"{ledger} where verb = 'fill_embeddings' order by 1") == [
        (OTHER_NAMESPACE, "fill_embeddings", None, "3"),
        ("default", "fill_embeddings", None, "5"),
    ]
    execute(vector_database, f'reindex database "{normalise_url(vector_database).database}"')
    assert_equal_again(old, answers)


def test_two_models_of_equal_dimensions_are_never_compared(database: str) -> None:
    first, second = fakes.BagOfWords(model="first", dimensions=384), Reversed(model="second")
    FactStore.init(database, embedder=first)
    with FactStore.open(database, embedder=first) as old:
        old.remember("lamp")
        old.move_embeddings(second)
        with FactStore.open(database, embedder=second) as new:
            new.remember("tram")
            # Each word read backwards has the very vector that the other model gives it.
            assert claims(new.ask("pmal", min_similarity=0.5)) == []
            assert claims(old.ask("mart", min_similarity=0.5)) == []
            assert old.ask("mart", min_similarity=0.5).withheld.nonzero() == {"unembedded": 1}
            assert new.ask("lamp").facts[0].similarity == pytest.approx(1, abs=1e-3)
    assert_copies_of_the_active_space(database)


def test_a_move_back_fills_what_is_newer_and_switches(
    vector_database: str, old: FactStore, opened: Callable[..., FactStore]
) -> None:
    answers = ask_all(old)
    old.move_embeddings(Reversed())
    new = opened(Reversed())
    new.remember("a fact of the new model alone")
    later = ask_all(new)
    moved = new.move_embeddings(fakes.BagOfWords())
    assert moved == Moved(model=OLD, previous=NEW, switched=True, filled=1, unembedded=0)
    assert active(vector_database) == OLD
    assert_copies_of_the_active_space(vector_database)
    assert_equal_again(new, answers + later)
    assert opened(fakes.BagOfWords()).ask("a fact of the new model alone").withheld.unembedded == 0


def test_the_first_space_of_a_store_without_one(database: str, store: FactStore) -> None:
    store.remember("the port is 5432")
    assert store.embedding_spaces() == []
    failing = Hooked(lambda _: (_ for _ in ()).throw(ConnectionError))
    with pytest.raises(EmbedderUnavailable):
        store.move_embeddings(failing)
    assert [space.active for space in store.embedding_spaces()] == [False], "words rank until it is full"
    assert store.move_embeddings(Reversed()) == Moved(model=NEW, previous=None, switched=True, filled=1)
    assert_copies_of_the_active_space(database)


def test_an_empty_store_is_switched_at_once(vector_database: str, vector_store: FactStore) -> None:
    assert vector_store.move_embeddings(Reversed()).switched
    assert active(vector_database) == NEW


def test_a_move_to_the_active_space_does_nothing_and_says_so(vector_database: str, old: FactStore) -> None:
    before = dump(vector_database)
    moved = old.move_embeddings(fakes.Down())
    assert (moved.model, moved.switched, moved.filled) == (OLD, False, 0)
    assert "active space already" in (moved.notice or "")
    assert dump(vector_database) == before


def test_the_spaces_are_counted_by_namespace(old: FactStore, opened: Callable[..., FactStore]) -> None:
    opened(fakes.Down()).remember("without a vector")
    FactStore.init(str(old._engine.url.render_as_string(hide_password=False)), embedder=Reversed())
    first, second = old.embedding_spaces()
    assert (first.model, first.dimensions, first.active) == (OLD, 64, True)
    assert {name: tuple(count.model_dump().values()) for name, count in first.namespaces.items()} == {
        "default": (5, 1),
        OTHER_NAMESPACE: (3, 0),
    }
    assert (second.model, second.dimensions, second.active) == (NEW, 384, False)
    assert (second.embedded, second.missing) == (0, 9)


# --- a store that was opened before


def test_a_store_opened_before_goes_on_in_its_space_and_its_writes_are_counted(
    vector_database: str, old: FactStore, opened: Callable[..., FactStore]
) -> None:
    old.move_embeddings(Reversed())
    new = opened(Reversed())
    history = [{"op": "remember", "claim": "lamp four", "recorded_at": "2020-01-01"}]

    def together() -> None:
        with old.transaction() as transaction:
            transaction.remember("lamp five")

    writes: dict[str, Callable[[], Any]] = {
        "lamp one": lambda: old.remember("lamp one", ref="lamp"),
        "lamp two": lambda: old.supersede("lamp", "lamp two"),
        "lamp three": lambda: old.remember_many(["lamp three"]),
        "lamp four": lambda: old.replay(history, out_of_order="next_stamp"),
        "lamp five": together,
    }
    for claim, write in writes.items():
        with capture_logs() as logs:
            write()
        assert [
            (log["model"], log["facts"]) for log in logs if log["event"] == "vectors_of_an_inactive_space"
        ] == [(OLD, 1)], claim
        found = old.ask(claim).facts[0]
        assert (found.claim, found.similarity) == (claim, pytest.approx(1, abs=1e-3))
    assert_copies_of_the_active_space(vector_database)
    assert new.ask("wholly other words").withheld.unembedded == 4
    assert old.ask("wholly other words").withheld.unembedded == 0
    assert old.remember("lamp six").embedded is False, "most will not find it by its meaning"
    assert new.fill_embeddings() == 6
    assert new.ask("wholly other words").withheld.unembedded == 0
    assert_copies_of_the_active_space(vector_database)


def test_vectors_filled_in_for_the_old_space_are_no_copies(
    vector_database: str, old: FactStore, opened: Callable[..., FactStore]
) -> None:
    old.move_embeddings(Reversed())
    new = opened(Reversed())
    assert new.remember("lamp").embedded
    with capture_logs() as logs:
        assert old.fill_embeddings() == 1
    assert "vectors_of_an_inactive_space" in [log["event"] for log in logs]
    new.declare_predicate("port", cardinality="one")
    new.end("c", at="2030-01-01", until="2031-01-01")
    assert_copies_of_the_active_space(vector_database)


# --- online


@pytest.mark.usefixtures("small_batches")
def test_readers_and_writers_go_on_while_vectors_are_computed(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)
    written = iter(["new one", "new two", "new three"])

    def meanwhile(_: list[str]) -> None:
        assert active(vector_database) == OLD
        assert_equal_again(old, answers)
        if claim := next(written, None):
            assert old.remember(claim).embedded
            assert old.ask(claim).facts[0].similarity == pytest.approx(1, abs=1e-3)

    moved = old.move_embeddings(Hooked(meanwhile))
    assert next(written, None) is None
    assert (moved.filled, moved.unembedded) == (11, 0), "what was written meanwhile went with it"
    assert_moved(vector_database, old, answers)


def test_writers_that_are_always_faster_keep_the_old_space(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)
    number = iter(range(1_000))
    # A namespace that nobody fills any more gets a fact with each batch, the last one too.
    late = FactStore.open(vector_database, embedder=fakes.BagOfWords(), namespace="a late one")
    with late, pytest.raises(Conflict, match="no moment for the switch in 10 attempts"):
        old.move_embeddings(Hooked(lambda _: late.remember(f"late {next(number)}")))
    assert active(vector_database) == OLD
    assert_copies_of_the_active_space(vector_database)
    assert_equal_again(old, answers)
    moved = old.move_embeddings(Reversed())
    assert moved.switched
    assert moved.filled <= 1, "nothing is embedded twice"
    assert_moved(vector_database, old, answers)


def test_a_snapshot_sees_all_of_the_old_space_or_all_of_the_new(vector_database: str, old: FactStore) -> None:
    seen = (
        "select s.model, count(*) filter (where v.embedding = e.vector), count(v.embedding) "
        "from supersede.fact_version v join supersede.embedding e using (namespace, fact_id) "
        "join supersede.embedding_space s on s.id = e.space_id and s.active group by 1"
    )
    with psycopg.connect(vector_database) as snapshot:
        snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        before = snapshot.execute(seen).fetchall()
        old.move_embeddings(Reversed())
        assert snapshot.execute(seen).fetchall() == before == [(OLD, 4, 4)]
    assert query(vector_database, seen) == [(NEW, 4, 4)]


@pytest.mark.parametrize("namespace", ["default", "one that is not there yet"])
def test_a_write_waits_for_the_switch_and_copies_nothing_of_the_old_space(
    vector_database: str, old: FactStore, opened: Callable[..., FactStore], namespace: str
) -> None:
    old.move_embeddings(Reversed())
    old.move_embeddings(fakes.BagOfWords())  # so that a second switch has nothing to fill
    writer = opened(fakes.BagOfWords(), namespace=namespace)
    with psycopg.connect(vector_database) as switch:
        switch.execute("select * from supersede.activate_space(2::smallint)")
        thread = threading.Thread(target=writer.remember, args=("written meanwhile",))
        thread.start()
        wait_until(vector_database, "exists (select from pg_locks where not granted)")
        assert old.ask("the port is 5434").facts, "readers do not wait"
        switch.commit()
    thread.join()
    assert active(vector_database) == NEW
    assert_copies_of_the_active_space(vector_database)
    assert opened(Reversed(), namespace=namespace).ask("other words").withheld.unembedded == 1


def wait_until(database: str, condition: str) -> None:
    limit = time.monotonic() + 60
    while query(database, f"select {condition}") == [(False,)]:
        assert time.monotonic() < limit, condition
        time.sleep(0.02)


# --- killed half-way

NOBODY_WORKS = (
    "not exists (select from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null)"
)
_KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
import sqlalchemy as sa
from supersede import FactStore, bulk, engine
from fakes import BagOfWords
from test_move_embeddings import Reversed

def die():
    os.kill(os.getpid(), signal.SIGKILL)

bulk.BATCH = 2
url, where = sys.argv[1:3]
ran = []

def on(event, word):
    def heard(connection, cursor, statement, *rest):
        if word in statement:
            ran.append(word)
            if len(ran) == count:
                die()
    sa.event.listen(sa.Engine, event, heard)

point, count = where.split(":")
count = int(count)
match point:
    case "after registration":
        on("before_cursor_execute", "pg_advisory_xact_lock(%(lock)s, %(id)s")
    case "before a batch":
        on("before_cursor_execute", "fill_embeddings")
    case "in a batch":
        on("after_cursor_execute", "fill_embeddings")
    case "before the switch":
        on("before_cursor_execute", "activate_space")
    case "in the switch":
        on("after_cursor_execute", "activate_space")
with FactStore.open(url, embedder=BagOfWords()) as store:
    store.move_embeddings(Reversed())
print("finished")
"""


@pytest.mark.parametrize(
    "where",
    [
        "after registration:1",
        "before a batch:1",
        "in a batch:1",
        "in a batch:3",
        "before the switch:1",
        "in the switch:1",
    ],
)
def test_killed_at_any_point_the_old_space_answers_and_the_next_call_goes_on(
    vector_database: str, old: FactStore, where: str
) -> None:
    answers = ask_all(old)
    old._engine.dispose()
    folders = [str(Path(__file__).parent), str(Path(bulk.__file__).parent.parent)]
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, vector_database, where, *folders],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (killed.returncode, killed.stdout) == (-9, ""), killed.stderr
    wait_until(vector_database, NOBODY_WORKS)
    assert active(vector_database) == OLD
    assert_copies_of_the_active_space(vector_database)
    with FactStore.open(vector_database, embedder=fakes.BagOfWords()) as fresh:
        assert [answer.facts for answer in ask_all(fresh)] == [answer.facts for answer in answers]
        assert_equal_again(fresh, answers)
    there = sum(space.embedded for space in old.embedding_spaces() if space.model == NEW)
    moved = old.move_embeddings(Reversed())
    assert (moved.switched, moved.filled, moved.unembedded) == (True, 8 - there, 0)
    assert_moved(vector_database, old, answers)


def test_a_move_whose_guard_is_cut_off_stops_and_can_go_on(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)

    def cut_off(_: list[str]) -> None:
        execute(
            vector_database,
            "select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and granted "
            "and database = (select oid from pg_database where datname = current_database())",
        )

    with pytest.raises(ServerUnavailable):
        old.move_embeddings(Hooked(cut_off))
    assert active(vector_database) == OLD
    assert old.move_embeddings(Reversed()).switched
    assert_moved(vector_database, old, answers)


# --- who, and who else


def test_a_second_move_is_refused_by_the_name_of_the_first(vector_database: str, old: FactStore) -> None:
    refused: list[Conflict] = []

    def second(_: list[str]) -> None:
        if not refused:
            with pytest.raises(Conflict, match=f"being moved to '{NEW}' already") as caught:
                old.move_embeddings(Reversed(model="a third"))
            refused.append(caught.value)

    assert old.move_embeddings(Hooked(second)).switched
    assert len(refused) == 1
    assert {space.model for space in old.embedding_spaces()} == {OLD, NEW}
    old.move_embeddings(Reversed(model="a third"))


@pytest.mark.parametrize("role", ["supersede_reader", "supersede_writer", "supersede_importer"])
def test_only_the_owner_moves(server_url: str, vector_database: str, old: FactStore, role: str) -> None:
    url = normalise_url(vector_database)
    login = f"login_{url.database}"
    execute(server_url, f"create role {login} login password 'login' in role {role}")
    before = dump(vector_database)
    embedder = Hooked(lambda _: pytest.fail("nothing is computed"))
    try:
        theirs = url.set(drivername="postgresql", username=login, password="login")
        with FactStore.open(theirs.render_as_string(hide_password=False)) as store:
            with pytest.raises(PrivilegeMissing, match="only the owner"):
                store.move_embeddings(embedder)
            assert store.embedding_spaces() == old.embedding_spaces()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            query(
                theirs.render_as_string(hide_password=False),
                "select * from supersede.activate_space(1::smallint)",
            )
    finally:
        execute(server_url, f"drop role {login}")
    assert dump(vector_database) == before


def test_the_switch_in_sql_refuses_what_would_lose_vectors(vector_database: str, old: FactStore) -> None:
    FactStore.init(vector_database, embedder=Reversed())
    before = dump(vector_database)
    switch = "select * from supersede.activate_space({}::smallint)"
    assert query(vector_database, switch.format(2)) == [(8, [OTHER_NAMESPACE, "default"])]
    assert query(vector_database, switch.format(1)) == [(0, [])], "it is active already"
    with pytest.raises(psycopg.DatabaseError) as refused:
        query(vector_database, switch.format(3))
    assert refused.value.sqlstate == SpaceGone.sqlstate
    with psycopg.connect(vector_database) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(psycopg.DatabaseError, match="READ COMMITTED"):
            connection.execute(switch.format(2))
    assert dump(vector_database) == before


# --- embedders that fail


@pytest.mark.usefixtures("small_batches")
def test_what_was_filled_stays_when_the_embedder_fails_midway(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)
    seen: list[str] = []

    def fails_later(texts: list[str]) -> None:
        if len(seen) >= 4:
            raise ConnectionError("https://user:hunter2@models.example refused the connection")
        seen.extend(texts)

    with pytest.raises(EmbedderUnavailable) as failed:
        old.move_embeddings(Hooked(fails_later))
    assert "hunter2" not in str(failed.value)
    assert active(vector_database) == OLD
    assert_equal_again(old, answers)
    again: list[str] = []
    moved = old.move_embeddings(Hooked(again.extend))
    assert (len(seen), moved.filled) == (len(set(seen)), 8 - len(seen))
    assert not {*seen} & {*again}, "what is there is not embedded again"
    assert_moved(vector_database, old, answers)


def test_claims_of_which_the_model_makes_nothing_are_named_and_do_not_stop_it(
    vector_database: str, old: FactStore
) -> None:
    class Picky(Reversed):
        def embed(self, texts: list[str]) -> Any:
            vectors = super().embed(texts)
            vectors[["5434" in text for text in texts]] = 0.0
            return vectors

    moved = old.move_embeddings(Picky())
    assert (moved.switched, moved.filled, moved.unembedded) == (True, 7, 1)
    assert "1 fact has no vector" in (moved.notice or "")
    assert_copies_of_the_active_space(vector_database)
    with FactStore.open(vector_database, embedder=Picky()) as new:
        assert new.ask("wholly other words").withheld.unembedded == 1


def test_a_model_that_makes_nothing_of_most_claims_is_not_switched_to(
    vector_database: str, old: FactStore
) -> None:
    class Blind(Reversed):
        def embed(self, texts: list[str]) -> Any:
            vectors = super().embed(texts)
            vectors[["port" in text or "host" in text for text in texts]] = np_nan
            return vectors

    np_nan = float("nan")
    with pytest.raises(EmbedderError, match="nothing that can be ranked of 6 claims, and only 2") as refused:
        old.move_embeddings(Blind())
    assert refused.value.details == {"without": 6, "embedded": 2}
    assert active(vector_database) == OLD


@pytest.mark.parametrize(
    ("embedder", "error"),
    [
        (fakes.WrongDimension(model=NEW), DimensionMismatch),
        (fakes.Zero(model=NEW), EmbedderError),
        (fakes.Down(model=NEW), EmbedderUnavailable),
        (Reversed(dimensions=4_001), InvalidInput),
    ],
    ids=["another number than it says", "no direction", "down", "more than a half vector has"],
)
def test_an_embedder_that_cannot_work_registers_no_space(
    vector_database: str, old: FactStore, embedder: Any, error: type[Exception]
) -> None:
    before = dump(vector_database)
    with pytest.raises(error):
        old.move_embeddings(embedder)
    assert dump(vector_database) == before


def test_a_space_that_is_there_with_other_dimensions_is_refused(vector_database: str, old: FactStore) -> None:
    FactStore.init(vector_database, embedder=Reversed(dimensions=32))
    before = dump(vector_database)
    with pytest.raises(DimensionMismatch, match="says 384 dimensions; the space of that name has 32"):
        old.move_embeddings(Reversed())
    assert dump(vector_database) == before


def test_a_claim_that_the_new_model_does_not_read_to_its_end_is_flagged(
    vector_database: str, old: FactStore
) -> None:
    class Short(fakes.ShortWindow):
        def __init__(self) -> None:
            super().__init__(words=3)
            self.model = "short"

    old.move_embeddings(Short())
    with FactStore.open(vector_database, embedder=Short()) as new:
        assert new.ask("the port is 5434").facts[0].truncated
        assert not old.ask("the port is 5434").facts[0].truncated


def test_content_destroyed_while_its_vector_is_computed_gets_none(
    vector_database: str, old: FactStore
) -> None:
    def destroy(_: list[str]) -> None:
        execute(vector_database, "update supersede.fact set claim = null, search = null where claim ~ 'Lima'")
        execute(
            vector_database,
            "delete from supersede.embedding e using supersede.fact f "
            "where f.fact_id = e.fact_id and f.claim is null",
        )
        execute(
            vector_database,
            "update supersede.fact_version v set embedding = null from supersede.fact f "
            "where f.fact_id = v.fact_id and f.claim is null",
        )

    moved = old.move_embeddings(Hooked(destroy))
    assert (moved.switched, moved.filled, moved.unembedded) == (True, 7, 0)
    assert_copies_of_the_active_space(vector_database)
    gone = "select count(*) from supersede.embedding e join supersede.fact f using (namespace, fact_id)"
    assert query(vector_database, f"{gone} where f.claim is null") == [(0,)]


# --- other ways to call it


def test_the_async_store_moves_and_a_cancelled_move_goes_on(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)

    async def moves() -> Moved:
        store = await AsyncFactStore.open(vector_database, embedder=fakes.BagOfWords())
        async with store:
            task = asyncio.current_task()
            assert task is not None
            loop = asyncio.get_running_loop()
            cancelling = Hooked(lambda _: loop.call_soon_threadsafe(task.cancel))
            with pytest.raises(asyncio.CancelledError):
                await store.move_embeddings(cancelling)
            task.uncancel()
            assert {space.model: space.active for space in await store.embedding_spaces()} == {
                OLD: True,
                NEW: False,
            }
            with pytest.raises(EmbedderUnavailable):
                await store.move_embeddings(fakes.Down(model="a third"))
            moved = await store.move_embeddings(Reversed())
            with capture_logs() as logs:
                await store.remember("lamp")
                async with store.transaction() as transaction:
                    await transaction.remember("tram")
            assert [log["event"] for log in logs] == ["vectors_of_an_inactive_space"] * 2
            return moved

    moved = asyncio.run(moves())
    assert (moved.switched, moved.unembedded) == (True, 0)
    with FactStore.open(vector_database, embedder=Reversed()) as new:
        assert new.fill_embeddings() == 2
    assert_moved(vector_database, old, answers)


def test_the_command_line_moves_to_a_model_it_knows(vector_database: str, old: FactStore) -> None:
    answers = ask_all(old)
    light = "all-MiniLM-L6-v2-int8"

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["embed", *arguments], env={"SUPERSEDE_URL": vector_database})

    unknown = run("--move-to", NEW)
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert f"no model '{NEW}' comes with this program, only '{light}'" in unknown.stderr
    moved = run("--move-to", light)
    assert (moved.exit_code, moved.stdout) == (
        0,
        f"{light} is the active space now (before: {OLD}); 8 vectors computed\n",
    )
    again = run("--move-to", light)
    assert again.exit_code == 0
    assert "active space already" in again.stdout
    assert "supersede embed" in again.stdout
    assert '"switched": false' in run("--move-to", light, "--json").stdout
    assert_equal_again(old, answers)
    assert_copies_of_the_active_space(vector_database)
