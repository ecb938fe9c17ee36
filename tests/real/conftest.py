"""Real chat models that nobody here trained, out of a folder that the environment names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "RAGWITNESS_CHAT_MODELS"
"""Folder of GGUF files by the names smollm2, qwen05 and qwen15; ``make chat`` fetches the first."""


@pytest.fixture(scope="session")
def smollm2() -> str:
    """The address of SmolLM2-135M-Instruct."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / "smollm2.gguf"
    if not (folder and path.is_file()):
        pytest.skip(f"{VARIABLE} names no folder with smollm2.gguf")
    pytest.importorskip("xllamacpp")
    return f"gguf:{path}"
