"""A program that brings up clients to be killed: one for each line on stdin, in a fork of its own.

Loading the package once and forking costs a client some milliseconds instead of a second. Each line says
which case of ``cases.py`` to run on which database, and at which point to die, by kill -9. Points are
counted from the opened store on: whenever something was sent and the reply is awaited, and whenever an
exchange is over. For each line one is printed: whether the client died.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import psycopg

from fakes import BagOfWords
from faults import cases
from supersede import FactStore, bulk


def die_at(point: int) -> None:
    """Arm the driver: this process ends at that point, as by a power cut."""
    reached = 0
    original = psycopg.Connection.wait

    def pass_by() -> None:
        nonlocal reached
        reached += 1
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            wanted = next(steps)
            while True:
                pass_by()  # all is sent that can be sent without a reply
                wanted = steps.send((yield wanted))
        except StopIteration as over:
            pass_by()
            return over.value

    def wait(self: psycopg.Connection[Any], steps: Any, *rest: Any, **named: Any) -> Any:
        return original(self, counted(steps), *rest, **named)

    psycopg.Connection.wait = wait  # type: ignore[method-assign]


def live(case: str, url: str, point: int) -> None:
    bulk.BATCH = cases.BATCH
    with FactStore.open(url, embedder=BagOfWords()) as store:
        die_at(point)
        cases.CASES[case](store)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                live(**order)
            except BaseException as error:
                print(f"{order}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps("died" if died else "lived" if status == 0 else "failed"), flush=True)


if __name__ == "__main__":
    main()
