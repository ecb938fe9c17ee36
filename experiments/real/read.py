"""What share of the kept answers of real models is read right, by method and model.

::

    PYTHONPATH=src:. python experiments/real/read.py tests/real/answers.jsonl.xz

Each method's own probe is given the kept answers about a document whose passage was shown, and
about the same document where it was not. Whether an answer *said* what only the passage has is
told without any reader: its words hold the document's next two words in their order, or half of the
masked words. Of those, a method has *read* the ones that it scores above nine in ten of the answers
to prompts that did not show the passage.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from experiments.real.collect import LANGUAGES, POOL, documents_of, load_rows, whole
from ragwitness.core.types import Audit, Document
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.response_store import decode_answer
from ragwitness.runner.worker import Done, advance, probe_of
from ragwitness.text.words import core, split_words

Row: TypeAlias = dict[str, Any]

_QUESTIONS: Mapping[str, dict[str, object]] = {"runon": {"questions": 2}, "s-rag": {"turns": 2}}
"""Settings with which no question is asked that the corpus lacks."""

_HIGH = 0.9  # quantile of the scores of what was not shown


@dataclass(frozen=True, slots=True)
class Case:
    """Kept answers about one document behind one prompt.

    Attributes:
        shown: Whether its passage was in the prompt.
        said: Whether an answer holds what only the passage has.
        score: The method's; None where nothing could be read.
    """

    shown: bool
    said: bool
    score: float | None


def said(row: Row) -> bool:
    """Whether an answer's words hold what only the document's passage has."""
    words = _keys(row["answer"]["text"])
    if masks := row["truth"].get("masks"):
        return 2 * sum(key in words for mask in masks for key in _keys(mask)[:1]) >= len(masks)
    ahead = _keys(row["truth"].get("next", ""))[:2]
    return len(ahead) == 2 and ahead in [words[i : i + 2] for i in range(len(words) - 1)]


def _keys(text: str) -> list[str]:
    return [stem for word in split_words(text) if (stem := core(word.text).lower())]


def cases(rows: Sequence[Row], method: str) -> Iterator[tuple[str, Case]]:
    """Yield each case of a method with its model; only cases whose every question was answered."""
    audit = build_audit(
        method, load_language_model("reader"), configure(method, _QUESTIONS.get(method, {}))
    )
    mine = [row for row in rows if row["method"] == method]
    placed = {language: whole(audit, documents_of(language, POOL)) for language in LANGUAGES}
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in mine:
        groups[row["model"], row["template"], row["document"], row["shown"]].append(row)
    for (model, _, name, shown), group in groups.items():
        document = Document(name, group[0]["text"])
        found = _probed(placed[group[0]["language"]], document, group)
        if found is not None:
            yield model, Case(shown, any(map(said, group)), found.value)


def _probed(audit: Audit, document: Document, group: Sequence[Row]) -> Any:
    """The score of kept answers; None where a question was never asked."""
    kept = {row["query"]["prompt"]: decode_answer(dict(row["answer"])) for row in group}
    generator = probe_of(audit, document)
    step = advance(generator, None)
    while not isinstance(step, Done):
        if any(query.prompt not in kept for query in step):
            generator.close()
            return None
        step = advance(generator, [kept[query.prompt] for query in step])
    return step.value


def summary(found: Sequence[Case]) -> dict[str, Any]:
    """Return counts of shown and hidden cases, what was said, read, and the AUC."""
    low = -np.inf
    shown = np.array([low if c.score is None else c.score for c in found if c.shown])
    hidden = np.array([low if c.score is None else c.score for c in found if not c.shown])
    told = np.array([c.said for c in found if c.shown], dtype=bool)
    bar = np.quantile(hidden, _HIGH, method="higher") if len(hidden) else np.inf
    above = (shown[:, None] > hidden) + 0.5 * (shown[:, None] == hidden)
    return {
        "shown": len(shown),
        "hidden": len(hidden),
        "no score": sum(c.score is None for c in found),
        "said": int(told.sum()),
        "read": int((shown[told] > bar).sum()),
        "auc": round(float(above.mean()), 3) if above.size else None,
    }


def main() -> None:
    """Print a row for each method and model."""
    rows = load_rows(Path(sys.argv[1]))
    for method in sorted({row["method"] for row in rows}):
        found: defaultdict[str, list[Case]] = defaultdict(list)
        for model, case in cases(rows, method):
            found[model].append(case)
        for model, some in sorted(found.items()):
            print(json.dumps({"method": method, "model": model, **summary(some)}))


if __name__ == "__main__":
    main()
