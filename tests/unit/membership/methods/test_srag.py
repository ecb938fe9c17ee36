"""The S-RAG generator: what it asks, and what it makes of answers good and bad."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document, Evidence, Interval, Score, TokenLogprob
from ragwitness.membership import shadow
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.srag import SRag, SRagConfig, said_odds, segment
from ragwitness.membership.plan import SHADOW_STAGES, AuditPlan, among
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.run import trained
from ragwitness.membership.windows import Elsewhere
from ragwitness.runner.score_store import audit_identity
from ragwitness.runner.worker import Outcome
from ragwitness.stats.evaluation import auc
from ragwitness.text.sample import load_sample
from ragwitness.text.words import core, split_words
from tests.support.copier import Copier

_TEXT = (
    "The ferry to Marrowdale leaves at nine and the captain Quillington keeps a brown dog"
    " called Tamarind that barks at every lighthouse between Oxcombe and the outer islands."
)


def _audit(**options) -> SRag:
    return SRag(Copier(), SRagConfig(**options))


def _queries(audit: SRag, text: str = _TEXT):
    probe = audit.probe(Document("d", text))
    return probe, next(probe)


def _finish(probe, answers) -> Score:
    with pytest.raises(StopIteration) as stop:
        probe.send(answers)
    return stop.value.value


def _said(text: str, p: float = 0.9) -> Answer:
    tokens = tuple(
        TokenLogprob(f" {w}", math.log(p), ((f" {w}", math.log(p)),)) for w in text.split()
    )
    return Answer(text, tokens, "stop")


def test_probing_sends_one_query_per_probe_word_with_all_before_it() -> None:
    _, queries = _queries(_audit(mode="probing"))
    assert len(queries) == len(_TEXT.split()[14:]) // 4
    for query in queries:
        assert query.prompt.startswith("Please focus only on the following rule")
        assert _TEXT.startswith(query.prompt.split("\n\n", 1)[1])
        assert query.top_logprobs == 20


def test_an_answer_that_knows_the_document_scores_higher() -> None:
    audit = _audit()
    known, _ = _asked_in_turn(audit, _next_words)
    unknown, _ = _asked_in_turn(audit, lambda _: _said("something else was said about the sea"))
    assert known.value > 10 > 0.1 > unknown.value
    assert known.details["unread"] == unknown.details["unread"] == 0


def test_a_target_that_repeats_what_it_was_sent_gets_room_to_go_on() -> None:
    probe, queries = _queries(_audit())
    cut = [
        replace(
            _said(" ".join(query.prompt.split("\n\n", 1)[1].split()[:8])), finish_reason="length"
        )
        for query in queries
    ]
    longer = probe.send(cut)
    assert [query.prompt for query in longer] == [query.prompt for query in queries]
    for one, again in zip(queries, longer, strict=True):
        assert again.max_tokens >= one.max_tokens + len(_TEXT.split()) // 2
    assert _finish(probe, [_said(_TEXT)] * len(longer)).details["unread"] == 0


def test_a_long_document_is_audited_passage_by_passage() -> None:
    _, whole = _queries(_audit(mode="probing"))
    _, parts = _queries(_audit(mode="probing", max_passage_words=16))
    assert len({query.prompt.split("\n\n", 1)[1].split()[0] for query in whole}) == 1
    assert len({query.prompt.split("\n\n", 1)[1].split()[0] for query in parts}) == 2


@pytest.mark.parametrize("text", ["two words", "", "一二三", "... --- !!! ,,, ;;; ::: ???"])
def test_what_cannot_be_probed_is_unscorable_without_a_query(text: str) -> None:
    probe = _audit().probe(Document("d", text))
    with pytest.raises(StopIteration) as stop:
        next(probe)
    assert stop.value.value.value is None
    assert stop.value.value.reason


def test_text_without_spaces_is_probed_by_character() -> None:
    text = "私の猫は毎朝六時に起きて庭の魚を見ます"
    _, queries = _queries(_audit(), text)
    assert text.startswith(queries[0].prompt.split("\n\n", 1)[1])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("", error="the server closed the connection"), "closed the connection"),
        (Answer("some text", None), "no log-probabilities"),
        (Answer("", ()), "with nothing"),
        (Answer("", None, finish_reason="content_filter"), "filter"),
        (Answer("<think>It goes", ()), "thought until"),
        (_said("<html><p>502</p>"), "web page"),
    ],
)
@pytest.mark.parametrize("mode", ["few", "probing"])
def test_an_answer_without_evidence_is_a_reason_not_a_zero(answer, reason, mode) -> None:
    score, _ = _asked_in_turn(_audit(mode=mode), lambda _: answer)
    if mode == "probing" and not answer.error and not answer.text.startswith("some"):
        assert score.details["unread"] == score.details["probes"]  # as published, not shown
        return
    assert score.value is None
    assert reason in score.reason


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but I can't help with that.",
        "I don't know.",
        "The context does not contain this paragraph.",
        "Ich weiß es nicht.",
    ],
)
def test_a_decline_is_an_answer_and_the_lowest_one(said: str) -> None:
    def value(answer) -> float:
        return _asked_in_turn(_audit(), lambda _: answer)[0].value

    lowest = value(_said(said))
    assert math.isfinite(lowest)
    assert lowest <= value(_said("somebody else went home by train", 0.999999))
    assert lowest < value(_said("somebody else went home by train", 0.9))
    assert lowest < _asked_in_turn(_audit(), _next_words)[0].value


def test_a_document_that_reads_like_a_refusal_is_not_taken_for_one() -> None:
    text = _TEXT.replace("keeps a brown dog", "is unable to sleep. I am unable to help him. I saw")
    audit = _audit(mode="probing", segment_factor=1)

    def goes_on(query) -> Answer:
        before = query.prompt.split("\n\n", 1)[1]
        return _said(" ".join(text.removeprefix(before).split()[:4]))

    score, asked = _asked_in_turn(audit, goes_on, text)
    assert len(asked) > 3
    assert all(one.probability.low > 0.5 for one in score.evidence)


_MANNERS = {
    "says the paragraph": "{before} {after}",
    "announces it": "Here is the completed paragraph:\n\n{before} {after}",
    "quotes it": '"{before} {after}"',
    "thinks": "<think>\n\n</think>\n\n{after}",
    "in bold": "**{after}**",
    "an ellipsis": "\u2026 {after}",
    "a bullet": "- {after}",
    "a label": "Answer: {after}",
    "JSON": '{{"answer": "{after}"}}',
    "a fence": "```\n{after}\n```",
    "the last sentence": "{last} {after}",
}


@pytest.mark.parametrize("manner", _MANNERS)
def test_a_word_is_read_wherever_the_answer_comes_to_it(manner: str) -> None:
    audit = _audit()

    def answers(text: str):
        def answer(query) -> Answer:
            before = query.prompt.split("\n\n", 1)[1]
            after = " ".join(text.removeprefix(before).split())
            last = " ".join(before.split()[-6:])
            said = _MANNERS[manner].format(before=before, after=after, last=last).split(" ")
            # Cut where the room ends; a word is a token here.
            cut = len(said) > query.max_tokens
            found = _said(" ".join(said[: query.max_tokens]))
            return replace(found, finish_reason="length" if cut else "stop")

        return answer

    held, asked = _asked_in_turn(audit, answers(_TEXT))
    assert all(one.probability.low > 0.5 for one in held.evidence)
    assert held.details["unread"] == 0
    other = _TEXT[: len(_TEXT) // 3] + " nobody there knew of anything at all, so they went home"
    assert held.value > _asked_in_turn(audit, answers(other))[0].value + 0.5
    twice = len(asked) > len(set(asked))
    repeats = manner in ("says the paragraph", "announces it", "quotes it", "the last sentence")
    assert twice is repeats


def test_an_echo_without_an_end_is_not_read_and_one_that_departs_is_low() -> None:
    audit = _audit()

    def cut(query) -> Answer:
        said = " ".join(query.prompt.split("\n\n", 1)[1].split()[:-2])
        return replace(_said(said), finish_reason="length")

    score, asked = _asked_in_turn(audit, cut)
    assert score.value is None
    assert "said the text again" in score.reason
    assert len(asked) == 2 * audit.config.turns

    def departs(query) -> Answer:
        said = query.prompt.split("\n\n", 1)[1].split()[:8]
        return _said(" ".join([*said, "and then we all went home by train together"]))

    score, _ = _asked_in_turn(audit, departs)
    assert score.details["unread"] == score.details["probes"] == 3
    assert -2 < score.value < 0.1  # nothing was shown


def test_words_of_many_tokens_make_shorter_passages() -> None:
    class Speller(Copier):
        context_length = 300

        def count_tokens(self, text: str) -> int:
            return len(text)

    audit = SRag(Speller(), SRagConfig())
    starts = [query.prompt.split("\n\n", 1)[1] for query in next(audit.probe(Document("d", _TEXT)))]
    assert any(not _TEXT.startswith(start) for start in starts)  # of a later passage
    with pytest.raises(StopIteration) as stop:
        next(audit.probe(Document("d", "x" * 400 + " " + " ".join("y" * 90 for _ in range(9)))))
    assert stop.value.value.value is None


def test_a_long_word_gets_the_tokens_it_needs() -> None:
    class Speller(Copier):
        def count_tokens(self, text: str) -> int:
            return len(text)

    probe = SRag(Speller(), SRagConfig(mode="probing")).probe(Document("d", _TEXT))
    lengths = {query.max_tokens for query in next(probe)}
    assert min(lengths) > 3


def test_a_few_failed_probes_leave_the_document_scorable() -> None:
    probe, queries = _queries(_audit(mode="probing", segment_factor=1))
    answers = [_said("the")] * len(queries)
    answers[0] = Answer("", error="lost")
    score = _finish(probe, answers)
    assert score.value is not None
    assert score.details["unread"] == 1


def test_published_features_are_counts() -> None:
    probe, queries = _queries(_audit(mode="probing"))
    score = _finish(probe, [_said("the")] * len(queries))
    assert len(score.features) == 10
    assert sum(score.features) == pytest.approx(len(queries))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "both"}, "mode"),
        ({"missing": 2.0}, "missing"),
        ({"segment_factor": 0}, "segment_factor"),
        ({"prompt": "Complete this."}, "prefix"),
        ({"max_passage_words": 0}, "max_passage_words"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        SRagConfig(**options)


def test_few_words_do_without_a_shadow_system() -> None:
    plain, learning = _audit(), _audit(mode="probing")
    assert (plain.learns, learning.learns) == (False, True)
    assert plain.describe()["features"] == "none: the score itself is ranked"
    assert learning.describe()["features"] == "counts, 10 intervals"
    plan = AuditPlan((Document("d", _TEXT),), known_out=(Document("e", "Quite another text."),))
    for audit, shadows in ((plain, 0), (learning, 200)):
        stages = PreparedAudit("http://x/v1", plan, "s-rag", audit.config).stages()
        assert sum(len(stages.documents.get(one, ())) for one in SHADOW_STAGES) == shadows


def test_the_preset_counts_what_is_not_shown_at_one_hundredth() -> None:
    audit = SRag(Copier(), configure("s-rag:paper", {"intervals": 100}))
    probe, queries = _queries(audit)
    # Three probe words: one said with .905, one missing from the list, one that was refused.
    assert len(queries) == 3
    words = [p.word.text for p in segment(_TEXT, audit.proxy, audit.config).probes]
    answers = [
        _said(words[0], 0.905),
        Answer("x", (TokenLogprob(" x", math.log(0.5), ((" x", math.log(0.5)),)),), "stop"),
        Answer("", (), "stop", error="the target did not answer"),
    ]
    score = _finish(probe, answers)
    counted = {j: n for j, n in enumerate(score.features) if n}
    assert counted == {1: 2.0, 90: 1.0}  # Eq. 4: floor(100 * .01) and floor(100 * .905)
    assert score.details["unread"] == 1


@pytest.mark.parametrize("m", [1, 10])
def test_one_interval_says_nothing_where_documents_are_equally_long(
    m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "_TREES", 20)
    # The opponent of Fig. 6: with one interval all that is left of F(s) is its length.
    audit = SRag(Copier(), configure("s-rag:paper", {"intervals": m}))
    words = [p.word.text for p in segment(_TEXT, audit.proxy, audit.config).probes]
    rows, truth = [], []
    for i in range(40):
        truth.append(i % 2 == 0)
        p = 0.65 + 0.1 * (i // 2 % 3) - (0 if truth[-1] else 0.6)
        rows.append(_finish(_queries(audit)[0], [_said(word, p) for word in words]))
    outcomes = [Outcome(Document(str(i), _TEXT), row, 3, 3) for i, row in enumerate(rows)]
    inside, outside = (
        [o for o, t in zip(outcomes, truth, strict=True) if t is kind] for kind in (True, False)
    )
    found = trained(audit, None, inside[:10], outside[:10])
    values = found.values([*inside[10:], *outside[10:]])
    reached = auc(np.array(values), np.array([True] * 10 + [False] * 10))
    assert reached == (0.5 if m == 1 else 1.0)
    assert "AutoGluon" in found.classifier.name


def test_as_published_a_target_that_declines_has_shown_no_word() -> None:
    # A defense that refuses members alone would else leave the documents it protects out.
    audit = SRag(Copier(), configure("s-rag:paper"))
    refusal = _said("I'm sorry, but I cannot help with that.")
    assert _finish(_queries(audit)[0], [refusal] * 3).features == (3.0, *[0.0] * 9)
    ours, _ = _asked_in_turn(_audit(), lambda _: refusal)
    assert {e.probability for e in ours.evidence} == {Interval(0.0, 0.0)}
    # As published, the word is the answer's first, and nobody is asked again.
    said = replace(_said("Here is the"), finish_reason="length")
    assert _finish(_queries(audit)[0], [said] * 3).details["censored"] == 3
    for lost in (Answer("", error="no connection"), Answer("something else")):
        assert _finish(_queries(audit)[0], [lost] * 3).value is None


# A few words


def _asked_in_turn(audit: SRag, answer, text: str = _TEXT) -> tuple[Score, list[str]]:
    """The score, and the prompts that it took, where a function answers each prompt."""
    probe, asked = audit.probe(Document("d", text)), []
    queries = next(probe)
    while True:
        asked += [query.prompt for query in queries]
        try:
            queries = probe.send([answer(query) for query in queries])
        except StopIteration as stop:
            return stop.value, asked


def _next_words(query) -> Answer:
    before = query.prompt.split("\n\n", 1)[1]
    return _said(" ".join(_TEXT.removeprefix(before).split()[:3]))


def test_few_words_stop_where_they_are_sure() -> None:
    audit = _audit()
    assert not audit.learns
    known, asked = _asked_in_turn(audit, _next_words)
    assert len(asked) == audit.config.turns == 3  # two words are never sure
    more = _audit(turns=9)
    assert 3 <= len(_asked_in_turn(more, _next_words)[1]) < 9
    unknown, others = _asked_in_turn(audit, lambda _: _said("entirely different things"))
    assert len(others) == audit.config.turns
    assert others[0] == asked[0]
    assert audit.config.sure - 0.5 < known.value < audit.config.sure + 0.1
    assert -1.5 < unknown.value < 0
    assert known.details["probes"] == len(asked)
    every = _audit(sure=1e9, turns=5)
    assert len(_asked_in_turn(every, _next_words)[1]) == 5


def test_the_easiest_of_the_words_that_nobody_guesses_comes_first() -> None:
    part = segment(_TEXT, Copier(), SRagConfig())
    assert len(part.probes) > 4
    ranks = sorted(probe.baseline for probe in part.probes)
    limit = ranks[len(ranks) // 2]
    assert ranks[0] < limit < ranks[-1]
    audit = _audit(guessed=limit, sure=1e9, turns=len(ranks))
    _, asked = _asked_in_turn(audit, _next_words)
    base = {part.before(probe.word): probe.baseline for probe in part.probes}
    found = [base[prompt.split("\n\n", 1)[1]] for prompt in asked]
    hard = [p for p in found if p <= limit]
    # Then, where those run out, what the proxy guesses least.
    assert found == sorted(hard, reverse=True) + sorted(p for p in found if p > limit)
    assert len(hard) < len(found) == len(ranks)


_TEMPLATE = (
    "We write to {0} about the quarrelsome cistern under the vestibule of number {1}. Our surveyor"
    " {2} found the lamentable ullage and the gudgeon of the scullery corroded, whereupon {3}"
    " resolved to engage the farrier of {4} and to bill {5} for the remainder by Michaelmas."
)


def _letters(count: int) -> list[Document]:
    """Letters of one template: what is filled in stands in no other."""
    names = [
        [f"{x}{i}dor" for x in ("Bre", "Cal", "Dun", "Fen", "Gar", "Hul")] for i in range(count)
    ]
    return [Document(f"d{i}", _TEMPLATE.format(*own)) for i, own in enumerate(names)]


def _knows_the_template(document: Document, whole: bool):
    """A system that holds other letters: it says their common words of any, names only if whole."""

    def answer(query) -> Answer:
        before = query.prompt.split("\n\n", 1)[1]
        said = document.text.removeprefix(before).split()[:3]
        return _said(
            " ".join(w if whole or not w.strip(".").endswith("dor") else "Nobody" for w in said)
        )

    return answer


def test_words_of_a_template_that_every_neighbour_says_are_asked_last() -> None:
    letters = _letters(12)
    alone = _audit()
    placed = alone.among(letters)

    def values(audit: SRag, whole: bool) -> list[float]:
        return [
            _asked_in_turn(audit, _knows_the_template(one, whole), one.text)[0].value
            for one in letters
        ]

    # Asked by itself, a letter that nobody holds looks like one that is held: both are sure.
    assert auc(np.array(values(alone, True) + values(alone, False)), np.arange(24) < 12) < 0.6
    # Among its like, it is asked for what is its own.
    assert min(values(placed, True)) > max(values(placed, False)) + 5
    asked = _asked_in_turn(placed, _knows_the_template(letters[3], True), letters[3].text)[1]
    assert len(asked) == 3


def test_a_set_treats_all_of_its_documents_alike() -> None:
    letters = _letters(6)
    turned = Elsewhere.among(letters[::-1])
    assert Elsewhere.among(letters).digest == turned.digest  # no order, no known and unknown ones
    words = split_words(letters[0].text)
    told = {word.text: turned.has(words, index) for index, word in enumerate(words)}
    assert [told[one] for one in ("cistern", "surveyor", "We")] == [True, True, False]
    assert not any(shared for word, shared in told.items() if word.startswith("Bre"))
    # The same text twice is one document: its own words stay its own.
    twice = Elsewhere.among([*letters, Document("copy", letters[0].text)])
    assert twice.digest == turned.digest
    for few in (letters[:1], ()):
        assert not any(Elsewhere.among(few).has(words, index) for index in range(len(words)))


@pytest.mark.parametrize("draft", [str.upper, lambda text: text.replace(". ", ".  "), None])
def test_a_draft_of_a_document_says_nothing_elsewhere(draft) -> None:
    letters = _letters(6)
    text = (
        letters[0].text.replace("cistern", "cisterns") if draft is None else draft(letters[0].text)
    )
    audit = _audit()
    twice = among(audit, [*letters, Document("draft", text)])
    assert twice.elsewhere.digest == among(audit, letters).elsewhere.digest


def test_what_a_set_shares_is_what_a_plain_count_says() -> None:
    texts = [one.text for one in load_sample()[:40]]
    counted = Counter(
        pair
        for text in texts
        for pair in set(pairwise(core(word.text).lower() for word in split_words(text)))
    )
    found = Elsewhere.among(Document(str(i), text) for i, text in enumerate(texts))
    assert len(found.runs) == sum(count > 1 for count in counted.values()) > 100
    for text in texts[:5]:
        words = split_words(text)
        plain = [core(word.text).lower() for word in words]
        said = [False, *(counted[pair] > 1 for pair in pairwise(plain))]
        assert [found.has(words, index) for index in range(len(words))] == said


def test_another_set_is_another_audit_and_a_mode_that_needs_none_is_the_same() -> None:
    letters = _letters(6)
    few, learning = _audit(), _audit(mode="probing")
    here, there = few.among(letters), few.among(letters[:1])
    assert len({audit_identity(one, "m") for one in (few, here, there)}) == 3
    assert audit_identity(few.among(letters[::-1]), "m") == audit_identity(here, "m")
    assert learning.among(letters) is learning
    assert here.config is few.config


def test_a_document_that_shares_every_word_is_still_asked_about() -> None:
    copies = [Document("a", _TEXT), Document("b", _TEXT.upper())]
    score, asked = _asked_in_turn(_audit().among(copies), _next_words)
    assert len(asked) == 3
    assert score.value > 5


def test_a_weak_reader_that_misses_hard_words_is_not_held_against_a_member() -> None:
    """A member one of whose three words is said, and the hardest missed, is above an outsider."""
    audit = _audit()
    turns = iter([_said("entirely different things")] * 2)
    member, asked = _asked_in_turn(audit, lambda query: next(turns, None) or _next_words(query))
    outsider, _ = _asked_in_turn(audit, lambda _: _said("entirely different things"))
    assert len(asked) == 3
    assert member.value > outsider.value + 1


def test_of_few_words_a_failed_answer_counts_for_nothing() -> None:
    audit = _audit()
    failed = Answer("", error="the server is busy")
    score, asked = _asked_in_turn(audit, lambda _: failed)
    assert score.value is None
    assert "the server is busy" in score.reason
    assert len(asked) == audit.config.turns
    turns = iter([failed])
    score, _ = _asked_in_turn(audit, lambda query: next(turns, None) or _next_words(query))
    assert score.value > 2


def test_said_odds_are_a_ratio_kept_above_luck() -> None:
    for p, baseline in ((0.0, 0.001), (0.3, 0.2), (1.0, 0.0), (0.6, 0.99)):
        expected = math.log((p + 0.003) / (baseline + 0.003))
        assert said_odds(Evidence("w", "", Interval(p, p), baseline)) == pytest.approx(expected)
    hidden = said_odds(Evidence("w", "", Interval(0.0, 0.01), 1e-9))
    assert hidden == pytest.approx(0.0, abs=1e-3)  # not shown: as nobody would expect


@pytest.mark.slow
def test_stopping_early_accuses_no_more_than_alpha_of_the_innocent() -> None:
    """The null: documents that nobody holds, 2,000 of them, against 99 of the same kind."""
    rng = np.random.default_rng(3)
    audit = _audit()

    def guessed(query) -> Answer:
        # A word in five is said by luck, far more than the audit reckons with.
        return _next_words(query) if rng.random() < 0.2 else _said("entirely different things")

    values = np.array([_asked_in_turn(audit, guessed)[0].value for _ in range(2099)])
    values += rng.random(len(values)) * 1e-9
    known, asked = values[:99], values[99:]
    p = (1 + (known[None, :] >= asked[:, None]).sum(1)) / 100
    assert len(set(np.round(values, 6))) > 3
    assert (p <= 0.05).mean() <= 0.05 + 0.06  # of one calibration set: a beta(5, 95) share


@pytest.mark.parametrize("limits", [{"sure": 0.0}, {"guessed": 0.0}, {"guessed": 1.0}])
def test_a_probe_that_could_not_stop_or_ask_is_refused(limits) -> None:
    with pytest.raises(InputError, match="sure must be above 0"):
        SRagConfig(**limits)
