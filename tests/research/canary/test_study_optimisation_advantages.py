"""Advantages and losses against explicit sums, and against TRL's own code on the same numbers."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from research.canary.optimisation import (
    Algorithm,
    PolicyConfig,
    clipped_loss,
    gae,
    group_advantages,
    surrogate,
    token_rewards,
)


def _numbers(rows=6, width=4, seed=0):
    """Log-probabilities of a policy, the one that drew, the reference; a mask; advantages."""
    source = torch.Generator().manual_seed(seed)
    new, old, reference = (-torch.rand(rows, width, generator=source) * 3 for _ in range(3))
    mask = (torch.arange(width) < torch.randint(1, width + 1, (rows, 1), generator=source)).float()
    return new, old, reference, mask, torch.randn(rows, generator=source)


def test_gae_is_the_discounted_sum_of_later_errors():
    rewards, values, _, mask, _ = _numbers()
    values = values * mask
    decay = 0.95
    found = gae(rewards, values, mask, decay)
    for row in range(len(mask)):
        length = int(mask[row].sum())
        ahead = torch.cat([values[row, 1:length], torch.zeros(1)])
        errors = rewards[row, :length] + ahead - values[row, :length]
        for at in range(length):
            steps = torch.arange(length - at)
            expected = (errors[at:] * decay**steps).sum()
            assert float(found[row, at]) == pytest.approx(float(expected), abs=1e-5)
        assert not found[row, length:].any()


def test_gae_without_decay_is_one_error_and_with_full_decay_the_return():
    rewards, values, _, mask, _ = _numbers(seed=1)
    values = values * mask
    full = gae(rewards * mask, values, mask, 1.0)
    returns = (rewards * mask).flip(1).cumsum(1).flip(1) * mask
    assert torch.allclose(full, returns - values, atol=1e-5)


def test_group_advantages_centre_and_scale():
    rewards = torch.tensor([1.0, 3.0, 5.0, 5.0])
    scaled = group_advantages(rewards, 2)
    # However small the difference of two answers, scaling makes it 0.71: the paper's G = 2.
    tiny = group_advantages(torch.tensor([0.0, 0.01, 0.0, 0.0]), 2)
    assert scaled.tolist() == pytest.approx([-0.7071, 0.7071, 0.0, 0.0], abs=1e-3)
    assert tiny[1] == pytest.approx(0.70, abs=0.02)


def test_the_last_token_gets_the_score_and_each_pays_its_kl():
    _, old, reference, mask, scores = _numbers()
    found = token_rewards(scores, old, reference, mask, 0.1)
    total = scores - 0.1 * ((old - reference) * mask).sum(1)
    assert torch.allclose(found.sum(1), total, atol=1e-5)
    row = int(mask.sum(1).argmin())
    last = int(mask[row].sum()) - 1
    paid = 0.1 * float(old[row, last] - reference[row, last])
    assert float(found[row, last]) == pytest.approx(float(scores[row]) - paid, abs=1e-5)


def test_a_ratio_beyond_the_clip_earns_no_gradient():
    old = torch.tensor([-1.0, -1.0])
    new = torch.tensor([-0.5, -1.6], requires_grad=True)
    clipped_loss(new, old, torch.tensor([1.0, -1.0]), 0.2).sum().backward()
    assert new.grad.tolist() == [0.0, 0.0]


@pytest.fixture(scope="module")
def trl_loss():
    """TRL's loss of GRPO, with its models replaced by given log-probabilities."""
    trl = pytest.importorskip("trl")

    def loss(new, old, mask, advantages, config):
        trainer = object.__new__(trl.GRPOTrainer)
        same = SimpleNamespace(
            gather=lambda x: x, reduce=lambda x, reduction: x, gather_for_metrics=lambda x: x,
            num_processes=1,
        )  # fmt: skip
        lists = {"train": _Lists(), "eval": _Lists()}
        given = {
            "aux_loss_enabled": False, "top_entropy_quantile": 1.0, "beta": 0.0,
            "off_policy_mask_threshold": None, "importance_sampling_level": "token",
            "epsilon_low": config.clip, "epsilon_high": config.clip, "loss_type": "dapo",
            "use_vllm": False, "_entropy_bonus_enabled": False, "_metrics": lists,
            "accelerator": same, "model": SimpleNamespace(training=True),
            "current_gradient_accumulation_steps": 1,
            "args": SimpleNamespace(
                use_bias_correction_kl=False, delta=None, steps_per_generation=1
            ),
            "_get_per_token_logps_and_entropies": lambda *_, **__: (new, new.detach() * 0, None),
        }  # fmt: skip
        for name, value in given.items():
            object.__setattr__(trainer, name, value)
        block = torch.ones(len(mask), 1, dtype=torch.long)
        inputs = {
            "prompt_ids": block, "prompt_mask": block, "completion_ids": mask.long(),
            "completion_mask": mask, "advantages": advantages, "old_per_token_logps": old,
            "num_items_in_batch": mask.sum(),
        }  # fmt: skip
        return trainer._compute_loss(None, inputs)

    return loss


class _Lists(dict):
    def __missing__(self, key):
        self[key] = []
        return self[key]


@pytest.mark.filterwarnings("ignore")
def test_loss_and_gradient_are_trl_s(trl_loss):
    new, old, _, mask, advantages = _numbers(rows=8, seed=3)
    config = PolicyConfig(algorithm=Algorithm.GRPO, clip=0.2)
    part = SimpleNamespace(old=old, advantages=advantages)
    ours, theirs = new.clone().requires_grad_(), new.clone().requires_grad_()
    mine = surrogate(ours, part, mask, config)
    trl_s = trl_loss(theirs, old, mask, advantages, config)
    mine.backward()
    trl_s.backward()
    assert float(mine) == pytest.approx(float(trl_s), abs=1e-6)
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-7)
