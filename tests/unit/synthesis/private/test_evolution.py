"""Private evolution: what a record can change, what is kept, and what the noise hides."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document, Query
from ragwitness.privacy.sampler import ShakeBits, discrete_gaussian
from ragwitness.stats.rates import proportion_interval
from ragwitness.synthesis.agents import DOMAINS, Asking, MakingConfig, together
from ragwitness.synthesis.generator import (
    Fate,
    NamedRows,
    Steps,
    StoppedError,
)
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private.accounting import (
    best,
    epsilon_of,
    grid,
    nearest,
    shares,
    system_noise,
    vectors_of,
    with_noise,
)
from ragwitness.synthesis.private.evolution import (
    Candidates,
    CorpusSynthesis,
    PrivateConfig,
    PrivateEvolution,
    load_embedding,
    word_weights,
)

THEMES = "tide lantern orchard harbour violin glacier saddle pepper".split()
PUBLIC = [f"{theme} {word} is told of here" for theme in THEMES for word in ("old", "new", "lost")]


def embed(texts: Sequence[str]) -> np.ndarray:
    """One direction per theme, with a little of each further word."""
    found = np.zeros((len(texts), 16), np.float32)
    for row, text in zip(found, texts, strict=True):
        for n, theme in enumerate(THEMES):
            row[n] += theme in text
        for n, word in enumerate(("old", "new", "lost")):
            row[8 + n] += 0.2 * (word in text)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


def method(draw=system_noise, **settings: float) -> PrivateEvolution:
    config = PrivateConfig(**{"epsilon": 4.0, "texts": 4, **settings})
    return PrivateEvolution(config, Candidates(tuple(PUBLIC), "fake", lambda: embed), draw=draw)


def records(*themes: str, each: int = 30) -> list[Document]:
    return [Document(f"{t}{n}", f"my secret {t} number {n}") for t in themes for n in range(each)]


def follow(made: PrivateEvolution, documents: list[Document], shelf: NamedRows) -> CorpusSynthesis:
    steps = made.make_all(documents, SyntheticGuard([], (), GuardConfig(pii="none")), shelf)
    with pytest.raises(StopIteration) as stop:
        next(steps)
    return stop.value.value


def test_the_texts_are_public_and_follow_the_votes() -> None:
    made = method()
    assert made.most(10) == 0
    result = follow(made, records("tide", "violin", each=200), NamedRows(None, "votes"))
    passed = [one for one in result.made if one.fate is Fate.PASSED]
    assert [one.record for one in passed] == [f"text-{n + 1}" for n in range(len(passed))]
    assert {one.text for one in passed} <= set(PUBLIC)
    assert {one.text.split()[0] for one in passed[:2]} == {"tide", "violin"}
    assert len(result.made) == 4


@pytest.mark.parametrize(
    ("public", "most"),
    [
        (tuple(PUBLIC), 2 * 16 * 2),  # public texts at first, then variations in two rounds
        ((), 2 * (1 + 16 * 3)),  # a list of matters, and as many drafts
    ],
)
def test_no_more_is_asked_than_one_text_for_each_candidate(
    public: tuple[str, ...], most: int
) -> None:
    """Of 4 texts, 16 candidates, in 3 rounds, with 2 attempts each."""
    config = MakingConfig(domain=DOMAINS["wiki"], asking=Asking(attempts=2))
    source = Candidates(public, "fake", lambda: embed, "m")
    made = PrivateEvolution(PrivateConfig(epsilon=4.0, texts=4), source, config)
    assert made.most(10) == most


def test_a_record_changes_one_count_of_a_round_by_one() -> None:
    rng = np.random.default_rng(1)
    for dim in (2, 8, 48):
        candidates = grid(units(rng, 17, dim))
        vectors = units(rng, 40, dim)
        vectors[5:12] = vectors[4]  # equal records
        vectors[20:24] = 0.0  # and such as say nothing, and abstain
        everybody = grid(vectors)
        whole = nearest(everybody, candidates)
        assert whole.sum() == 36
        for left_out in range(40):
            rest = nearest(np.delete(everybody, left_out, axis=0), candidates)
            assert np.abs(whole - rest).sum() == (not 20 <= left_out < 24)


def units(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    found = rng.normal(size=(n, dim))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_a_vote_does_not_depend_on_who_else_votes() -> None:
    def in_company(texts: Sequence[str]) -> np.ndarray:
        """An embedder whose last digits follow the batch, as padding makes them."""
        return embed(texts) * np.float32(1 - 1e-3 * len(texts))

    texts = [d.text for d in records("tide", "violin", each=3)]
    alone = [vectors_of([text], in_company) for text in texts]
    assert np.array_equal(vectors_of(texts, in_company), np.concatenate(alone))
    # Whole numbers: no order or size of a block changes a comparison.
    rng = np.random.default_rng(0)
    many, candidates = grid(units(rng, 2500, 384)), grid(units(rng, 60, 384))
    apart = sum(nearest(many[n : n + 1], candidates) for n in range(2500))
    assert np.array_equal(nearest(many, candidates), apart)
    assert grid(np.array([[np.nan, np.inf, 2.0]], np.float32)).tolist() == [[0, 32768, 32768]]


def test_several_questions_are_followed_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragwitness.synthesis.agents._ABREAST", 3)

    def part(n: int) -> Steps[str]:
        for turn in range(n):
            (answer,) = yield [Query(f"{n} {turn}")]
            assert answer.text == f"to {n} {turn}"
        if n == 2:
            raise StoppedError(Fate.REFUSED, "no")
        return f"done {n}"

    batches: list[list[str]] = []

    def answered(steps: Steps[list[str | StoppedError]]) -> list[str | StoppedError]:
        answers = None
        while True:
            try:
                asked = steps.send(answers)
            except StopIteration as stop:
                return stop.value
            batches.append([query.prompt for query in asked])
            answers = [Answer(f"to {query.prompt}") for query in asked]

    found = answered(together([part(n) for n in (3, 0, 2, 1)]))
    assert batches == [["3 0", "2 0"], ["3 1", "2 1"], ["3 2"], ["1 0"]]
    first, second, third, last = found
    assert (first, second, last) == ("done 3", "done 0", "done 1")
    assert isinstance(third, StoppedError)
    assert third.fate is Fate.REFUSED


def test_every_count_has_noise_of_its_own_of_the_right_size() -> None:
    noisy = with_noise(np.zeros(6000, np.int64), Fraction(53491, 1000), system_noise)
    low, high = 53.491 * (1 - 5 * math.sqrt(2 / 6000)), 53.491 * (1 + 5 * math.sqrt(2 / 6000))
    assert low < np.var(noisy) < high
    assert abs(np.mean(noisy)) < 5 * math.sqrt(53.491 / 6000)
    assert noisy != with_noise(np.zeros(6000, np.int64), Fraction(53491, 1000), system_noise)


def test_what_is_kept_is_not_drawn_again(tmp_path) -> None:
    drawn: list[Fraction] = []

    def draw(variance: Fraction) -> int:
        drawn.append(variance)
        return random.Random(len(drawn)).randrange(-3, 4)

    documents, path = records("tide", "pepper"), tmp_path / "votes.jsonl"
    made = method(draw)
    with NamedRows(path, "votes") as shelf:
        first = follow(made, documents, shelf)
    asked = len(drawn)
    assert asked == sum(len(json.loads(line)["noisy"]) for line in path.read_text().splitlines())
    with NamedRows(path, "votes") as shelf:
        assert follow(made, documents, shelf) == first
    assert len(drawn) == asked
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:30])  # killed while the last was written
    with NamedRows(path, "votes") as shelf:
        again = follow(made, documents, shelf)
    assert len(drawn) == asked + len(json.loads(lines[-1])["noisy"])
    assert len(again.made) == 4
    assert set(drawn) == {made.private.variance}


@pytest.mark.parametrize("change", [{"epsilon": 3.0}, {"texts": 3}, {"rounds": 2}])
def test_a_folder_holds_one_choice(change: dict[str, float]) -> None:
    shelf, documents = NamedRows(None, "votes"), records("tide")
    follow(method(), documents, shelf)
    with pytest.raises(InputError, match="cost more than one epsilon"):
        next(method(**change).make_all(documents, SyntheticGuard([]), shelf))
    with pytest.raises(InputError, match="another corpus"):
        next(method().make_all(documents[1:], SyntheticGuard([]), shelf))


def test_a_guard_over_the_records_withholds_nothing() -> None:
    documents = [*records("tide", each=400), Document("copy", PUBLIC[0])]
    strict = SyntheticGuard([d.text for d in documents] + PUBLIC, (), GuardConfig(pii="none"))
    assert strict.violation(PUBLIC[0]) is not None
    steps = method().make_all(documents, strict, NamedRows(None, "votes"))
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert "tide" in stop.value.value.made[0].text


def test_form_is_still_a_condition() -> None:
    mail = "tide old is told of by ada@fenn.org"
    candidates = Candidates((*PUBLIC, mail), "fake", lambda: embed)
    made = PrivateEvolution(PrivateConfig(4.0, texts=10), candidates)
    steps = made.make_all(
        records("tide"),
        SyntheticGuard([], (), GuardConfig(pii="contacts")),
        NamedRows(None, "votes"),
    )
    with pytest.raises(StopIteration) as stop:
        next(steps)
    result = stop.value.value
    assert all("@" not in one.text for one in result.made)
    lost = [one for one in result.made if one.record.startswith("draft")]
    assert {one.fate for one in lost} == {Fate.WITHHELD}
    assert {one.reason for one in lost} == {"contact details or numbers (EMAIL)"}
    assert "not voted on" in result.warnings[-1]


def test_too_few_records_for_the_noise_are_said_to_be_so() -> None:
    result = follow(
        method(epsilon=0.05, rounds=1, floor=3.0), records("tide", each=1), NamedRows(None, "v")
    )
    assert any("corpus is small for this epsilon" in warning for warning in result.warnings)
    assert {one.fate for one in result.made} <= {Fate.PASSED, Fate.WITHHELD}
    loose = follow(method(delta=0.1), records("tide"), NamedRows(None, "v"))
    assert any("is not below 1 in 30 records" in warning for warning in loose.warnings)


def test_an_attacker_who_sees_all_votes_learns_no_more_than_epsilon() -> None:
    """A planted record, the best test on the counts that it moves, and a bound on its success."""
    private = PrivateConfig(1.5, 1e-2, rounds=2)
    claimed = epsilon_of(private.delta, private.variance, 2)
    found = learned(private.variance, private.delta)
    assert 0.3 < found <= claimed <= 1.5 * (1 + 1e-5)
    assert learned(private.variance / 9, private.delta) > claimed  # the attack can tell


def learned(variance: Fraction, delta: float, trials: int = 2000) -> float:
    """Return a lower bound of epsilon, wrong in one of 100 cases, from two rounds of votes."""
    source = ShakeBits(b"attack")
    candidates = grid(embed(PUBLIC[:12]))
    texts = [d.text for d in records("tide", each=3)]
    worlds = [texts, [*texts, "my secret orchard"]]
    without, planted = (nearest(vectors_of(world, embed), candidates) for world in worlds)
    (moved,) = np.flatnonzero(planted - without)
    seen = []
    for counts in (without, planted):
        rounds = (
            with_noise(counts[moved : moved + 1], variance, lambda v: discrete_gaussian(v, source))
            for _ in range(2 * trials)
        )
        sums = np.array([count for (count,) in rounds]).reshape(trials, 2).sum(axis=1)
        seen.append(int(np.count_nonzero(sums > 2)))
    high = proportion_interval(seen[0], trials, 0.99)[1]
    low = proportion_interval(seen[1], trials, 0.99)[0]
    return math.log((low - delta) / high)


def test_places_follow_the_votes() -> None:
    assert shares([10, 0, 30, -5], 8, 0.0).tolist() == [2, 0, 6, 0]
    assert shares([10, 1, 30, -5], 4, 2.0).tolist() == [1, 0, 3, 0]
    assert shares([-1, -2, -3], 4, 0.0).sum() == 4  # nobody stands out: all alike
    assert best([3, 9, 5, 1], 3, 2.0) == [1, 2, 0]
    assert best([3, 9, 5, 1], 3, 4.0) == [1, 2]


def test_the_statement_names_what_epsilon_does_and_does_not_cover() -> None:
    told = method(epsilon=2.0).describe()
    assert told["privacy"] == "epsilon 2, delta 1e-06, for one record added or removed"
    assert "another run over the same records" in told["does not cover"]
    assert "trained" in told["assumes"]
    assert "not from --seed" in told["noise"]
    assert "withholding it would tell of the record" in told["conditions"]
    assert float(told["a record replaced"].removeprefix("epsilon ")) > 2.0


def test_word_weights_know_public_words_alone() -> None:
    measure = load_embedding("words", PUBLIC)
    vectors = measure(["tide old", "tide new", "glacier lost", "ada fenn"])
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1, 1, 1, 0], abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    with pytest.raises(InputError, match="no two of them share one"):
        word_weights(["one", "other"])


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": -1.0}, "epsilon must be above 0"),
        ({"epsilon": math.nan}, "epsilon must be above 0"),
        ({"epsilon": math.inf}, "epsilon must be above 0"),
        ({"delta": 0.0}, "delta must be at least"),
        ({"delta": 1.0}, "delta must be at least"),
        ({"texts": 0}, "texts must be 1"),
        ({"rounds": 0}, "rounds 1 to"),
    ],
)
def test_numbers_out_of_range_are_named(settings: dict[str, float], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        method(**settings)


def test_nothing_to_choose_from_is_named() -> None:
    with pytest.raises(InputError, match="nothing to choose from"):
        PrivateEvolution(PrivateConfig(1.0), Candidates((), "fake", lambda: embed))
    with pytest.raises(InputError, match="domain auto has none"):
        PrivateEvolution(PrivateConfig(1.0), Candidates((), "fake", lambda: embed, "m"))
    drafts = MakingConfig(domain=DOMAINS["medical"])
    with pytest.raises(InputError, match="words of public texts"):
        PrivateEvolution(PrivateConfig(1.0), Candidates((), "words", lambda: embed, "m"), drafts)
