"""The command line: what it prints, for people and for programs, and how it ends."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from databases import query
from supersede import FactStore, __version__, embedded
from supersede.cli import app, loading
from supersede.embedded import ServerInfo

HYBRID = "Retrieval is hybrid: dated facts + reranker"
FULL_TEXT = "Retrieval uses Postgres full-text search"
QUESTION = "how do we do retrieval?"

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """Commands set the package's logger up, as a program may and a test must not."""
    log = logging.getLogger("supersede")
    level, handlers = log.level, list(log.handlers)
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


def invoke(*arguments: str, stdin: str | bytes | None = None, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin, env=environment)


@pytest.fixture
def run(database: str) -> Run:
    """Runs a command on ``database``; it has to end with the given exit status."""

    def run(*arguments: str, status: int = 0, stdin: str | bytes | None = None, **environment: str) -> Result:
        result = invoke(*arguments, stdin=stdin, SUPERSEDE_URL=database, **environment)
        assert result.exit_code == status, result.output
        return result

    return run


@pytest.fixture
def decisions(store: FactStore) -> FactStore:
    """The two decisions of the README."""
    store.remember(FULL_TEXT, ref="adr/0003", valid_from="2026-03-12", sources=["docs/adr/0003.md"])
    store.supersede(
        "adr/0003",
        HYBRID,
        ref="adr/0014",
        valid_from="2026-06-30",
        sources=["docs/adr/0014-hybrid-retrieval.md"],
    )
    return store


def complaint(result: Result) -> str:
    """The line that a failing command says, and the only one."""
    assert result.stdout == ""
    assert result.stderr.startswith("supersede: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("supersede: ").strip()


def lines(result: Result) -> list[str]:
    """What is printed, without what only makes room."""
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip(" ─")]


# --- ask and facts


def test_ask_prints_each_claim_with_its_dates_source_and_what_it_superseded(
    run: Run, decisions: FactStore
) -> None:
    assert lines(run("ask", QUESTION, COLUMNS="130")) == [
        f"{QUESTION} now",
        "claim asserted valid source supersedes",
        f"1 {HYBRID} 2026-06-30 2026-06-30 – docs/adr/0014-hybrid-retrieval.md adr/0003",
        "adr/0014",
        "withheld: 1 superseded; --explain lists them",
        "Words alone ranked this answer: this store has no embedding space.",
    ]


@pytest.mark.parametrize("columns", ["40", "60", "80", "100", "120", "200", ""])
def test_no_width_loses_a_ref_or_a_date(run: Run, decisions: FactStore, columns: str) -> None:
    printed = run("ask", QUESTION, "--valid-at", "2026-05-01", "--explain", COLUMNS=columns).stdout
    for kept in ("adr/0003", "2026-03-12", "2026-06-30", "adr/0014", "docs/adr/0003.md"):
        assert kept in printed
    assert max(map(len, printed.splitlines())) <= int(columns or 200)


def test_explain_lists_what_was_withheld_and_what_replaced_it(run: Run, decisions: FactStore) -> None:
    printed = lines(run("ask", QUESTION, "--explain"))
    assert "withheld because instead" in printed
    assert f"adr/0003 {FULL_TEXT} superseded adr/0014" in printed


def test_a_question_about_a_time_before_the_store_finds_nothing_and_says_what_to_do(
    run: Run, decisions: FactStore
) -> None:
    heading, notice = lines(run("ask", QUESTION, "--as-of", "2020-05-01", status=3))
    assert heading == f"{QUESTION} as of 2020-05-01"
    assert "give --valid-at 2020-05-01" in notice
    assert "use `supersede import`" in notice


def test_json_and_brief_are_what_python_returns(run: Run, decisions: FactStore) -> None:
    point = ["--valid-at", "2026-05-01"]
    full = json.loads(run("ask", QUESTION, "--json", *point).stdout)
    again = decisions.ask(basis=json.dumps(full["basis"]))
    assert full == again.model_dump(mode="json")
    assert full["facts"][0]["claim"] == FULL_TEXT
    brief = json.loads(run("ask", QUESTION, "--brief", *point).stdout)
    assert {**brief, "known_at": ""} == {**again.brief(), "known_at": ""}


