"""Six writers, two readers and late vectors on 20,000 facts; then every answer is asked again.

Needs an empty database of its own, as a superuser:

    createdb stress && python scripts/stress.py postgresql://postgres@127.0.0.1/stress --seconds 300

Exit status 1 if an answer changed, or if the tables hold what they must not. ``--no-clamp`` shows that
it would: its readers do not stop at the head, and the same run must fail.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import stress


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = stress.Plan("")
    parser.add_argument("url", help="an empty database, as a superuser")
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--facts", type=int, default=default.facts, help="loaded before it starts")
    parser.add_argument("--writers", type=int, default=default.writers)
    parser.add_argument("--readers", type=int, default=default.readers)
    parser.add_argument("--dimensions", type=int, default=default.dimensions)
    parser.add_argument("--pause", type=float, default=default.pause, help="mean rest of a writer, seconds")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--no-clamp", action="store_true", help="readers that do not stop at the head")
    arguments = vars(parser.parse_args())
    logging.disable(logging.WARNING)  # embedders that fail are part of it
    plan = stress.Plan(clamp=not arguments.pop("no_clamp"), **arguments)
    report = stress.run(plan, say=lambda line: print(line, flush=True))
    for line in report.lines():
        print(line)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
