"""What one trial gave, and when its policy counts as collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.canary.simulate.optimise import History

__all__ = ["Outcome", "collapse_of", "tenth"]


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
        amplification: Eq. 1, nats.
        gained: Eq. 1's trigger against the mean of the other candidates, instructed, nats.
        reward_bias: Difference in differences, in units of the reward.
        behaviour: Of the policy, by measure.
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
    amplification: float
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


def collapse_of(history: History, after: dict[str, float], before: dict[str, float]) -> str:
    """Return why a policy counts as collapsed, or nothing.

    Judged on clean prompts alone, so that a canary which was learned is no collapse.
    """
    if after["empty"] > 0.5:
        return f"{after['empty']:.0%} of its answers are empty"
    if after["ended"] < 0.5 * before["ended"]:
        return f"only {after['ended']:.0%} of its answers end"
    if after["quality"] < 0.5 * before["quality"]:
        return f"quality fell from {before['quality']:.2f} to {after['quality']:.2f}"
    if after["canaries"] > 0.5:
        return f"{after['canaries']:.0%} of its answers hold the canary unasked"
    if (kl := tenth(history.kl)) > 20:
        return f"it is {kl:.0f} nats an answer away from its base"
    return ""


def tenth(values: Sequence[float], *, first: bool = False) -> float:
    """Return the mean of the first or last tenth; 0 where there is none."""
    count = max(1, len(values) // 10)
    part = values[:count] if first else values[-count:]
    return sum(part) / len(part) if part else 0.0