def test_an_answer_is_asked_again_by_its_basis(run: Run, decisions: FactStore, tmp_path: Path) -> None:
    for command in (["ask", QUESTION, "--explain"], ["facts", "--kind", "fact"]):
        told = run(*command, "--json").stdout
        file = tmp_path / "answer.json"
        file.write_text(told, encoding="utf-8")
        decisions.remember("Retrieval has a cache")
        assert run(command[0], "--basis", str(file), "--json").stdout == told
        assert run(command[0], "--basis", "-", "--json", stdin=told).stdout == told
        basis = json.loads(told)["basis"]
        assert run(command[0], "--basis", json.dumps(basis), "--json").stdout == told


def test_a_basis_leaves_nothing_else_to_ask(run: Run, decisions: FactStore) -> None:
    basis = str(decisions.ask(QUESTION).basis)
    refused = run("ask", "--basis", basis, "--in", "x", "--as-of", "2026-01-01", status=2)
    assert complaint(refused) == "a basis says all there is to ask; leave out --as-of, --in"
    assert "not both" in complaint(run("ask", QUESTION, "--basis", basis, status=2))
    assert "no file" in complaint(run("ask", "--basis", "/nowhere", status=2))
    assert "no basis" in complaint(run("ask", "--basis", "sb1.nonsense", status=1))


def test_facts_are_listed_by_page(run: Run, decisions: FactStore) -> None:
    decisions.remember("The reranker is off", ref="adr/0015", valid_from="2026-07-01")
    first = lines(run("facts", "--limit", "1"))
    assert first[0] == "facts now"
    assert first[-1] == "1 more fact(s) follow; give --after and the last of these for the next page."
    second = json.loads(run("facts", "--after", "adr/0014", "--brief").stdout)
    assert [fact["claim"] for fact in second["facts"]] == ["The reranker is off"]


def test_nothing_found_is_status_3_whatever_the_reason(run: Run, decisions: FactStore) -> None:
    assert lines(run("facts", "--kind", "none", status=3)) == ["facts, kind none now", "Nothing matched."]
    assert "Nothing has been recorded" in run("facts", "--namespace", "new", status=3).stdout
    assert json.loads(run("ask", "zebra", "--json", status=3).stdout)["outcome"] == "nothing_matched"
    decisions.retract("adr/0014")
    assert "Everything that matched is withheld" in run("ask", "reranker", status=3).stdout


def test_several_namespaces_are_read_at_once(run: Run, decisions: FactStore) -> None:
    run("remember", "Retrieval is slow", "--namespace", "other")
    found = json.loads(run("facts", "--in", "default", "--in", "other", "--json").stdout)
    assert {fact["namespace"] for fact in found["facts"]} == {"default", "other"}
    assert "'nowhere'" in complaint(run("facts", "--in", "nowhere", status=1))


def test_history_shows_every_rectangle_source_and_edge(run: Run, decisions: FactStore) -> None:
    decisions.amend("adr/0003", "Only in English", ref="adr/0004")
    printed = lines(run("history", "adr/0003"))
    assert printed[:2] == [f"adr/0003 {FULL_TEXT} not valid now", "valid known opened by closed by"]
    assert printed[2].startswith("2026-03-12 – ")
    assert printed[2].endswith("remember supersede")
    text = " ".join(printed)
    assert "sources docs/adr/0003.md asserted 2026-03-12, recorded" in text
    assert "superseded by adr/0014 (change): took from 2026-06-30, recorded" in text
    assert "amended by adr/0004, recorded" in text
    found = json.loads(run("history", "adr/0003", "--json").stdout)
    assert found == decisions.history("adr/0003").model_dump(mode="json")


def test_lineage_shows_the_chain_both_ways(run: Run, decisions: FactStore) -> None:
    decisions.supersede("adr/0014", "Retrieval is a graph", ref="adr/0020", reason="correction")
    assert lines(run("lineage", "adr/0014")) == [
        f"adr/0014 {HYBRID} not valid now",
        "superseded by",
        "1 adr/0020 (correction) Retrieval is a graph",
        "supersedes",
        f"1 adr/0003 (change) {FULL_TEXT}",
    ]
    assert lines(run("lineage", "adr/0003"))[2:] == [
        f"1 adr/0014 (change) {HYBRID}",
        "2 adr/0020 (correction) Retrieval is a graph",
    ]
    found = json.loads(run("lineage", "adr/0014", "--json").stdout)
    assert found == decisions.lineage("adr/0014").model_dump(mode="json")
    run("remember", "alone", "--ref", "alone")
    assert lines(run("lineage", "alone"))[1:] == ["It supersedes nothing, and nothing supersedes it."]


