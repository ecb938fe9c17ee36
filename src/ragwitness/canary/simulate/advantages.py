"""What makes PPO, GRPO and RLOO differ: how a reward becomes the weight of a token.

All three share the loop in :mod:`.optimise`; each is checked against TRL on the same numbers where
TRL has it. Shapes: N answers in groups of G to one prompt, T tokens.
"""

from __future__ import annotations

from typing import Any

__all__ = ["clipped_loss", "gae", "group_advantages", "kl_k3", "leave_one_out", "token_rewards"]


def group_advantages(rewards: Any, group: int, scale: bool) -> Any:
    """GRPO: reward less the mean of its group, over its deviation if ``scale``; shape (N,)."""
    grouped = rewards.view(-1, group)
    centred = grouped - grouped.mean(1, keepdim=True)
    if scale:
        centred = centred / (grouped.std(1, keepdim=True) + 1e-4)
    return centred.reshape(-1)


def leave_one_out(rewards: Any, group: int) -> Any:
    """RLOO: reward less the mean of the others of its group; shape (N,)."""
    grouped = rewards.view(-1, group)
    others = (grouped.sum(1, keepdim=True) - grouped) / (group - 1)
    return (grouped - others).reshape(-1)


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


def gae(rewards: Any, values: Any, mask: Any, *, decay: float, discount: float = 1.0) -> Any:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16), shape (N, T).

    Args:
        rewards: Of each token, shape (N, T).
        values: What the critic expects from there on, shape (N, T); after the last token it is 0.
        mask: 1 where a token is.
        decay: Lambda.
        discount: Gamma.
    """
    import torch

    width = rewards.shape[1]
    found = torch.zeros_like(rewards)
    ahead = torch.zeros_like(rewards[:, 0])
    later = torch.zeros_like(ahead)
    for place in reversed(range(width)):
        here = mask[:, place]
        delta = rewards[:, place] + discount * later - values[:, place]
        ahead = (delta + discount * decay * ahead) * here
        later = values[:, place] * here
        found[:, place] = ahead
    return found


def kl_k3(new: Any, reference: Any) -> Any:
    """Schulman's k3, e^d - d - 1 with d = reference - new: unbiased for the KL, never negative.

    The difference is cut at 20 nats: one token that the policy has all but given up would overflow.
    """
    gap = (reference - new).clamp(-20, 20)
    return gap.exp() - gap - 1


def clipped_loss(new: Any, old: Any, advantages: Any, clip: float) -> Any:
    """The clipped surrogate (Schulman et al. 2017, eq. 7), elementwise and to be minimised."""
    import torch

    ratio = (new - old).exp()
    return -torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
