"""The page on leaks: its commands run as they stand there, and it names what there is."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.leakage.attack_registry import ATTACKS
from ragwitness.text.sample import load_sample

_PAGE = (Path(__file__).parents[2] / "docs" / "leak.md").read_text(encoding="utf-8")


def test_every_attack_is_described() -> None:
    for name in ATTACKS:
        assert f"`{name}`" in _PAGE


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mails = [f"anna.kell{n}@example.org" for n in range(20)]
    texts = [f"{d.text} Write to {mail}." for d, mail in zip(load_sample(), mails, strict=False)]
    for name, rows in {
        "corpus": [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)],
        "secrets": [{"text": m, "kind": "email", "record": f"d{n}"} for n, m in enumerate(mails)],
    }.items():
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    commands = re.search(r"^```\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE).group(1).splitlines()
    assert len(commands) == 3
    for line in commands:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert int(stop.value.code or 0) in ((0, 3, 4) if "--fail-on" in line else (0,)), line
    assert Path("leak/report.html").exists()
    assert Path("again/result.json").exists()
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE).group(1)
    exec(compile(code, "docs/leak.md", "exec"), {})  # noqa: S102, our own page
