"""Windows: only own words are asked about, and ranks stay exact whatever the lengths."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ragwitness.core.types import Answer, Capability, Document, Evidence, Interval, Query, Score
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import among
from ragwitness.membership.verdicts import Judged, judge
from ragwitness.membership.windows import (
    MOST,
    SIZE,
    WindowedAudit,
    Windows,
    running_scores,
)
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier

_NOTICE = (
    "Copyright Harbour Lane Press. All rights reserved. No part of this publication may be"
    " reproduced or stored without the prior permission in writing of the publisher. "
)


def _book(seed: int, sentences: int = 120) -> str:
    draw = random.Random(seed)
    words = [
        "".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(3))
        for _ in range(400)
    ]
    return " ".join(
        " ".join(draw.choices(words, k=10)).capitalize() + "." for _ in range(sentences)
    )


def _books(n: int, front: str = _NOTICE * 9) -> list[Document]:
    return [Document(f"b{i}", front + "\n\n" + _book(i)) for i in range(n)]


@dataclass
class _Counts:
    """Scores a text by one answer, and remembers what it was asked about."""

    name: str = "counts"
    requires: frozenset[Capability] = frozenset({Capability.TEXT})

    def probe(self, document):
        (answer,) = yield [Query(document.text)]
        if answer.error:
            return Score(None, reason=answer.error, details={"error": 1.0})
        word = Evidence(answer.text, "", Interval(1.0, 1.0), 0.0)
        return Score(float(answer.text), evidence=(word,), details={"asked": 1.0, "score/x": 2.0})


def _driven(audit, document, replies):
    """The batches of questions about a document, and its score."""
    probe, batches, answers = audit.probe(document), [], None
    try:
        while True:
            batches.append(probe.send(answers))
            answers = [replies.pop(0) for _ in batches[-1]]
    except StopIteration as stop:
        return batches, stop.value


def test_a_short_document_of_its_own_text_is_asked_about_as_it_is() -> None:
    documents = [Document(str(i), _book(i, 8)) for i in range(3)]
    audit = WindowedAudit(_Counts(), Windows.among(documents))
    batches, score = _driven(audit, documents[0], [Answer("3")])
    assert [[query.prompt for query in batch] for batch in batches] == [[documents[0].text]]
    assert (score.value, dict(score.details)) == (3.0, {"asked": 1.0, "score/x": 2.0})


def test_what_many_documents_share_is_in_no_window() -> None:
    books = _books(12)
    cut = Windows.among(books)
    for one in books:
        windows = cut.of(one.text)
        assert len(windows) == MOST
        assert not any("publi" in window or "Copyright" in window for window in windows)
        assert all(SIZE / 2 < len(window) <= SIZE and window in one.text for window in windows)
        assert all(window[0].isupper() for window in windows)  # a sentence begins
        # They are spread: each stands in another fifth of what is the book's own.
        start = len(_NOTICE * 9) + 2
        size = (len(one.text) - start) / MOST
        fifths = {int((one.text.index(w) + len(w) / 2 - start) / size) for w in windows}
        assert fifths == set(range(MOST))


def test_windows_follow_from_the_text_and_the_set_alone() -> None:
    books = _books(4)
    one, other = Windows.among(books), Windows.among([replace(b, id="x") for b in books[::-1]])
    assert one.digest == other.digest
    assert [one.of(b.text) for b in books] == [other.of(b.text) for b in books]
    more = Document("more", _book(1)[:900])  # now two documents have this
    assert Windows.among([*books, more]).digest != one.digest


@pytest.mark.parametrize(("holders", "windows"), [(2, MOST), (3, 0)])
def test_a_text_that_others_hold_is_asked_about_where_one_does_and_not_where_more_do(
    holders, windows
) -> None:
    text = _book(1)
    whole = [Document(str(i), f"{text} {_book(i + 50)}") for i in range(holders - 1)]
    audit = WindowedAudit(_Counts(), Windows.among([Document("part", text), *whole]))
    assert len(audit.windows(Document("part", text))) == windows
    if not windows:
        _, score = _driven(audit, Document("part", text), [])
        assert score == Score(None, reason="all of its text stands in other documents of the audit")


def test_the_score_is_the_mean_over_the_windows_that_could_be_read() -> None:
    books = _books(3)
    audit = WindowedAudit(_Counts(), Windows.among(books))
    replies = [Answer(text) for text in "4 1 1 2".split()]
    replies.insert(1, Answer("", error="timed out"))
    batches, score = _driven(audit, books[0], replies)
    assert [len(batch) for batch in batches] == [MOST]  # side by side
    assert running_scores(score) == [4, 4, 2.5, 2, 2]
    assert [word.word for word in score.evidence] == ["4", "2", "1", "1"]
    assert score.details["asked"] == 4
    assert score.details["error"] == 1
    assert score.details["score/x"] == 2
    asked = sum(len(query.prompt) for query in batches[0])
    assert score.details["share asked"] == pytest.approx(asked / len(books[0].text))
    _, lost = _driven(audit, books[0], [Answer("", error="timed out")] * MOST)
    assert (lost.value, lost.reason) == (None, "timed out")


def test_a_method_that_is_sure_asks_about_no_further_window() -> None:
    @dataclass(frozen=True)
    class Config:
        asks = "turns"
        stops_at = "sure"
        turns: int = 6
        sure: float = 5.0

    books, method = _books(3), _Counts()
    method.config = Config()
    audit = WindowedAudit(method, Windows.among(books))
    batches, score = _driven(audit, books[0], [Answer("4"), Answer("2")])
    assert [len(batch) for batch in batches] == [1, 1]
    # What was left unasked has no evidence.
    assert running_scores(score) == pytest.approx([4, 3, 2, 1.5, 1.2])
    assert score.details["windows asked"] == 2
    assert audit._part().config.turns == 2  # of a typical document, which has as many windows


def test_short_and_long_documents_ask_as_much_about_a_window() -> None:
    # The first window of a long document is ranked beside a short one, so both have as many turns.
    @dataclass(frozen=True)
    class Config:
        asks = "turns"
        turns: int = 6

    books, method = _books(3), _Counts()
    short = [Document(f"s{n}", books[n % 3].text[:600] + f" own{n} words{n}") for n in range(4)]
    for documents, turns in ((books, 2), ([*books, *short], 6), ([*books, short[0]], 2)):
        method.config = Config()
        audit = WindowedAudit(method, Windows.among(documents))
        assert audit._part().config.turns == turns
    assert method.config.turns == 6


def test_generated_texts_in_the_background_ask_no_more_of_long_documents() -> None:
    books = _books(3)
    alone = Windows.among(books).typical
    assert alone > 1
    assert Windows.among([*books, *load_sample()]).typical == alone


def test_each_method_asks_about_own_text_and_papers_read_as_they_did() -> None:
    books = _books(4)
    for name in ("runon", "rag-mia", "s2mia", "min-k", "passages", "s-rag", "mba"):
        audit = among(build_audit(name, Copier(), configure(name)), books)
        asked = next(audit.probe(books[0]))
        assert asked, name
        assert not any("permission in writing" in query.prompt for query in asked), name
    for name in (
        "rag-mia:paper",
        "s2mia:paper",
        "s2mia:s",
        "min-k:paper",
        "mba:paper",
        "s-rag:paper",
    ):
        assert not isinstance(
            among(build_audit(name, Copier(), configure(name)), books), WindowedAudit
        ), name


def test_a_chat_model_is_asked_at_most_ten_questions_about_a_book() -> None:
    books = _books(4)
    audit = among(build_audit("runon", Copier(), configure("runon")), books)
    questions = audit.questions(books[0])
    assert 5 <= len(questions) <= 10
    batches, _ = _driven(audit, books[0], [Answer("No idea.") for _ in questions])
    assert [query for batch in batches for query in batch] == questions


def test_a_chapter_of_a_book_is_met_as_often_as_is_said() -> None:
    """Three of ten, counted over all places of the chapter in each of ten books."""
    chapter = 1 / 15  # twenty pages of three hundred
    starts = np.linspace(0, 1 - chapter, 1_000)[:, None]
    found = []
    for seed in range(10):
        text = _book(seed, 400)
        cut = Windows.among([Document("b", text), Document("other", _book(seed + 1000, 9))])
        middles = np.array([text.index(w) + len(w) / 2 for w in cut.of(text)]) / len(text)
        met = (starts <= middles) & (middles <= starts + chapter)
        found.append(met.any(axis=1).mean())
    # Five windows too far apart for a chapter to hold two meet 5 of 14; windows drawn, .31.
    mean, error = np.mean(found), np.std(found, ddof=1) / len(found) ** 0.5
    assert mean - 2 * error > 0.3
    assert mean + 2 * error < 5 / 14
    assert max(found) < 5 / 14 + 0.005  # the grid adds one place for each window


def test_a_book_is_cut_in_time() -> None:
    text = " ".join(_book(seed) for seed in range(60))
    documents = [Document("long", text), *_books(3)]
    began = time.process_time()
    assert len(Windows.among(documents).of(text)) == MOST
    assert time.process_time() - began < 20
    assert len(text) > 500_000


def _scored(draw: np.random.Generator, windows: int) -> Score:
    values = draw.exponential(size=windows)
    means = np.cumsum(values) / np.arange(1, windows + 1)
    details = {f"score after window {n}": float(m) for n, m in enumerate(means[:-1], 1)}
    return Score(float(means[-1]), details=details | {"windows": float(windows)})


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        pytest.param((1,), (5,), marks=pytest.mark.slow),
        pytest.param((5,), (1, 5), marks=pytest.mark.slow),
        ((1, 2, 3, 4, 5), (5, 5, 1)),
    ],
)
def test_documents_outside_are_called_in_no_more_often_than_the_level(asked, known) -> None:
    """The null, 2,000 times: lengths as unlike as can be, ranks exact all the same."""
    draw, wrong, naive, rounds = np.random.default_rng(7), 0, 0, 2_000
    for _ in range(rounds):
        outside = [_scored(draw, int(draw.choice(known))) for _ in range(39)]
        score = _scored(draw, int(draw.choice(asked)))
        item = Judged(Document("d", "text"), score, score.value, None, 1)
        (verdict,) = judge(
            [item], outside=[running_scores(one) for one in outside], inside=[], alpha=0.05
        )
        wrong += verdict.p_value <= 0.05
        naive += (1 + sum(one.value >= score.value for one in outside)) / 40 <= 0.05
    assert wrong / rounds <= 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5
    if asked == (1,):  # one window against the means of five
        assert naive / rounds > 0.1


def test_a_document_longer_than_most_known_ones_counts_by_its_first_windows() -> None:
    """Few known documents are as long, so that a rank among these alone could decide nothing."""
    after = {"score after window 1": 8.0, "score after window 2": 7.0, "score after window 3": 6.0}
    details = {"windows": 4.0, "windows asked": 4.0, "share asked": 0.2}
    score = Score(5.0, details=after | details)
    item = Judged(Document("d", "text"), score, 5.0, None, 5)
    short, middle, long = [[0.0]] * 49, [[0.0, 6.5]] * 48, [[0.0, 0.0, 0.0, 9.0]] * 2
    # 1. Fifty of 99 have two windows or more: two it is, and nobody's first two score as high.
    (found,) = judge([item], outside=short + middle + long, inside=[], alpha=0.05)
    assert found.p_value == pytest.approx(1 / 51)
    assert (found.decision.value, found.score) == ("in", 5.0)
    assert (found.windows, found.share) == (4, 0.2)
    # 2. Among letters the first window of a book counts.
    (found,) = judge([item], outside=[*short, *short, [9.0]], inside=[], alpha=0.05)
    assert found.p_value == pytest.approx(2 / 100)


def test_first_windows_that_could_not_be_read_decide_nothing() -> None:
    score = Score(9.0, details={"windows": 5.0, "windows asked": 5.0})
    item = Judged(Document("d", "text"), score, 9.0, None, 5)
    (found,) = judge([item], outside=[[0.0]] * 99, inside=[], alpha=0.05)
    assert (found.decision.value, found.p_value) == ("inconclusive", 1.0)
    assert "first windows" in found.reason
