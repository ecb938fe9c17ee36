"""Runs that are killed, cut or out of disk: what was paid for is kept and not asked for again."""

import asyncio
import errno
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragwitness.cli.common import run_folder
from ragwitness.core.errors import RagwitnessError
from ragwitness.core.types import Answer, Query
from ragwitness.runner.budget import total_use
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore, query_key
from tests.support.asking import AT_ONCE
from tests.support.rough import Rough, rough

_DOCUMENTS = 24  # of three queries each


def _command(
    server: Rough, run: Path, out: Path, *more: object, documents: int = _DOCUMENTS
) -> list[str]:
    arguments = (server.url, run, out, documents, *more)
    return [sys.executable, "-m", "tests.support.asking", *map(str, arguments)]


def _finish(
    server: Rough, run: Path, out: Path, *more: object, documents: int = _DOCUMENTS
) -> subprocess.CompletedProcess:
    command = _command(server, run, out, *more, documents=documents)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _kill_after(
    requests: int, server: Rough, run: Path, out: Path, documents: int = _DOCUMENTS
) -> None:
    """Start a run and kill it once the server has seen so many requests of it."""
    before = len(server.prompts)
    with subprocess.Popen(_command(server, run, out, documents=documents)) as process:
        while len(server.prompts) < before + requests and process.poll() is None:
            time.sleep(0.001)
        time.sleep(random.Random(before).random() * 0.03)
        process.kill()
    time.sleep(0.1)  # the server still reads what had been sent


def _kept(run: Path, server: Rough, prompts: Sequence[str]) -> set[str]:
    """Prompts whose answers are whole in the journal."""
    path = run / "answers.jsonl"
    keys = set()
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        keys.add(json.loads(line)["key"])
    asked = {prompt: Query(prompt, 8, top_logprobs=1) for prompt in prompts}
    return {prompt for prompt, q in asked.items() if query_key(f"{server.url}#m", q) in keys}


def _killed_often(kills: int, documents: int, tmp_path: Path) -> None:
    rng, queries = random.Random(kills), 3 * documents
    with rough(seconds=0.02) as server:
        whole = tmp_path / "whole", tmp_path / "whole.json"
        assert _finish(server, *whole, documents=documents).returncode == 0
        prompts = list(server.prompts)
        assert len(prompts) == len(set(prompts)) == queries
        start, most, asked_later = len(prompts), max(2, queries // kills), []
        run, out = tmp_path / "killed", tmp_path / "killed.json"
        for _ in range(kills):
            _kill_after(rng.randint(1, most), server, run, out, documents)
            asked_later.append((len(server.prompts), _kept(run, server, prompts)))
        assert _finish(server, run, out, documents=documents).returncode == 0
        asked = server.prompts[start:]
    for place, kept in asked_later:
        assert not kept & set(server.prompts[place:])  # no answer that was kept is asked again
    assert any(kept for _, kept in asked_later)
    assert _kept(run, server, prompts) == set(prompts) == set(asked)
    # Lost are at most the answers that were under way when it was killed.
    assert len(asked) - queries <= AT_ONCE * kills
    assert len((run / "answers.jsonl").read_bytes().splitlines()) == queries
    # Every request is remembered as spent, those whose answers never came included.
    assert len(asked) <= total_use(run / "spent.jsonl").queries <= len(asked) + AT_ONCE * kills
    assert out.read_bytes() == (tmp_path / "whole.json").read_bytes()


@pytest.mark.slow
def test_a_run_killed_three_times_ends_as_one_that_was_not(tmp_path) -> None:
    _killed_often(3, _DOCUMENTS, tmp_path)


@pytest.mark.long
def test_a_run_of_501_queries_killed_twenty_times_ends_as_one_that_was_not(tmp_path) -> None:
    _killed_often(20, 167, tmp_path)


@pytest.mark.slow
def test_a_cap_holds_across_kills(tmp_path) -> None:
    run, out = tmp_path / "run", tmp_path / "out.json"
    with rough(seconds=0.02) as server:
        for _ in range(2):
            _kill_after(8, server, run, out)
        assert _finish(server, run, out, 40).returncode == 0
        assert len(server.prompts) <= 40
    reasons = {row[3] for row in json.loads(out.read_text())}
    assert "query cap reached" in reasons


@pytest.mark.slow
def test_a_full_disk_ends_with_one_line_and_loses_nothing(tmp_path) -> None:
    run, out = tmp_path / "run", tmp_path / "out.json"
    with rough() as server:
        full = _finish(server, run, out, 0, 3000)  # files may not grow beyond 3,000 bytes
        assert full.returncode == 1
        assert full.stderr.count("\n") <= 3
        assert "Cannot write the" in full.stderr
        assert "resumes" in full.stderr
        place, prompts = len(server.prompts), list(server.prompts)
        kept = _kept(run, server, prompts)
        assert len(kept) >= place - AT_ONCE  # at most those under way could not be stored
        assert _finish(server, run, out).returncode == 0
        assert not kept & set(server.prompts[place:])
        assert _finish(server, tmp_path / "whole", tmp_path / "whole.json").returncode == 0
    assert out.read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_a_line_half_written_when_the_disk_was_full_harms_no_other(tmp_path, monkeypatch) -> None:
    write, room = os.write, 10

    def nearly_full(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written, room = write(descriptor, data[:room]), 0
        return written

    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        responses.put("one", Answer("first"))
        monkeypatch.setattr(os, "write", nearly_full)
        with pytest.raises(RagwitnessError, match="No space left"):
            responses.put("two", Answer("second"))
        monkeypatch.setattr(os, "write", write)
        responses.put("three", Answer("third"))
        assert responses.get("three") == Answer("third")
    with ResponseStore(tmp_path / "answers.jsonl") as again:
        assert again.get("one") == Answer("first")
        assert again.get("two") is None
        assert again.get("three") == Answer("third")


def test_a_full_disk_stops_a_query_before_it_is_sent(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def never(query: Query) -> Answer:
        raise AssertionError("sent")

    with RateLimiter.of_run(tmp_path) as limiter:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(RagwitnessError, match="No space left"):
            asyncio.run(limiter.spend(Query("?"), never))
        assert limiter.spent.queries == 0


@pytest.mark.parametrize(
    ("result", "place"),
    [
        ('{"summary": {"spent": null}}', 2),
        ('{"summary": {"spent": {"stopped_by": "query"}}}', 1),
        ('{"spent": {"stopped_by": "cost"}}', 1),
        ('{"summary": {"spe', 1),  # the disk was full
    ],
)
def test_only_a_finished_run_is_followed_by_a_new_one(
    tmp_path, monkeypatch, result: str, place: int
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = run_folder(None, "same inputs")
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(result)
    assert run_folder(None, "same inputs").name.endswith(f"-{place}")
