"""The transcript's steps and its one form."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.crypto.canonical import canonical
from ragwitness.crypto.proofs.ceremony import (
    MOST_STEPS,
    CeremonyTranscript,
    check_steps,
)
from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.points import G1_GENERATOR, R
from ragwitness.errors import InputError, VerificationError
from tests.unit.crypto.proofs.ceremony_toys import SHAPE

FACTORS = {"alpha": 5, "beta": R - 7, "kzg": 1 << 90, "tau": 11}

pytestmark = pytest.mark.usefixtures("arithmetic")


@pytest.fixture
def two() -> CeremonyTranscript:
    return CeremonyTranscript(SHAPE).added("ann", FACTORS).added("bob", FACTORS)


def test_each_number_is_the_product_of_all_factors(two: CeremonyTranscript) -> None:
    check_steps(two)
    for label, factor in FACTORS.items():
        assert two.points[label] == msm([G1_GENERATOR], [factor**2])
    assert two.points["link"] == two.points["norm"] == G1_GENERATOR


def test_two_steps_with_the_same_factors_have_different_digests(two: CeremonyTranscript) -> None:
    again = CeremonyTranscript(SHAPE).added("ann", FACTORS)
    assert again.rounds[0][0].points == two.rounds[0][0].points
    assert again.last != two.rounds[0][0].digest  # the proof's nonce is fresh
    assert two.last == two.rounds[0][1].digest


def test_a_transcript_is_read_back(two: CeremonyTranscript) -> None:
    again = CeremonyTranscript.parse(two.encode())
    assert again == two
    assert again.seal == two.seal
    assert again.seal.contributors == (("ann", "bob"),)


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 61])
def test_names_are_plain(two: CeremonyTranscript, name: str) -> None:
    with pytest.raises(InputError, match="plain characters"):
        two.added(name, FACTORS)


def changed(two: CeremonyTranscript, change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(two.encode())
    change(fields)
    return canonical(fields)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda f: f.update(version="ragwitness/ceremony/v2"), "ceremony.version"),
        (lambda f: f.update(more=1), "ceremony.fields"),
        (lambda f: f.update(rounds=[]), "ceremony.fields"),
        (lambda f: f.update(rounds=[[], [], []]), "ceremony.fields"),
        (lambda f: f.update(rounds=[1]), "ceremony.fields"),
        (lambda f: f.update(shape=1), "setup.shape"),
        (lambda f: f["shape"].update(slots=1), "setup.shape"),
        (lambda f: f["rounds"][0][0].pop("prior"), "ceremony.fields"),
        (lambda f: f["rounds"][0][0].update(name=1), "ceremony.fields"),
        (lambda f: f["rounds"][0][0].update(prior="ab"), "ceremony.hex"),
        (lambda f: f["rounds"][0][0].update(points=1), "ceremony.fields"),
        (lambda f: f["rounds"][0][0].update(points="1" * 128), "ceremony.hex"),
        (lambda f: f["rounds"][0][0].update(points="1" * 512), "ceremony.curve"),
        (lambda f: f["rounds"][0][0].update(points="f" * 512), "ceremony.field"),
        (lambda f: f["rounds"][0][0].update(proofs="f" * 768), "ceremony.field"),
        (lambda f: f["rounds"][0][0].update(proofs="F" * 768), "ceremony.hex"),
        (lambda f: f["rounds"].append(f["rounds"][0]), "ceremony.hex"),
        (lambda f: f["rounds"].__setitem__(0, [0] * (MOST_STEPS + 1)), "ceremony.fields"),
    ],
)
def test_every_other_transcript_is_refused_by_name(
    two: CeremonyTranscript, change: Callable[[dict[str, Any]], object], check: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        CeremonyTranscript.parse(changed(two, change))
    assert caught.value.check == check


def test_other_texts_are_refused(two: CeremonyTranscript) -> None:
    with pytest.raises(VerificationError) as caught:
        CeremonyTranscript.parse(two.encode() + b" ")
    assert caught.value.check == "ceremony.canonical"


@pytest.mark.parametrize("part", ["points", "proofs"])
@pytest.mark.parametrize("label", FACTORS)
def test_no_part_of_a_step_can_be_anothers(two: CeremonyTranscript, part: str, label: str) -> None:
    """One challenge covers all numbers of a step: a good name cannot keep a stranger's factor."""
    other = CeremonyTranscript(SHAPE).added("ann", {name: f + 1 for name, f in FACTORS.items()})
    mine, theirs = two.rounds[0][0], other.rounds[0][0]
    mixed = {**getattr(mine, part), label: getattr(theirs, part)[label]}
    step = replace(mine, **{part: mixed})
    lied = CeremonyTranscript.parse(replace(two, rounds=((step,),)).encode())
    with pytest.raises(VerificationError, match="'ann' does not show") as caught:
        check_steps(lied)
    assert caught.value.check == "ceremony.proof"


def test_a_name_stands_once_in_a_round(two: CeremonyTranscript) -> None:
    with pytest.raises(InputError, match="has contributed"):
        two.added("bob", FACTORS)
    fields = json.loads(two.encode())
    fields["rounds"][0][1]["name"] = "ann"
    with pytest.raises(VerificationError) as caught:
        check_steps(CeremonyTranscript.parse(canonical(fields)))
    assert caught.value.check == "ceremony.name"
