"""Evaluate audits on one split of one corpus, with controls that can show them wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragwitness.defenses import DefenseCost
from ragwitness.membership.registry import build_audit, configure
from ragwitness.membership.srag import ShadowConfig
from ragwitness.models import LanguageModel
from ragwitness.rag import LabTarget, RagConfig, build_system
from ragwitness.runs.battery.benign import questions_of, weigh_defense
from ragwitness.runs.battery.controls import blind_controls, near_duplicates, rate_of
from ragwitness.runs.battery.measure import DecisionRule, Measured, measure, paired_differences
from ragwitness.runs.battery.plan import Battery, BatteryPlan
from ragwitness.runs.battery.reading import (
    Seen,
    by_id,
    cost_of,
    main_reason,
    named_outcomes,
    variants,
)
from ragwitness.runs.battery.split import Split, divide
from ragwitness.runs.journal import Journal
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.remarks import described
from ragwitness.runs.statistic import Statistic, learn
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.stats.evaluation import Rate
from ragwitness.types import Audit, Document

__all__ = ["run_battery"]

_FEWEST_SHADOW = 40  # documents; with fewer the shadow uses the generated corpus


@dataclass
class _Stage:
    """One corpus, one target, one control target: everything the audits share."""

    plan: BatteryPlan
    split: Split
    target: LabTarget
    bare: LabTarget
    proxy: LanguageModel
    journal: Journal | None
    progress: Progress | None
    near: frozenset[str]
    auxiliary: tuple[Document, ...]
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> list[Document]:
        """The audited documents in one random order."""
        documents = [*self.split.members, *self.split.non_members]
        random.Random(self.plan.seed).shuffle(documents)
        return documents

    async def learnt(self, audit: Audit) -> Statistic:
        """The statistic of an audit, trained on a shadow system where it learns."""
        if not getattr(audit, "learns", False):
            return Statistic()
        shadow, source = self.auxiliary or self.split.shadow, "given"
        if not self.auxiliary:
            source = "rest of the corpus"
        if len(shadow) < _FEWEST_SHADOW:
            from ragwitness.text.sample import load_sample

            shadow, source = tuple(load_sample()), "generated corpus of the package"
        part = self.split
        taken = {d.text for d in (*part.indexed, *part.non_members, *part.known_out)}
        shadow = tuple(document for document in shadow if document.text not in taken)
        self.settings["shadow documents"] = f"{len(shadow)}, {source}"
        plan = AuditPlan(
            documents=tuple(self.asked),
            shadow=ShadowConfig(
                rag=self.plan.shadow or replace(self.plan.rag, retrieve=True), seed=self.plan.seed
            ),
            in_flight=self.plan.in_flight,
        )
        return await learn(plan, audit, shadow, self.journal, self.progress)

    async def benign(self) -> DefenseCost | None:
        """What the target's defense costs, before anything is spent on audits."""
        plan = self.plan
        if self.target.system.defense is None or not plan.benign:
            return None
        return await weigh_defense(
            self.target,
            questions_of(self.split, plan.benign, plan.seed),
            seed=plan.seed,
            journal=self.journal,
            in_flight=plan.in_flight,
            progress=self.progress,
        )


