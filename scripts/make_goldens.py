"""Write tests/data/goldens/answers.jsonl: what a frozen ledger answers to some forty questions.

    python scripts/make_goldens.py              # asks the ledger that is there, and writes the answers anew
    python scripts/make_goldens.py --history    # records the history first, and writes the ledger anew too

A database is made on the server that the tests use, and dropped. The same basis must give the same answer
in every release: an answer that changes means that how answers are ranked, grouped or worded has changed.
Then raise ``RULES`` in models.py and make the answers anew. The ledger is from then on the past: make it
anew only where the history in tests/histories.py is to say more.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "data" / "goldens"
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from fakes import BagOfWords
from histories import a_life, questions
from servers import find_server, new_database
from supersede import FactStore


def record(server: str, ledger: Path) -> None:
    """Record the history and export it."""
    with new_database(server, "goldens") as (_, url):
        FactStore.init(url, embedder=BagOfWords(), text_search="english")
        with FactStore.open(url, embedder=BagOfWords()) as store:
            a_life(store)
            store.export_ledger(ledger)


def ask(server: str, ledger: Path, answers: Path) -> None:
    """Import the ledger and ask it."""
    with new_database(server, "goldens") as (_, url):
        FactStore.init(url, embedder=BagOfWords(), text_search="english")
        with FactStore.open(url, embedder=BagOfWords()) as store:
            store.import_ledger(ledger)
            lines = [answer.model_dump_json() + "\n" for answer in questions(store)]
    answers.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--history", action="store_true", help="record the history anew as well")
    wanted = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    ledger, answers = FOLDER / "ledger.jsonl", FOLDER / "answers.jsonl"
    with find_server() as server:
        if wanted.history:
            record(server, ledger)
        ask(server, ledger, answers)
    print(f"{answers.relative_to(ROOT)}: {len(answers.read_text(encoding='utf-8').splitlines())} lines")


if __name__ == "__main__":
    main()
