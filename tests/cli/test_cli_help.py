"""Help: every verb has an example that is accepted, or run where that is quick, and relatives."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragwitness.cli.help import QUESTIONS, by_question, question_of
from ragwitness.core.types import Document
from ragwitness.text.sample import load_sample
from tests.cli.surface import groups, verbs
from tests.golden.test_help import help_of

_VERBS = dict(verbs())
_WORDS = {words for words, _ in (*groups(), *verbs())}
# These serve until Ctrl-C, need a window, a share of a run or a sealed one, or take a minute: their
# examples are read here; such commands are run by tests/docs (attest, evidence, scale, view,
# service) and test_cli_demo.
_ONLY_READ = (
    "demo",
    "view",
    "service serve",
    "lab serve",
    "lab reproduce",
    "run ",
    "attest ",
    "verify",
    "seal",
)


def words_of(words: str) -> list[str]:
    """Return the example of a verb as a shell reads it."""
    return shlex.split(_VERBS[words].example.replace("\\\n", " "))


def test_every_verb_has_an_example() -> None:
    assert all(command.example for command in _VERBS.values())


@pytest.mark.parametrize("words", _VERBS)
def test_the_example_is_of_this_verb_and_is_accepted(words: str) -> None:
    typed = words_of(words)
    twin = "verify" if words == "attest verify" else words  # one verb, found in two places
    assert typed[: 1 + len(twin.split())] == ["ragwitness", *twin.split()]
    command = _VERBS[words]
    context = command.make_context(words, typed[1 + len(twin.split()) :])
    assert context.params
    lines = command.example.splitlines()
    assert max(map(len, lines)) <= 78


@pytest.mark.parametrize("words", _VERBS)
def test_related_verbs_exist_and_are_others(words: str) -> None:
    see = _VERBS[words].see
    assert see
    assert words not in see
    assert set(see) <= _WORDS


@pytest.mark.parametrize("words", _VERBS)
def test_no_heading_is_too_long_to_look_over(words: str) -> None:
    command: Any = _VERBS[words]
    context = command.make_context(words, [], resilient_parsing=True)
    sections = dict(by_question(command, context))
    shown = [name for heading, rows in sections.items() for name, _ in rows]
    assert len(shown) == len(set(shown))
    assert all(len(rows) <= 22 for rows in sections.values()), {
        k: len(v) for k, v in sections.items()
    }
    text = help_of(words)
    assert text.index("\nExample:\n") < text.index("--config") < text.index("\nSee also:\n")


def test_every_option_that_a_question_names_exists() -> None:
    names = {one.lstrip("-") for c in _VERBS.values() for p in c.params for one in p.opts}
    assert {name for asked in QUESTIONS.values() for name in asked} - names - {"help"} == set()
    (alpha,) = [p for p in _VERBS["audit"].params if p.name == "alpha"]
    assert question_of("audit:audit", alpha) == "When does it decide?"


def _row(document: Document) -> dict[str, str]:
    text = document.text
    return {"id": document.id, "text": text, "question": text[:40], "answer": text[40:80]}


@pytest.mark.long
def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch, command: Any) -> None:
    monkeypatch.chdir(tmp_path)
    docs = load_sample(60)
    for name, part in (
        ("corpus", docs[:80]),
        ("mine", docs[:20]),
        ("never-shared", docs[80:120]),
    ):
        rows = [json.dumps(_row(d)) for d in part]
        Path(f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    rows = [
        json.dumps({"id": d.id, "document": d.text, "question": f"What does note {i} say?"})
        for i, d in enumerate(docs[:60])
    ]
    Path("examples.jsonl").write_text("\n".join(rows), encoding="utf-8")
    Path("prose.txt").write_text("\n\n".join(d.text for d in docs[:60]), encoding="utf-8")
    log = [{"account": f"a{i % 6}", "time": i, "vector": [i % 7, 1, i % 5]} for i in range(60)]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, log)), encoding="utf-8")
    # A run is reported after it was made, and a tenant erased after it was used.
    order = sorted(_VERBS, key=lambda words: words.endswith(("report", "erase")))
    run = [words for words in order if not words.startswith(_ONLY_READ)]
    assert len(run) > 25
    # A budget is spent by a tenant with noise; that of the other examples has codes.
    noise = "service tenants create ward --mechanism noise --knowingly --embedder hashing:64"
    failed = {}
    assert command(*noise.split())[0] == 0
    shutil.copy("ragwitness-service.db", "copy.db")
    for words in run:
        typed = words_of(words)[1:]
        more = ["--yes"] if words.endswith("erase") else []
        code, text = command(*typed, *more)
        if code not in ((0, 3) if "--fail-on" in typed else (0,)):
            failed[words] = f"{code}: {text}"
    assert failed == {}
