"""Batches: whatever is read together, every answer gets the numbers that it has alone."""

import random
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from research.canary import sequences
from research.canary.policies import Base, new_scorer, one_thread
from research.canary.sequences import batch, generate, log_probs

EOS, PAD = 1, 0


@pytest.fixture(scope="module")
def base():
    from transformers import LlamaConfig, LlamaForCausalLM

    one_thread()
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=200, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
        pad_token_id=PAD, bos_token_id=None, eos_token_id=EOS,
    )  # fmt: skip
    tokens = SimpleNamespace(pad_token_id=PAD, eos_token_id=EOS)
    return Base(LlamaForCausalLM(shape).eval(), tokens, "chance")


def _pairs(rng, prompts, group):
    """Prompts of very different lengths, each with several answers, and some that come again."""
    found = []
    for _ in range(prompts):
        asked = [rng.randrange(3, 200) for _ in range(rng.choice((2, 3, 20, 21)))]
        for _ in range(group):
            said = [rng.randrange(3, 200) for _ in range(rng.randrange(6))]
            found.append((asked, [*said, EOS]))
    return [list(one) for one in zip(*found, strict=True)]


@pytest.mark.parametrize("call", [1, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_an_answer_s_numbers_hang_on_its_prompt_alone(base, seed, call, monkeypatch):
    """Shared prompts, blocks of like length and padding against one row at a time."""
    monkeypatch.setattr(sequences._cuts, "__defaults__", (call,))
    prompts, answers = _pairs(random.Random(seed), 9, 3)
    rows = batch(prompts, answers, PAD, share=True)
    assert (len(rows.blocks) > 1) == (call == 1)
    assert sum(len(one.ids) for one in rows.blocks) <= 9  # a prompt is read once
    scorer = new_scorer(base)
    with torch.no_grad():
        together, worth = log_probs(base.model, rows), scorer.values(rows)
        earned = scorer.rewards(rows)
        for at, pair in enumerate(zip(prompts, answers, strict=True)):
            alone, size = batch([pair[0]], [pair[1]], PAD), len(pair[1])
            assert together[at, :size].tolist() == pytest.approx(
                log_probs(base.model, alone)[0].tolist(), abs=1e-4
            )
            assert not together[at, size:].any()
            assert worth[at, :size].tolist() == pytest.approx(
                scorer.values(alone)[0].tolist(), abs=1e-5
            )
            assert float(earned[at]) == pytest.approx(float(scorer.rewards(alone)), abs=1e-5)


def test_likeliest_answers_do_not_hang_on_what_is_drawn_beside_them(base):
    prompts, _ = _pairs(random.Random(5), 9, 3)
    random.Random(1).shuffle(prompts)
    drawn = generate(base.model, prompts, longest=5, eos=EOS, pad=PAD)
    for asked, said in zip(prompts, drawn, strict=True):
        assert generate(base.model, [asked], longest=5, eos=EOS, pad=PAD) == [said]


def test_answers_to_one_prompt_are_drawn_apart(base):
    """Four of each: a prompt that is read once must not answer once."""
    prompts = [one for one in _pairs(random.Random(6), 8, 1)[0] for _ in range(4)]
    source = torch.Generator().manual_seed(3)
    drawn = generate(base.model, prompts, longest=5, eos=EOS, pad=PAD, generator=source)
    assert all(len({tuple(row) for row in drawn[at : at + 4]}) > 1 for at in range(0, 32, 4))
