"""Erasing: the content goes from everywhere, the shape stays, and answers say what is missing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from databases import Dump, dump, execute, query, set_clock
from fakes import BagOfWords
from supersede import (
    NO_START,
    Answer,
    AsyncFactStore,
    Conflict,
    Erased,
    FactNotFound,
    FactStore,
    InvalidInput,
)
from supersede.facts import vector_text
from supersede.results import Recorded

WHY = "asked for by law, case 7"
SECRETS = [
    *("quaggaclaim", "quaggasubject", "quaggaobject", "quaggadata", "quaggaref", "quaggasource"),
    *("quagganote", "quaggahandle", "quaggaother", "quaggacontested"),
]


def quagga(store: FactStore) -> Recorded:
    """A fact that has everything a fact can have, each with a word of its own."""
    return store.remember(
        "The quaggaclaim is striped",
        ref="quaggaref/1",
        subject="Quaggasubject",
        predicate="coat",
        object="Quaggaobject",
        data={"found": ["quaggadata"]},
        valid_from="2020-01-01",
        sources=["https://quaggasource.example/1"],
        handle="quaggahandle/1",
        note="quagganote one",
    )


def chain(store: FactStore) -> tuple[Recorded, Recorded, Recorded]:
    """A superseded by B superseded by C, whose words have nothing in common."""
    a = store.remember("Apples ripen first", ref="a", valid_from="2020-01-01")
    b = store.supersede("a", "Berries ripen first", ref="b", valid_from="2021-01-01")
    c = store.supersede("b", "Cherries ripen first", ref="c", valid_from="2022-01-01")
    return a, b, c


def reasons(answer: Answer) -> dict[str, str]:
    return {fact.id: fact.reason for fact in answer.withheld_facts}


def claims(answer: Answer) -> list[str]:
    return [fact.claim for fact in answer.facts]


# --- what goes and what stays


def test_the_content_goes_from_every_table_and_the_shape_stays(
    vector_store: FactStore, vector_database: str
) -> None:
    store = vector_store
    store.declare_predicate("coat", cardinality="one")
    made = quagga(store)
    store.cite(made, sources=["https://quaggasource.example/2"], note="quagganote two")
    other = store.remember("Nothing to see", ref="other", note="kept")
    heir = store.supersede(
        made,
        "It is brown",
        ref="heir",
        reason="refinement",
        valid_from="2022-01-01",
        object="brown",
        note="quaggaother",
    )
    store.end(made, at="2021-06-01", note="quagganote three")
    execute(
        vector_database,
        f"insert into supersede.contested values ('default', '{made.id}', '{other.id}', "
        f"'{made.stamp.isoformat()}', 'quaggacontested')",
    )
    vector = json.dumps(query(vector_database, "select vector::text from supersede.embedding")[0][0])
    before = dump(vector_database)
    slots = {row["slot_key"] for row in before["fact_version"]} - {None}
    assert all(secret in json.dumps(before).lower() for secret in SECRETS)
    assert vector in json.dumps(before)
    assert slots

    store.erase(made, note=WHY)

    after = dump(vector_database)
    text = json.dumps(after).lower()
    # What the heir took over when it refined the fact is its own.
    heirs_own = {"quaggasubject", "quaggasource"}
    assert [secret for secret in SECRETS if secret in text and secret not in heirs_own] == []
    assert vector not in text
    (row,) = [row for row in after["fact"] if row["fact_id"] == made.id]
    assert {key for key, value in row.items() if value is not None} == {
        *("namespace", "fact_id", "stamp", "kind", "trust", "asserted_at")
    }
    assert not [
        r for r in after["fact_version"] if r["fact_id"] == made.id and (r["slot_key"] or r["is_open"])
    ]
    for table in ("fact_ref", "evidence", "embedding"):
        gone = [row for row in before[table] if row["fact_id"] == made.id]
        assert gone
        assert after[table] == [row for row in before[table] if row not in gone]
    assert after["supersedes"] == before["supersedes"]
    assert versions(after) == versions(before)
    assert operations(after)[:-1] == operations(before)
    assert store.get(heir).id == heir.id


def versions(rows: Dump) -> list[str]:
    return sorted(row["version_id"] for row in rows["fact_version"])


def operations(rows: Dump) -> list[tuple[str, str]]:
    return sorted((row["stamp"], row["verb"]) for row in rows["operation"])


def test_no_hash_without_the_key_is_left(store: FactStore, database: str) -> None:
    """A guess at the claim, at the ref or at the whole event can be tested against nothing."""
    store.declare_predicate("coat", cardinality="one")
    made = quagga(store)
    heir = store.supersede("quaggaref/1", "It is brown", object="brown", valid_from="2022-01-01")
    digests = {
        row["digest"] for row in dump(database)["operation"] if row["verb"] in ("remember", "supersede")
    }
    (slot,) = {row["slot_key"] for row in dump(database)["fact_version"] if row["fact_id"] == made.id}
    (value,) = {row["value_key"] for row in dump(database)["fact"] if row["fact_id"] == made.id}
    store.erase(made, note=WHY)
    store.retract(heir)
    left = json.dumps({k: v for k, v in dump(database).items() if k != "secret"})
    assert not [digest for digest in digests if digest in left]
    assert value not in left
    assert hashlib.sha256(b"the quaggaclaim is striped").hexdigest() not in left
    own = [row["slot_key"] for row in dump(database)["fact_version"] if row["fact_id"] == made.id]
    assert own
    assert slot not in own


def test_what_others_inherited_from_it_is_theirs(store: FactStore) -> None:
    quagga(store)
    heir = store.supersede("quaggaref/1", "It was striped", reason="refinement", ref="heir")
    store.erase("quaggaref/1", note=WHY)
    assert store.get(heir).sources == ("https://quaggasource.example/1",)
    (edge,) = store.get(heir).supersedes
    assert (edge.ref, edge.source, edge.reason) == (None, None, "refinement")


def test_the_ledger_keeps_what_is_no_content(store: FactStore, database: str) -> None:
    made = quagga(store)
    store.remember("Another", ref="another")
    store.supersede(
        ["another", "quaggaref/1"], "Both in one", ref="both", note="quagganote", valid_from="2022-01-01"
    )
    store.retract("quaggaref/1", note="quagganote", give_back=True)
    erased = store.erase("quaggaref/1", note=WHY)
    rows = {row["stamp"]: row for row in dump(database)["operation"]}
    remembered, _, superseded, retracted, erasure = (rows[stamp] for stamp in sorted(rows))
    assert remembered["event"] == {"op": "remember", "erased": True, "valid_from": "2020-01-01T00:00:00Z"}
    assert remembered["handle"] is None
    assert superseded["event"] == {
        "op": "supersede",
        "old": ["another", made.id],
        "claim": "Both in one",
        "ref": "both",
        "valid_from": "2022-01-01T00:00:00Z",
    }
    assert {cut["ref"] for cut in superseded["result"]["supersedes"]} == {"another", made.id}
    assert superseded["handle"] == "both"
    assert retracted["event"] == {"op": "retract", "erased": True, "ref": made.id, "give_back": True}
    assert {row["note"] for row in (remembered, superseded, retracted)} == {None}
    assert erasure["event"] == {"op": "erase", "ref": made.id, "note": WHY}
    assert erasure["note"] == WHY
    assert erased.id == made.id


def test_a_claim_that_reads_like_a_name_of_it_stays(store: FactStore, database: str) -> None:
    """Only what names the fact gives way to its id."""
    store.remember("First", ref="striped")
    other = store.supersede(
        "striped", "striped", subject="striped", data={"ref": "striped", "old": ["striped"]}, ref="other"
    )
    old = store.erase("striped", note=WHY)
    assert store.get(other).data == {"ref": "striped", "old": ["striped"]}
    events = [row["event"] for row in dump(database)["operation"] if row["verb"] == "supersede"]
    assert events == [
        {
            "op": "supersede",
            "old": [old.id],
            "claim": "striped",
            "subject": "striped",
            "data": {"ref": "striped", "old": ["striped"]},
            "ref": "other",
        }
    ]


@pytest.mark.parametrize("handle", [None, "said"])
def test_a_retry_of_anothers_operation_is_still_known(store: FactStore, handle: str | None) -> None:
    def supersede() -> Recorded:
        return store.supersede("quaggaref/1", "It is brown", ref="heir", handle=handle)

    quagga(store)
    first = supersede()
    store.erase("quaggaref/1", note=WHY)
    again = supersede()
    assert again.repeated
    assert again.id == first.id


def test_the_note_of_a_restatement_goes_too(store: FactStore, database: str) -> None:
    """It was about another fact, and gave this one a source."""
    store.declare_predicate("coat", cardinality="one")
    made = quagga(store)
    store.end(made, at="2021-01-01")
    said = {"subject": "Quaggasubject", "predicate": "coat", "object": "Quaggaobject"}
    other = store.remember("Another", sources=["s"], note="like quagganote", valid_from="2020-01-01", **said)
    assert other.created
    assert "s" in store.get(made).sources
    store.erase(made, note=WHY)
    assert "quagganote" not in json.dumps(dump(database))
    assert store.get(other).sources == ("s",)


def test_a_replayed_erasure_destroys_now(store: FactStore, database: str) -> None:
    store.replay(
        [
            {"op": "remember", "recorded_at": "2020-01-01", "ref": "quaggaref", "claim": "quaggaclaim"},
            {"op": "erase", "recorded_at": "2021-01-01", "ref": "quaggaref", "note": WHY},
        ]
    )
    assert "quagga" not in json.dumps(dump(database))
    assert store.facts(as_of="2020-06-01").withheld.nonzero() == {"erased": 1}
    with pytest.raises(Erased, match="2021-01-01"):
        store.remember("quaggaclaim")


def test_a_replayed_history_of_others_is_still_known(store: FactStore, database: str) -> None:
    """A handle that is a hash of the event gets the key, and is found."""
    history = [
        {"op": "remember", "recorded_at": "2020-01-01", "ref": "a", "claim": "apples"},
        {"op": "supersede", "recorded_at": "2021-01-01", "old": ["a"], "claim": "berries"},
        {"op": "remember", "recorded_at": "2022-01-01", "claim": "cherries"},
    ]
    store.replay(history)
    before = {row["stamp"]: row["handle"] for row in dump(database)["operation"]}
    store.erase("a", note=WHY)
    after = {row["stamp"]: row["handle"] for row in dump(database)["operation"]}
    changed = [after[stamp] for stamp in before if after[stamp] != before[stamp]]
    assert [handle and handle[:2] for handle in changed] == [None, "k:"]
    assert [done.repeated for done in store.replay(history[1:])] == [True, True]


def test_erasing_two_facts_of_one_operation(store: FactStore) -> None:
    quagga(store)
    store.remember("Another", ref="another")

    def supersede() -> Recorded:
        return store.supersede(["another", "quaggaref/1"], "Both in one", ref="both")

    supersede()
    store.erase("quaggaref/1", note=WHY)
    store.erase("another", note=WHY)
    assert supersede().repeated


def test_the_certificate_says_what_went_and_what_is_out_of_reach(store: FactStore, database: str) -> None:
    made = quagga(store)
    store.cite(made, sources=["https://quaggasource.example/2"])
    done = store.erase(made, note=WHY)
    assert done.verb == "erase"
    assert [(str(p)) for p in done.taken] == ["2020-01-01 –"]
    certificate = done.certificate
    assert certificate is not None
    assert (certificate.namespace, certificate.fact_id) == ("default", made.id)
    assert certificate.erased_at == done.stamp
    assert query(database, "select digest from supersede.erasure") == [(certificate.digest,)]
    assert {kind: n for kind, n in certificate.destroyed.items() if n} == {
        **{"claims": 1, "refs": 1, "evidence": 2, "events": 2, "notes": 1}
    }
    assert all(sentence.endswith(".") for sentence in certificate.remains)
    for word in ("scrub", "log", "replica", "Backups", "prompts"):
        assert any(word in sentence for sentence in certificate.remains)


def test_a_fact_that_is_not_believed_is_erased_too(store: FactStore) -> None:
    made = quagga(store)
    store.retract(made)
    assert store.erase(made, note=WHY).taken == ()
    assert store.facts(explain=True).withheld.nonzero() == {"retracted": 1}


def test_its_ref_may_name_another_fact_afterwards(store: FactStore) -> None:
    made = quagga(store)
    store.erase("quaggaref/1", note=WHY)
    with pytest.raises(FactNotFound):
        store.get("quaggaref/1")
    other = store.remember("Something else", ref="quaggaref/1")
    assert store.get("quaggaref/1").id == other.id != made.id


# --- what comes again


Record = Callable[[FactStore, dict[str, Any]], Any]
ROADS: dict[str, Record] = {
    "remember": lambda store, said: store.remember(**said),
    "remember_many": lambda store, said: store.remember_many([said]),
    "supersede": lambda store, said: store.supersede("port", **said),
    "amend": lambda store, said: store.amend("port", **said),
    "replay": lambda store, said: store.replay([{"op": "remember", "recorded_at": "2999-01-01", **said}]),
    "transaction": lambda store, said: _in_transaction(store, said),
}


def _in_transaction(store: FactStore, said: dict[str, Any]) -> None:
    with store.transaction() as transaction:
        transaction.remember("Something before")
        transaction.remember(**said)


SAME = [
    {"claim": "  The QUAGGAclaim is\tstriped"},
    {"claim": "Another", "subject": "quaggasubject", "predicate": "Coat", "object": "quaggaOBJECT"},
]


@pytest.mark.parametrize("road", ROADS)
def test_the_same_is_recorded_on_no_road(
    store: FactStore, database: str, frozen_clock: str, road: str
) -> None:
    """Neither the claim, nor its subject, predicate and object in another claim."""
    del frozen_clock
    store.remember("The port is 5432", ref="port", valid_from="2020-01-01")
    made = quagga(store)
    store.erase(made, note=WHY)
    if road == "replay":
        set_clock(database, "2999-01-02T00:00:00Z")
    before = dump(database)
    for said in SAME:
        with pytest.raises(Erased, match="lift_erasure") as failure:
            ROADS[road](store, said)
        assert failure.value.details["fact"] == made.id
        assert made.id in failure.value.message
        assert failure.value.details["erased_at"] in failure.value.message
    assert dump(database) == before


def test_what_says_something_else_is_recorded(store: FactStore, database: str) -> None:
    store.erase(quagga(store), note=WHY)
    store.remember("The quaggaclaim is not striped")
    store.remember("Its coat", subject="Quaggasubject", predicate="coat")
    store.remember("Its coat is brown", subject="Quaggasubject", predicate="coat", object="brown")
    with FactStore.open(database, namespace="elsewhere") as elsewhere:
        quagga(elsewhere)


def test_a_value_held_by_another_fact_does_not_let_the_claim_back_in(store: FactStore, database: str) -> None:
    """No new fact would come of it, and yet the ledger would hold the claim."""
    store.declare_predicate("coat", cardinality="one")
    made = quagga(store)
    store.end(made, at="2021-01-01")
    said = {"subject": "Quaggasubject", "predicate": "coat", "object": "Quaggaobject"}
    store.remember("Another wording", valid_from="2021-01-01", **said)
    store.erase(made, note=WHY)
    with pytest.raises(Erased):
        store.remember("The quaggaclaim is striped", valid_from="2022-01-01", **said)
    assert "quaggaclaim" not in json.dumps(dump(database)).lower()


def test_lifting_lets_the_same_be_recorded_anew(store: FactStore) -> None:
    made = quagga(store)
    store.erase(made, note=WHY)
    lifted = store.lift_erasure(made.id, note="consent was given")
    assert (lifted.verb, lifted.id, lifted.certificate) == ("lift_erasure", made.id, None)
    again = quagga(store)
    assert again.created
    assert again.id != made.id
    with pytest.raises(Erased):
        store.get(made.id)
    with pytest.raises(Erased):
        store.cite(made.id, sources=["x"])
    store.erase(again, note=WHY)
    with pytest.raises(Erased, match=again.id):
        quagga(store)


def test_what_cannot_be_lifted(store: FactStore, database: str) -> None:
    made = quagga(store)
    other = store.remember("Another", ref="another")
    store.erase(made, note=WHY)
    store.lift_erasure(made.id, note="once")
    before = dump(database)
    for fact, message in ((made.id, "lifted already"), (other.id, "not erased"), ("another", "not erased")):
        with pytest.raises(InvalidInput, match=message):
            store.lift_erasure(fact, note="twice")
    with pytest.raises(FactNotFound):
        store.lift_erasure("nobody", note="twice")
    assert dump(database) == before


def test_a_reason_is_needed(store: FactStore, database: str) -> None:
    quagga(store)
    for note in ("", "  ", None):
        with pytest.raises(InvalidInput, match="note"):
            store.erase("quaggaref/1", note=note)  # type: ignore[arg-type]
    for event in ({"ref": "quaggaref/1"}, {"ref": "quaggaref/1", "note": " \t"}):
        with psycopg.connect(database) as connection, pytest.raises(psycopg.Error, match="needs a note"):
            connection.execute("select supersede.erase(%s)", [json.dumps(event)])
    assert store.get("quaggaref/1").claim


# --- what names it


CALLS: dict[str, Callable[[FactStore, str], Any]] = {
    "supersede": lambda s, f: s.supersede(f, "new"),
    "link": lambda s, f: s.supersede(["port", f], "new", if_not_current="link"),
    "supersede by": lambda s, f: s.supersede("port", by=f),
    "amend": lambda s, f: s.amend(f, "new"),
    "amend by": lambda s, f: s.amend("port", by=f),
    "end": lambda s, f: s.end(f),
    "retract": lambda s, f: s.retract(f),
    "reinstate": lambda s, f: s.reinstate(f),
    "reinstate over": lambda s, f: s.reinstate(f, valid_from=NO_START, valid_to="2030-01-01"),
    "cite": lambda s, f: s.cite(f, sources=["x"]),
    "erase": lambda s, f: s.erase(f, note="again"),
    "get": lambda s, f: s.get(f),
}


def test_no_verb_acts_on_it(store: FactStore, database: str) -> None:
    store.remember("The port is 5432", ref="port")
    made = quagga(store)
    store.erase(made, note=WHY)
    before = dump(database)
    raised = {}
    for name, call in CALLS.items():
        try:
            call(store, made.id)
        except Erased as error:
            raised[name] = error.details["fact"]
    assert raised == dict.fromkeys(CALLS, made.id)
    assert dump(database) == before


def test_the_same_call_again_returns_its_certificate(store: FactStore, database: str) -> None:
    quagga(store)
    first = store.erase("quaggaref/1", note=WHY, handle="case 7")
    before = dump(database)
    again = store.erase("quaggaref/1", note=WHY, handle="case 7")
    assert again.repeated
    assert again.certificate == first.certificate
    assert dump(database) == before


def test_in_sql_alone(store: FactStore, database: str) -> None:
    made = quagga(store)
    with psycopg.connect(database) as connection:
        event = json.dumps({"ref": "quaggaref/1", "note": WHY})
        (result,) = connection.execute("select supersede.erase(%s)", [event]).fetchone() or ()
        connection.commit()
        assert result["certificate"]["fact_id"] == made.id
        assert len(result["certificate"]["remains"]) == 6
        with pytest.raises(psycopg.Error) as failure:
            connection.execute("select supersede.erase(%s)", [json.dumps({"ref": made.id, "note": WHY})])
        assert failure.value.sqlstate == Erased.sqlstate == "SU018"
        connection.rollback()
        event = json.dumps({"ref": made.id, "note": "consent"})
        connection.execute("select supersede.lift_erasure(%s)", [event])
    assert quagga(store).created


def test_nothing_is_given_back_to_it(store: FactStore) -> None:
    """A successor that is retracted gives its other olds their validity."""
    a = store.remember("Apples", ref="a", valid_from="2020-01-01")
    store.remember("Berries", ref="b", valid_from="2020-01-01")
    store.supersede(["a", "b"], "Cherries", ref="c", valid_from="2021-01-01")
    store.erase("a", note=WHY)
    done = store.retract("c", give_back=True)
    assert [given.ref for given in done.given_back] == ["b"]
    assert claims(store.facts()) == ["Berries"]
    assert a.id not in [fact.id for fact in store.facts(valid_at="2020-06-01").facts]


def test_a_decision_about_its_slot_is_decided_again(store: FactStore) -> None:
    """Which slot it held is destroyed with it, so every slot counts as moved."""
    store.declare_predicate("coat", cardinality="one")
    made = quagga(store)
    basis = store.facts().basis
    store.erase(made, note=WHY)
    said = {"subject": "Quaggasubject", "predicate": "coat", "object": "brown"}
    with pytest.raises(Conflict):
        store.remember("It is brown", based_on=basis, **said)
    assert store.remember("It is brown", based_on=store.facts().basis, **said).created


def test_its_slot_is_free(store: FactStore) -> None:
    store.declare_predicate("coat", cardinality="one")
    store.erase(quagga(store), note=WHY)
    made = store.remember(
        "It is brown", subject="Quaggasubject", predicate="coat", object="brown", valid_from="2020-01-01"
    )
    assert made.supersedes == ()


# --- vectors


def test_it_is_never_embedded_again(vector_store: FactStore, vector_database: str) -> None:
    """Neither later, nor by a writer who had read its claim before."""
    made = quagga(vector_store)
    other = vector_store.remember("Another")
    vector = vector_text(BagOfWords().embed(["The quaggaclaim is striped"])[0])
    vector_store.erase(made, note=WHY)
    execute(vector_database, "delete from supersede.embedding")
    assert vector_store.fill_embeddings() == 1
    execute(vector_database, "delete from supersede.embedding")
    (filled,) = query(
        vector_database,
        "select supersede.fill_embeddings('default', 1::smallint, array[%s, %s]::uuid[], "
        "array[%s, %s]::text[]::halfvec[], array[false, false])",
        *(made.id, other.id, vector, vector),
    )
    assert filled == (1,)
    assert [row["fact_id"] for row in dump(vector_database)["embedding"]] == [other.id]


def test_a_transaction_may_erase_what_it_made(vector_store: FactStore, vector_database: str) -> None:
    with vector_store.transaction() as transaction:
        made = transaction.remember("The quaggaclaim is striped")
        transaction.remember("Another")
        transaction.erase(made, note=WHY)
    assert "quaggaclaim" not in json.dumps(dump(vector_database)).lower()
    assert len(dump(vector_database)["embedding"]) == 1


# --- reads


def test_a_past_answer_counts_it(vector_store: FactStore) -> None:
    store = vector_store
    made = quagga(store)
    store.remember("Rain fell", valid_from="2020-01-01")
    before = store.ask("which coat is striped?", explain=True)
    head = before.basis.heads["default"]
    assert head is not None
    store.erase(made, note=WHY)
    asked = store.ask("which coat is striped?", known_at=head, explain=True)
    assert asked.withheld.nonzero() == {"erased": 1}
    (withheld,) = asked.withheld_facts
    assert (withheld.id, withheld.claim, withheld.ref, withheld.reason) == (made.id, None, None, "erased")
    assert asked.outcome == "all_withheld"
    assert store.ask("which coat is striped?").withheld.nonzero() == {}
    assert store.ask("which coat is striped?", valid_at="2019-01-01", known_at=head).withheld.nonzero() == {}


@pytest.mark.parametrize(
    ("filters", "counted"),
    [
        ({"kind": "fact"}, 1),
        ({"kind": "other"}, 0),
        ({"subject": "Quaggasubject"}, 0),
        ({"predicate": "coat"}, 0),
        ({"object": "Quaggaobject"}, 0),
        ({"where": {}}, 0),
        ({"min_trust": "verbatim"}, 1),
    ],
)
def test_filters_on_what_was_destroyed_match_nothing(
    vector_store: FactStore, filters: dict[str, Any], counted: int
) -> None:
    made = quagga(vector_store)
    vector_store.erase(made, note=WHY)
    for answer in (
        vector_store.ask("stripes", known_at=made.stamp, **filters),
        vector_store.facts(known_at=made.stamp, **filters),
    ):
        assert answer.withheld.erased == counted
        assert answer.withheld.unembedded == 0
        assert answer.facts == ()


def test_shown_and_withheld_are_what_was_known(store: FactStore) -> None:
    a, b, _ = chain(store)
    ended = store.remember("Damsons ripen first", ref="d", valid_from="2020-01-01")
    store.end("d", at="2021-01-01")
    for fact in (b.id, ended.id):
        store.erase(fact, note=WHY)
    for point, expected in (
        ({}, {a.id: "superseded", b.id: "superseded", ended.id: "expired"}),
        ({"valid_at": "2021-06-01"}, {a.id: "superseded", b.id: "erased", ended.id: "expired"}),
        ({"valid_at": "2020-06-01"}, {b.id: "not_yet_valid", ended.id: "erased"}),
        ({"valid_at": "2021-06-01", "known_at": b.stamp}, {a.id: "superseded", b.id: "erased"}),
        ({"valid_at": "2021-06-01", "known_at": a.stamp}, {}),
    ):
        answer = store.facts(**point, explain=True)
        withheld = reasons(answer)
        assert {key: reason for key, reason in withheld.items() if key in expected} == expected
        known = 4 if not point.get("known_at") else {b.stamp: 2, a.stamp: 1}[point["known_at"]]
        assert len(answer.facts) + answer.withheld.total == known


def test_an_erased_link_of_a_chain(vector_store: FactStore) -> None:
    """Credit, lineage and history go through it; nothing of it is said."""
    store = vector_store
    a, b, c = chain(store)
    store.erase(b, note=WHY)
    asked = store.ask("apples", explain=True)
    (found,) = asked.facts
    assert found.id == c.id
    assert found.via is not None
    assert found.via.id == a.id
    assert [(edge.id, edge.ref) for edge in found.supersedes] == [(b.id, None)]
    (withheld,) = [fact for fact in asked.withheld_facts if fact.id == a.id]
    assert [(edge.id, edge.ref, edge.reason) for edge in withheld.superseded_by] == [(b.id, None, "change")]
    assert asked.withheld.nonzero() == {"superseded": 1}
    lineage = store.lineage("c")
    assert [(fact.id, fact.claim, fact.depth) for fact in lineage.ancestors] == [
        (b.id, None, 1),
        (a.id, "Apples ripen first", 2),
    ]
    assert lineage.erased is None
    own = store.lineage(b.id)
    assert own.erased is not None
    assert own.fact.claim == ""
    assert [fact.id for fact in (*own.ancestors, *own.descendants)] == [a.id, c.id]
    history = store.history(b.id)
    assert history.erased == own.erased
    assert (history.fact.claim, history.evidence) == ("", ())
    assert [version.closed_by for version in history.versions] == ["supersede", "erase"]
    assert [edge.id for edge in (*history.supersedes, *history.superseded_by)] == [a.id, c.id]
    changes = {change.id: change for change in store.diff(a.stamp).changes}
    assert b.id not in changes  # believed neither before nor now
    changes = {change.id: change for change in store.diff(c.stamp).changes}
    assert changes[b.id].claim is None
    assert [str(period) for period in changes[b.id].lost] == ["2021-01-01 – 2022-01-01"]


def test_sql_never_returns_it(store: FactStore, database: str) -> None:
    made = quagga(store)
    other = store.remember("Another", valid_from="2020-01-01")
    basis = store.facts().basis
    rows = "select fact_id::text from supersede.facts_on(%s)"
    assert len(query(database, rows, basis.model_dump_json())) == 2
    store.erase(made, note=WHY)
    assert query(database, rows, basis.model_dump_json()) == [(other.id,)]
    known = "select fact_id::text from supersede.facts_as_of(%s, %s)"
    assert query(database, known, "2026-01-01", basis.known_at) == [(other.id,)]


def test_a_page_goes_on_behind_an_erased_fact(store: FactStore) -> None:
    made = [store.remember(f"Fact {n}", valid_from=f"202{n}-01-01") for n in range(5)]
    page = store.facts(limit=2, after=made[1])
    assert claims(page) == ["Fact 2", "Fact 3"]
    store.erase(made[1], note=WHY)
    again = store.facts(basis=page.basis)
    assert claims(again) == ["Fact 2", "Fact 3"]
    assert store.verify(page).outcome == "erased"


def test_a_duplicate_moves_up_into_the_place_of_the_shown_one(vector_store: FactStore) -> None:
    store = vector_store
    shown = store.remember("The harbour opens at nine", trust="verbatim", valid_from="2020-01-01")
    echo = store.remember("the harbour  opens at nine", ref="echo", valid_from="2020-01-01")
    store.remember("The museum closes at five", valid_from="2020-01-01")
    answer = store.ask("when does the harbour open", min_similarity=0.1)
    assert answer.facts[0].id == shown.id
    store.erase(shown, note=WHY)
    again = store.ask(basis=answer.basis)
    assert again.facts[0].id == echo.id
    assert again.withheld.nonzero() == {"erased": 1}
    assert store.verify(answer).outcome == "erased"


def test_an_erased_duplicate_is_no_longer_named(vector_store: FactStore) -> None:
    store = vector_store
    shown = store.remember("The harbour opens at nine", trust="verbatim", valid_from="2020-01-01")
    echo = store.remember("the harbour  opens at nine", ref="echo", valid_from="2020-01-01")
    answer = store.ask("when does the harbour open", min_similarity=0.1)
    assert [other.id for other in answer.facts[0].restated] == [echo.id]
    store.erase(echo, note=WHY)
    again = store.ask(basis=answer.basis)
    assert (again.facts[0].id, again.facts[0].restated) == (shown.id, ())
    assert store.verify(answer).outcome == "erased"


# --- verify


def test_verify_tells_an_erasure_from_a_change(store: FactStore, database: str) -> None:
    made = quagga(store)
    other = store.remember("The port is 5432", ref="port", valid_from="2020-01-01")
    both, port, none = store.facts(), store.ask("port"), store.facts(valid_at="2019-01-01")
    store.erase(made, note=WHY)
    verified = store.verify(both)
    assert verified.outcome == "erased"
    assert "facts" in verified.differences
    assert store.verify(port).outcome == "erased"  # it counts what was current
    assert store.verify(none).outcome == "equal"
    execute(database, f"update supersede.fact set claim = 'forged' where fact_id = '{other.id}'")
    assert store.verify(both).outcome == "different"
    assert store.verify(port).outcome == "different"


def test_an_answer_that_never_saw_it_is_not_excused_by_it(store: FactStore, database: str) -> None:
    other = store.remember("The port is 5432", ref="port", valid_from="2020-01-01")
    answer = store.facts()
    store.erase(quagga(store), note=WHY)
    assert store.verify(answer).outcome == "equal"
    execute(database, f"update supersede.fact set claim = 'forged' where fact_id = '{other.id}'")
    assert store.verify(answer).outcome == "different"


def test_credit_of_an_erased_ancestor_is_gone(vector_store: FactStore) -> None:
    store = vector_store
    a, _, c = chain(store)
    answer = store.ask("apples")
    assert answer.facts[0].id == c.id
    store.erase(a, note=WHY)
    assert store.verify(answer).outcome == "erased"


# --- replay, concurrency, histories at random


def test_a_history_that_holds_what_was_erased_is_refused_with_its_position(
    store: FactStore, database: str
) -> None:
    store.erase(quagga(store), note=WHY)
    before = dump(database)
    now = query(database, "select supersede.iso(supersede.clock())")[0][0]
    history = [
        {"op": "remember", "recorded_at": now, "claim": "One"},
        {"op": "remember", "recorded_at": now, "claim": "The quaggaclaim is striped"},
    ]
    with pytest.raises(Erased, match=r"^event 2 ") as failure:
        store.replay(history)
    assert failure.value.details["position"] == 2
    assert dump(database) == before


@pytest.mark.parametrize("first", ["erase", "supersede"])
def test_erase_against_supersede(database: str, first: str) -> None:
    """The one that locks first wins: after an erasure there is nothing to supersede, and what superseded it
    stays."""
    with FactStore.open(database) as one, FactStore.open(database) as two:
        made = one.remember("The quaggaclaim is striped", ref="q", valid_from="2020-01-01")
        outcome: list[Any] = []

        def second() -> None:
            try:
                if first == "erase":
                    outcome.append(two.supersede(made, "It is brown"))
                else:
                    outcome.append(two.erase(made, note=WHY))
            except Exception as error:
                outcome.append(error)

        with one.transaction() as transaction:
            if first == "erase":
                transaction.erase(made, note=WHY)
            else:
                transaction.supersede(made, "It is brown", valid_from="2021-01-01")
            thread = threading.Thread(target=second)
            thread.start()
        thread.join(30)
        (end,) = outcome
        if first == "erase":
            assert isinstance(end, Erased)
            assert one.facts().facts == ()
        else:
            assert isinstance(end, Recorded)
            assert claims(one.facts()) == ["It is brown"]
            assert one.facts(valid_at="2020-06-01").withheld.nonzero() == {"erased": 1, "not_yet_valid": 1}
        assert "quaggaclaim" not in json.dumps(dump(database)).lower()


WORDS = ["apple", "berry", "cherry", "damson", "elder", "fig", "grape", "hazel"]


def grow(store: FactStore, chance: random.Random) -> list[Recorded]:
    """Facts that restate, supersede and end one another at random."""
    made: list[Recorded] = []
    for n in range(24):
        words = chance.sample(WORDS, 2)
        claim = f"The {words[0]} is near the {words[1]}" + chance.choice(["", "", f" in {n}"])
        start = f"20{chance.randint(10, 20)}-01-01"
        current = list(store.facts().facts)
        act = chance.random()
        if act < 0.45 or not current:
            made.append(store.remember(claim, valid_from=start, sources=[f"s/{n}"], ref=f"r/{n}"))
        elif act < 0.8:
            old = chance.sample(current, min(len(current), chance.choice([1, 1, 2])))
            reason = chance.choice(["change", "correction", "refinement", "duplicate"])
            made.append(store.supersede(old, claim, reason=reason, ref=f"r/{n}"))
        elif act < 0.9:
            store.end(chance.choice(current))
        else:
            store.retract(chance.choice(current), give_back=True)
    return made


@pytest.mark.parametrize("seed", range(2))
def test_answers_before_and_after_differ_by_it_alone(vector_store: FactStore, seed: int) -> None:
    store, chance = vector_store, random.Random(seed)
    made = grow(store, chance)
    stamps = [fact.stamp for fact in made]

    def point() -> dict[str, Any]:
        valid_at = f"20{chance.randint(9, 26):02}-06-01"
        return {"valid_at": valid_at} | chance.choice([{}, {"known_at": chance.choice(stamps)}])

    facts = [store.facts(**point(), explain=True) for _ in range(8)]
    asked = [
        store.ask(
            f"is the {chance.choice(WORDS)} near the {chance.choice(WORDS)}?",
            top_k=chance.choice([1, 3, 10]),
            min_similarity=chance.choice([0.1, 0.4]),
            **point(),
        )
        for _ in range(12)
    ]
    erased = {fact.id for fact in chance.sample(made, 5)}
    for fact_id in erased:
        store.erase(fact_id, note=WHY)
    for answer in facts:
        again = store.facts(basis=answer.basis)
        assert [f.id for f in again.facts] == [f.id for f in answer.facts if f.id not in erased]
        assert again.withheld.erased == sum(f.id in erased for f in answer.facts)
        assert again.withheld.total + len(again.facts) == answer.withheld.total + len(answer.facts)
        assert {f.id: f.reason for f in again.withheld_facts if f.reason != "erased"} == reasons(answer)
    for answer in (*facts, *asked):
        ask = store.ask if answer.basis.question == "ask" else store.facts
        again = ask(basis=answer.basis)
        assert not erased & {f.id for f in again.facts}
        verified = store.verify(answer)
        assert verified.outcome == ("equal" if again == answer else "erased")


# --- the other roads


def test_async(vector_database: str) -> None:
    asyncio.run(erase_and_lift(vector_database))


async def erase_and_lift(vector_database: str) -> None:
    async with await AsyncFactStore.open(vector_database, embedder=BagOfWords()) as store:
        made = await store.remember("The quaggaclaim is striped", valid_from="2020-01-01")
        answer = await store.ask("stripes of the quaggaclaim")
        done = await store.erase(made, note=WHY, handle="case 7")
        assert done.certificate is not None
        assert (await store.verify(answer)).outcome == "erased"
        with pytest.raises(Erased):
            await store.get(made)
        await store.lift_erasure(made, note="consent")
        assert (await store.remember("The quaggaclaim is striped")).created
