"""Twin: exact ranks, places and their alternatives, and what answers say of them."""

import itertools
import math
import random
import re

import numpy as np
import pytest

from ragwitness.errors import InputError
from ragwitness.membership.twin.audit import (
    Twin,
    chosen_option,
    hits_p_value,
    place_trouble,
    rank_of,
    rank_sum_distribution,
    rank_sum_p_value,
    read_place,
    standardised_hits,
    standardised_rank_sum,
)
from ragwitness.membership.twin.places import TwinConfig, find_places
from ragwitness.text.words import core
from ragwitness.types import Answer, Capability, Document, Interval, TokenLogprob
from tests.support.copier import Copier
from tests.support.library import CLINIC, FERRY, always, copying, run

_FERRY = Document("ferry", FERRY)
_CLINIC = Document("clinic", CLINIC)


def _places(text: str = FERRY, **options):
    return find_places(text, Copier(), TwinConfig(**options), random.Random(0))


@pytest.mark.parametrize("sizes", [[1], [9], [3, 9], [2, 2, 4], [1, 5, 2, 3]])
def test_the_rank_sum_is_compared_with_every_outcome(sizes) -> None:
    outcomes = [sum(ranks) for ranks in itertools.product(*(range(1, m + 2) for m in sizes))]
    assert rank_sum_distribution(sizes).sum() == pytest.approx(1.0)
    for total in range(len(sizes), sum(sizes) + len(sizes) + 1):
        ranks = _some_ranks(total, sizes)
        expected = sum(outcome <= total for outcome in outcomes) / len(outcomes)
        assert rank_sum_p_value(ranks, sizes) == pytest.approx(expected)
        z = (np.mean(outcomes) - total) / np.std(outcomes)
        assert standardised_rank_sum(ranks, sizes) == pytest.approx(z)


def _some_ranks(total, sizes):
    """Ranks with a given sum."""
    ranks, left = [], total - len(sizes)
    for m in sizes:
        ranks.append(1 + min(m, left))
        left -= ranks[-1] - 1
    return ranks


def test_one_place_has_the_p_value_of_its_rank() -> None:
    for rank in range(1, 11):
        assert rank_sum_p_value([rank], [9]) == pytest.approx(rank / 10)


@pytest.mark.parametrize("chances", [[0.1], [0.1, 0.25], [0.5, 0.1, 0.2, 0.1]])
def test_hits_are_compared_with_every_outcome(chances) -> None:
    for hits in range(len(chances) + 1):
        expected = sum(
            math.prod(p if hit else 1 - p for p, hit in zip(chances, flags, strict=True))
            for flags in itertools.product([True, False], repeat=len(chances))
            if sum(flags) >= hits
        )
        assert hits_p_value(hits, chances) == pytest.approx(expected)
    assert standardised_hits(1, [0.5]) == pytest.approx(1.0)


def test_every_doubt_counts_against_the_true_value() -> None:
    exact = Interval(0.5, 0.5)
    assert rank_of(exact, [Interval(0.4, 0.4), Interval(0.6, 0.6)]) == 2
    assert rank_of(exact, [exact, Interval(0.0, 0.49)]) == 2
    assert rank_of(Interval(0.3, 0.7), [Interval(0.1, 0.3), Interval(0.0, 0.2)]) == 2
    unlisted = Interval(-math.inf, -2.0)
    assert rank_of(unlisted, [unlisted, Interval(-math.inf, -math.inf)]) == 3


def test_the_p_value_is_valid_where_values_are_exchangeable() -> None:
    """Censoring and ties included: intervals from exchangeable numbers, read with doubt."""
    rng, runs = random.Random(5), 3000
    p_values = []
    for _ in range(runs):
        ranks, sizes = [], []
        for m in (9, 4, 6):
            numbers = [round(rng.random(), 1) for _ in range(m + 1)]
            known = [Interval(x, x) if x >= 0.3 else Interval(0.0, 0.3) for x in numbers]
            ranks.append(rank_of(known[0], known[1:]))
            sizes.append(m)
        p_values.append(rank_sum_p_value(ranks, sizes))
    for level in (0.01, 0.05, 0.1, 0.3):
        spread = 4 * math.sqrt(level * (1 - level) / runs)
        assert np.mean(np.array(p_values) <= level) <= level + spread


