"""Masks: against the loop of Alg. 2-4 read to the letter, and on texts that are hard to mask."""

import math
import random
import re
import zlib
from itertools import pairwise

import numpy as np
import pytest

from ragwitness.membership.methods.mba.masks import (
    MbaConfig,
    cut,
    is_stop_word,
    mask_document,
)
from ragwitness.membership.methods.mba.spelling import token_units, word_units
from ragwitness.models.base import TextScores, map_to_words
from ragwitness.text.words import core, split_words

_TEXT = (
    "On Monday the ferry captain (Quillington) keeps a brown dog called Tamarind, and the dog"
    " barks at every lighthouse between Oxcombe and the well-known outer islands; his vet gave"
    " it 3.5 mg of canestan for a nearlt forgotten rash that it had on its left ear/paw."
)
_TOKEN = re.compile(r" ?[A-Za-z]{1,4}| ?\d| ?[^\sA-Za-z\d]|\s")


class Pieces:
    """Tokens of four letters; rank and probability hang on everything before."""

    name = "pieces"
    context_length = 4000

    def __init__(self) -> None:
        self.scored: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(_TOKEN.findall(text))

    def score(self, texts, *, after=None, top=0):
        self.scored += texts
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> TextScores:
        found = list(_TOKEN.finditer(text))
        draws = [zlib.crc32(text[: match.end()].encode()) for match in found]
        return TextScores(
            np.arange(len(found)),
            np.array([match.span() for match in found]).reshape(-1, 2),
            np.array([-0.5 - draw % 9 for draw in draws], dtype=float),
            np.array([draw % 5000 for draw in draws]),
        )


class Meant:
    """A speller that knows one mistake."""

    def correct(self, previous_two, word):
        self.asked = getattr(self, "asked", [])
        self.asked.append((tuple(previous_two), word))
        return {"nearlt": "nearly"}.get(word)

    def reads(self, text):
        return True


def _mask(text=_TEXT, proxy=None, speller=None, seed=0, **options):
    config = MbaConfig(**options)
    return mask_document(text, proxy or Pieces(), config, speller, random.Random(seed))


def _literal_fragments(tokens: list[str]) -> list[str]:
    """Alg. 2, with a flush at the end of the text."""
    found, word, flag = [], "", False
    for j, token in enumerate(tokens):
        word += token
        following = tokens[j + 1] if j + 1 < len(tokens) else " "
        if re.match(r"[a-zA-Z\-/]", following):
            flag = True
            continue
        if flag:
            flag = False
            found.append(word)
        word = ""
    return found


def test_fragmented_words_are_those_of_algorithm_2() -> None:
    text = _TEXT.replace("(", "").replace(";", "")
    tokens = _TOKEN.findall(text)
    literal = [core(word.strip()) for word in _literal_fragments(tokens)]
    ours = [unit.text for unit in word_units(text, Pieces()._score(text)) if unit.fragmented]
    assert ours == literal
    assert {"well-known", "ear/paw", "canestan"} <= set(ours)
    assert not {"dog", "3.5", "his"} & set(ours)


def test_words_without_punctuation_score_as_word_scores_do() -> None:
    text = " ".join(core(word.text) for word in split_words(_TEXT))
    scores = Pieces()._score(text)
    for unit, word in zip(word_units(text, scores), map_to_words(text, scores), strict=True):
        assert (unit.text, unit.rank) == (word.word, word.rank)
        assert unit.logprob == pytest.approx(word.logprob)


def _literal_masks(text: str, proxy: Pieces, parts: int, skip: int, meant: dict[str, str]):
    """Alg. 3 and 4 by the prose: one model call per word, prefix before it, no shortcuts."""
    words = split_words(text)
    total, chosen, ranks = len(words) - skip, [], {}
    for i in range(parts):
        low, high = skip + i * total // parts, skip + (i + 1) * total // parts
        ranks_here = {}
        for j in range(low, high):
            stem = core(words[j].text)
            if is_stop_word(stem) or (chosen and j - chosen[-1] <= 1):
                continue
            start = words[j].start + words[j].text.index(stem)
            before = text[:start].rstrip(" ")
            word = meant.get(stem, stem)
            upto = text[:start] + word
            scores = proxy.score([upto])[0]
            inside = scores.offsets[:, 1] > max(start, len(before))
            ranks_here[j] = int(scores.ranks[inside].max())  # Alg. 3, line 13
            ranks[j] = (ranks_here[j], math.exp(float(scores.logprobs[inside].sum())))
        if ranks_here:
            chosen.append(max(ranks_here, key=lambda j: ranks_here[j]))
    return chosen, ranks


@pytest.mark.parametrize("masks", [3, 5, 8])
@pytest.mark.parametrize("meant", [{}, {"nearlt": "nearly"}])
def test_one_pass_masks_what_the_literal_loop_masks(masks: int, meant: dict[str, str]) -> None:
    chosen, ranks = _literal_masks(_TEXT, Pieces(), masks, 5, meant)
    speller = Meant() if meant else None
    masked = _mask(masks=masks, unique_words=False, speller=speller)
    assert [mask.unit.index for mask in masked.masks] == chosen
    for mask in masked.masks:
        rank, probability = ranks[mask.unit.index]
        assert mask.unit.rank == rank
        if mask.unit.text not in meant:  # of two spellings the likelier counts
            assert mask.probability == pytest.approx(probability, abs=1e-4)