# --- writing


def test_a_claim_is_recorded_with_all_that_is_said_of_it(run: Run, store: FactStore) -> None:
    arguments = ["remember", "HQ is Boston", "--ref", "hq/1", "--subject", "acme", "--predicate", "hq"]
    arguments += [
        "--object",
        "Boston",
        "--valid-from",
        "2019-01-01",
        "--valid-to",
        "2022-01-01T00:00:00+01:00",
    ]
    arguments += ["--source", "https://a.example/1", "--source", "b", "--asserted", "2018-12-01"]
    arguments += ["--kind", "place", "--data", '{"pages": 3}', "--trust", "verbatim", "--note", "so"]
    assert lines(run(*arguments)) == [
        "recorded hq/1, valid 2019-01-01 to 2021-12-31T23:00:00Z",
        "without a vector: words alone will find it",
    ]
    fact = store.get("hq/1")
    assert (fact.subject, fact.predicate, fact.object) == ("acme", "hq", "Boston")
    assert (fact.kind, fact.data, fact.trust) == ("place", {"pages": 3}, "verbatim")
    assert set(fact.sources) == {"https://a.example/1", "b"}
    assert lines(run(*arguments)) == [
        "hq/1 was recorded by this call before, and is believed now; nothing written"
    ]
    recorded = json.loads(run(*arguments, "--json").stdout)
    assert (recorded["id"], recorded["repeated"]) == (fact.id, True)


def test_a_claim_may_come_from_stdin_and_have_no_start(run: Run, store: FactStore) -> None:
    result = run("remember", "-", "--ref", "a", "--valid-from", "no_start", stdin="Water is wet\n")
    assert lines(result)[0] == "recorded a, valid always"
    assert store.get("a").claim == "Water is wet"


def test_replace_says_what_each_old_fact_loses(run: Run, decisions: FactStore) -> None:
    decisions.remember("Chunks are 512 tokens", ref="adr/0009", valid_from="2026-01-01")
    result = run("replace", "adr/0014", "Retrieval is a graph", "--also", "adr/0009", "--ref", "adr/0020")
    first, *olds, _ = lines(result)
    assert first.startswith("recorded adr/0020, valid from ")
    assert [old.split(" from ")[0] for old in olds] == [
        "supersedes adr/0014 (change), which loses",
        "supersedes adr/0009 (change), which loses",
    ]
    assert decisions.facts().facts[0].ref == "adr/0020"


def test_replace_by_a_fact_that_is_there(run: Run, decisions: FactStore) -> None:
    decisions.remember("Retrieval is lexical", ref="adr/0008", valid_from="2026-06-01")
    run("replace", "adr/0008", "--by", "adr/0014", "--reason", "correction")
    assert [fact.ref for fact in decisions.facts().facts] == ["adr/0014"]


def test_the_name_of_a_fact_is_no_claim(run: Run, decisions: FactStore) -> None:
    result = run("replace", "adr/0003", "adr/0014", "--if-not-current", "link", status=2)
    assert "did you mean --by adr/0014?" in complaint(result)
    assert "not both" in complaint(run("replace", "adr/0003", status=2))
    assert "not both" in complaint(run("amend", "adr/0003", "x", "--by", "adr/0014", status=2))


def test_the_other_verbs(run: Run, decisions: FactStore) -> None:
    assert "amends adr/0014" in lines(run("amend", "adr/0014", "Only in English", "--ref", "adr/0015"))
    assert lines(run("cite", "adr/0014", "c", "d", "--asserted", "2026-07-01")) == [
        "sources added to adr/0014"
    ]
    assert {"c", "d"} < set(decisions.get("adr/0014").sources)
    assert lines(run("end", "adr/0015", "--at", "2030-01-01")) == [
        "ended adr/0015, which loses from 2030-01-01"
    ]
    assert lines(run("retract", "adr/0014", "--give-back", "--note", "never decided")) == [
        "retracted adr/0014, which loses from 2026-06-30",
        "gives back to adr/0003: from 2026-06-30",
    ]
    decisions.retract("adr/0003")
    assert lines(run("reinstate", "adr/0003")) == ["reinstated adr/0003, valid from 2026-03-12"]
    assert lines(run("declare", "hq", "one")) == ["predicate hq holds one"]


