"""Where an embedding space should draw its two lines: the floor of a match, and when two claims may be one.

    python scripts/measure_thresholds.py                       # the light model (extra: light)
    python scripts/measure_thresholds.py --folder FOLDER       # a sentence-transformers model (extra: local)

Three corpora of claims: titles of RFCs, titles of Python Enhancement Proposals, and statements about people,
places and sports. For each, questions whose right answer is known, and questions that have none there: those
of the other two corpora, small talk, random words and random letters. The floor keeps a relevant question if
a right answer reaches it, and lets an irrelevant one through if any claim does.

Near-duplicates are the pairs of ``tests/data``: restatements against contradictions, by cosine and words.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import string
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from supersede.contrast import contrast, fold_claim
from supersede.ports import Embedder

DATA = ROOT / "tests" / "data"
FLOORS = [0.10, 0.15, 0.20, 0.25, 0.28, 0.30, 0.32, 0.34, 0.36, 0.38, 0.40, 0.45, 0.50]
NEAR = [0.80, 0.84, 0.86, 0.88, 0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97]
STRUCTURE = {"other_subject", "slot_other_value"}

Vectors = np.ndarray[Any, Any]
Embed = Callable[[Sequence[str]], Vectors]


class Corpus(NamedTuple):
    """Claims by key, and questions with the keys of their right answers."""

    claims: dict[str, str]
    questions: list[tuple[str, list[str]]]


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines, packed or not."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode().splitlines()]


def load() -> dict[str, Corpus]:
    """The three corpora."""
    written = json.loads((DATA / "threshold_questions.json").read_text(encoding="utf-8"))
    rfcs = rows(ROOT / "src" / "supersede" / "data" / "rfc.jsonl.gz")
    titles = {str(row["number"]): row["title"] for row in rfcs}
    peps = {
        row["subject"].removeprefix("PEP "): row["object"]
        for row in rows(DATA / "pep.jsonl.gz")
        if row["predicate"] == "title"
    }
    statements = {row["id"]: row["claim"] for row in rows(DATA / "factconsolidation_facts.jsonl")}
    asked = rows(DATA / "factconsolidation_queries.jsonl")

    def right(questions: list[dict[str, Any]], claims: dict[str, str]) -> list[tuple[str, list[str]]]:
        return [(q["question"], [k for n in q["right"] if (k := str(n)) in claims]) for q in questions]

    return {
        "RFC": Corpus(titles, right(written["rfc"], titles)),
        "PEP": Corpus(peps, right(written["pep"], peps)),
        "statements": Corpus(statements, [(q["question"], q["gold_current"]) for q in asked]),
    }


def old_titles(corpus: Corpus) -> list[tuple[str, list[str]]]:
    """Titles of obsoleted RFCs as questions; right are those that obsoleted them directly."""
    successors: dict[str, list[str]] = {}
    for row in rows(ROOT / "src" / "supersede" / "data" / "rfc.jsonl.gz"):
        for old in row["obsoletes"]:
            successors.setdefault(str(old), []).append(str(row["number"]))
    return [(corpus.claims[old], new) for old, new in sorted(successors.items()) if old in corpus.claims]


def nonsense(claims: Sequence[str]) -> dict[str, list[str]]:
    """A hundred questions each of random letters, and of random words of the corpora."""
    chance = random.Random(1)
    words = sorted({word for claim in claims for word in claim.lower().split() if word.isalpha()})
    letters = [
        " ".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 9))) for _ in range(4))
        for _ in range(100)
    ]
    return {"letters": letters, "words": [" ".join(chance.sample(words, 5)) for _ in range(100)]}


def measure_floor(embed: Embed) -> None:
    """The table of floors."""
    corpora = load()
    vectors = {name: embed(list(corpus.claims.values())) for name, corpus in corpora.items()}
    place = {name: {key: n for n, key in enumerate(corpus.claims)} for name, corpus in corpora.items()}
    written = json.loads((DATA / "threshold_questions.json").read_text(encoding="utf-8"))
    noise = nonsense([claim for corpus in corpora.values() for claim in corpus.claims.values()])
    talk = {"small talk": written["small_talk"], **noise}
    asked = {name: embed([q for q, _ in corpus.questions]) for name, corpus in corpora.items()}
    asked |= {name: embed(questions) for name, questions in talk.items()}
    old = old_titles(corpora["RFC"])

    print("\nrelevant: share whose right answer reaches the floor")
    head("", FLOORS)
    for name, corpus in corpora.items():
        show(
            f"{name}, {len(corpus.questions)} questions",
            right_cosines(corpus.questions, asked[name], vectors[name], place[name]),
        )
    show(
        f"RFC, {len(old)} old titles",
        right_cosines(old, embed([q for q, _ in old]), vectors["RFC"], place["RFC"]),
    )

    print("\nirrelevant: share for which some claim reaches the floor")
    head("", FLOORS)
    for name in corpora:
        for size in (300, 3_000, len(vectors[name])):
            if size > len(vectors[name]):
                continue
            some = vectors[name][np.random.default_rng(0).permutation(len(vectors[name]))[:size]]
            for other, questions in asked.items():
                if other != name and (size == len(vectors[name]) or other == "small talk"):
                    show(f"{name}, {size:,} claims: {other}", (questions @ some.T).max(axis=1))


def right_cosines(
    questions: list[tuple[str, list[str]]], asked: Vectors, claims: Vectors, place: dict[str, int]
) -> Vectors:
    """The cosine of the best right answer of each question."""
    return np.array(
        [max(float(asked[n] @ claims[place[key]]) for key in keys) for n, (_, keys) in enumerate(questions)]
    )


def head(label: str, columns: list[float]) -> None:
    """The first line of a table."""
    print(f"{label:44}" + "".join(f"{column:6.2f}" for column in columns) + "    p5   p50   p95")


def show(label: str, cosines: Vectors) -> None:
    """One line: the shares at or above each floor, and quantiles."""
    shares = [float((cosines >= floor).mean()) for floor in FLOORS]
    quantiles = [float(np.quantile(cosines, q)) for q in (0.05, 0.5, 0.95)]
    print(
        f"{label:44}" + "".join(f"{x:6.2f}" for x in shares) + "  " + "".join(f"{x:6.2f}" for x in quantiles)
    )


def measure_near(embed: Embed) -> None:
    """The table of thresholds for near-duplicates."""
    for file in ("near_duplicate_pairs.jsonl", "contrast_pairs.jsonl"):
        pairs = [pair for pair in rows(DATA / file) if pair["kind"] not in STRUCTURE]
        a, b = embed([pair["a"] for pair in pairs]), embed([pair["b"] for pair in pairs])
        cosines = (a * b).sum(axis=1)
        apart = [contrast(pair["a"], pair["b"]) for pair in pairs]
        equal = [fold_claim(pair["a"]) == fold_claim(pair["b"]) for pair in pairs]
        same = np.array([pair["same"] for pair in pairs])
        print(f"\n{file}: {same.sum()} the same, {(~same).sum()} not")
        print("threshold   by cosine alone: precision recall   with the words: found wrong precision recall")
        for threshold in NEAR:
            near = cosines >= threshold
            merged = np.array(equal) | (near & ~np.array(apart))
            found, wrong = int((merged & same).sum()), int((merged & ~same).sum())
            bare = (near & same).sum() / max(1, near.sum()), (near & same).sum() / same.sum()
            print(
                f"{threshold:9.2f}{bare[0]:28.3f}{bare[1]:7.3f}{found:24}{wrong:6}"
                f"{found / max(1, found + wrong):10.3f}{found / same.sum():7.3f}"
            )


def unit(embedder: Embedder) -> Embed:
    """The vectors of texts as they are stored: half precision, of unit length."""

    def embed(texts: Sequence[str]) -> Vectors:
        found = (
            np.asarray(embedder.embed(list(texts)), dtype=np.float32).astype(np.float16).astype(np.float32)
        )
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    return embed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a folder with a sentence-transformers model")
    folder = parser.parse_args().folder
    embedder: Embedder
    if folder is None:
        from supersede.adapters.minilm import MiniLMEmbedder

        embedder = MiniLMEmbedder()
    else:
        from supersede.adapters.local import SentenceTransformerEmbedder

        embedder = SentenceTransformerEmbedder(folder, device="cpu")
    print(embedder.model)
    measure_floor(unit(embedder))
    measure_near(unit(embedder))


if __name__ == "__main__":
    main()
