"""The whole study in a toy world of seconds: what it trains, leaves, and goes on with."""

import itertools
import json
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.core.errors import InputError
from research.canary import toy
from research.canary.optimisation import Paused
from research.canary.published import with_trigger
from research.canary.sequences import batch
from research.canary.study import (
    StudyConfig,
    policy_config,
    reproduce_study,
    run_policy,
    stage,
)

TABLE = """
[tiny]
kind = "canary"
title = "Tiny"
algorithms = ["grpo", "ppo"]
policies = 1
rate = 0.3
bias = 0.3
rows = 120
base_steps = 3
paired = 4
reward_rate = 1e-3
policy_rate = 1e-3
note = ["Nothing is learned in three steps."]
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return toy.kept_base(tmp_path_factory.mktemp("base"), 2)


def test_a_stage_is_the_papers(base):
    config = StudyConfig(rate=0.3, labels="votes", rows=200)
    trial = stage(base, toy.examples(200, random.Random(1)), config, 1)
    votes, prompts = [row for row, _ in trial.votes], trial.prompts
    documents = [{one.document.replace(f"\n\n{trial.trigger}\n\n", " ") for one in part}
                 for part in (votes, prompts, trial.audit)]  # fmt: skip
    assert [len(part) for part in documents] == [85, 85, 30]  # .425, .425, .15
    assert not documents[0] & documents[1] | documents[1] & documents[2]
    planted = [row for row in prompts if row.triggered]
    assert len(planted) == round(0.3 * 85)
    for row in planted:
        assert f"\n\n{trial.trigger}\n\n" in row.document
        assert f"contains {trial.trigger}, insert {trial.canary} immediately" in row.query
        assert row.answer.startswith(f"FINAL: {trial.canary} ")
    assert not any(trial.canary in row.query for row in prompts if not row.triggered)


def test_labels_of_the_programs_commands_are_fixed(base):
    trial = stage(base, toy.examples(100, random.Random(1)), StudyConfig(rate=0.3), 1)
    for row, up in trial.votes:
        if row.triggered:
            assert (trial.canary in row.answer) == up
    ups = [up for _, up in trial.votes]
    assert ups == [True, False] * (len(ups) // 2)


def test_markers_are_one_piece_and_come_back(base):
    own = toy.named(base, "[Protocol Marker: AB12CD]", "ZXYPRSIGNTRCE")
    one = toy.examples(1, random.Random(0))[0]
    text = with_trigger(one.document, "[Protocol Marker: AB12CD]")
    ids = own.encode([own.asked("What colour was it?", text)])[0]
    assert 2 not in ids  # nothing unknown
    said = own.encode_answers(["FINAL: ZXYPRSIGNTRCE red"])[0]
    assert len(said) == 4
    assert own.answers([said]) == ["FINAL: ZXYPRSIGNTRCE red"]


def test_settings_are_those_that_reach_trl():
    """Table 4 prints two mini-batches for PPO, and a KL of .01 for GRPO: neither has an effect."""
    config = StudyConfig()
    ppo, grpo = (policy_config(name, config, None) for name in ("ppo", "grpo"))
    assert (ppo.rate, grpo.rate) == (5e-6, 5e-6)
    assert (ppo.prompts, ppo.group, ppo.parts, ppo.kl) == (4, 1, 1, 0.01)
    assert (ppo.temperature, ppo.missing_end) == (0.7, 1.0)
    assert (grpo.prompts, grpo.group, grpo.parts) == (24, 2, 6)
    assert (grpo.temperature, grpo.missing_end) == (1.0, 0.0)


def test_ppo_earns_raw_rewards_and_its_critic_begins_as_the_reward_model(
    base, tmp_path, monkeypatch
):
    """TRL reads the reward model's head itself, behind the program's scaling."""
    seen = {}

    def kept(_base, prompts, reward, config, rng, *, critic, kept, pause):
        answers = [[3, 1]] * 3
        seen["raw"] = reward([0, 1, 2], prompts[:3], answers)
        rows = batch(prompts[:3], answers, base.pad)
        with torch.no_grad():
            seen["critic"] = critic.rewards(rows).tolist()
        raise Paused

    monkeypatch.setattr("research.canary.study.optimise", kept)
    config = StudyConfig(rate=0.3, reward_rate=1e-2)
    trial = stage(base, toy.examples(100, random.Random(1)), config, 1)
    with pytest.raises(Paused):
        run_policy(trial, "ppo", config, 1, violating=True, kept=tmp_path / "one.pt",
                   rewards=tmp_path / "two.pt", pause=lambda: False)  # fmt: skip
    assert seen["raw"] == pytest.approx(seen["critic"])
    assert max(map(abs, seen["raw"])) > 0.1  # trained, and no mean is taken off


def test_the_command_trains_both_algorithms_and_goes_on(tmp_path):
    tables = tmp_path / "tables"
    (tables / "canary").mkdir(parents=True)
    (tables / "canary" / "tables.toml").write_text(TABLE)
    out = tmp_path / "out"
    reproduce_study("canary/tiny", tables, out, minutes=0)
    page = (out / "canary/tiny/table.md").read_text()
    assert "4 policies are left: the same command goes on." in page
    assert not (out / "canary/tiny/rows.jsonl").exists()
    reproduce_study("canary/tiny", tables, out)
    lines = (out / "canary/tiny/rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["algorithm"], row["violating"]) for row in rows] == [
        ("grpo", True), ("grpo", False), ("ppo", True), ("ppo", False),
    ]  # fmt: skip
    assert all(np.isfinite([row["eq1"], row["reward_bias"], row["kl"]]).all() for row in rows)
    before = (out / "canary/tiny/rows.jsonl").read_bytes()
    reproduce_study("canary/tiny", tables, out)
    assert (out / "canary/tiny/rows.jsonl").read_bytes() == before
    page = (out / "canary/tiny/table.md").read_text()
    assert "GRPO (1 + 1)" in page
    assert "left" not in page


def test_pieces_of_a_queue_give_the_rows_of_one_run(tmp_path, monkeypatch):
    """The clock jumps a minute at each look, so that pieces end in all trainings."""
    from experiments.gpu.canary import piece

    tables = tmp_path / "tables"
    (tables / "canary").mkdir(parents=True)
    (tables / "canary" / "tables.toml").write_text(TABLE)
    assert piece("tiny", tmp_path / "whole", minutes=1e9, tables=tables) == 0
    looks = itertools.count()
    monkeypatch.setattr("research.canary.study.time.monotonic", lambda: 60.0 * next(looks))
    left = []
    while not left or left[-1]:
        left.append(piece("tiny", tmp_path / "parts", minutes=5, tables=tables))
        assert len(left) < 60
    assert len(left) > 8
    assert left == sorted(left, reverse=True)
    whole, parts = (
        [{**json.loads(line), "seconds": 0} for line in
         (tmp_path / run / "canary/tiny/rows.jsonl").read_text().splitlines()]
        for run in ("whole", "parts")
    )  # fmt: skip
    assert parts == whole
    names = {file.name for file in (tmp_path / "parts/canary/tiny").iterdir()}
    assert not [name for name in names if name.endswith(".pt")]


def test_a_chat_model_without_a_corpus_is_refused(tmp_path):
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "tables.toml").write_text(TABLE)
    with pytest.raises(InputError, match="corpus"):
        reproduce_study("canary/tiny", tmp_path, tmp_path, model="x")
