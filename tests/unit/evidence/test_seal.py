"""A seal is made once; whatever would make another one is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.run_files import SEAL
from ragwitness.evidence import seal as module
from ragwitness.evidence.seal import SealWish, begin
from ragwitness.evidence.subject import SealedText, SealSubject

SUBJECT = SealSubject(
    task="audit",
    settings={"method": "s2mia", "budget": {"queries": 20}, "likeness": {"odd": []}},
    texts=(SealedText("documents", "a", "one text", None),),
    units=[("documents", "a")],
    looks=1,
    series=b"",
)
CODE = {"ragwitness.text.words": "00", "ragwitness.models.base": "11"}


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, SealWish]:
    """A run that was sealed by code of two modules."""
    monkeypatch.setattr(module, "code_digests", lambda _: CODE)
    monkeypatch.setattr(module, "wheel_digest", lambda: "aa")
    wish = SealWish(tmp_path / "key")
    begin(tmp_path / "run", SUBJECT, wish, "lab:held")
    return tmp_path / "run", wish


def test_other_pages_and_another_time_make_no_other_seal(
    sealed: tuple[Path, SealWish], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, wish = sealed
    before = (run / SEAL).read_bytes()
    monkeypatch.setattr(module, "wheel_digest", lambda: "bb")
    begin(run, SUBJECT, wish, "lab:held")
    assert (run / SEAL).read_bytes() == before


CHANGES: dict[str, dict[str, Any]] = {
    "documents": {"texts": (SealedText("documents", "a", "another text", None),)},
    "settings (method)": {"settings": {**SUBJECT.settings, "method": "mba"}},
    "caps or prices": {"settings": {**SUBJECT.settings, "budget": {"queries": 21}}},
    "the number of looks": {"looks": 2},
    "the kind of run": {"task": "leak"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_is_named_alone(sealed: tuple[Path, SealWish], what: str) -> None:
    with pytest.raises(InputError) as error:
        begin(sealed[0], replace(SUBJECT, **CHANGES[what]), sealed[1], "lab:held")
    assert error.value.message.endswith(f"What differs: {what}.")


def test_key_log_and_modules_are_named(
    sealed: tuple[Path, SealWish], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, wish = sealed
    monkeypatch.setattr(module, "code_digests", lambda _: {**CODE, "ragwitness.text.words": "22"})
    other = replace(wish, key=tmp_path / "another", runs_log=tmp_path / "log")
    with pytest.raises(InputError) as error:
        begin(run, SUBJECT, other, "lab:held")
    assert error.value.message.endswith(
        "What differs: the signing key; whether runs are logged; the code that computes scores"
        " (ragwitness.text.words)."
    )
