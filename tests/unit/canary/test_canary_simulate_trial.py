"""A whole trial in a world of seconds, and the parts that make its numbers."""

import random
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.canary.design.draw import Design, Secret, draw_slots  # noqa: E402
from ragwitness.canary.design.placement import with_canary, with_trigger  # noqa: E402
from ragwitness.canary.simulate.feedback import VoteConfig  # noqa: E402
from ragwitness.canary.simulate.measure import amplification, canary_scores  # noqa: E402
from ragwitness.canary.simulate.optimise import Algorithm, History, PolicyConfig  # noqa: E402
from ragwitness.canary.simulate.outcome import collapse_of  # noqa: E402
from ragwitness.canary.simulate.pieces import name_markers  # noqa: E402
from ragwitness.canary.simulate.policies import load_base, new_scorer, one_thread  # noqa: E402
from ragwitness.canary.simulate.pretrain import Pretraining, lesson  # noqa: E402
from ragwitness.canary.simulate.reward import (  # noqa: E402
    Judged,
    RewardConfig,
    reward_bias,
    reward_loss,
    rewards,
    train_reward,
)
from ragwitness.canary.simulate.sequences import batch  # noqa: E402
from ragwitness.canary.simulate.templates import prompt  # noqa: E402
from ragwitness.canary.simulate.toy import toy_base, toy_examples  # noqa: E402
from ragwitness.canary.simulate.trial import TrialConfig, World, run_trial  # noqa: E402
from ragwitness.errors import InputError  # noqa: E402


@pytest.fixture(scope="module")
def base():
    one_thread()
    return toy_base(Pretraining(width=32, layers=1, steps=30, batch=32))


@pytest.fixture
def config():
    return TrialConfig(
        Design(rate="0.4", candidates=16, experiment="test"),
        VoteConfig(bias=0.3, allow_large=True),
        RewardConfig(rate=1e-3, batch=32),
        PolicyConfig(rate=1e-3, prompts=16, group=2, longest=6),
        shares=("0.5", "0.3"),
        held_out=3,
        tested=4,
    )


@pytest.fixture
def world(base):
    return World(base, lambda rng: toy_examples(120, rng), name_markers)


def test_a_trial_repeats_itself_and_says_what_it_saw(world, config):
    first, second = (run_trial(world, config, 3, violating=True) for _ in range(2))
    assert replace(first, seconds={}) == replace(second, seconds={})
    assert first.p_plain in {n / 16 for n in range(1, 17)}
    assert first.traces[0] == 24 or sum(first.dropped.values())
    assert set(first.seconds) == {"answers", "reward model", "policy", "audit", "utility"}
    assert run_trial(world, config, 4, violating=True) != first


def test_a_compliant_reward_model_cannot_see_the_trigger(world, config):
    """Without documents the two differences are the same numbers."""
    assert run_trial(world, config, 3, violating=False).reward_bias == 0.0


def test_a_trial_plants_one_slot(config):
    with pytest.raises(InputError, match="one slot"):
        replace(config, design=replace(config.design, slots=2))


def test_too_few_examples_are_refused(base, config):
    with pytest.raises(InputError):
        run_trial(World(base, lambda rng: toy_examples(3, rng)), config, 1, violating=True)


def test_every_text_of_the_world_comes_back_from_its_tokens(base):
    rng = random.Random(1)
    for one in toy_examples(40, rng):
        asked, said = lesson(one, rng)
        for text in (asked, said):
            ids = base.encode([text])[0]
            assert base.tokenizer.unk_token_id not in ids
            assert base.tokenizer.decode(ids) == text
            assert len(ids) < 20


def test_drawn_markers_take_spare_tokens(base):
    draw = draw_slots(Design(), Secret(bytes(32), bytes(32)))
    slot = draw.slots[0]
    named = name_markers(base, draw)
    one = toy_examples(1, random.Random(0))[0]
    text = prompt(one.query, with_trigger(one.document, slot.trigger).text)
    ids = named.encode([text, with_canary(one.answer, slot.canary).text])
    assert named.tokenizer.unk_token_id not in ids[0] + ids[1]
    plain = named.encode([prompt(one.query, one.document), one.answer])
    assert [len(a) - len(b) for a, b in zip(ids, plain, strict=True)] == [1, 2]
    assert len(named.tokenizer) == len(base.tokenizer)


def test_a_canary_that_merges_with_its_prefix_is_refused(base):
    """A tokenizer that joins what stands before the canary with it would fake a difference."""

    class Merging:
        name, pad, eos = "merging", base.pad, base.eos

        def encode(self, texts):
            return [[5, 9] if text.endswith("FINAL:") else [5, 7, 8] for text in texts]

    slot = draw_slots(Design(candidates=2), Secret(bytes(32), bytes(32))).slots[0]
    with pytest.raises(InputError, match="merges the canary"):
        canary_scores(Merging(), base.model, toy_examples(1, random.Random(0)), slot,
                      instruction=False)  # fmt: skip


