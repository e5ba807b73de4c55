"""Measure a move of embeddings to a second model: the time of the switch, and what others wait meanwhile.

    python scripts/measure_move.py --url postgresql://postgres@localhost/postgres --facts 20000

Makes a database of its own on the server and drops it. The two models are fakes of 384 dimensions, so that
the time is the database's. Beside it a writer and a reader go on; their slowest calls are printed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from fakes import BagOfWords
from servers import new_database
from supersede import Conflict, FactStore


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True, help="a superuser's URL of a maintenance database")
    parser.add_argument("--facts", type=int, default=20_000)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two writes beside the move")
    given = parser.parse_args()
    with new_database(given.url, "move") as (_, url):
        measure(url, facts=given.facts, pause=given.pause)


def measure(url: str, *, facts: int, pause: float) -> None:
    old, new = (BagOfWords(model=name, dimensions=384) for name in ("old", "new"))
    FactStore.init(url, embedder=old)
    with FactStore.open(url, embedder=old) as store:
        store.remember("the first fact", ref="first")
        store.remember_many(f"fact {n} says that port {n % 977} is {n}" for n in range(facts))
        switches: list[float] = []
        _time_statements(store, "activate_space", switches)
        for model in (new, old):
            with _Company(store, pause) as slowest:
                started = time.perf_counter()
                try:
                    moved = store.move_embeddings(model)
                except Conflict as conflict:
                    print(conflict)
                    continue
                took = time.perf_counter() - started
            tries, last = len(switches), switches[-1]
            switches.clear()
            print(
                f"to {moved.model!r}: {took:.1f} s in all, {moved.filled:,} vectors; "
                f"switch {last * 1e3:,.0f} ms after {tries - 1} vain tries; "
                f"slowest write {slowest['write'] * 1e3:,.0f} ms, "
                f"read {slowest['read'] * 1e3:,.0f} ms"
            )


def _time_statements(store: FactStore, word: str, times: list[float]) -> None:
    @sa.event.listens_for(store._engine, "before_cursor_execute")
    def before(connection: sa.Connection, _cursor: object, statement: str, *_rest: object) -> None:
        if word in statement:
            connection.info["started"] = time.perf_counter()

    @sa.event.listens_for(store._engine, "after_cursor_execute")
    def after(connection: sa.Connection, _cursor: object, statement: str, *_rest: object) -> None:
        if word in statement:
            times.append(time.perf_counter() - connection.info["started"])


class _Company:
    """A writer and a reader beside the block; gives their slowest calls in seconds."""

    def __init__(self, store: FactStore, pause: float) -> None:
        self.slowest = {"write": 0.0, "read": 0.0}
        self._over = threading.Event()
        calls = {"write": lambda: store.remember("a word beside"), "read": lambda: store.get("first")}
        self._threads = [
            threading.Thread(target=self._repeat, args=(name, call, pause)) for name, call in calls.items()
        ]

    def _repeat(self, name: str, call: Callable[[], object], pause: float) -> None:
        while not self._over.wait(pause):
            started = time.perf_counter()
            call()
            self.slowest[name] = max(self.slowest[name], time.perf_counter() - started)

    def __enter__(self) -> dict[str, float]:
        for thread in self._threads:
            thread.start()
        return self.slowest

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


if __name__ == "__main__":
    main()
