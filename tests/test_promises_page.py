"""What docs/promises.md names as the holder of a promise is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_test_that_the_promises_name_exists() -> None:
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) > 40
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / "tests" / file).read_text(encoding="utf-8")
    ]
    assert missing == []
