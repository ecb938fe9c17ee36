"""Evidence on an absolute scale: bets, pay, closed e-BH, guesses, audits without known ones."""

import asyncio
import itertools
import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ragwitness as rw
from ragwitness.core.bet import Bet
from ragwitness.core.errors import CapabilityError, ModelError, VerificationError
from ragwitness.core.types import Decision, Document, Score, Verdict
from ragwitness.membership import e_values
from ragwitness.membership.e_values import (
    CAP,
    MOST,
    bets_on,
    closed_e_benjamini_hochberg,
    next_words,
    pay,
)
from ragwitness.membership.evidence import _sealed_guesses
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.runon import Runon, RunonConfig
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.references import References, word_nats
from ragwitness.membership.results.audit import RESULT_TYPE, from_json
from ragwitness.membership.results.odds import OddsScale, rarity
from ragwitness.membership.run import run_audit
from ragwitness.membership.verdicts import with_odds
from ragwitness.models.base import EchoModel, TextScores
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.score_store import decode_outcome, outcome_row
from ragwitness.runner.worker import Outcome
from ragwitness.text.sample import load_sample

AHEAD = [" their", " old", " ram", ", gladly"]


class Guessing:
    """A model that gives every character the same probability."""

    context_length = 10_000
    name = "guessing"

    def __init__(self, nats: float) -> None:
        self.nats, self.asked = nats, list[Any]()

    def count_tokens(self, text: str) -> int:
        return len(text)

    def score(self, texts: Any, *, after: Any = None, top: int = 0) -> list[TextScores]:
        self.asked += zip(texts, after, strict=True)
        return [
            TextScores(
                np.zeros(len(t), np.int64),
                np.array([(n, n + 1) for n in range(len(t))], np.int64).reshape(-1, 2),
                np.full(len(t), -self.nats),
                np.zeros(len(t), np.int64),
            )
            for t in texts
        ]

    def generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


# Bets.


@pytest.mark.parametrize(
    ("answer", "won"),
    [
        ("He said: they sold their old ram, gladly.", [AHEAD]),
        ("They sold their old RAM, gladly", [[" their", " old"]]),  # another spelling loses
        ("They sold their old ram gladly", [[" their", " old", " ram"]]),  # and other punctuation
        ("they sold their older ram", [[" their"]]),  # a longer word is another word
        ("they sold it", [[]]),
        ("nothing of the kind", []),  # the words before do not come: no bet is open
        ("they sold it. Yes, they sold their old house", [[], [" their", " old"]]),
    ],
)
def test_a_bet_is_open_where_the_words_before_come_and_won_by_the_own_spelling(
    answer: str, won: list[list[str]]
) -> None:
    ahead = next_words(" their old ram, gladly and went")
    assert ahead == AHEAD
    bets = bets_on("Q", answer, ["they", "sold"], ahead, "gap")
    assert [list(bet.words) for bet in bets] == won
    assert [bet.stake for bet in bets] == [0.5, 0.25][: len(bets)]
    assert all(bet.length == 4 for bet in bets)
    assert all((bet.question, bet.gap) == (("Q", "gap") if bet.words else ("", "")) for bet in bets)


@pytest.mark.parametrize(
    ("text", "answer", "tail", "won"),
    [
        ("木箱在江宁修复", "他说木箱在江宁修复", ["箱", "在"], ["江", "宁", "修", "复"]),
        ("木箱在江宁修复", "他说木箱在江西", ["箱", "在"], ["江"]),
        ("ร้านมีนาฬิกาเก่า", "เขาว่าร้านมีนาฬิกาเก่าเรือนหนึ่ง", ["ร้าน"], ["มี", "นาฬิกา", "เก่า"]),
        ("x नदी", "x नदीं", ["x"], []),  # a vowel sign makes another word
    ],
)
def test_bets_are_won_where_no_space_ends_a_word(
    text: str, answer: str, tail: list[str], won: list[str]
) -> None:
    (start,) = [text.find(tail[-1]) + len(tail[-1])]
    (bet,) = bets_on("Q", answer, tail, next_words(text[start:]), "gap")
    assert list(bet.words) == won


