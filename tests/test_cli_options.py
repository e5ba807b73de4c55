"""What commands pass on to the store beyond the plain call, and the commands that look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes import BagOfWords
from supersede import FactStore
from test_cli import Run, complaint, decisions, lines, log_as_it_was, run

__all__ = ["decisions", "log_as_it_was", "run"]  # the fixtures


def test_get_shows_all_that_was_said_of_a_fact(run: Run, decisions: FactStore) -> None:
    decisions.amend("adr/0014", "In English", ref="adr/0015", data={"pages": 3}, subject="search")
    printed = lines(run("get", "adr/0015"))
    assert printed[0].startswith("adr/0015 In English valid from ")
    assert {"kind: fact", "trust: extracted", "subject: search", 'data: {"pages": 3}'} < set(printed)
    assert "amends: adr/0014" in printed
    printed = lines(run("get", "adr/0014"))
    assert {"sources: docs/adr/0014-hybrid-retrieval.md", "amended by: adr/0015"} < set(printed)
    assert {"asserted: 2026-06-30", "supersedes: adr/0003 (change)"} < set(printed)
    found = json.loads(run("get", "adr/0014", "--json").stdout)
    assert found == decisions.get("adr/0014").model_dump(mode="json")
    assert "no fact" in complaint(run("get", "nothing", status=1))


def test_spaces_lists_models_thresholds_and_counts(
    run: Run, vector_database: str, vector_store: FactStore
) -> None:
    assert lines(run("spaces")) == ["no embedding space: words alone rank"]
    vector_store.remember("one")
    with FactStore.open(vector_database) as without:
        without.remember("two")
    printed = lines(run("spaces", "--url", vector_database))
    assert printed[0] == "fake-bag-of-words active"
    assert printed[1].startswith("64 dimensions, min-similarity ")
    assert printed[2] == "default: 1 facts with a vector, 1 without"
    (found,) = json.loads(run("spaces", "--url", vector_database, "--json").stdout)
    assert found == vector_store.embedding_spaces()[0].model_dump(mode="json")


@pytest.mark.parametrize("command", [["ask", "Retrieval"], ["facts"]])
def test_facts_are_chosen_by_their_data_and_trust(run: Run, store: FactStore, command: list[str]) -> None:
    store.remember("Retrieval A", ref="a", data={"pages": 3, "by": "x"}, trust="verbatim")
    store.remember("Retrieval B", ref="b", data={"pages": 3}, trust="summary")
    store.remember("Retrieval C", ref="c", data={"pages": 4})

    def refs(*more: str) -> tuple[set[str], int]:
        found = json.loads(run(*command, "--json", *more).stdout)
        return {fact["ref"] for fact in found["facts"]}, found["withheld"]["below_trust"]

    assert refs("--where", '{"pages": 3}') == ({"a", "b"}, 0)
    assert refs("--min-trust", "extracted") == ({"a", "c"}, 1)
    assert refs("--min-trust", "verbatim", "--where", '{"pages": 3}') == ({"a"}, 1)
    assert "--where" in complaint(run(*command, "--where", "[]", status=2))
    assert "--min-trust" in complaint(run(*command, "--min-trust", "high", status=2))


def test_a_zero_that_is_said_counts(run: Run, decisions: FactStore) -> None:
    zeros = ["--min-similarity", "0", "--lineage-credit", "0"]
    basis = json.loads(run("ask", "full-text search", "--json", *zeros, status=3).stdout)["basis"]
    assert (basis["min_similarity"], basis["lineage_credit"]) == (0.0, 0.0)
    found = json.loads(run("ask", "full-text search", "--json").stdout)
    assert [fact["ref"] for fact in found["facts"]] == ["adr/0014"]  # by the old fact's words
    assert found["basis"]["lineage_credit"] == 0.9


def test_a_write_based_on_an_answer_is_refused_where_that_has_moved(
    run: Run, decisions: FactStore, tmp_path: Path
) -> None:
    file = tmp_path / "answer.json"
    file.write_text(run("ask", "retrieval", "--json").stdout, encoding="utf-8")
    based = ["--based-on", str(file)]
    run("replace", "adr/0014", "Retrieval is a graph", "--ref", "adr/0020", *based)
    for late in (
        ["replace", "adr/0014", "Retrieval is a tree", "--valid-from", "2026-07-01"],
        ["amend", "adr/0014", "Only in English"],
        ["end", "adr/0014", "--at", "2026-07-01"],
        ["retract", "adr/0014"],
        ["reinstate", "adr/0014"],
    ):
        said = complaint(run(*late, *based, status=1))
        assert "adr/0014" in said, late
        assert "ask again" in said, late
    assert [fact.ref for fact in decisions.facts().facts] == ["adr/0020"]
    assert "no file" in complaint(run("cite", "adr/0014", "x", "--based-on", "/nowhere", status=2))


def test_undo_does_the_plan_that_was_looked_at_or_nothing(run: Run, store: FactStore, tmp_path: Path) -> None:
    run("remember", "first", "--run", "r", "--ref", "first")
    plan = tmp_path / "plan.json"
    plan.write_text(run("undo", "--run", "r", "--json").stdout, encoding="utf-8")
    run("remember", "second", "--run", "r", "--ref", "second")
    refused = run("undo", "--run", "r", "--apply", "--based-on", str(plan), status=1)
    assert "plan" in complaint(refused)
    assert len(store.facts().facts) == 2
    looked_at = run("undo", "--run", "r", "--json").stdout
    run("undo", "--run", "r", "--apply", "--based-on", "-", stdin=looked_at)
    assert store.facts().facts == ()
    for wrong in ("{}", "no JSON", "[1]"):
        plan.write_text(wrong, encoding="utf-8")
        refused = run("undo", "--run", "r", "--based-on", str(plan), status=2)
        assert "holds no plan" in complaint(refused)
    assert "cannot be read" in complaint(run("undo", "--run", "r", "--based-on", "/nowhere", status=2))


def test_export_takes_several_namespaces(run: Run, store: FactStore, tmp_path: Path) -> None:
    for namespace in ("a", "b", "c"):
        run("remember", "x", "--namespace", namespace)
    file = tmp_path / "ledger.jsonl"
    told = json.loads(run("export", str(file), "--in", "a", "--in", "c", "--json").stdout)
    assert set(told["heads"]) == {"a", "c"}


def test_versions_are_named(run: Run) -> None:
    from supersede import __version__

    assert run("--version").stdout == f"supersede {__version__}\n"


def test_a_choice_that_is_none_is_said_without_the_words_of_a_library(run: Run) -> None:
    said = complaint(run("remember", "x", "--trust", "high", status=2))
    assert said.startswith("Invalid value for '--trust': 'high' is not one of")


def test_messages_say_periods_in_words(run: Run, decisions: FactStore) -> None:
    late = ["end", "adr/0003", "--at", "2026-07-01"]
    assert "in the period from 2026-07-01 on: adr/0003;" in complaint(run(*late, status=1))
    late += ["--until", "2026-08-01T12:00:00Z"]
    assert "in the period [2026-07-01, 2026-08-01T12:00:00Z): adr/0003;" in complaint(run(*late, status=1))


def test_messages_name_options_and_not_arguments(run: Run, decisions: FactStore) -> None:
    elsewhere = str(decisions.ask("retrieval").basis)
    for arguments, option in {
        ("undo", "--actor", "x", "--since", "2999-01-01"): "--since: ",
        ("ask", "x", "--known-at", "2999-01-01"): "--known-at 2999-01-01T00:00:00Z ",
        ("end", "adr/0014", "--based-on", elsewhere, "--namespace", "other"): "--based-on: ",
    }.items():
        assert complaint(run(*arguments, status=1)).startswith(option)


def test_an_end_before_the_start_says_that_nothing_is_left(run: Run, decisions: FactStore) -> None:
    assert lines(run("end", "adr/0014", "--at", "2026-01-01")) == [
        "ended adr/0014, which loses from 2026-06-30",
        "nothing of it is left: it was valid at no other time",
    ]
    assert len(lines(run("end", "adr/0003", "--at", "2026-04-01"))) == 1


def test_history_marks_what_is_believed_again_after_it_was_taken(run: Run, decisions: FactStore) -> None:
    assert "believed again" not in run("history", "adr/0003").stdout
    decisions.retract("adr/0014", give_back=True)
    told = " ".join(lines(run("history", "adr/0003")))
    assert "took from 2026-06-30, recorded" in told
    assert told.endswith("; believed again: from 2026-06-30")


# --- diff


def test_diff_prints_what_each_fact_gained_and_lost(run: Run, decisions: FactStore) -> None:
    before = decisions.ask("retrieval").known_at.isoformat()
    decisions.remember("Chunks are short", ref="chunks", valid_from="2026-01-01")
    decisions.supersede("adr/0014", "Retrieval is a graph", ref="adr/0020", valid_from="2026-07-01")
    printed = lines(run("diff", "--known-from", before))
    assert printed[0].startswith("what was believed otherwise, from 2")
    assert printed[1:] == [
        "chunks Chunks are short",
        "+ from 2026-01-01",
        "adr/0014 Retrieval is hybrid: dated facts + reranker",
        "- from 2026-07-01",
        "superseded by adr/0020 (change)",
        "adr/0020 Retrieval is a graph",
        "+ from 2026-07-01",
    ]
    said = ["diff", "--known-from", before, "--valid-at", "2026-06-30"]
    assert lines(run(*said))[1:] == ["chunks Chunks are short", "+ from 2026-01-01"]
    now = decisions.ask("retrieval").known_at.isoformat()
    told = json.loads(run("diff", "--known-from", before, "--known-to", now, "--json").stdout)
    assert told == decisions.diff(before, now).model_dump(mode="json")
    assert lines(run("diff", "--known-from", "2020-01-01", "--known-to", "2020-01-02"))[1:] == ["nothing"]
    decisions.erase("chunks", note="by law")
    assert "(erased)" in run("diff", "--known-from", before, "--known-to", now).stdout


def test_diff_refuses_what_is_no_span_of_time(run: Run, decisions: FactStore) -> None:
    assert "Missing option" in complaint(run("diff", status=2))
    backwards = ["diff", "--known-from", "2026-01-02", "--known-to", "2026-01-01"]
    assert "after" in complaint(run(*backwards, status=1))
    assert "--valid-at" in complaint(run("diff", "--known-from", "2026-01-02", "--valid-at", "x", status=2))


# --- verify


def told(run: Run, *question: str) -> str:
    return run("ask", *question, "--json").stdout


def test_an_answer_that_still_stands_is_equal(run: Run, decisions: FactStore, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text(told(run, "retrieval"), encoding="utf-8")
    decisions.retract("adr/0014")
    assert lines(run("verify", str(file))) == [f"equal {file} retrieval"]
    assert lines(run("verify", "-", stdin=file.read_text(encoding="utf-8"))) == ["equal - retrieval"]
    indented = json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=2)
    assert lines(run("verify", "-", stdin=indented)) == ["equal - retrieval"]


def test_every_answer_is_checked_and_one_that_differs_is_status_1(
    run: Run, decisions: FactStore, tmp_path: Path
) -> None:
    good, other = told(run, "retrieval"), json.loads(told(run, "full-text", "--valid-at", "2026-05-01"))
    forged = json.loads(good)
    forged["facts"][0]["claim"] = "Retrieval is magic"
    old_rules = json.loads(good)
    old_rules["basis"]["rules"] += 1
    old_rules["facts"] = []
    gone = json.loads(good)
    gone["basis"] |= {"space": "a-model-of-old", "vector": "AAA8AAA8"}
    file = tmp_path / "answers.jsonl"
    file.write_text(
        "\n".join([good.strip(), "", json.dumps(forged), json.dumps(old_rules), json.dumps(gone)])
    )
    second = tmp_path / "second.json"
    second.write_text(json.dumps(other), encoding="utf-8")
    result = run("verify", str(file), str(second), status=1)
    found = [line for line in lines(result) if str(tmp_path) in line]
    assert [line.split(" ")[0] for line in found] == [
        "equal",
        "different",
        "rules_changed",
        "space_gone",
        "equal",
    ]
    assert [line.split(" line ")[1][0] for line in found[:4]] == ["1", "3", "4", "5"]
    assert "differs in: facts" in " ".join(lines(result))
    outcomes = json.loads(run("verify", str(file), str(second), "--json", status=1).stdout)
    assert [each["outcome"] for each in outcomes] == [line.split(" ")[0] for line in found]
    assert outcomes[0]["answer"] == f"{file}, line 1"


def test_an_answer_that_lost_a_fact_by_erasure_says_so(run: Run, decisions: FactStore) -> None:
    answer = told(run, "retrieval")
    decisions.erase("adr/0014", note="by law")
    result = lines(run("verify", "-", stdin=answer, status=1))
    assert result[0] == "erased - retrieval"
    assert result[1] == "the same but for facts erased since"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no answer"),
        ("{", "line 1: it is no JSON"),
        ("{}", "it is no answer"),
        ("[]", "it is no answer"),
        ('{"facts": []}\n{"facts": []}', "line 1: it is no answer"),
        ("[" * 100_000, "it is no JSON"),
    ],
    ids=["empty", "cut off", "object", "list", "lines", "deep"],
)
def test_what_is_no_answer_is_refused_by_name_before_anything_is_asked(
    text: str, said: str, run: Run, decisions: FactStore
) -> None:
    refused = complaint(run("verify", "-", stdin=text, status=2))
    assert said in refused
    assert "supersede ask --json" in refused


def test_a_brief_answer_and_a_file_that_is_not_there_are_refused(run: Run, decisions: FactStore) -> None:
    brief = run("ask", "retrieval", "--brief").stdout
    assert "--brief leaves out its basis" in complaint(run("verify", "-", stdin=brief, status=2))
    assert "cannot be read" in complaint(run("verify", "/nowhere", status=2))
    assert "cannot be read" in complaint(run("verify", "-", stdin=b"\xff\xfe", status=2))
    assert "Missing argument" in complaint(run("verify", status=2))


def test_an_answer_of_another_database_is_named(run: Run, decisions: FactStore, vector_database: str) -> None:
    with FactStore.open(vector_database, namespace="elsewhere", embedder=BagOfWords()) as other:
        other.remember("retrieval")
        ranked = other.ask("retrieval").model_dump_json()
        listed = other.facts().model_dump_json()
    for answer in (ranked, listed):
        said = complaint(run("verify", "-", stdin=answer, status=1))
        assert said.startswith("-: ")
        assert "'elsewhere'" in said
