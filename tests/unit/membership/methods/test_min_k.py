"""Min-K% and Min-K%++ on what a target says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Query, Score, TokenLogprob
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.min_k import (
    MinK,
    MinKConfig,
    document_tokens,
    least,
    log_probabilities,
)
from ragwitness.membership.response_parsing.replies import halve
from tests.support.copier import Copier

_TEXT = (
    "The ferry to Marrowdale leaves at nine and the captain Quillington keeps a brown dog"
    " called Tamarind that barks at every lighthouse between Oxcombe and the outer islands."
)


def _audit(**options) -> MinK:
    return MinK(Copier(), MinKConfig(**options))


def _ask(audit: MinK, answer: Answer, text: str = _TEXT) -> tuple[list[Query], Score]:
    probe = audit.probe(Document("d", text))
    queries: list[Query] = []
    try:
        queries = next(probe)
        probe.send([answer] * len(queries))
    except StopIteration as stop:
        return queries, stop.value
    raise AssertionError("one batch was expected")


def _said(*pairs: tuple[str, float]) -> Answer:
    """Tokens with their probability; half of the rest is listed as "other"."""
    tokens = tuple(
        TokenLogprob(
            word, math.log(p), ((word, math.log(p)), ("other", math.log((1 - p) / 2 + 1e-9)))
        )
        for word, p in pairs
    )
    return Answer("".join(word for word, _ in pairs), tokens, "stop")


def _plain(**options) -> MinK:
    """What the answer says is read, whatever it is."""
    return _audit(reads="answer", **options)


_TEN = [(f" w{i}", p) for i, p in enumerate([0.9, 0.1, 0.8, 0.3, 0.99, 0.7, 0.6, 0.95, 0.5, 0.85])]


def test_one_query_with_the_first_half() -> None:
    (query,), _ = _ask(_audit(), _said(*_TEN))
    asked = query.prompt.split("\n\n", 1)[1]
    assert _TEXT.startswith(asked)
    assert len(asked.split()) == len(_TEXT.split()) // 2
    assert query.top_logprobs == 20


def test_min_k_is_the_mean_of_the_least_probable() -> None:
    _, score = _ask(_plain(k=20), _said(*_TEN))
    assert score.value == pytest.approx((math.log(0.1) + math.log(0.3)) / 2)
    assert score.details["score/min-k"] == score.value
    assert score.details["score/sum"] == pytest.approx(math.log(0.1) + math.log(0.3))
    assert score.details["score/mean"] == pytest.approx(
        sum(math.log(p) for _, p in _TEN) / len(_TEN)
    )
    assert score.details["tokens"] == 10


def test_impossible_log_probabilities_count_as_their_bounds() -> None:
    tokens = [TokenLogprob(" a", -9999.0), TokenLogprob(" b", 0.2), TokenLogprob(" c", -1.5)]
    assert log_probabilities(tokens).tolist() == [-20.0, 0.0, -1.5]


@pytest.mark.parametrize(("n", "k", "count"), [(10, 20, 2), (9, 20, 1), (3, 20, 1), (7, 100, 7)])
def test_at_least_one_token_is_read(n: int, k: float, count: int) -> None:
    values = np.random.default_rng(0).normal(size=n)
    assert values[least(values, k)].tolist() == sorted(values)[:count]


def test_a_target_that_reads_the_document_scores_above_one_that_invents() -> None:
    words = _TEXT.split()[14:]
    sure = _said(*((f" {word}", 0.95) for word in words))
    inventing = _said(*((f" {w}", 0.9 if i % 3 else 0.15) for i, w in enumerate(words)))
    for audit in (_audit(), _plain()):
        _, member = _ask(audit, sure)
        _, other = _ask(audit, inventing)
        assert member.value > other.value


@pytest.mark.parametrize(
    "opening", ["", "Here is the completed paragraph:\n\n{first} ", "{first} "]
)
def test_the_documents_words_are_read_wherever_the_answer_begins(opening) -> None:
    audit, words = _audit(), _TEXT.split()
    first = opening.format(first=" ".join(words[:14]))

    def says(rest: list[str], p: float) -> Score:
        told = f"{first}{' '.join(rest)}".split(" ")
        return _ask(audit, _said(*((f" {word}", p) for word in told)))[1]

    known, invents = says(words[14:], 0.9), says("we all went home by train today".split(), 0.99)
    assert invents.value < known.value
    declines = says("I don't know the answer to that.".split(), 0.999)
    assert declines.value < invents.value
    assert declines.details["declined"] == 1
    for score in (known, invents, declines):
        assert math.isfinite(score.value)


def test_where_an_answer_leaves_the_document_the_true_word_is_read() -> None:
    halves = halve(_TEXT, 400, 8)
    gone = _said((f" {halves.second.split()[0]}", 0.9), (" altogether", 0.7), (" different", 0.6))
    read = document_tokens(halves, gone.tokens)
    assert [token.token.strip() for token in read] == halves.second.split()[:2]
    assert read[0].logprob == pytest.approx(math.log(0.9))
    assert read[1].logprob == pytest.approx(math.log(0.15), abs=1e-6)  # less than what was listed


def test_an_answer_that_leaves_the_first_half_is_the_lowest_and_a_cut_one_is_asked_again() -> None:
    words = _TEXT.split()
    left = _said(*((f" {w}", 0.99) for w in [*words[:9], *"we all went home by train".split()]))
    assert _ask(_audit(), left)[1].value < -20
    probe = _audit().probe(Document("d", _TEXT))
    (query,) = next(probe)
    cut = _said(*((f" {w}", 0.99) for w in words[:9]))
    (longer,) = probe.send([Answer(cut.text, cut.tokens, "length")])
    assert longer.max_tokens > query.max_tokens + 14


def test_unknown_probabilities_are_counted_and_left_out() -> None:
    answer = _said(*_TEN)
    spoilt = Answer(answer.text, (TokenLogprob("", math.nan), *answer.tokens), "stop")
    _, whole = _ask(_plain(), answer)
    _, score = _ask(_plain(), spoilt)
    assert score.value == whole.value
    assert score.details["unread"] == 1


@pytest.mark.parametrize(
    ("answer", "reason", "outcome"),
    [
        (Answer("text"), "no log-probabilities", "failed"),
        (Answer("", ()), "nothing", "failed"),
        (Answer("<html>502</html>", _said(*_TEN).tokens), "web page", "failed"),
        (Answer("", error="lost"), "lost", "failed"),
        (Answer("other words", _said(*_TEN).tokens), "do not spell", "failed"),
        (_said((" one", 0.5), (" two", 0.5)), "tokens; 3 are needed", "answered"),
    ],
)
def test_answers_without_evidence_are_reasons(answer, reason, outcome) -> None:
    _, score = _ask(_audit(), answer)
    assert score.value is None
    assert reason in score.reason
    assert score.details[outcome] == 1.0


@pytest.mark.parametrize("text", ["", "one", "... --- !!! ,,, ;;; ::: ??? ///"])
def test_too_short_costs_no_query(text: str) -> None:
    queries, score = _ask(_audit(), _said(*_TEN), text)
    assert (queries, score.value) == ([], None)
    assert "cut in half" in score.reason


def test_long_repeated_and_unspaced_documents() -> None:
    (query,), score = _ask(_audit(max_words=50), _said(*_TEN), "word " * 2000)
    assert query.prompt.split("\n\n", 1)[1].split() == ["word"] * 25
    assert score.details["cut"] == 1950
    text = "私の猫は毎朝六時に起きて庭の魚を見ます"
    _, score = _ask(_audit(), _said(("庭", 0.5), ("の", 0.9), ("魚", 0.2)), text)
    assert score.value == pytest.approx(math.log(0.2))


def test_names_and_requirements() -> None:
    assert _audit().name == "min-k"
    assert _audit().requires == {Capability.TOP_LOGPROBS}
    assert _audit().describe()["tokens read"] == "least probable 20 %"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reads": "all"}, "reads"),
        ({"k": 0}, "percentage"),
        ({"k": 101}, "percentage"),
        ({"prompt": "Go on."}, "prefix"),
        ({"min_words": 1}, "min_words"),
        ({"max_words": 3}, "max_words"),
        ({"min_tokens": 0}, "min_tokens"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        MinKConfig(**options)


def test_the_preset_sums_as_the_baseline_of_mba_does() -> None:
    answer = _said(*((f" w{i}", 0.9) for i in range(8)), (" rare", 0.01), (" odd", 0.02))
    mean = _ask(_plain(k=20.0), answer)[1].value
    published = _ask(MinK(Copier(), configure("min-k:paper")), answer)[1].value
    assert mean == pytest.approx(math.log(0.01 * 0.02) / 2)
    assert published == pytest.approx(math.log(0.01 * 0.02))


def test_the_preset_reads_a_refusal_like_any_other_answer() -> None:
    refusal = _said(*((f" {word}", 0.5) for word in "I'm sorry, but I cannot help".split()))
    assert _ask(_audit(), refusal)[1].value < -20
    assert _ask(MinK(Copier(), configure("min-k:paper")), refusal)[1].value == math.log(0.5)
