"""Audits of a real chat model behind a RAG application that is none of ours, a row each::

    PYTHONPATH=. python experiments/real/table.py MODEL DATA healthcaremagic.jsonl langchain

MODEL is a GGUF file or a folder of transformers (``weights.py convert``), DATA the folder of the
data sets. The application is small and somebody else's in kind: passages of so many characters,
TF-IDF of scikit-learn, a prompt in common use, greedy answers. What it holds, the documents in
question and those known to be outside come from one random split of one source.

Documents are asked about in lock-step, so that a batch holds a question about each; the audit then
runs as it is, at a target that gives these answers. Answers are kept beside the rows in --work,
which git ignores, because they hold the data; the same command goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments.real.answer import Answerer, batches, kept_answers, named
from experiments.real.weights import load
from ragwitness.api import audit as audit_documents
from ragwitness.core.types import Answer, Audit, Capability, Document, Query
from ragwitness.membership.auto_select import _ShownAudit, pilot_documents
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.run import run_audit
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.config import TEMPLATES
from ragwitness.runner.worker import Done, advance, probe_of
from ragwitness.stats.rates import proportion_interval
from ragwitness.targets.wire import read_chat
from ragwitness.text.sample import load_sample

_SHORTEST = 40  # words of a document


def texts_of(path: Path) -> list[str]:
    """Return the different texts of a data set, in its order."""
    if path.suffix == ".txt":
        articles = re.split(r"\n = [^=].*= \n", path.read_text(encoding="utf-8"))
        return [" ".join(one.split()) for one in articles]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    field = "text" if "text" in rows[0] else "document"
    return list(dict.fromkeys(row[field] for row in rows))


class Application:
    """Passages, TF-IDF and a prompt: what a tutorial builds in an afternoon.

    Args:
        texts: What it holds.
        size: Characters of a passage.
        overlap: Characters that neighbours share.
        k: Passages in a prompt.
        prompt: Name of a prompt in use.
    """

    def __init__(self, texts: Sequence[str], size: int, overlap: int, k: int, prompt: str) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.passages = [part for text in texts for part in _pieces(text, size, overlap)]
        self.vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        self.matrix = self.vectors.fit_transform(self.passages)
        self.k, self.template = k, TEMPLATES[prompt]

    def retrieve(self, question: str) -> list[str]:
        """Return the passages for a question, the best first."""
        scores = (self.matrix @ self.vectors.transform([question]).T).toarray().ravel()
        return [self.passages[i] for i in scores.argsort()[::-1][: self.k]]

    def messages(self, question: str) -> list[dict[str, str]]:
        """Return what its model is sent."""
        sent = self.template.messages(self.retrieve(question), question)
        return [{"role": str(one.role), "content": one.content} for one in sent]


def _pieces(text: str, size: int, overlap: int) -> Iterator[str]:
    for start in range(0, max(1, len(text) - overlap), size - overlap):
        yield text[start : start + size]


class RealModel:
    """A chat model whose answers are kept in a file.

    Args:
        path: A GGUF file or a folder of transformers.
        kept: The file, in the form of ``answer.py``.
        batch: Questions at a time.
        device: ``cpu`` or ``cuda``.
        bits: 16 for bfloat16, 8 for linear layers in 8 bits (a CPU alone).
    """

    def __init__(self, path: Path, kept: Path, batch: int, device: str, bits: int) -> None:
        self.path, self.kept, self.batch, self.device = path, kept, batch, device
        self.bits = bits
        self.rows = kept_answers(kept)

    @cached_property
    def _answerer(self) -> Answerer:
        import torch

        torch.set_num_threads(1)
        model, tokenizer = load(self.path, self.device)
        if self.bits == 8:
            from experiments.real.eight_bits import in_eight_bits

            prose = " ".join(one.text for one in load_sample(300)[:3])
            model = in_eight_bits(model, tokenizer, prose)
        return Answerer(model, tokenizer)

    def ask(self, bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answer request bodies, batch by batch; what is kept already is not asked again."""
        asked = {named(body): body for body in bodies}
        new = [name for name in asked if name not in self.rows]
        if new:
            rows = [{"custom_id": name, "body": asked[name]} for name in new]
            requests = [self._answerer.request(row, None) for row in rows]
            began, count = time.monotonic(), 0
            with self.kept.open("a", encoding="utf-8") as out:
                for batch in batches(requests, self.batch):
                    for row in self._answerer.answer(batch):
                        self.rows[row["custom_id"]] = row["response"]["body"]
                        out.write(json.dumps(row, ensure_ascii=False) + "\n")
                    out.flush()
                    count += len(batch)
                    each = (time.monotonic() - began) / count
                    print(f"{count} of {len(new)}, {each:.2f} s each", file=sys.stderr, flush=True)
        return [self.rows[named(body)] for body in bodies]


class RealTarget:
    """The application over the model, as a target.

    Args:
        application: Retrieves and writes prompts.
        model: Answers.
        name: Of both.
    """

    capabilities = frozenset({Capability.TEXT, Capability.TOP_LOGPROBS})

    def __init__(self, application: Application, model: RealModel, name: str) -> None:
        self.application, self.model, self.name = application, model, name

    def bodies(self, queries: Sequence[Query]) -> list[dict[str, Any]]:
        """Return what the model is sent for each query."""
        return [
            {
                "messages": self.application.messages(query.prompt),
                "max_tokens": query.max_tokens,
                "temperature": query.temperature,
            }
            | ({"logprobs": True, "top_logprobs": query.top_logprobs} if query.top_logprobs else {})
            for query in queries
        ]

    async def ask(self, query: Query) -> Answer:
        """Return the answer, made now where it is not kept."""
        (body,) = self.model.ask(self.bodies([query]))
        return read_chat(body)

    async def close(self) -> None:
        """Nothing is open."""


