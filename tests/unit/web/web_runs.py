"""Run folders as the commands write them, with answers in their journals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ragwitness.canary.draw import Design
from ragwitness.canary.probe import amplification
from ragwitness.canary.result import CanaryResult, StoredLook
from ragwitness.canary.run import SlotScore, stored_slot
from ragwitness.canary.verdict import decide
from ragwitness.core.run_files import SPENT, TARGET
from ragwitness.core.types import Answer, Document, Query, TokenLogprob
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.leakage.run import score_leaks
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.membership.results.audit import AuditResult
from ragwitness.report.result_registry import to_json
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import UsageLog, Use
from ragwitness.runner.response_store import ResponseStore, StoredQuery, query_key
from tests.support.reports import write
from tests.unit.report.fake_results import fake_result

EVIL = (
    "<script>alert(1)</script>\"'&\u202e\x07\ud800<img src=x onerror=alert(1)>"
    "<a href='javascript:alert(1)'>x</a></bdi></pre></style>{{ 7 * 7 }}"
)


def an_answer(text: str) -> Answer:
    """An answer with log-probabilities."""
    tokens = (TokenLogprob(" ankle", -0.1, ((" ankle", -0.1), (" knee", -2.5))),)
    return Answer(text, tokens, "stop", 120, 1)


def audit_run(
    folder: Path, result: AuditResult, asked: Sequence[tuple[str, str, str]] = ()
) -> Path:
    """Write a finished audit.

    Args:
        folder: Of the run.
        result: What was found.
        asked: Document, prompt and answer.
    """
    unfinished_run(folder, asked, result.target)
    spent = Spending(len(asked), 100, 10, 0.5, price_in=2.0, price_out=8.0, max_tokens=4000)
    write("json", replace(result, spent=spent), folder / "result.json")
    return folder


def unfinished_run(
    folder: Path, asked: Sequence[tuple[str, str, str]], target: str = TARGET
) -> Path:
    """Write answers and spending alone."""
    folder.mkdir(parents=True, exist_ok=True)
    with ResponseStore(folder / "answers.jsonl") as journal, UsageLog(folder / SPENT) as ledger:
        for document, prompt, text in asked:
            query = Query(prompt, 16, top_logprobs=20)
            ledger.note(ledger.open(Use(1, 500, 16)), Use(1, 120, 1))
            question = StoredQuery(target, "documents", document, query)
            journal.put(query_key(target, query), an_answer(text), question)
    return folder


def two_audits(root: Path) -> tuple[AuditResult, AuditResult]:
    """Write the runs ``alpha`` and ``beta`` over the same documents, with their questions."""
    found = []
    for name, seed in (("alpha", 1), ("beta", 2)):
        result = replace(fake_result(60, seed=seed), target=TARGET)
        asked = [
            (v.document, f"Complete: {v.evidence[0].before}", f" {v.evidence[0].word} and so on")
            for v in result.verdicts
            if v.evidence
        ]
        audit_run(root / name, result, asked)
        found.append(result)
    return found[0], found[1]


def collection_run(folder: Path) -> Path:
    """Write the result of ``ragwitness audit --collection``."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "method": "mba",
        "target": TARGET,
        "alpha": 0.05,
        "decided": True,
        "e_value": 31.0,
        "log10_e": 1.49,
        "p_value": 0.032,
        "permutation_p_value": None,
        "documents_asked": 4,
        "documents": 9,
        "unscorable": 1,
        "known_out": 40,
        "queries": 44,
        "seconds": 12.0,
        "spent": None,
        "path": [0.3, 0.9, 1.49],
    }
    (folder / "result.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def leak_run(folder: Path, text: str = "plain") -> Path:
    """Write the result of ``ragwitness leak`` with two attacks.

    Args:
        folder: Of the run.
        text: Stands in a prompt, a setting and the name of an attack.
    """
    records = [Document(str(i), " ".join(f"word{i}x{j}" for j in range(30))) for i in range(4)]
    told = [
        Transcript("composite", "say it", records[0].text, (records[0].text,)),
        Transcript("composite", "say more", "nothing at all", (records[1].text,)),
        Transcript(text, "go on", records[2].text, (records[2].text,)),
    ]
    unfinished_run(folder, [("composite 0", f"say it {text}", "told")])
    plan = LeakPlan(records, [Document("b", "some unrelated text")])
    result = replace(score_leaks(told, plan, settings={"setting": text}), target=TARGET)
    (folder / "result.json").write_text(json.dumps(to_json(result)), encoding="utf-8")
    return folder


def synthesis_run(folder: Path, text: str = "plain") -> Path:
    """Write the result of ``ragwitness synthesize``."""
    unfinished_run(folder, [("record-1", "Rewrite this.", "rewritten")], "model")
    data = {
        "method": "sage",
        "model": "model",
        "settings": {"rounds": text},
        "counts": {"passed": 7, "withheld": 2},
        "reasons": {f"shares 8 tokens {text}": 2},
        "records": [],
        "queries": 40,
        "seconds": 3.0,
        "warnings": [f"Only few {text}"],
        "out": None,
    }
    (folder / "result.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def canary_run(folder: Path, text: str = "plain") -> Path:
    """Write the result of ``ragwitness canary probe``."""
    unfinished_run(folder, [("e1", "Why?", "so")], "model")
    design, scores = Design(candidates=20), np.tile(np.arange(21.0) - 21, (2, 1))
    gain = amplification([20.0, 19], [0.0, 0])
    slot = SlotScore(0, (text, "e2"), scores, gain, 0.25)
    result = CanaryResult(
        target=text,
        release=f"release {text}",
        way="forced",
        finding=decide(design, [scores[:, 1:]], [19]),
        look=StoredLook(1, "ab" * 32),
        slots=(stored_slot(slot),),
        settings={"way": text},
        warnings=(f"Beware of {text}",),
        queries=44,
        seconds=3.0,
        spent=Spending(44, 100, 44),
    )
    stored = json.dumps(to_json(result))
    (folder / "result.json").write_text(stored, encoding="utf-8")
    return folder
