"""The page on targets: its files, objects and addresses are used as they stand there."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Capability
from ragwitness.runner.capabilities import CapabilityReport, probe_capabilities
from ragwitness.targets.resolve import SCHEMES, open_target
from tests.support.loopback import loopback, reply

_PAGE = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    return [text for named, text in found if named == kind]


def doctor(spec: str) -> CapabilityReport:
    async def main() -> CapabilityReport:
        target = await open_target(spec)
        try:
            return await probe_capabilities(target)
        finally:
            await target.close()

    return asyncio.run(main())


def test_every_scheme_is_described_and_every_address_has_one() -> None:
    for scheme in SCHEMES:
        assert re.search(rf"`{scheme}[/:]", _PAGE), scheme
    lines = "".join(blocks("")).replace("\\\n", "").splitlines()
    assert len(lines) > 8
    for line in lines:
        _, _, address, *_ = shlex.split(line)
        scheme = re.split("[:/]", address)[0]
        assert address.startswith(("http://", "https://")) or scheme in SCHEMES


def test_the_described_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "service.toml"
    row = {"token": "x", "logprob": -1.0, "top_logprobs": [{"token": "x", "logprob": -1.0}]}
    answer = {"text": "x", "sources": [{"passage": "p"}], "logprobs": [row]}
    with loopback(reply({"session": {"id": 7}, "answer": answer})) as server:
        url = server.url.removesuffix("/v1")
        file.write_text(blocks("toml")[0].replace("http://127.0.0.1:8000", url))
        with pytest.raises(InputError, match="MY_SERVICE_KEY is not set"):
            doctor(f"http/{file}")
        monkeypatch.setenv("MY_SERVICE_KEY", "a-key-of-mine")
        found = doctor(f"http/{file}")
    assert found.capabilities == {Capability.TEXT, Capability.TOP_LOGPROBS, Capability.CONTEXTS}
    assert server.requests[1] == ("/sessions/7/ask", {"question": "Say hello.", "max_tokens": 8})


def test_the_python_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rag.py").write_text(blocks("python")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    found = doctor("python:my_rag:ask")
    assert found.capabilities == {Capability.TEXT, Capability.CONTEXTS}


def test_the_python_example_runs() -> None:
    code = blocks("python")[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "HELLO\n"


def test_the_recording(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(blocks("jsonl")[0])
    found = doctor(f"replay/{tmp_path}/answers.jsonl")
    assert found.capabilities == {Capability.TEXT, Capability.CONTEXTS}


def test_the_entry_points_are_read_from_these_groups() -> None:
    from ragwitness.membership.method_registry import GROUP as AUDITS
    from ragwitness.rag.defenses.defense_registry import GROUP as DEFENSES
    from ragwitness.targets.resolve import GROUP as TARGETS

    groups = tomllib.loads(blocks("toml")[1])["project"]["entry-points"]
    assert set(groups) == {TARGETS, AUDITS, DEFENSES}