def test_one_pass_over_the_document_and_one_over_its_corrections() -> None:
    proxy = Pieces()
    _mask(proxy=proxy)
    assert proxy.scored == [_TEXT]
    proxy = Pieces()
    _mask(proxy=proxy, speller=Meant())
    assert proxy.scored == [_TEXT, _TEXT.replace("nearlt", "nearly")]


def test_a_misspelt_word_has_two_answers_and_the_rank_of_its_correction() -> None:
    speller = Meant()
    masked = _mask(masks=50, min_masks=1, avoid_adjacent=False, speller=speller)
    (mask,) = [mask for mask in masked.masks if mask.unit.text == "nearlt"]
    assert mask.answers == ("nearlt", "nearly")
    corrected = _TEXT.replace("nearlt", "nearly")
    scored = {u.text: u for u in word_units(corrected, Pieces()._score(corrected))}
    assert mask.unit.rank == scored["nearly"].rank
    plain = {u.text: u for u in word_units(_TEXT, Pieces()._score(_TEXT))}
    ours = max(plain["nearlt"].logprob, scored["nearly"].logprob)
    assert mask.probability == pytest.approx(math.exp(ours))
    assert (("for", "a"), "nearlt") in speller.asked
    assert "dog" not in {word for _, word in speller.asked}


def test_the_masked_text_is_the_document_with_numbers_in_place_of_words() -> None:
    masked = _mask(masks=8)
    numbers = [int(n) for n in re.findall(r"\[Mask_(\d+)\]", masked.text)]
    assert numbers == list(range(1, len(masked.masks) + 1))
    restored = masked.text
    for mask in masked.masks:
        assert core(mask.unit.text) == mask.unit.text
        restored = restored.replace(f"[Mask_{mask.number}]", mask.unit.text)
    assert restored == _TEXT
    indices = [mask.unit.index for mask in masked.masks]
    assert min(indices) >= 5
    assert all(two - one > 1 for one, two in pairwise(indices))
    assert not any(is_stop_word(mask.unit.text) for mask in masked.masks)


def test_a_word_that_stands_twice_is_masked_only_where_nothing_else_can_be() -> None:
    text = "a b c d e zebra lion zebra tiger zebra zebra"
    alone = _mask(text, masks=3, skip_words=5).masks
    assert [mask.unit.text for mask in alone] == ["lion", "tiger", "zebra"]
    units = {unit.index: unit for unit in word_units(text, Pieces()._score(text))}
    published = _mask(text, masks=1, min_masks=1, unique_words=False).masks[0].unit
    assert published.rank == max(units[i].rank for i in range(5, 11))


@pytest.mark.parametrize(
    ("word", "stopped"),
    [("The", True), ("don\u2019t", True), ("can't", True), ("they've", True), ("etc", True),
     ("e.g", True), ("yourself", True), ("canestan", False), ("ferry", False),
     ("patient's", False)],
)  # fmt: skip
def test_function_words_and_abbreviations_are_never_masked(word: str, stopped: bool) -> None:
    assert is_stop_word(word) is stopped


def test_tags_and_punctuation_are_never_masked() -> None:
    text = "one two three four five <human>: ... --- !!! hello <bot>: goodbye ___ stranger"
    masked = _mask(text, masks=9, min_masks=1, avoid_adjacent=False)
    assert {m.unit.text for m in masked.masks} <= {"hello", "goodbye", "stranger"}
    assert masked.masks


@pytest.mark.parametrize("text", ["", "   \n ", "word", "!!! ??? ...", "the of and to a in on at"])
def test_texts_without_a_word_worth_a_mask_have_none(text: str) -> None:
    masked = _mask(text)
    assert masked.masks == ()
    assert masked.text == text.strip()


def test_text_without_spaces_is_masked_by_character() -> None:
    text = "私の猫は毎朝六時に起きて庭の魚を見ます"
    masked = _mask(text, masks=4)
    assert len(masked.masks) == 4
    assert all(len(mask.unit.text) == 1 for mask in masked.masks)


def test_cyrillic_words_can_be_masked() -> None:
    text = "Вчера утром капитан парома нашёл на пристани большую рыжую собаку по кличке Тамаринд."
    masked = _mask(text, masks=4)
    assert len(masked.masks) == 4
    assert masked.text.count("[Mask_") == 4


def test_a_long_text_is_cut_at_a_word() -> None:
    text = "lighthouse " * 400
    opening = cut(text, 2048, Pieces())
    assert len(opening) <= 2048
    assert text.startswith(opening)
    assert opening.endswith("lighthouse")
    assert cut("x" * 3000, 2048, Pieces()) == ""


def test_a_text_is_cut_to_what_the_proxy_reads() -> None:
    proxy = Pieces()
    proxy.context_length = 50
    opening = cut(_TEXT * 5, 2048, proxy)
    assert 30 < proxy.count_tokens(opening) <= 50


def test_random_masks_come_from_the_seed_and_take_stop_words_too() -> None:
    one, again, other = (_mask(source="random", seed=s) for s in (1, 1, 2))
    assert one == again
    assert one.text != other.text
    drawn = {m.unit.text for s in range(9) for m in _mask(source="random", seed=s).masks}
    assert any(is_stop_word(word) for word in drawn)


def test_the_proxy_alone_masks_pieces_of_words() -> None:
    masked = _mask(source="proxy-only", speller=Meant())
    tokens = {unit.text for unit in token_units(_TEXT, Pieces()._score(_TEXT))}
    assert {mask.unit.text for mask in masked.masks} <= tokens
    whole = {core(word.text) for word in split_words(_TEXT)}
    assert any(mask.unit.text not in whole for mask in masked.masks)
