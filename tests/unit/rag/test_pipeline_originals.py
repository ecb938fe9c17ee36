"""Texts found by their originals: SAGE finds the record and shows what stands in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Query
from ragwitness.rag.config import RagConfig
from ragwitness.rag.lab import lab_target
from ragwitness.rag.target import LabTarget
from ragwitness.targets.resolve import open_target
from tests.support.parrot import parrot_speaks

_ORIGINALS = {"a": "Maria Keller has a fever of 39.4 degrees", "b": "The router loses packets"}
_SHOWN = (Document("a", "somebody was ill"), Document("b", "a device failed " * 150))


@pytest.fixture(autouse=True)
def _parrot(monkeypatch: pytest.MonkeyPatch) -> None:
    parrot_speaks(monkeypatch)


def _contexts(target: LabTarget, prompt: str) -> tuple[str, ...]:
    answer = asyncio.run(target.for_owner().ask(Query(prompt, max_tokens=20)))
    return answer.contexts or ()


def test_the_original_is_searched_and_the_other_text_shown() -> None:
    config = RagConfig(k=1)
    own = lab_target(_SHOWN, config, "none")
    by_original = lab_target(_SHOWN, config, "none", _ORIGINALS)
    assert _contexts(own, "Maria Keller fever") == ()  # no word of it is shown
    assert _contexts(by_original, "Maria Keller fever") == ("somebody was ill",)
    assert _contexts(by_original, "somebody ill") == ()
    [part] = _contexts(by_original, "router packets")  # of equal passages the first
    assert part.startswith("a device failed")
    assert own.name != by_original.name
    changed = {**_ORIGINALS, "a": "another original"}
    assert lab_target(_SHOWN, config, "none", changed).name != by_original.name
    assert lab_target(_SHOWN, config, "none", _ORIGINALS).name == by_original.name


def test_a_text_without_an_original_is_refused() -> None:
    with pytest.raises(InputError, match="1 documents have no original, the first 'b'"):
        lab_target(_SHOWN, RagConfig(k=1), "none", {"a": "x"})


def test_an_address_names_the_originals(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shown, originals = tmp_path / "safe.jsonl", tmp_path / "corpus.jsonl"
    shown.write_text('{"id": "a", "text": "somebody was ill"}\n')
    originals.write_text('{"id": "a", "text": "Maria Keller has a fever"}\n')
    target = asyncio.run(open_target(f"lab:{shown}?k=1&originals={originals}"))
    assert isinstance(target, LabTarget)
    assert _contexts(target, "Keller") == ("somebody was ill",)
    assert "keep it as private" in caplog.text
