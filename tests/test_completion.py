"""Shell completion: the script that a shell needs, and what it then offers."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from supersede.cli import app

SHELLS = ["bash", "zsh", "fish"]


def offered(shell: str, line: str) -> set[str]:
    """What a shell would offer for a line, the cursor at its end."""
    words = line.split(" ")
    environment = {
        "_SUPERSEDE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        # No server may be asked for it.
        "SUPERSEDE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    }
    result = CliRunner().invoke(app, [], prog_name="supersede", env=environment)
    assert result.exit_code == 0, result.output
    if shell == "zsh":
        return {part.split('":')[0].split('"')[1] for part in result.stdout.split("\n") if '"' in part}
    return {part.split("\t")[0] for part in result.stdout.splitlines() if part}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_names_the_program(shell: str) -> None:
    result = CliRunner().invoke(
        app, [], prog_name="supersede", env={"_SUPERSEDE_COMPLETE": f"source_{shell}"}
    )
    assert result.exit_code == 0, result.output
    assert f"_SUPERSEDE_COMPLETE=complete_{shell}" in result.stdout
    assert "supersede" in result.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("supersede re", {"remember", "replace", "retract", "reinstate"}),
        ("supersede db st", {"start", "stop", "status"}),
        ("supersede ask --min-", {"--min-similarity", "--min-trust"}),
        ("supersede replace --reason ", {"change", "correction", "refinement", "duplicate"}),
        ("supersede remember --trust v", {"verbatim"}),
        ("supersede declare hq ", {"one", "many"}),
        ("supersede import --out-of-order n", {"next_stamp"}),
    ],
)
def test_commands_options_and_choices_are_offered(shell: str, line: str, expected: set[str]) -> None:
    assert offered(shell, line) == expected


def test_both_options_of_completion_are_in_the_help() -> None:
    printed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"}).stdout
    assert "--install-completion" in printed
    assert "--show-completion" in printed
