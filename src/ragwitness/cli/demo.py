"""``ragwitness demo``: a whole audit on generated documents, in minutes, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.paths import PathRole

_SEED = 20261121
_AUDITED, _KNOWN_OUT = 100, 100


def demo(
    run: Annotated[Path, PathRole.FILLS, typer.Option(help="The run folder.")] = Path(
        "ragwitness-runs/demo"
    ),
    mode: Annotated[
        str,
        typer.Option(
            help="How s-rag asks: probing asks about the hardest twelfth of the words, with a"
            " query for each; single asks once for each passage."
        ),
    ] = "probing",
) -> None:
    """Try a whole audit on generated documents, offline.

    Half of the documents are indexed; 100 of these and 100 of the others are audited. It needs no
    network and shows nobody's data. The system under audit answers with the embedded reader, a
    small model: the mechanics are real, and the figures do not carry over to large models.
    """
    import random
    from dataclasses import replace

    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.cli.common import console
    from ragwitness.cli.steps import finish, perform
    from ragwitness.membership.registry import configure
    from ragwitness.membership.shadow import ShadowConfig
    from ragwitness.rag.build import build_system
    from ragwitness.rag.config import RagConfig
    from ragwitness.rag.target import LabTarget
    from ragwitness.text.sample import load_sample

    # A fixed seed: the demo that a reader sees is the demo that the tests see.
    corpus = list(load_sample())
    random.Random(_SEED).shuffle(corpus)
    half = len(corpus) // 2
    inside, outside = corpus[:half], corpus[half:]
    # The truth is known here, so the report shows error rates beside the verdicts.
    audited = [replace(document, member=True) for document in inside[:_AUDITED]]
    audited += [replace(document, member=False) for document in outside[:_AUDITED]]
    random.Random(_SEED).shuffle(audited)
    spent = _AUDITED + _KNOWN_OUT
    # Audited, known-outside and auxiliary documents are disjoint, as in an evaluation.
    plan = AuditPlan(
        documents=tuple(audited),
        known_out=tuple(outside[_AUDITED:spent]),
        auxiliary=tuple(outside[spent:]),
        shadow=ShadowConfig(audited=30),
        # Probes of one document share their context; more documents at a time would crowd it out.
        in_flight=2,
    )
    screen = console()
    system = build_system(inside, RagConfig())
    for label, value in system.describe().items():
        screen.print(f"{label:<24}{value}", markup=False)

    async def opened() -> LabTarget:
        return LabTarget(system)

    config = configure("s-rag", {"mode": mode, "segment_factor": 12 if mode == "probing" else 4})
    with Governor.of_run(run, pace=Pace.at_most(plan.in_flight)) as governor:
        result = perform(plan, opened(), "s-rag", config, "reader", run, governor)
    finish(result, run, screen)
