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

from ragwitness.membership.forecast import rehearse
from ragwitness.membership.method_registry import AUDITS, build_audit
from ragwitness.models.model_registry import load_language_model
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


def methods() -> str:
    """What each method asks and needs, and its most queries, counted on generated documents."""
    proxy = load_language_model("reader")
    rows = []
    for name in AUDITS.names():
        audit = build_audit(name, proxy)
        needs = sorted(_NEEDS[one.name] for one in audit.requires)
        outcomes, _ = asyncio.run(rehearse(audit, load_sample()[:4], proxy))
        most = max(outcome.queries for outcome in outcomes)
        rows.append((f"`{name}`", AUDITS[name].summary, " and ".join(needs), str(most)))
    return _table(("method", "how it asks", "what the system must show", "queries at most"), rows)


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
