"""The ledger as a file, and back into an empty store: the same rows, the same answers on the same bases."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from databases import dump
from fakes import BagOfWords
from histories import a_life, questions
from servers import new_database
from supersede import FactStore


@pytest.fixture
def other_database(server_url: str, template_database: str) -> Iterator[str]:
    """A second prepared database, without an embedding space."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


def test_an_imported_ledger_is_the_same_rows_the_same_file_and_the_same_answers(
    vector_database: str, other_database: str
) -> None:
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        a_life(store)
        answers = questions(store)
        first, second = io.BytesIO(), io.BytesIO()
        exported = store.export_ledger(first)
        assert store.export_ledger(second) == exported
        assert first.getvalue() == second.getvalue()
    with FactStore.open(other_database) as copy:
        first.seek(0)
        assert copy.import_ledger(first) == exported
    left, right = dump(vector_database), dump(other_database)
    del left["secret"], right["secret"]
    assert right == left
    with FactStore.open(other_database, embedder=BagOfWords()) as copy:
        again = io.BytesIO()
        copy.export_ledger(again)
        assert again.getvalue() == first.getvalue()
        for answer in answers:
            assert copy.verify(answer).outcome == "equal"
            ask = copy.ask if answer.basis.question == "ask" else copy.facts
            assert ask(basis=answer.basis).model_dump_json() == answer.model_dump_json()
