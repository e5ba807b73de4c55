"""Writers and readers on an embedded server, killed at random with it; then everything is asked again.

    python scripts/soak.py --seconds 600 --seed 7

Workers, backends and the server are killed with -9 at random moments, indexes rebuilt and tables vacuumed
in between. Every answer is asked again, during the run and after it, and every write that was acknowledged
is looked up in the ledger. Exit status 1 if an answer differs, a write is lost, or the tables hold what
they must not. The seed fixes what is chosen, not how the processes interleave.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import soak


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = soak.Plan()
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--writers", type=int, default=default.writers)
    parser.add_argument("--readers", type=int, default=default.readers)
    parser.add_argument("--between-kills", type=float, default=default.between_kills, help="mean, in seconds")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = vars(parser.parse_args())
    as_json = arguments.pop("json")
    logging.disable(logging.WARNING)  # embedders that fail are part of it
    report = soak.run(soak.Plan(**arguments), say=lambda line: print(line, file=sys.stderr, flush=True))
    print(report.as_json() if as_json else "\n".join(report.lines()))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
