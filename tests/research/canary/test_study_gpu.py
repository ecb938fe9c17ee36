"""The queued study at GPU size: its tables can be read, and its script walks the road on a CPU."""

import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.errors import InputError
from research.canary.policies import one_thread
from research.canary.study import load_study_table

ROOT = Path(__file__).parents[3] / "experiments"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gpu_study", ROOT / "gpu" / "canary_study.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "canary").mkdir()
    text = (ROOT / "canary" / "gpu.toml").read_text(encoding="utf-8")
    (tmp_path / "canary" / "tables.toml").write_text(text, encoding="utf-8")
    return lambda name: load_study_table(f"canary/{name}", tmp_path)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [
        {"id": str(n), "question": f"What did number {n} see?", "answer": f"crow {n % 7}",
         "document": f"Once number {n} saw crow {n % 7}. " + f"word{n % 5} again {n} " * 14}
        for n in range(600)
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, rows))
    (folder / "fairytaleqa.jsonl").write_text(text, encoding="utf-8")
    return folder


def _run(script, monkeypatch, capsys, out, *options):
    monkeypatch.setattr(sys, "argv", ["canary_study.py", "--preset", "toy", *map(str, options)])
    monkeypatch.setenv("OUT", str(out))
    script.main()
    return [line for line in capsys.readouterr().out.splitlines() if " p = " in line]


@pytest.mark.parametrize("suffix", ["", "-named"])
def test_tables_one_and_two_share_their_policies(tables, suffix):
    def settings(name):
        return [(case.world, case.trial) for case in tables(f"{name}{suffix}").cases]

    table = tables(f"table1{suffix}")
    assert all(seeds.start >= 1000 for case in table.cases for seeds in case.seeds)
    assert max(len(seeds) for case in table.cases for seeds in case.seeds) == 20
    shared = [one for one in settings("table2") if one in settings("table1")]
    assert len(shared) >= len(settings("table2")) - 1
    assert tables(f"fig4{suffix}").show == "amplification"


def test_models_by_name_are_trained_by_adapters_alone(tables):
    for name in ("table1-named", "table2-named", "fig4-named"):
        for case in tables(name).cases:
            assert case.world.model
            assert case.world.dtype == "bfloat16"
            assert case.trial.reward.lora
            assert case.trial.policy.lora


def test_models_trained_here_have_ten_to_fifty_million_parameters(tables):
    from research.canary.worlds import Pretraining, _network

    class Words:
        pad_token_id, eos_token_id = 0, 1

        def __len__(self):
            return 12_000  # as large as the vocabulary may be

    one_thread("meta")  # nothing is computed
    try:
        for config in {Pretraining(**case.world.training) for case in tables("fig4").cases}:
            made = _network(config, Words())
            assert 10e6 < sum(one.numel() for one in made.parameters()) < 50e6
    finally:
        one_thread()


def test_the_script_resumes_where_a_call_left_off(script, monkeypatch, capsys, data, tmp_path):
    options = ("--table", "table1", "--case", "11 M, contrastive", "--data", data)
    with pytest.raises(InputError, match="qmsum"):  # before anything is trained
        _run(script, monkeypatch, capsys, tmp_path / "0", *options, "--work", tmp_path / "w0")
    options = (*options[:3], "FairytaleQA, 11 M, contrastive", *options[4:])
    first = _run(script, monkeypatch, capsys, tmp_path / "1", *options, "--work", tmp_path / "w1")
    assert len(first) == 2
    back = {path.name for path in (tmp_path / "1").iterdir()}
    assert back == {"policies.jsonl", "table.md", "table.svg", "table.json"}
    fresh = ("--work", tmp_path / "w2", "--resume-from", tmp_path / "1")
    again = _run(script, monkeypatch, capsys, tmp_path / "2", *options, *fresh)
    assert not again
    assert (tmp_path / "2" / "table.md").read_bytes() == (tmp_path / "1" / "table.md").read_bytes()


def test_a_case_that_there_is_not_is_named(script, monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit, match="has 'none'"):
        _run(script, monkeypatch, capsys, tmp_path, "--case", "none", "--work", tmp_path / "w")


def test_weights_in_a_folder_stand_for_a_hub_name(script, tables, tmp_path):
    (tmp_path / "gemma-2-2b-it").mkdir()
    case = tables("table1-named").cases[0]
    assert script.with_weights(case, tmp_path).world.model == str(tmp_path / "gemma-2-2b-it")
    assert script.with_weights(case, tmp_path / "other") == case
    own = tables("table1").cases[0]
    assert script.with_weights(own, tmp_path) == own


def test_a_base_trained_in_the_time_that_there_is_travels(script, data, tmp_path, monkeypatch):
    from research.canary.study import WorldFolders, WorldSpec, prepare_base

    monkeypatch.setattr(script, "gate", lambda *_: None)
    world = WorldSpec("texts", 160, "fairytaleqa.jsonl",
                      training={"width": 32, "layers": 1, "steps": 3, "batch": 4})  # fmt: skip
    folders = WorldFolders(data, tmp_path / "bases")
    fitted, folder, seen = script.fitted_base(world, folders, time.time() + 60)
    assert fitted.training["steps"] == 3
    assert seen is None
    none, *_ = script.fitted_base(world, folders, 0.0)
    assert none.training["steps"] == 1
    script.pack(folder, tmp_path)
    script.bring_bases(tmp_path / "there", tmp_path)
    there = WorldFolders(data, tmp_path / "there")
    again = prepare_base(fitted, there, lambda told: pytest.fail(told))
    weights = "model.safetensors"
    assert (Path(again) / weights).read_bytes() == (folder / weights).read_bytes()


def test_settings_of_a_trial_of_them_are_taken_and_designs_stay(script, tables):
    case = tables("table1").cases[1]
    tuned = next(one for one in tables("tune").cases if one.label.startswith("d:"))
    made = script.as_tuned(case, tuned)
    assert (made.trial.design.name, made.trial.design.rate) == ("paper", "0.3")
    assert made.trial.policy == tuned.trial.policy
    assert made.seeds == case.seeds
