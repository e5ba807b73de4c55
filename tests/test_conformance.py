"""The cases that every build must pass, through the Python API; see conformance/README.md."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import supersede
from databases import Dump, dump_over, named_dump, set_clock_over
from servers import new_database
from supersede import Answer, FactStore, Recorded, SupersedeError

Case = dict[str, Any]
Event = dict[str, Any]

HERE = Path(__file__).parent / "conformance"
SHARED = Path(__file__).parents[2] / "shared" / "conformance"


def load_cases() -> list[Case]:
    cases: list[Case] = []
    for path in sorted(HERE.rglob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        cases.extend(found if isinstance(found, list) else [found])
    return cases


CASES = load_cases()
every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])

# By typed verbs the clock is the recording time, so what is recorded later by the same clock gets a
# later "now", and no event can come out of order: this case is about replay alone.
BY_VERBS = [case for case in CASES if case["name"] != "equal-recorded-at"]


class Bench:
    """A database and a connection of its own to look at it from outside."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)

    def open(self, case: Case) -> FactStore:
        return FactStore.open(self.url, namespace=case["name"])

    def dump(self) -> Dump:
        return dump_over(self.connection)


@pytest.fixture(scope="module")
def bench(module_database: str) -> Iterator[Bench]:
    bench = Bench(module_database)
    yield bench
    bench.connection.close()


@pytest.fixture(scope="module")
def other_bench(server_url: str, template_database: str) -> Iterator[Bench]:
    """A second database, where the same histories are recorded by other means."""
    with new_database(server_url, "test", template_database) as (_, url):
        bench = Bench(url)
        yield bench
        bench.connection.close()


def said(event: Event) -> Event:
    """The event without what is expected of it."""
    return {key: value for key, value in event.items() if key not in {"error", "is"}}


def succeeding(case: Case) -> list[Event]:
    return [said(event) for event in case["ops"] if "error" not in event]


def refused(bench: Bench, event: Event, write: Callable[[], object]) -> SupersedeError:
    """What is raised where an event must fail: the error that it names itself, with nothing changed."""
    before = bench.dump()
    with pytest.raises(SupersedeError) as failure:
        write()
    assert type(failure.value) is getattr(supersede, event["error"]), failure.value
    assert bench.dump() == before
    return failure.value


def check(answer: Answer, ask: dict[str, Any]) -> None:
    current = {str(fact.ref): fact for fact in answer.facts}
    assert len(current) == len(answer.facts)
    withheld = {fact.ref: fact.reason for fact in answer.withheld_facts}
    assert {
        "current": sorted(current),
        "withheld": withheld,
        "supersedes": {
            ref: {edge.ref: edge.reason for edge in fact.supersedes}
            for ref, fact in current.items()
            if fact.supersedes
        },
        "amends": {
            ref: sorted(str(old.ref) for old in fact.amends) for ref, fact in current.items() if fact.amends
        },
        "sources": {ref: sorted(fact.sources) for ref, fact in current.items() if fact.sources},
    } == {
        "current": sorted(ask["current"]),
        "withheld": ask["withheld"],
        "supersedes": ask["supersedes"],
        "amends": {ref: sorted(olds) for ref, olds in ask["amends"].items()},
        "sources": {ref: sorted(sources) for ref, sources in ask["sources"].items()},
    }
    assert len(withheld) == len(answer.withheld_facts) == answer.withheld.total


def point(ask: dict[str, Any]) -> dict[str, str]:
    return {"valid_at": ask["valid_at"], "known_at": ask["known_at"]}


@every_case
def test_every_answer_is_the_expected_one_and_stays_so(bench: Bench, case: Case) -> None:
    """One event a call. What is asked on the way must be answered alike after all later events."""
    asks = case["asks"]
    on_the_way: list[Answer] = []
    with bench.open(case) as store:
        for number, event in enumerate(case["ops"]):
            if "error" in event:
                refused(bench, event, lambda event=event: store.replay([said(event)]))
            else:
                (recorded,) = store.replay([said(event)])
                if "is" in event:
                    assert recorded.created is False
                    assert store.get(event["ref"]).ref == event["is"]
            on_the_way.append(store.facts(**point(asks[number % len(asks)])))

        answers = [store.facts(**point(ask), explain=True) for ask in asks]
        for answer, ask in zip(answers, asks, strict=True):
            check(answer, ask)
        assert store.facts(basis=answers[-1].basis) == answers[-1]
        assert store.facts(basis=str(answers[0].basis)) == answers[0]
        for answer in on_the_way:
            assert store.verify(answer).outcome == "equal"


