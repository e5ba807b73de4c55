"""The store and the model side by side: each step is taken by both, and they must not differ.

A step is JSON, so that what went wrong can be kept as it is:

- ``{"clock": instant}``: the database's clock stands there from now on;
- ``{"write": namespace, "event": event}``: a verb, called live;
- ``{"replay": namespace, "events": [...], "late": "refuse" or "next_stamp"}``;
- ``{"together": namespace, "events": [...], "raises": bool}``: a transaction, committed or not; with
  ``"killed"`` the server dies before its end;
- ``{"undo": namespace, "by": actor, "since": instant, "until": instant or null}``: dry first, then done;
- ``{"ask": [namespaces], "valid_at": instant or null, "known_at": instant or null}``; with ``"which"`` only
  facts within these filters, with ``"page"`` so many at a time;
- ``{"rank": [namespaces], "word": text, "top_k": n, ...}``: a question in words at such a point;
- ``{"diff": namespace, "from": instant, "to": instant or null, "valid_at": instant or null}``;
- ``{"look": namespace, "fact": name}``: one fact as it is now, its history, where it came from;
- ``{"recall": n}``: the n-th answer so far, asked again by its basis and by its point;
- ``{"reconnect": true}``;
- ``{"restart": "stop" or "kill"}``: of a server of its own; else as ``reconnect``;
- ``{"move": true}``: exported, and imported into a new database, where it goes on; else as ``reconnect``;
- ``{"maintain": statement}``: what an administrator does at night.

Whatever calls the store may say by which ``"road"`` (sync, async, sql) and as which ``"actor"``. Events are
written as a history writes them. A fact is named by a ref, or by ``#`` and its number in the order in which
the namespace's facts were made; ``based_on`` is the number of an answer.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from uuid import uuid4

import psycopg

from model.compare import Comparison, periods, refuses, time, which_of
from model.oracle import FOREVER, NEVER, Book, Done, Event, Operation, Refused, instant, joined, printed
from model.roads import Loop, Statements
from supersede import (
    NO_END,
    NO_START,
    FactStore,
    Recorded,
    SupersedeError,
)
from supersede.events import head_seen
from supersede.models import Answer

Step = dict[str, Any]

_KINDS = {
    *("clock", "write", "replay", "together", "undo", "ask", "rank", "diff", "look", "recall"),
    *("reconnect", "restart", "move", "maintain"),
}
ALL = 1_000  # so many are all of them
_numbers = itertools.count()
_ON_ONE = {"end", "retract", "reinstate", "cite", "erase", "lift_erasure"}
_UNDOABLE = {"remember", "supersede", "amend", "end", "retract", "reinstate", "undo"}
_CLOCK = """
    do $$
    begin
        if to_regclass('public.stopped_clock') is null then
            create table public.stopped_clock as select now() as at;
            create or replace function supersede.clock() returns timestamptz
                language sql volatile parallel safe return (select c.at from public.stopped_clock c);
        end if;
    end
    $$
