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


def _write(path: Path, seed: int, accounts: int, coalition: int) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng, accounts, 3, 16)
    rows[:coalition] = coalition_probes(rng, "identical", (coalition, 3, 16))
    path.write_text(
        "".join(
            json.dumps({"account": f"u{at}", "time": 60 * n, "vector": vector}) + "\n"
            for at, queries in enumerate(rows.tolist())
            for n, vector in enumerate(queries)
        )
    )


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write(Path("log.jsonl"), 1, 20, 5)
    _write(Path("last-month.jsonl"), 2, 60, 0)
    block = re.search(r"^```\n(ragwitness.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert block
    codes = []
    for line in block[1].splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        codes.append(stop.value.code or 0)
    assert codes == [4, 0]  # five accounts collude, the cap is four; accounts alone accuse nobody
    found = json.loads(Path("found.json").read_text())["estimates"]["pairs"]
    assert found["size"] == 5
    assert Path("log.svg").exists()


def test_every_estimator_is_on_the_page() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", _PAGE, re.MULTILINE) == [*DETECTORS]


def test_the_python_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert code
    exec(compile(code[1], "docs/collusion-attacks.md", "exec"), {})  # noqa: S102, our own page
    assert capsys.readouterr().out.split("\n")[:4] == ["0.473", "4.0 8.0", "True", "1.8e+08"]
