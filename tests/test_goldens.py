"""A frozen ledger and its frozen answers: what one release answered, the next one answers.

The ledger is read by today's import, so older files stay readable. An answer that differs means that how
answers are ranked, grouped or worded has changed: then ``RULES`` in models.py must be raised, so that
``verify`` says ``rules_changed`` of answers kept elsewhere, and ``scripts/make_goldens.py`` makes the
answers anew. An answer must not change for any other reason. A field that is added to answers, and is empty
here, is no change: what was frozen must stand in the new answer as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes import BagOfWords
from histories import questions
from servers import new_database
from supersede import Answer, FactStore
from supersede.models import RULES

GOLDENS = Path(__file__).parent / "data" / "goldens"
# Split at line feeds alone: claims hold other line separators.
FROZEN = (GOLDENS / "answers.jsonl").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="module")
def imported(server_url: str, template_database: str) -> Iterator[str]:
    with new_database(server_url, "test", template_database) as (_, url):
        with FactStore.open(url) as store:
            store.import_ledger(GOLDENS / "ledger.jsonl")
        yield url


def held(new: Any, frozen: Any) -> Any:
    """The part of new JSON that frozen JSON speaks of: objects may have gained keys, nothing else."""
    if isinstance(frozen, dict) and isinstance(new, dict):
        return {key: held(value, frozen[key]) for key, value in new.items() if key in frozen}
    if isinstance(frozen, list) and isinstance(new, list) and len(new) == len(frozen):
        return [held(*pair) for pair in zip(new, frozen, strict=True)]
    return new


def same(answer: Answer, line: str) -> None:
    """Equal as an answer, and written as it was."""
    assert answer == Answer.model_validate_json(line)
    frozen = json.loads(line)
    # As text: 1 is not 1.0, and the order of keys is part of the form.
    assert json.dumps(held(json.loads(answer.model_dump_json()), frozen)) == json.dumps(frozen)


def test_the_questions_asked_today_give_the_frozen_answers(imported: str) -> None:
    with FactStore.open(imported, embedder=BagOfWords()) as store:
        for answer, line in zip(questions(store), FROZEN, strict=True):
            same(answer, line)


def test_the_frozen_bases_give_the_frozen_answers_without_any_embedder(imported: str) -> None:
    with FactStore.open(imported) as store:
        for line in FROZEN:
            basis = Answer.model_validate_json(line).basis
            ask = store.ask if basis.question == "ask" else store.facts
            same(ask(basis=basis), line)


def test_the_ledger_exports_as_it_was_imported(imported: str, tmp_path: Path) -> None:
    """But for the header, which names the schema's revision, and the sum over it."""
    with FactStore.open(imported) as store:
        store.export_ledger(tmp_path / "again.jsonl")
    again, frozen = (
        (folder / name).read_bytes().split(b"\n")
        for folder, name in ((tmp_path, "again.jsonl"), (GOLDENS, "ledger.jsonl"))
    )
    assert again[1:-2] == frozen[1:-2]


def test_the_goldens_say_something() -> None:
    answers = [Answer.model_validate_json(line) for line in FROZEN]
    assert len(answers) >= 40
    assert {answer.basis.rules for answer in answers} == {RULES}
    assert {answer.outcome for answer in answers} == {"answered", "all_withheld", "nothing_matched"}
    withheld = {reason for answer in answers for reason in answer.withheld.nonzero()}
    assert withheld >= {"superseded", "near_duplicate", "retracted", "expired", "not_yet_valid"}
    facts = [fact for answer in answers for fact in answer.facts]
    for part in ("supersedes", "amends", "amended_by", "restated", "via", "data", "sources"):
        assert any(getattr(fact, part) for fact in facts), part
    assert any(answer.basis.vector for answer in answers)
    assert any(len(answer.basis.heads) == 3 for answer in answers)