def test_words_behind_each_other_open_no_second_bet_within_the_first() -> None:
    # The tail occurs again inside the words that were won, and at their end.
    bets = bets_on("Q", "a b a b a b x", ["a", "b"], [" a", " b", " a", " b"], "")
    assert [bet.words for bet in bets] == [(" a", " b", " a", " b"), ()]


def test_an_answer_that_begins_with_the_words_wins_without_a_space() -> None:
    (bet,) = bets_on("Q", "their old house", (), [" their", " old"], "")
    assert (bet.words, bet.before) == (("their", " old"), "")
    assert bets_on("Q", "their old", (), [], "") == []


# Pay and e-values.


def test_shares_of_a_stake_add_up_and_pay_is_fair_at_the_true_probabilities() -> None:
    # An outside target that says each further word with exactly the guessed probability.
    for stake, length in itertools.product((0.5, 0.25, 1.0), (1, 2, 4)):
        guess, mean = 0.3, 0.0
        for said in range(length + 1):
            chance = guess**said * (1 - guess if said < length else 1)
            bet = Bet(stake, length, (" w",) * said)
            mean += chance * pay(bet, [-math.log(guess)] * said)
        assert mean == pytest.approx(1.0)


def test_the_cap_bounds_what_one_word_pays() -> None:
    bet = Bet(0.5, 4, (" w",))
    assert pay(bet, [50.0]) == pay(bet, [CAP]) == pytest.approx(0.5 + 0.25 * math.exp(CAP))
    assert pay(Bet(0.5, 4), ()) == 0.5


def test_one_phrase_alone_decides_nothing_among_several_documents() -> None:
    # Two reports of one event share a whole phrase, such as "62-year-old retired art teacher".
    assert e_values.e_value([_WON], {_WON: (13.0, 8.0, 5.0, 3.0)}) == e_values.MOST == 40.0


def test_no_strategy_of_an_outside_target_reaches_twenty_more_often_than_one_in_twenty() -> None:
    rng, reached, runs = random.Random(5), 0, 4000
    for _ in range(runs):
        wealth = 1.0
        for _question in range(6):
            said = 0
            while said < 4 and rng.random() < 0.5:
                said += 1
            wealth *= pay(Bet(0.5, 4, (" w",) * said), [math.log(2)] * said)
        reached += wealth >= 20
    assert reached / runs <= 0.05


def test_closed_e_bh_is_its_definition_and_rejects_whatever_e_bh_does() -> None:
    rng, gained = np.random.default_rng(3), 0
    for _ in range(120):
        e = np.exp(rng.normal(1, 3, size=rng.integers(1, 8)))
        levels = closed_e_benjamini_hochberg(e.tolist())
        order = np.argsort(-e, kind="stable").tolist()
        sets = [s for n in range(1, e.size + 1) for s in itertools.combinations(range(e.size), n)]
        for alpha in (0.01, 0.05, 0.2):

            def kept(best: list[int], alpha: float = alpha, e: Any = e, sets: Any = sets) -> bool:
                means = ((e[list(s)].mean(), len({*s} & {*best})) for s in sets)
                bar = 1 / (alpha * len(best))
                return min(e[best]) >= 1 / alpha and all(m >= n * bar for m, n in means)

            closed = max((n for n in range(1, e.size + 1) if kept(order[:n])), default=0)
            rejected = {n for n, level in enumerate(levels) if level <= alpha}
            assert rejected == {*order[:closed]}
            plain = max(
                (k for k in range(1, e.size + 1) if e[order[k - 1]] >= e.size / (alpha * k)),
                default=0,
            )
            assert rejected >= {*order[:plain]}
            gained += closed - plain
    assert gained > 0


def test_closed_e_bh_takes_many_documents_and_calls_none_that_says_nothing() -> None:
    levels = closed_e_benjamini_hochberg([1e6] * 1500 + [0.5] * 1500)
    assert int(np.sum(levels <= 0.05)) == 1500


def test_closed_e_bh_keeps_the_false_discovery_rate_of_e_values_that_hang_together() -> None:
    rng, shares = np.random.default_rng(7), list[float]()
    for _ in range(4000):
        lucky = rng.random() < 0.04  # all documents outside share one luck: mean 1 each
        e = np.array([25.0 if lucky else 0.0] * 6 + [400.0, 400.0])
        rejected = np.flatnonzero(closed_e_benjamini_hochberg(e.tolist()) <= 0.05)
        shares.append(float(np.mean(rejected < 6)) if rejected.size else 0.0)
    assert np.mean(shares) <= 0.05


