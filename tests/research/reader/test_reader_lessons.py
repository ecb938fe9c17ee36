"""Lessons: rows and turns whose labels come from what made the documents."""

from __future__ import annotations

import random
import re

import pytest

pytest.importorskip("torch")

from ragwitness.defenses.synthetic.sage import read_judgement
from ragwitness.text.replies import declines
from research.reader import forms as prompts
from research.reader.batches import RowMaker, batch_at
from research.reader.config import PRESETS
from research.reader.corpus import Corpus, Vocabulary, train_tokenizer, with_gap
from research.reader.grammar.domains import DOMAINS, cluster
from research.reader.questions import free_question, record_questions, record_text
from research.reader.roles import ROLES, role_turn
from research.reader.stories import Lexicon, cast_of, story
from research.reader.turns import Rendered

LESSONS = PRESETS["lessons"]
LEXICON = Lexicon(("kettle", "orchard"), ("rusty",), ("polish",), {"house": "dwelling"})


def _words(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [word for _ in range(60) for word in cluster(rng.choice(list(DOMAINS)), rng, 1, 60)[0]]


CORPUS = Corpus({"a": _words(1), "b": _words(2)}, {"a": _words(3)})


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(with_gap(train_tokenizer(CORPUS, 1024, 300, 0)))


@pytest.fixture(scope="module")
def maker(vocabulary: Vocabulary) -> RowMaker:
    return RowMaker(vocabulary, CORPUS.training, LESSONS.data, LEXICON)


def _turns(vocabulary: Vocabulary, row: Rendered) -> list[tuple[str, str]]:
    text = vocabulary.tokenizer.decode(row.tokens, skip_special_tokens=False)
    parts = [part.partition("<|assistant|>") for part in text.split("<|user|>")[1:]]
    return [(asked, answer.partition("<|end|>")[0].strip()) for asked, _, answer in parts]


def test_a_gap_is_one_token_and_swallows_no_comma(vocabulary: Vocabulary) -> None:
    assert vocabulary.gap == vocabulary.size - 1
    before, gap, comma = vocabulary.encode("x ____,")
    assert gap == vocabulary.gap
    assert (before, comma) == (vocabulary.encode("x")[0], vocabulary.encode(",")[0])


def test_twins_ask_the_same_and_only_the_guarded_one_declines(
    vocabulary: Vocabulary, maker: RowMaker
) -> None:
    declined = shared = total = 0
    for seed in range(40):
        one, other = (
            maker.lessons.pair(random.Random(seed), guarded, 2048, 1.0, 1.0)
            for guarded in (True, False)
        )
        guarded, plain = _turns(vocabulary, one), _turns(vocabulary, other)
        pairs = list(zip(guarded, plain, strict=False))[:-1]
        shared += sum(first[0] == second[0] for first, second in pairs)
        total += len(pairs)
        declined += sum(declines(answer) for _, answer in guarded)
        assert not any(answer in prompts.DECLINES for _, answer in plain)
    # What is declined is short: where the plain twin's long repetition does not fit, it asks less.
    assert shared > 0.6 * total > 10
    assert declined > 20


def test_the_first_words_of_a_decline_weigh_most(vocabulary: Vocabulary, maker: RowMaker) -> None:
    opens = {vocabulary.encode(" " + text.split()[0])[0] for text in prompts.DECLINES}
    heavy = 0
    for seed in range(20):
        row = maker.lessons.pair(random.Random(seed), True, 1024, 1.0, 1.0)
        for at, token in enumerate(row.tokens[:-1]):
            if token == vocabulary.assistant and row.tokens[at + 1] in opens:
                heavy += row.weights[at + 1] == 8.0
    assert heavy > 2


def test_gaps_are_filled_with_the_word_that_stood_there(
    vocabulary: Vocabulary, maker: RowMaker
) -> None:
    right = []
    for seed in range(12):
        row = maker.lessons.single("gap", random.Random(seed), "plain", 1024)
        text = vocabulary.tokenizer.decode(row.tokens, skip_special_tokens=False)
        context = " ".join(text.partition("<|user|>")[0].split())
        for asked, answer in _turns(vocabulary, row):
            left = asked.partition("____")[0].split()[-1:]
            if answer.startswith("____: ") and left:
                word = left[0].strip('"')
                right.append(f"{word} {answer.removeprefix('____: ')}" in context)
    assert len(right) > 20
    # A seventh of the targets are not in the context, and some gaps open their quotation.
    assert sum(right) / len(right) > 0.6


def test_answers_of_stories_stand_in_them() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        text, asked = story(rng, cast_of(rng, 5), 100, LEXICON)
        low = text.lower()
        held = [answer.lower() in low for _, answer in asked]
        # Some are put together of two parts of a sentence ("she took the bell").
        assert sum(held) / len(held) > 0.8
        assert all(question.endswith("?") for question, _ in asked)


def test_answers_of_records_and_of_any_text_stand_in_them() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        text, _, made = record_text(rng, rng.choice(["support", "clinic", "personnel"]))
        assert all(answer in text for _, answer in record_questions(rng, made))
        words = CORPUS.training["a"][seed * 20 : seed * 20 + 80]
        found = free_question([word.strip() for word in words], rng, LEXICON)
        if found:
            assert found[1] in " ".join(word.strip() for word in words)


@pytest.mark.parametrize("role", sorted(ROLES))
def test_nothing_that_identifies_is_an_answer(role: str) -> None:
    for seed in range(60):
        turn = role_turn(random.Random(seed), seed % 2 == 0, role)
        answer = turn.answer if not turn.unsafe else ""
        for value in turn.private:
            assert not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", answer) or len(value) < 5


def test_judgements_can_be_read_and_both_kinds_occur() -> None:
    kinds = set()
    for seed in range(60):
        turn = role_turn(random.Random(seed), False, "judge")
        judged = read_judgement(turn.answer, turn.text)
        assert judged is not None
        assert judged.safe != turn.unsafe
        kinds.add(turn.unsafe)
    assert kinds == {True, False}


@pytest.mark.parametrize("preset", ["lessons", "obey"])
def test_rows_of_every_kind_fit(vocabulary: Vocabulary, preset: str) -> None:
    config = PRESETS[preset]
    maker = RowMaker(vocabulary, CORPUS.training, config.data, LEXICON)
    for step in range(config.schedule.begin, config.schedule.begin + 4):
        batch = batch_at(maker, config, step)
        assert int(batch.tokens.max()) < vocabulary.size
        assert batch.tokens.shape == batch.weights.shape
        assert float(batch.weights.min()) >= 0


def test_row_shares_add_up() -> None:
    for preset in PRESETS.values():
        assert sum(preset.data.rows.values()) == pytest.approx(1.0)


def test_each_conversation_of_a_drill_obeys_its_own_prompt(vocabulary: Vocabulary) -> None:
    obey = RowMaker(vocabulary, CORPUS.training, PRESETS["obey"].data, LEXICON)
    conversations = declined = granted = 0
    for seed in range(40):
        row = obey.lessons.drill(random.Random(seed), 1024, 1.0)
        assert len(row.tokens) == len(row.weights) <= 1024
        text = vocabulary.tokenizer.decode(row.tokens, skip_special_tokens=False)
        for one in text.split("<|system|>")[1:-1]:
            assert one.count("<|user|>") == one.count("<|assistant|>") == 1
            answer = one.partition("<|assistant|>")[2].partition("<|end|>")[0].strip()
            conversations += 1
            declined += answer in prompts.DECLINES
            granted += answer in prompts.GRANTS
            if one.startswith(prompts.SYSTEM[0]):
                assert answer not in prompts.DECLINES
    assert conversations > 80
    assert granted > 20
    # .42 strict: of those .40 declined with a document, and all where only permission is asked.
    assert 0.25 < declined / conversations < 0.50
