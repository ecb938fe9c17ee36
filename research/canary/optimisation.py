"""Training a policy on a reward: one loop for PPO and GRPO (2604.22191, App. D.2).

Both follow what TRL 0.27 makes of the authors' calls. GRPO's loss is the mean over tokens, and
no KL reaches it. PPO, which later releases of TRL lack, has a critic beside the policy, generalised
advantages, a KL in every token's reward, a penalty for an answer that does not end. GRPO is checked
against TRL on the same numbers, PPO against the formulas.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError, ModelError
from research.canary.policies import Base, Lora, Scorer, new_scorer, seeded, start_policy
from research.canary.sequences import Ids, Rows, batch, generate, log_probs, split_rows


def group_advantages(rewards: Any, group: int) -> Any:
    """GRPO: reward less the mean of its group, over its deviation; shape (N,).

    With two answers every difference, however small, weighs the same.
    """
    grouped = rewards.view(-1, group)
    centred = grouped - grouped.mean(1, keepdim=True)
    return (centred / (grouped.std(1, keepdim=True) + 1e-4)).reshape(-1)


def token_rewards(scores: Any, old: Any, reference: Any, mask: Any, kl: float) -> Any:
    """PPO: each token pays for leaving the reference, the last one gets the score; shape (N, T).

    Args:
        scores: Reward of each answer, shape (N,).
        old: Log-probability of its tokens under the policy, shape (N, T).
        reference: The same under the reference.
        mask: 1 where a token is.
        kl: Coefficient.
    """
    import torch

    rewards = -kl * (old - reference) * mask
    last = mask.sum(1).long().clamp_min(1) - 1
    rows = torch.arange(len(scores))
    rewards[rows, last] += scores
    return rewards


def gae(rewards: Any, values: Any, mask: Any, decay: float) -> Any:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16) at gamma 1, shape (N, T).

    Args:
        rewards: Of each token, shape (N, T).
        values: What the critic expects from there on, shape (N, T); after the last token it is 0.
        mask: 1 where a token is.
        decay: Lambda.
    """
    import torch

    found = torch.zeros_like(rewards)
    ahead = torch.zeros_like(rewards[:, 0])
    later = torch.zeros_like(ahead)
    for place in reversed(range(rewards.shape[1])):
        here = mask[:, place]
        ahead = (rewards[:, place] + later - values[:, place] + decay * ahead) * here
        later = values[:, place] * here
        found[:, place] = ahead
    return found


def clipped_loss(new: Any, old: Any, advantages: Any, clip: float) -> Any:
    """The clipped surrogate (Schulman et al. 2017, eq. 7), elementwise and to be minimised."""
    import torch

    ratio = (new - old).exp()
    return -torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


# The loop that both share.

Reward = Callable[[Sequence[int], Sequence[Ids], Sequence[Ids]], Sequence[float]]
"""Takes places of prompts, prompts and answers; returns one number each."""


class Algorithm(enum.StrEnum):
    """How a policy is trained."""

    PPO = "ppo"
    GRPO = "grpo"


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Defaults of Table 4, whose lost rates are those of the authors' program.

    Attributes:
        algorithm: Which.
        rate: Learning rate of AdamW at the start; it falls to 0 in a line.
        prompts: A batch; each is answered ``group`` times.
        group: G, answers to a prompt; 1 is enough for PPO.
        passes: Times a batch is used.
        parts: Steps of the optimizer in a pass.
        clip: ε of the ratio, and of the critic's step.
        kl: Coefficient of PPO; GRPO has none.
        decay: λ of PPO.
        value_weight: Of the critic's loss.
        missing_end: Taken off the reward of an answer that does not end.
        temperature: Of the draw; log-probabilities are taken at it too.
        longest: Most tokens of an answer.
        most_norm: Gradients are cut to this length.
        lora: Adapters; None trains everything.

    Raises:
        InputError: A value is outside its range.
    """

    algorithm: Algorithm = Algorithm.GRPO
    rate: float = 5e-6
    prompts: int = 24
    group: int = 2
    passes: int = 1
    parts: int = 1
    clip: float = 0.2
    kl: float = 0.01
    decay: float = 0.95
    value_weight: float = 0.1
    missing_end: float = 1.0
    temperature: float = 0.7
    longest: int = 32
    most_norm: float = 1.0
    lora: Lora | None = None

    def __post_init__(self) -> None:
        """Refuse what no algorithm can run with; its name as text will do."""
        object.__setattr__(self, "algorithm", Algorithm(self.algorithm))
        if self.group < (1 if self.algorithm is Algorithm.PPO else 2):
            raise InputError(f"{self.algorithm} compares answers: a group needs 2 or more.")
        if min(self.prompts, self.passes, self.parts, self.longest) < 1 or self.temperature <= 0:
            raise InputError("Batch, passes, parts, length and temperature must be above 0.")


@dataclass
class History:
    """What was seen while training, one entry a batch.

    Attributes:
        rewards: Mean reward, before any KL.
        kl: Mean KL to the base, nats an answer.
        ended: Share of answers that ended.
        lengths: Mean tokens of an answer.
    """

    rewards: list[float] = field(default_factory=list)
    kl: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Answers with everything the loss needs; tensors of one row an answer."""

    prompts: Sequence[Ids]
    answers: Sequence[Ids]
    rows: Rows
    old: Any
    reference: Any
    advantages: Any
    returns: Any = None
    values: Any = None
    new: Any = None  # with its gradient, where the batch is used once


