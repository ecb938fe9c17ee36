"""The tables: leaks by method and attack, and what a method costs in answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.comparison.differences import at_equal_length, paired_difference

__all__ = ["table"]

Config = dict[str, Any]
# Published counts of SAGE's Tables 3 and 4, then ours against every record.
_COLUMNS = (
    ("RP", True, "repeat prompts 10"),
    ("RC", True, "repeat contexts 10"),
    ("ROUGE-P", True, "ROUGE prompts"),
    ("ROUGE-C", True, "ROUGE contexts"),
    ("TI", True, "targeted information"),
    ("repeat prompts", False, "repeat prompts 10"),
    ("less chance", None, "repeat prompts 10"),
    ("repeat records", False, "repeat records 10"),
    ("ROUGE records", False, "ROUGE records"),
    ("coverage", False, "coverage"),
    ("secrets", False, "secrets"),
)


def table(config: Config, out: Path) -> str:
    """Return the tables of what is finished.

    Raises:
        SystemExit: Nothing is.
    """
    lines: list[str] = []
    for corpus in config["corpora"]:
        stored = {}
        for method in (*config["methods"], *config["corpora"][corpus].get("methods", ())):
            path = out / corpus / method.replace(":", "-") / "result.json"
            if path.exists():
                stored[method] = json.loads(path.read_text())
        if stored:
            lines += [*_leaks(corpus, stored), *_utility(corpus, stored)]
    if not lines:
        raise SystemExit(f"nothing is finished in {out}")
    return "\n".join(lines) + "\n"


def _leaks(corpus: str, stored: dict[str, Config]) -> list[str]:
    lines = []
    names = [attack["name"] for attack in next(iter(stored.values()))["attacks"]]
    for place, name in enumerate(names):
        lines += [f"### {corpus}, {name}", ""]
        lines += ["| method | indexed | prompts | " + " | ".join(c for c, _, _ in _COLUMNS) + " |"]
        lines += ["|---" * (3 + len(_COLUMNS)) + "|"]
        for method, found in stored.items():
            attack = found["attacks"][place]
            printed = found["published"][attack["name"]]
            cells = [
                _cell(printed if kind else attack["measures"], kind, label)
                for _, kind, label in _COLUMNS
            ]
            asked = f"{attack['prompts'] - attack['failed']}"
            lines += [f"| {method} | {found['indexed']} | {asked} | {' | '.join(cells)} |"]
        lines += [""]
    return lines


def _cell(measures: list[Config], published: bool | None, label: str) -> str:
    """One figure; of several kinds (of secrets, of targets) their sum."""
    found = [
        one
        for one in measures
        if f"{one['name']} {one['key']}".strip().startswith(label) and one["note"] is None
    ]
    if not found:
        return "–"  # noqa: RUF001
    if published is None:
        excess = found[0]["excess"]
        return "–" if excess is None else "{value:+.3f} [{low:+.3f}, {high:+.3f}]".format(**excess)  # noqa: RUF001
    count, of = sum(one["count"] for one in found), sum(one["of"] for one in found)
    if not of and not published:
        return f"{count:.4f}"
    return f"{count:g}" if published else f"{count:g} of {of}"


def _utility(corpus: str, stored: dict[str, Config]) -> list[str]:
    if any(found["utility"] is None for found in stored.values()):
        return []
    names = list(next(iter(stored.values()))["utility"]["scores"])
    lines = [f"### {corpus}, answers to questions about other records", ""]
    lines += ["| method | words | " + " | ".join(f"{n} | less origin" for n in names) + " |"]
    lines += ["|---" * (2 + 2 * len(names)) + "|"]
    origin = stored.get("origin")
    for method, found in stored.items():
        cells = [f"{np.mean(found['utility']['lengths']):.0f}"]
        for name in names:
            cells += [f"{np.mean(found['utility']['scores'][name]):.4f}"]
            cells += [_difference(found, origin, name) if origin and method != "origin" else ""]
        lines += [f"| {method} | {' | '.join(cells)} |"]
    n = len(next(iter(stored.values()))["utility"]["lengths"])
    return [
        *lines,
        "",
        f"n = {n} questions; in brackets 95 %, then the difference at equal length.",
        "",
    ]


def _difference(found: Config, origin: Config, name: str) -> str:
    ours, theirs = (np.array(one["utility"]["scores"][name]) for one in (found, origin))
    lengths = [np.array(one["utility"]["lengths"]) for one in (found, origin)]
    plain = paired_difference(ours, theirs)
    held, _ = at_equal_length(ours, theirs, (lengths[0], lengths[1]))
    return f"{plain.value:+.4f} [{plain.low:+.4f}, {plain.high:+.4f}]; {held.value:+.4f}"
