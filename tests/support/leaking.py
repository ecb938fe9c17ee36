"""Targets for ``python:`` addresses that leak a corpus file, named by a variable."""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "LEAKING_CORPUS"


def tell(prompt: str) -> dict[str, object]:
    """Answer with the record that shares most words with the prompt, and show it."""
    lines = Path(os.environ[VARIABLE]).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line)["text"] for line in lines if line.strip()]
    asked = set(prompt.casefold().split())
    best = max(records, key=lambda text: len(asked & set(text.casefold().split())))
    return {"answer": best, "contexts": [best]}


def refuse(prompt: str) -> str:
    """Tell nothing."""
    return f"I cannot say anything about a request of {len(prompt)} characters."


def unwell(prompt: str) -> str:
    """Fail at every other length of a prompt."""
    if len(prompt) % 2:
        raise RuntimeError("no model today")
    return refuse(prompt)