class Paused(Exception):  # noqa: N818
    """A training was broken off, and what it has is kept; the same call goes on."""


def optimise(
    base: Base,
    prompts: Sequence[Ids],
    reward: Reward,
    config: PolicyConfig,
    rng: random.Random,
    *,
    critic: Scorer | None = None,
    kept: Path | None = None,
    pause: Callable[[], bool] = lambda: False,
) -> tuple[Any, History]:
    """Train a policy, once over the prompts in a drawn order.

    Args:
        base: Where it starts, and what the KL is taken to.
        prompts: Token ids.
        reward: Of the answers.
        config: Settings.
        rng: Source of the order and of the answers.
        critic: PPO's, trained in place; None begins one at the base.
        kept: File of a training that was broken off; it goes on from there.
        pause: Asked after each batch: whether to break off.

    Returns:
        The policy, and what was seen.

    Raises:
        InputError: There is no prompt.
        ModelError: A reward or the loss is no number.
        Paused: ``pause`` said so, and the training is in ``kept``.
    """
    import torch

    if not prompts:
        raise InputError("There is no prompt to train on.")
    torch.manual_seed(rng.getrandbits(32))  # dropout of adapters
    generator = seeded(rng.getrandbits(63))
    policy = start_policy(base, config.lora)
    ppo = config.algorithm is Algorithm.PPO
    critic = (critic or new_scorer(base, config.lora)) if ppo else None
    trained = [p for p in policy.parameters() if p.requires_grad]
    trained += list(critic.parameters()) if critic else []
    optimizer = torch.optim.AdamW(trained, lr=config.rate, fused=True)
    history = History()
    order = rng.sample(range(len(prompts)), len(prompts))
    done, rest = resumed(kept, trained, optimizer)
    if rest:
        history = rest["history"]
        generator.set_state(rest["generator"])
    for number, part in enumerate(split_rows(len(order), config.prompts), 1):
        if number <= done:
            continue
        optimizer.param_groups[0]["lr"] = config.rate * (1 - part.start / len(order))
        places = [at for at in order[part] for _ in range(config.group)]
        rolled = _roll(base, policy, critic, [prompts[at] for at in places], places, reward,
                       config, generator, history)  # fmt: skip
        for _ in range(config.passes):
            _improve(policy, critic, rolled, optimizer, trained, config, base, generator)
        if part.stop < len(order) and pause():
            keep(kept, number, trained, optimizer, history=history,
                 generator=generator.get_state())  # fmt: skip
            raise Paused
    policy.eval()
    return policy, history


def keep(kept: Path | None, done: int, trained: Sequence[Any], optimizer: Any, **rest: Any) -> None:
    """Write what a training needs to go on after ``done`` of its batches; None writes nothing."""
    import torch

    if kept is not None:
        state = {
            "done": done, "trained": [p.detach() for p in trained], "rest": rest,
            "optimizer": optimizer.state_dict(), "torch": torch.get_rng_state(),
        }  # fmt: skip
        torch.save(state, kept)


def resumed(
    kept: Path | None, trained: Sequence[Any], optimizer: Any
) -> tuple[int, dict[str, Any]]:
    """Put a training back where it was broken off; return its batches and what else was kept."""
    import torch

    if kept is None or not kept.is_file():
        return 0, {}
    state = torch.load(kept, weights_only=False)
    with torch.no_grad():
        for own, weights in zip(trained, state["trained"], strict=True):
            own.copy_(weights)
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["torch"])
    return state["done"], state["rest"]


def surrogate(new: Any, part: Any, mask: Any, config: PolicyConfig) -> Any:
    """Return the policy's loss on a batch, a single number.

    Args:
        new: Log-probabilities under the policy that is trained, shape (rows, width).
        part: Has ``old`` (rows, width) and ``advantages``: (rows, width) for PPO, else (rows,).
        mask: 1 where an answer has a token, shape (rows, width).
        config: Settings.
    """
    if config.algorithm is Algorithm.GRPO:
        loss = clipped_loss(new, part.old, part.advantages.unsqueeze(1), config.clip)
        return (loss * mask).sum() / mask.sum()
    loss = clipped_loss(new, part.old, part.advantages, config.clip)
    return _mean_by_answer(loss, mask)


def _mean_by_answer(losses: Any, mask: Any) -> Any:
    return ((losses * mask).sum(1) / mask.sum(1).clamp_min(1)).mean()


