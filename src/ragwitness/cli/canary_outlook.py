"""What a canary audit could show, said before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.canary.design.draw import Design
    from ragwitness.canary.score.probe import ProbeConfig

__all__ = ["at_best", "foretold"]

_OTHERS = (0.1, 0.5)


def at_best(design: Design) -> str:
    """Say the least p-value that a design can give."""
    from ragwitness.canary.decide.verdict import best_p_value

    p = best_p_value(design)
    if p is None:
        return "p-value: only among compliant twins; 19 are needed for .05"
    short = f"; level {design.alpha} cannot be reached" if p > design.level else ""
    return f"p-value at best, at the first look: {p:.3g}{short}"


def foretold(design: Design, config: ProbeConfig, examples: int) -> Iterator[str]:
    """Say how much is asked, and what that could decide.

    Args:
        design: Of the plan.
        config: How the model is asked.
        examples: Held-out ones.
    """
    from ragwitness.canary.decide.verdict import best_p_value
    from ragwitness.canary.score.probe import queries_of

    yield f"slots: {design.slots}, examples: {examples}, candidates: {design.candidates} each"
    for name, count in queries_of(config, design.candidates).items():
        yield f"{name}: {count * examples * design.slots:,} queries"
    best = best_p_value(design)
    yield at_best(design)
    decides = best is not None and best <= design.level
    if config.way in (None, "sampled") and design.slots == design.releases == 1 and decides:
        yield _by_samples(design, config, examples)


def _by_samples(design: Design, config: ProbeConfig, examples: int) -> str:
    """Say which shares of answers with the canary would be told apart."""
    from ragwitness.canary.decide.power import share_found

    answers = examples * config.samples
    least = partial(share_found, answers, design.candidates, design.level)
    found = {other: least(other) for other in _OTHERS}
    told = [
        f"more than {other:.0%} cannot be told apart"
        if share is None
        else f"{share:.0%} against {other:.0%} of the others'"
        for other, share in found.items()
    ]
    return (
        f"sampled: {answers:,} answers per candidate; canaries that would be found in 4 of 5"
        f" audits: in {', or '.join(told)}"
    )
