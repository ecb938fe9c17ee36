"""Questions written to a file, answered by another program, and concluded by replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt, Generation
from ragwitness.models.model_registry import load_language_model
from ragwitness.text.sample import load_sample

Command = Callable[..., tuple[int, str]]
_FILES = ("--documents", "docs.jsonl", "--known-out", "known.jsonl", "--yes")
_LAB = "lab:corpus.jsonl?k=1"


@pytest.fixture
def audit(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Audits four documents, two of which are in the corpus, beside eight known ones."""
    rows = [json.dumps({"id": one.id, "text": one.text}) for one in load_sample(40)[:16]]
    parts = {"docs": rows[:4], "known": rows[4:12], "corpus": rows[:2] + rows[12:]}
    for name, part in parts.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part))
    monkeypatch.chdir(tmp_path)
    return lambda target, *more: command("audit", target, *_FILES, *more)


def answer_all(skip: frozenset[int] = frozenset()) -> None:
    """Answer questions.jsonl as a batch service does, by the reader and nothing of the lab."""
    model = load_language_model("reader")
    rows = []
    for place, line in enumerate(Path("questions.jsonl").read_text().splitlines()):
        request = json.loads(line)
        body = request["body"]
        messages = tuple(Message(Role(m["role"]), m["content"]) for m in body["messages"])
        top = body.get("top_logprobs", 0)
        [made] = model.generate(
            [ChatPrompt(messages)], max_tokens=body["max_tokens"], top_logprobs=top
        )
        row = {"id": f"r{place}", "custom_id": request["custom_id"], "error": None}
        failed = {"status_code": 500, "body": {"error": {"message": "overloaded"}}}
        answered = {"status_code": 200, "body": _completion(made, top)}
        rows.append(row | {"response": failed if place in skip else answered})
    # A batch service answers in an order of its own.
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))


def _completion(made: Generation, top: int) -> dict[str, Any]:
    listed = [
        {
            "token": token.token,
            "logprob": token.logprob,
            "top_logprobs": [{"token": t, "logprob": p} for t, p in token.top],
        }
        for token in made.tokens
    ]
    message = {"role": "assistant", "content": made.text}
    logprobs = {"content": listed} if top else None
    return {
        "choices": [{"message": message, "logprobs": logprobs, "finish_reason": made.finish_reason}]
    }


def _found(run: str) -> dict[str, Any]:
    """A result without what differs between any two runs, and without the target's name."""
    result = json.loads(Path(run, "result.json").read_bytes())
    for name in ("target", "started", "seconds", "spent"):
        del result["summary"][name]
    return dict(result)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["min-k", "mba"])
def test_answers_of_a_batch_conclude_as_if_the_target_had_been_asked(
    audit: Command, method: str
) -> None:
    options = ("--method", method)
    code, text = audit(_LAB, *options, "--questions-to", "questions.jsonl")
    assert code == 0, text
    assert "12 questions about 12 documents; 0 others have none; nothing was sent" in text
    assert not Path("ragwitness-runs").exists()
    answer_all()
    code, text = audit("replay/answers.jsonl", *options, "--run", "later")
    assert code == 0, text
    code, text = audit(_LAB, *options, "--run", "asked")
    assert code == 0, text
    assert _found("later") == _found("asked")
    # What was retrieved went along: an indexed document stands in the prompt of its question.
    indexed = json.loads(Path("corpus.jsonl").read_text().splitlines()[0])["text"]
    lines = Path("questions.jsonl").read_text().splitlines()
    assert any(indexed in json.loads(one)["body"]["messages"][0]["content"] for one in lines)


@pytest.mark.slow
def test_other_settings_or_documents_are_refused(audit: Command) -> None:
    assert audit(_LAB, "--method", "mba", "--questions-to", "questions.jsonl")[0] == 0
    answer_all()
    rows = Path("docs.jsonl").read_text().splitlines()
    changes = {
        "a setting": ("--method", "mba", "--set", "seed=5"),
        "the method": ("--method", "min-k"),
        "a document": ("--method", "mba"),
    }
    for change, options in changes.items():
        if change == "a document":
            Path("docs.jsonl").write_text("\n".join(rows[:3]))
        code, text = audit("replay/answers.jsonl", *options)
        assert code == 2, change
        assert "answers the questions of another audit" in " ".join(text.replace("│", "").split())
    # What decides no question may change.
    Path("docs.jsonl").write_text("\n".join(rows))
    code, text = audit("replay/answers.jsonl", "--method", "mba", "--alpha", "0.2")
    assert code == 0, text


@pytest.mark.slow
def test_missing_answers_are_counted_and_named(
    audit: Command, caplog: pytest.LogCaptureFixture
) -> None:
    assert audit(_LAB, "--method", "mba", "--questions-to", "questions.jsonl")[0] == 0
    answer_all(skip=frozenset({0, 9, 11}))
    code, text = audit("replay/answers.jsonl", "--method", "mba", "--run", "later")
    assert code == 0, text
    assert "3 requests in answers.jsonl failed" in caplog.text
    lost = [row["reason"] for row in _found("later")["documents"] if row["score"] is None]
    assert len(lost) == 2
    assert all("holds no answer to this question (number" in reason for reason in lost)
    # They alone are written for the next round, and its answers are added to the others.
    more = ("--questions-to", "questions.jsonl", "--answered", "answers.jsonl")
    code, text = audit(_LAB, "--method", "mba", *more)
    assert "3 questions about 3 documents; 9 others have none" in " ".join(text.split())
    first = Path("answers.jsonl").read_text()
    answer_all()
    Path("answers.jsonl").write_text(first + Path("answers.jsonl").read_text())
    code, text = audit("replay/answers.jsonl", "--method", "mba", "--run", "whole")
    assert code == 0, text
    assert all(row["score"] is not None for row in _found("whole")["documents"])
    code, text = audit(_LAB, "--method", "mba", *more)
    assert code == 2
    assert "No document has a question that is not answered yet" in text
    code, text = audit(_LAB, "--method", "min-k", *more)
    assert code == 2
    assert "answers the questions of another audit" in " ".join(text.replace("│", "").split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "--method auto asks the target what it can do"),
        (("--method", "mba", "--seal", "k.key"), "Leave out --questions-to or --seal"),
        (("--method", "mba", "--collection"), "--questions-to does not apply to a collection"),
    ],
)
def test_what_cannot_be_written_beforehand_is_named(
    audit: Command, options: tuple[str, ...], says: str
) -> None:
    code, text = audit(_LAB, *options, "--questions-to", "questions.jsonl")
    assert code == 2
    assert says in " ".join(text.replace("│", "").split())
    assert not Path("questions.jsonl").exists()


def test_answers_without_a_file_for_questions_are_refused(audit: Command) -> None:
    code, text = audit(_LAB, "--method", "mba", "--answered", "docs.jsonl")
    assert code == 2
    assert "--answered is for writing what is still to be asked" in " ".join(text.split())