"""
_BOUNDS = {"no_start": NO_START, "no_end": NO_END}


class Undo(Exception):
    """Raised inside a transaction to have it undone."""


class Server(Protocol):
    """A server that a test may stop."""

    def restart(self) -> None: ...

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Pair(Comparison):
    """A store and a model, with namespaces of their own in a database that others may use too."""

    def __init__(
        self, url: str, *, server: Server | None = None, fresh: Callable[[], str] | None = None
    ) -> None:
        """``fresh``: makes a prepared database and returns its URL."""
        super().__init__(url, f"m{next(_numbers)}-{uuid4().hex[:8]}-")
        self.server = server
        self.fresh = fresh
        self.raw = Statements.connect(url)
        self.loop = Loop(url)
        self.stores: dict[tuple[str, str | None], FactStore] = {}
        self.answers: list[Answer] = []
        self.steps: list[Step] = []

    def close(self) -> None:
        self.disconnect()
        self.loop.close()
        self.look.close()
        self.raw.close()

    def disconnect(self) -> None:
        for store in self.stores.values():
            store.close()
        self.stores = {}
        self.loop.disconnect()

    def store(self, namespace: str, step: Step | None = None) -> Any:
        """By the road, and as the actor, that a step says."""
        road, actor = (step or {}).get("road", "sync"), (step or {}).get("actor")
        self.tally[f"road {road}"] += 1
        name = self.prefix + namespace
        if road == "sql":
            return Statements(self.raw, name, actor)
        if road == "async":
            return self.loop.store(name, actor)
        if (name, actor) not in self.stores:
            self.stores[name, actor] = FactStore.open(self.url, namespace=name, actor=actor)
        return self.stores[name, actor]

    # -- steps --------------------------------------------------------------------------------------------

    def run(self, steps: Iterable[Step]) -> None:
        """Steps as they were kept; every answer is asked again at the end."""
        for step in steps:
            self.step(step)
        self.recall_all()

    def step(self, step: Step) -> None:
        self.steps.append(step)
        kind = next(key for key in step if key in _KINDS)
        self.tally[f"step {kind}"] += 1
        try:
            getattr(self, f"_{kind}")(step)
            if kind in {"write", "replay", "together"}:
                self.compare_tables(step[kind])
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n\nafter these steps:\n{self.story()}") from difference

    def story(self) -> str:
        return "[\n" + "".join(f"    {step!r},\n" for step in self.steps) + "]"

    def _clock(self, step: Step) -> None:
        self.set_clock(step["clock"])
        self.oracle.clock = instant(step["clock"])

    def set_clock(self, at: str) -> None:
        """By a row that the clock reads: a new function would have every plan made anew."""
        self.look.execute(_CLOCK)
        self.look.execute("update public.stopped_clock set at = %s", [at])

    def _maintain(self, step: Step) -> None:
        self.look.execute(step["maintain"])

    def _reconnect(self, _step: Step) -> None:
        self.disconnect()

    def _write(self, step: Step) -> None:
        self._do(step["write"], step["event"], self.store(step["write"], step), step.get("actor"))

    def _do(self, namespace: str, event: Event, verbs: Any, actor: str | None) -> None:
        expected: Done | Refused
        try:
            expected = self.oracle.write(namespace, self._as_model(namespace, event), actor=actor)
        except Refused as refused:
            expected = refused
        actual: Recorded | SupersedeError
        try:
            actual = self._call(verbs, namespace, event)
        except SupersedeError as error:
            actual = error
        self.tally[f"{event['op']} {'refused' if isinstance(actual, SupersedeError) else 'done'}"] += 1
        self.compare_result(namespace, expected, actual)

    def _undo(self, step: Step) -> None:
        """The store's word for what is undone, within the bounds of the model; the dry run tells the same."""
        namespace, by = step["undo"], step["by"]
        asked = {"actor": by, "since": step["since"], "until": step["until"]}
        store, actor = self.store(namespace, step), step.get("actor")
        now = self.oracle.now(namespace)
        if instant(step["since"]) > now:
            if namespace in self.oracle.books:
                refuses(lambda: store.undo(**asked, dry_run=False), "InvalidInstant")
            return
        plan = store.undo(**asked, dry_run=True)
        self.compare_tables(namespace)
        done = store.undo(**asked, dry_run=False, based_on=plan)
        as_planned = [o.model_copy(update={"undone_at": None}) for o in done.operations]
        assert as_planned == list(plan.operations), f"planned\n{plan}\ndone\n{done}"

        since, until = instant(step["since"]), instant(step["until"]) if step["until"] else FOREVER
        wanted = self.oracle.selected(namespace, by, since, until)
        assert [time(o.stamp, NEVER) for o in done.operations] == [o.stamp for o in wanted]
        alone = len(wanted) == len(self.oracle.selected(namespace, None, since, FOREVER)) and all(
            o.verb in _UNDOABLE - {"undo"} | {"cite"} for o in wanted
        )
        for found, operation in zip(done.operations, wanted, strict=True):
            self._undone(namespace, found, operation, wanted, actor)
        if alone:
            self.tally["undone to the last"] += 1
            book = self.oracle.book(namespace)
            left = {f.number: book.covers(f.number) for f in book.facts}
            before = {f.number: book.held(f.number, since - 1) for f in book.facts}
            assert left == before, f"all undone since then: {left}\nthen: {before}"
        self.compare_tables(namespace)

    def _undone(
        self, namespace: str, found: Any, operation: Operation, selected: list[Operation], actor: str | None
    ) -> None:
        """One operation of an undo."""
        undone = self.oracle.book(namespace).undone(operation.stamp)
        stays = {o.stamp for o in selected}
        assert found.verb == operation.verb
        if found.skipped is not None:
            why = {
                "history": operation.verb not in _UNDOABLE,
                "already_undone": undone,
                "undo_of_selected": operation.undoes in stays,
            }
            assert why[found.skipped], f"{found} of {operation}"
            self.tally[f"operation passed over: {found.skipped}"] += 1
            return
        assert operation.verb in _UNDOABLE, f"{found} of {operation}"
        self.tally["operation undone"] += 1
        withdrawn, given = (
            {self.number(each.id)[1]: joined(periods(each.valid)) for each in some}
            for some in (found.withdrawn, found.given_back)
        )
        stamp = self.oracle.undo(namespace, operation.stamp, withdrawn, given, actor=actor)
        assert time(found.undone_at, NEVER) == stamp

    def _replay(self, step: Step) -> None:
        namespace, late = step["replay"], step.get("late", "refuse")
        expected: list[Done] | Refused
        try:
            expected = self.oracle.replay(namespace, step["events"], late=late, actor=step.get("actor"))
        except Refused as refused:
            expected = refused
        try:
            actual = self.store(namespace, step).replay(
                [self._named(namespace, event) for event in step["events"]], out_of_order=late
            )
        except SupersedeError as error:
            self.tally["history refused"] += 1
            self.compare_result(namespace, expected if isinstance(expected, Refused) else expected[0], error)
            return
        assert not isinstance(expected, Refused), f"the model refused by {expected!r}, the store did not"
        for event, done, recorded in zip(step["events"], expected, actual, strict=True):
            self.tally[f"{event['op']} replayed"] += 1
            self.compare_result(namespace, done, recorded)

    def _together(self, step: Step) -> None:
        namespace = step["together"]
        before, ids = self.oracle.snapshot(), list(self.ids.get(namespace, []))
        try:
            with self.store(namespace, step).transaction() as transaction:
                for event in step["events"]:
                    self._do(namespace, event, transaction, step.get("actor"))
                after, self.oracle.books = self.oracle.books, before
                self.compare_tables(namespace)  # nobody sees anything of it yet
                self.oracle.books = after
                if step["raises"]:
                    raise Undo
                if step.get("killed") and self.server is not None:
                    self.server.kill()
                elif step.get("killed"):
                    raise Undo
        except Undo:
            self.oracle.restore(before)
            self.ids[namespace] = ids
        except (SupersedeError, psycopg.Error) as error:
            if not (step.get("killed") and self.server is not None):
                raise AssertionError(f"{error!r}, and nobody killed the server") from error
            self._settle(namespace, before, ids)
        else:
            if step.get("killed"):
                self._settle(namespace, before, ids)

    def _settle(self, namespace: str, before: dict[str, Book], ids: list[str]) -> None:
        """After a kill before COMMIT: the server's last breath may have been enough for it, or not."""
        self.tally["server killed in a transaction"] += 1
        assert self.server is not None
        self.server.start()
        self._connect_anew()
        row = self.look.execute(
            "select head from supersede.namespace where namespace = %s", [self.prefix + namespace]
        ).fetchone()
        committed = row is not None and time(row[0], NEVER) == self.oracle.book(namespace).head
        self.tally[f"its transaction {'committed' if committed else 'gone'}"] += 1
        if not committed:
            self.oracle.restore(before)
            self.ids[namespace] = ids
        self._look_anew()

    def _move(self, _step: Step) -> None:
        if self.fresh is None or not self.oracle.books or not hasattr(FactStore, "import_ledger"):
            return self.disconnect()
        names = [self.prefix + namespace for namespace in self.oracle.books]
        erased = any(book.erased for book in self.oracle.books.values())
        ledger = io.BytesIO()
        with FactStore.open(self.url) as store:
            store.export_ledger(ledger, namespaces=names, with_erasure_key=erased)
        self.disconnect()
        self.url = self.fresh()
        ledger.seek(0)
        with FactStore.open(self.url) as store:
            store.import_ledger(ledger)
            again = io.BytesIO()
            store.export_ledger(again, namespaces=names, with_erasure_key=erased)
        assert again.getvalue() == ledger.getvalue(), "what was imported is exported otherwise"
        self.loop.close()
        self.loop = Loop(self.url)
        return self._look_anew()

    def _restart(self, step: Step) -> None:
        if self.server is None:
            return self.disconnect()
        self.tally[f"server {step['restart']}"] += 1
        (self.server.kill if step["restart"] == "kill" else self.server.restart)()
        return self._back()

    def _back(self) -> None:
        """The server again, after it was gone. The stores are left to find that out by themselves."""
        assert self.server is not None
        self.server.start()
        self._look_anew()

    def _look_anew(self) -> None:
        """At the database where it is now: everything is there."""
        self._connect_anew()
        self.set_clock(printed(self.oracle.clock))
        for namespace in self.oracle.books:
            self.compare_tables(namespace)

    def _connect_anew(self) -> None:
        self.look.close()
        self.raw.close()
        self.connect()
        self.raw = Statements.connect(self.url)

    def _point(self, step: Step) -> dict[str, Any]:
        point = {key: step[key] for key in ("valid_at", "known_at") if step.get(key) is not None}
        first = step.get("ask") or step.get("rank")
        return point | {"namespaces": [self.prefix + name for name in first or []], "explain": True}

    def _ask(self, step: Step) -> None:
        store, point, which = self.store(step["ask"][0], step), self._point(step), step.get("which", {})
        if not self._exist(step["ask"]):
            refuses(lambda: store.facts(**point, **which), "NamespaceNotFound")
            return
        answer = store.facts(**point, **which)
        self.answers.append(answer)
        self.compare_answer(answer)
        self.compare_sql(answer)
        if "page" in step:
            pages = self._pages(store, answer, step["page"])
            self.compare_pages(answer, pages)
            self.answers += pages

    def _exist(self, names: list[str]) -> bool:
        """Whether a question about namespaces can be asked: all but the store's own must be there."""
        return all(name in self.oracle.books for name in names[1:])

    def _pages(self, store: Any, whole: Answer, size: int) -> list[Answer]:
        """The same question by its point, so many at a time."""
        asked = {
            "valid_at": whole.valid_at,
            "known_at": whole.known_at,
            "namespaces": list(whole.basis.heads),
            "explain": True,
            **which_of(whole),
        }
        pages: list[Answer] = []
        while not pages or len(pages[-1].facts) == size:
            after = pages[-1].facts[-1] if pages else None
            pages.append(store.facts(**asked, limit=size, after=after))
        return pages

    def _rank(self, step: Step) -> None:
        if not self._exist(step["rank"]):
            return
        store = self.store(step["rank"][0], step)
        answer = store.ask(step["word"], top_k=step["top_k"], **self._point(step))
        self.answers.append(answer)
        if step["top_k"] >= ALL:
            self.compare_ranked(answer, step["word"])

    def _diff(self, step: Step) -> None:
        namespace = step["diff"]
        now = self.oracle.now(namespace)
        until = now if step["to"] is None else instant(step["to"])
        read = self.store(namespace, step).diff
        if instant(step["from"]) >= until or until > now:
            refuses(
                lambda: read(step["from"], step["to"], valid_at=step["valid_at"]),
                *("InvalidPeriod", "InvalidInstant"),
            )
            return
        self.compare_diff(namespace, read(step["from"], step["to"], valid_at=step["valid_at"]))

    def _look(self, step: Step) -> None:
        """One fact: now, through time, and what it came from."""
        namespace = step["look"]
        store, named = self.store(namespace, step), self._name(namespace, step["fact"])
        fact = self.oracle.book(namespace).find(step["fact"])
        if fact is not None:
            self.compare_fact(store, namespace, fact, named)
            return
        for read in (store.get, store.history, store.lineage):
            refuses(lambda read=read: read(named), "FactNotFound")

    def _recall(self, step: Step) -> None:
        self.recall(self.answers[step["recall"]])

    def recall(self, answer: Answer) -> None:
        """An answer asked again is the same, whatever happened since."""
        self.tally["answers asked again"] += 1
        basis = answer.basis
        store = self.store(next(iter(basis.heads)).removeprefix(self.prefix))
        read = getattr(store, basis.question)
        again = read(basis=str(basis) if self.tally["answers asked again"] % 2 else basis)
        if self._erased_since(answer):
            self.tally["answers asked again after an erasure"] += 1
            verified = store.verify(answer)
            assert verified.outcome in {"equal", "erased"}, f"{verified}: then\n{answer}\nnow\n{again}"
            if basis.question == "facts" and basis.after is None and basis.limit == ALL:
                self.compare_answer(again)
                self.compare_without_erased(again, answer)
            return
        assert again == answer, f"by its basis:\n{again}\nis not\n{answer}"
        if all(head is not None and answer.known_at <= head for head in basis.heads.values()):
            asked: dict[str, Any] = {
                "valid_at": answer.valid_at,
                "known_at": answer.known_at,
                "namespaces": list(basis.heads),
                "explain": True,
                **which_of(answer),
            }
            if basis.question == "ask":
                asked |= {"query": basis.query, "top_k": basis.limit}
            else:
                asked |= {"limit": basis.limit, "after": self._after(basis.after)}
            by_point = read(**asked)
            now, then = (a.model_dump(exclude={"basis", "notice"}) for a in (by_point, answer))
            assert now == then, f"by its point:\n{by_point}\nis not\n{answer}"

    def _erased_since(self, answer: Answer) -> bool:
        """Whether something was erased after an answer that it may have seen."""
        for name, head in answer.basis.heads.items():
            book = self.oracle.book(name.removeprefix(self.prefix))
            if head is not None and any(at > time(head, NEVER) for at in book.erased.values()):
                return True
        return False

    @staticmethod
    def _after(after: tuple[str, str] | None) -> str | None:
        return None if after is None else after[1]

    def recall_all(self) -> None:
        self.steps.append({"recall": "all"})
        try:
            for answer in self.answers:
                self.recall(answer)
                if not self._erased_since(answer):
                    self.compare_sql(answer)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n\nafter these steps:\n{self.story()}") from difference

    # -- the same event for both --------------------------------------------------------------------------

    def _as_model(self, namespace: str, event: Event) -> Event:
        event = dict(event)
        if "based_on" in event:
            basis = self.answers[event["based_on"]].basis
            head = basis.heads[self.prefix + namespace]
            # An answer about the past saw no more than was known then.
            event["based_on"] = None if head is None else time(min(head, basis.known_at), NEVER)
        return event

    def _named(self, namespace: str, event: Event) -> Event:
        """Facts named as the store knows them."""
        event = dict(event)
        acts_on = "ref" if event["op"] in _ON_ONE else "by"
        if event.get(acts_on) is not None:
            event[acts_on] = self._name(namespace, event[acts_on])
        if "old" in event:
            event["old"] = [self._name(namespace, old) for old in event["old"]]
        return event

    def _name(self, namespace: str, name: str) -> str:
        ids = self.ids.get(namespace, [])
        if not name.startswith("#"):
            return name
        number = int(name[1:])
        return ids[number] if number < len(ids) else str(uuid4())

    def _call(self, verbs: Any, namespace: str, event: Event) -> Recorded:
        event = self._named(namespace, event)
        if isinstance(verbs, Statements):
            if "based_on" in event:
                event["based_on"] = head_seen(self.answers[event["based_on"]], self.prefix + namespace)
            return verbs.run(event)
        op = event.pop("op")
        if "based_on" in event:
            event["based_on"] = self.answers[event["based_on"]]
        for key in ("valid_from", "valid_to"):
            if event.get(key) in _BOUNDS:
                event[key] = _BOUNDS[event[key]]
        if op == "declare_predicate":
            return verbs.declare_predicate(event.pop("name"), **event)
        if op == "remember":
            return verbs.remember(event.pop("claim"), **event)
        if op in {"supersede", "amend"}:
            old, claim = event.pop("old"), event.pop("claim", None)
            recorded: Recorded = getattr(verbs, op)(old, claim, **event)
            return recorded
        if "when" in event:
            event["at"] = event.pop("when")
        return getattr(verbs, op)(event.pop("ref"), **event)