def test_the_mean_pay_is_tested_by_an_e_value() -> None:
    fair, reached = random.Random(1), 0
    for _ in range(2000):
        pays = [4.0 if fair.random() < 1 / 8 else 4 / 7 for _ in range(10)]  # mean 1
        reached += e_values.test_mean_pay(pays).e_value >= 20
    assert reached / 2000 <= 0.05
    assert e_values.test_mean_pay([30.0] * 10).e_value >= 20
    assert e_values.test_mean_pay([]).questions == 0


# Guesses.


def test_the_largest_guess_of_all_models_and_of_the_document_without_the_words_counts() -> None:
    class Knowing(Guessing):
        def score(self, texts: Any, *, after: Any = None, top: int = 0) -> list[TextScores]:
            known = "the gap" in after[0].messages[0].content
            return Guessing(0.1 if known else 5.0).score(texts, after=after)

    bet = Bet(0.5, 4, (" ab", " c"), "What?", "They sold", "the gap \u2026")
    weak, strong = Guessing(2.0), Guessing(1.0)
    names, guesses = References([weak, strong])([bet, Bet(0.5, 4)])
    assert names == ("guessing", "guessing")
    assert guesses == {bet: (3.0, 2.0)}  # a nat for each character of " ab" and " c"
    text, prompt = strong.asked[0]
    assert (text, prompt.prefill, prompt.messages[0].content) == (" ab c", "They sold", "What?")
    _, guesses = References([Knowing(5.0)])([bet])
    assert guesses[bet] == pytest.approx((0.3, 0.2))


def test_a_token_belongs_to_the_word_in_which_it_ends() -> None:
    offsets = np.array([(0, 3), (3, 5), (5, 6)])
    scores = TextScores(
        np.zeros(3, np.int64), offsets, np.array([-1.0, -2.0, -4.0]), np.zeros(3, np.int64)
    )
    assert word_nats(scores, (" ab", " cd")) == [1.0, 6.0]


def test_a_model_that_scores_nothing_is_refused() -> None:
    class Writer(Guessing):
        can_score = False

    with pytest.raises(CapabilityError, match="cannot rate given words"):
        References([Writer(1.0)])


# Verdicts.


def _verdict(name: str, decision: Decision = Decision.INCONCLUSIVE) -> Verdict:
    return Verdict(name, decision, None, 1.0, 3)


_WON = Bet(0.5, 4, (" a", " b", " c", " d"), "Q", "x")


def _combined(**options: Any) -> dict[str, Verdict]:
    verdicts = [_verdict("one"), _verdict("two"), _verdict("out", Decision.OUT)]
    scores = {
        "one": Score(1.0, bets=(_WON, replace(_WON, before="y"))),
        "two": Score(1.0, bets=(Bet(0.5, 4),)),
        "out": Score(1.0, bets=(_WON, replace(_WON, before="y"))),
    }
    guesses = dict.fromkeys((_WON, replace(_WON, before="y")), (9.0, 9.0, 9.0, 9.0))
    rows = with_odds(verdicts, scores, guesses, 0.05, **({"refused": False} | options))
    return {row.document: row for row in rows}


def test_e_values_decide_and_say_how_rarely_the_words_are_guessed() -> None:
    rows = _combined()
    assert (rows["one"].decision, rows["one"].by) == (Decision.IN, "odds")
    assert rows["one"].e_value > 3 / 0.05
    assert "less than once in a billion" in rows["one"].reason
    assert (rows["two"].decision, rows["two"].e_value, rows["two"].by) == (
        "inconclusive",
        0.5,
        None,
    )
    assert "0.5, and 20 would suffice" in rows["two"].reason
    assert rows["out"].decision is Decision.INCONCLUSIVE  # the two scales contradict each other


