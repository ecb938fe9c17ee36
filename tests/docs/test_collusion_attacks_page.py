"""The page on attacks by pooled accounts: its commands and its Python run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from ragwitness.cli.main import run
from ragwitness.collusion.detectors import DETECTORS
from research.coalitions import coalition_probes, unit_rows

_PAGE = (Path(__file__).parents[2] / "docs" / "collusion-attacks.md").read_text(encoding="utf-8")


def _write(path: Path, seed: int, coalition: int, windows: int = 1) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w") as log:
        for window in range(windows):
            rows = unit_rows(rng, 20, 3, 16)
            rows[:coalition] = coalition_probes(rng, "identical", (coalition, 3, 16))
            for at, queries in enumerate(rows.tolist()):
                for n, vector in enumerate(queries):
                    time = 1200.01 * window + (60 if windows == 1 else 50) * n
                    row = {"account": f"u{at}", "time": time, "vector": vector}
                    log.write(json.dumps(row) + "\n")


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write(Path("log.jsonl"), 1, 5)
    _write(Path("last-month.jsonl"), 2, 0, 120)
    block = re.search(r"^```\n(ragwitness.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert block
    codes = []
    for line in block[1].splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        codes.append(stop.value.code or 0)
    assert codes == [3, 0]  # five accounts collude, and the cap is four
    found = json.loads(Path("found.json").read_text())["estimates"]["pairs"]
    assert found["size"] == 5


def test_every_estimator_is_on_the_page() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", _PAGE, re.MULTILINE) == [*DETECTORS]


def test_the_python_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert code
    exec(compile(code[1], "docs/collusion-attacks.md", "exec"), {})  # noqa: S102, our own page
    assert capsys.readouterr().out.split("\n")[:4] == ["0.473", "4.0 8.0", "True", "1.8e+08"]
