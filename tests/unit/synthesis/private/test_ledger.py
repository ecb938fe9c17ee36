"""What was spent on records: by contents, over runs, and never less than was spent."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.files import Appender
from ragwitness.core.run_files import LEDGER
from ragwitness.core.types import Document
from ragwitness.synthesis.private.accounting import (
    composed_epsilon,
    delta_of,
    epsilon_of,
    group_epsilon,
    variance_for,
)
from ragwitness.synthesis.private.ledger import (
    PrivacyLedger,
    Spend,
    Total,
    ledger_path,
)
from ragwitness.text.sample import load_sample
from tests.support.indexed import OUTSIDE, made_texts

_DELTA = 1e-6


def _spend(epsilon: float, votes: int = 3) -> Spend:
    noise = variance_for(epsilon, _DELTA, votes)
    return Spend("private-evolution", noise, votes, epsilon, _DELTA)


def _corpus(*texts: str) -> list[Document]:
    return [Document(f"r{n}", text) for n, text in enumerate(texts)]


_ALL = _corpus("The boiler lost pressure.", "A lamp was green.", "The tide came late.")


def test_two_runs_add_up_to_more_than_one_and_less_than_their_sum(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    assert ledger.total(_ALL) == Total(0, 0.0, 0.0, 0.0)
    ledger.book("first", _ALL, _spend(1.0))
    ledger.book("second", _ALL, _spend(1.0))
    found = PrivacyLedger(tmp_path / LEDGER).total(_ALL)
    assert (found.runs, found.plain, found.delta) == (2, 2.0, _DELTA)
    assert 1.0 < found.epsilon < 2.0
    # With one noise the two are one run of twice the votes: exactly that is booked.
    noise = _spend(1.0).variance
    assert found.epsilon == epsilon_of(_DELTA, noise, 6)
    assert "2 runs (2 as a plain sum)" in found.in_words()


def test_near_copies_in_one_run_spend_on_a_record_once_each(tmp_path: Path) -> None:
    ledger, spend, text = PrivacyLedger(tmp_path / LEDGER), _spend(1.0), load_sample()[0].text
    copies = _corpus(*(f"{text} Call {n}." for n in range(4)), *(one.text for one in _ALL))
    group = group_epsilon(_DELTA, spend.variance, spend.votes, 4)
    assert ledger.total(copies, spend).epsilon == pytest.approx(group)
    ledger.book("first", copies, spend)
    found = PrivacyLedger(tmp_path / LEDGER).total(_corpus(text))
    assert (found.runs, found.copies, found.plain) == (1, 4, pytest.approx(group))
    ledger.book("second", _corpus(text), spend)
    both = PrivacyLedger(tmp_path / LEDGER).total(_corpus(text))
    assert group < both.epsilon < both.plain == pytest.approx(group + 1)
    assert "up to 4 near copies" in both.in_words()
    assert ledger.total(_ALL).copies == 1


def test_a_run_is_booked_once_and_another_start_elsewhere_again(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    for name in ("a", "a", "b"):
        ledger.book(name, _ALL, _spend(2.0))
    assert len((tmp_path / LEDGER).read_text().splitlines()) == 2
    assert ledger.total(_ALL).runs == 2


def test_a_corpus_is_its_contents_whatever_it_is_called(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    ledger.book("first", _ALL, _spend(1.0))
    renamed = [Document(f"other-{n}", f"  {one.text.upper()} ") for n, one in enumerate(_ALL)]
    assert ledger.total(renamed).runs == 1
    # One record in common is enough: the figure is of the record that most was spent on.
    assert ledger.total([*_corpus("A new one."), _ALL[2]]).runs == 1
    assert ledger.total(_corpus("A new one.", "And another.")).runs == 0
    ledger.book("second", _ALL[:1], _spend(1.0))
    assert ledger.total(_ALL).runs == 2
    assert ledger.total(_ALL[1:]).runs == 1
    for name in ("corpus.jsonl", "copy.jsonl"):
        (tmp_path / name).touch()
        assert ledger_path(str(tmp_path / name)) == tmp_path.resolve() / LEDGER


@pytest.mark.parametrize(
    "same",
    [
        "Der K\u00e4ufer zahlt 12 Euro",
        "der ka\u0308ufer zahlt 12 euro.",
        "DER K\u00c4UFER ZAHLT: 12 EURO!",
        "\u201eDer K\u00e4ufer\u201c zahlt\u2014\uff11\uff12 Euro",
    ],
)
def test_signs_and_composed_letters_make_no_other_record(tmp_path: Path, same: str) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    ledger.book("first", _corpus("Der K\u00e4ufer zahlt 12 Euro", "Another."), _spend(1.0))
    assert ledger.total(_corpus(same)).runs == 1
    assert PrivacyLedger(tmp_path / LEDGER).total(_corpus(same)).runs == 1
    assert ledger.total(_corpus("Der K\u00e4ufer zahlt 13 Euro")).runs == 0


@pytest.mark.parametrize(
    "other",
    [
        lambda text: f"{text} Thanks.",
        lambda text: f"Note: {text}",
        lambda text: text[: len(text) * 2 // 3],
        lambda text: f"this {text.split(maxsplit=1)[1]}",
        lambda text: text[:100],
        lambda text: text[-len(text) // 2 :],
        lambda text: " ".join("<X>" if n % 5 == 4 else w for n, w in enumerate(text.split())),
        lambda text: "".join(c if n % 20 else "x" for n, c in enumerate(text)),
        lambda text: f"{' '.join(OUTSIDE[:3])} {text} {' '.join(OUTSIDE[3:6])}",
    ],
    ids=[
        "a word more",
        "a word before",
        "two thirds",
        "a word changed",
        "the beginning",
        "the second half",
        "each fifth word redacted",
        "a letter in twenty wrong",
        "within others",
    ],
)
def test_near_copies_are_the_same_records_and_others_are_not(
    tmp_path: Path, other: Callable[[str], str]
) -> None:
    texts = [*made_texts("booked", 60)]
    ledger = PrivacyLedger(tmp_path / LEDGER)
    for name in ("first", "second"):
        ledger.book(name, _corpus(*texts[:60]), _spend(1.0))
    assert ledger.total(_corpus(*map(other, texts[:60]))).runs == 2
    nobody = ledger.total(_corpus(*made_texts("others", 60)))
    assert nobody.runs == 0
    assert nobody.in_words() == "unknown to this ledger"
    # A run that goes on with other texts than it began with spends on them.
    ledger.book("first", _corpus(*map(other, texts[:60])), _spend(1.0))
    assert len((tmp_path / LEDGER).read_text().splitlines()) == 3


def test_a_few_words_in_common_with_three_booked_records_are_no_part_of_them(
    tmp_path: Path,
) -> None:
    common = " ".join(f"common{n} word{n}" for n in range(20))
    ledger = PrivacyLedger(tmp_path / LEDGER)
    ledger.book("first", _corpus(*(f"{common} ending{n} here{n}" for n in range(3))), _spend(1.0))
    others = " ".join(f"other{n} term{n}" for n in range(20))
    assert ledger.total(_corpus(f"{others} {' '.join(common.split()[10:16])}")).runs == 0
    assert ledger.total(_corpus(f"{' '.join(common.split()[10:32])}")).runs == 1


def test_what_an_earlier_version_booked_still_counts(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    ledger = PrivacyLedger(path)
    ledger.book("new", _ALL, _spend(1.0))
    # As it hashed: the words, in one case.
    words = (" ".join(one.text.casefold().split()) for one in _ALL)
    old = b"".join(sorted(hashlib.sha256(one.encode()).digest()[:8] for one in words))
    row = json.loads(path.read_text()) | {"id": "old", "records": base64.b64encode(old).decode()}
    for name in ("pairs", "sizes", "after", "rows"):
        del row[name]
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    again = PrivacyLedger(path)
    assert again.total(_ALL).runs == 2
    assert again.total([Document("x", f" {_ALL[0].text.upper()}")]).runs == 2
    again.book("old", _ALL, _spend(1.0))
    assert len(path.read_text().splitlines()) == 2
    # And what is booked now, an earlier version finds.
    booked = base64.b64decode(json.loads(path.read_text().splitlines()[0])["records"])
    kept = {booked[n : n + 8] for n in range(0, len(booked), 8)}
    assert {old[n : n + 8] for n in range(0, len(old), 8)} < kept


def test_a_line_that_is_cut_changed_or_gone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    for name in ("first", "second", "third"):
        PrivacyLedger(path).book(name, _ALL, _spend(1.0))
    first, second, third = whole = path.read_text().splitlines()
    other = second.replace('"epsilon":"1.0"', '"epsilon":"0.1"')
    cases = {
        "Line 3 .* is no spend": [first, second, third[:-40]],
        "Line 2 .* is no spend": [first, second[:60], third],
        "Before line 1 .* one is missing": [second, third],
        "Before line 2 .* one is missing": [first, third],
        "Before line 3 .* one is missing": [first, other, third],
        "The last line .* is missing": [first, second],
        "The last line of .* is missing": [],
    }
    for said, lines in cases.items():
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match=f"{said}, or was changed: the spend is unknown"):
            PrivacyLedger(path)
    # The end of the last line alone is nothing, and a line that was booked before its hash was kept
    # beside the ledger counts.
    path.write_text("\n".join(whole))
    head = path.with_name(f"{LEDGER}.head")
    head.write_text(hashlib.sha256(second.encode()).hexdigest())
    PrivacyLedger(path).book("fourth", _ALL, _spend(1.0))
    assert PrivacyLedger(path).total(_ALL).runs == 4
    # Without the file beside it a missing last line would not be noticed.
    head.unlink()
    for lines in (path.read_text().splitlines(), whole[:2]):
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match="head is missing, so that a last line may be missing"):
            PrivacyLedger(path)
    # A ledger of version 0.2.0 has neither hashes nor that file.
    rows = [json.loads(line) for line in whole]
    old = [json.dumps({key: row[key] for key in row if key != "after"}) for row in rows]
    path.write_text("\n".join(old))
    assert PrivacyLedger(path).total(_ALL).runs == 3


def test_a_spend_above_the_ceiling_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER, ceiling=1.2)
    ledger.book("first", _ALL, _spend(1.0))
    before = ledger.path.read_bytes()
    with pytest.raises(InputError, match=r"above --max-epsilon 1\.2\. Nothing was drawn"):
        ledger.book("second", _ALL, _spend(1.0))
    assert ledger.path.read_bytes() == before
    ledger.book("first", _ALL, _spend(1.0))  # the same run again spends nothing
    assert PrivacyLedger(ledger.path).total(_ALL).runs == 1


def test_records_of_one_person_are_known_by_the_person(tmp_path: Path) -> None:
    def of(person: str | None, seed: str) -> list[Document]:
        return [Document(str(n), one, None, person) for n, one in enumerate(made_texts(seed, 3))]

    ledger, spend = PrivacyLedger(tmp_path / LEDGER), _spend(1.0)
    ledger.book("first", [*of("Ada", "a"), *of(None, "b")], spend)
    found = PrivacyLedger(tmp_path / LEDGER).total(of("Ada", "c"))
    assert (found.runs, found.copies) == (1, 3)
    assert found.epsilon == pytest.approx(group_epsilon(_DELTA, spend.variance, spend.votes, 3))
    assert ledger.total(of("Eve", "d")).runs == ledger.total(of(None, "e")).runs == 0
    assert "Ada" not in (tmp_path / LEDGER).read_text()


def test_half_a_booking_does_not_stand_for_the_whole(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    ledger.book("first", _ALL[:1], _spend(1.0))
    ledger.book("first", _ALL, _spend(1.0))
    assert [ledger.total([one]).runs for one in _ALL] == [1, 1, 1]


def test_whoever_meets_another_writer_waits(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    ledger, other = PrivacyLedger(path), Appender(path, "privacy ledger")
    with pytest.raises(InputError, match="Another process is at work") as caught:
        ledger.book("first", _ALL, _spend(1.0))
    assert "Wait" in str(caught.value)
    assert "--ledger" not in str(caught.value)
    other.close()
    ledger.book("first", _ALL, _spend(1.0))
    assert ledger.total(_ALL).runs == 1


def test_a_broken_line_is_no_zero(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    PrivacyLedger(path).book("first", _ALL, _spend(1.0))
    whole = path.read_text()
    for bad in (
        '{"id":"x"}', whole.replace('"votes":"3"', '"votes":"0"').strip(), "{nothing}", "[]", "3",
        whole.replace('"sizes":"', '"sizes":"AAAA').strip(),
    ):  # fmt: skip
        path.write_text(whole + bad + "\n")
        with pytest.raises(InputError, match="Line 2 of the privacy ledger"):
            PrivacyLedger(path)


def test_what_others_booked_meanwhile_counts_and_so_does_a_line_with_a_space(
    tmp_path: Path,
) -> None:
    path = tmp_path / LEDGER
    ours, theirs = PrivacyLedger(path), PrivacyLedger(path)
    ours.book("first", _ALL, _spend(1.0))
    theirs.book("second", _ALL, _spend(1.0))
    assert theirs.total(_ALL).runs == 2
    path.write_text(path.read_text().replace("}\n", "} \n", 1))
    assert PrivacyLedger(path).total(_ALL).runs == 2


def test_a_ledger_that_cannot_be_written_lets_nothing_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ledger = PrivacyLedger(tmp_path / "file" / LEDGER)
    with pytest.raises(InputError, match=r"cannot be written.*--ledger FILE"):
        ledger.book("first", _ALL, _spend(1.0))


@pytest.mark.parametrize("pair", [(1.0, 2.0), (0.5, 4.0), (1.0, 1.01)])
def test_runs_with_different_noise_are_bounded_from_above(pair: tuple[float, float]) -> None:
    spends = [(_spend(epsilon).variance, 3) for epsilon in pair]
    found = composed_epsilon(_DELTA, spends)
    assert max(pair) < found < sum(pair)
    # Exactly: both losses as they are, all pairs of sums of noises.
    assert _exact_delta(found, spends) <= _DELTA
    # And tightly: a hundredth less would not hold.
    assert _exact_delta(found * 0.99, spends) > _DELTA


def _exact_delta(epsilon: float, spends: list[tuple[Fraction, int]]) -> float:
    losses, chances = np.zeros(1), np.ones(1)
    for variance, votes in spends:
        spread = int(9 * np.sqrt(float(variance) * votes)) + 2
        sums = np.arange(-spread, spread + 1)
        weights = np.exp(-(sums**2) / (2 * float(variance) * votes))
        own = (votes - 2 * sums) / (2 * float(variance))
        losses = (losses[:, None] + own).ravel()
        chances = (chances[:, None] * (weights / weights.sum())).ravel()
    over = losses > epsilon
    return float(chances[over] @ -np.expm1(epsilon - losses[over]))


def test_for_a_delta_below_the_digits_of_a_convolution_concentrated_privacy_holds() -> None:
    """Bun & Steinke 2016, Prop. 1.3: rho + 2 sqrt(rho ln(1/delta)), of which a part is saved."""
    spends = [(_spend(epsilon).variance, 3) for epsilon in (1.0, 2.0)]
    rho = sum(3 / (2 * float(variance)) for variance, _ in spends)
    limit = rho + 2 * math.sqrt(rho * math.log(1e15))
    assert 0.9 * limit < composed_epsilon(1e-15, spends) < limit


def test_half_the_noise_is_not_booked_as_the_whole() -> None:
    noise = variance_for(1.0, _DELTA, 3)
    assert delta_of(1.0, noise, 3) <= _DELTA
    assert composed_epsilon(_DELTA, [(noise / 4, 3)]) > 1.9
    assert composed_epsilon(_DELTA, [(noise, 6)]) == composed_epsilon(_DELTA, [(noise, 3)] * 2)


def test_a_run_with_a_large_delta_takes_nothing_off(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / LEDGER)
    ledger.book("first", _ALL, _spend(1.0))
    before = ledger.total(_ALL)
    large = Spend("private-evolution", variance_for(0.2, 0.3, 3), 3, 0.2, 0.3)
    assert ledger.total(_ALL, large).epsilon > before.epsilon
    ledger.book("second", _ALL, large)
    after = PrivacyLedger(tmp_path / LEDGER).total(_ALL)
    assert after.epsilon > before.epsilon
    assert after.delta == _DELTA
    # What was spent on others alone sets no delta here.
    other = _corpus("A kite was stuck in the elm behind the school.")
    ledger.book("third", other, Spend("private-evolution", large.variance, 3, 0.2, 1e-9))
    assert PrivacyLedger(tmp_path / LEDGER).total(_ALL).delta == _DELTA


def test_two_spends_under_one_name_count_twice(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    PrivacyLedger(path).book("first", _ALL, _spend(1.0))
    line = json.loads(path.read_text("utf-8"))
    line |= {"epsilon": "0.1", "variance": "90000"}
    del line["after"]  # as earlier versions booked
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    found = PrivacyLedger(path).total(_ALL)
    assert found.runs == 2
    assert found.epsilon > 1.0


@pytest.mark.parametrize(
    "damage",
    [
        {"epsilon": "-0.5"}, {"epsilon": "inf"}, {"delta": "1"}, {"delta": "0"}, {"delta": "nan"},
        {"votes": "9" * 400}, {"votes": "0"}, {"variance": "1e500"}, {"variance": "1e-500"},
    ],
)  # fmt: skip
def test_what_cannot_have_been_spent_is_an_error(tmp_path: Path, damage: dict[str, str]) -> None:
    path = tmp_path / LEDGER
    PrivacyLedger(path).book("first", _ALL, _spend(1.0))
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | damage) + "\n", "utf-8")
    with pytest.raises(InputError, match="no spend"):
        PrivacyLedger(path)