def comparable(bench: Bench, case: Case, *, ledger: bool) -> Dump:
    return named_dump(bench.connection, case["name"], ledger=ledger)


@every_case
def test_a_history_in_one_call_is_the_same_as_event_by_event(
    bench: Bench, other_bench: Bench, case: Case
) -> None:
    """A failing event undoes its batch and names its position; a second run writes nothing."""
    with other_bench.open(case) as store:
        for position, event in enumerate(case["ops"], 1):
            if "error" in event:
                batch = [*succeeding({"ops": case["ops"][:position]}), said(event)]
                failure = refused(other_bench, event, lambda batch=batch: store.replay(batch))
                assert failure.details["position"] == len(batch)
        history = succeeding(case)
        store.replay(history)
        held = comparable(other_bench, case, ledger=True)
        assert all(recorded.repeated for recorded in store.replay(history))
        assert comparable(other_bench, case, ledger=True) == held
    assert held == replayed(bench, case, ledger=True)


def replayed(bench: Bench, case: Case, *, ledger: bool) -> Dump:
    """What event by event came to; recorded here where the first test was not selected."""
    with bench.open(case) as store:
        for event in succeeding(case):
            store.replay([event])
    return comparable(bench, case, ledger=ledger)


@pytest.fixture(scope="module")
def verb_bench(server_url: str, template_database: str) -> Iterator[Bench]:
    """A database whose clock the tests set."""
    with new_database(server_url, "test", template_database) as (_, url):
        bench = Bench(url)
        yield bench
        bench.connection.close()


def by_verb(store: FactStore, event: Event) -> Recorded:
    """The call that a program would make where a history has this event."""
    arguments = {k: v for k, v in said(event).items() if k not in {"op", "recorded_at"}}
    match event["op"]:
        case "remember":
            return store.remember(**arguments)
        case "supersede":
            return store.supersede(arguments.pop("old"), **arguments)
        case "amend":
            return store.amend(arguments.pop("old"), **arguments)
        case "end":
            return store.end(arguments.pop("ref"), at=arguments.pop("when", None), **arguments)
        case "retract":
            return store.retract(arguments.pop("ref"), **arguments)
        case "cite":
            return store.cite(arguments.pop("ref"), **arguments)
        case "reinstate":
            return store.reinstate(arguments.pop("ref"), **arguments)
        case "declare_predicate":
            return store.declare_predicate(arguments.pop("name"), **arguments)
    raise AssertionError(event["op"])


@pytest.mark.parametrize("case", BY_VERBS, ids=[case["name"] for case in BY_VERBS])
def test_the_verbs_do_what_replay_does(bench: Bench, verb_bench: Bench, case: Case) -> None:
    with verb_bench.open(case) as store:
        for event in case["ops"]:
            set_clock_over(verb_bench.connection, event["recorded_at"])
            if "error" in event:
                refused(verb_bench, event, lambda event=event: by_verb(store, event))
            else:
                by_verb(store, event)
    assert comparable(verb_bench, case, ledger=False) == replayed(bench, case, ledger=False)


def test_all_cases_are_there() -> None:
    assert (len(CASES), sum(len(case["asks"]) for case in CASES)) == (76, 636)
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the folder the cases came from is not beside this checkout")
def test_the_cases_are_those_they_were_copied_from() -> None:
    names = sorted(str(path.relative_to(SHARED)) for path in SHARED.rglob("*.json"))
    assert names == sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*.json"))
    _, different, unreadable = filecmp.cmpfiles(SHARED, HERE, names, shallow=False)
    assert (different, unreadable) == ([], [])
