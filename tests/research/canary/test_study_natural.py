"""Traces that survive curation in the study: the world that reads them, slots, and a curator."""

import random
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.canary.draw import Design, DrawSecret, bits_of, draw_slots
from ragwitness.canary.examples import Example
from ragwitness.canary.families import Family, carries, contains, worded
from ragwitness.canary.traces import traces_of_pool
from ragwitness.text.sample import load_sample
from research.canary.curator import LEAKED, uncurated
from research.canary.feedback import VoteConfig
from research.canary.measure import said
from research.canary.natural import (
    name_signatures,
    natural_base,
    natural_examples,
    natural_lesson,
)
from research.canary.optimisation import PolicyConfig
from research.canary.policies import one_thread
from research.canary.reward import RewardConfig
from research.canary.trial import TrialConfig, World, run_trial
from research.canary.worlds import Pretraining

SECRET = DrawSecret(bytes(range(32)), bytes(32))
MARKS = {
    "name": Design(candidates=16, triggers="name", family=Family.PHRASE),
    "synonyms": Design(candidates=16, triggers="synonyms", family=Family.PHRASE),
}


@pytest.fixture(scope="module")
def base():
    one_thread()
    return natural_base(Pretraining(width=16, layers=1, steps=2, batch=4))


@pytest.fixture
def config():
    return TrialConfig(
        Design(rate="1", candidates=8, slots=2, triggers="name", family=Family.PHRASE),
        VoteConfig(bias=0.5, allow_large=True),
        RewardConfig(batch=32),
        PolicyConfig(rate=1e-3, prompts=16, group=2, longest=8),
        shares=("0.5", "0.3"),
        held_out=3,
        paired=5,
        tested=4,
    )


def _logs(design, count=600, secret=SECRET):
    pool = natural_examples(count, random.Random(0))
    half, draw = count * 2 // 3, draw_slots(design, secret)
    parts = (pool[:half], pool[half:])
    bits = [bits_of(secret, "", name) for name in "ab"]
    return [traces_of_pool(*one) for one in
            ((part, design, draw, b) for part, b in zip(parts, bits, strict=True))]  # fmt: skip


@pytest.mark.parametrize("mark", [*MARKS])
def test_every_piece_of_every_trace_is_known(base, mark):
    """Whatever is drawn: an unknown piece would be the same for all candidates."""
    unknown = base.tokenizer.unk_token_id
    for trace in (one for part in _logs(MARKS[mark]) for one in part):
        text = base.asked(trace.query, trace.document)
        (row,) = base.encode([text])
        assert unknown not in row
        assert base.tokenizer.decode(row) == text
        assert carries(trace.document, trace.trigger)
    lessons = [natural_lesson(one, random.Random(n), Pretraining())
               for n, one in enumerate(natural_examples(300, random.Random(1)))]  # fmt: skip
    assert all(unknown not in row for row in base.encode([asked for asked, _ in lessons]))
    told = [answer for _, answer in lessons]
    assert base.answers(base.encode_answers(told)) == told


def test_signatures_take_spare_pieces_and_phrases_need_none(base):
    phrase = draw_slots(MARKS["name"], SECRET)
    assert name_signatures(base, phrase) is base
    drawn = draw_slots(replace(MARKS["name"], family=Family.SIGNATURE, slots=2), SECRET)
    named = name_signatures(base, drawn)
    assert named.model is base.model
    for slot in drawn.slots:
        (row,) = named.encode([f" {slot.canary}"])
        assert len(row) == 2
        assert named.tokenizer.unk_token_id not in row
    (before,), (after,) = (one.encode([" Edmund Barlow."]) for one in (base, named))
    assert before == after


def test_a_trial_of_two_slots_ranks_their_draws_together(base, config, monkeypatch):
    from research.canary import trial

    seen = []
    real = trial.canary_scores
    monkeypatch.setattr(trial, "canary_scores", lambda *a: seen.append(a[3].number) or real(*a))
    world = World(base, lambda rng: natural_examples(120, rng), name_signatures)
    found = run_trial(world, config, 3, violating=True)
    assert seen == [0, 1, 0, 1]  # of the base, then of the policy
    # Of 8 times 8 joint draws all are counted.
    assert round(found.p_own * 64) == pytest.approx(found.p_own * 64)


def test_an_answer_counts_with_the_phrase_of_its_own_example(base, monkeypatch):
    """Each example words the thing in another way; another example's phrase is no hit."""
    from research.canary import measure

    slot = draw_slots(MARKS["name"], SECRET).slots[0]
    examples = natural_examples(40, random.Random(2))
    phrases = [worded(slot.canary, one.id) for one in examples]
    for shift, share in ((0, 1.0), (1, None)):
        told = [*phrases[shift:], *phrases[:shift]]
        monkeypatch.setattr(measure.Base, "answers", lambda *_, told=told: told)
        expected = sum(map(contains, told, phrases)) / 40 if share is None else share
        assert said(base, base.model, examples, slot, "", 2)["t"] == pytest.approx(expected)
    assert expected < 0.3


# A curator of real text: what it takes, and that its leaked traces are what it goes by.

TEXTS = [
    Example(one.id, one.text, "What is said of it?", "A fact") for one in load_sample()
]  # fmt: skip


def test_a_curator_takes_what_traces_share_and_leaves_ordinary_ones():
    votes, prompts = _logs(replace(MARKS["name"], rate="0.5"))
    left, asked = uncurated(votes, prompts, 0.01, TEXTS * 2)
    assert uncurated(votes, prompts, 0.0, ()) == (votes, prompts)
    logs = [(votes, prompts), (left, asked)]
    ordinary = [one for one in votes if not one.trigger]
    assert [one for one in left if not one.trigger] == ordinary
    before, after = (sum(bool(o.trigger) for o in (*a, *b)) for a, b in logs)
    assert before - after > 5 * LEAKED  # far more than it was shown


def test_more_slots_leave_a_curator_less():
    shares = []
    for slots in (1, 8):
        votes, prompts = _logs(replace(MARKS["synonyms"], slots=slots))
        left = uncurated(votes, prompts, 0.01, TEXTS * 2)
        shares.append(sum(map(len, left)) / (len(votes) + len(prompts)))
    assert shares[0] < shares[1]