def _roll(base: Base, policy: Any, critic: Scorer | None, prompts: Sequence[Ids],
          places: Sequence[int], reward: Reward, config: PolicyConfig, generator: Any,
          history: History) -> _Batch:  # fmt: skip
    """Answer a batch of prompts and weigh the answers."""
    import torch

    policy.eval()
    if critic is not None:
        critic.backbone.eval()
    answers = generate(policy, prompts, longest=config.longest, eos=base.eos, pad=base.pad,
                       generator=generator, temperature=config.temperature)  # fmt: skip
    scores = torch.tensor(list(reward(places, prompts, answers)), dtype=torch.float32)
    if not bool(torch.isfinite(scores).all()):
        raise ModelError(
            f"{int((~torch.isfinite(scores)).sum())} of {len(scores)} rewards are no numbers.",
            "Look at the reward model, or lower its rate.",
        )
    ended = torch.tensor([float(row[-1] == base.eos) for row in answers])
    rows = batch(prompts, answers, base.pad, share=base.shares)
    # A batch that is used once is read once: what drew it is what is trained.
    once = config.passes * config.parts == 1 and config.lora is None
    with torch.set_grad_enabled(once):
        new = _log_probs(policy, rows, config, base)
    old = new.detach()
    with torch.no_grad():
        reference = _log_probs(base.model, rows, config, base)
        values = critic.values(rows) * rows.answer_mask if critic else None
    gap = ((old - reference) * rows.answer_mask).sum(1)
    history.rewards.append(float(scores.mean()))
    history.kl.append(float(gap.mean()))
    history.ended.append(float(ended.mean()))
    history.lengths.append(float(rows.answer_mask.sum(1).mean()))
    paid = scores - config.missing_end * (1 - ended)
    advantages, returns = _weighed(rows.answer_mask, old, reference, values, paid, config)
    first = new if once else None
    return _Batch(prompts, answers, rows, old, reference, advantages, returns, values, first)


def _weighed(mask: Any, old: Any, reference: Any, values: Any, scores: Any,
             config: PolicyConfig) -> tuple[Any, Any]:  # fmt: skip
    """Advantages, and for PPO what the critic is to expect."""
    if config.algorithm is Algorithm.GRPO:
        return group_advantages(scores, config.group), None
    tokens = token_rewards(scores, old, reference, mask, config.kl)
    advantages = gae(tokens, values, mask, config.decay)
    returns = advantages + values
    # TRL 0.27 whitens: mean 0, deviation 1 over the tokens of the batch.
    centred = (advantages - (advantages * mask).sum() / mask.sum()) * mask
    return centred / ((centred.square().sum() / mask.sum()) + 1e-8).sqrt(), returns


def _improve(policy: Any, critic: Scorer | None, rolled: _Batch, optimizer: Any, trained: Any,
             config: PolicyConfig, base: Base, generator: Any) -> None:  # fmt: skip
    """One pass over a batch."""
    import torch

    policy.train()
    if critic is not None:
        critic.backbone.train()
    count = len(rolled.answers)
    order = torch.randperm(count, generator=generator)
    for part in split_rows(count, -(-count // config.parts)):
        picked = rolled if config.parts == 1 else _take(rolled, order[part].sort().values, base)
        mask = picked.rows.answer_mask
        new = _log_probs(policy, picked.rows, config, base) if picked.new is None else picked.new
        loss = surrogate(new, picked, mask, config)
        if critic is not None:
            loss = loss + config.value_weight * _critic_loss(critic, picked, mask, config.clip)
        if not bool(torch.isfinite(loss)):
            raise ModelError("The policy's loss is no number.", "Lower the learning rate.")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, config.most_norm)
        optimizer.step()


def _critic_loss(critic: Scorer, part: _Batch, mask: Any, clip: float) -> Any:
    """Half the squared error, the worse of the critic's value and that value kept near the old."""
    import torch

    values = critic.values(part.rows)
    near = part.values + (values - part.values).clamp(-clip, clip)
    worse = torch.max((values - part.returns).square(), (near - part.returns).square())
    return 0.5 * _mean_by_answer(worse, mask)


def _take(rolled: _Batch, places: Any, base: Base) -> _Batch:
    """Some of the answers, laid out anew."""
    own = places.tolist()
    prompts, answers = ([given[at] for at in own] for given in (rolled.prompts, rolled.answers))
    rows = batch(prompts, answers, base.pad, share=base.shares)
    width = rows.answer_mask.shape[1]
    kept = [
        one if one is None else one[places] if one.dim() == 1 else one[places][:, :width]
        for one in (rolled.old, rolled.reference, rolled.advantages, rolled.returns, rolled.values)
    ]
    return _Batch(prompts, answers, rows, *kept)


def _log_probs(model: Any, rows: Rows, config: PolicyConfig, base: Base) -> Any:
    banned = None if base.pad == base.eos else base.pad
    return log_probs(model, rows, temperature=config.temperature, banned=banned)
