"""The MBA generator: what it asks, what it makes of answers, and whether it tells members."""

import re
from dataclasses import replace

import pytest

from ragwitness.core.types import Answer, Capability, Document, Score
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.mba.audit import Mba
from ragwitness.membership.methods.mba.masks import MbaConfig
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier

_TEXT = (
    "The ferry to Marrowdale leaves at nine and the captain Quillington keeps a brown dog"
    " called Tamarind that barks at every lighthouse between Oxcombe and the outer islands."
)


def _audit(**options) -> Mba:
    return Mba(Copier(), MbaConfig(**{"spelling": "none", **options}))


def _query(audit: Mba, text: str = _TEXT):
    probe = audit.probe(Document("d", text))
    (query,) = next(probe)
    return probe, query


def _finish(probe, answer) -> Score:
    with pytest.raises(StopIteration) as stop:
        probe.send([answer])
    return stop.value.value


def _masked(prompt: str) -> str:
    return prompt.split("\n\n")[1]


def _fill(prompt: str, database: list[str]) -> Answer:
    """A target: finds the stored text that the masked one was made from, else guesses."""
    masked = _masked(prompt)
    labels = re.findall(r"\[Mask_\d+\]", masked)
    pattern = re.escape(masked)
    for label in labels:
        pattern = pattern.replace(re.escape(label), r"(\S+?)")
    for stored in database:
        found = re.search(pattern, stored)
        if found:
            pairs = zip(labels, found.groups(), strict=True)
            return Answer("\n".join(f"{label}: {word}" for label, word in pairs))
    return Answer("\n".join(f"{label}: time" for label in labels))


def test_one_query_with_the_masked_document() -> None:
    _, query = _query(_audit())
    assert query.prompt.startswith("Predict the answers of the masks in the given texts:")
    masked = _masked(query.prompt)
    assert "[Mask_1]" in masked
    assert masked.startswith("The ferry to Marrowdale leaves")
    assert masked != _TEXT
    assert query.temperature == 0.0
    assert query.top_logprobs == 0
    assert query.max_tokens > 16 * masked.count("[Mask_")


def test_a_target_that_holds_the_document_scores_higher() -> None:
    audit = _audit()
    probe, query = _query(audit)
    inside = _finish(probe, _fill(query.prompt, [_TEXT]))
    outside = _finish(_query(audit)[0], _fill(query.prompt, []))
    assert inside.value == 1.0
    assert outside.value == 0.0
    assert inside.details["score/weighted"] > 0.0 > outside.details["score/weighted"]


def test_members_of_a_database_are_told_from_the_rest() -> None:
    documents = load_sample()[:16]
    stored = [document.text for document in documents[:8]]
    audit = Mba(Copier())
    scores = {}
    for document in documents:
        probe = audit.probe(document)
        (query,) = next(probe)
        scores[document.id] = _finish(probe, _fill(query.prompt, stored))
    inside = [scores[d.id] for d in documents[:8]]
    outside = [scores[d.id] for d in documents[8:]]
    assert min(s.value for s in inside) > max(s.value for s in outside)
    weighted = "score/weighted"
    assert min(s.details[weighted] for s in inside) > max(s.details[weighted] for s in outside)


@pytest.mark.parametrize(
    ("answer", "name", "reason"),
    [
        (Answer("", error="the server closed the connection"), "failed", "closed"),
        (Answer("  "), "failed", "nothing"),
        (Answer("", finish_reason="content_filter"), "failed", "filter"),
        (Answer("A ferry goes somewhere and a dog barks at things."), "not_read", "read"),
        (Answer("[Mask_77]: ferry"), "not_read", "read"),
        (Answer("<html><body>502 Bad Gateway</body></html>"), "failed", "web page"),
        (Answer("<think>[Mask_1]: ferry"), "failed", "thought"),
    ],
)
def test_an_answer_without_evidence_is_a_reason_not_a_zero(answer, name, reason) -> None:
    score = _finish(_query(_audit())[0], answer)
    assert score.value is None
    assert reason in score.reason
    counted = ("failed", "not_read", "declined", "answered")
    assert {key for key in counted if key in score.details} == {name}


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot fill in [Mask_1]: it is not mine.",
        "I don't know.",
        "No lo s\u00e9.",
        "<think>Hm.</think>I don't know.",
    ],
)
def test_a_decline_fills_no_mask_and_is_the_lowest_answer(said: str) -> None:
    score = _finish(_query(_audit())[0], Answer(said))
    assert (score.value, score.details["declined"], score.details["hits"]) == (0.0, 1.0, 0.0)