def in_lock_step(audit: Audit, documents: Sequence[Document], target: RealTarget) -> None:
    """Ask about all documents side by side, so that a batch holds a question about each."""
    generators = [probe_of(audit, one) for one in documents]
    live = [(one, advance(one, None)) for one in generators]
    while live := [(one, step) for one, step in live if not isinstance(step, Done)]:
        print(f"{len(live)} documents", file=sys.stderr)
        target.model.ask(target.bodies([query for _, step in live for query in step]))
        answers = [[asyncio.run(target.ask(query)) for query in step] for _, step in live]
        live = [(one, advance(one, a)) for (one, _), a in zip(live, answers, strict=True)]


def row_of(result: Any, members: int) -> dict[str, Any]:
    """Return a row: AUC, members found and others accused, with intervals."""
    verdicts = result.verdicts
    scores = [-1e9 if one.score is None else one.score for one in verdicts]
    inside, outside = np.array(scores[:members]), np.array(scores[members:])
    above = (inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean()
    hits = [one.p_value is not None and one.p_value <= 0.05 for one in verdicts]
    called = [str(one.decision) == "in" for one in verdicts]
    row: dict[str, Any] = {"method": result.method, "auc": round(float(above), 3)}
    for name, flags in (("p <= .05", hits), ("in", called)):
        for side, part in (("members", flags[:members]), ("others", flags[members:])):
            low, high = proportion_interval(sum(part), len(part))
            row[f"{side}, {name}"] = f"{sum(part)}/{len(part)} [{low:.3f}, {high:.3f}]"
    row["without a score"] = sum(one.score is None for one in verdicts)
    row["queries"] = result.queries
    return row


def blind(documents: Sequence[Document]) -> float:
    """Return the AUC of a guesser that sees the texts alone, by ten folds; .5 in a fair split."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline

    held = [bool(one.member) for one in documents]
    guesser = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression())
    texts = [one.text for one in documents]
    guesses = cross_val_predict(guesser, texts, held, cv=10, method="decision_function")
    return float(roc_auc_score(held, guesses))


class Cell:
    """One model, corpus and prompt: what is indexed, what is in question, and what is outside.

    Args:
        asked: Options of the command line.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        asked.work.mkdir(parents=True, exist_ok=True)
        # 1. One random split of one source: what is indexed, what is not.
        texts = [t for t in texts_of(asked.data / asked.corpus) if len(t.split()) >= _SHORTEST]
        random.Random(1).shuffle(texts)
        half = min(300, len(texts) // 2)
        members, others, known = asked.n
        inside, outside = texts[:half], texts[half:]
        self.question = [Document(f"in-{i}", t, True) for i, t in enumerate(inside[:members])]
        self.question += [Document(f"out-{i}", t, False) for i, t in enumerate(outside[:others])]
        left = outside[others : others + known]
        self.known_out = [Document(f"known-{i}", t) for i, t in enumerate(left)]
        # 2. The application, and its model.
        size, overlap, k = asked.passages
        application = Application(inside, size, overlap, k, asked.prompt)
        kept = asked.work / f"{asked.model.stem}-{asked.bits}.jsonl"
        model = RealModel(asked.model, kept, asked.batch, asked.device, asked.bits)
        name = f"real:{asked.model.stem}:{asked.corpus}:{asked.prompt}:{asked.passages}"
        self.target = RealTarget(application, model, name)


def audited(cell: Cell, question: Sequence[Document], method: str) -> Any:
    """Return the result of an audit: answers side by side first, then the audit as it is."""
    plan, proxy = AuditPlan(tuple(question), tuple(cell.known_out)), load_language_model("reader")
    named = "runon" if method == "auto" else method
    audit = among(build_audit(named, proxy, configure(named)), plan.every_document)
    if method == "auto":
        pilots = pilot_documents(audit)
        for tried in (_ShownAudit(audit), audit):
            in_lock_step(tried, pilots, cell.target)
    in_lock_step(audit, [*question, *cell.known_out], cell.target)
    if method == "auto":
        return audit_documents(cell.target, question, known_out=cell.known_out, method="auto")
    return asyncio.run(run_audit(plan, cell.target, audit))


def arguments(said: str | None) -> argparse.ArgumentParser:
    """Return the options that say what a cell is."""
    parser = argparse.ArgumentParser(description=(said or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("corpus")
    parser.add_argument("prompt", choices=sorted(TEMPLATES))
    parser.add_argument("--n", nargs=3, type=int, default=[60, 60, 100], metavar="N")
    parser.add_argument("--passages", nargs=3, type=int, default=[500, 100, 2], metavar="N")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--bits", type=int, default=16, choices=(8, 16))
    parser.add_argument("--work", type=Path, default=Path("build/real"))
    return parser


def main() -> None:
    """Audit, and print a row for each method."""
    parser = arguments(__doc__)
    parser.add_argument("--methods", nargs="+", default=["auto"])
    asked = parser.parse_args()
    cell = Cell(asked)
    for method in asked.methods:
        row = {"model": asked.model.stem, "bits": asked.bits}
        row |= {"corpus": asked.corpus, "prompt": asked.prompt}
        row |= {"asked as": method, "n": asked.n}
        row |= row_of(audited(cell, cell.question, method), asked.n[0])
        row["blind"] = round(blind(cell.question), 3)
        print(json.dumps(row), flush=True)
        with (asked.work / "rows.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