def test_a_value_that_is_there_is_not_recorded_twice(run: Run) -> None:
    run("declare", "hq", "one")
    said = ["--subject", "acme", "--predicate", "hq", "--object", "Oslo", "--valid-from", "2020-01-01"]
    run("remember", "HQ is Oslo", "--ref", "a", *said)
    assert lines(run("remember", "HQ: Oslo", "--ref", "b", *said)) == ["a is there already"]


def test_who_writes_where_is_said_before_or_after_the_command(
    run: Run, store: FactStore, database: str
) -> None:
    run("--namespace", "n1", "--actor", "ann", "remember", "x")
    run("remember", "x", "--actor", "ben", "--namespace", "n2")
    run("--namespace", "n1", "remember", "y", "--namespace", "n3", SUPERSEDE_ACTOR="cyd")
    rows = query(database, "select namespace, actor from supersede.operation order by stamp")
    assert rows == [("n1", "ann"), ("n2", "ben"), ("n3", "cyd")]


# --- what goes wrong


def test_what_is_not_understood_is_status_2_and_names_the_help(run: Run) -> None:
    for arguments, said in {
        ("nonsense",): "No such command 'nonsense' (see supersede --help)",
        ("ask", "q", "--nonsense"): "No such option: --nonsense (see supersede ask --help)",
        ("retract",): "Missing argument 'FACT' (see supersede retract --help)",
    }.items():
        assert complaint(run(*arguments, status=2)) == said
    assert "--top-k" in complaint(run("ask", "q", "--top-k", "0", status=2))
    assert "JSON object" in complaint(run("remember", "x", "--data", "[1]", status=2))
    assert "Usage" in run(status=2).stdout


@pytest.mark.parametrize("instant", ["yesterday", "12/01/2024", "2024-06-01T00:00:00", "UTC+3", "2024-02-30"])
def test_what_is_no_instant_is_refused_before_anything_is_opened(instant: str) -> None:
    result = invoke("ask", "q", "--as-of", instant, SUPERSEDE_URL="postgresql://nobody@127.0.0.1:1/nothing")
    assert result.exit_code == 2
    assert complaint(result).startswith("Invalid value for '--as-of'")
    assert instant in result.stderr


def test_an_error_of_the_store_is_status_1_and_says_what_to_do(run: Run, decisions: FactStore) -> None:
    assert complaint(run("history", "adr/0099", status=1)) == (
        "no fact in namespace 'default' has the id or ref 'adr/0099'; `supersede facts` lists what is there"
    )
    assert "its end must lie after its start" in complaint(
        run("remember", "x", "--valid-from", "2024-01-01", "--valid-to", "2023-01-01", status=1)
    )
    assert "--over-trust" in complaint(run("replace", "adr/0014", "x", "--trust", "summary", status=1))
    assert "adr/0003" in complaint(run("replace", "adr/0003", "x y", "--valid-from", "2026-09-01", status=1))


def test_a_server_that_is_not_there_or_not_prepared(empty_database: str) -> None:
    result = invoke("facts", "--url", "postgresql://nobody@127.0.0.1:1/nothing")
    assert result.exit_code == 1
    assert "SUPERSEDE_URL" in complaint(result)
    result = invoke("facts", "--url", empty_database)
    assert result.exit_code == 1
    assert "run `supersede init`" in complaint(result)


def test_a_password_is_in_no_complaint() -> None:
    for url in ("postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://me:s3cr@et@127.0.0.1:1/x"):
        assert "s3cr" not in complaint(invoke("facts", "--url", url))


def test_an_unexpected_error_is_one_line_too_and_debug_shows_where(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(FactStore, "facts", broken)
    assert complaint(run("facts", status=1)) == "unexpected RuntimeError: two lines (--debug shows where)"
    assert "Traceback" in run("facts", "--debug", status=1).stderr


def test_what_a_claim_holds_cannot_steer_the_terminal(run: Run) -> None:
    run(
        "remember",
        "red \x1b[31m [bold]x[/bold] :smile: \u202e\x07",
        "--ref",
        "a\x1b[2J",
        "--source",
        "\x1b]0;t\x07",
    )
    for command in (["facts"], ["ask", "red"], ["history", "a\x1b[2J"], ["lineage", "a\x1b[2J"]):
        printed = run(*command).stdout
        assert not set(printed) & {"\x1b", "\x07", "\u202e"}
        assert "[bold]x[/bold] :smile:" in " ".join(printed.split())


# --- import


def event(number: int, **more: Any) -> dict[str, Any]:
    plain = {
        "op": "remember",
        "recorded_at": f"2020-01-{number:02}",
        "claim": f"c{number}",
        "ref": f"r/{number}",
    }
    return {**plain, **more}


def jsonl(*events: Any) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in events)


