"""What a person sees while something takes longer than a second: on stderr, gone when it is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 1.0
LOG_SECONDS = 10.0


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what one waits for, once it has taken a second; on a terminal alone."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} ...")
    with _after_patience(status.start, status.stop):
        yield


@contextmanager
def counting(what: str, *, unit: str, total: int | None = None) -> Iterator[Callable[[float], None]]:
    """Show how many are done: a bar on a terminal, else a line now and then.

    :param total: how many there are, if that is known.
    :returns: to be called with the number done so far.
    """
    if sys.stderr.isatty():
        with _bar(what, unit=unit, total=total) as show:
            yield show
    else:
        yield _lines(what, unit=unit, total=total)


@contextmanager
def _after_patience(start: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """What is done in a moment shows nothing: a flicker says less than no line."""
    timer = threading.Timer(PATIENCE_SECONDS, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting just now
        stop()


@contextmanager
def _bar(what: str, *, unit: str, total: int | None) -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    of = f"/{total:,}" if total is not None else ""
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}" + of + f" {unit}"),
        *([TimeRemainingColumn()] if total is not None else [TimeElapsedColumn()]),
    ]
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=total, done="0")

    def show(done: float) -> None:
        progress.update(task, completed=done, done=f"{int(done):,}")

    with _after_patience(progress.start, progress.stop):
        yield show


def _lines(what: str, *, unit: str, total: int | None) -> Callable[[float], None]:
    of = f" of {total:,}" if total is not None else ""
    last = time.monotonic()

    def show(done: float) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= LOG_SECONDS:
            last = now
            print(f"{what}: {int(done):,}{of} {unit}", file=sys.stderr)

    return show
