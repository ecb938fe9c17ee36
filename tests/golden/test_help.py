"""Every help text, at 80 columns, is the one that was read and approved.

Renew them after a change that is meant: ``make help-golden``; then read the difference.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest

from tests.cli.surface import groups, verbs

_FOLDER = Path(__file__).parent / "help"
_ALL = dict(groups()) | dict(verbs())


def help_of(words: str) -> str:
    """Return a help text as it is shown on a terminal of 80 columns."""
    name = f"ragwitness {words}".strip()
    names = {"help_option_names": ["-h", "--help"]}  # as the verbs inherit them
    context = _ALL[words].make_context(name, [], resilient_parsing=True, terminal_width=80, **names)
    context.max_content_width = 80
    return "\n".join(line.rstrip() for line in context.get_help().splitlines()) + "\n"


def path_of(words: str) -> Path:
    """Return where the approved text of a verb or group stands."""
    return _FOLDER / f"{'-'.join(['ragwitness', *words.split()])}.txt"


@pytest.mark.parametrize("words", _ALL)
def test_the_help_is_the_one_that_was_approved(words: str) -> None:
    approved = path_of(words).read_text(encoding="utf-8").splitlines()
    change = list(difflib.unified_diff(approved, help_of(words).splitlines(), lineterm=""))
    assert not change, "\n".join(["The help changed; if so meant: make help-golden", *change])


def test_no_approved_text_is_of_a_verb_that_is_gone() -> None:
    assert {path_of(words) for words in _ALL} == set(_FOLDER.glob("*.txt"))


if __name__ == "__main__" and "renew" in sys.argv:
    for path in _FOLDER.glob("*.txt"):
        path.unlink()
    for one in _ALL:
        path_of(one).write_text(help_of(one), encoding="utf-8")
