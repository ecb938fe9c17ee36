"""The queued script: what it tells of a machine's speed, and what it packs."""

from __future__ import annotations

import importlib.util
import json
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parents[3] / "experiments"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("large", _ROOT / "gpu" / "reader_large.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _log(path: Path, seconds: list[float]) -> Path:
    lines = [
        {"step": 5 * (n + 1), "tokens_per_second": 1, "seconds": second}
        for n, second in enumerate(seconds)
    ]
    lines.insert(2, {"step": 10, "validation_answer_loss": 1.0})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_compilation_and_earlier_calls_tell_nothing_of_the_speed(
    script: ModuleType, tmp_path: Path
) -> None:
    # Forty seconds of compilation, then two seconds for five steps.
    now = [40.0 + 2 * n for n in range(10)]
    assert script.seconds_per_step(_log(tmp_path / "log", now)) == pytest.approx(0.4)
    # An earlier call on a slower machine, whose clock began at 0 too.
    text = _log(tmp_path / "slow", [100.0 * n for n in range(30)]).read_text()
    both = tmp_path / "both"
    both.write_text(text + (tmp_path / "log").read_text())
    assert script.seconds_per_step(both, len(text.splitlines())) == pytest.approx(0.4)
    with pytest.raises(RuntimeError, match="too few"):
        script.seconds_per_step(_log(tmp_path / "one", [3.0]))


def test_joined_parts_are_the_weights(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_PART_BYTES", 5000)
    weights = tmp_path / "made"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    script.pack(weights, tmp_path)
    parts = sorted(tmp_path.glob("weights.tar.*"))
    assert len(parts) > 2
    assert all(part.stat().st_size <= 5000 for part in parts)
    whole = tmp_path / "joined.tar"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    with tarfile.open(whole) as archive:
        inside = archive.extractfile("weights/model.safetensors")
        assert inside is not None
        assert inside.read() == (weights / "model.safetensors").read_bytes()
