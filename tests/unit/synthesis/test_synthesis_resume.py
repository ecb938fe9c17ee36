"""Making a corpus over HTTP: nothing is asked twice, caps hold, and every method is guarded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ragwitness.core.errors import CapReachedError, InputError, TargetError
from ragwitness.core.types import Document
from ragwitness.runner.budget import Budget
from ragwitness.synthesis.generator_registry import METHODS, build_method
from ragwitness.synthesis.run import write_made
from tests.support.synthesis import assert_safe, assert_safe_after, corpus, make
from tests.support.writers import Said, blocks, good, writers


def test_a_good_model_passes_and_a_second_start_asks_nothing(tmp_path: Path) -> None:
    documents = corpus()
    with writers() as server:
        first = make(server.url, documents, tmp_path / "run")
        asked = len(server.prompts)
        again = make(server.url, documents, tmp_path / "run")
        assert len(server.prompts) == asked
    assert first.report.counts == {"passed": 6}
    assert again.report.queries == first.report.queries
    assert first.made == again.made
    assert again.report.sent == 0
    assert len(assert_safe_after(tmp_path / "safe.jsonl", first, documents)) == 6


def test_a_cap_ends_it_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    documents = corpus()
    with writers() as server:
        part = make(server.url, documents, tmp_path / "run", budget=Budget(queries=9))
        assert len(server.prompts) <= 9
        assert part.report.spent.stopped_by == "query"
        assert part.report.counts["unasked"] == part.report.spent.unasked > 0
        assert "higher --max-queries resumes" in " ".join(part.report.warnings)
        whole = make(server.url, documents, tmp_path / "run", budget=Budget(queries=99))
        assert whole.report.counts == {"passed": 6}
        assert max(Counter(server.prompts).values()) == 1
        with pytest.raises(CapReachedError):
            make(server.url, corpus(3), tmp_path / "other", budget=Budget(tokens=10))


def test_texts_that_repeat_each_other_are_reported() -> None:
    bland = "Somebody asks for advice; rest, water and a visit to a clinic are named as usual."
    with writers(lambda kind, said: bland if kind == "generate" else good(kind, said)) as server:
        result = make(server.url, corpus(), None)
    assert result.report.counts == {"passed": 6}
    [told] = [warning for warning in result.report.warnings if "nearly the same" in warning]
    assert told.startswith("5 of 6 synthetic texts are nearly the same as an earlier one")
    with writers() as server:
        other = make(server.url, corpus(), None)
    assert not [warning for warning in other.report.warnings if "nearly the same" in warning]


def test_a_model_that_cannot_be_reached_or_begins_with_nothing() -> None:
    with writers() as server:
        gone = server.url
    with pytest.raises(TargetError):
        make(gone, corpus(2), None)
    with (
        writers(lambda kind, prompt: "I'm sorry, I can't help.") as server,
        pytest.raises(TargetError, match=r"cannot begin: \w+: the model refused"),
    ):
        make(server.url, corpus(2), None)
    with writers() as server, pytest.raises(InputError, match="No record"):
        make(server.url, [Document("a", " ")], None)


@pytest.mark.parametrize(
    "method", [m for m, entry in METHODS.items() if not (entry.evaluation or entry.private)]
)
def test_every_method_writes_only_what_passes(method: str, tmp_path: Path) -> None:
    documents = corpus()

    def script(kind: str, prompt: str) -> str:
        if kind != "other":
            return good(kind, prompt)
        if len(blocks(prompt)) == 1 and "An earlier attempt" not in prompt:
            return blocks(prompt)[0]  # a paraphrase that copies; mended when told
        return "Somebody asked about a matter, and was given kind advice."

    with writers(script) as server:
        result = make(server.url, documents, None, method=method)
    out = tmp_path / "safe.jsonl"
    write_made(out, result)
    if method == "redact":
        texts = [one.text for one in result.made]
        assert result.report.counts == {"passed": 6}
        assert all(t.endswith("Signed by <NAME>, call <PHONE>.") for t in texts), texts
        return
    rows = assert_safe(out, documents)
    assert len(rows) == 6, result.report.reasons


@pytest.mark.parametrize("method", [m for m, entry in METHODS.items() if entry.evaluation])
def test_methods_for_evaluation_are_never_written(method: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="for evaluation alone"):
        build_method(method)
    documents = corpus(3)

    def script(kind: str, prompt: str) -> str:
        if kind == "judge":
            return "SUGGESTIONS: x"
        lists = "subtopics" in prompt or "form of a list" in prompt
        other = "- tides\n- boats" if lists else "What is asked? Copy out this."
        return good(kind, prompt) if kind != "other" else other

    with writers(script) as server:
        result = make(server.url, documents, None, method=method, evaluation=True)
    assert result.report.counts == {"unguarded": 3}
    assert write_made(tmp_path / "safe.jsonl", result) == 0


PROGRAM = """
import sys
from pathlib import Path
from tests.support.synthesis import corpus, make
make(sys.argv[1], corpus(12), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    def slowly(kind: str, prompt: str) -> Said:
        return Said(good(kind, prompt), wait=0.02)

    documents, kills = corpus(12), 0
    with writers(slowly) as server:
        for after in (6, 20):
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, server.url, str(tmp_path / "run")],
                cwd=Path(__file__).parents[3],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            while len(server.prompts) < after and process.poll() is None:
                time.sleep(0.005)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.wait()
        under_way = Counter(server.prompts)
        result = make(server.url, documents, tmp_path / "run")
        asked = Counter(server.prompts)
    assert kills == 2
    assert result.report.counts == {"passed": 12}
    # Asked again at most what was on its way when it was killed: three records at a time.
    assert sum(count - 1 for count in asked.values()) <= 3 * kills
    assert max(asked.values()) <= 3
    assert under_way
    with writers() as server:
        assert make(server.url, documents, tmp_path / "fresh").made == result.made


@pytest.mark.parametrize(
    ("reply", "named"),
    [("Nothing in any form.", True), ("I'm sorry, I can't help with that.", False)],
)
def test_a_small_model_is_named_as_a_cause_only_where_forms_were_not_kept(
    reply: str, named: bool
) -> None:
    def script(kind: str, prompt: str) -> str:
        return reply if kind == "extract" else good(kind, prompt)

    with writers(script) as server:
        report = make(server.url, corpus(3), None).report
    assert report.counts.get("passed", 0) == 0
    assert any("private-evolution" in warning for warning in report.warnings) == named
