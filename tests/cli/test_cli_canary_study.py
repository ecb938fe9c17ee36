"""``ragwitness lab reproduce canary/...``: policies are trained, resumed, and written about."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

TABLE = """
[tiny]
kind = "canary"
title = "Tiny"
first_seed = 7
violating = 2
compliant = 2
world = {kind = "toy", examples = 90, gate = false, training = {width = 16, layers = 1, steps = 5}}
design = {rate = "0.4", candidates = 8, experiment = "tiny"}
policy = {prompts = 8, longest = 4}
trial = {shares = ["0.5", "0.3"], held_out = 2, tested = 3}

[[tiny.case]]
label = "contrastive"

[texts]
kind = "canary"
like = "tiny"
title = "Texts"
world = {kind = "texts", corpus = "absent.jsonl"}

[[texts.case]]
label = "absent"

[audits]
title = "another kind"
audits = []
case = []
"""


@pytest.fixture
def common(tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "tables.toml").write_text(TABLE, encoding="utf-8")
    return ["--tables", tmp_path, "--out", tmp_path / "out"]


@pytest.mark.long
def test_a_study_is_run_written_and_resumed(command, tmp_path, common):
    code, said = command("reproduce", "paper/tiny", "--policies", 1, *common)
    assert code == 0, said
    folder = tmp_path / "out" / "paper" / "tiny"
    data = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    assert [one["violating"] for one in data["cases"][0]["policies"]] == [True, False]
    assert "2 policies" in (folder / "table.md").read_text(encoding="utf-8")
    code, said = command("reproduce", "paper/tiny", "--policies", 1, *common)
    assert code == 0
    assert "CPU-s)" not in said  # nothing was trained again
    assert len((folder / "policies.jsonl").read_bytes().splitlines()) == 2


def test_bad_input_is_refused_by_name(command, common):
    for more, why in (
        (["paper/texts"], "absent.jsonl is not there"),
        (["paper/tiny", "--policies", 0], "one policy"),
        (["paper/tiny", "--processes", 0], "one process"),
        (["paper/audits", "--policies", 1], "trains no policies"),
    ):
        code, said = command("reproduce", *more, *common)
        assert code == 2
        assert why in said
        assert "Traceback" not in said
