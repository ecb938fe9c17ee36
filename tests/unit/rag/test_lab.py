"""RAG systems of ours by address, in Python and on the command line alike."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Query
from ragwitness.rag.target import LabTarget
from ragwitness.targets.resolve import open_target

_ROW = '{{"id": "{0}", "text": "{0} two three four five six seven eight nine ten"}}\n'


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text(_ROW.format("one") + '{"id": "x"}\n' + _ROW.format("other"))
    return path


def opened(spec: str) -> LabTarget:
    target = asyncio.run(open_target(spec))
    assert isinstance(target, LabTarget)
    return target


def test_lab_is_opened_from_python(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        target = opened(f"lab:{corpus}?k=2&defense=prompt+mirabel")
    assert target.system.config.k == 2
    assert target.system.defense is not None
    assert target.system.defense.name.startswith("prompt")
    assert "left out" in caplog.text
    assert "corpus.jsonl:2" in caplog.text
    assert asyncio.run(target.ask(Query("one two three", 3))).text


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hf:", "malformed"),
        ("hf/gpt2?corpus=x", "a model alone and takes no options"),
        ("gguf:m.gguf?k=4", "a model alone and takes no options"),
        ("lab:", "text"),
        ("lab:x?corpus=y", "Unknown lab option 'corpus'"),
    ],
)
def test_unusable_addresses_are_named(spec: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        opened(spec)
