"""Which passages stay: reranking, threshold, Mirabel."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.defenses.base import chain, defend
from ragwitness.defenses.mirabel import Mirabel, hide_threshold
from ragwitness.defenses.retrieval import (
    DistanceThreshold,
    Rerank,
    likelihood_scores,
    overlap_scores,
)
from ragwitness.errors import InputError
from ragwitness.rag.build import build_system
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index.base import Hit
from ragwitness.rag.pipeline import Lookup
from ragwitness.types import Document
from research.thresholds import calibrate_threshold
from tests.support.copier import Copier
from tests.unit.defenses.defense_fakes import CORPUS, dense, lexical


def _lookup(query: str, texts: list[str], k: int = 2, distances: bool = False) -> Lookup:
    passages = [Passage(f"d{i // 2}", 0, len(text), text) for i, text in enumerate(texts)]
    return Lookup(query, k, passages, distances)


# -- rerank ------------------------------------------------------------------------------


def test_overlap_by_hand() -> None:
    texts = ["red rash", "red arm", "blue arm"]
    # n = 3; red stands in 2 passages, rash in 1, fever in 0; "the" is a stop word.
    red, rash, fever = math.log(1 + 3 / 3), math.log(1 + 3 / 2), math.log(1 + 3 / 1)
    total = red + rash + fever
    expected = [(red + rash) / total, red / total, 0.0]
    assert overlap_scores("the red red rash fever", texts) == pytest.approx(expected)


def test_overlap_of_stop_words_alone_and_of_nothing() -> None:
    assert overlap_scores("the", ["the cat", "a cat"]) == [1.0, 0.0]
    assert overlap_scores(" ", ["the cat"]) == [0.0]
    assert overlap_scores("cat", []) == []
    assert overlap_scores("頭痛", ["患者は頭痛", "熱"]) == [1.0, 0.0]


def test_rerank_keeps_k_of_the_nearest_candidates_by_cross_score() -> None:
    texts = ["one", "two three", "four five six", "seven", "eight", "nine", "red rash"]
    hits = [Hit(i, 10.0 - i) for i in range(7)]
    kept = Rerank(3).select(hits, _lookup("six five two red rash", texts))
    # Passage 6 is beyond 3k = 6 candidates; four of the query's five words are rarer alike.
    assert [hit.index for hit in kept] == [2, 1]
    assert kept[0].score > kept[1].score > 0


def test_rerank_breaks_ties_as_the_retriever_ranked() -> None:
    hits = [Hit(2, 3.0), Hit(0, 2.0), Hit(1, 1.0)]
    kept = Rerank(2).select(hits, _lookup("red", ["red a", "red b", "red c"], k=3))
    assert [hit.index for hit in kept] == [2, 0, 1]


def test_rerank_by_likelihood_of_the_query_given_the_passage() -> None:
    texts = [document.text for document in CORPUS]
    scores = likelihood_scores(Copier(), "hunt krill in small and", texts)
    assert int(np.argmax(scores)) == 2
    defended = defend(lexical(k=1), Rerank(5, Copier()))
    assert defended.retrieve("hunt krill in small and")[0].index == 2
    assert likelihood_scores(Copier(), " ", texts) == [0.0] * 5
    assert likelihood_scores(Copier(), "krill", []) == []


def test_likelihood_cuts_a_passage_that_does_not_fit() -> None:
    model = Copier()
    model.context_length = 100
    long = "penguins hunt krill " + "word " * 500
    [cut], [short] = (
        likelihood_scores(model, "penguins hunt krill", [text])
        for text in (long, "penguins hunt krill")
    )
    assert cut == pytest.approx(short, abs=1.0)


def test_rerank_wants_no_more_than_there_is_and_a_positive_factor() -> None:
    assert Rerank(3).candidates(4, 5) == 5
    assert Rerank(3).candidates(4, 50) == 12
    with pytest.raises(InputError, match="at least 1"):
        Rerank(0)


# -- threshold ---------------------------------------------------------------------------


def test_threshold_keeps_scores_and_distances_on_it() -> None:
    lookup = _lookup("q", ["a"] * 3)
    hits = [Hit(0, 0.9), Hit(1, 0.3), Hit(2, 0.2)]
    assert DistanceThreshold(0.3).select(hits, lookup) == hits[:2]
    far = [Hit(0, -0.1), Hit(1, -0.3), Hit(2, -0.4)]
    assert DistanceThreshold(0.3).select(far, _lookup("q", ["a"] * 3, distances=True)) == far[:2]


def test_threshold_in_a_system_reads_distances_in_l2_and_scores_elsewhere() -> None:
    angles = [0.0, 0.1, 0.5, 1.0]
    assert [h.index for h in defend(dense(angles, k=4), DistanceThreshold(0.3)).retrieve("0")] == [
        0,
        1,
    ]
    by_product = defend(dense(angles, k=4, metric="ip"), DistanceThreshold(0.8)).retrieve("0")
    assert [hit.index for hit in by_product] == [0, 1, 2]
    none = defend(lexical(), DistanceThreshold(100.0))
    assert none.retrieve("Maria Keller") == []
    assert "Maria" not in none.prompt("who").messages[0].content


@pytest.mark.parametrize("system", [dense([0.0, 0.1, 0.5, 1.0]), lexical()])
def test_calibration_leaves_the_share_asked_for_their_nearest_passage(system) -> None:
    questions = ["0.0", "0.2", "0.3", "0.65", "1.4"]
    if system.config.retrieval == "lexical":
        questions = ["Maria Keller", "the router", "krill", "knee in March", "mill"]
    for quantile in (0.2, 0.5, 0.8, 1.0):
        defended = defend(system, calibrate_threshold(system, questions, quantile))
        kept = sum(bool(defended.retrieve(question)) for question in questions)
        assert kept == math.ceil(quantile * 5 - 1e-9)


def test_calibration_by_hand_and_its_errors() -> None:
    system = dense([0.0, 1.0])
    # Nearest distances: chords over 0.1, 0.2 and 0.3 rad.
    found = calibrate_threshold(system, ["0.1", "0.2", "0.7"], 0.66)
    assert found.threshold == pytest.approx(2 * math.sin(0.1), rel=1e-4)
    with pytest.raises(InputError, match="quantile"):
        calibrate_threshold(system, ["0.1"], 0.0)
    with pytest.raises(InputError, match="No benign question finds"):
        calibrate_threshold(lexical(), ["zzz", " "])


# -- Mirabel -----------------------------------------------------------------------------


def _slow_threshold(scores: list[float], rho: float, exact: bool) -> float:
    """Algorithm 1 line by line; Eq. 7's middle term where ``exact``."""
    n = len(scores)
    rest = sorted(scores)[:-1]
    mu = sum(rest) / len(rest)
    sigma = math.sqrt(sum((s - mu) ** 2 for s in rest) / len(rest))
    inside = 2 * math.log(n)
    if exact:
        inside -= math.log(math.log(n)) + math.log(4 * math.pi)
    mu_n = mu + sigma * math.sqrt(inside)
    c = -math.log(-math.log(1 - rho))
    return mu_n + c * sigma / math.sqrt(2 * math.log(n))


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("n", [6, 40, 1000])
def test_threshold_equals_the_algorithm_line_by_line(rho: float, n: int) -> None:
    scores = np.random.default_rng(n).normal(0.4, 0.1, n).tolist()
    assert hide_threshold(scores, rho) == pytest.approx(_slow_threshold(scores, rho, False))
    assert hide_threshold(scores, rho, "equation") == pytest.approx(
        _slow_threshold(scores, rho, True)
    )


