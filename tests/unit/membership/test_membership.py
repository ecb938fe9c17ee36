"""The main path end to end, in process, with a generator that can be checked by hand."""

import asyncio
import random
from dataclasses import replace

import pytest

from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.types import Decision, Document
from ragwitness.membership.methods.srag import SRag, SRagConfig
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.results.audit import read_conditions, rule
from ragwitness.membership.run import run_audit
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.models import model_registry as registry
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from tests.support.copier import Copier

_SYLLABLES = "ba be bi bo bu da de di do du ka ke ki ko ku ma me mi mo mu ra re ri ro ru".split()


def _documents(n: int, seed: int, prefix: str) -> list[Document]:
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))

    return [Document(f"{prefix}{i}", " ".join(word() for _ in range(40))) for i in range(n)]


@pytest.fixture
def plan() -> AuditPlan:
    inside, outside = _documents(30, 1, "in"), _documents(30, 2, "out")
    documents = [replace(d, member=True) for d in inside] + [
        replace(d, member=False) for d in outside
    ]
    documents.append(Document("tiny", "two words", member=False))
    return AuditPlan(
        documents=tuple(documents),
        known_out=tuple(_documents(60, 3, "known")),
        auxiliary=tuple(_documents(80, 4, "aux")),
        shadow=ShadowConfig(audited=20),
    )


@pytest.fixture(autouse=True)
def _copier_generates(monkeypatch) -> None:
    monkeypatch.setattr(registry, "load_language_model", lambda spec: Copier())


def _target(plan: AuditPlan, **options) -> LabTarget:
    held = [document for document in plan.documents if document.member]
    return LabTarget(build_system(held, RagConfig(**options), generator=Copier()))


def _run(plan: AuditPlan, target: LabTarget, mode: str = "few", run=None):
    audit = SRag(Copier(), SRagConfig(mode=mode))
    return asyncio.run(run_audit(plan, target, audit, run=run))


@pytest.mark.parametrize("mode", ["few", pytest.param("probing", marks=pytest.mark.slow)])
def test_members_are_found_and_non_members_are_not(plan, mode) -> None:
    result = _run(plan, _target(plan), mode)
    by_truth = {
        truth: [v for v in result.verdicts if v.member is truth and v.score is not None]
        for truth in (True, False)
    }
    assert all(v.decision is Decision.IN for v in by_truth[True])
    # The false discovery rate is 5 %, not 0: P(more than 4 of 30) < .001 at p <= .025.
    assert sum(v.decision is Decision.IN for v in by_truth[False]) <= 4
    assert result.evaluation.auc.value == 1.0
    assert result.evaluation.unscorable == 1
    assert result.verdicts[-1].reason.startswith("no passage of 8 words")
    assert result.calibration.exact
    expected = 3 if mode == "few" else 5
    assert {v.queries for v in result.verdicts if v.score is not None} == {expected}
    assert result.queries == expected * 120


def test_without_retrieval_nothing_is_found(plan) -> None:
    result = _run(plan, _target(plan, retrieve=False))
    assert result.evaluation.auc.low <= 0.5 <= result.evaluation.auc.high
    assert result.count(Decision.IN) == 0


@pytest.mark.slow
def test_the_same_run_again_asks_nothing_and_says_the_same(plan, tmp_path) -> None:
    target = _target(plan)
    first = _run(plan, target, run=tmp_path)
    size = (tmp_path / "answers.jsonl").stat().st_size
    again = _run(plan, target, run=tmp_path)
    assert (tmp_path / "answers.jsonl").stat().st_size == size
    assert again.verdicts == first.verdicts


@pytest.mark.slow
def test_order_of_the_documents_changes_no_verdict(plan) -> None:
    target = _target(plan)
    first = {v.document: v for v in _run(plan, target).verdicts}
    turned = replace(plan, documents=plan.documents[::-1], in_flight=1)
    assert {v.document: v for v in _run(turned, target).verdicts} == first


@pytest.mark.slow
def test_without_known_out_the_result_says_approximate(plan) -> None:
    result = _run(replace(plan, known_out=()), _target(plan))
    assert result.calibration.source == "auxiliary"
    assert not result.calibration.exact
    assert any("approximate" in warning for warning in result.warnings)


def test_a_document_in_question_cannot_be_known_out(plan) -> None:
    with pytest.raises(InputError, match="both in --known-out"):
        replace(plan, known_out=plan.documents[:3])


def test_too_few_auxiliary_documents_are_refused(plan) -> None:
    with pytest.raises(InputError, match="too few for a shadow system"):
        _run(replace(plan, auxiliary=plan.auxiliary[:12]), _target(plan), "probing")


def test_known_out_of_another_kind_accuse_nobody(plan) -> None:
    longer = tuple(replace(d, text=f"{d.text} {d.text[::-1]}") for d in plan.known_out)
    unlike = replace(plan, known_out=longer)
    result = _run(unlike, _target(plan))
    assert result.count(Decision.IN) == 0
    assert not result.calibration.exact
    assert result.calibration.likeness.unlike
    assert "they are 2.0 times as long" in result.calibration.note
    assert any(warning.startswith("Not exact") for warning in result.warnings)
    held = [v for v in result.verdicts if v.reason and "would be called in" in v.reason]
    assert held
    insisted = _run(replace(unlike, accept_unlike=True), _target(plan))
    assert {v.document for v in insisted.verdicts if v.decision is Decision.IN} == {
        v.document for v in held
    }
    assert not insisted.calibration.exact


@pytest.mark.parametrize("part", ["documents", "known_out"])
def test_nothing_is_sent_where_nothing_can_be_scored(plan, part) -> None:
    tiny = tuple(Document(f"t{i}", f"tiny {i}") for i in range(20))
    target = _target(plan)
    target.ask = None  # whoever asks, fails
    with pytest.raises(InputError, match=r"can be scored by s-rag .* nothing was sent"):
        _run(replace(plan, **{part: tiny}), target)


@pytest.mark.slow
def test_a_copy_has_the_verdict_of_its_original_and_is_no_test_of_its_own(plan) -> None:
    alone = _run(plan, _target(plan))
    first = plan.documents[0]
    copies = [Document(f"copy-{n}", f" {first.text.upper()}!") for n in range(5)]
    found = _run(replace(plan, documents=(*plan.documents, *copies)), _target(plan))
    own, copied = found.verdicts[: len(plan.documents)], found.verdicts[len(plan.documents) :]
    # Five more small p-values would raise the threshold for all others.
    assert [one.q_value for one in own] == [one.q_value for one in alone.verdicts]
    assert found.queries == alone.queries
    assert {(one.decision, one.q_value) for one in copied} == {(own[0].decision, own[0].q_value)}
    assert all(one.reason.startswith(f"a copy of “{first.id}”") for one in copied)
    # Nor do conditions count them: two of one text are one finding.
    inside = sum(one.decision is Decision.IN for one in own)
    assert rule(found, read_conditions([f"in:{inside}"])).code is ExitCode.FAILED
    more = rule(found, read_conditions([f"in:{inside + 1}"]))
    assert more.code is not ExitCode.FAILED
    said = rule(found, read_conditions(["in"])).why
    assert f"({inside} of {len(own)} documents)" in said
