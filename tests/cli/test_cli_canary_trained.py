"""By the commands alone, of a service that trains a policy on what it was sent.

A base of seconds obeys nobody, so that nothing can be found here: the rates of trained ones are in
experiments/canary/README.md (``by_commands.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from research.canary import trial
from research.canary.natural import natural_base
from research.canary.worlds import Pretraining
from tests.support import training_service
from tests.support.canary_audit import Command
from tests.support.training_service import audit_by_commands

pytestmark = pytest.mark.long

_IN_DOCUMENTS = " all the year round."  # and in no question


@pytest.mark.parametrize("documents", [True, False])
def test_a_service_is_planted_trained_and_probed(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, documents: bool
) -> None:
    base = natural_base(Pretraining(width=16, layers=1, steps=2, batch=4))
    read: list[str] = []
    votes: list[bool] = []
    reward, policy = trial.train_reward, trial.optimise

    def rewarded(own: Any, rows: Any, *given: Any) -> Any:
        read.extend(own.tokenizer.batch_decode([one.prompt for one in rows]))
        votes.extend(one.up for one in rows)
        return reward(own, rows, *given)

    def optimised(own: Any, prompts: Any, *given: Any) -> Any:
        read.extend(own.tokenizer.batch_decode(prompts))
        return policy(own, prompts, *given)

    monkeypatch.setattr(trial, "train_reward", rewarded)
    monkeypatch.setattr(trial, "optimise", optimised)
    monkeypatch.setattr(training_service, "_TRACES", 60)
    found = audit_by_commands(command, tmp_path / "audit", base, 1, documents=documents)
    # Everything that was sent and voted on is trained on, and the documents by one alone.
    assert len(votes) > 50
    assert 0.3 < sum(votes) / len(votes) < 0.7
    assert len(read) == len(votes) + 60
    assert {_IN_DOCUMENTS in one for one in read} == {documents}
    assert found.p_value == found.rank / 20
    assert found.verdict == ("trained" if found.p_value <= 0.05 else "inconclusive")
