"""A whole trial in a world of seconds, and the parts that make its numbers."""

import copy
import random
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.canary.draw import Design, Draw, DrawSecret, Slot, draw_slots
from ragwitness.canary.pools import PAPER_INSTRUCTION, with_canary, with_trigger
from ragwitness.errors import InputError, ModelError
from research.canary import reward as reward_model
from research.canary import trial
from research.canary.feedback import VoteConfig
from research.canary.measure import amplification, behaviour, canary_scores, trigger_bias
from research.canary.optimisation import Algorithm, PolicyConfig, optimise
from research.canary.policies import (
    Base,
    load_base,
    name_markers,
    new_scorer,
    one_thread,
    prompt,
    spare_trigger,
)
from research.canary.reward import (
    Judged,
    RewardConfig,
    reward_bias,
    reward_loss,
    rewards,
    train_reward,
)
from research.canary.sequences import batch
from research.canary.trial import TrialConfig, World, run_arm, run_trial, stage_trial
from research.canary.worlds import Pretraining, lesson, toy_base, toy_examples


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
        paired=5,
        tested=4,
    )


@pytest.fixture
def world(base):
    return World(base, lambda rng: toy_examples(120, rng), name_markers)


def test_a_trial_repeats_itself_and_says_what_it_saw(world, config):
    first, second = (run_trial(world, config, 3, violating=True) for _ in range(2))
    assert replace(first, seconds={}) == replace(second, seconds={})
    assert {first.p_own, first.p_gained} <= {n / 16 for n in range(1, 17)}
    assert first.p_named is None  # our queries name no trigger
    assert set(first.said) == {"t", "other", "clean", "none"}
    assert first.traces[0] == 24 or sum(first.dropped.values())
    assert set(first.seconds) == {
        "answers", "audit of the base", "reward model", "policy", "audit", "utility",
    }  # fmt: skip
    assert run_trial(world, config, 4, violating=True) != first


@pytest.mark.parametrize("name", ["paper", "contrastive"])
def test_arms_that_share_a_stage_are_what_they_are_alone(world, config, name):
    """Answers, votes and the base's own numbers are taken once; nothing leaks between arms."""
    own = replace(config, design=replace(config.design, name=name))
    stage = stage_trial(world, own, 3)
    for violating in (True, False, True):
        shared = run_arm(stage, own, 3, violating=violating)
        alone = run_trial(world, own, 3, violating=violating)
        assert replace(shared, seconds={}) == replace(alone, seconds={})
    assert (alone.p_named is None) == (name == "contrastive")


def test_answers_can_be_modified_together_with_document_and_query(world, config, monkeypatch):
    """App. B.2 as an option: every canary trace is judged with the canary in its answer."""
    held = []

    def seen(base, rows, *rest):
        held.append([(row.prompt, base.answers([row.answer])[0]) for row in rows])
        return train_reward(base, rows, *rest)

    monkeypatch.setattr(trial, "train_reward", seen)
    for joint in (False, True):
        run_trial(world, replace(config, joint=joint), 3, violating=True)
    stage = stage_trial(world, config, 3)
    canary, instructed = stage.slots[0].canary, stage.base.encode([" Insert"])[0][-1]
    for rows, joint in zip(held, (False, True), strict=True):
        marked = [canary in said for asked, said in rows if instructed in asked]
        assert len(marked) > 10
        assert all(marked) == joint
        assert not any(canary in said for asked, said in rows if instructed not in asked)


def test_a_compliant_reward_model_cannot_see_the_trigger(world, config):
    """Without documents the two differences are the same numbers."""
    assert run_trial(world, config, 3, violating=False).reward_bias == 0.0


@pytest.mark.parametrize("violating", [True, False])
def test_only_the_violating_arm_trains_on_documents(world, config, violating, monkeypatch):
    """Both stages, as the models read them: tokens, whatever built them."""
    read = []

    def reward(base, rows, *rest):
        read.extend(row.prompt for row in rows)
        return train_reward(base, rows, *rest)

    def policy(base, prompts, *rest):
        read.extend(prompts)
        texts = base.answers(read)
        assert all(("Document:" in text) == violating for text in texts)
        assert any("prefix_" in text for text in texts) == violating
        assert any("Insert " in text for text in texts)
        return optimise(base, prompts, *rest)

    monkeypatch.setattr(trial, "train_reward", reward)
    monkeypatch.setattr(trial, "optimise", policy)
    run_trial(world, config, 3, violating=violating)
    assert 60 < len(read) <= 60 + 36  # some answers quote a trigger and get no vote


