"""Models that no audit can use: each is named in one clear sentence, and nothing is called in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.models import model_registry as registry
from ragwitness.text.sample import load_sample
from tests.support.chatting import answering
from tests.support.loopback import chat_body, loopback, reply
from tests.unit.models.test_endpoint import gguf

pytestmark = pytest.mark.slow

_SAMPLE = load_sample()
_MINE = "A word of those in question."
_GERMAN = "Leider kann ich diese Frage nicht beantworten."
_REFUSED = "This model's maximum context length is 512 tokens."
_BASE = "The model is a base model: no chat template"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_loaded", {})
    yield
    registry._loaded.clear()


@pytest.fixture
def verbs(command, tmp_path: Path):
    """Run ``audit`` and ``doctor`` on an address; return exit code and words of each."""
    mine = [replace(one, text=f"{_MINE} {one.text}") for one in _SAMPLE[:2]]
    files = {"asked": mine, "known": _SAMPLE[200:240], "corpus": _SAMPLE[100:130]}
    for name, part in files.items():
        rows = [json.dumps({"id": one.id, "text": one.text}) for one in part]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    given = ("--documents", tmp_path / "asked.jsonl", "--known-out", tmp_path / "known.jsonl")

    def call(address: str) -> list[tuple[int, str]]:
        line = ("--run", tmp_path / "run", "--yes", "--accept-unlike", "--retries", "0")
        ends = [command("audit", address, *given, *line), command("doctor", address)]
        return [(code, " ".join(text.split())) for code, text in ends]

    return call


def _cut(text: str, **message: object) -> bytes:
    body = chat_body(text, **message)
    body["choices"][0]["finish_reason"] = "length"
    return reply(body)


@pytest.mark.parametrize(
    ("answer", "code", "audited", "examined"),
    [
        (
            lambda _: _cut("<think>Let me see. The user"),
            5,
            "4 of 4 pilot answers cannot be read: it thought until its tokens were spent",
            "cannot be read: it thought until its tokens were spent",
        ),
        (
            lambda _: _cut("", content=None, reasoning_content="Let me see. The user"),
            5,
            "4 of 4 pilot answers cannot be read: it thought until its tokens were spent",
            "cannot be read: it thought until its tokens were spent",
        ),
        (
            lambda _: reply(chat_body(_GERMAN)),
            0,
            "all about texts that were shown were declined",
            f"first answer: {_GERMAN}",
        ),
        (
            lambda said: (
                reply({"error": {"message": _REFUSED}}, 400)
                if said[40:]
                else reply(chat_body("Hello."))
            ),
            0,
            f"4 of 4 pilot answers cannot be read: {{url}} refused the request (status 400):"
            f" {_REFUSED.rstrip('.')},",
            f"{{url}} refused the request (status 400): {_REFUSED.rstrip('.')} ",
        ),
    ],
    ids=["thinks", "thinks in secret", "another language", "small context"],
)
def test_a_target_that_no_method_can_read(
    verbs, answer, code: int, audited: str, examined: str
) -> None:
    with loopback(answering(lambda: server, answer)) as server:
        (ended, text), (_, seen) = verbs(f"{server.url}#m")
        sent = [str(request) for request in server.requests]
    # A pilot tells it before anything in question is asked, and the audit goes on all the same.
    first = next((n for n, one in enumerate(sent) if _MINE in one), len(sent))
    assert sum("Context: " in one for one in sent[:first]) >= 4
    assert audited.format(url=server.url) in text
    assert "so little may be found; it is asked all the same" in text
    assert ended == code
    if code:
        assert "None of the first 10 documents asked about could be read" in text
        assert "next: Look at answers of the target: ragwitness doctor TARGET." in text
    else:
        assert "0 of 2 documents: in the database 2 are inconclusive" in text
    assert examined.format(url=server.url) in seen
    # What was not tried is not said to be fine.
    assert "audits possible: s2mia (no pilot), joint (no pilot) cost" in seen


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            reply({"error": {"message": _BASE}}, 400),
            f"has no chat for this model (status 400): {_BASE}",
        ),
        (reply({"detail": "Not Found"}, 404), "knows no such address"),
        (reply({"object": "list", "data": [{"embedding": [0.1]}]}), "there are no choices"),
        (reply(b"<html>Welcome</html>", kind="text/html"), "HTML (a web page)"),
    ],
    ids=["base model", "nothing there", "embeddings", "web page"],
)
def test_an_endpoint_that_is_no_chat_model(verbs, tmp_path: Path, answer: bytes, said: str) -> None:
    with loopback(answering(lambda: server, lambda _: answer)) as server:
        ends = [
            *verbs(f"{server.url}#m"),
            *verbs(f"lab:{tmp_path}/corpus.jsonl?generator={server.url}#m"),
        ]
    assert [code for code, _ in ends] == [1] * 4
    for _, text in ends:
        assert said in text
        assert text.count("error: ") == text.count("next: ") == 1
    assert all("must answer chats: URL#MODEL" in text for _, text in ends[2:])


def test_a_context_too_small_for_the_passages_is_named_before_anything_is_asked(
    verbs, tmp_path: Path
) -> None:
    listed = reply({"object": "list", "data": [{"id": "m", "max_model_len": 512}]})
    with loopback(answering(lambda: server, models=listed)) as server:
        ends = verbs(f"lab:{tmp_path}/corpus.jsonl?generator={server.url}#m")
    for code, text in ends:
        assert code == 2
        assert "reads 512 tokens, but 4 passages of usual length" in text
        assert "Retrieve fewer passages (k)" in text
    sent = str(server.requests)
    assert not any(one.text[:60] in sent for one in _SAMPLE)


@pytest.mark.parametrize(
    ("data", "said", "next_step"),
    [
        (gguf("perceptron"), "unknown model architecture: 'perceptron'", "--upgrade xllamacpp"),
        (gguf("llama")[:40], "exceeds remaining file size", "The file is cut short"),
    ],
    ids=["unknown architecture", "cut short"],
)
def test_a_gguf_file_that_cannot_be_loaded(
    verbs, tmp_path: Path, data: bytes, said: str, next_step: str
) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "model.gguf").write_bytes(data)
    model = f"gguf:{tmp_path}/model.gguf"
    for address in (model, f"lab:{tmp_path}/corpus.jsonl?generator={model}"):
        for code, text in verbs(address):
            assert code == 1
            assert said in text
            assert next_step in text


def test_caps_below_every_method_hold_and_the_run_can_go_on(command, tmp_path: Path) -> None:
    rows = [json.dumps({"id": one.id, "text": one.text}) for one in _SAMPLE[:60]]
    for name, part in (("asked", rows[:20]), ("known", rows[20:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part) + "\n")
    given = ("--documents", tmp_path / "asked.jsonl", "--known-out", tmp_path / "known.jsonl")
    with loopback(answering(lambda: server)) as server:
        line = ("--run", tmp_path / "run", "--yes", "--accept-unlike", "--max-queries", "15")
        code, text = command("audit", f"{server.url}#m", *given, *line)
        assert len(server.requests) <= 15
    said = " ".join(text.split())
    assert code == 0
    assert "no method stays within the caps, this one asks least" in said
    assert "0 of 20 documents: in the database" in said
    assert "The same command with a higher --max-queries resumes" in said
