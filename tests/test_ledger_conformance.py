"""The cases that every build must pass, by the road of export and import; see conformance/README.md."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from fakes import BagOfWords
from servers import new_database
from supersede import Answer, FactStore
from test_conformance import CASES, Case, check, every_case, point, succeeding

Answers = dict[str, list[Answer]]


@pytest.fixture(scope="module")
def there(server_url: str, vector_template_database: str) -> Iterator[tuple[bytes, Answers]]:
    """The ledger of all cases, each in a namespace of its own, and what was answered where it came from."""
    answers: Answers = {}
    with new_database(server_url, "test", vector_template_database) as (_, url):
        for case in CASES:
            with FactStore.open(url, namespace=case["name"], embedder=BagOfWords()) as store:
                store.replay(succeeding(case))
                claim = next(event["claim"] for event in case["ops"] if "claim" in event)
                last = point(case["asks"][-1])
                answers[case["name"]] = [store.facts(**last), store.ask(claim, **last, explain=True)]
        with FactStore.open(url) as store:
            out = io.BytesIO()
            store.export_ledger(out)
        yield out.getvalue(), answers


@pytest.fixture(scope="module")
def here(server_url: str, template_database: str, there: tuple[bytes, Answers]) -> Iterator[str]:
    """A database into which all cases were imported."""
    with new_database(server_url, "test", template_database) as (_, url):
        with FactStore.open(url) as store:
            assert len(store.import_ledger(io.BytesIO(there[0])).heads) == len(CASES)
        yield url


@every_case
def test_an_imported_case_is_answered_as_expected_and_as_it_was(
    here: str, there: tuple[bytes, Answers], case: Case
) -> None:
    facts, asked = there[1][case["name"]]
    assert asked.basis.vector
    with FactStore.open(here, namespace=case["name"]) as store:
        for ask in case["asks"]:
            check(store.facts(**point(ask), explain=True), ask)
        assert store.facts(basis=facts.basis) == facts
        assert store.ask(basis=str(asked.basis)).model_dump_json() == asked.model_dump_json()


def test_the_copy_exports_the_same_file(here: str, there: tuple[bytes, Answers]) -> None:
    with FactStore.open(here) as store:
        out = io.BytesIO()
        store.export_ledger(out)
    assert out.getvalue() == there[0]
