"""The guards bear load: with any one of them taken out, some test fails.

Each guard is removed from a copy of the source by one edit, and the tests that are to notice are run
against the copy. (What each CHECK and EXCLUDE refuses alone is in test_constraints.py.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TREE = ["src", "sql", "alembic", "tests", "pyproject.toml", "alembic.ini"]

# A guard: the file that holds it, what is there, what a careless hand would leave, the tests that notice.
GUARDS: dict[str, tuple[str, str, str, str]] = {
    "the lock": (
        "sql/functions/050_lock_namespace.sql",
        "for no key update",
        "",
        "test_concurrency.py -k loser or both_sides or sent_twice",
    ),
    "the rising stamp": (
        "sql/functions/100_record_event.sql",
        "greatest(v_clock, v_namespace.head + interval '1 microsecond')",
        "v_clock",
        "test_repeatable.py -k clock_that",
    ),
    "the head clamp": (
        "src/supersede/reads.py",
        "[min(basis.known_at, head) for _, head in seen]",
        "[basis.known_at for _, head in seen]",
        "test_repeatable.py -k write_in_flight",
    ),
    "the one snapshot of a read": (
        "src/supersede/engine.py",
        '"isolation_level": "REPEATABLE READ"',
        '"isolation_level": "READ COMMITTED"',
        "test_repeatable.py -k between_two_statements",
    ),
    "no lock under a snapshot": (
        "sql/functions/050_lock_namespace.sql",
        "if current_setting('transaction_isolation') <> 'read committed' then",
        "if false then",
        "test_repeatable.py -k lock_inside_a_snapshot",
    ),
    "based_on": (
        "sql/functions/060_require_unmoved.sql",
        "if v_seen is null then",
        "if true then",
        "test_promises.py -k no_ground",
    ),
    "every old is believed": (
        "sql/functions/090_verb_supersede.sql",
        "if p_event ->> 'if_not_current' is distinct from 'link' then",
        "if false then",
        "test_concurrency.py -k second_successor",
    ),
    "the handle": (
        "sql/functions/050_repeat_of.sql",
        "    if v_earlier.verb is null then",
        "    if true then",
        "test_concurrency.py -k same_event_again",
    ),
    "no rings": (
        "sql/functions/060_refuse_cycle.sql",
        "if v_old is not null then",
        "if false then",
        "test_concurrency.py -k a_ring_of",
    ),
    "the trust gates": (
        "sql/functions/060_check_trust.sql",
        "begin\n",
        "begin\n    return;\n",
        "test_conformance.py -k trust",
    ),
    "the exact shape": (
        "src/supersede/queries/ranking.py",
        ".where(*matches(filters))\n        .cte(",
        ".where(*matches(filters), fact.c.fact_id.in_(sa.select(embedding.c.fact_id).order_by(\n"
        "            sa.cast(embedding.c.vector, HALFVEC(64)).op('<=>')(\n"
        "                sa.cast(sa.literal(question.vector), HALFVEC(64)))).limit(40)))\n        .cte(",
        "test_exact.py",
    ),
    "contrast": (
        "src/supersede/contrast.py",
        "def contrast(a: str, b: str) -> bool:\n",
        "def contrast(a: str, b: str) -> bool:\n    return False\n\n\ndef _unused(a: str, b: str) -> bool:\n",
        "test_seed_answer.py -k opposite",
    ),
    "the grants": (
        "sql/grants.sql",
        "execute format('grant select on all tables in schema supersede to %I', v_role);",
        "execute format('grant all on all tables in schema supersede to %I', v_role);",
        "test_roles.py -k no_role_touches",
    ),
    "functions closed to everybody": (
        "sql/grants.sql",
        "revoke all on all routines in schema supersede from public;",
        "",
        "test_roles.py -k readers_call_no_verb",
    ),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_a_test_fails(guard: str, server_url: str, tmp_path: Path) -> None:
    name, there, left, tests = GUARDS[guard]
    for part in TREE:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    source = tmp_path / name
    text = source.read_text(encoding="utf-8")
    assert there in text, f"{name} has changed: say anew where its guard is"
    source.write_text(text.replace(there, left), encoding="utf-8")
    module, *options = tests.split(" ", 2)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{module}", *options],
        cwd=tmp_path,
        env=os.environ | {"SUPERSEDE_TEST_URL": server_url, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 1, run.stdout[-3000:] + run.stderr[-2000:]
    # A test failed, and not an import or a fixture.
    assert "\nFAILED tests/" in run.stdout, run.stdout[-3000:]
    assert "\nERROR" not in run.stdout, run.stdout[-3000:]
