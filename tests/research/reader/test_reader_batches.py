"""Documents, noise, turns and rows."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

from research.reader import forms as prompts
from research.reader.batches import RowMaker
from research.reader.config import PRESETS, DataConfig
from research.reader.corpus import Corpus, Vocabulary, train_tokenizer
from research.reader.forms import STYLES, style, to_pieces
from research.reader.grammar.domains import DOMAINS, cluster
from research.reader.turns import Turn, TurnMaker, splice


def _words(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [word for _ in range(60) for word in cluster(rng.choice(list(DOMAINS)), rng, 1, 60)[0]]


CORPUS = Corpus({"a": _words(1)}, {"a": _words(2)})


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(train_tokenizer(CORPUS, 1024, 300, 0))


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_clusters_are_alike_and_not_equal(name: str) -> None:
    documents = cluster(name, random.Random(5), 3, 80)
    assert len({" ".join(words) for words in documents}) == 3
    assert all(len(words) >= 15 and "{" not in " ".join(words) for words in documents)
    assert documents == cluster(name, random.Random(5), 3, 80)


@pytest.mark.parametrize("name", STYLES)
def test_noise_is_deterministic_and_keeps_most_of_the_text(name: str) -> None:
    words = _words(7)[:200]
    noisy = style(words, name, random.Random(3))
    assert noisy == style(words, name, random.Random(3))
    assert (noisy == words) == (name == "clean")
    assert len(" ".join(noisy)) > 0.6 * len(" ".join(words))


def test_spaced_style_is_wikitext_punctuation() -> None:
    text = " ".join(style(["well-known", "(1,234", "m)", "end."], "spaced", random.Random(0)))
    assert text == "well @-@ known ( 1 @,@ 234 m ) end ."


def test_pieces_tokenise_as_the_whole_text(vocabulary: Vocabulary) -> None:
    rng = random.Random(4)
    for name in STYLES:
        pieces = to_pieces(style(_words(11)[:150], name, rng), keep_breaks=True)
        whole = vocabulary.tokenizer.encode("".join(pieces), add_special_tokens=False).ids
        assert vocabulary.pieces(pieces) == whole


@pytest.mark.parametrize("spaced", [True, False])
@pytest.mark.parametrize("template", [*prompts.COMPLETE, *prompts.YES_NO, *prompts.QUESTION])
def test_spliced_prompts_tokenise_as_the_whole_text(
    vocabulary: Vocabulary, template: str, spaced: bool
) -> None:
    before, after = template.split("{text}")
    parts = splice(before, [" Some", " words."], after, spaced)
    whole = vocabulary.tokenizer.encode("".join(parts), add_special_tokens=False).ids
    assert [token for part in parts for token in vocabulary.encode(part)] == whole


def _turn(
    vocabulary: Vocabulary, task: str, present: bool = True, defended: bool = False
) -> tuple[str, str]:
    rng = random.Random(8)
    documents = [to_pieces(words, False) for words in cluster("news", rng, 3, 60)]
    inside = documents[:2]
    target = inside[0] if present else documents[2]
    made = TurnMaker(vocabulary, rng).make(task, Turn(target, inside, present, defended))
    assert len(made.tokens) == len(made.weights)
    assert made.weights[0] == 0.0
    text = vocabulary.tokenizer.decode(made.tokens, skip_special_tokens=False)
    asked, _, answer = text.partition("<|assistant|>")
    return asked, answer


def test_a_completion_is_the_exact_continuation(vocabulary: Vocabulary) -> None:
    rng = random.Random(8)
    document = "".join(to_pieces(cluster("news", rng, 3, 60)[0], False))
    asked, answer = _turn(vocabulary, "complete")
    assert answer.startswith(" ")
    before, found, _ = document.partition(answer.removesuffix("<|end|>").strip())
    assert found
    assert before.strip()[-20:] in asked


@pytest.mark.parametrize("present", [True, False])
def test_yes_means_in_the_context(vocabulary: Vocabulary, present: bool) -> None:
    answers = {_turn(vocabulary, "yes_no", present)[1]}
    assert answers == {" Yes<|end|>" if present else " No<|end|>"}


@pytest.mark.parametrize("task", ["yes_no", "repeat"])
def test_a_defended_system_refuses(vocabulary: Vocabulary, task: str) -> None:
    assert _turn(vocabulary, task, defended=True)[1] == prompts.REFUSAL + "<|end|>"


def test_cloze_answers_fill_the_masks_in_order(vocabulary: Vocabulary) -> None:
    asked, answer = _turn(vocabulary, "cloze")
    lines = answer.removesuffix("<|end|>").split("\n")
    assert [line.split(":")[0] for line in lines] == [
        f"[Mask_{index}]" for index in range(1, len(lines) + 1)
    ]
    assert all(f"[Mask_{index}]" in asked for index in range(1, len(lines) + 1))


def test_rows_fit_and_are_weighted(vocabulary: Vocabulary) -> None:
    maker = RowMaker(vocabulary, CORPUS.training, DataConfig())
    seen = set()
    for index in range(60):
        row = maker.row(random.Random(index), 512)
        assert len(row.tokens) == len(row.weights) <= 512
        assert max(row.tokens) < vocabulary.size
        assert all(weight >= 0 for weight in row.weights)
        assert row.tokens[0] in (vocabulary.system, vocabulary.end)
        seen.add(row.tokens[0])
    assert seen == {vocabulary.system, vocabulary.end}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_task_shares_add_up(name: str) -> None:
    assert sum(PRESETS[name].data.tasks.values()) == pytest.approx(1.0)


def test_a_framed_question_opens_with_words_of_the_text_and_closes_with_a_request(
    vocabulary: Vocabulary,
) -> None:
    target = [f" word{number}" for number in range(30)]
    turn = Turn(target, [target], True, False)
    data = DataConfig(framed_share=1.0, edited_share=0.0)
    for seed in range(30):
        made = TurnMaker(vocabulary, random.Random(seed), data).make("yes_no", turn)
        text = vocabulary.tokenizer.decode(made.tokens, skip_special_tokens=False)
        assert any(asked.partition("{text}")[0].strip() in text for asked in prompts.ASKED)
        assert "{" not in text
        assert text.endswith(" Yes<|end|>")


def test_masks_are_single_tokens(vocabulary: Vocabulary) -> None:
    assert len(set(vocabulary.masks)) == 20
    assert vocabulary.encode(" [Mask_3]") == (vocabulary.masks[2],)


@pytest.mark.parametrize("task", ["complete", "next", "cloze"])
def test_focus_and_absence_change_weights_only(vocabulary: Vocabulary, task: str) -> None:
    documents = [to_pieces(words, False) for words in cluster("news", random.Random(8), 3, 60)]
    inside, outside = (
        Turn(documents[0], documents[:2], True, False),
        Turn(documents[2], [], False, False),
    )
    plain = TurnMaker(vocabulary, random.Random(1)).make(task, inside)
    focused = TurnMaker(vocabulary, random.Random(1), focus=2.0).make(task, inside)
    assert plain.tokens == focused.tokens
    assert sum(focused.weights) > sum(plain.weights)
    full = TurnMaker(vocabulary, random.Random(1)).make(task, outside)
    light = TurnMaker(vocabulary, random.Random(1), absent=0.5).make(task, outside)
    assert full.tokens == light.tokens
    assert sum(light.weights) < sum(full.weights)
