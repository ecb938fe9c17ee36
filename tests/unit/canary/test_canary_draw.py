"""The secret draw: uniform, committed to, and opened; settings and files that are refused."""

from __future__ import annotations

import dataclasses

import pytest
from scipy.stats import chisquare

from ragwitness.canary.draw import (
    Design,
    DrawSecret,
    bits_of,
    check_draw,
    commitment_of,
    draw_slots,
)
from ragwitness.canary.examples import Example, read_examples
from ragwitness.canary.families import draw_names, markers_in, shuffled
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.privacy.sampler import ShakeBits
from ragwitness.privacy.streams import beacon_bytes

SECRET = DrawSecret(bytes(range(32)), bytes(32))


def test_triggers_are_different_names() -> None:
    made = draw_names(1000, ShakeBits(b"t"))
    assert len(set(made)) == 1000
    assert all(name.replace(" ", "").isalpha() and name.count(" ") == 1 for name in made)
    assert markers_in(f"so {made[0].upper()}, yes", made) == {made[0]}
    with pytest.raises(InputError, match="2 to "):
        draw_names(10**6, ShakeBits(b"t"))


@pytest.mark.slow
def test_the_place_of_the_planted_trigger_is_uniform_over_seeds_and_beacons() -> None:
    design = Design(candidates=8)
    by_seed = [0] * 8
    by_beacon = [0] * 8
    for n in range(1600):
        seed = DrawSecret(n.to_bytes(32, "big"), bytes(32))
        by_seed[draw_slots(design, seed).slots[0].chosen] += 1
        by_beacon[draw_slots(design, SECRET, f"round {n}").slots[0].chosen] += 1
    assert chisquare(by_seed).pvalue > 1e-4
    assert chisquare(by_beacon).pvalue > 1e-4


def test_an_order_is_drawn_uniformly() -> None:
    counts: dict[str, int] = {}
    bits = ShakeBits(b"orders")
    for _ in range(2400):
        order = "".join(shuffled("abcd", bits))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_an_opened_draw_is_the_committed_one_and_any_change_is_named() -> None:
    design, source = Design(slots=2, candidates=16), "round 7 of the public lottery"
    published = commitment_of(design, "ab" * 32, SECRET, source)
    opened = check_draw(published, design, "ab" * 32, SECRET, source, "123445")
    assert opened == draw_slots(design, SECRET, "123445")
    assert opened != draw_slots(design, SECRET, "123446")
    for changed in (
        (dataclasses.replace(design, candidates=17), "ab" * 32, SECRET, source),
        (design, "ac" * 32, SECRET, source),
        (design, "ab" * 32, dataclasses.replace(SECRET, seed=bytes(32)), source),
        (design, "ab" * 32, SECRET, "round 8 of the public lottery"),
    ):
        with pytest.raises(VerificationError) as found:
            check_draw(published, *changed, "123445")
        assert found.value.check == "commitment.opening"
    for nothing in ("", " ,-", "0x123445", "12 34 45", "12344", "AB"):
        with pytest.raises(VerificationError) as found:
            check_draw(published, design, "ab" * 32, SECRET, source, nothing)
        assert found.value.check == "draw.beacon"


def test_a_beacon_is_exact_bytes_however_it_is_spelled() -> None:
    """Else an auditor would look for the spelling whose draw it likes."""
    for spelled in ("0xAB12cd", "ab12CD", " 0XAB 12 cd\n", "AB12CD"):
        assert beacon_bytes(spelled) == "ab12cd"
    for wrong in ("", "0x", "ab1", "round 7", "\uff10xab12", "ab:12"):
        with pytest.raises(InputError, match="not bytes in hex"):
            beacon_bytes(wrong)


@pytest.mark.parametrize(
    "changed",
    [
        {"candidates": 1},
        {"slots": 0},
        {"rate": "0"},
        {"rate": "1.01"},
        {"rate": "nan"},
        {"rate": "many"},
        {"held_out": -1},
        {"releases": -1},
        {"rate": "1e-999999999"},
        {"alpha": "0"},
        {"alpha": "1"},
        {"alpha": "five"},
    ],
)
def test_settings_that_cannot_be_drawn_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Design(**changed)  # type: ignore[arg-type]


def test_a_seed_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="32 bytes"):
        bits_of(DrawSecret(b"short", bytes(32)), "", "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no example"),
        ("{", "is no example"),
        ("[1]", "is no example"),
        ('{"document": 3, "question": "q"}', "is no example"),
        ('{"document": "d"}', "has no query"),
        ('{"question": "q"}', "has no document"),
        ('{"id": "a", "document": "d", "question": "q"}\n' * 2, "is there twice"),
        ('{"document": "\\ud800", "question": "q"}', "half a surrogate pair"),
    ],
)
def test_files_that_hold_no_examples_are_refused_by_line(tmp_path, text: str, said: str) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_examples(path)


def test_both_spellings_of_a_row_are_read(tmp_path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(
        '{"context": "d", "query": "q"}\n\n{"text": "e", "question": "r", "answer": "a"}\n'
    )
    assert read_examples(path) == (Example("line-1", "d", "q"), Example("line-3", "e", "r", "a"))
