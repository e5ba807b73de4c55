"""A client killed with -9 at any point of any verb: all is there or nothing, and the retry is found once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
import sqlalchemy as sa

from clusters import until
from databases import Dump, dump_over, named_dump, set_clock
from fakes import BagOfWords
from faults import cases
from servers import drop_database, make_database, new_database
from supersede import FactStore, bulk


@pytest.fixture(scope="module")
def prepared(server_url: str, vector_template_database: str) -> Iterator[str]:
    """The name of a database with a past, to be copied; its clock stands still."""
    with new_database(server_url, "template", vector_template_database) as (name, url):
        set_clock(url, cases.NOW)
        cases.prepare(url)
        yield name


class Nursery:
    """Brings up clients and says how they ended."""

    def __init__(self) -> None:
        tests = Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import runpy; runpy.run_module('faults.nursery', run_name='__main__')"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, case: str, url: str, point: int) -> Literal["died", "lived", "failed"]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"case": case, "url": url, "point": point}), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


def state(connection: psycopg.Connection[Any]) -> Dump:
    """What the database holds, its facts by their refs."""
    rows = named_dump(connection, "default", ledger=True)
    for row in rows["operation"]:
        if row["verb"] == "fill_embeddings":
            del row["digest"]  # of ids, which are random
    return rows


class Copies:
    """Databases like the prepared one, with a connection to the newest, and one that looks after clients."""

    def __init__(self, server_url: str, template: str) -> None:
        self._server_url, self._template = server_url, template
        self._watch = psycopg.connect(server_url, autocommit=True)
        self._number = 0
        self._name: str | None = None
        self.url = ""

    def renew(self) -> None:
        """A new copy: the last one was written to."""
        self.drop()
        self._number += 1
        self._name = f"{self._template}_{self._number}"[-60:]
        self.url = make_database(self._server_url, self._name, self._template)
        self.connection = psycopg.connect(self.url, autocommit=True)

    def wait_for_the_dead(self) -> None:
        """Until nobody else is connected: what a dead client had sent has then been dealt with."""
        until(
            lambda: (
                self._watch.execute(
                    "select count(*) from pg_stat_activity where datname = %s and pid <> %s",
                    [self._name, self.connection.info.backend_pid],
                ).fetchone()
                == (0,)
            ),
            "the end of the dead client's backend",
        )

    def drop(self) -> None:
        if self._name is not None:
            self.connection.close()
            drop_database(self._server_url, self._name)
            self._name = None

    def close(self) -> None:
        self.drop()
        self._watch.close()


@pytest.fixture
def copies(server_url: str, prepared: str) -> Iterator[Copies]:
    copies = Copies(server_url, prepared)
    yield copies
    copies.close()


def clean_run(case: str, copies: Copies) -> list[Dump]:
    """What the database holds before the call, after each of its commits, and at its end."""
    stages: list[Dump] = []

    def keep(*_: object) -> None:
        if (now := state(copies.connection)) not in stages:
            stages.append(now)

    with FactStore.open(copies.url, embedder=BagOfWords()) as store:
        sa.event.listen(store._engine, "begin", keep)
        cases.CASES[case](store)
    keep()
    return stages


def again(case: str, copies: Copies) -> list[bool]:
    """Make the call once more, and return which of its parts found their own write."""
    with FactStore.open(copies.url, embedder=BagOfWords()) as store:
        done = cases.CASES[case](store)
    return [] if isinstance(done, int) else [one.repeated for one in done]


@pytest.mark.parametrize("case", cases.CASES)
def test_a_client_killed_anywhere_leaves_all_of_a_commit_or_nothing(
    case: str, copies: Copies, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", cases.BATCH)
    copies.renew()
    stages = clean_run(case, copies)
    copies.renew()
    reached = kill_and_make_again(case, copies, nursery, stages)
    assert reached == set(range(len(stages))), "a kill fell between any two commits"
    left = state(copies.connection)
    assert all(again(case, copies)), "each part finds its own write"
    assert state(copies.connection) == left


def kill_and_make_again(case: str, copies: Copies, nursery: Nursery, stages: list[Dump]) -> set[int]:
    """Kill one client after another, each a point further on, until the call is complete.

    Where one has left something (a batch of several), the next begin there, from their first point on.
    """
    stage, point = 0, 0
    reached = {stage}
    found = dump_over(copies.connection)
    while stage < len(stages) - 1:
        point += 1
        end = nursery.run(case, copies.url, point)
        assert end != "failed"
        copies.wait_for_the_dead()
        now = dump_over(copies.connection)
        if now != found:
            earlier, stage = stage, stages.index(state(copies.connection))  # else it is neither
            assert stage > earlier
            assert point > 5
            found, point = now, 0
            reached.add(stage)
        else:
            assert end == "died", "a call that was complete changed nothing"
        if case in cases.VECTORS_AFTERWARDS and stage == 1:
            # Its client died with the vectors in hand: what it recorded waits for fill_embeddings().
            return {*reached, 2}
    return reached
