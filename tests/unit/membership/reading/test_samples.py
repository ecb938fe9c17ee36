"""Probabilities from samples: intervals that hold, and no certainty from repeated answers."""

from __future__ import annotations

import random

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.reading.probabilities import UNREAD
from ragwitness.membership.reading.samples import Tally, all_alike, samples_of
from ragwitness.membership.srag import SRag, SRagConfig
from ragwitness.types import Answer, Capability, Document, Interval, Query, Score
from tests.support.copier import Copier
from tests.support.library import FERRY, run

_DOCUMENT = Document("d", FERRY)
_ONE_HIT = Tally(1, 1).interval()


def _audit(mode: str = "single", sampled: int = 20, **options) -> SRag:
    return SRag(Copier(), SRagConfig(mode=mode, sampled=sampled, **options))


def _rest(query: Query) -> str:
    """How the document goes on after what a query holds of it."""
    return FERRY.removeprefix(query.prompt.split("\n\n", 1)[1])


def _mixed(share: float, seed: int = 0):
    """Say the document's own words with a probability, else others."""
    rng = random.Random(seed)

    def answer(query: Query) -> Answer:
        said = _rest(query) if rng.random() < share else f"nobody knew {rng.random()} of that"
        return Answer(said, finish_reason="stop")

    return answer


def test_every_sample_is_a_query_of_its_own_at_temperature_1() -> None:
    queries = next(_audit().probe(_DOCUMENT))
    assert len(queries) == 20
    assert len({query.prompt for query in queries}) == 1
    assert {(query.temperature, query.top_logprobs) for query in queries} == {(1.0, 0)}
    seeds = [query.seed for query in queries]
    assert len(set(seeds)) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert queries == next(_audit().probe(_DOCUMENT))  # resuming asks the same
    assert queries[:5] == next(_audit(sampled=5).probe(_DOCUMENT))
    other = next(_audit().probe(Document("e", f"Once more. {FERRY}")))
    assert not set(seeds) & {query.seed for query in other}


def test_text_is_all_it_requires_and_its_name_says_so() -> None:
    audit = _audit()
    assert audit.requires == {Capability.TEXT}
    assert audit.name == "s-rag (single, 20 samples)"
    assert "20 samples" in audit.describe()["probabilities"]
    exact = SRag(Copier())
    assert exact.requires == {Capability.TOP_LOGPROBS}
    assert exact.name == "s-rag (single)"
    assert "probabilities" not in exact.describe()


@pytest.mark.parametrize("mode", ["single", "probing"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_intervals_hold_the_share_that_is_drawn(mode: str, share: float) -> None:
    score = run(_audit(mode, 200), _DOCUMENT, _mixed(share))
    first = [e for e in score.evidence if e.probability != UNREAD]
    assert first
    if mode == "probing":  # each word has its own samples: 95 % of the intervals
        missed = [e for e in first if not e.probability.low <= share <= e.probability.high]
        assert len(missed) <= max(1, len(first) // 5)
        assert all(e.probability.high - e.probability.low < 0.2 for e in first)
    else:  # an answer that leaves the document comes to the word where it does, and to no later
        later = [e for e in first if e.probability.low > 0.7]
        assert len(later) >= len(first) - 1
        assert all(
            e.probability.low <= share <= e.probability.high for e in first if e not in later
        )


def test_a_word_that_no_sample_had_is_bounded_not_zero() -> None:
    score = run(_audit("probing"), _DOCUMENT, _mixed(0.0))
    bounds = {e.probability for e in score.evidence}
    (bound,) = bounds
    assert bound.low == 0.0
    assert bound.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert score.details["censored"] == score.details["probes"]


def test_samples_that_know_the_document_score_higher() -> None:
    for mode in ("single", "probing"):
        known, unknown = (run(_audit(mode), _DOCUMENT, _mixed(share)) for share in (0.9, 0.1))
        assert known.value > unknown.value
        assert len(known.features) == len(unknown.features)
        assert known.details["samples"] == 20


@pytest.mark.parametrize("mode", ["single", "probing"])
def test_one_answer_repeated_counts_once(mode: str) -> None:
    repeated = run(_audit(mode), _DOCUMENT, lambda query: Answer(_rest(query)))
    assert repeated.details["alike"] == 1.0
    assert {e.probability for e in repeated.evidence} == {_ONE_HIT}
    wrong = run(_audit(mode), _DOCUMENT, lambda query: Answer("nobody knew of that at all"))
    assert wrong.details["alike"] == 1.0
    assert all(e.probability.low == 0.0 for e in wrong.evidence)
    assert all(e.probability.high >= 0.975 for e in wrong.evidence)
    drawn = run(_audit(mode), _DOCUMENT, _mixed(0.9))
    assert drawn.details["alike"] == 0.0


def test_lost_answers_are_no_trials() -> None:
    kinds = [Answer("", error="lost"), Answer("x y")]

    def alternating(query: Query) -> Answer:
        return Answer("", error="lost") if query.seed % 2 else Answer(f"{query.seed} things")

    score = run(_audit("probing", 40), _DOCUMENT, alternating)
    if score.value is not None:
        assert all(e.probability.high > Tally(0, 40).interval().high for e in score.evidence)
    lost = run(_audit(), _DOCUMENT, lambda _query: kinds[0])
    assert lost.value is None
    assert lost.reason == "lost"


def test_a_word_cut_by_the_limit_is_no_miss() -> None:
    def cut(query: Query) -> Answer:
        return Answer(_rest(query).split()[0][:3], finish_reason="length")

    score: Score = run(_audit("probing"), _DOCUMENT, cut)
    short = [e for e in score.evidence if len(e.word.strip(".,")) <= 3]
    for e in score.evidence:
        assert (e.probability == UNREAD) == (e not in short), e


def test_samples_cut_while_repeating_get_room_each_with_its_own_seed() -> None:
    probe = _audit(sampled=4).probe(_DOCUMENT)
    queries = next(probe)
    opening = " ".join(FERRY.split()[:12])
    cut = [Answer(opening, finish_reason="length") if i % 2 else Answer("a b c") for i in range(4)]
    again = probe.send(cut)
    assert [query.seed for query in again] == [queries[1].seed, queries[3].seed]
    assert all(query.max_tokens > queries[0].max_tokens for query in again)
    with pytest.raises(StopIteration) as stop:
        probe.send([Answer(FERRY)] * 2)
    assert stop.value.value.details["alike"] == 0.0


@pytest.mark.parametrize("sampled", [-1, 1])
def test_impossible_numbers_are_refused(sampled: int) -> None:
    with pytest.raises(InputError, match="sampled"):
        SRagConfig(sampled=sampled)


def test_tallies_and_groups() -> None:
    assert Tally(0, 0).interval() == UNREAD
    assert Tally(3, 3).interval() == Interval(pytest.approx(0.025 ** (1 / 3)), 1.0)
    assert Tally(3, 3).interval(alike=True) == _ONE_HIT
    assert (_ONE_HIT.low, _ONE_HIT.high) == (pytest.approx(0.025), 1.0)
    one, two = Answer("one"), Answer("two")
    assert all_alike([one, one, two, two], 2)
    assert not all_alike([one, one, one, two], 2)
    assert all_alike([one, Answer("", error="lost"), two, two], 2)
    assert len(samples_of(Query("q"), 3)) == 3
