"""A bent GGUF file ends the process that reads it, and no other."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from ragwitness.core.errors import ModelError
from ragwitness.models import bent_file
from ragwitness.models.endpoint import GgufModel

BENT = {
    "a header of very many tensors": struct.pack("<4sIQQ", b"GGUF", 3, 2**60, 1),
    "a name that is longer than memory": struct.pack("<4sIQQQ", b"GGUF", 3, 1, 1, 2**61) + b"x",
    "no GGUF file": b"GG?F" * 9,
    "nothing": b"",
}


@pytest.mark.parametrize("name", BENT)
def test_a_bent_file_is_named_and_this_process_goes_on(tmp_path: Path, name: str) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "model.gguf").write_bytes(BENT[name])
    with pytest.raises(ModelError, match=r"llama\.cpp cannot load"):
        GgufModel(str(tmp_path / "model.gguf"))


def test_a_file_that_aborts_its_reader_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``ggml_abort`` does: no exception, the process is gone."""
    pytest.importorskip("xllamacpp")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(bent_file, "_PROGRAM", "import os; os.abort()")
    with pytest.raises(ModelError, match=r"ended llama\.cpp"):
        GgufModel(str(tmp_path / "model.gguf"))
    assert os.getpid()


def test_a_file_that_asks_for_all_memory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    greedy = bent_file._PROGRAM.replace("server = ", "bytes(1 << 36); server = ")
    monkeypatch.setattr(bent_file, "_PROGRAM", greedy)
    with pytest.raises(ModelError, match="too much memory"):
        GgufModel(str(tmp_path / "model.gguf"))
