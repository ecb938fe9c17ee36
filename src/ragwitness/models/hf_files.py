"""Loading through transformers: imports, errors in our words, and a model's identity."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragwitness.core.errors import ModelError, import_extra


def import_libraries(feature: str) -> tuple[Any, Any]:
    """Import torch and transformers, seconds each, only when a model is built.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    return import_extra("torch", feature, "hf"), import_extra("transformers", feature, "hf")


@contextlib.contextmanager
def quiet(source: str) -> Iterator[None]:
    """Show no progress bar while a local folder is read or written; a download keeps its bar."""
    from transformers.utils import logging

    if not Path(source).is_dir() or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def load_pretrained(factory: Any, source: str, **options: Any) -> Any:
    """Call ``factory.from_pretrained``.

    Raises:
        ModelError: There is no such model, or no way to it.
    """
    try:
        with quiet(source):
            return factory.from_pretrained(source, **options)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"transformers cannot load {source}: {reason[0] if reason else error!r}",
            "Give a local folder, or a hub name that is cached or reachable.",
        ) from error


def cache_name(model: Any) -> str:
    """Return what this model calls the keys and values it keeps, as argument and in its output.

    It was ``past_key_values`` before transformers 5.24 or so, and is ``cache`` since. A model with
    adapters hands on whatever it is given, to the model that it wraps.
    """
    wrapped = model.get_base_model() if hasattr(model, "get_base_model") else model
    accepted = inspect.signature(wrapped.forward).parameters
    return "cache" if "cache" in accepted else "past_key_values"


def identity(source: str, config: Any) -> str:
    """Return ``hf:NAME@VERSION``.

    The version is the hub's commit, or the sha256 of the local weight files: six digits each.
    """
    # A hub's commit fixes every file; a local folder has none, so its weights are hashed.
    commit = getattr(config, "_commit_hash", None)
    if commit:
        return f"hf:{source}@{commit[:6]}"
    folder = Path(source)
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    return f"hf:{folder.resolve().name}@{files_digest(weights)[:6]}"


def files_digest(paths: Iterable[Path]) -> str:
    """Return the sha256 (hex) over the contents of files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
