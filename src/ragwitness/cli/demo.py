"""``ragwitness demo``: a whole audit on generated documents, in minutes, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]

_SEED = 20261121
_AUDITED, _KNOWN_OUT = 100, 100


def demo(
    run: Annotated[Path, typer.Option(help="Run folder.")] = Path("ragwitness-runs/demo"),
    mode: Annotated[
        str,
        typer.Option(
            help="probing: the hardest twelfth of the words, a query each; single: one per passage."
        ),
    ] = "probing",
) -> None:
    """Try a whole audit on generated documents, offline.

    Half of them is indexed, 100 inside and 100 outside are audited. No network, no person's data.
    The system under audit answers with the embedded reader, a small model: the mechanics are
    real, the figures do not carry over to large models.
    """
    import random
    from dataclasses import replace

    from ragwitness.cli.common import console
    from ragwitness.cli.finish import finish, perform
    from ragwitness.membership.registry import configure
    from ragwitness.membership.srag import ShadowConfig
    from ragwitness.rag import LabTarget, RagConfig, build_system
    from ragwitness.runs import AuditPlan, Governor, Pace
    from ragwitness.text.sample import load_sample

    corpus = list(load_sample())
    random.Random(_SEED).shuffle(corpus)
    half = len(corpus) // 2
    inside, outside = corpus[:half], corpus[half:]
    audited = [replace(document, member=True) for document in inside[:_AUDITED]]
    audited += [replace(document, member=False) for document in outside[:_AUDITED]]
    random.Random(_SEED).shuffle(audited)
    spent = _AUDITED + _KNOWN_OUT
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
        result = perform(plan, opened(), "s-rag", config, "reader", run, screen, governor)
    finish(result, run, screen)
