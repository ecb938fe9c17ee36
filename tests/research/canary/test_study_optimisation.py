"""PPO and GRPO on a task whose optimum is known: say the last word of the prompt."""

import contextlib
import copy
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.core.errors import InputError, ModelError
from research.canary.optimisation import Algorithm, Paused, PolicyConfig, optimise
from research.canary.policies import Base, Lora, new_scorer, one_thread
from research.canary.sequences import generate

PAD, EOS, WORDS = 0, 1, 6
PROMPTS = [[2 + a, 2 + b] for a in range(WORDS) for b in range(WORDS)]
HELD_OUT, TRAINED = PROMPTS[::4], [one for at, one in enumerate(PROMPTS) if at % 4]


class _Tokens:
    eos_token_id, pad_token_id = EOS, PAD


@pytest.fixture(scope="module")
def base():
    from transformers import LlamaConfig, LlamaForCausalLM

    one_thread()
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=2 + WORDS, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=16,
        pad_token_id=PAD, bos_token_id=None, eos_token_id=EOS,
    )  # fmt: skip
    return Base(LlamaForCausalLM(shape).eval(), _Tokens(), "tiny")


def _earned(prompt, answer):
    """The optimum is 1, chance 1 in 8."""
    return float(answer[0] == prompt[-1])


def _reward(_, prompts, answers):
    return [_earned(*pair) for pair in zip(prompts, answers, strict=True)]


def _mean(base, model):
    drawn = generate(model, HELD_OUT * 8, longest=2, eos=EOS, pad=PAD,
                     generator=torch.Generator().manual_seed(5))  # fmt: skip
    return sum(_reward([], HELD_OUT * 8, drawn)) / len(drawn)


def _config(algorithm, **other):
    own = {"rate": 3e-3, "prompts": 32, "group": 4, "temperature": 1.0, "longest": 2, "kl": 0.01}
    return PolicyConfig(algorithm=algorithm, **own | other)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_reaches_the_optimum_on_prompts_it_never_saw(algorithm, base):
    config = _config(algorithm, missing_end=0.0)
    policy, history = optimise(base, TRAINED * 160, _reward, config, random.Random(1))
    assert _mean(base, base.model) < 0.35
    assert _mean(base, policy) > 0.9
    assert history.rewards[-1] > history.rewards[0] + 0.4
    assert history.kl[0] == pytest.approx(0.0, abs=1e-5)


def _said(model, prompt, answer):
    """Log-probability of every token, one row at a time: nothing is padded here."""
    logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    logits = logits.index_fill(1, torch.tensor([PAD]), -1e9)
    return logits.log_softmax(1)[torch.arange(len(answer)), answer]


def _worth(critic, prompt, answer):
    hidden = critic.backbone(input_ids=torch.tensor([prompt + answer])).last_hidden_state[0]
    return critic.head(hidden[len(prompt) - 1 : -1]).squeeze(1)


def _clipped(new, old, advantage, clip=0.2):
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def _by_hand(config, rows, new, old, reference):
    """The loss on a batch from the papers' formulas, in loops; models are (policy, critic)."""
    earned = [_earned(*row) - float(row[1][-1] != EOS) for row in rows]
    group, losses = config.group, []
    said, drew, first = ([_said(m, *row) for row in rows] for m in (new[0], old[0], reference))
    drew, first = [one.detach() for one in drew], [one.detach() for one in first]
    if config.algorithm is Algorithm.PPO:
        weights, errors = [], []
        for row, score, before, base in zip(rows, earned, drew, first, strict=True):
            worth = _worth(old[1], *row).detach()
            paid = -config.kl * (before - base)
            paid[-1] += score
            delta = paid + torch.cat([worth[1:], torch.zeros(1)]) - worth
            ahead = torch.stack(
                [
                    sum(0.95**k * delta[t + k] for k in range(len(delta) - t))
                    for t in range(len(delta))
                ]
            )
            now, goal = _worth(new[1], *row), ahead + worth
            near = worth + (now - worth).clamp(-0.2, 0.2)
            errors.append(torch.maximum((now - goal) ** 2, (near - goal) ** 2))
            weights.append(ahead)
        every = torch.cat(weights)
        weights = [(w - every.mean()) / (every.var(correction=0) + 1e-8).sqrt() for w in weights]
        losses = [_clipped(*three).mean() for three in zip(said, drew, weights, strict=True)]
        worse = torch.stack([error.mean() for error in errors]).mean()
        return torch.stack(losses).mean() + 0.1 * 0.5 * worse
    for at, (now, before) in enumerate(zip(said, drew, strict=True)):
        mates = range(at - at % group, at - at % group + group)
        own = torch.tensor([earned[n] for n in mates])
        advantage = (earned[at] - own.mean()) / (own.std() + 1e-4)
        losses.append(_clipped(now, before, advantage))
    return torch.cat(losses).mean()