def test_an_answer_without_room_for_all_masks_is_asked_again() -> None:
    audit = _audit()
    probe, query = _query(audit)
    masked = _masked(query.prompt)
    cut = Answer(f"Let me fill it in.\n\n{masked[:90]}", finish_reason="length")
    (longer,) = probe.send([cut])
    assert longer.prompt == query.prompt
    assert longer.max_tokens > query.max_tokens + audit.proxy.count_tokens(masked)
    assert _finish(probe, Answer(_TEXT)).value == 1.0  # the text, its masks filled
    published = Mba(Copier(), replace(configure("mba:paper"), spelling="none"))
    assert _finish(_query(published)[0], cut).value == 0.0


def test_an_excuse_before_the_answers_is_no_refusal() -> None:
    probe, query = _query(_audit())
    filled = _fill(query.prompt, [_TEXT])
    score = _finish(probe, Answer("Sorry, here are my best guesses:\n" + filled.text))
    assert score.value == 1.0
    assert score.details["answered"] == 1.0


@pytest.mark.parametrize("said", ["I'm sorry, but I cannot help with that.", "", "Quite so."])
def test_the_preset_scores_an_answer_that_fills_no_mask_as_none_filled(said: str) -> None:
    published = replace(configure("mba:paper"), spelling="none")
    ours = None if said in ("", "Quite so.") else 0.0
    for config, value in ((published, 0.0), (replace(published, refusals="lowest"), ours)):
        probe, _ = _query(Mba(Copier(), config))
        assert _finish(probe, Answer(said)).value == value
    probe, _ = _query(Mba(Copier(), published))
    assert _finish(probe, Answer("", error="no connection")).value is None


@pytest.mark.parametrize(("share", "outcome"), [(0.25, "declined"), (0.5, "answered")])
def test_an_excuse_with_answers_to_at_least_half_of_the_masks_is_an_answer(share, outcome) -> None:
    probe, query = _query(_audit(masks=4))
    lines = _fill(query.prompt, [_TEXT]).text.splitlines()
    assert len(lines) == 4
    filled = "\n".join(lines[: int(4 * share)])
    score = _finish(probe, Answer(f"I'm sorry, I cannot help with that.\n{filled}"))
    assert score.details[outcome] == 1.0
    assert score.value == (share if outcome == "answered" else 0.0)


def test_answers_to_some_masks_are_misses_for_the_others() -> None:
    probe, query = _query(_audit())
    lines = _fill(query.prompt, [_TEXT]).text.splitlines()
    score = _finish(probe, Answer("\n".join(lines[:2])))
    assert score.value == pytest.approx(2 / len(lines))
    assert score.details["missing"] == len(lines) - 2


def test_wrong_numbers_and_repetitions_change_nothing() -> None:
    probe, query = _query(_audit())
    text = _fill(query.prompt, [_TEXT]).text
    score = _finish(probe, Answer(f"{text}\n[Mask_1]: again\n[Mask_99]: more"))
    assert score.value == 1.0


@pytest.mark.parametrize(
    "text",
    ["", "word", "two words", "... --- !!! ,,, ;;;", "the of and to a in on at by for with",
     "[Mask_1] is a thing that this text talks about in its own words at length"],
)  # fmt: skip
def test_what_cannot_be_masked_is_unscorable_without_a_query(text: str) -> None:
    with pytest.raises(StopIteration) as stop:
        next(_audit().probe(Document("d", text)))
    assert stop.value.value.value is None
    assert stop.value.value.reason


def test_a_long_document_is_cut_and_says_so() -> None:
    audit = _audit()
    text = " ".join(f"{_TEXT} Number {i}." for i in range(40))
    probe, query = _query(audit, text)
    assert len(_masked(query.prompt)) < 2048 + 10 * len("[Mask_10]")
    assert _finish(probe, _fill(query.prompt, [text])).details["cut"] == 1.0


def test_a_document_may_hold_the_template_s_slot() -> None:
    text = _TEXT + " It said {masked_document} and {document} on the bow of the old steamboat."
    _, query = _query(_audit(), text)
    assert query.prompt.count("The ferry to Marrowdale leaves") == 1


def test_the_name_says_what_differs_from_the_paper() -> None:
    assert Mba(Copier()).name == "mba"
    assert _audit().name == "mba (no spelling)"
    assert _audit(source="random").name == "mba (random)"
    assert _audit(source="proxy-only").name == "mba (proxy-only)"
    assert Mba.requires == frozenset({Capability.TEXT})


@pytest.mark.parametrize("source", ["proxy", "proxy-only", "random"])
def test_probing_twice_asks_the_same(source) -> None:
    assert _query(_audit(source=source))[1] == _query(_audit(source=source))[1]
