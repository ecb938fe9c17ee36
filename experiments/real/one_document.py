"""Audits of real chat models without any known document, by the product's own code::

    PYTHONPATH=. python experiments/real/one_document.py MODEL.gguf DATA fairytaleqa.jsonl langchain

The application is that of ``table.py``; llama.cpp answers, by the weights as they are in the file.
It prints a row: how many members and others reach an e-value of 20 and are called in, and what the
bets on others paid. Documents are asked about in a random order, so a run that ``--cap`` ends is a
smaller sample of both sides. Answers are kept in the run's folder under --work, so the same command
goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from typing import Any

import numpy as np

from experiments.real.table import Application, Cell, arguments
from ragwitness.api import audit
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.models.base import ChatPrompt
from ragwitness.models.endpoint import GgufModel
from ragwitness.stats.rates import proportion_interval

ENOUGH = 20.0
"""E-value that is counted."""


class LlamaTarget:
    """An application over a GGUF file, as a target.

    Args:
        application: Retrieves and writes prompts.
        model: Answers.
        name: Of both.
    """

    capabilities = frozenset({Capability.TEXT, Capability.TOP_LOGPROBS})

    def __init__(self, application: Application, model: GgufModel, name: str) -> None:
        self.application, self.model, self.name = application, model, name

    async def ask(self, query: Query) -> Answer:
        """Return the answer of the model to the passages and the question."""
        passages = self.application.retrieve(query.prompt)
        prompt = ChatPrompt(tuple(self.application.template.messages(passages, query.prompt)))
        (made,) = await asyncio.to_thread(
            self.model.generate,
            [prompt],
            max_tokens=query.max_tokens or 256,
            temperature=query.temperature,
            top_logprobs=query.top_logprobs or 0,
        )
        return Answer(made.text, made.tokens or None, made.finish_reason)

    async def close(self) -> None:
        """Nothing is open."""


def interval_of_mean(values: list[float], seed: int = 0) -> str:
    """Return a mean with its bootstrap interval of 95 %."""
    rng, given = np.random.default_rng(seed), np.array(values)
    means = rng.choice(given, (2000, given.size)).mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{given.mean():.3f} [{low:.3f}, {high:.3f}] of {given.size}"


def counted(flags: list[bool]) -> str:
    """Return a count with its exact interval."""
    low, high = proportion_interval(sum(flags), len(flags))
    return f"{sum(flags)}/{len(flags)} [{low:.3f}, {high:.3f}]"


def row_of(result: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Return what one audit found, as a row."""
    row: dict[str, Any] = {"model": given.model.stem, "corpus": given.corpus}
    row |= {"prompt": given.prompt, "method": result.method, "known": given.n[2]}
    for side, inside in (("members", True), ("others", False)):
        part = [v for v in result.verdicts if v.member is inside and v.score is not None]
        e_values = [one.e_value if one.e_value is not None else 1.0 for one in part]
        row[f"{side}, e >= 20"] = counted([one >= ENOUGH for one in e_values])
        row[f"{side}, in"] = counted([str(one.decision) == "in" for one in part])
        row[f"{side}, p <= .05"] = counted([(one.p_value or 1.0) <= 0.05 for one in part])
        row[f"{side}, mean e"] = interval_of_mean(e_values)
        row[f"{side}, largest e"] = round(max(e_values), 1)
        row[f"{side}, questions"] = round(float(np.mean([one.queries for one in part])), 2)
    row["queries"], row["minutes"] = result.queries, round(result.seconds / 60, 1)
    row["warnings"] = list(result.warnings)
    return row


def main() -> None:
    """Audit, and print the row."""
    parser = arguments(__doc__)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--reference", nargs="+", default=[])
    parser.add_argument("--cap", type=int, help="queries at most")
    given = parser.parse_args()
    cell = Cell(given)
    model = GgufModel(str(given.model))
    name = f"{given.model.stem}:{given.corpus}:{given.prompt}"
    target = LlamaTarget(cell.target.application, model, name)
    # Members and others come in one random order, as nobody knows which is which.
    documents = random.Random(2).sample(cell.question, len(cell.question))
    parts = (*name.split(":"), given.method, *map(str, given.n))
    result = audit(
        target,
        documents,
        known_out=cell.known_out or None,
        method=given.method,
        run=given.work / "-".join(parts),
        yes=True,
        reference_model=given.reference,
        max_queries=given.cap,
    )
    row = row_of(result, given)
    print(json.dumps(row), flush=True)
    with (given.work / "one_document.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
