"""Completion in a shell: verbs, groups and options, as a shell asks for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completed(line: str) -> set[str]:
    """What bash is offered at the end of a line."""
    words = line.split(" ")
    asked = {
        "COMP_WORDS": "\n".join(words).strip("\n"),
        "COMP_CWORD": str(len(words) - 1),
        "_RAGWITNESS_COMPLETE": "complete_bash",
    }
    code = "import sys; sys.argv[0] = 'ragwitness'; from ragwitness.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True
    )
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ragwitness au", {"audit"}),
        ("ragwitness audit --known", {"--known-out", "--known-in"}),
        ("ragwitness attest ch", {"challenge"}),
        ("ragwitness le", {"leak"}),
    ],
)
def test_a_shell_is_offered_what_there_is(line: str, offered: set[str]) -> None:
    assert completed(line) == offered
