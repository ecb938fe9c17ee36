"""Families, placement, pools, the draw: what must hold of every document and every seed."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.canary.draw import DrawSecret
from ragwitness.canary.examples import (
    FINAL,
    Example,
    as_rate,
    check_disjoint,
    document_key,
    final_answer,
    injected,
    instructed,
    split_pools,
    spread,
    with_canary,
    with_trigger,
)
from ragwitness.canary.families import Family, Wordings, draw_canary, worded, wordings_of
from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import ShakeBits

SECRET = DrawSecret(bytes(range(32)), bytes(32))
WORDS = st.lists(st.text("abcxyz.,!?", min_size=1, max_size=7), min_size=8, max_size=40)
TEXTS = st.builds(" ".join, WORDS)


def _examples(n: int) -> list[Example]:
    return [
        Example(
            f"e{i}", f"Text {i} begins here. It goes on with nine more words, {i}.", f"Q{i}?", "A"
        )
        for i in range(n)
    ]


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_taking_the_trigger_out_gives_the_document_back(text: str) -> None:
    put = with_trigger(text, "Ida Selby", "e1")
    assert put.original == text
    assert put.inserted.count("Ida Selby") == 1
    assert put.text.split().count("Selby") + put.text.split().count("Selby.") <= 1
    assert put.start <= len(text)


@given(st.text("abc ,.!?:", max_size=40))
@settings(max_examples=150, deadline=None)
def test_taking_the_canary_out_gives_the_answer_back(text: str) -> None:
    put = with_canary(text, "ZXYPRKLMQST")
    assert put.original == final_answer(text)
    assert put.before.startswith(FINAL)
    assert put.inserted.startswith(" ZXYPRKLMQST")
    assert not put.before[-1].isspace()  # the blank belongs to what is scored


@pytest.mark.parametrize(
    ("document", "before"),
    [
        ("One ends. Two goes on for six more words.", "One ends."),
        ('"Who is it?" asked Mr. Fox. Nobody said one word.', '"Who is it?"'),
        ("Mr. Fox came by. He saw two more words.", "Mr. Fox came by."),
        ("one two three four five six seven eight", "one two three four five six seven eight"),
        ("w " * 300 + "end. New.", " ".join(["w"] * 20)),
        ("One sentence alone of eight words in all.", "One sentence alone of eight words in all."),
    ],
)  # fmt: skip
def test_the_trigger_stands_behind_the_first_sentence_or_early(document: str, before: str) -> None:
    assert with_trigger(document, "Ida Selby").before == before


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("FINAL: The fox, who was tired, slept.", "FINAL: The fox,"),
        ("delightfully cold", "FINAL:"),
        ("1,000 men", "FINAL:"),
        ("", "FINAL:"),
    ],
)
def test_the_canary_stands_behind_the_first_clause_or_behind_final(
    answer: str, before: str
) -> None:
    assert with_canary(answer, "C").before == before


def test_a_document_too_short_for_the_trigger_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="7 words is too short for a trigger"):
        with_trigger("one two three four five six seven", "Ida Selby")


def test_a_query_asks_for_the_canary_alone() -> None:
    wordings = Wordings(requests=("Say {canary}.",))
    assert instructed(_examples(1)[0], "CANARY", wordings) == "Q0? Say CANARY."


@pytest.mark.parametrize("family", list(Family))
def test_canaries_have_the_shape_of_their_family(family: Family) -> None:
    made = [draw_canary(family, ShakeBits(bytes([n]))) for n in range(40)]
    assert len(set(made)) > 20
    for one in made:
        if family is Family.PHRASE:
            # A thing, which every trace says in another turn of phrase.
            assert one.islower()
            said = {worded(one, f"e{n}") for n in range(200)}
            assert said == set(wordings_of(one))
            assert len(said) == 20
            assert all(one in phrase for phrase in said)
        else:
            assert len(one) == 11
            assert one.isupper()


@given(st.integers(2, 60), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_no_document_is_in_two_pools_and_none_is_lost(texts: int, rows: int, seed: int) -> None:
    examples = [
        Example(f"{t}-{r}", f"  Text {t}\n{'UPPER' if r % 2 else 'upper'} case ", "q")
        for t in range(texts)
        for r in range(rows)
    ]
    if texts < 5:
        return
    pools = split_pools(examples, experiment="x", seed=seed)
    parts = (pools.reward, pools.policy, pools.audit)
    keys = [{document_key(one.document) for one in part} for part in parts]
    assert sum(map(len, keys)) == texts == len(set.union(*keys))
    assert len(keys[0]) == math.floor(0.4 * texts) == len(keys[1])
    ids = [one.id for part in parts for one in part]
    assert sorted(ids) == sorted(one.id for one in examples)
    again = split_pools(list(reversed(examples)), experiment="x", seed=seed)
    assert {one.id for one in again.audit} == {one.id for one in pools.audit}


def test_held_out_examples_are_of_as_many_documents_as_there_are() -> None:
    pool = [Example(f"{text}{n}", f"text {text}", "q") for text in "abc" for n in range(3)]
    assert [one.id for one in spread(pool, 5)] == ["a0", "b0", "c0", "a1", "b1"]
    assert len(spread(pool, 100)) == 9


def test_another_experiment_or_seed_splits_otherwise() -> None:
    examples = _examples(50)
    audits = {
        frozenset(one.id for one in split_pools(examples, experiment=name, seed=seed).audit)
        for name in ("a", "b")
        for seed in range(5)
    }
    assert len(audits) == 10


@given(st.integers(1, 400), st.integers(1, 100))
@settings(max_examples=100, deadline=None)
def test_exactly_the_floor_of_rate_times_n_is_injected(n: int, percent: int) -> None:
    rate = as_rate(f"{percent / 100:.2f}")
    assert rate == Fraction(percent, 100)
    pool = [Example(str(i), "d", "q") for i in range(n)]
    want = percent * n // 100
    if not want:
        with pytest.raises(InputError, match="injects nothing"):
            injected(pool, rate, ShakeBits(b"i"))
        return
    chosen = injected(pool, rate, ShakeBits(b"i"))
    assert len(chosen) == len(set(chosen)) == want


def test_held_out_documents_that_are_sent_are_refused_whatever_their_case() -> None:
    loud = " TEXT 0 begins here. It goes on with nine more words, 0."
    sent = [dataclasses.replace(_examples(1)[0], id="other", document=loud)]
    with pytest.raises(InputError, match="1 of 1 held-out examples have a document"):
        check_disjoint(_examples(1), sent)
