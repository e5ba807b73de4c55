"""Ledgers with real erasures: the rows, the answers and the refusal come along, the content does not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import dump
from fakes import BagOfWords
from histories import a_life, questions
from servers import new_database
from supersede import Erased, FactStore, InvalidLedger, ledger


@pytest.fixture
def other_database(server_url: str, template_database: str) -> Iterator[str]:
    """A second prepared database, without an embedding space."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


def test_what_was_erased_stays_erased_where_it_is_imported(vector_database: str, other_database: str) -> None:
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        a_life(store)
        store.remember("Ann lives in Lima", ref="ann", subject="Ann", predicate="home", object="Lima")
        for fact in ("ann", "oslo", "adr/3"):
            store.erase(fact, note="asked for")
        answers = questions(store)[::4]
        out = io.BytesIO()
        store.export_ledger(out, with_erasure_key=True)
    assert b"Oslo" not in out.getvalue()
    assert b"Lima" in out.getvalue()  # a fact of its own, which was not erased
    assert b"Ann lives" not in out.getvalue()

    with FactStore.open(other_database) as copy:
        done = copy.import_ledger(io.BytesIO(out.getvalue()))
        assert (done.erasures, done.erasure_key) == (3, True)
    assert dump(other_database) == dump(vector_database)
    with FactStore.open(other_database, embedder=BagOfWords()) as copy:
        with pytest.raises(Erased):
            copy.remember("ann  lives in LIMA")
        again = io.BytesIO()
        copy.export_ledger(again, with_erasure_key=True)
        assert again.getvalue() == out.getvalue()
        for answer in answers:
            ask = copy.ask if answer.basis.question == "ask" else copy.facts
            assert ask(basis=answer.basis).model_dump_json() == answer.model_dump_json()
        assert any(answer.withheld.erased for answer in answers)


def test_a_history_whose_event_was_erased_cannot_run_again(store: FactStore, tmp_path: Path) -> None:
    store.remember("one", ref="one")
    store.remember("two", ref="two")
    store.erase("one", note="by request")
    file = tmp_path / "ledger.jsonl"
    store.export_ledger(file)
    with pytest.raises(InvalidLedger, match=r"the event of remember at .* was erased"):
        list(ledger.history(file))
