"""Every command that a committed page names exists under that spelling, with its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ragwitness.cli.main import app

_ROOT = Path(__file__).parents[2]
_PAGES = ["README.md", "RESPONSIBLE_USE.md", "PAPERS.md", "CONTRIBUTING.md"]
_PAGES += sorted(
    p.relative_to(_ROOT).as_posix()
    for folder in ("docs", "experiments", "benchmarks", "research")
    for p in (_ROOT / folder).rglob("*.md")
)
_GROUP = typer.main.get_command(app)


def _commands(text: str) -> list[str]:
    """Lines of fenced blocks and code spans that begin with ``ragwitness`` and a verb."""
    text = re.sub(r"\\\n\s*", " ", text)
    fenced = re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in fenced for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    spans = [" ".join(span.split()) for span in re.findall(r"`(ragwitness\s[^`]+)`", prose)]
    return [found for found in (*lines, *spans) if re.match(r"ragwitness [a-z]", found)]


def _wrong(line: str) -> str | None:
    try:
        words = shlex.split(re.split(r" [|>] | && ", line)[0], comments=True)[1:]
    except ValueError:  # a span that ends inside a quotation
        words = line.split()[1:]
    command: Any = _GROUP
    while words and hasattr(command, "list_commands") and re.fullmatch(r"[a-z-]+", words[0]):
        under = command.get_command(None, words[0])  # spellings of before are not found
        if under is None:
            return f"no command {words[0]}"
        command, words = under, words[1:]
    known = {"--help", "-h", "--version"}
    known |= {o for param in command.params for o in (*param.opts, *param.secondary_opts)}
    unknown = {w.split("=")[0] for w in words if re.match(r"--?[a-z]", w)} - known
    return f"no option {sorted(unknown)}" if unknown else None


@pytest.mark.parametrize("page", _PAGES)
def test_every_command_on_the_page_exists(page: str) -> None:
    lines = _commands((_ROOT / page).read_text(encoding="utf-8"))
    assert {line: wrong for line in lines if (wrong := _wrong(line))} == {}


def test_a_wrong_command_would_be_noticed() -> None:
    assert _wrong("ragwitness audits x") == "no command audits"
    assert _wrong("ragwitness audit x --documant y") == "no option ['--documant']"
    assert _wrong("ragwitness audit x --documents y") is None
    assert len([1 for page in _PAGES for _ in _commands((_ROOT / page).read_text())]) > 100
