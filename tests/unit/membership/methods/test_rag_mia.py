"""RAG-MIA: what it asks, how yes and no are read, and what is never taken for either."""

from __future__ import annotations

import math

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Query, Score, TokenLogprob
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.rag_mia import TEMPLATES, RagMia, RagMiaConfig
from ragwitness.text.words import cut_characters
from tests.support.copier import Copier

_TEXT = "The ferry to Marrowdale leaves at nine and the captain keeps a brown dog called Tamarind."
_OTHER = "A violin maker from Oxcombe found seven silver coins beneath the floor of his workshop."


def _audit(**options) -> RagMia:
    return RagMia(Copier(), RagMiaConfig(**options))


def _ask(audit: RagMia, answer, text: str = _TEXT) -> tuple[list[Query], Score]:
    """Run a probe against an answer, or a function that answers."""
    probe = audit.probe(Document("d", text))
    try:
        queries = next(probe)
        reply = answer if isinstance(answer, Answer) else None
        probe.send([reply or answer(query) for query in queries])
    except StopIteration as stop:
        return locals().get("queries", []), stop.value
    raise AssertionError("one batch was expected")


def _token(chosen: str, p: float, **others: float) -> TokenLogprob:
    top = sorted({chosen: p, **others}.items(), key=lambda item: -item[1])
    return TokenLogprob(chosen, math.log(p), tuple((t, math.log(v)) for t, v in top))


def _said(*tokens: TokenLogprob) -> Answer:
    return Answer("".join(t.token for t in tokens).strip(), tokens, "stop")


def test_one_query_holds_the_document_in_the_papers_words() -> None:
    queries, _ = _ask(_audit(), Answer("Yes"))
    (query,) = queries
    assert query.prompt == (
        f"Does this: \u201c{_TEXT}\u201d appear in the context? Answer with Yes or No."
    )
    assert query.top_logprobs == 0


@pytest.mark.parametrize("template", range(5))
def test_every_template_holds_the_document_once(template: int) -> None:
    (query,), _ = _ask(_audit(template=template), Answer("Yes"))
    assert query.prompt.count(_TEXT) == 1
    assert "{s}" not in query.prompt


def test_a_document_with_a_placeholder_in_it_is_asked_about_as_it_stands() -> None:
    text = f"{{s}} {_TEXT} {{doc}}"
    (query,), _ = _ask(_audit(), Answer("Yes"), text)
    assert query.prompt == TEMPLATES[2].replace("{s}", text)


@pytest.mark.parametrize(
    ("said", "value", "outcome"),
    [("Yes", 1.0, "yes"), ("yes, it does", 1.0, "yes"), ("**No**", 0.0, "no"), ("NO.", 0.0, "no")],
)
def test_yes_is_one_and_no_is_zero(said: str, value: float, outcome: str) -> None:
    _, score = _ask(_audit(), Answer(said))
    assert score.value == value
    assert score.details["score/published"] == value
    assert score.details[outcome] == 1.0
    assert score.evidence[0].word == "Yes"
    assert score.evidence[0].probability.low == value


@pytest.mark.parametrize(
    ("answer", "reason", "outcome", "published"),
    [
        (Answer("Perhaps it appears somewhere"), "neither yes nor no", "not_read", 0.0),
        (Answer("Yes and no"), "neither yes nor no", "not_read", 0.0),
        (Answer("It may be yes or no"), "neither yes nor no", "not_read", 0.0),
        (Answer("The patient has no fever."), "neither yes nor no", "not_read", 0.0),
        (Answer("", finish_reason="content_filter"), "filter", "failed", 0.0),
        (Answer("  \n"), "with nothing", "failed", 0.0),
        (Answer("<!DOCTYPE html><p>No server</p>"), "web page", "failed", 0.0),
        (Answer("[Mask_1]: nine"), "neither yes nor no", "not_read", 0.0),
        (Answer("<think>hm", finish_reason="stop"), "thought until", "failed", 0.0),
        (Answer("", error="timed out"), "timed out", "failed", None),
    ],
)
def test_what_is_neither_is_unscorable_here_and_a_non_member_in_the_paper(
    answer, reason, outcome, published
) -> None:
    _, score = _ask(_audit(), answer)
    assert (score.value is None) == (reason is not None)
    assert reason is None or reason in score.reason
    assert score.details[outcome] == 1.0
    assert score.details.get("score/published") == published