def test_nothing_rests_on_a_refused_scale_or_on_words_that_were_sent_before() -> None:
    assert _combined(refused=True)["one"].decision is Decision.INCONCLUSIVE
    withheld = _combined(withheld=frozenset({"one"}))["one"]
    assert withheld.decision is Decision.INCONCLUSIVE
    assert withheld.e_value > 60


@pytest.mark.parametrize(
    ("nats", "words"),
    [(3.0, "once in 20 times"), (15.0, "once in 3 million times"), (99.0, "less than once in a")],
)
def test_odds_are_said_in_plain_words(nats: float, words: str) -> None:
    assert rarity(nats).startswith(words)


def test_the_scale_is_refused_where_known_documents_pay_or_a_needed_test_is_missing() -> None:
    odds = OddsScale(("m",), 0.05, (), known=12, mean_pay=9.0, against=400.0)
    assert odds.refused
    assert "without the document" in odds.refusal
    assert not replace(odds, against=1.0).refused
    untested = replace(odds, known=3, against=1.0, needs_test=True)
    assert untested.refused
    assert "--known-out" in untested.refusal


# Stored, and whole.


def test_bets_are_stored_with_scores_and_scores_without_bets_as_before() -> None:
    outcome = Outcome(Document("a", "t"), Score(1.0, bets=(_WON, Bet(0.25, 4))), 2, 2)
    row = outcome_row(outcome)
    assert decode_outcome(row).score.bets == outcome.score.bets
    assert "bets" not in outcome_row(replace(outcome, score=Score(1.0)))


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> Guessing:
    model = Guessing(1.0)
    monkeypatch.setattr(
        "ragwitness.models.model_registry.load_language_model", lambda spec="": model
    )
    return model


def _audited(known_out: int, **options: Any) -> Any:
    sample = load_sample()
    held, others = sample[:4], sample[400:404]
    target = LabTarget(build_system(sample[:40], RagConfig(k=2), generator=EchoModel()))
    plan = AuditPlan(
        documents=(*held, *others),
        known_out=tuple(sample[500 : 500 + known_out]),
        references=("guessing",),
        **options,
    )
    audit = among(Runon(EchoModel(), RunonConfig(enough=20.0)), plan.every_document)
    return held, asyncio.run(run_audit(plan, target, audit))


def test_a_few_documents_get_verdicts_without_any_other(references: Guessing) -> None:
    held, result = _audited(0)
    called = {v.document for v in result.verdicts if v.decision is Decision.IN}
    assert called == {document.id for document in held}
    assert {v.by for v in result.verdicts} == {"odds", None}
    assert result.calibration.n == 0
    assert all(v.p_value is None for v in result.verdicts)
    assert "Not tested" in result.odds.summary
    assert not any("known-out" in warning for warning in result.warnings)
    assert references.asked
    # The stored form reads back.
    stored = json.loads(json.dumps(RESULT_TYPE.stored(result)))
    again = from_json(stored)
    assert again.odds == result.odds
    assert [v.e_value for v in again.verdicts] == [v.e_value for v in result.verdicts]
    assert json.loads(json.dumps(RESULT_TYPE.stored(again))) == stored
    report = RESULT_TYPE.report(result)
    title, sentence = report.title, report.claimed[0]
    assert title == "4 of 8 documents: in the database"
    assert "reference models guess" in sentence


def test_a_reference_model_that_cannot_be_had_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(spec: str = "") -> Any:
        raise ModelError(f"{spec} cannot be reached.")

    monkeypatch.setattr("ragwitness.models.model_registry.load_language_model", load)
    sample = load_sample()
    target = LabTarget(build_system(sample[:40], RagConfig(k=2), generator=EchoModel()))
    monkeypatch.setattr(target, "ask", None)  # nothing may be sent
    plan = AuditPlan(documents=tuple(sample[:2]), references=("guessing",))
    audit = among(Runon(EchoModel()), plan.every_document)
    with pytest.raises(ModelError, match="guessing cannot be reached"):
        asyncio.run(run_audit(plan, target, audit))


