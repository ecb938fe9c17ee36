"""Tables of pages, made of the code and of `experiments/`: `python pages/tables.py` writes them.

A table stands between two comments, `<!-- table: NAME -->` and `<!-- end -->`. A test makes each
again and compares (`tests/docs/test_tables.py`).
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ragwitness.core.types import Answer, Capability, Query
from ragwitness.membership.method_registry import AUDITS, build_audit
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.worker import Worker
from ragwitness.stats.power import Binormal, expected_power, needed_together
from ragwitness.text.sample import load_sample

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_ALPHA = 0.05
_KNOWN = (19, 40, 100, 200, 400, 1000)
_NEEDS = {
    "TEXT": "text",
    "TOP_LOGPROBS": "log-probabilities",
    "PROMPT_LOGPROBS": "log-probabilities of prompts",
    "CONTEXTS": "the passages retrieved",
}


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def least() -> str:
    """What so many known-out documents can decide at all."""
    asked = (1, 20, 100, 200)

    def together(known: int, documents: int) -> str:
        fewest = needed_together(_ALPHA, documents, known)
        return "never" if fewest is None else "1" if fewest == 1 else f"{fewest} together"

    rows = [(str(m), f"{1 / (m + 1):.4f}", *(together(m, n) for n in asked)) for m in _KNOWN]
    head = ("known outside", "least p-value", *(f"of {n} asked about" for n in asked))
    return _table(head, rows)


def power() -> str:
    """What share of the documents inside is expected to be found."""
    rows = []
    for n in (20, 200):
        for auc in (0.9, 0.95, 0.99, 0.999):
            found = [expected_power(Binormal(auc), documents=n, known_out=m).found for m in _KNOWN]
            rows.append((str(n), f"{auc:g}", *(f"{100 * share:.0f} %" for share in found)))
    return _table(("asked about", "AUC", *(f"{m} known" for m in _KNOWN)), rows)


class _Mute:
    """A target that says nothing and keeps what it is asked."""

    name = "mute"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def ask(self, query: Query) -> Answer:
        """Answer nothing."""
        self.prompts.append(query.prompt)
        return Answer("", finish_reason="stop")

    async def close(self) -> None:
        """There is nothing to close."""


_IN_A_ROW = 3  # words of a document, by which a question shows that it holds them


def _sent(text: str, prompts: list[str]) -> float:
    """Return the share of a text's words that questions hold, three in a row or more."""
    asked = "\0".join(" ".join(prompt.split()) for prompt in prompts)
    words, held = text.split(), set()
    for at in range(len(words) - _IN_A_ROW + 1):
        if " ".join(words[at : at + _IN_A_ROW]) in asked:
            held |= set(range(at, at + _IN_A_ROW))
    return len(held) / len(words)


def methods() -> str:
    """What each method asks, needs and sends, counted on generated documents."""
    proxy, documents = load_language_model("reader"), load_sample()[:4]
    rows = []
    for name in AUDITS.names():
        audit = build_audit(name, proxy)
        needs = " and ".join(sorted(_NEEDS[one.name] for one in audit.requires))
        sent, queries = [], []
        for document in documents:
            target = _Mute()
            asyncio.run(Worker(target, None, 1).run(audit, [document], name))
            queries.append(len(target.prompts))
            sent.append(_sent(document.text, target.prompts))
        share = f"{round(100 * max(sent), -1):.0f} %"
        rows.append((f"`{name}`", AUDITS[name].summary, needs, str(max(queries)), share))
    head = ("method", "how it asks", "what the system must show", "queries", "words sent")
    return _table(head, rows)


def _measured(page: str, row: str) -> list[tuple[str, ...]]:
    text = (ROOT / "experiments" / page / "README.md").read_text(encoding="utf-8")
    return [match.groups() for match in re.finditer(row, text, re.MULTILINE)]


def chat() -> str:
    """Audits by default of chat models, out of experiments/real."""
    cell = r" ([^|]+?) \|"
    rows = _measured("real", rf"^\|{cell}{cell} `auto` \|{cell}{cell}{cell}{cell}{cell}{cell}")
    shown = [
        (model, corpus, auc, inside.replace("**", ""), others, f"{called} of {n.split(',')[0]}")
        for model, corpus, n, auc, _, inside, others, called in rows
    ]
    head = ("model", "corpus", "AUC", "inside, p ≤ .05", "outside, p ≤ .05", "inside, `in`")
    return _table(head, shown)


def reader() -> str:
    """The methods that ask as they did in experiments/evaluate, by their AUC there."""
    rows = _measured("evaluate", r"^\| ([\w-]+) \| (\S+ \[.*?\]) \|.*\| \S+ \|$")
    names = AUDITS.names()
    return _table(("method", "AUC"), [(f"`{name}`", auc) for name, auc in rows if name in names])


TABLES: Mapping[str, Callable[[], str]] = {
    "least": least,
    "power": power,
    "methods": methods,
    "chat": chat,
    "reader": reader,
}


def stored(text: str) -> dict[str, str]:
    """Return the tables that a page holds, by name."""
    return dict(re.findall(r"<!-- table: (\w+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL))


def renewed(text: str) -> str:
    """Return a page with all of its tables computed anew."""
    for name in stored(text):
        text = re.sub(
            rf"(<!-- table: {name} -->\n).*?(\n<!-- end -->)",
            lambda found, name=name: f"{found[1]}{TABLES[name]()}{found[2]}",
            text,
            flags=re.DOTALL,
        )
    return text


if __name__ == "__main__":
    for page in PAGES:
        if stored(text := page.read_text(encoding="utf-8")):
            page.write_text(renewed(text), encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)} is written anew\n")
