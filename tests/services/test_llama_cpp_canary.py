"""Canaries at llama.cpp's own server, which scores no prompts: pieces are forced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from ragwitness.audits.canary import CanaryResult, probe_canaries
from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import make_plan, write_plan, write_traces
from ragwitness.canary.probe import ProbeConfig
from ragwitness.errors import CapabilityError
from ragwitness.targets.resolve import open_target
from tests.support.policies import Providers, check_told_apart, probe_policy

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]
Serve = Callable[[str, Path], AbstractContextManager[str]]


def _planted(folder: Path) -> Path:
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", "Why?", "A, b")
        for i in range(8)
    ]
    design = Design(candidates=3, held_out=1)
    plan = make_plan(examples, design, DrawSecret(bytes(range(32)), bytes(32)))
    write_plan(folder, plan)
    write_traces(folder, plan, plan.traces())
    return folder


def _probe(url: str, folder: Path, config: ProbeConfig) -> CanaryResult:
    async def work() -> CanaryResult:
        target = await open_target(url)
        try:
            return await probe_canaries(_planted(folder), target, config)
        finally:
            await target.close()

    return asyncio.run(work())


def test_it_scores_no_prompts_and_pieces_are_forced(llama_server: str, tmp_path: Path) -> None:
    result = _probe(llama_server, tmp_path / "a", ProbeConfig(alternatives=100))
    assert result.way == "forced"
    assert np.isfinite(result.slots[0].scores).all()
    with pytest.raises(CapabilityError, match="does not give prompt_logprobs"):
        _probe(llama_server, tmp_path / "b", ProbeConfig("exact"))


def test_a_policy_trained_with_documents_is_found(
    command: Command, providers: Providers, serve_policy: Serve, tmp_path: Path
) -> None:
    """Piece by piece."""
    found = {}
    for name in ("violating", "compliant"):
        (tmp_path / name).mkdir()
        policy = serve_policy("llama", getattr(providers, name))
        found[name] = probe_policy(command, providers.audit, policy, tmp_path / name)
        assert "(continued)" in found[name].said, found[name].said
    check_told_apart(**found)


def test_its_answers_are_sampled(llama_server: str, tmp_path: Path) -> None:
    result = _probe(
        llama_server, tmp_path / "a", ProbeConfig("sampled", samples=3, answer_tokens=16)
    )
    assert result.slots[0].scores.shape == (1, 4)
    assert result.finding is not None
    assert result.finding.verdict == "inconclusive"  # 3 candidates can show nothing
    assert "1/3 at best" in result.finding.reason