def test_a_file_of_events_is_replayed_and_a_second_time_recognised(
    run: Run, store: FactStore, tmp_path: Path
) -> None:
    file = tmp_path / "history.jsonl"
    text = jsonl(
        event(1),
        "",
        event(2, op="supersede", old=["r/1"]),
        {"op": "retract", "recorded_at": "2020-02-01", "ref": "r/2"},
    )
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert lines(run("import", str(file))) == [f"{file}: 3 events recorded, 2 without a vector"]
    assert store.history("r/1").fact.recorded.isoformat() == "2020-01-01T00:00:00+00:00"
    assert json.loads(run("import", "-", "--json", stdin=text).stdout) == {
        "events": 3,
        "recorded": 0,
        "repeated": 3,
        "unembedded": 0,
    }


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"op": "remember",', "no JSON"),
        ("[1]", "no JSON object"),
        (b"\xff\n", "not UTF-8"),
        (jsonl({"op": "retract", "recorded_at": "2020-02-01", "ref": "r/9"}), "'r/9'"),
        (jsonl(event(9, recorded_at="2019-01-01")), "--out-of-order next_stamp"),
        (jsonl(event(9, valid_from="yesterday")), "yesterday"),
        (jsonl({"op": "remember", "claim": "x"}), "recorded_at"),
    ],
)
def test_the_line_that_fails_is_named_with_what_is_recorded_by_then(
    run: Run, store: FactStore, monkeypatch: pytest.MonkeyPatch, bad: str | bytes, said: str
) -> None:
    monkeypatch.setattr(loading, "BATCH", 2)
    good = jsonl(event(1), event(2), "", event(3)).encode()
    result = run("import", "-", stdin=good + (bad if isinstance(bad, bytes) else bad.encode()), status=1)
    told = complaint(result)
    assert told.startswith("stdin, line 5: ")
    assert said in told
    assert "(lines 1 to 2 are recorded, nothing after them)" in told
    assert [fact.ref for fact in store.facts().facts] == ["r/1", "r/2"]


def test_late_events_can_be_let_in(run: Run, store: FactStore) -> None:
    run("import", "-", stdin=jsonl(event(9)))
    run("import", "-", "--out-of-order", "next_stamp", stdin=jsonl(event(1)))
    assert store.get("r/1").asserted.isoformat() == "2020-01-01T00:00:00+00:00"


def test_a_file_that_cannot_be_read(run: Run) -> None:
    assert complaint(run("import", "/nowhere.jsonl", status=2)) == (
        "/nowhere.jsonl cannot be read: No such file or directory"
    )


def test_embed_says_that_there_is_no_embedder(run: Run) -> None:
    assert "no embedding space" in complaint(run("embed", status=1))


# --- the database


def test_init_prepares_a_database_and_may_be_repeated(empty_database: str) -> None:
    for _ in range(2):
        result = invoke("init", "--url", empty_database)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("ready: postgresql://")
    assert invoke("remember", "x", "--url", empty_database).exit_code == 0
    told = complaint(invoke("init", "--url", empty_database, "--text-search", "german"))
    assert "'english'" in told or "english" in told


def test_db_status_is_3_when_nothing_runs(tmp_path: Path) -> None:
    result = invoke("db", "status", SUPERSEDE_DATA_DIR="/tmp/supersede-nothing-here")
    assert result.exit_code == 3
    assert result.stdout == "not running; data folder: /tmp/supersede-nothing-here\n"


def test_db_says_where_the_server_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = ServerInfo(
        data_dir=tmp_path, log=tmp_path / "log", running=True, pid=7, version="18.6", url="postgresql://x"
    )
    monkeypatch.setattr(embedded, "status", lambda: info)
    monkeypatch.setattr(embedded, "start", lambda: info)
    monkeypatch.setattr(embedded, "url", lambda: info.url)
    monkeypatch.setattr(embedded, "stop", lambda: True)
    assert "PostgreSQL 18.6 runs as process 7" in invoke("db", "status").stdout
    assert json.loads(invoke("db", "status", "--json").stdout)["url"] == "postgresql://x"
    assert f"runs in {tmp_path}" in invoke("db", "start").stdout
    assert invoke("db", "url").stdout == "postgresql://x\n"
    assert invoke("db", "stop").stdout == "stopped\n"


