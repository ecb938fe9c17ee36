"""The surface: how many words there are, and that help imports little."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ragwitness.cli.main import HEADINGS
from tests.cli.surface import groups, verbs

_VERBS = dict(verbs())
_HEAVY = ("numpy", "scipy", "sklearn", "httpx2", "uvicorn", "torch", "rich.console")


def test_the_top_has_few_words_under_telling_headings():
    assert all(heading.endswith("?") for heading in HEADINGS)
    assert sum(map(len, HEADINGS.values())) <= 19  # seal is the last that came
    assert [words for words in _VERBS if words.split()[-1] == "plan"] == ["plan"]


@pytest.mark.parametrize(("words", "group"), list(groups()))
def test_the_summary_of_each_word_is_the_first_sentence_of_its_help(words, group):
    for members in group.headings.values():
        for name, entry in members.items():
            command = group.get_command(None, name)
            assert command.help.partition("\n")[0] == entry.summary, name


@pytest.mark.parametrize("words", _VERBS)
def test_every_help_text_is_made_of_whole_sentences(words):
    command = _VERBS[words]
    for text in [command.help, *(param.help for param in command.params)]:
        assert text[0].isupper() or text.startswith(("ray:", "keywords:", "private-evolution:"))
        assert text.endswith((".", ".)")), text
        assert not text.startswith(("Of ", "Also here", "As ")), text


def test_verbose_logs_to_standard_error(capfd):
    import logging

    from ragwitness.cli.main import _start_logging

    logger = logging.getLogger("ragwitness")
    try:
        _start_logging(1)
        logging.getLogger("ragwitness.runner.worker").info("waiting for %s", "a target")
        logging.getLogger("ragwitness.runner.worker").debug("a request")
        assert "INFO ragwitness.runner.worker: waiting for a target" in capfd.readouterr().err
        _start_logging(0)
        logging.getLogger("ragwitness.runner.worker").info("silent")
        assert capfd.readouterr().err == ""
    finally:
        logger.handlers[:] = []
        logger.setLevel(logging.NOTSET)


def test_help_imports_nothing_heavy():
    lines = [words.split() for words in ("", *_VERBS)]
    code = (
        "import sys\nfrom ragwitness.cli.main import app\nimport typer\n"
        "root = typer.main.get_command(app)\n"
        f"for words in {lines!r}:\n"
        "    if words == ['lab', 'reproduce']: continue\n"
        "    try: root([*words, '--help'], prog_name='ragwitness')\n"
        "    except SystemExit: pass\n"
        f"print('heavy:', sorted(set({_HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        ("--help", "numpy scipy rich pydantic joblib jinja2 ragwitness.cli.audit"),
        ("demo --help", "numpy scipy rich.console joblib ragwitness.models"),
        (
            "collusion bound --epsilon 1 --delta 1e-6 --queries 10 --accounts 2",
            "scipy.stats scipy.sparse sklearn tokenizers joblib jinja2 ragwitness.text.documents"
            " ragwitness.report.html ragwitness.report.geometry research.gates",
        ),
    ],
)
def test_a_verb_imports_only_what_it_needs(arguments, unwanted):
    code = (
        "import sys\nfrom ragwitness.cli.main import run\n"
        f"sys.argv = ['ragwitness', *{arguments!r}.split()]\n"
        "try: run()\nexcept SystemExit: pass\n"
        f"print('needless:', sorted(set({unwanted!r}.split()) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "needless: []"


def test_an_unknown_word_is_named_with_what_comes_near(command):
    code, text = command("adit")
    assert code == 2
    assert "audit" in text


def test_without_a_checkout_reproduce_says_how_to_get_one(command, monkeypatch, tmp_path):
    from ragwitness.cli import main, reproduce
    from ragwitness.core import registry as checkout

    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "site/ragwitness/core/registry.py"))
    monkeypatch.setattr(reproduce, "reproduce", reproduce._without_checkout)
    monkeypatch.setattr(main, "_verb", main._verb.__wrapped__)  # made anew
    code, text = command("lab", "reproduce", "mba/table2")
    assert code == 2
    assert "checkout of the repository" in text
