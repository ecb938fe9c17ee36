"""Batches: whatever is read together, every answer gets the numbers that it has alone."""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from research.canary import sequences
from research.canary.policies import Base, new_scorer, one_thread, piece_tokenizer
from research.canary.sequences import batch, generate, log_probs
from research.canary.worlds import Pretraining, _begin, _network, toy_base

EOS, PAD = 1, 0


@pytest.fixture(scope="module")
def base():
    one_thread()
    torch.manual_seed(0)
    tokenizer = piece_tokenizer()
    return Base(_network(Pretraining(width=32, layers=2), tokenizer).eval(), tokenizer, "chance")


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


def test_a_base_begins_at_another_with_the_rows_that_both_know(base):
    start = toy_base(Pretraining(width=32, layers=2, steps=1, batch=2))
    tokenizer = piece_tokenizer(words=[" moon", " king"])
    mine = Base(_network(Pretraining(width=32, layers=2), tokenizer), tokenizer, "texts")
    before = mine.model.get_input_embeddings().weight.clone()
    _begin(mine, start)
    own, known = tokenizer.get_vocab(), start.tokenizer.get_vocab()
    rows = mine.model.get_input_embeddings().weight
    theirs = start.model.get_input_embeddings().weight
    for piece, at in own.items():
        given = theirs[known[piece]] if piece in known else before[at]
        assert torch.equal(rows[at], given)
    assert {" moon", " king"} == set(own) - set(known)
    inner = "model.layers.1.mlp.up_proj.weight"
    assert torch.equal(
        dict(mine.model.named_parameters())[inner], dict(start.model.named_parameters())[inner]
    )
