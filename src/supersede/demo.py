"""The demo: the RFC index, replayed with its own dates, asked the same questions as of several years."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

from supersede import adapters
from supersede.demo_data import rfc_events
from supersede.errors import FactNotFound, OutOfOrder, RefConflict
from supersede.models import Answer
from supersede.periods import parse_instant
from supersede.ports import Embedder
from supersede.settings import Settings
from supersede.store import FactStore

NAMESPACE = "demo-rfc"
TOP_K = 5

# Of the work of one event, about the part that goes into its vector: what the progress shows.
_EMBEDDING_SHARE = 0.75

Event = Mapping[str, Any]
Progress = Callable[[float], None]
"""Called with how many events are done by now, the one at hand in part."""


class Question(NamedTuple):
    """One question, and the first days of the years as of which it is asked."""

    query: str
    years: tuple[int, ...]


QUESTIONS = (
    Question("what specifies HTTP/1.1?", (1998, 2010, 2016, 2024)),
    Question("IPv6 specification", (1998, 2010, 2016, 2024)),
    Question("TLS protocol version", (2000, 2007, 2010, 2024)),
    Question("JSON data interchange format", (2010, 2015, 2024)),
)


class Asked(NamedTuple):
    """One question as of one instant, and what was believed then."""

    query: str
    as_of: str
    answer: Answer


class Demo:
    """The demo on a store; use it in a ``with`` block.

    ``total`` is how many events make the whole index, ``missing`` how many of them the store lacks.

    :param url: as for :meth:`FactStore.open`: without one, the embedded server.
    :param namespace: where the index is loaded; nothing else may be recorded there.
    :raises SupersedeError: as :meth:`FactStore.open` does.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = NAMESPACE,
        actor: str | None = None,
    ) -> None:
        self._ticks = 0
        self._report: Callable[[], None] = lambda: None
        self._embedder = _light_embedder(self._tick)
        self.store = FactStore.open(url, namespace=namespace, embedder=self._embedder, actor=actor)
        try:
            events = list(rfc_events())
            self.total = len(events)
            self._events = events[_already_there(self.store, events) :]
        except BaseException:
            self.store.close()
            raise

    @property
    def missing(self) -> int:
        """How many events are still to be replayed."""
        return len(self._events)

    def load(self, progress: Progress | None = None) -> int:
        """Replay what is missing, with its vectors; an interrupted run goes on where it stopped.

        :returns: how many events were replayed.
        :raises OutOfOrder, RefConflict: if the namespace holds what is not the demo's.
        """
        done = 0

        def report() -> None:
            if progress is not None:
                progress(done + min(self._ticks, self.missing - done) * _EMBEDDING_SHARE)

        def batch(size: int) -> None:
            nonlocal done
            done += size
            self._ticks = 0
            report()

        self._ticks, self._report = 0, report
        try:
            self.store.replay(self._events, progress=batch)
        except (OutOfOrder, RefConflict) as error:
            raise type(error)(
                f"namespace {self.store.namespace!r} holds what is not the demo's; give the name of a new one"
            ) from error
        finally:
            self._report = lambda: None
        self._events = []
        if self._embedder is not None:
            # An earlier run without the embedder left claims without vectors.
            self.store.fill_embeddings()
        return done

    def answers(self, *, top_k: int = TOP_K) -> Iterable[Asked]:
        """The answers to all questions, each as of the first day of its years, one after another."""
        for query, years in QUESTIONS:
            for year in years:
                as_of = f"{year}-01-01"
                yield Asked(query, as_of, self.store.ask(query, as_of=as_of, top_k=top_k))

    def close(self) -> None:
        """Give the connections back."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _tick(self, texts: int) -> None:
        self._ticks += texts
        self._report()


def _light_embedder(progress: Callable[[int], None]) -> Embedder | None:
    """The light embedder, which says how far it is; None where it is not installed."""
    if adapters.default() is None:
        return None
    from supersede.adapters.minilm import MiniLMEmbedder

    return MiniLMEmbedder(Settings().tokenizer, progress=progress)


def _already_there(store: FactStore, events: list[dict[str, Any]]) -> int:
    """How many events, from the first on, need not be replayed.

    Replay stamps an event with its own time, or a microsecond after the one before: so the head of the
    namespace tells which event was the last. Filling in vectors moves the head, too, if by
    microseconds; so the fact that the last event made is looked for, and where it is not, all events
    are replayed: those that are there are recognised by their handles, only slowly.
    """
    # The cheapest question that has the head in its basis.
    basis = store.facts(subject=events[0]["subject"], limit=1).basis
    head = basis.heads[store.namespace]
    if head is None:
        return 0
    last = bisect_right(_stamps(events), head) - 1
    # An event that links two facts leaves no fact to look for, so it is replayed again.
    while last >= 0 and "ref" not in events[last]:
        last -= 1
    if last < 0:
        return 0
    try:
        store.get(events[last]["ref"])
    except FactNotFound:
        return 0
    return last + 1


def _stamps(events: Iterable[Event]) -> list[datetime]:
    stamps: list[datetime] = []
    for event in events:
        own = parse_instant(event["recorded_at"])
        stamps.append(max(own, stamps[-1] + timedelta(microseconds=1)) if stamps else own)
    return stamps
