"""SAGE's roles by rules: fail closed, tell nothing that one record alone holds."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import DOMAINS, Asking, MakingConfig, roles_of
from ragwitness.synthesis.generator import Fate, Synthesis
from ragwitness.synthesis.generator_registry import METHODS, build_method
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.rules import Rules
from ragwitness.text.secrets import Secret

_NAMES = ("Tom Baker", "Ann Miller", "Ida Stone", "Max Field", "Eve Hill", "Jim Brook")
_RECORDS = [
    Document(
        f"r{n}",
        f"Patient: {name} here, I have had a fever and a strong pain in the stomach since last"
        f" week, my number is 713 853 {1000 + n}. I am worried about it. What should I take?"
        " Doctor: The pain is likely due to a virus. Take a tablet against the fever twice a day."
        " Please see a doctor if the pain gets worse. Drink water and avoid heavy food.",
    )
    for n, name in enumerate(_NAMES)
]
_GUARD = SyntheticGuard(
    [one.text for one in _RECORDS],
    [Secret(name, "name", f"r{n}") for n, name in enumerate(_NAMES)],
    GuardConfig(pii="contacts"),
)
_ROLES = roles_of("rules", {})[1]
_CONFIG = MakingConfig(domain=DOMAINS["medical"], asking=Asking(roles=_ROLES))


def made_by(name: str, records: list[Document], guard: SyntheticGuard = _GUARD) -> list[Synthesis]:
    """What a method makes without a single query."""

    def follow(steps):
        try:
            batch = next(steps)
        except StopIteration as stop:
            return stop.value
        raise AssertionError(f"asked {batch}")

    maker = follow(build_method(name, _CONFIG, evaluation=True).begin(records, guard))
    return [follow(maker(one)) for one in records]


@pytest.mark.parametrize("name", ["stage-1-published", "sage-published", "sage", "stage-1"])
def test_no_name_and_no_number_of_a_record_is_told(name: str) -> None:
    made = made_by(name, _RECORDS)
    texts = [one.text for one in made]
    if name == "stage-1":  # nobody mends what tells most of a record's words
        assert not any(texts)
        return
    assert sum(bool(text) for text in texts) == len(_RECORDS)
    assert all("Patient:" in text and "Doctor:" in text for text in texts)
    assert any("fever" in text for text in texts)
    for text in texts:
        words = {word.strip(".,:") for word in text.split()}
        assert not words & {
            part for name in _NAMES for part in (*name.split(), *name.lower().split())
        }
        assert not any(letter.isdigit() for letter in text)


@pytest.mark.parametrize("name", [m for m, one in METHODS.items() if not one.private])
def test_every_method_by_rules_asks_nobody_and_writes_nothing_unsafe(name: str) -> None:
    if name in ("redact", "keywords"):
        pytest.skip("asks nobody anyway")
    for one in made_by(name, _RECORDS):
        if one.fate is Fate.PASSED:
            assert _GUARD.violation(one.text) is None
        else:
            assert one.fate is Fate.UNGUARDED or not one.text


@pytest.mark.parametrize("name", ["sage", "stage-1", "paraphrase"])
def test_of_a_corpus_of_one_record_nothing_unsafe_is_written(name: str) -> None:
    alone = _RECORDS[:1]
    guard = SyntheticGuard([alone[0].text], [Secret("Tom Baker", "name", "r0")])
    (made,) = made_by(name, alone, guard)
    assert made.fate is not Fate.PASSED or guard.violation(made.text) is None
    if name in ("sage", "stage-1"):  # no word of it is known to be shared
        assert (made.fate, made.text) == (Fate.MALFORMED, "")


def test_the_rewriter_mends_what_the_judge_finds() -> None:
    rules = Rules(_RECORDS, _GUARD)
    bad = f"{_RECORDS[0].text} Rest will help."
    assert rules.fault(bad)
    mended = rules.rewritten(bad)
    assert rules.fault(mended) == ""
    assert "Baker" not in mended
    assert "713" not in mended
    assert rules.rewritten("Rest will help.") == "Rest will help."
