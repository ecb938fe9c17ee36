from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt, TextScores, map_to_words, word_scores
from ragwitness.models.reader.model import Reader
from ragwitness.text.words import split_words


def scores(offsets: Sequence[tuple[int, int]]) -> TextScores:
    """Token i has log-probability -(i + 1) and rank i."""
    n = len(offsets)
    return TextScores(
        np.arange(n),
        np.array(offsets, np.int64).reshape(-1, 2),
        -np.arange(1, n + 1, dtype=np.float64),
        np.arange(n),
    )


def mapped(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[str, float, int]]:
    found = map_to_words(text, scores(offsets))
    assert all(text[word.start : word.end] == word.word for word in found)
    return [(word.word, word.logprob, word.rank) for word in found]


def test_several_tokens_make_a_word() -> None:
    found = mapped("a doctor, gave", [(0, 1), (1, 5), (5, 8), (8, 9), (9, 14)])
    assert found == [("a", -1, 0), ("doctor,", -9, 3), ("gave", -5, 4)]


def test_leading_spaces_do_not_touch_the_word_before() -> None:
    assert mapped("ab cd", [(0, 2), (2, 5)]) == [("ab", -1, 0), ("cd", -2, 1)]


def test_line_breaks_belong_to_no_word() -> None:
    found = mapped("a \n\n b", [(0, 1), (1, 4), (4, 6)])
    assert found == [("a", -1, 0), ("b", -3, 2)]
    assert mapped("a  b ", [(0, 1), (1, 2), (2, 4), (4, 5)]) == [("a", -1, 0), ("b", -3, 2)]


def test_a_lone_space_belongs_to_the_word_after_it() -> None:
    found = mapped("mg 50", [(0, 2), (2, 3), (3, 4), (4, 5)])
    assert found == [("mg", -1, 0), ("50", -9, 3)]


def test_a_token_across_words_counts_for_each() -> None:
    found = mapped("of the day", [(0, 6), (6, 10)])
    assert found == [("of", -1, 0), ("the", -1, 0), ("day", -2, 1)]
    found = mapped("ab cd ef", [(0, 1), (1, 7), (7, 8)])
    assert found == [("ab", -3, 1), ("cd", -2, 1), ("ef", -5, 2)]


def test_bytes_of_one_character_are_summed() -> None:
    assert mapped("é 日", [(0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (2, 3)]) == [
        ("é", -3, 1),
        ("日", -18, 5),
    ]


def test_empty_ranges_belong_to_the_character_before() -> None:
    assert mapped("日 x", [(0, 1), (1, 1), (1, 3)]) == [("日", -3, 1), ("x", -3, 2)]
    assert mapped("日", [(0, 0), (0, 1)]) == [("日", -3, 1)]


def test_nothing_to_map() -> None:
    assert mapped("", []) == []
    assert mapped("  \n", [(0, 3)]) == []
    assert mapped("a b", [(0, 1)]) == [("a", -1, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "The doctor gave paracetamol, 500 mg (twice).",
        "Émile naïve 日本語 🙂🙂 Ж!",
        "  leading and  double\n\nspaces\t",
        "[Mask_1] and [Mask_2]: done",
        "\u00a0no\u00a0break\u3000wide",
    ],
)
@pytest.mark.parametrize("with_context", [False, True])
def test_every_word_once_and_nothing_lost(reader: Reader, text: str, with_context: bool) -> None:
    after = ChatPrompt((Message(Role.USER, "Say it."),), "") if with_context else None
    tokens = reader.score([text], after=None if after is None else [after])[0]
    words = map_to_words(text, tokens)
    assert [word.word for word in words] == [word.text for word in split_words(text)]
    shares = [
        sum(w.start < end and start < w.end for w in words)
        or (text[start:end] in ("", " ") and text[end : end + 1].strip() != "")
        for start, end in tokens.offsets.tolist()
    ]
    assert sum(word.tokens for word in words) == sum(shares)
    assert sum(word.logprob for word in words) == pytest.approx(tokens.logprobs @ shares)
    assert max(word.rank for word in words) == tokens.ranks[np.array(shares) > 0].max()


def test_one_token_of_an_unspaced_script_counts_for_each_character(reader: Reader) -> None:
    words = word_scores(reader, "x 日本語")
    assert [word.word for word in words] == ["x", "日", "本", "語"]
    assert words[1].logprob == words[2].logprob == words[3].logprob