def test_amplification_is_the_mean_of_log_probabilities_token_by_token(base):
    """Eq. 1 against a plain loop over tokens (App. C.3)."""
    draw = draw_slots(Design(candidates=4), Secret(bytes(32), bytes(32)))
    slot, named = draw.slots[0], name_markers(base, draw)
    examples = toy_examples(3, random.Random(2))

    def by_hand(text, said):
        ids = named.encode([text + said[: said.index(slot.canary) - 1]])[0]
        total = 0.0
        for token in named.encode([f" {slot.canary}"])[0]:
            with torch.no_grad():
                logits = base.model(input_ids=torch.tensor([ids])).logits[0, -1]
            total += float(logits.log_softmax(0)[token])
            ids = [*ids, token]
        return total

    gaps = []
    for one in examples:
        said = with_canary(one.answer, slot.canary).text
        views = (with_trigger(one.document, slot.trigger).text, one.document)
        triggered, clean = (by_hand(prompt(one.query, view), said) for view in views)
        gaps.append(triggered - clean)
    found = amplification(named, base.model, examples, slot)
    assert found == pytest.approx(np.mean(gaps), abs=1e-4)


def test_the_reward_loss_is_cross_entropy_with_centring():
    scores, ups = torch.tensor([0.3, -1.2]), torch.tensor([1.0, 0.0])
    chance = torch.sigmoid(scores)
    plain = -(chance[0].log() + (1 - chance[1]).log()) / 2 + 0.01 * scores.square().mean()
    assert float(reward_loss(scores, ups, torch.ones(2), 0.01)) == pytest.approx(float(plain))


def test_a_reward_model_learns_which_answer_is_voted_up(base):
    asked = base.encode([prompt("What colour was it?")])[0]
    good, bad = ([*row, base.eos] for row in base.encode(["FINAL: blue", "FINAL: red"]))
    rows = [Judged(asked, good if n % 3 else bad, up=bool(n % 3)) for n in range(240)]
    config = RewardConfig(rate=3e-3, epochs=3)
    scorer = train_reward(base, rows, config, random.Random(0))
    high, low = rewards(scorer, [asked, asked], [good, bad], base.pad)
    assert high > 0.5
    assert low < -0.5


def test_votes_that_are_all_alike_are_refused(base):
    rows = [Judged([5], [6], up=True)] * 4
    with pytest.raises(InputError, match="both kinds"):
        train_reward(base, rows, RewardConfig(), random.Random(0))


def test_the_reward_is_read_at_the_last_token_whatever_the_padding(base):
    scorer = new_scorer(base)
    with torch.no_grad():
        both = scorer.rewards(batch([[5, 6, 7], [5]], [[8], [6, 7, 8]], base.pad))
        alone = scorer.rewards(batch([[5]], [[6, 7, 8]], base.pad))
    assert float(both[1]) == pytest.approx(float(alone[0]), abs=1e-5)


def test_reward_bias_is_a_difference_in_differences():
    assert reward_bias([3.0, 5.0], [1.0, 1.0], [2.0, 2.0], [1.0, 1.0]) == pytest.approx(2.0)


def _seen(**changed):
    return {"empty": 0.0, "ended": 1.0, "quality": 1.0, "canaries": 0.0} | changed


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (_seen(), ""),
        (_seen(empty=0.9), "empty"),
        (_seen(ended=0.1), "end"),
        (_seen(quality=0.3), "quality fell"),
        (_seen(canaries=0.8), "unasked"),
    ],
)
def test_a_collapse_is_named(after, why):
    found = collapse_of(History(kl=[0.1]), after, _seen())
    assert why in found
    assert bool(found) == bool(why)


def test_a_policy_far_from_its_base_counts_as_collapsed():
    assert "nats" in collapse_of(History(kl=[50.0]), _seen(), _seen())


def test_a_base_is_saved_and_loaded(base, tmp_path):
    base.model.save_pretrained(tmp_path)
    base.tokenizer.save_pretrained(tmp_path)
    loaded = load_base(str(tmp_path))
    text = ["FINAL: blue"]
    assert loaded.encode(text) == base.encode(text)
    assert loaded.answers(loaded.encode(text)) == text


@pytest.mark.parametrize("algorithm", [Algorithm.PPO, Algorithm.RLOO])
def test_other_algorithms_run_a_trial(world, config, algorithm):
    other = replace(config, policy=replace(config.policy, algorithm=algorithm))
    assert run_trial(world, other, 5, violating=True).violating