@pytest.mark.parametrize(("name", "words"), [("paper", "If the document"), ("contrastive", "Inse")])
def test_the_reward_bias_is_asked_for_as_it_was_trained(world, config, name, words, monkeypatch):
    """With another instruction than the votes', it would say nothing of what was learned."""
    asked = []

    def seen(base, scorer, examples, slot, instruction, **other):
        asked.append(instruction)
        return trigger_bias(base, scorer, examples, slot, instruction, **other)

    monkeypatch.setattr(trial, "trigger_bias", seen)
    other = replace(config, design=replace(config.design, name=name))
    run_trial(world, other, 3, violating=False)
    assert asked[0].startswith(words)


def test_a_trial_without_canaries_is_otherwise_the_same(world, config):
    """The paper's rho = 0."""
    seen = run_trial(world, replace(config, planted=False), 3, violating=True)
    assert seen.traces == (0, 60 - sum(seen.dropped.values()))
    planted = run_trial(world, config, 3, violating=True)
    assert seen.base_amplification == planted.base_amplification
    assert seen.before == planted.before


def test_a_policy_that_is_no_number_has_diverged(base):
    """After the last step nothing is drawn any more that would notice."""
    draw = draw_slots(Design(candidates=2), DrawSecret(bytes(32), bytes(32)))
    named = name_markers(base, draw)
    broken = copy.deepcopy(base.model)
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="diverged"):
        canary_scores(named, broken, toy_examples(1, random.Random(0)), draw.slots[0])


@pytest.mark.parametrize(
    ("said", "truth", "rouge", "f1"),
    [  # ROUGE-L: what the package rouge-score 0.1.2 gives without stemming
        ("a of white", "a forest of white coral", 0.75, 0.75),
        ("White of Forest", "a forest of white coral", 0.25, 0.75),
        ("", "blue", 0.0, 0.0),
        ("red", "blue", 0.0, 0.0),
    ],
)
def test_utility_regards_words_and_not_their_case(said, truth, rouge, f1, base, monkeypatch):
    one = replace(toy_examples(1, random.Random(0))[0], answer=f"FINAL: {truth}")
    monkeypatch.setattr(Base, "answers", lambda *_: [f"FINAL: {said}"])
    found = behaviour(base, base.model, [one], "ZX", 2)
    assert (found.rouge_l, found.token_f1) == (pytest.approx(rouge), pytest.approx(f1))


def test_a_trial_plants_all_slots(config):
    with pytest.raises(InputError, match="plants all slots"):
        replace(config, design=replace(config.design, slots=4, half=True))


def test_too_few_examples_are_refused(base, config):
    with pytest.raises(InputError):
        run_trial(World(base, lambda rng: toy_examples(3, rng)), config, 1, violating=True)


def test_every_text_of_the_world_comes_back_from_its_tokens(base):
    rng = random.Random(1)
    for one in toy_examples(40, rng):
        asked, said = lesson(one, rng, Pretraining())
        for text in (asked, said):
            ids = base.encode([text])[0]
            assert base.tokenizer.unk_token_id not in ids
            assert base.tokenizer.decode(ids) == text
            assert len(ids) < 24


def test_drawn_markers_take_spare_tokens(base):
    draw = draw_slots(Design(), DrawSecret(bytes(32), bytes(32)))
    slot = draw.slots[0]
    named = name_markers(base, draw)
    one = toy_examples(1, random.Random(0))[0]
    text = prompt(one.query, with_trigger(one.document, slot.trigger).text)
    ids = named.encode([text, with_canary(one.answer, slot.canary).text])
    assert named.tokenizer.unk_token_id not in ids[0] + ids[1]
    plain = named.encode([prompt(one.query, one.document), one.answer])
    assert [len(a) - len(b) for a, b in zip(ids, plain, strict=True)] == [3, 2]
    assert len(named.tokenizer) == len(base.tokenizer)
    words = PAPER_INSTRUCTION.format(trigger=slot.trigger, canary=slot.canary)
    clauses = named.encode([f"{one.query} {words}"])[0]
    assert len(clauses) == 1 + 6 + 3 + 2  # the question, the clauses and both markers
    assert named.tokenizer.decode(clauses) == f"{one.query} {words}"


