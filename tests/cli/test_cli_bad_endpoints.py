"""Endpoints that misbehave: one clear line, the right exit code, other documents unaffected."""

import json
import socket
import sys
import time
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample
from tests.support.loopback import chat_body, loopback, reply

pytestmark = pytest.mark.slow

_MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})


@pytest.fixture
def audit(monkeypatch, capfd, tmp_path: Path):
    rows = [{"id": d.id, "text": d.text} for d in load_sample()[:70]]
    files = {}
    for name, part in (("docs", rows[:3]), ("known", rows[3:6])):
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text("".join(json.dumps(row) + "\n" for row in part))

    def call(url: str, *more: str) -> tuple[int, str, dict]:
        arguments = [
            "audit",
            "--yes",
            url,
            "--documents",
            files["docs"],
            "--known-out",
            files["known"],
        ]
        if "--method" not in more:
            arguments += ["--method", "s-rag"]
        arguments += ["--run", tmp_path / "run"]
        arguments += ["--json", tmp_path / "out.json", *more]
        monkeypatch.setattr(sys, "argv", ["ragwitness", *map(str, arguments)])
        code = 0
        try:
            run()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        written = tmp_path / "out.json"
        return code, out + err, json.loads(written.read_text()) if written.exists() else {}

    return call


def _logprobs(*tokens: str) -> dict:
    return {
        "content": [
            {"token": t, "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": -0.1}]}
            for t in tokens
        ]
    }


def test_a_web_page_instead_of_json_says_so(audit) -> None:
    with loopback(reply(b"<html>welcome</html>", kind="text/html")) as server:
        code, text, _ = audit(server.url)
    assert code == 1
    assert "HTML" in text
    assert "/v1" in text


def test_silently_dropped_logprobs_end_with_code_5(audit) -> None:
    with loopback(_MODELS, reply(chat_body("hello there", logprobs=None))) as server:
        code, text, _ = audit(server.url)
    assert code == 5
    assert "top_logprobs" in text
    assert "doctor" in text


def test_refusals_are_the_lowest_answers(audit) -> None:
    words = "I'm sorry, but I can't help with that."
    pieces = [f" {w}" if i else w for i, w in enumerate(words.split())]
    with loopback(_MODELS, reply(chat_body(words, logprobs=_logprobs(*pieces)))) as server:
        code, _, result = audit(server.url)
    assert code == 0
    assert all(-0.1 < row["score"] < 0 for row in result["documents"])  # p = 0 for every word
    assert {row["verdict"] for row in result["documents"]} == {"inconclusive"}


def test_one_bad_answer_leaves_the_other_documents_alone(audit) -> None:
    good = reply(chat_body(" the words", logprobs=_logprobs(" the", " words")))
    bad = reply({"object": "chat.completion", "choices": []})
    # Models, doctor's questions and echo, then three known-outside documents and the others in one
    # order: each place spoils one document, known or in question.
    lost = []
    for place in range(6):
        with loopback(_MODELS, good, good, *[good] * place, bad, good) as server:
            code, _, result = audit(server.url, "--concurrency", "1", "--method", "s2mia")
        assert code == 0
        reasons = [row["reason"] for row in result["documents"] if row["score"] is None]
        assert all("choices" in reason for reason in reasons)
        lost.append(len(reasons))
    assert set(lost) <= {0, 1}


def test_a_slow_endpoint_ends_at_the_timeout(audit) -> None:
    def silent(connection: socket.socket) -> None:
        time.sleep(3)

    started = time.monotonic()
    with loopback(_MODELS, silent) as server:
        code, text, _ = audit(server.url, "--timeout", "0.3", "--retries", "1")
    assert code == 1
    assert "error:" in text
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("method", ["rag-mia", "mba", "s2mia"])
def test_a_text_only_endpoint_admits_the_audits_of_text(audit, method: str) -> None:
    with loopback(_MODELS, reply(chat_body("Yes", logprobs=None))) as server:
        code, text, data = audit(server.url, "--method", method)
    assert code == 0, text
    assert len(data["documents"]) == 3
    assert all(document["queries"] >= 1 for document in data["documents"])
    if method == "rag-mia":  # the same answer to all tells nothing
        assert {document["verdict"] for document in data["documents"]} == {"inconclusive"}
        assert {document["p_value"] for document in data["documents"]} == {1.0}
