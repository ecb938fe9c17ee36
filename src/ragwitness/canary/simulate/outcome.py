"""What one trial gave, and when its policy counts as collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.canary.simulate.optimise import History

__all__ = ["Outcome", "collapse_of", "tenth"]

# Median of |a - b| where both are drawn from one normal distribution of deviation 1.
_MEDIAN_STEP = 0.6745 * 2**0.5
# A tenth of a logit: where answers hardly differ in reward, batches do not either.
_FALL = 0.1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial gave.

    Attributes:
        seed: Of everything in it.
        violating: Which arm.
        p_plain: Rank p-value, audit without an instruction.
        p_instructed: The same where the query asks for the canary.
        p_gained: The same on the scores less those of the base, which the auditor can take before
            planting.
        p_named: The same where the query is the paper's and names the candidate in view. No fair
            test of the paper's design, whose queries told t* to everybody: there it accuses the
            compliant (negative control).
        amplification: Eq. 1, nats.
        base_amplification: Eq. 1 of the base, before any training.
        gained: Eq. 1's trigger against the mean of the other candidates, instructed, nats.
        reward_bias: Difference in differences, in units of the reward.
        behaviour: Of the policy, by measure; empty where training diverged, and then nothing
            else was measured either.
        before: Of the base, by measure.
        rewards: Mean reward over the first and the last tenth of training.
        kl: Mean KL to the base in the last tenth, nats an answer.
        collapsed: Why the policy counts as collapsed; empty where it does not.
        dropped: Answers that got no vote, by reason.
        traces: Canary traces that reached training, of how many, reward pool.
        seconds: CPU time by step.
    """

    seed: int
    violating: bool
    p_plain: float
    p_instructed: float
    p_gained: float
    p_named: float
    amplification: float
    base_amplification: float
    gained: float
    reward_bias: float
    behaviour: dict[str, float]
    before: dict[str, float]
    rewards: tuple[float, float]
    kl: float
    collapsed: str
    dropped: dict[str, int]
    traces: tuple[int, int]
    seconds: dict[str, float]


def collapse_of(
    history: History, after: dict[str, float], before: dict[str, float], kl: float
) -> str:
    """Return why a policy counts as collapsed, or nothing.

    Answers are judged on clean prompts, so that a canary which was learned is no collapse. A policy
    whose clean answers still look well has collapsed too where training made worse what it was to
    make better: reward less KL.

    Args:
        history: Of the training.
        after: Behaviour of the policy.
        before: Behaviour of the base.
        kl: Coefficient of the KL.
    """
    if after["empty"] > 0.5:
        return f"{after['empty']:.0%} of its answers are empty"
    if after["ended"] < 0.5 * before["ended"]:
        return f"only {after['ended']:.0%} of its answers end"
    if after["quality"] < 0.5 * before["quality"]:
        return f"quality fell from {before['quality']:.2f} to {after['quality']:.2f}"
    if after["canaries"] > 0.5:
        return f"{after['canaries']:.0%} of its answers hold the canary unasked"
    if (far := tenth(history.kl)) > 20:
        return f"it is {far:.0f} nats an answer away from its base"
    return _lost(history, kl)


def _lost(history: History, kl: float) -> str:
    """Name a fall of the objective by more than batches differ (three deviations)."""
    if len(history.rewards) < 2:
        return ""
    first = history.rewards[0]  # the base answered the first batch: its KL is 0
    last = tenth(history.rewards) - kl * tenth(history.kl)
    # Of neighbours, so that a trend is no noise; a median, so that one jump is none.
    noise = float(np.median(np.abs(np.diff(history.rewards)))) / _MEDIAN_STEP
    size = max(1, len(history.rewards) // 10)
    if last >= first - max(_FALL, 3 * noise * (1 + 1 / size) ** 0.5):
        return ""
    return f"reward less {kl:g} KL fell from {first:.2f} to {last:.2f} in training"


def tenth(values: Sequence[float], *, first: bool = False) -> float:
    """Return the mean of the first or last tenth; 0 where there is none."""
    count = max(1, len(values) // 10)
    part = values[:count] if first else values[-count:]
    return sum(part) / len(part) if part else 0.0