def test_places_are_apart_fresh_and_not_at_the_beginning() -> None:
    places = _places(places=20)
    indices = [place.value.index for place in places]
    assert len(places) >= 5
    assert indices == sorted(indices)
    assert min(indices) >= 5
    assert all(b - a >= 2 for a, b in itertools.pairwise(indices))
    words = [core(word).casefold() for word in FERRY.split()]
    for place in places:
        said = words[: place.value.index]
        assert place.value.text.casefold() not in said
        assert FERRY.startswith(place.prefix)
        assert FERRY[len(place.prefix) :].lstrip().startswith(place.value.text)
        for other in place.alternatives:
            assert other.casefold() not in {*said, place.value.text.casefold()}


def test_alternatives_are_of_the_kind_and_about_as_probable() -> None:
    for place in _places(places=20, band=1.0):
        assert 3 <= len(place.alternatives) == len(place.logprobs) <= 9
        assert len(set(place.alternatives)) == len(place.alternatives)
        assert all(abs(p - place.true_logprob) <= 1.0 for p in place.logprobs)
        shape = re.sub(r"\d", "#", place.value.text)
        for other in place.alternatives:
            if place.value.kind == "number":
                assert re.sub(r"\d", "#", other) == shape
            else:
                assert other[0].isupper() == (place.value.kind == "name")


def test_alternatives_come_from_texts_given() -> None:
    background = [" ".join(f"meadow{c} and" for c in "abcdefghijklmnop")]
    places = next(Twin(Copier(), background=background).probe(_FERRY))
    assert places
    audit = Twin(Copier(), background=background)
    found = find_places(FERRY, Copier(), audit.config, random.Random(0), audit.background)
    own = {core(word) for word in FERRY.split()}
    others = {a for p in found if p.value.kind == "word" for a in p.alternatives}
    assert others
    assert all(other.startswith("meadow") or other in own for other in others)
    assert audit.describe()["drawn from"] == "texts given"


def test_the_same_document_is_asked_the_same() -> None:
    for access in ("logprobs", "text"):
        config = TwinConfig(access=access)
        first = next(Twin(Copier(), config).probe(_FERRY))
        assert next(Twin(Copier(), config).probe(_FERRY)) == first


def test_a_member_scores_higher_than_a_non_member() -> None:
    audit = Twin(Copier())
    assert audit.requires == {Capability.TOP_LOGPROBS}
    assert audit.name == "twin"
    inside, outside = run(audit, _FERRY, copying(FERRY)), run(audit, _CLINIC, copying(FERRY))
    assert inside.value > 2 > 0 > outside.value
    assert inside.details["p_exact"] < 1e-4
    assert outside.details["p_exact"] > 0.5
    assert inside.details["score/evidence"] == pytest.approx(-math.log10(inside.details["p_exact"]))
    assert inside.details["first"] == inside.details["places"]
    assert outside.details["censored"] == outside.details["places"]
    assert inside.details["score/gain"] > outside.details["score/gain"]
    assert inside.evidence[0].probability.low > 0.5
    assert inside.evidence[0].word in FERRY


def test_a_member_is_told_by_its_choices_alone() -> None:
    audit = Twin(Copier(), TwinConfig(access="text"))
    assert audit.requires == {Capability.TEXT}
    assert audit.name == "twin (text)"
    inside = run(audit, _FERRY, copying(FERRY))
    assert inside.details["first"] == inside.details["places"]
    assert inside.details["p_exact"] < 1e-3
    outside = run(audit, _FERRY, always(Answer("A)")))
    assert outside.details["first"] < outside.details["places"] / 2
    assert outside.value < inside.value
    assert outside.details["p_exact"] > 0.05


