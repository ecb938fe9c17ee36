"""Several kinds of questions: the sum of their scores, at targets where one kind sees nothing."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Decision, Query, Score
from ragwitness.membership.joint import SCALES, JointConfig, _joined
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.prepared import fitted_config
from ragwitness.membership.run import run_audit
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.worker import Done, advance
from ragwitness.text.sample import load_sample

_SAMPLE = load_sample()
_HELD, _OTHERS, _KNOWN = _SAMPLE[:3], _SAMPLE[300:303], _SAMPLE[400:442]


class Reader:
    """A perfect reader of some texts, with the manner of a service."""

    name = "reader"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, manner: str) -> None:
        self.manner, self.asked = manner, list[Query]()
        self.texts = [" ".join(document.text.split()) for document in _HELD]

    async def ask(self, query: Query) -> Answer:
        self.asked.append(query)
        return Answer(self._answer(query.prompt), finish_reason="stop")

    def _answer(self, question: str) -> str:
        decline = "Nothing in the documents covers this."
        if "Mask_" in question:
            if self.manner not in ("no quotations", "usual"):
                return decline
            masked = max(question.split("\n\n"), key=len)
            pattern = re.sub(r"\\\[Mask_(\d+)\\\]", r"(?P<m\1>\\S+?)", re.escape(masked.strip()))
            for text in self.texts:
                if match := re.search(pattern.replace(r"\ ", r"\s+"), text):
                    rows = match.groupdict().items()
                    return "\n".join(f"[Mask_{n[1:]}]: {word}" for n, word in rows)
            return decline
        if "appear in the context" in question:
            quoted = " ".join(question.split("\u201c")[1].split("\u201d")[0].split())
            holds = any(quoted[:200] in text for text in self.texts)
            if self.manner == "sources only":
                return "[1]" if holds else "No source."
            return ("Yes." if holds else "No.") if self.manner == "yes or no" else decline
        runs = re.findall(r"[\u201c\"]\u2026?(.+?) \u2026[\u201d\"]", question)
        for text in self.texts if self.manner == "usual" else ():
            for run in reversed(runs):
                if run in text:
                    start = text.index(run)
                    return f"The right one is \u201c{text[start : start + len(run) + 60]}\u201d."
        return decline

    async def close(self) -> None:
        """Nothing is open."""


MANNERS = ("no quotations", "yes or no", "sources only")


def _audited(target: Reader, **options: Any) -> Any:
    plan = AuditPlan((*_HELD, *_OTHERS), tuple(_KNOWN))
    audit = build_audit("joint", load_language_model("reader"), configure("joint", options))
    return asyncio.run(run_audit(plan, target, among(audit, plan.every_document)))


@pytest.mark.parametrize(
    "manner", ["usual", *(pytest.param(name, marks=pytest.mark.slow) for name in MANNERS)]
)
def test_a_target_that_answers_one_kind_alone_is_audited_all_the_same(manner: str) -> None:
    result = _audited(Reader(manner))
    called = {v.document for v in result.verdicts if v.decision is Decision.IN}
    assert called == {document.id for document in _HELD}


def test_a_target_that_answers_nothing_decides_nothing() -> None:
    result = _audited(Reader("silent"))
    assert not any(v.decision is Decision.IN for v in result.verdicts)


def test_strong_evidence_of_the_first_kind_ends_the_questions() -> None:
    target = Reader("usual")
    audit = among(build_audit("joint", load_language_model("reader")), _SAMPLE)
    step = advance(steps := audit.probe(_HELD[0]), None)
    count = 0
    while not isinstance(step, Done):
        count += len(step)
        step = advance(steps, [asyncio.run(target.ask(query)) for query in step])
    score = step.value
    assert count <= 4
    assert score.value >= 3
    assert score.bets


def test_kinds_that_are_not_asked_any_more_count_full_marks() -> None:
    kinds = ("runon", "mba", "rag-mia")
    alone = _joined({"runon": Score(16.0)}, kinds)
    every = _joined({"runon": Score(16.0), "mba": Score(1.0), "rag-mia": Score(1.0)}, kinds)
    assert alone.value == every.value == 4.0
    unread = _joined({"runon": Score(None, reason="x"), "mba": Score(0.5)}, ("runon", "mba"))
    assert unread.value == 0.5
    assert unread.details == {"score/mba": 0.5}
    silent = _joined({"runon": Score(None, reason="x"), "mba": Score(None, reason="y")}, kinds)
    assert (silent.value, silent.reason) == (None, "x; y")


@pytest.mark.parametrize("kinds", ["", "runon,runon", "runon,s2mia"])
def test_kinds_that_cannot_be_joined_are_refused(kinds: str) -> None:
    with pytest.raises(InputError, match="cannot be joined") as caught:
        JointConfig(kinds=kinds)
    assert all(name in caught.value.hint for name in SCALES)


@pytest.mark.slow
def test_each_kind_asks_as_it_would_alone() -> None:
    proxy = load_language_model("reader")
    joint = build_audit("joint", proxy, configure("joint", {"questions": 2}))
    document = _SAMPLE[0]
    alone = build_audit("runon", proxy, configure("runon", {"questions": 2}))
    assert joint.questions(document) == alone.questions(document)
    assert next(joint.probe(document)) == next(alone.probe(document))


def test_a_target_without_log_probabilities_is_asked_for_none() -> None:
    config = fitted_config(configure("joint"), 0)
    audit = build_audit("joint", load_language_model("reader"), config)
    (query, *_) = audit.questions(load_sample()[0])
    assert not query.top_logprobs
