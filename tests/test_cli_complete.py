"""Every verb of the store can be had on the command line, with every argument, or it stands here why not."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest
from typer.main import get_command

from supersede import FactStore
from supersede.cli import app
from supersede.events import Call, Content
from supersede.questions import Which

if TYPE_CHECKING:
    import click

COMMANDS = {
    "init": ["init"],
    "remember": ["remember"],
    "supersede": ["replace"],
    "amend": ["amend"],
    "end": ["end"],
    "retract": ["retract"],
    "reinstate": ["reinstate"],
    "cite": ["cite"],
    "declare_predicate": ["declare"],
    "undo": ["undo"],
    "erase": ["erase"],
    "lift_erasure": ["lift-erasure"],
    "export_ledger": ["export"],
    "export_parquet": ["export"],
    "import_ledger": ["import"],
    "replay": ["import"],
    "fill_embeddings": ["embed"],
    "move_embeddings": ["embed"],
    "embedding_spaces": ["spaces"],
    "ask": ["ask"],
    "facts": ["facts"],
    "get": ["get"],
    "history": ["history"],
    "lineage": ["lineage"],
    "diff": ["diff"],
    "verify": ["verify"],
}

WITHOUT_A_COMMAND = {
    "open": "every command opens the store; its arguments are the shared options",
    "close": "every command closes it",
    "transaction": "a command is one operation; `import` records events by the thousand as one",
    "remember_many": "a file of claims is a file of events, which `import` reads",
}

# What an argument is called on the command line, where it is not its own name.
OPTIONS = {
    ("ask", "namespaces"): "--in",
    ("facts", "namespaces"): "--in",
    ("facts", "valid_during"): "--during",
    ("export_ledger", "namespaces"): "--in",
    ("export_parquet", "namespaces"): "--in",
    ("export_parquet", "folder"): "--parquet",
    ("supersede", "sources"): "--source",
    ("remember", "sources"): "--source",
    ("amend", "sources"): "--source",
    ("declare_predicate", "name"): "predicate",
    ("replay", "history"): "file",
    ("move_embeddings", "embedder"): "--move-to",
    ("verify", "answer"): "files",
    ("undo", "dry_run"): "--apply",
}

WITHOUT_AN_OPTION = {
    ("init", "embedder"): "the light one, where it is installed; `embed --move-to` registers another",
    ("open", "embedder"): "the one that the active space names",
}
ON_EVERY_VERB = {"progress": "is shown on stderr, where that is a terminal"}


def commands() -> dict[str, click.Command]:
    program: Any = get_command(app)
    return dict(program.commands)


def verbs() -> dict[str, Any]:
    found = inspect.getmembers(FactStore, callable)
    return {name: member for name, member in found if not name.startswith("_")}


def arguments(verb: Any) -> set[str]:
    """The arguments of a method, those of its ``**`` by their names."""
    hints = get_type_hints(verb)
    found: set[str] = set()
    for each in inspect.signature(verb).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            (typed,) = get_args(hints[each.name])
            assert typed in (Call, Content, Which)
            found |= set(typed.__annotations__)
            found |= set(Call.__annotations__) if typed is Content else set()
        elif each.name != "self":
            found.add(each.name)
    return found


def test_every_verb_has_a_command_or_a_reason() -> None:
    assert set(COMMANDS) | set(WITHOUT_A_COMMAND) == set(verbs())
    assert not set(COMMANDS) & set(WITHOUT_A_COMMAND)


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_argument_has_an_option_or_a_reason(verb: str) -> None:
    names: set[str] = set()
    for command in COMMANDS[verb]:
        for parameter in commands()[command].params:
            names |= {parameter.name or "", *parameter.opts}
    missing = {
        argument
        for argument in arguments(verbs()[verb])
        if not {OPTIONS.get((verb, argument), argument), "--" + argument.replace("_", "-")} & names
        and (verb, argument) not in WITHOUT_AN_OPTION
        and argument not in ON_EVERY_VERB
    }
    assert missing == set()


def test_what_open_takes_is_a_shared_option() -> None:
    names = {parameter.name for parameter in get_command(app).params}
    assert arguments(FactStore.open) - names == {"embedder"}


def test_no_name_is_listed_that_is_none() -> None:
    """A verb or an argument that was renamed must not leave its exception behind."""
    for verb, argument in [*OPTIONS, *WITHOUT_AN_OPTION]:
        assert argument in arguments(verbs()[verb])
    for commands_of in COMMANDS.values():
        assert set(commands_of) <= set(commands())
