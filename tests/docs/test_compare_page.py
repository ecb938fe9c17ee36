"""The page on comparisons: its commands run as they stand there, and its options exist."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample
from tests.cli.surface import verbs
from tests.support.parrot import parrot_speaks

_PAGE = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parrot_speaks(monkeypatch)
    rows = [
        {"id": d.id, "text": d.text, "question": d.text[:40], "answer": d.text[40:80]}
        for d in load_sample()[:16]
    ]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands = re.search(r"^```\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert commands is not None
    for line in commands.group(1).splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert not stop.value.code, line
    assert Path("first/report.html").exists()
    assert Path("second/words/transcripts.jsonl").exists()
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(code.group(1), "docs/compare.md", "exec"), {})  # noqa: S102, our own page


def test_every_option_on_the_page_exists() -> None:
    commands = dict(verbs())
    known = {o for verb in ("compare", "lab reproduce", "synthesize") for p in commands[verb].params
             for o in (*p.opts, *p.secondary_opts)}  # fmt: skip
    known |= {o for p in commands["lab serve"].params for o in p.opts}
    assert set(re.findall(r"`?(--[a-z][a-z-]+)", _PAGE)) <= known
