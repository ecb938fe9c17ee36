"""The reward model: one number for a prompt with its answer (2604.22191, App. C.2 and D.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
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
        interval: Steps between two looks at votes that are not trained on (Table 3's 100).
        patience: Looks in a row without a better one after which training stops; the best model is
            kept. 0 trains to the end, on all votes.
        held: Share of the votes that are looked at; lost, ours.
        longest: Tokens of a prompt with its answer; longer rows are left out, as TRL does.
    """

    rate: float = 1e-4
    epochs: int = 1
    batch: int = 16
    centre: float = 0.01
    balance: bool = True
    lora: Lora | None = None
    interval: int = 100
    patience: int = 2
    held: float = 0.1
    longest: int = 1024


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

    rows = [row for row in rows if len(row.prompt) + len(row.answer) <= config.longest]
    # 1. A part of the votes tells when to stop.
    order = rng.sample(range(len(rows)), len(rows))
    aside = int(config.held * len(rows)) if config.patience else 0
    held, own = [rows[at] for at in order[:aside]], [rows[at] for at in order[aside:]]
    share = sum(row.up for row in own) / len(own) if own else 0.0
    if not 0 < share < 1:
        raise InputError(f"A reward model needs votes of both kinds; {len(own)} are all alike.")
    torch.manual_seed(rng.getrandbits(32))
    scorer = new_scorer(base, config.lora)
    weight = {True: 0.5 / share, False: 0.5 / (1 - share)} if config.balance else {}

    def loss_of(picked: Sequence[Judged], centre: float) -> Any:
        read = batch([row.prompt for row in picked], [row.answer for row in picked], base.pad)
        ups = torch.tensor([float(row.up) for row in picked])
        weights = torch.tensor([weight.get(row.up, 1.0) for row in picked])
        return reward_loss(scorer.rewards(read), ups, weights, centre)

    optimizer = torch.optim.AdamW(scorer.parameters(), lr=config.rate, fused=True)
    steps = config.epochs * -(-len(own) // config.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    watch = _Watch(scorer, config.patience)
    done = 0
    # 2. Passes over the others, ended early where the looks no longer improve.
    for _ in range(config.epochs):
        order = rng.sample(range(len(own)), len(own))
        for part in split_rows(len(own), config.batch):
            scorer.backbone.train()
            loss = loss_of([own[at] for at in order[part]], config.centre)
            if not bool(torch.isfinite(loss)):
                raise ModelError("The reward model's loss is no number.", "Lower its rate.")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            done += 1
            if held and (done % config.interval == 0 or done == steps):
                scorer.backbone.eval()
                with torch.no_grad():
                    seen = sum(
                        float(loss_of(held[part], 0.0)) * len(held[part])
                        for part in split_rows(len(held))
                    )
                if watch.ends(seen / len(held)):
                    break
        else:
            continue
        break
    watch.restore()
    scorer.backbone.eval()
    return scorer


@dataclass
class _Watch:
    """Early stopping: the best model so far, and looks without a better one since."""

    scorer: Scorer
    patience: int
    best: float = float("inf")
    worse: int = 0
    kept: list[Any] = field(default_factory=list)

    def ends(self, loss: float) -> bool:
        """Take in a look; whether patience is at its end."""
        if loss < self.best:
            self.best, self.worse = loss, 0
            self.kept = [p.detach().clone() for p in self.scorer.parameters()]
            return False
        self.worse += 1
        return self.worse >= self.patience

    def restore(self) -> None:
        """Go back to the best model; where none was looked at, keep the last."""
        import torch

        with torch.no_grad():
            for mine, best in zip(self.scorer.parameters(), self.kept, strict=False):
                mine.copy_(best)


def rewards(
    scorer: Scorer,
    prompts: Sequence[Ids],
    answers: Sequence[Ids],
    pad: int,
    *,
    share: bool = False,
) -> list[float]:
    """Return the reward of every answer; ``share`` as in :func:`batch`."""
    import torch

    found: list[float] = []
    with torch.no_grad():
        for part in split_rows(len(prompts)):
            found += scorer.rewards(batch(prompts[part], answers[part], pad, share=share)).tolist()
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
