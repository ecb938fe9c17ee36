"""The page on leaks: its commands run as they stand there, and it names what there is."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.extraction.registry import ATTACKS
from ragwitness.text.sample import load_sample

_PAGE = (Path(__file__).parents[2] / "docs" / "leak.md").read_text(encoding="utf-8")


def test_every_attack_is_described() -> None:
    for name in ATTACKS:
        assert f"`{name}`" in _PAGE


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prose.txt").write_text("\n\n".join(d.text for d in load_sample()[:60]))
    commands = re.search(r"^```\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE).group(1).splitlines()
    assert len(commands) == 4
    for line in commands:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert int(stop.value.code or 0) in ((0, 3) if "--fail-on" in line else (0,)), line
    assert Path("leak/report.html").exists()
    assert Path("again/result.json").exists()
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE).group(1)
    exec(compile(code, "docs/leak.md", "exec"), {})  # noqa: S102, our own page