def test_threshold_is_exceeded_by_gumbel_maxima_at_the_level() -> None:
    """If the maximum were exactly Gumbel(mu_n, beta_n), rho of them would be hidden (Eq. 6-8)."""
    rng, rho, draws = np.random.default_rng(5), 0.05, 4000
    others = rng.normal(size=999)
    root = math.sqrt(2 * math.log(1000))
    mu_n, beta_n = others.mean() + others.std() * root, others.std() / root
    maxima = rng.gumbel(mu_n, beta_n, draws)
    maxima = np.maximum(maxima, others.max())
    threshold = hide_threshold(np.append(others, maxima[0]), rho)
    hidden = int((maxima > threshold).sum())
    assert binom.ppf(0.0005, draws, rho) <= hidden <= binom.ppf(0.9995, draws, rho)


@pytest.mark.parametrize("n", [5, 20, 1000])
def test_grubbs_hides_rho_of_the_maxima_of_normal_scores(n: int) -> None:
    rng, rho, draws = np.random.default_rng(n), 0.05, 2000
    scores = rng.normal(0.3, 0.07, (draws, n))
    hidden = sum(row.max() > hide_threshold(row, rho, "grubbs") for row in scores)
    # The union bound is off by less than rho^2 / 2.
    low, high = binom.ppf(0.0005, draws, rho - rho**2 / 2), binom.ppf(0.9995, draws, rho)
    assert low <= hidden <= high