def test_a_document_of_fifteen_words_is_asked_about_or_says_why_not(references: Guessing) -> None:
    words = load_sample()[0].text.split()
    short = Document("short", " ".join(words[:15]))
    tiny = Document("tiny", "Zebras quietly sang under purple bridges near Ozrun.")
    index = [short, *load_sample()[1:20]]
    target = LabTarget(build_system(index, RagConfig(k=1), generator=EchoModel()))
    plan = AuditPlan(documents=(short, tiny, *load_sample()[1:5]), references=("guessing",))
    audit = among(Runon(EchoModel()), plan.every_document)
    verdicts = {v.document: v for v in asyncio.run(run_audit(plan, target, audit)).verdicts}
    assert verdicts["short"].queries >= 1 or "words in a row" in verdicts["short"].reason
    assert verdicts["tiny"].decision is Decision.INCONCLUSIVE
    assert "words in a row" in verdicts["tiny"].reason


def test_a_reference_model_of_another_language_pays_no_more_than_the_cap(
    references: Guessing,
) -> None:
    references.nats = 30.0  # it can say none of these words
    _, result = _audited(0)
    for verdict in result.verdicts:
        assert verdict.e_value <= MOST**verdict.queries


def test_known_outside_documents_of_any_kind_test_the_scale(references: Guessing) -> None:
    held, result = _audited(12)
    assert result.odds.known == 12
    assert result.odds.mean_pay <= 1
    assert "Tested on 12 documents" in result.odds.summary
    assert sum(v.decision is Decision.IN for v in result.verdicts) == len(held)
    # Twelve are too few for ranks, so the level is the e-values' alone.
    assert result.odds.alpha == result.alpha == 0.05


@pytest.mark.slow
def test_ranks_and_e_values_share_the_level_where_both_can_decide(references: Guessing) -> None:
    held, result = _audited(100)
    assert (result.alpha, result.odds.alpha) == (0.05, 0.025)
    by = [v.by for v in result.verdicts if v.document in {document.id for document in held}]
    # One phrase alone, as of the shortest documents, decides nothing at half of the level.
    assert set(by) == {"ranks and odds", "ranks"}


@pytest.mark.slow
def test_a_target_that_searches_the_web_is_not_accused_where_public_texts_are_given(
    references: Guessing,
) -> None:
    published = load_sample()[:40]
    target = LabTarget(build_system(published, RagConfig(k=2), generator=EchoModel()))

    def called(**given: Any) -> tuple[int, Any]:
        result = rw.audit(
            target, published[:4], method="runon", reference_model=["guessing"], yes=True, **given
        )
        return sum(v.decision is Decision.IN for v in result.verdicts), result

    assert called()[0] == 4  # nothing but published texts can tell the web from a database
    found, result = called(public=published[10:13])
    assert found == 0
    assert "says such words without the document" in result.warnings[0]


# A result's guesses, as a verifier takes them.


def _sealed(guesses: list[list[float]], *, known: tuple[Bet, ...] = ()) -> Any:
    plan = AuditPlan(documents=(Document("a", "t"),), references=("guessing",))
    prepared = PreparedAudit("", plan, "runon", configure("runon"))
    outcomes = {
        "known outside": [Outcome(Document("k", "t"), Score(0.0, bets=known), 1, 1)],
        "documents": [Outcome(Document("a", "t"), Score(1.0, bets=(_WON, Bet(0.5, 4))), 2, 2)],
    }
    return _sealed_guesses(prepared, outcomes, {"models": ["m"], "guesses": guesses})


def test_a_verifier_gives_each_won_bet_its_own_guess_even_where_words_are_hidden() -> None:
    hidden = Bet(0.5, 4, ("",) * 4)
    outcomes, guess = _sealed([[1.0] * 4, [2.0] * 4], known=(hidden,))
    models, guesses = guess([])
    assert models == ("m",)
    (own, lost), (known,) = (outcomes[s][0].score.bets for s in ("documents", "known outside"))
    assert (guesses[known], guesses[own], lost.words) == ((1.0,) * 4, (2.0,) * 4, ())


@pytest.mark.parametrize(
    "guesses", [[], [[1.0] * 3], [[1.0, 1.0, 1.0, -1.0]]], ids=["missing", "short", "below nothing"]
)
def test_guesses_that_do_not_fit_the_bets_are_refused(guesses: list[list[float]]) -> None:
    with pytest.raises(VerificationError, match="do not fit the won bets"):
        _sealed(guesses)