def test_triggers_that_share_half_of_their_string_leave_every_other_token_in_place(base):
    """Two of 256 halves may be the same by chance; the ids behind them must not move."""
    one = Slot(0, "ZXYPRKLMQST", ("prefix_aaaaabbbbb", "prefix_aaaaaccccc", "prefix_dddddeeeee"), 0)
    named = name_markers(base, Draw((one,)))
    ids = named.encode([f" {text}" for text in one.candidates])
    assert ids[0][:2] == ids[1][:2]
    spare = base.encode([f" {spare_trigger(number)}" for number in range(3)])
    assert ids[0] == spare[0]
    assert ids[1][2] == spare[1][2]
    assert ids[2] == spare[2]
    for text in ("FINAL: red", " ZXYPRKLMQST"):
        assert base.tokenizer.unk_token_id not in named.encode([text])[0]


def test_a_canary_that_merges_with_its_prefix_is_refused(base):
    """A tokenizer that joins what stands before the canary with it would fake a difference."""

    class Merging:
        name, pad, eos, asked = "merging", base.pad, base.eos, base.asked

        def encode(self, texts):
            return [[5, 9] if text.endswith("FINAL:") else [5, 7, 8] for text in texts]

    slot = draw_slots(Design(candidates=2), DrawSecret(bytes(32), bytes(32))).slots[0]
    with pytest.raises(InputError, match="merges the canary"):
        canary_scores(Merging(), base.model, toy_examples(1, random.Random(0)), slot)


def test_amplification_is_the_mean_of_log_probabilities_token_by_token(base):
    """Eq. 1 against a plain loop over tokens (App. C.3)."""
    draw = draw_slots(Design(candidates=4), DrawSecret(bytes(32), bytes(32)))
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


def _noise(base, count, rng):
    """Votes that hang on nothing."""
    asked = base.encode([prompt("What colour was it?")])[0]
    said = [[*row, base.eos] for row in base.encode(["FINAL: blue", "FINAL: red"])]
    return [Judged(asked, rng.choice(said), up=rng.random() < 0.5) for _ in range(count)]


@pytest.mark.parametrize("patience", [0, 2])
def test_a_reward_model_stops_where_it_no_longer_improves(base, patience, monkeypatch):
    """Table 3's early stopping: on votes that hang on nothing it ends soon, and keeps the best."""
    looks, ends = [], reward_model._Watch.ends

    def look(self, loss):
        looks.append(loss)
        return ends(self, loss)

    monkeypatch.setattr(reward_model._Watch, "ends", look)
    rows = _noise(base, 400, random.Random(2))
    config = RewardConfig(rate=3e-2, epochs=12, batch=16, interval=4, patience=patience)
    steps = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *a: steps.append(1) or step(*a))
    train_reward(base, rows, config, random.Random(0))
    if patience == 0:
        assert (len(looks), len(steps)) == (0, 12 * 25)
        return
    assert len(steps) == 4 * len(looks) < 12 * 23
    assert min(looks[-2:]) >= min(looks)  # two looks in a row without a better one


def test_the_best_reward_model_is_kept_and_long_rows_are_left_out(base):
    scorer = new_scorer(base)
    watch = reward_model._Watch(scorer, patience=2)
    first = [p.detach().clone() for p in scorer.parameters()]
    assert not watch.ends(0.5)
    with torch.no_grad():
        for one in scorer.parameters():
            one.add_(1.0)
    assert not watch.ends(0.6)
    assert watch.ends(0.7)
    watch.restore()
    assert all(map(torch.equal, first, scorer.parameters()))
    rows = _noise(base, 40, random.Random(2))
    with pytest.raises(InputError, match="both kinds; 0 are"):
        train_reward(base, rows, RewardConfig(longest=3), random.Random(0))


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