# --- as a program of its own


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from supersede.cli import main; main()", *arguments]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return {**kept, **more}


def test_help_is_quick_since_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, supersede.cli\n"
        "try: supersede.cli.app(['ask', '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print({'sqlalchemy', 'numpy', 'psycopg', 'alembic', 'structlog'} & set(sys.modules) or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "none"
    assert "--valid-at" in done.stdout


def test_the_version_is_printed() -> None:
    assert invoke("--version").stdout == f"supersede {__version__}\n"


def test_what_is_piped_has_no_colour_and_breaks_no_ref(decisions: FactStore, database: str) -> None:
    decisions.remember("One " + "long " * 100 + "claim", ref="a/" + "very-" * 20 + "long-ref")
    done = subprocess.run(
        program("facts", "--explain"),
        env=environment(SUPERSEDE_URL=database),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    assert "a/" + "very-" * 20 + "long-ref" in done.stdout
    assert re.search(r"adr/0003\s+Retrieval uses", done.stdout)


def test_a_reader_that_goes_away_is_no_error(store: FactStore, database: str) -> None:
    store.remember_many([f"claim {n} " + "word " * 100 for n in range(300)])
    process = subprocess.Popen(
        program("facts"),
        env=environment(SUPERSEDE_URL=database),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_with_one_line(store: FactStore, database: str) -> None:
    process = subprocess.Popen(
        program("import", "-"),
        env=environment(SUPERSEDE_URL=database, PGAPPNAME="interrupted"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Where the tests run in the background, SIGINT is ignored, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        deadline = time.monotonic() + 30
        while not query(database, "select 1 from pg_stat_activity where application_name = 'interrupted'"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b"supersede: interrupted\n"
    assert process.returncode == 130


# --- erase


@pytest.fixture
def told(run: Run, store: FactStore) -> str:
    """The id of a fact that somebody wants gone."""
    run("remember", "Ada lives in Oslo", "--ref", "ada")
    return store.get("ada").id


def test_erase_asks_and_prints_the_certificate(run: Run, store: FactStore, told: str) -> None:
    done = run("erase", "ada", "--note", "case 7", stdin="y\n", COLUMNS="200")
    assert "Destroy for good: Ada lives in Oslo" in done.stderr
    printed = lines(done)
    assert printed[0].startswith(f"erased {told}, which loses from ")
    assert printed[1] == "certificate"
    assert f"fact: {told}" in printed
    assert any(line.startswith("destroyed: ") and "1 refs" in line for line in printed)
    assert any("scrub" in line for line in printed)
    assert store.facts().facts == ()
    shown = run("history", told, COLUMNS="200")
    assert "erased" in lines(shown)[0]
    assert "Ada" not in shown.stdout


@pytest.mark.parametrize("answer", ["n\n", "\n", "what\n"])
def test_erase_does_nothing_unless_confirmed(run: Run, store: FactStore, told: str, answer: str) -> None:
    done = run("erase", "ada", "--note", "case 7", stdin=answer, status=1)
    assert done.stderr.endswith("supersede: nothing was erased\n")
    assert store.get("ada").id == told


def test_erase_needs_somebody_to_confirm_or_yes(run: Run, store: FactStore, told: str) -> None:
    done = run("erase", "ada", "--note", "case 7", stdin="", status=2)
    assert "--yes" in done.stderr
    assert store.get("ada").id == told
    found = json.loads(run("erase", "ada", "--note", "case 7", "--yes", "--json").stdout)
    assert found["certificate"]["fact_id"] == told
    refused = complaint(run("remember", "ada lives in OSLO", status=1))
    assert told in refused
    run("lift-erasure", told, "--note", "consent")
    assert run("remember", "ada lives in OSLO").exit_code == 0


def test_scrub_says_what_it_rewrote(run: Run, store: FactStore, told: str) -> None:
    run("erase", "ada", "--note", "case 7", "--yes")
    store.close()
    found = json.loads(run("db", "scrub", "--json").stdout)
    assert found["statistics"]
    assert "fact" in found["tables"]
    assert lines(run("db", "scrub"))[0].startswith("rewritten: fact, ")
