from __future__ import annotations

import numpy as np
import pytest

from ragwitness.models.base import log_normaliser, sample, score_rows, top_rows
from ragwitness.models.decoding import Decoding, TokenVocabulary, score_tokens

LOGITS = np.array([[0, 1, 2, 2, -80], [1000, 999, -1000, 0, 5]], np.float32)


def test_log_normaliser_against_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    expected = special.logsumexp(LOGITS.astype(np.float64), axis=-1)
    np.testing.assert_allclose(log_normaliser(LOGITS), expected, rtol=1e-6)


def test_ranks_count_strictly_better_tokens() -> None:
    logprobs, ranks = score_rows(np.repeat(LOGITS[:1], 5, 0), np.arange(5))
    assert ranks.tolist() == [3, 2, 0, 0, 4]
    assert np.exp(logprobs).sum() == pytest.approx(1, abs=1e-6)


def test_a_sure_token_is_not_above_one() -> None:
    row = np.full((1, 6000), -3.0, np.float32)
    row[0, 7] = 40.1
    assert score_rows(row, np.array([7]))[0] == [0.0]
    assert top_rows(row, 1)[1].tolist() == [[0.0]]


def test_top_is_sorted_and_ties_go_by_id() -> None:
    ids, logprobs = top_rows(LOGITS, 3)
    assert ids.tolist() == [[2, 3, 1], [0, 1, 4]]
    assert (np.diff(logprobs) <= 0).all()
    assert top_rows(LOGITS, 99)[0].shape == (2, 5)


def test_sampling_follows_the_distribution() -> None:
    row = np.log(np.array([0.5, 0.3, 0.2, 1e-30], np.float32))
    generator = np.random.default_rng(0)
    n = 5_000
    drawn = np.bincount([sample(row, 1.0, generator) for _ in range(n)], minlength=4) / n
    # Five standard errors of a proportion at most 0.5.
    np.testing.assert_allclose(drawn, [0.5, 0.3, 0.2, 0], atol=5 * (0.25 / n) ** 0.5)
    squared = np.bincount([sample(row, 0.5, generator) for _ in range(n)], minlength=4) / n
    expected = np.array([0.25, 0.09, 0.04, 0]) / 0.38
    np.testing.assert_allclose(squared, expected, atol=5 * (0.25 / n) ** 0.5)
    assert sample(row, 0.0, generator) == 0


def test_scoring_in_parts_equals_scoring_at_once() -> None:
    random = np.random.default_rng(0)
    logits = random.standard_normal((700, 30)).astype(np.float32)
    ids = random.integers(0, 30, 700)
    logprobs, ranks, tokens = score_tokens(lambda part: logits[part], ids, 2, str)
    whole = score_rows(logits, ids)
    np.testing.assert_array_equal(logprobs, whole[0])
    np.testing.assert_array_equal(ranks, whole[1])
    assert [token.token for token in tokens] == [str(i) for i in ids.tolist()]
    assert score_tokens(lambda part: logits[part], ids, 0, str)[2] == ()


def _decode(script: str, **options: object) -> Decoding:
    """Letters are the tokens; each row makes the next letter of ``script`` the argmax."""
    vocabulary = TokenVocabulary(
        lambda token: chr(token + 96), lambda ids: "".join(chr(i + 96) for i in ids), frozenset({0})
    )
    settings: dict[str, object] = {
        "prompt_tokens": 3, "room": 99, "temperature": 0.0, "top": 0, "stop": (), "seed": 0,
    }  # fmt: skip
    decoding = Decoding(vocabulary, **(settings | options))  # type: ignore[arg-type]
    for letter in script:
        row = np.zeros(27, np.float32)
        row[ord(letter) - 96] = 9
        decoding.push(row[None])
        if decoding.finish_reason:
            break
    return decoding


def test_decoding_ends_at_the_end_token() -> None:
    result = _decode("abc`def").result()
    assert (result.text, result.finish_reason, result.completion_tokens) == ("abc", "stop", 4)
    assert len(result.tokens) == 3


