"""What ranks, by which score: words, vectors, the floor, and credit for what was superseded."""

from __future__ import annotations

import pytest

from supersede import FactStore, InvalidInput


def decided(store: FactStore) -> None:
    store.replay(
        [
            {
                "op": "remember",
                "recorded_at": "2020-01-01",
                "ref": "first",
                "claim": "Lucene indexes documents nightly",
            },
            {
                "op": "supersede",
                "recorded_at": "2021-01-01",
                "old": ["first"],
                "ref": "second",
                "claim": "Postgres covers everything",
            },
            {
                "op": "supersede",
                "recorded_at": "2022-01-01",
                "old": ["second"],
                "ref": "third",
                "claim": "Meilisearch took over",
            },
        ]
    )


QUESTION = "Lucene indexes documents nightly"


def test_yesterdays_words_find_todays_fact(vector_store: FactStore) -> None:
    decided(vector_store)
    answer = vector_store.ask(QUESTION)
    (fact,) = answer.facts
    assert (fact.ref, fact.via.ref) == ("third", "first")
    assert fact.score == pytest.approx(0.9 * 1.0, abs=1e-3)
    assert fact.similarity < 0.5
    assert answer.withheld.superseded == 1, "credit is for what is current; the second one never matched"


def test_an_edge_gives_no_credit_before_it_was_recorded(vector_store: FactStore) -> None:
    decided(vector_store)
    answer = vector_store.ask(QUESTION, as_of="2021-06-01")
    assert [(fact.ref, fact.via.ref) for fact in answer.facts] == [("second", "first")]
    early = vector_store.ask(QUESTION, as_of="2020-06-01")
    assert [(fact.ref, fact.via) for fact in early.facts] == [("first", None)]


def test_credit_can_be_switched_off_and_is_part_of_the_basis(vector_store: FactStore) -> None:
    decided(vector_store)
    answer = vector_store.ask(QUESTION, lineage_credit=0, explain=True)
    assert [fact.ref for fact in answer.facts if fact.via] == []
    assert "third" not in [fact.ref for fact in answer.facts]
    assert vector_store.ask(basis=answer.basis) == answer
    with pytest.raises(InvalidInput, match="lineage_credit"):
        vector_store.ask(QUESTION, lineage_credit=2)


def test_a_fact_that_fits_better_itself_names_no_other(vector_store: FactStore) -> None:
    decided(vector_store)
    (fact,) = vector_store.ask("Meilisearch took over").facts
    assert (fact.ref, fact.via) == ("third", None)


def test_an_amendment_gives_no_credit(vector_store: FactStore) -> None:
    vector_store.remember("Lucene indexes documents nightly", ref="base")
    vector_store.amend("base", "Weekends are free", ref="note")
    assert [fact.ref for fact in vector_store.ask(QUESTION).facts] == ["base"]


def test_a_question_whose_every_word_is_found_beats_the_floor(vector_store: FactStore) -> None:
    claim = "the nightly job copies twenty tables of orders into the archive for audit"
    vector_store.remember(claim, ref="job")
    assert vector_store.ask("archive", min_similarity=0.9).facts[0].ref == "job"
    assert vector_store.ask("archive lawnmower", min_similarity=0.9).outcome == "nothing_matched"


def test_facts_below_the_trust_asked_for_are_counted(vector_store: FactStore) -> None:
    vector_store.remember("Kafka carries the events", trust="summary", ref="low")
    vector_store.remember("Kafka carries all the orders", trust="verbatim", ref="high")
    answer = vector_store.ask("Kafka carries", min_trust="extracted", explain=True)
    assert [fact.ref for fact in answer.facts] == ["high"]
    assert [(fact.ref, fact.reason) for fact in answer.withheld_facts] == [("low", "below_trust")]
    listed = vector_store.facts(min_trust="extracted")
    assert ([fact.ref for fact in listed.facts], listed.withheld.below_trust) == (["high"], 1)


def test_where_looks_into_the_data_of_a_fact(vector_store: FactStore) -> None:
    vector_store.remember("Kafka carries the events", data={"team": "core", "tags": ["a", "b"]}, ref="core")
    vector_store.remember("Kafka carries the orders", data={"team": "shop"}, ref="shop")
    assert [fact.ref for fact in vector_store.ask("Kafka", where={"team": "shop"}).facts] == ["shop"]
    assert [fact.ref for fact in vector_store.facts(where={"tags": ["b"]}).facts] == ["core"]
    with pytest.raises(InvalidInput, match="author' = 'x"):
        vector_store.facts(**{"author' = 'x": "y"})


def test_a_long_chain_is_walked_once_and_not_from_each_of_its_links(vector_store: FactStore) -> None:
    vector_store.declare_predicate("price", cardinality="one")
    values = [
        {
            "claim": f"it costs {n} dollars",
            "subject": "x",
            "predicate": "price",
            "object": str(n),
            "valid_from": f"{1900 + n // 12}-{1 + n % 12:02d}-01",
        }
        for n in range(300)
    ]
    vector_store.remember_many([{**values[0], "claim": "Tariff zero"}])
    vector_store.remember_many(values[1:])
    answer = vector_store.ask("Tariff zero")
    (fact,) = answer.facts
    assert (fact.claim, fact.via is not None) == ("it costs 299 dollars", True)
    with vector_store._engine.connect() as connection:
        pairs = connection.exec_driver_sql("select count(*) from supersede.supersedes").scalar_one()
    assert pairs == 299


@pytest.mark.parametrize("question", ["who?", "what is it", "the"])
def test_a_question_of_stop_words_alone_matches_no_words(store: FactStore, question: str) -> None:
    store.remember("Kafka carries the events")
    answer = store.ask(question)
    assert (answer.outcome, answer.facts) == ("nothing_matched", ())
