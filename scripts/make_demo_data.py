"""Make the demo's data, ``src/supersede/data/rfc.jsonl.gz``, from a dump of the RFC index.

The source has one JSON object a line: ``subject`` ("RFC 8200"), ``claim`` ("RFC 8200: Internet
Protocol ..."), ``valid_from`` (the first day of the month of publication), ``status``, and
``supersedes`` and ``updates``, lists of ids like "rfc:2460". The same source gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "supersede" / "data" / "rfc.jsonl.gz"


def row(source: dict[str, Any]) -> dict[str, Any]:
    subject = source["subject"]
    # Said again in the claim, the number would cost the title nine ranks in an answer.
    title = source["claim"].removeprefix(f"{subject}: ")
    return {
        "number": int(subject.removeprefix("RFC ")),
        "title": title,
        "date": source["valid_from"],
        "status": source["status"],
        "obsoletes": numbers(source["supersedes"]),
        "updates": numbers(source["updates"]),
    }


def numbers(ids: list[str]) -> list[int]:
    return sorted(int(each.removeprefix("rfc:")) for each in ids)


def write(rows: list[dict[str, Any]], target: Path) -> None:
    lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in rows]
    # A time or a name in the header would make each build differ.
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write("".join(lines).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="the dump of the RFC index, JSON Lines")
    parser.add_argument("target", type=Path, nargs="?", default=TARGET, help="default: %(default)s")
    arguments = parser.parse_args()
    with arguments.source.open(encoding="utf-8") as lines:
        rows = sorted((row(json.loads(line)) for line in lines), key=lambda each: each["number"])
    write(rows, arguments.target)
    edges = sum(len(each["obsoletes"]) for each in rows)
    size = arguments.target.stat().st_size
    print(f"{len(rows)} RFCs, {edges} obsoletes edges, {size} bytes: {arguments.target}")


if __name__ == "__main__":
    main()