def test_decoding_ends_at_the_first_stop_string() -> None:
    result = _decode("abcdef", stop=("de", "cd", "")).result()
    assert (result.text, result.finish_reason, result.completion_tokens) == ("ab", "stop", 4)
    assert "".join(token.token for token in result.tokens) == "ab"


def test_decoding_ends_when_there_is_no_more_room() -> None:
    result = _decode("abcdef", room=4).result()
    assert (result.text, result.finish_reason, result.completion_tokens) == ("abcd", "length", 4)


@pytest.mark.parametrize(
    ("guessed", "chosen"),
    [("", "a"), ("a", "ab"), ("x", "a"), ("ab", "abc"), ("ax", "ab"), ("abcde", "abcd")],
)
def test_guesses_go_as_far_as_they_are_right(guessed: str, chosen: str) -> None:
    """The model says ``abcd`` and ends; a row behind a wrong guess counts for nothing."""
    decoding, script = _decode(""), "abcd`zzz"
    rows = np.zeros((len(guessed) + 1, 27), np.float32)
    for row, letter in zip(rows, script, strict=False):
        row[ord(letter) - 96] = 9
    found = decoding.push(rows, [ord(letter) - 96 for letter in guessed])
    assert "".join(chr(token + 96) for token in found) == chosen
    assert decoding.result().text == chosen
    assert (decoding.finish_reason == "stop") == (guessed == "abcde")


def test_guesses_end_where_the_answer_does() -> None:
    rows = 9 * np.eye(27, dtype=np.float32)[[1, 2, 3, 4, 5]]
    for options, text in (({"room": 3}, "abc"), ({"stop": ("d",)}, "abc")):
        decoding = _decode("", **options)
        decoding.push(rows, [1, 2, 3, 4])
        assert decoding.finish_reason
        assert decoding.result().text == text


@pytest.mark.parametrize(
    ("stop", "text", "pieces"),
    [
        ((), "né→😀 x\ufffd", ["n", "", "é", "", "→", "😀", " x", "\ufffd"]),
        (("😀",), "né→", ["n", "", "é", "", "→"]),
        (("→",), "né", ["n", "", "é"]),
    ],
)  # fmt: skip
def test_tokens_of_split_characters_join_to_the_answer(
    stop: tuple[str, ...], text: str, pieces: list[str]
) -> None:
    split = [b"n", b"\xc3", b"\xa9", b"\xe2\x86", b"\x92\xf0\x9f", b"\x98\x80", b" x", b"\xe2\x86"]
    data = [b"", *split]
    vocabulary = TokenVocabulary(
        lambda token: data[token].decode("utf-8", "replace"),
        lambda ids: b"".join(data[i] for i in ids).decode("utf-8", "replace"),
        frozenset({0}),
    )
    decoding = Decoding(
        vocabulary, prompt_tokens=1, room=99, temperature=0, top=1, stop=stop, seed=None
    )
    for token in [*range(1, len(data)), 0]:
        decoding.push(9 * np.eye(len(data), dtype=np.float32)[[token]])
        if decoding.finish_reason:
            break
    result = decoding.result()
    assert result.text == text
    assert [token.token for token in result.tokens] == pieces


def test_a_stop_string_may_end_inside_a_token() -> None:
    vocabulary = TokenVocabulary(
        lambda token: ["", "ab", "cxd"][token],
        lambda ids: "".join(["", "ab", "cxd"][i] for i in ids),
        frozenset({0}),
    )
    decoding = Decoding(
        vocabulary, prompt_tokens=1, room=9, temperature=0, top=0, stop=["x"], seed=None
    )
    decoding.push(np.array([[0, 5, 0]], np.float32))
    assert decoding.finish_reason is None
    decoding.push(np.array([[0, 0, 5]], np.float32))
    assert decoding.finish_reason == "stop"
    result = decoding.result()
    assert result.text == "abc"
    assert [token.token for token in result.tokens] == ["ab", "c"]