def test_extreme_settings_stay_finite() -> None:
    config = TwinConfig(access="text", band=1e9, alternatives=20, places=20)
    score = run(Twin(Copier(), config), _FERRY, copying(FERRY))
    assert all(math.isfinite(value) for value in score.details.values())


@pytest.mark.slow
def test_always_the_same_letter_is_right_by_chance_only() -> None:
    hits = asked = 0
    for seed in range(60):
        score = run(Twin(Copier(), TwinConfig(access="text", seed=seed)), _FERRY,
                    always(Answer("B")))  # fmt: skip
        hits += score.details["first"]
        asked += score.details["places"]
    per_place = 1 / (1 + 9)
    # Alternatives may be fewer than nine, which makes chance hits more frequent, at most 1 in 4.
    assert per_place / 2 < hits / asked < 0.25


def test_a_text_query_lists_every_option_once_and_ends_with_the_passage() -> None:
    for query in next(Twin(Copier(), TwinConfig(access="text")).probe(_FERRY)):
        listed = re.findall(r"^[A-J]\) (.+)$", query.prompt, re.MULTILINE)
        assert len(listed) == len(set(listed)) >= 4
        assert FERRY.startswith(query.prompt.rsplit("\n\n", 1)[1])
        assert query.top_logprobs == 0


@pytest.mark.parametrize(
    ("said", "index"),
    [
        ("Oxcombe", 1),
        ("oxcombe.", 1),
        ("B) Oxcombe", 1),
        ("B", 1),
        ("(b)", 1),
        ("Answer: C", 2),
        ("<b>14</b>", 2),
        ("Oxcombe, not Tamarind", 1),
        ("It is Tamarind", 0),
        ("either Oxcombe or Tamarind", None),
        ("140", None),
        ("Z)", None),
        ("A dog", None),
        ("", None),
    ],
)
def test_a_choice_is_read_by_word_or_letter(said, index) -> None:
    assert chosen_option(said, ["Tamarind", "Oxcombe", "14"]) == index


def _token(text: str, p: float, *others: tuple[str, float]) -> TokenLogprob:
    listed = sorted([(text, p), *others], key=lambda pair: -pair[1])
    return TokenLogprob(text, math.log(p), tuple((t, math.log(q)) for t, q in listed))


def test_the_proxys_own_preference_is_taken_off() -> None:
    place = _places()[0]
    first = place.alternatives[0]
    answer = Answer("x", (_token(f" {place.value.text}", 0.4, (f" {first}", 0.2)),))
    reading = read_place(place, answer)
    assert reading.true == Interval(0.4, 0.4)
    assert reading.others[0] == Interval(0.2, 0.2)
    assert reading.others[1].low == 0.0
    true, others = reading.adjusted()
    assert true.low == pytest.approx(math.log(0.4) - place.true_logprob)
    assert others[0].low == pytest.approx(math.log(0.2) - place.logprobs[0])
    assert others[1].low == -math.inf


_SOME = (TokenLogprob(" some", -0.1),)


def _answers(text="some words", tokens=_SOME, **more):
    return Answer(text, tokens, **more)


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (Answer("", error="lost"), "failed"),
        (_answers("I'm sorry, I cannot do that."), "refused"),
        (_answers("", ()), "empty"),
        (_answers(tokens=None), "no_logprobs"),
        (_answers("The ferry to Marrowdale leaves"), "repeated"),
    ],
)
def test_fewer_than_half_readable_is_a_reason_and_a_count(answer, key) -> None:
    score = run(Twin(Copier()), _FERRY, always(answer))
    assert score.value is None
    assert score.reason
    assert score.details[key] == score.details["places"]


def test_prose_that_names_no_option_is_counted_and_no_evidence_of_membership() -> None:
    score = run(Twin(Copier(), TwinConfig(access="text")), _FERRY, always(Answer("who knows?")))
    assert score.details["no_choice"] == score.details["places"]
    assert score.details["p_exact"] == pytest.approx(1.0)
    assert score.value < 0