@pytest.mark.parametrize("algorithm", Algorithm)
def test_every_gradient_is_that_of_the_formula(algorithm, base, monkeypatch):
    """Three batches, two passes each, far from the base: KL, clip, penalty, whitening, critic."""
    config = _config(algorithm, rate=0.02, kl=0.3, prompts=4, group=3, passes=2)
    rolled, steps, cut = [], [], torch.nn.utils.clip_grad_norm_

    def reward(places, prompts, answers):
        rolled.append(list(zip(prompts, answers, strict=True)))
        return _reward(places, prompts, answers)

    def seen(trained, most):
        steps.append([(p.detach().clone(), p.grad.clone()) for p in trained])
        return cut(trained, most)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", seen)
    optimise(base, TRAINED[:12], reward, config, random.Random(6))

    def models(step):
        policy, critic = copy.deepcopy(base.model), new_scorer(base)
        own = [*policy.parameters(), *(critic.parameters() if algorithm is Algorithm.PPO else ())]
        with torch.no_grad():
            for mine, (value, _) in zip(own, step, strict=True):
                mine.copy_(value)
        return (policy, critic), own

    assert len(steps) == 2 * len(rolled) == 6
    for at, step in enumerate(steps):
        new, own = models(step)
        old, _ = models(steps[at - at % 2])
        _by_hand(config, rolled[at // 2], new, old, base.model).backward()
        for mine, (_, gradient) in zip(own, step, strict=True):
            assert torch.allclose(mine.grad, gradient, atol=2e-5)


def test_an_answer_that_does_not_end_is_paid_less(base):
    """With nothing else to earn, the penalty alone teaches to end."""
    config = _config(Algorithm.PPO, missing_end=1.0)
    _, history = optimise(base, TRAINED * 15, lambda _, p, a: [0.0] * len(a), config,
                          random.Random(2))  # fmt: skip
    assert history.ended[-1] > history.ended[0] + 0.2


def test_a_strong_kl_keeps_the_policy_where_it_was(base):
    free, held = (
        optimise(base, TRAINED * 10, _reward, _config(Algorithm.PPO, kl=kl), random.Random(3))[1]
        for kl in (0.0, 10.0)
    )
    assert held.kl[-1] < 0.3 * free.kl[-1]


def test_training_leaves_the_base_alone_and_repeats_itself(base):
    before = [p.clone() for p in base.model.parameters()]
    first, second = (
        optimise(base, TRAINED, _reward, _config(Algorithm.PPO), random.Random(4))[0]
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(before, base.model.parameters(), strict=True))
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_adapters_are_trained_in_place_of_the_weights(base):
    pytest.importorskip("peft")
    config = _config(Algorithm.PPO, lora=Lora(rank=4, dropout=0.0))
    policy, _ = optimise(base, TRAINED, _reward, config, random.Random(4))
    trained = {name for name, p in policy.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)


def test_a_rate_far_too_high_does_not_learn(base):
    """Collapse is seen, not hidden: it neither reaches the optimum nor passes as a number."""
    config = _config(Algorithm.GRPO, rate=3.0)
    with contextlib.suppress(ModelError):
        policy, _ = optimise(base, TRAINED * 10, _reward, config, random.Random(5))
        assert _mean(base, policy) < 0.6


def test_rewards_that_are_no_numbers_are_refused(base):
    with pytest.raises(ModelError, match="rewards are no numbers"):
        optimise(base, TRAINED, lambda _, p, a: [float("nan")] * len(a),
                 _config(Algorithm.GRPO), random.Random(0))  # fmt: skip


def test_no_prompts_and_groups_of_one_are_refused(base):
    with pytest.raises(InputError, match="no prompt"):
        optimise(base, [], _reward, _config(Algorithm.PPO), random.Random(0))
    with pytest.raises(InputError, match="2 or more"):
        PolicyConfig(algorithm="grpo", group=1)
    assert PolicyConfig(algorithm="ppo", group=1).algorithm is Algorithm.PPO


def test_an_empty_answer_is_a_row_like_others(base):
    """The end token first: nothing is divided by zero."""
    from research.canary.sequences import batch, completion_scores, log_probs

    rows = batch([[2, 3], [2]], [[EOS], [4, 5, EOS]], PAD)
    with torch.no_grad():
        alone = log_probs(base.model, batch([[2]], [[4, 5, EOS]], PAD)).sum()
        both = log_probs(base.model, rows).sum(1)
    assert float(both[1]) == pytest.approx(float(alone), abs=1e-4)
    assert completion_scores(base.model, [[2]], [[4, 5, EOS]], PAD)[0] == pytest.approx(
        float(alone), abs=1e-5
    )


@pytest.mark.parametrize("algorithm", ["grpo", "ppo"])
def test_a_training_that_is_broken_off_goes_on_where_it_stopped(base, tmp_path, algorithm):
    config = PolicyConfig(algorithm=algorithm, rate=1e-3, prompts=9, group=2, longest=2)

    def reward(places, prompts, answers):
        return [
            float(answer[0] == prompt[-1]) for prompt, answer in zip(prompts, answers, strict=True)
        ]

    whole, seen = optimise(base, TRAINED, reward, config, random.Random(3))
    kept, tries = tmp_path / "kept.pt", 0
    while True:
        tries += 1
        with contextlib.suppress(Paused):
            parts, told = optimise(
                base, TRAINED, reward, config, random.Random(3), kept=kept, pause=lambda: True
            )
            break
    assert tries == 3  # batches
    assert told == seen
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(one, other)