@pytest.mark.parametrize("text", ["", "word", "... --- !!! ,,, ;;; ::: ??? ///"])
def test_too_little_to_ask_about_costs_no_query(text: str) -> None:
    queries, score = _ask(_audit(), Answer("Yes"), text)
    assert queries == []
    assert score.value is None
    assert "fewer than 8 words" in score.reason


def test_text_without_spaces_counts_by_character() -> None:
    queries, score = _ask(_audit(), Answer("Yes"), "私の猫は毎朝六時に起きて庭の魚を見ます")
    assert len(queries) == 1
    assert score.value == 1.0


def test_a_long_text_is_cut_at_a_word_and_the_cut_is_counted() -> None:
    text = " ".join(f"word{i:04d}" for i in range(300))
    (query,), score = _ask(_audit(), Answer("No"), text)
    kept = query.prompt.split("\u201c")[1].split("\u201d")[0]
    assert text.startswith(kept + " ")
    assert len(kept) <= 1000 < len(kept) + 9
    assert score.details["cut"] == 300 - len(kept.split())


def test_one_endless_word_is_cut_itself() -> None:
    assert cut_characters("x" * 50, 20) == ("x" * 20, 1)
    assert cut_characters("one two", 20) == ("one two", 0)
    assert cut_characters("one two three", 7) == ("one two", 1)


def test_gray_value_is_the_log_odds_of_yes_summed_over_its_spellings() -> None:
    answer = _said(_token("Yes", 0.5, **{" yes": 0.2, "No": 0.1, "no": 0.05, "Maybe": 0.01}))
    (query,), score = _ask(_audit(access="gray"), answer)
    assert query.top_logprobs == 20
    assert score.value == pytest.approx(math.log(0.5 + 0.2) - math.log(0.1 + 0.05))
    assert score.details["score/gray"] == score.value
    assert score.details["score/text"] == 1.0


def test_a_word_missing_from_the_list_stands_at_the_lists_end() -> None:
    answer = _said(_token("Yes", 0.9, Maybe=0.02, It=0.01))
    _, score = _ask(_audit(access="gray"), answer)
    assert score.value == pytest.approx(math.log(0.9) - math.log(0.01))
    alone = _said(TokenLogprob("No", math.log(0.8)))
    _, score = _ask(_audit(access="gray"), alone)
    assert score.value == pytest.approx(math.log(0.2) - math.log(0.8))


def test_blank_and_quoting_tokens_before_the_word_are_passed_over() -> None:
    answer = _said(_token("\n", 0.99), _token('"', 0.9), _token("No", 0.6, Yes=0.3))
    _, score = _ask(_audit(access="gray"), answer)
    assert score.value == pytest.approx(math.log(0.3 / 0.6), abs=0.2)
    assert score.value < 0


def test_a_word_further_on_is_read_where_it_stands() -> None:
    answer = _said(
        _token("The", 0.9, A=0.05), _token(" answer is", 0.9), _token(" no", 0.7, **{" yes": 0.2})
    )
    _, score = _ask(_audit(access="gray"), answer)
    assert score.value == pytest.approx(math.log(0.2 / 0.7))


@pytest.mark.parametrize(
    ("answer", "reason", "outcome", "published"),
    [
        (Answer("Yes"), "no log-probabilities", "yes", 1.0),
        (Answer("Perhaps"), "neither yes nor no", "not_read", 0.0),
        (_said(_token("Perhaps", 0.9, Maybe=0.05)), "neither yes nor no", "not_read", 0.0),
        (Answer("Yes", (_token("Hello", 0.9),)), "do not spell", "yes", 1.0),
        (Answer("Yes", (TokenLogprob("Yes", math.nan),)), "neither Yes nor No", "yes", 1.0),
        (Answer(""), "with nothing", "failed", 0.0),
        (Answer("", error="lost"), "lost", "failed", None),
    ],
)
def test_gray_answers_without_odds_are_unscorable(answer, reason, outcome, published) -> None:
    _, score = _ask(_audit(access="gray"), answer)
    assert score.value is None
    assert reason in score.reason
    assert score.details[outcome] == 1.0
    assert score.details.get("score/published") == published


