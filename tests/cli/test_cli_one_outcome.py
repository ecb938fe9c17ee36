"""The same question by the verb, its file of options, Python and an assertion: one outcome.

The targets show their text alone, as most systems do. Forms write a file of options, and their
questions are held against the declaration in ``tests/unit/web``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragwitness as rw
from ragwitness.core.errors import RagwitnessError
from ragwitness.core.options import write_options
from ragwitness.text.sample import load_sample
from tests.support.canary_audit import Command

HERE = "python:tests.golden.answering"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = [document.text for document in load_sample()]
    for name, part in (("mine", texts[:4]), ("out", texts[20:60]), ("corpus", texts[:12])):
        rows = [json.dumps({"id": f"{name}-{n}", "text": text}) for n, text in enumerate(part)]
        Path(f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def outcome_of(call: Callable[[], Any]) -> tuple[str, object]:
    """Return what a program gets: its result's verdicts or counts, or the error's exit code."""
    try:
        found = call()
    except RagwitnessError as error:
        return "error", int(error.exit_code)
    if found is None:
        return "error", 0
    if hasattr(found, "verdicts"):
        verdicts = [(v.document, v.decision.value, v.p_value) for v in found.verdicts]
        return found.method.split(" (")[0], verdicts
    return "leak", [(one.name, one.count, one.of) for one in found.together]


def told_by(folder: Path, code: int) -> tuple[str, object]:
    """Return what a verb left in its run folder, in the same words."""
    if code:
        return "error", code
    kept = json.loads((folder / "result.json").read_text())
    if "documents" in kept:
        rows = [(one["id"], one["verdict"], one["p_value"]) for one in kept["documents"]]
        return kept["summary"]["method"].split(" (")[0], rows
    return "leak", [(one["name"], one["count"], one["of"]) for one in kept["together"]]


_AUDIT = {"documents": "mine.jsonl", "known_out": "out.jsonl", "target": f"{HERE}:knows"}
_LEAK = {"corpus": "corpus.jsonl", "prompts": 4, "target": f"{HERE}:tells"}


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        pytest.param(
            "audit", _AUDIT | {"yes": True, "max_queries": 400}, id="auto", marks=pytest.mark.slow
        ),
        pytest.param("audit", _AUDIT | {"yes": True, "method": "rag-mia"}, id="named"),
        pytest.param("audit", _AUDIT | {"yes": True, "method": "rag-mia", "k": 9}, id="idle"),
        pytest.param("audit", _AUDIT | {"known_out": "mine.jsonl"}, id="in-both"),
        pytest.param("audit", _AUDIT | {"method": "s-rag", "yes": True}, id="no-log-probabilities"),
        pytest.param("leak", _LEAK, id="leak"),
        pytest.param("leak", _LEAK | {"seed": 3, "attacks": "pide"}, id="leak-named"),
        pytest.param("leak", _LEAK | {"corpus": "missing.jsonl"}, id="no-corpus"),
    ],
)
def test_one_outcome(files: Path, command: Command, verb: str, given: dict[str, Any]) -> None:
    options = {name.replace("_", "-"): value for name, value in given.items()}
    # 1. By the verb, and by its file of options.
    typed: list[object] = [verb, options["target"], "--run", "typed"]
    for name, value in options.items():
        if name != "target":
            typed += [f"--{name}"] if value is True else [f"--{name}", value]
    by_verb = told_by(files / "typed", command(*typed)[0])
    write_options(files / "run.toml", options | {"run": "filed"}, "a test")
    assert told_by(files / "filed", command(verb, "--config", "run.toml")[0]) == by_verb
    # 2. By Python.
    function = {"audit": rw.audit, "leak": rw.leak}[verb]
    rest = {name: value for name, value in given.items() if name != "target"}
    assert outcome_of(lambda: function(given["target"], **rest)) == by_verb
    # 3. By an assertion, which fails or ends as the verb's error does.
    asserts = {"audit": rw.assert_not_in, "leak": rw.assert_no_leak}[verb]
    if verb == "leak":  # its own default is the test of who holds the corpus
        rest = {"attacks": "composite"} | rest
    kept: list[Any] = []
    try:
        ended = outcome_of(lambda: asserts(given["target"], **rest, on_outcome=kept.append))
    except AssertionError:
        ended = ("judged", None)
    if by_verb[0] == "error":
        assert ended == by_verb
        return
    assert kept[0].folder is not None
    assert told_by(kept[0].folder, 0) == by_verb
