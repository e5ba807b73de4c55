"""Write docs/schema/*.schema.json: what an answer looks like as JSON, for those who read it elsewhere.

    python scripts/make_schemas.py            # writes the files anew
    python scripts/make_schemas.py --check    # exit code 1 where one is out of date

They describe what this version writes (``answer.model_dump_json()``, ``--json``), where every field is
present, so none is optional. What it reads is more lenient. ``tests/test_json_schema.py`` compares them,
and holds answers of every kind to them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schema"
sys.path.insert(0, str(ROOT / "src"))

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from supersede.models import Answer, Basis, Withheld
from supersede.periods import Instant, Period

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INSTANT: Schema = {"$ref": "#/$defs/Instant"}
_TEXT_OR_NONE: Schema = {"anyOf": [{"type": "string"}, {"type": "null"}]}


class Written(GenerateJsonSchema):
    """Of what is written: every field is there, so that no default is of interest."""

    def field_is_required(self, *_: object, **__: object) -> bool:
        return True

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: object) -> bool:
        return False  # "Valid At" beside "valid_at" says nothing


def schemas() -> dict[str, Schema]:
    """The schema of each file, by the file's name."""
    return {
        "answer.schema.json": _published(_of(Answer)),
        "basis.schema.json": _published(_of(Basis)),
        "brief.schema.json": _published(_brief()),
    }


def _of(model: type[BaseModel]) -> Schema:
    return model.model_json_schema(mode="serialization", schema_generator=Written)


def _brief() -> Schema:
    """Of ``answer.brief()``, which is no model: written by hand, in the words of its docstring."""
    fact: Schema = {
        "description": "One claim, when its source asserted it, and what it superseded.",
        "type": "object",
        "properties": {
            "claim": {"type": "string"},
            "asserted": {
                "description": "Midnight UTC is written as its date alone.",
                "anyOf": [_INSTANT, {"type": "string", "pattern": _DAY}, {"type": "null"}],
            },
            "source": _TEXT_OR_NONE,
            "supersedes": {
                "description": "What it superseded: by ref, else by source, else by id.",
                "type": "array",
                "items": {"type": "string"},
            },
        },
        "required": ["claim", "asserted", "source", "supersedes"],
        "additionalProperties": False,
    }
    withheld: Schema = {
        "description": "The reasons that occur; missing where the counts are not exact.",
        "type": "object",
        "properties": {reason: {"type": "integer", "minimum": 1} for reason in Withheld.model_fields},
        "additionalProperties": False,
    }
    return {
        "title": "Brief",
        "description": (
            "An answer in its short form: as_of where both times agree, else both; or the period asked about."
        ),
        "type": "object",
        "properties": {
            **dict.fromkeys(("as_of", "valid_at", "known_at"), _INSTANT),
            "valid_during": _json(Period),
            "facts": {"type": "array", "items": fact},
            "withheld": withheld,
        },
        "required": ["facts"],
        "oneOf": [
            {
                "required": ["as_of"],
                "properties": dict.fromkeys(("valid_at", "valid_during", "known_at"), False),
            },
            {"required": ["valid_at", "known_at"], "properties": {"as_of": False, "valid_during": False}},
            {"required": ["valid_during", "known_at"], "properties": {"as_of": False, "valid_at": False}},
        ],
        "additionalProperties": False,
    }


def _published(schema: Schema) -> Schema:
    """With instants and periods under names of their own, and descriptions without the marks of Python."""
    definitions = {"Instant": _json(Instant), "Period": _json(Period)}
    definitions["Period"] = _named(definitions["Period"], {"Instant": definitions["Instant"]})
    named: Schema = _named(schema, definitions)
    definitions["Instant"]["description"] = "In UTC, with as many decimals of the second as it needs."
    definitions["Period"]["description"] = "From the first up to, not including, the second; null: unbounded."
    used = {name: text for name, text in definitions.items() if f'"#/$defs/{name}"' in json.dumps(named)}
    ours = dict(sorted({**named.pop("$defs", {}), **used}.items()))
    first = {name: named.pop(name) for name in ("title", "description", "type")}
    return {"$schema": DIALECT, **first, **named, "$defs": ours}


def _json(kind: object) -> Schema:
    return TypeAdapter(kind).json_schema(mode="serialization", schema_generator=Written)


def _named(node: JsonValue, definitions: dict[str, Schema]) -> Any:  # noqa: ANN401 - the kind that went in
    """The node with what equals a definition, from the inside out, replaced by its name."""
    if isinstance(node, list):
        return [_named(part, definitions) for part in node]
    if not isinstance(node, dict):
        return node
    inner = {
        key: _plain(part) if key == "description" and isinstance(part, str) else _named(part, definitions)
        for key, part in node.items()
    }
    for name, definition in definitions.items():
        if inner == definition:
            return {"$ref": f"#/$defs/{name}"}
    return inner


def _plain(docstring: str) -> str:
    paragraphs = re.sub(r":\w+:(?=`)", "", docstring).replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    outdated = []
    for name, schema in schemas().items():
        page = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        path = FOLDER / name
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(page, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != page:
            outdated.append(str(path))
    for path in outdated:
        print(f"{path} is out of date: run python scripts/make_schemas.py", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
