"""llama.cpp's server: gives log-probabilities, and the same as the reader in numpy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tokenizers import Tokenizer

from ragwitness.core.types import Answer, Message, Query, Role
from ragwitness.models.base import ChatPrompt
from ragwitness.models.model_registry import load_language_model
from ragwitness.models.reader.model import PACKAGED_WEIGHTS
from ragwitness.targets.resolve import open_target
from ragwitness.text.sample import load_sample

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]

_NEAREST = 0.02  # nats; float32 weights, but keys and values are kept in float16


def _ask(url: str, *queries: Query) -> list[Answer]:
    async def main() -> list[Answer]:
        target = await open_target(url)
        try:
            return [await target.ask(query) for query in queries]
        finally:
            await target.close()

    return asyncio.run(main())


def _post(url: str, body: dict[str, Any]) -> Any:
    reply = httpx2.post(url, json=body, timeout=120)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_doctor_finds_what_it_can_do(command: Command, llama_server: str, tmp_path: Path) -> None:
    out = tmp_path / "doctor.json"
    code, said = command("doctor", llama_server, "--no-pilot", "--json", out, "--timeout", 120)
    assert code == 0, said
    found = json.loads(out.read_text())
    assert {"text", "top_logprobs"} <= set(found["capabilities"])
    assert (found["dropped_logprobs"], found["alternatives"]) == (False, 20)
    assert {"s-rag", "min-k"} <= set(found["audits"])


def test_an_audit_of_log_probabilities_runs(
    command: Command, llama_server: str, files: list[str], tmp_path: Path
) -> None:
    arguments = ["--method", "min-k", "--run", tmp_path / "run", "--timeout", 120]
    code, said = command("audit", "--yes", f"{llama_server}#reader", *files, *arguments)
    assert code == 0, said
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["summary"]["queries"] == 8
    scores = [entry["score"] for entry in result["documents"]]
    assert len([score for score in scores if score is not None]) >= 3


def test_its_tokens_are_the_readers(llama_server: str) -> None:
    own = Tokenizer.from_file(str(PACKAGED_WEIGHTS / "tokenizer.json"))
    base = llama_server.removesuffix("/v1")
    texts = [d.text for d in load_sample()[:40]]
    texts += ["Ça coûte 1234,50 €.", "猫は 六時に\n起きる 🙂", "  a\t b\n\n", "3.1415 x_y-z's"]
    for text in texts:
        counted = _post(f"{base}/tokenize", {"content": text})["tokens"]
        assert counted == own.encode(text, add_special_tokens=False).ids, text


def test_its_log_probabilities_are_the_readers(llama_server: str) -> None:
    reader = load_language_model("reader")
    prompts = [f"Complete the paragraph.\n\n{d.text[:200]}" for d in load_sample()[:600:30]]
    asked = [Query(prompt, max_tokens=24, top_logprobs=20) for prompt in prompts]
    chosen: list[float] = []
    others: list[float] = []
    for query, answer in zip(asked, _ask(llama_server, *asked), strict=True):
        prompt = ChatPrompt((Message(Role.USER, query.prompt),))
        (own,) = reader.score([answer.text], after=[prompt], top=20)
        assert answer.tokens is not None
        spelled = [token.token.strip() for token in answer.tokens]
        if spelled != [token.token.strip() for token in own.tokens]:
            continue  # the answer's text has more than one spelling in tokens
        for theirs, ours in zip(answer.tokens, own.tokens, strict=True):
            theirs_top, ours_top = dict(theirs.top), dict(ours.top)
            shared = theirs_top.keys() & ours_top.keys()
            assert len(shared) >= 18
            chosen.append(abs(theirs.logprob - ours.logprob))
            others += [abs(theirs_top[name] - ours_top[name]) for name in shared]
    print(f"{len(chosen)} tokens: {max(chosen):.1e}; {len(others)} listed: {max(others):.1e} nats")
    assert len(chosen) >= 100
    assert max(*chosen, *others) < _NEAREST