async def run_battery(
    plan: BatteryPlan,
    corpus: Sequence[Document],
    proxy: LanguageModel,
    *,
    auxiliary: Sequence[Document] = (),
    build: Callable[[Sequence[Document], RagConfig], LabTarget] | None = None,
    run: Path | None = None,
    progress: Progress | None = None,
) -> Battery:
    """Split the corpus, index its half, run every audit and every control.

    Args:
        plan: Audits and sizes.
        corpus: Documents of one source.
        proxy: The auditor's own model.
        auxiliary: Documents for the shadow system; the corpus' own rest where empty.
        build: Makes the system under audit; None builds the plan's.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.

    Raises:
        InputError: The corpus is too small.
    """
    clock = time.monotonic()
    split = divide(
        corpus,
        members=plan.members,
        non_members=plan.non_members,
        calibration=plan.calibration,
        seed=plan.seed,
    )
    make = build or (lambda documents, rag: LabTarget(build_system(documents, rag)))
    target = make(split.indexed, plan.rag)
    bare = make(split.indexed, replace(plan.rag, retrieve=False))
    near, likeness = near_duplicates(split)
    measured: list[Measured] = []
    controls = blind_controls(split)
    skipped: dict[str, str] = {}
    with Journal(run / "answers.jsonl") if run else nullcontext() as journal:
        stage = _Stage(plan, split, target, bare, proxy, journal, progress, near, tuple(auxiliary))
        benign = await stage.benign()
        for name in plan.audits:
            found, checked, why = await _evaluate(stage, name)
            measured += found
            controls |= checked
            if not found:
                skipped[name] = f"too few of its documents could be scored ({why})"
    truth = {document.id: bool(document.member) for document in stage.asked}
    return Battery(
        audits=tuple(measured),
        controls=controls,
        skipped=skipped,
        paired=paired_differences(measured, truth, seed=plan.seed),
        sizes={
            "indexed": len(split.indexed),
            "members": len(split.members),
            "non-members": len(split.non_members),
            "calibration inside": len(split.known_in),
            "calibration outside": len(split.known_out),
            "shadow": len(split.shadow),
        },
        likeness=likeness,
        settings={
            "proxy": proxy.name,
            "seed": str(plan.seed),
            "documents in flight": str(plan.in_flight),
            **{key: str(value) for key, value in target.system.describe().items()},
            **stage.settings,
        },
        seconds=time.monotonic() - clock,
        benign=benign,
    )


def _decision(plan: BatteryPlan, statistic: Statistic, label: str) -> DecisionRule | None:
    """What calls a document in, where the calibration documents do not choose it."""
    if (given := plan.thresholds.get(label)) is not None:
        return DecisionRule(given, f"threshold {given:g}, given")
    if statistic.classifier and "/" not in label:
        return DecisionRule(0.0, "classifier at one half")
    return None


async def _evaluate(stage: _Stage, name: str) -> tuple[list[Measured], dict[str, Rate], str]:
    """Run one audit: one entry per variant of its score, its controls, why scores are missing."""
    audit = build_audit(name, stage.proxy, configure(name, stage.plan.options.get(name)))
    statistic = await stage.learnt(audit)
    stage.settings |= {f"{name}: {key}": value for key, value in described(audit).items()}
    seen = Seen(stage.target)
    worker = Worker(stage.target, stage.journal, stage.plan.in_flight, seen)

    async def ask(documents: Sequence[Document], what: str) -> list[Outcome]:
        return await worker.run(audit, documents, f"{name}, {what}", stage.progress)

    outside = await ask(stage.split.known_out, "calibration outside")
    inside = await ask(stage.split.known_in, "calibration inside")
    seen.tokens, seen.counted = 0, 0
    clock = time.monotonic()
    audited = await ask(stage.asked, "audited")
    cost = cost_of(audited, seen, time.monotonic() - clock)
    retrieved = seen.retrieved(stage.split.members)
    control = Worker(stage.bare, stage.journal, stage.plan.in_flight)
    off = (
        await control.run(audit, stage.asked, f"{name}, retrieval off", stage.progress)
        if stage.plan.control
        else []
    )
    found: list[Measured] = []
    controls: dict[str, Rate] = {}
    truth = {document.id: bool(document.member) for document in stage.asked}
    for variant, read in variants(statistic, audited).items():
        label = name + variant
        scores = by_id(audited, read)
        one = measure(
            label,
            scores,
            truth,
            known_in=list(by_id(inside, read).values()),
            known_out=list(by_id(outside, read).values()),
            retrieved=retrieved,
            outcomes=named_outcomes(audited),
            cost=cost,
            decision=_decision(stage.plan, statistic, label),
        )
        if one is None:
            continue
        found.append(one)
        members = [value for key, value in scores.items() if truth[key]]
        twins = [value for key, value in scores.items() if key in stage.near]
        controls[f"near-duplicates: {label}"] = rate_of(members, twins)
        if stage.plan.control:
            bare = by_id(off, read)
            controls[f"retrieval off: {label}"] = rate_of(
                [value for key, value in bare.items() if truth[key]],
                [value for key, value in bare.items() if not truth[key]],
            )
    return found, controls, main_reason(audited)
