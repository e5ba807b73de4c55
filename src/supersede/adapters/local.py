"""Any model of the package ``sentence-transformers``, computed on this machine."""

from __future__ import annotations

import importlib.util
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supersede.adapters import UNMEASURED, Thresholds
from supersede.errors import EmbedderUnavailable, InvalidInput
from supersede.ports import Vectors

_INSTALL = 'pip install "supersede[local]"'

# By scripts/measure_thresholds.py; docs/thresholds.md has the figures.
_MEASURED = {"all-MiniLM-L6-v2": Thresholds(0.34, 0.92)}


class SentenceTransformerEmbedder:
    """A sentence-transformers model: single precision, unit length, claims and questions treated alike.

    The constructor looks whether the package and the folder are there; the model loads when its vectors
    or their ``dimensions`` are first needed. Safe to share between threads.

    A text embedded again gives the same bits. Embedded in another batch, its components move by less
    than 1e-5, since padding changes the order in which the library adds up; so may another device or
    another number of threads.

    A model's default prompt, if it has one, stands before every text; prompts that are meant for
    questions or for documents alone are not used. Code that comes with a model is not run.

    :param model: a model id (fetched by the library at first use), or a folder that holds a model, which
        needs no network.
    :param device: where to compute, such as ``cpu`` or ``cuda:0``; else the library chooses.
    :param batch_size: texts computed at once; more is faster on a GPU and takes more memory.
    :param name: the name of the embedding space; else the model id, with ``@revision`` where one is
        given, and for a folder its own name. It must change whenever the vectors do.
    :param revision: a commit, tag or branch of the model; a folder has none.
    :param min_similarity: the least cosine that makes a claim a match, which becomes that of the space; else
        what was measured for all-MiniLM-L6-v2, and for other models 0.25, which rather shows too much:
        models differ, so measure your own (``scripts/measure_thresholds.py``).
    :param near_duplicate: likewise the cosine from which two claims may be one; else 0.92.
    :raises EmbedderUnavailable: when the package or the folder is missing; says what to install.
    :raises InvalidInput: for an empty model or name, a revision of a folder, or a batch of none.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 16,
        name: str | None = None,
        revision: str | None = None,
        min_similarity: float | None = None,
        near_duplicate: float | None = None,
    ) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailable(
                f"The package 'sentence_transformers' is needed, which is not installed: {_INSTALL}"
            )
        if batch_size < 1:
            raise InvalidInput(f"batch_size must be at least 1, not {batch_size}")
        folder = _folder(model)
        if folder is not None and revision is not None:
            raise InvalidInput(f"revision: {folder} is a folder, which has no revisions")
        self.model = _space_name(model, folder, name=name, revision=revision)
        floor, near = _MEASURED.get(self.model.rpartition("/")[2], UNMEASURED)
        self.min_similarity = floor if min_similarity is None else min_similarity
        self.near_duplicate = near if near_duplicate is None else near_duplicate
        self._source = str(folder or model)
        self._revision = revision
        self._device = device
        self._batch_size = batch_size
        # Held to load and to compute: the library switches truncation on and off on the one tokenizer
        # that all threads share, so that one would count what another has cut.
        self._lock = threading.Lock()
        self._loaded: tuple[Any, int] | None = None

    @property
    def dimensions(self) -> int:
        """The length of every vector; loads the model.

        :raises EmbedderUnavailable: when it cannot be loaded.
        """
        with self._lock:
            return self._load()[1]

    def embed(self, texts: list[str]) -> Vectors:
        """Vectors of shape ``[len(texts), dimensions]``, in the order of the texts, of unit length.

        :raises EmbedderUnavailable: when the model cannot be loaded.
        """
        with self._lock:
            model, dimensions = self._load()
            if not texts:  # of which the library makes an array of one dimension
                return np.empty((0, dimensions), dtype=np.float32)
            return _encode(model, texts, batch_size=self._batch_size)

    def exceeds_window(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it has more tokens than the model reads, its default prompt included.

        :raises EmbedderUnavailable: when the model cannot be loaded.
        """
        if not texts:
            return []
        with self._lock:
            model, _ = self._load()
            window = model.max_seq_length
            if window is None or math.isinf(window):  # it averages over words, however many
                return [False] * len(texts)
            prompt = model.prompts.get(model.default_prompt_name) or ""
            # Not verbose: it would warn of what is being asked.
            tokens = model.tokenizer([prompt + text for text in texts], truncation=False, verbose=False)
        return [len(ids) > window for ids in tokens["input_ids"]]

    def _load(self) -> tuple[Any, int]:
        """The model and its dimensions. The caller holds the lock."""
        if self._loaded is None:
            try:
                self._loaded = self._open()
            except Exception as error:  # of the library, of its hub, of torch: no base class in common
                # What they say stays in __cause__: it may quote the address of a private hub.
                raise EmbedderUnavailable(
                    f"The model {self._source!r} could not be loaded ({type(error).__name__}). It must be "
                    "a folder that holds a sentence-transformers model, or the id of one that this "
                    "machine has or can fetch."
                ) from error
        return self._loaded

    def _open(self) -> tuple[Any, int]:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(self._source, device=self._device, revision=self._revision)
        # Many models are kept in half precision, in which the batch would show in the third decimal.
        model.float()
        # Its width is that of what it returns: the method that tells it has changed its name.
        return model, _encode(model, ["width"], batch_size=1).shape[1]


def _folder(model: str | Path) -> Path | None:
    """The folder that is meant, or None for a model id. The library takes an existing one first, too."""
    if model == "":  # which pathlib takes for the folder one is in
        raise InvalidInput("model: give the id of a model, or a folder that holds one")
    path = Path(model)
    if isinstance(model, str) and not path.is_dir():
        return None
    if not path.is_dir():
        raise EmbedderUnavailable(f"The folder {path}, which should hold a model, is not there.")
    return path.resolve()  # a link that is moved to another model must not keep its space


def _space_name(model: str | Path, folder: Path | None, *, name: str | None, revision: str | None) -> str:
    if name is None and folder is not None:
        name = folder.name
    elif name is None:
        name = f"{model}@{revision}" if revision else str(model)
    if not name.strip():
        raise InvalidInput("the embedding space needs a name: pass name=")
    return name


def _encode(model: Any, texts: list[str], *, batch_size: int) -> Vectors:  # noqa: ANN401 - no types
    vectors: Vectors = model.encode(
        texts,
        batch_size=batch_size,
        normalize_embeddings=True,
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return vectors
