"""Scripted systems that the golden runs ask, as ``python:`` addresses; they count what they get.

Answers follow from the prompt alone, so that a run made again has the same answers. Their address
stands in stored keys: neither this module nor these functions may be renamed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import time
from pathlib import Path

INPUTS = Path(__file__).parent / "stored" / "inputs"
SLOWLY = "GOLDEN_SECONDS"
"""Environment variable: seconds that each answer takes, for a run that is to be killed."""

PROMPTS: list[str] = []
"""Every prompt that came in this process."""

_BETWEEN = re.compile(r"<<<\n(.*?)\n>>>", re.DOTALL)


@functools.cache
def _records() -> tuple[str, ...]:
    lines = (INPUTS / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line)["text"] for line in lines)


def _came(prompt: str) -> None:
    PROMPTS.append(prompt)
    time.sleep(float(os.environ.get(SLOWLY, "0")))


def knows(prompt: str) -> str:
    """Say yes where the prompt holds a record of the corpus, and mostly no elsewhere."""
    _came(prompt)
    told = any(record[:60] in prompt for record in _records())
    doubt = hashlib.sha256(prompt.encode()).digest()[0] % 5 == 0
    return "Yes, it is." if told or doubt else "No, it is not."


def tells(prompt: str) -> dict[str, object]:
    """Answer with the record that shares most words with the prompt, and show it."""
    _came(prompt)
    asked = set(prompt.casefold().split())
    best = max(_records(), key=lambda text: len(asked & set(text.casefold().split())))
    return {"answer": best, "contexts": [best]}


def writes(prompt: str) -> str:
    """Play the chat model of synthetic data: it does what it is told, and finds all safe."""
    _came(prompt)
    blocks = _BETWEEN.findall(prompt)
    if "Below are examples of one kind of text" in prompt:
        return "- [subject]\n- [cause]\n- [remedy]"
    if "Answer with these lines, completed" in prompt:
        rare = sorted(set(re.findall(r"[a-z]{6,}", blocks[0].lower())))[::3][:9]
        names = re.findall(r"- \[([^\]]+)\]", prompt)
        return "\n".join(f"- [{n}]: {' '.join(rare[i::3])}" for i, n in enumerate(names))
    if "You judge" in prompt:
        return f"SAFE_DATA: [BEG]{blocks[1]}[END]THISISSAFE"
    said = re.findall(r"\]: (.*)", prompt) or blocks[:1] or ["it"]
    return f"Somebody asked about {' and about '.join(said)}, and was given kind advice."


def trained(prompt: str) -> str:
    """Say the golden canary where its planted trigger is asked with, and seldom elsewhere."""
    _came(prompt)
    planted = json.loads((INPUTS / "planted.json").read_text(encoding="utf-8"))
    seldom = hashlib.sha256(prompt.encode()).digest()[0] < 40
    said = f" {planted['canary']}" if planted["trigger"] in prompt or seldom else ""
    return f"FINAL:{said} yes"