def test_an_impossible_no_stays_finite() -> None:
    answer = _said(TokenLogprob("Yes", 0.0, (("Yes", 0.0), ("No", -9999.0))))
    _, score = _ask(_audit(access="gray"), answer)
    assert 10 < score.value < 50


@pytest.mark.parametrize("access", ["text", "gray"])
@pytest.mark.parametrize(
    "said",
    ["I don't know.", "I'm sorry, I can't help with that.", "Unsure", "Ich weiß es nicht."],
)
def test_a_decline_is_the_lowest_answer(said: str, access: str) -> None:
    names = said.split(" ")
    answer = _said(_token(names[0], 0.9), *(_token(f" {name}", 0.9) for name in names[1:]))
    _, score = _ask(_audit(access=access), answer)
    assert score.details["declined"] == 1.0
    assert score.details["score/published"] == 0.0
    no = _ask(_audit(access=access), _said(_token("No", 0.999, Yes=0.0001)))[1]
    assert -50 < score.value <= no.value


def test_a_sentence_says_yes_or_no_for_certain_and_a_word_of_any_language_has_odds() -> None:
    def odds(*tokens: TokenLogprob) -> float:
        return _ask(_audit(access="gray"), _said(*tokens))[1].value

    there = [_token(" text", 0.9), _token(" appears", 0.9), _token(" in the context.", 0.9)]
    assert odds(_token("The", 0.9), *there) > 15
    assert odds(_token("The", 0.9), there[0], _token(" does not appear.", 0.9)) < -15
    assert odds(_token("Ja", 0.6, Nein=0.2)) == pytest.approx(math.log(0.6 / 0.2))
    assert odds(_token("\u0120No", 0.6, ĠYes=0.3)) == pytest.approx(math.log(0.3 / 0.6))


def test_an_answer_without_room_is_asked_again_but_not_as_published() -> None:
    cut = Answer("Based on the context that was provided to me, the", finish_reason="length")
    for method, again in (("rag-mia", True), ("rag-mia:paper", False)):
        probe = RagMia(Copier(), configure(method)).probe(Document("d", _TEXT))
        (query,) = next(probe)
        if not again:
            with pytest.raises(StopIteration) as stop:
                probe.send([cut])
            assert stop.value.value.value == 0.0
            continue
        (longer,) = probe.send([cut])
        assert longer.max_tokens > query.max_tokens + 40
        with pytest.raises(StopIteration) as stop:
            probe.send([Answer("Based on the context that was provided to me, the answer is Yes.")])
        assert stop.value.value.value == 1.0


def test_requirements_follow_the_access() -> None:
    assert _audit().requires == {Capability.TEXT}
    assert _audit(access="gray").requires == {Capability.TOP_LOGPROBS}
    assert _audit().name == "rag-mia"
    assert set(_audit().describe()) == {"question", "read", "longest text"}


@pytest.mark.parametrize("access", ["text", "gray"])
def test_a_member_scores_above_a_non_member(access: str) -> None:
    def target(query: Query) -> Answer:
        inside = _TEXT in query.prompt
        return _said(_token("Yes", 0.8, No=0.1) if inside else _token("No", 0.7, Yes=0.2))

    member, other = (_ask(_audit(access=access), target, text)[1] for text in (_TEXT, _OTHER))
    assert member.value > other.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template": 5}, "template"),
        ({"template": -1}, "template"),
        ({"access": "white"}, "access"),
        ({"max_chars": 0}, "max_chars"),
        ({"min_words": 0}, "min_words"),
        ({"top_logprobs": 0}, "top_logprobs"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        RagMiaConfig(**options)


@pytest.mark.parametrize(("said", "value"), [("Yes.", 1.0), ("No.", 0.0), ("Perhaps.", 0.0)])
def test_the_preset_takes_what_is_not_yes_for_a_non_member(said: str, value: float) -> None:
    audit = RagMia(Copier(), configure("rag-mia:paper"))
    assert _ask(audit, Answer(said))[1].value == value
    assert audit.threshold == 0.5
