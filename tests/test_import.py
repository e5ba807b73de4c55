"""``import supersede`` is cheap: heavy packages load on first use, and every public name resolves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import supersede

HEAVY = [
    *("sqlalchemy", "alembic", "numpy", "torch", "sentence_transformers", "anthropic", "psycopg"),
    *("onnxruntime", "tokenizers", "pgvector", "pydantic", "structlog", "typer", "rich"),
]


def in_a_fresh_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, json, supersede; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(in_a_fresh_process(program)))
    assert "supersede" in loaded
    assert loaded.isdisjoint(HEAVY)
    # And none of its own modules either: each loads with the first name that needs it.
    assert {name for name in loaded if name.startswith("supersede.")} == set()


@pytest.mark.parametrize(
    ("name", "not_loaded"),
    [
        ("SupersedeError", ["sqlalchemy", "numpy", "psycopg", "pydantic", "alembic"]),
        ("NO_END", ["sqlalchemy", "numpy", "psycopg", "alembic"]),
        ("Answer", ["sqlalchemy", "numpy", "psycopg", "alembic"]),
        ("FactStore", ["torch", "sentence_transformers", "anthropic", "onnxruntime", "tokenizers", "typer"]),
    ],
)
def test_a_name_loads_what_it_needs_and_no_more(name: str, not_loaded: list[str]) -> None:
    program = f"import sys, json; from supersede import {name}; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(in_a_fresh_process(program)))
    assert loaded.isdisjoint(not_loaded)


def test_every_public_name_resolves() -> None:
    program = (
        "import supersede\n"
        "for name in supersede.__all__:\n"
        "    value = getattr(supersede, name)\n"
        "    assert name in dir(supersede), name\n"
        "    print(name, getattr(value, '__module__', None))\n"
    )
    lines = in_a_fresh_process(program).split("\n")[:-1]
    assert [line.split()[0] for line in lines] == supersede.__all__
    assert all(line.split()[1].startswith("supersede.") for line in lines), lines


def test_a_star_import_brings_the_public_names() -> None:
    program = "from supersede import *; print(FactStore.__name__, NO_END.value, FactNotFound.__name__)"
    assert in_a_fresh_process(program).split() == ["FactStore", "no_end", "FactNotFound"]


def test_every_error_is_public_and_has_one_base() -> None:
    from supersede import errors

    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.SupersedeError)
    }
    assert kinds <= set(supersede.__all__)
    assert kinds >= {
        *("InvalidPeriod", "InvalidInstant", "OutOfOrder", "FactNotFound", "FactNotCurrent"),
        *("SupersessionCycle", "RefConflict", "TrustConflict", "Conflict", "NamespaceNotFound"),
        *("DimensionMismatch", "SchemaOutOfDate", "ServerUnavailable", "UnsafeIsolation"),
    }


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'FactShop'"):
        supersede.FactShop  # noqa: B018 - looking it up is the test


def test_the_names_for_type_checkers_are_those_that_load() -> None:
    """The list under TYPE_CHECKING, the table of homes and __all__ are kept by hand."""
    source = Path(supersede.__file__).read_text(encoding="utf-8")
    block = source.partition("if TYPE_CHECKING:")[2].partition("__version__")[0]
    for name in supersede.__all__:
        assert re.search(rf"\b{name}\b", block), name
