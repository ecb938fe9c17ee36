"""The batching server of ``experiments/real``, over a model that counts its batches."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from experiments.real.serve import Batcher

pytestmark = pytest.mark.slow


class Counted:
    """Answers each question with the size of its batch."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def request(self, row: dict[str, Any], top: int | None) -> SimpleNamespace:
        del top
        body = row["body"]
        said = {"max_tokens": body["max_tokens"], "temperature": body.get("temperature", 0.0)}
        return SimpleNamespace(name=row["custom_id"], prompt_tokens=1, **said)

    def answer(self, batch: list[SimpleNamespace]) -> list[dict[str, Any]]:
        self.batches.append(len(batch))
        body = {"choices": [len(batch)]}
        return [{"custom_id": one.name, "response": {"body": body}} for one in batch]


def _ask(model: Counted, kept: Path, bodies: list[dict[str, Any]]) -> None:
    async def answered() -> None:
        batcher = Batcher(model, kept, 8)  # type: ignore[arg-type]
        running = asyncio.create_task(batcher.run())
        asked = [SimpleNamespace(json=_given(body)) for body in bodies]
        replies = await asyncio.gather(*(batcher.ask(one) for one in asked))  # type: ignore[arg-type]
        running.cancel()
        assert all(json.loads(reply.body)["choices"] for reply in replies)

    asyncio.run(answered())


def _given(body: dict[str, Any]) -> Any:
    async def given() -> dict[str, Any]:
        return body

    return given


def _question(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def test_questions_of_one_time_are_one_batch_and_are_not_answered_anew(tmp_path: Path) -> None:
    model, kept = Counted(), tmp_path / "kept.jsonl"
    three = [_question(text) for text in ("one", "two", "three")]
    _ask(model, kept, [*three, three[0]])  # the same question at the same time is one
    assert model.batches == [3]
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"custom_id": "cut')  # a crash
    _ask(model, kept, three)
    assert model.batches == [3]


def test_a_sample_without_a_seed_is_drawn_each_time(tmp_path: Path) -> None:
    model, kept = Counted(), tmp_path / "kept.jsonl"
    sampled = _question("one", temperature=0.8)
    for _ in range(2):
        _ask(model, kept, [sampled])
    assert model.batches == [1, 1]
    for _ in range(2):
        _ask(model, kept, [sampled | {"seed": 3}])
    assert model.batches == [1, 1, 1]
