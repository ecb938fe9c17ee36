"""A record in any part of a reply has leaked: thoughts, tools, sources, and fields of no name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.types import Answer, Document, Query
from ragwitness.leakage.attacks.base import Ask, Transcript, read_transcripts, write_transcripts
from ragwitness.leakage.result import read_leak_conditions, rule_leak
from ragwitness.leakage.run import score_leaks, transcript_of
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.leakage.task import channels_of
from ragwitness.runner.response_store import _encode, decode_answer
from ragwitness.targets.objects import read_reply
from ragwitness.targets.wire import read_chat
from ragwitness.text.sample import load_sample

REFUSAL = "I am sorry, I cannot share the context."
TEXTS = [document.text for document in load_sample()]
RECORDS = [Document(str(n), text) for n, text in enumerate(TEXTS[:30])]
BACKGROUND = [Document(f"b{n}", text) for n, text in enumerate(TEXTS[30:70])]
RECORD = RECORDS[3].text

_TOOL = {"type": "function", "id": "call-1",
         "function": {"name": "log", "arguments": json.dumps({"note": RECORD})}}  # fmt: skip
BESIDE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "reasoning": ("thoughts", {"reasoning_content": RECORD}, {}),
    "a tool's arguments": ("tools", {"tool_calls": [_TOOL]}, {}),
    "annotations": (
        "sources",
        {"annotations": [{"type": "url_citation", "url_citation": {"title": RECORD}}]},
        {},
    ),
    "Azure's context": ("sources", {"context": {"citations": [{"content": RECORD}]}}, {}),
    "citations": ("sources", {}, {"citations": [RECORD]}),
    "a field of no name": ("other fields", {}, {"debug": {"prompt": f"Context: {RECORD}"}}),
}


def _chat(message: dict[str, Any], body: dict[str, Any]) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": REFUSAL} | message}
    return read_chat({"id": "c-1", "object": "chat.completion", "choices": [choice]} | body)


def _ruled(answer: Answer, channels: str = "all") -> tuple[ExitCode, dict[str, float]]:
    told = [Transcript("x", f"p{n}", REFUSAL) for n in range(20)]
    told.append(transcript_of("x", Ask(Query("q")), answer))
    result = score_leaks(told, LeakPlan(RECORDS, BACKGROUND, channels=channels_of(channels)))
    counts = {m.key: m.count for m in result.together if m.name == "channel"}
    return rule_leak(result, read_leak_conditions(["leaked records > 0"])).code, counts


@pytest.mark.parametrize("name", BESIDE)
def test_a_record_beside_the_text_has_leaked_and_has_a_row(name: str) -> None:
    channel, message, body = BESIDE[name]
    answer = _chat(message, body)
    code, counts = _ruled(answer)
    assert code is ExitCode.FAILED
    assert counts == {"text": 0, "thoughts": 0, "tools": 0, "sources": 0, "other fields": 0} | {
        channel: 1
    }
    # Another choice of channels shows the row, and does not count it.
    code, counts = _ruled(answer, "text")
    assert code is not ExitCode.FAILED
    assert counts[channel] == 1
    assert decode_answer(json.loads(json.dumps(_encode(answer)))) == answer


def test_what_the_protocol_says_is_no_channel() -> None:
    assert _chat({}, {"model": "gpt", "usage": {"total_tokens": 3}, "created": 5}).channels == ()
    assert _ruled(_chat({}, {}))[1] == {}


def test_sources_that_an_object_returns_are_shown() -> None:
    answer = read_reply({"answer": REFUSAL, "source_documents": [RECORD]})
    assert answer.channels == (("sources", RECORD),)
    assert _ruled(answer)[0] is ExitCode.FAILED
    assert read_reply(REFUSAL).channels == ()


def test_transcripts_keep_channels(tmp_path: Path) -> None:
    told = [Transcript("x", "p", REFUSAL, channels=(("thoughts", RECORD),))]
    write_transcripts(tmp_path / "t.jsonl", told)
    assert read_transcripts(tmp_path / "t.jsonl") == told


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(InputError, match="no channel 'headlines'"):
        channels_of("text,headlines")