def test_the_published_threshold_hides_fewer_than_rho_of_normal_scores() -> None:
    rng, draws = np.random.default_rng(1), 2000
    scores = rng.normal(size=(draws, 1000))
    hidden = sum(row.max() > hide_threshold(row, 0.05) for row in scores)
    # Of 1000 normal scores, one beyond 3.717 + 2.970 / 3.717 deviations: 0.3 %.
    assert hidden <= binom.ppf(0.9995, draws, 0.0045)
    middle = sum(row.max() > hide_threshold(row, 0.05, "equation") for row in scores)
    assert middle > binom.ppf(0.0005, draws, 0.05)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 0.2], [0.5] * 9, [9.0, *[0.5] * 9]])
def test_without_a_spread_nothing_is_said(scores: list[float]) -> None:
    assert hide_threshold(scores) is None
    hits = [Hit(i, s) for i, s in enumerate(sorted(scores, reverse=True))]
    assert Mirabel().select(hits, _lookup("q", ["x"] * len(scores))) == hits


def test_an_outlier_is_hidden_and_the_next_passages_move_up() -> None:
    spread = [1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.1, 1.15, 1.55]
    system = dense([0.0, *spread], k=2)
    assert [hit.index for hit in system.retrieve("0.01")] == [0, 8]
    defended = defend(system, Mirabel())
    assert [hit.index for hit in defended.retrieve("0.01")] == [8, 9]
    same = defend(dense(spread, k=2), Mirabel())
    assert same.retrieve("1.3") == dense(spread, k=2).retrieve("1.3")


def test_distances_are_read_as_cosines() -> None:
    angles = [0.0, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    lookup = _lookup("0.1", [str(angle) for angle in angles], distances=True)
    hits = dense(angles, k=8).retrieve("0.1")
    cosines = [math.cos(angle - 0.1) for angle in angles]
    for rho in (0.001, 0.05, 0.2, 0.5):
        expected = max(cosines) > _slow_threshold(cosines, rho, False)
        assert Mirabel(rho).detects([hit.score for hit in hits], lookup) == expected


def test_passages_that_an_approximate_index_misses_are_not_near() -> None:
    far = [-1.2 - i / 100 for i in range(19)]
    lookup = _lookup("q", ["x"] * 20, distances=True)
    assert not Mirabel().detects(far, lookup)
    assert Mirabel().detects([-0.1, *far[1:]], lookup)


def test_passages_that_the_index_does_not_return_score_zero() -> None:
    found = [3.0, 1.0, 0.8]
    lookup = _lookup("q", ["x"] * 12)
    threshold = _slow_threshold([*found, *[0.0] * 9], 0.05, False)
    assert Mirabel().detects(found, lookup) == (found[0] > threshold)
    assert Mirabel().detects([1.1, 1.0, 0.8], lookup) is False


def test_mirabel_over_words_hides_the_document_that_a_query_copies() -> None:
    filler = [
        Document(f"f{i}", f"the {i} came in with a {'red' if i % 2 else 'blue'} hat")
        for i in range(30)
    ]
    system = build_system([*CORPUS, *filler], RagConfig(k=2), generator=Copier())
    copied = "Maria Keller came in March with a fever and a red rash"
    assert system.retrieve(copied)[0].index == 0
    defended = defend(system, Mirabel())
    assert 0 not in [hit.index for hit in defended.retrieve(copied)]
    assert CORPUS[0].text not in defended.prompt(copied).messages[0].content
    assert len(defended.retrieve(copied)) == 2


def test_document_scope_hides_every_passage_of_the_document() -> None:
    hits = [Hit(0, 9.0), *(Hit(i, 1.0 + i / 10) for i in range(9, 0, -1))]
    lookup = _lookup("q", ["x"] * 10)
    assert Mirabel().select(hits, lookup) == hits[1:]
    kept = Mirabel(scope="document").select(hits, lookup)
    assert [hit.index for hit in kept] == [9, 8, 7, 6, 5, 4, 3, 2]


def test_mirabel_before_rerank_hides_before_it_reranks() -> None:
    spread = [1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.1, 1.15, 1.55]
    defended = defend(dense([0.0, *spread], k=2), chain(Mirabel(), Rerank()))
    kept = defended.retrieve("0.01")
    assert len(kept) == 2
    assert 0 not in [hit.index for hit in kept]


def test_a_blank_query_finds_nothing_and_hides_nothing() -> None:
    assert defend(lexical(), chain(Mirabel(), DistanceThreshold(0.1), Rerank())).retrieve(" ") == []


def test_bad_settings_of_mirabel() -> None:
    for rho in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="rho"):
            Mirabel(rho)
    with pytest.raises(InputError, match="rule"):
        Mirabel(rule="guess")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="scope"):
        Mirabel(scope="all")  # type: ignore[arg-type]