@pytest.mark.parametrize(
    "answer", [Answer("", error="lost"), Answer(""), Answer("I cannot, sorry")]
)
def test_choices_refused_or_lost_are_a_reason(answer) -> None:
    score = run(Twin(Copier(), TwinConfig(access="text")), _FERRY, always(answer))
    assert score.value is None
    assert "8 of 8 answers were" in score.reason


def test_a_few_unreadable_places_are_left_out() -> None:
    member, turns = copying(FERRY), itertools.count()
    score = run(
        Twin(Copier()),
        _FERRY,
        lambda query: Answer("", error="lost") if next(turns) < 2 else member(query),
    )
    assert score.details["failed"] == 2
    assert score.value > 1


@pytest.mark.parametrize(
    "tokens",
    [
        (TokenLogprob(" some", math.nan),),
        (TokenLogprob("", -0.5), TokenLogprob("\ufffd", -1.0)),
        (TokenLogprob(" unrelated", 0.0, ((" unrelated", 0.0), (" other", -math.inf))),),
    ],
)
def test_tokens_that_say_nothing_count_against_membership(tokens) -> None:
    score = run(Twin(Copier()), _FERRY, always(Answer("something else", tokens)))
    assert score.details["p_exact"] == pytest.approx(1.0)
    assert score.value < 0


def test_what_is_left_out_does_not_depend_on_which_value_is_true() -> None:
    place = _places()[0]
    values = (place.value.text, *place.alternatives)
    found = {place_trouble(_answers(value), place, logprobs=True) for value in values}
    assert found == {None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Marrowdale",
        "it is what it is and so it was",
        "lighthouse " * 60,
        "... --- !!! ,,, ;;; :::",
    ],
)
def test_too_few_values_are_unscorable_without_a_query(text) -> None:
    score = run(Twin(Copier()), Document("d", text), always(Answer("x")))
    assert score.value is None
    assert "can be exchanged" in score.reason


@pytest.mark.parametrize(
    "text",
    [
        "Паром отходит в девять часов, и капитан держит бурую собаку, которая лает на каждый маяк"
        " между городом и дальними островами, пока рыбаки чинят старые сети.",
        "私の猫は毎朝六時に起きて庭の魚を見ます。白い犬は川の近くで眠る。",
        " ".join([FERRY, CLINIC] * 40),
        "The prefix {prefix} and then 14 {options} with 250 other {options} on 12 lighthouses.",
    ],
    ids=["Cyrillic", "unspaced", "very long", "slots"],
)
@pytest.mark.parametrize("access", ["logprobs", "text"])
def test_any_text_is_asked_about_or_named_unscorable(text, access) -> None:
    asked = []

    def answer(query):
        asked.append(query.prompt)
        return copying(text)(query)

    score = run(Twin(Copier(), TwinConfig(access=access)), Document("d", text), answer)
    assert all(prompt.rsplit("\n\n", 1)[1] in text for prompt in asked)
    assert score.reason if score.value is None else 0 < score.details["p_exact"] <= 1


def test_a_proxy_with_a_short_context_still_finds_places() -> None:
    class Short(Copier):
        context_length = 30

    assert len(find_places(FERRY, Short(), TwinConfig(), random.Random(0))) >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"places": 0}, "places"),
        ({"alternatives": 2}, "fewest_alternatives"),
        ({"fewest_places": 9}, "fewest_places"),
        ({"access": "both"}, "access"),
        ({"access": "text", "alternatives": 26}, "by letter"),
        ({"band": 0.0}, "band"),
        ({"band": float("nan")}, "band"),
        ({"skip_words": -1}, "skip_words"),
        ({"prompt": "Go on."}, "prompt"),
        ({"choice_prompt": "{prefix}"}, "choice_prompt"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        TwinConfig(**options)
