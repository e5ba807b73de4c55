"""Groups of facts that say the same, and what an answer says about itself; no database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import numpy as np
import pytest

from supersede import answering
from supersede.answering import Candidate, Group
from supersede.models import Basis, Edge, Fact, Related, Restatement, Withheld, WithheldFact

DAY = datetime(2026, 7, 24, tzinfo=UTC)


def candidate(
    claim: str,
    angle: float | None = 0.0,
    *,
    keys: tuple[str | None, str | None, str | None] = (None, None, None),
    **fact: object,
) -> Candidate:
    """A fact whose vector points at an angle in degrees: 20 apart is a cosine of .94, 40 of .77."""
    radians = None if angle is None else np.deg2rad(angle)
    vector = None if radians is None else np.array([np.cos(radians), np.sin(radians)], dtype=np.float32)
    parts = {"id": claim, "namespace": "n", "kind": "fact", "recorded": DAY, "trust": "extracted", **fact}
    return Candidate(Fact(claim=claim, **parts), *keys, vector)


def grouped(candidates: list[Candidate], limit: int = 10) -> list[set[str]]:
    groups: list[Group] = []
    for each in candidates:
        if not answering.join_groups(groups, each, limit=limit, threshold=0.92):
            break
    return [{member.fact.claim for member in group.members} for group in groups]


NEAR, BETWEEN, FAR = (
    candidate("the search is hybrid", 0),
    candidate("our search is hybrid", 20),
    candidate("search is hybrid here", 40),
)


@pytest.mark.parametrize("order", permutations([NEAR, BETWEEN, FAR]))
def test_what_a_restatement_lies_between_becomes_one_group_in_any_order(order: tuple[Candidate, ...]) -> None:
    assert len(grouped(list(order))) == 1


def test_two_that_no_restatement_joins_stay_two() -> None:
    assert len(grouped([NEAR, FAR])) == 2


@pytest.mark.parametrize("order", permutations(["the port is 5432", "the port is 5433", "the port"]))
def test_a_vague_claim_between_two_values_does_not_make_them_one(order: tuple[str, ...]) -> None:
    groups = grouped([candidate(claim) for claim in order])
    assert not [group for group in groups if {"the port is 5432", "the port is 5433"} <= group]


def test_given_subjects_that_differ_never_say_the_same() -> None:
    one = candidate("Requirements for hosts", keys=("rfc 1122", None, None))
    other = candidate("Requirements for hosts", keys=("rfc 1123", None, None))
    unnamed = candidate("Requirements for hosts")
    assert len(grouped([one, other])) == 2
    assert len(grouped([one, unnamed])) == 1


def test_one_slot_with_two_objects_never_says_the_same() -> None:
    one = candidate("Acme is in Rome", keys=("acme", "hq", "rome"))
    other = candidate("Acme is in Rome!", keys=("acme", "hq", "oslo"))
    assert len(grouped([one, other])) == 2


def test_one_statement_in_other_words_says_the_same_however_far_its_vector() -> None:
    one = candidate("Acme is in Rome", 0, keys=("acme", "hq", "rome"))
    other = candidate("Rome hosts the Acme headquarters", 90, keys=("acme", "hq", "rome"))
    assert len(grouped([one, other])) == 1


def test_equal_claims_need_no_vector() -> None:
    assert len(grouped([candidate("Queue is Kafka.", None), candidate("queue  is kafka", None)])) == 1


def test_the_answer_is_complete_before_one_leader_too_many() -> None:
    claims = [candidate(f"fact number {n}", 30.0 * n) for n in range(4)]
    assert len(grouped(claims, limit=3)) == 3


def test_a_group_is_shown_by_a_decision_then_by_trust_then_by_sources_then_the_newest() -> None:
    edge = Edge(id="old", reason="change")
    echo = candidate("echo", sources=("a", "b", "c"), trust="verbatim")
    decision = candidate("decision", supersedes=(edge,), trust="summary")
    assert answering.shown(Group([echo, decision])) is decision
    assert answering.shown(Group([candidate("low", trust="summary"), echo])) is echo
    poor = candidate("poor", sources=("a",), trust="verbatim")
    assert answering.shown(Group([poor, echo])) is echo
    newer = candidate("newer", recorded=DAY.replace(year=2027))
    assert answering.shown(Group([candidate("older"), newer])) is newer
    assert answering.shown(Group([candidate("b"), candidate("a")])).fact.id == "a"


def test_a_shown_fact_says_where_it_was_restated() -> None:
    decision = candidate("decision", supersedes=(Edge(id="old", reason="change"),), ref="adr/1")
    echo = candidate("echo", source="chat/1", ref="chat", score=0.5)
    group = Group([echo, decision])
    assert answering.entry(group) == decision.fact.model_copy(
        update={"restated": (Restatement(id="echo", ref="chat", source="chat/1"),)}
    )
    assert answering.duplicates_of(group) == [
        WithheldFact(
            id="echo",
            ref="chat",
            claim=echo.fact.claim,
            reason="near_duplicate",
            score=0.5,
            duplicate_of=Related(id="decision", ref="adr/1"),
        )
    ]


@pytest.mark.parametrize(
    ("answered", "withheld", "recorded", "expected"),
    [
        (True, 0, True, "answered"),
        (False, 2, True, "all_withheld"),
        (False, 0, True, "nothing_matched"),
        (False, 0, False, "nothing_recorded"),
    ],
)
def test_the_four_endings_are_never_confused(
    answered: bool, withheld: int, recorded: bool, expected: str
) -> None:
    counts = Withheld(superseded=withheld)
    assert answering.outcome(answered=answered, withheld=counts, recorded=recorded) == expected


@pytest.mark.parametrize(
    ("trust", "at_least", "expected"),
    [
        ("summary", None, True),
        ("summary", "extracted", False),
        ("extracted", "extracted", True),
        ("verbatim", "extracted", True),
    ],
)
def test_trust_has_an_order(trust: str, at_least: str | None, expected: bool) -> None:
    assert answering.trusted(trust, at_least) is expected


def basis(**fields: object) -> Basis:
    asked = {
        "question": "ask",
        "heads": {"n": DAY},
        "valid_at": DAY,
        "known_at": DAY,
        "limit": 10,
        "text_search": "english",
    }
    return Basis(**{**asked, **fields})


def test_a_plain_answer_needs_no_notice() -> None:
    said = answering.notice(basis(), outcome="answered", withheld=Withheld(), firsts={"n": DAY})
    assert said is None


LATER = DAY.replace(year=2027)


def notice(basis: Basis, outcome: str = "answered", more: int = 0, **withheld: int) -> str | None:
    return answering.notice(
        basis, outcome=outcome, withheld=Withheld(**withheld), firsts={"n": DAY}, more=more
    )


def test_a_notice_says_what_was_clamped_missing_or_left_out() -> None:
    said = notice(basis(known_at=LATER, known_at_said=True), unembedded=3, more=2)
    assert said == (
        "Nothing was recorded between 2026-07-24 and 2027-07-24; answered as of the former. "
        "3 current fact(s) have no vector and no word in common with the question, so they could not be "
        "compared; fill_embeddings() computes what is missing. "
        "2 more fact(s) follow; pass after= the last id for the next page."
    )


def test_a_notice_says_that_all_is_withheld_and_that_words_alone_ranked() -> None:
    said = notice(basis(no_vector="no embedder"), "all_withheld", superseded=2, expired=1)
    assert said == (
        "Everything that matched is withheld: 2 superseded, 1 expired. "
        "Words alone ranked this answer: no embedder."
    )
    assert notice(basis(question="facts", no_vector="no embedder")) is None


def test_what_ends_at_the_head_or_was_not_asked_for_is_not_clamped() -> None:
    assert notice(basis(known_at=DAY, known_at_said=True)) is None
    assert notice(basis(known_at=LATER, known_at_said=False)) is None
    assert notice(basis(known_at=DAY, known_at_said=True, heads={"n": None})) is None


@pytest.mark.parametrize(("first", "head"), [(None, DAY), (DAY, None), (None, None), (LATER, DAY)], ids=str)
def test_where_nothing_was_ever_recorded_it_says_so(first: datetime | None, head: datetime | None) -> None:
    said = answering.notice(
        basis(heads={"n": head}), outcome="nothing_recorded", withheld=Withheld(), firsts={"n": first}
    )
    assert said == "Nothing has been recorded in namespace 'n' yet."


@pytest.mark.parametrize("head", [DAY, LATER], ids=str)
def test_where_it_was_recorded_only_later_it_says_how_to_ask(head: datetime) -> None:
    said = answering.notice(
        basis(heads={"n": head}), outcome="nothing_recorded", withheld=Withheld(), firsts={"n": DAY}
    )
    assert said == (
        "Nothing was recorded in namespace 'n' before 2026-07-24. To ask what held at 2026-07-24 as it is "
        'known today, pass valid_at="2026-07-24"; to bring a history with its own recording times, use '
        "replay()."
    )


def test_a_cosine_is_rounded_so_that_machines_agree() -> None:
    one, other = candidate("a", 0.0).vector, candidate("b", 23.07391807).vector
    assert answering.cosine(one, other) == round(answering.cosine(one, other), 6)
    assert answering.cosine(one, None) is None
