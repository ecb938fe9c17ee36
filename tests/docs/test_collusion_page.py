"""The page on collusion: its commands and its Python run as they stand there, with its numbers."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run

_PAGE = (Path(__file__).parents[2] / "docs" / "collusion.md").read_text(encoding="utf-8")


def test_the_commands_run_and_print_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```\n(ragwitness.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert block
    printed = []
    for line in block[1].splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert not stop.value.code, line
        printed.append(capfd.readouterr().out)
    assert len(printed) == 4
    for number in re.findall(r"^\| .* \| ([0-9.]+) \|$", _PAGE, re.MULTILINE):
        assert number in printed[0].split()
    assert "13.2x" in printed[0]
    assert "8.05" in printed[3]
    assert {path.name for path in Path().iterdir()} == {"bound.json"}


def test_the_python_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    for code in snippets:
        exec(compile(code, "docs/collusion.md", "exec"), {})  # noqa: S102, our own page
    printed = capsys.readouterr().out.split("\n")
    assert printed[:3] == ["5.16 by the paper's theorem, 0.390 exactly", "1.0", "624 True"]
