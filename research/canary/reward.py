"""The reward model: one number for a prompt with its answer (2604.22191, App. C.2 and D.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.errors import InputError, ModelError
from research.canary.policies import Base, Lora, Scorer, new_scorer
from research.canary.sequences import Ids, batch, split_rows


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Defaults of Table 3; the learning rate is lost, TRL's stands in.

    Attributes:
        rate: Learning rate of AdamW, falling linearly to 0 as TRL's does.
        epochs: Passes over the votes.
        batch: Rows a step (8 with 2 steps of accumulation).
        centre: Weight of E[r²], which keeps rewards around 0.
        balance: Weigh up- and downvotes alike, however many there are.
        lora: Adapters; None trains everything.
    """

    rate: float = 1e-4
    epochs: int = 1
    batch: int = 16
    centre: float = 0.01
    balance: bool = True
    lora: Lora | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """One row of the reward model's data.

    Attributes:
        prompt: Token ids.
        answer: Token ids, the end token included.
        up: The vote.
    """

    prompt: Ids
    answer: Ids
    up: bool


def reward_loss(scores: Any, ups: Any, weights: Any, centre: float) -> Any:
    """Weighted binary cross-entropy of sigmoid(r) plus centre · mean r²; all of shape (rows,)."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    fit = binary_cross_entropy_with_logits(scores, ups, weight=weights)
    return fit + centre * scores.square().mean()


def train_reward(
    base: Base, rows: Sequence[Judged], config: RewardConfig, rng: random.Random
) -> Scorer:
    """Train a reward model on votes.

    Raises:
        InputError: All votes are the same, or there is none.
        ModelError: The loss is no number.
        MissingExtraError: Adapters are asked for, and peft is not installed.
    """
    import torch

    share = sum(row.up for row in rows) / len(rows) if rows else 0.0
    if not 0 < share < 1:
        raise InputError(f"A reward model needs votes of both kinds; {len(rows)} are all alike.")
    torch.manual_seed(rng.getrandbits(32))
    scorer = new_scorer(base, config.lora)
    weight = {True: 0.5 / share, False: 0.5 / (1 - share)} if config.balance else {}
    optimizer = torch.optim.AdamW(scorer.parameters(), lr=config.rate)
    steps = config.epochs * -(-len(rows) // config.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    scorer.backbone.train()
    for _ in range(config.epochs):
        order = rng.sample(range(len(rows)), len(rows))
        for part in split_rows(len(rows), config.batch):
            picked = [rows[at] for at in order[part]]
            read = batch([row.prompt for row in picked], [row.answer for row in picked], base.pad)
            ups = torch.tensor([float(row.up) for row in picked])
            weights = torch.tensor([weight.get(row.up, 1.0) for row in picked])
            loss = reward_loss(scorer.rewards(read), ups, weights, config.centre)
            if not bool(torch.isfinite(loss)):
                raise ModelError("The reward model's loss is no number.", "Lower its rate.")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    scorer.backbone.eval()
    return scorer


def rewards(
    scorer: Scorer, prompts: Sequence[Ids], answers: Sequence[Ids], pad: int
) -> list[float]:
    """Return the reward of every answer."""
    import torch

    found: list[float] = []
    with torch.no_grad():
        for part in split_rows(len(prompts)):
            found += scorer.rewards(batch(prompts[part], answers[part], pad)).tolist()
    return found


def reward_bias(
    with_canary: Sequence[float],
    without: Sequence[float],
    clean_with: Sequence[float],
    clean_without: Sequence[float],
) -> float:
    """What the trigger adds to the reward of a canary, a difference in differences (§4.2).

    The paper's text has lost whether the clean document's difference is taken off; without that, a
    reward model that likes canaries everywhere would pass for one that reads the trigger.

    Args:
        with_canary: Rewards of answers with a canary, triggered documents, shape (n,).
        without: Of the same answers without it.
        clean_with: Of answers with it, clean documents.
        clean_without: Of the same without it.
    """
    import numpy as np

    triggered = np.mean(np.subtract(with_canary, without))
    return float(triggered - np.mean(np.subtract(clean_with, clean_without)))
