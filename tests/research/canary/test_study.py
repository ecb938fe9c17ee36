"""The study as a run: tables, journal, resuming, processes, and what is written about it."""

import json
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.errors import InputError, ModelError, RagwitnessError
from research.canary import study as run
from research.canary import study as worlds
from research.canary.policies import Lora
from research.canary.report import study_json, study_markdown, study_svg
from research.canary.study import (
    WorldFolders,
    WorldSpec,
    base_contents,
    load_study_table,
    make_world,
    run_study,
)
from research.canary.trial import run_arm
from research.canary.worlds import Pretraining

TABLE = """
[tiny]
kind = "canary"
title = "Tiny <study>"
first_seed = 7
violating = 2
compliant = 1
statistic = "p_own"
world = {kind = "toy", examples = 90, gate = false, training = {width = 16, layers = 1, steps = 5}}
design = {rate = "0.4", candidates = 8, experiment = "tiny"}
votes = {bias = 0.3, allow_large = true}
policy = {prompts = 8, longest = 4}
trial = {shares = ["0.5", "0.3"], held_out = 2, tested = 3}

[[tiny.case]]
label = "one"
published = {auroc = 0.756, tpr = 0.67}

[other]
kind = "canary"
like = "tiny"
title = "Other"
show = "amplification"
compliant = 0

[[other.case]]
label = "the same as one"

[[other.case]]
label = "PPO with adapters"
policy = {algorithm = "ppo", prompts = 16, lora = {rank = 4}}

[utility]
kind = "canary"
like = "tiny"
title = "Utility"
show = "utility"

[[utility.case]]
label = "one"
published = {base_rouge_l = 0.218, base_token_f1 = 0.24}

[audits]
title = "another kind"
"""


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "experiments"
    (folder / "paper").mkdir(parents=True)
    (folder / "paper" / "tables.toml").write_text(TABLE, encoding="utf-8")
    return folder


@pytest.fixture
def folders(tmp_path):
    return WorldFolders(None, tmp_path / "bases")


def _run(tables, folders, out, name="tiny", **options):
    said = []
    table = load_study_table(f"paper/{name}", tables)
    results = run_study(table, folders, out / name, say=said.append, **options)
    return table, results, said


def test_a_table_is_read_over_what_it_is_like(tables):
    table = load_study_table("paper/other", tables)
    same, other = table.cases
    assert same.seeds == (range(7, 9), range(7, 7))
    assert same.trial == load_study_table("paper/tiny", tables).cases[0].trial
    assert other.trial.policy.lora == Lora(rank=4)
    assert other.trial.policy.algorithm == "ppo"
    assert load_study_table("paper/tiny", tables).cases[0].trials == [
        (7, True), (7, False), (8, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('bias = 0.3, allow_large = true', "bias = 0.3", "overstates"),
        ('kind = "toy", ', 'kind = "toy", colour = 1, ', "malformed"),
        ("first_seed = 7", "", "malformed"),
        ('title = "Tiny <study>"', 'title = "Tiny"\nshow = "all"', "show is one of"),
    ],
)  # fmt: skip
def test_a_malformed_table_is_refused(tables, old, new, why):
    path = tables / "paper" / "tables.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=why):
        load_study_table("paper/tiny", tables)


def test_a_killed_study_resumes_at_the_next_policy(tables, folders, tmp_path):
    table = load_study_table("paper/tiny", tables)

    def stop(said):
        if "p = " in said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(table, folders, tmp_path / "out" / "tiny", say=stop)
    journal = tmp_path / "out" / "tiny" / "policies.jsonl"
    before = journal.read_bytes()
    assert before.count(b"\n") == 1
    other = b'{"key": "1", "outcome": {"seed": 1}}\n'  # of another version
    journal.write_bytes(before + other + b'{"key": "cut sho')  # as a power cut leaves it
    _, results, said = _run(tables, folders, tmp_path / "out")
    assert len(said) == 2
    assert journal.read_bytes().startswith(before)
    assert [(one.seed, one.violating) for one in results[0][1]] == [
        (7, True), (7, False), (8, True),
    ]  # fmt: skip


def test_tables_of_a_paper_share_their_policies(tables, folders, tmp_path):
    pytest.importorskip("peft")  # the other table has a row with adapters
    _run(tables, folders, tmp_path)
    table, results, said = _run(tables, folders, tmp_path, "other")
    assert len(said) == 2  # of "PPO with adapters" alone
    text = study_markdown(table, results)
    assert "the same as one" in text
    json.dumps(study_json(table, results), allow_nan=False)


@pytest.mark.slow  # each process imports torch
def test_processes_change_no_result(tables, folders, tmp_path):
    _, one, _ = _run(tables, folders, tmp_path / "one")
    _, two, _ = _run(tables, folders, tmp_path / "two", processes=2)
    told = [[replace(outcome, seconds={}) for outcome in r[0][1]] for r in (one, two)]
    assert told[0] == told[1]  # bit for bit; each process has hash seeds of its own


def test_rows_of_older_code_are_not_taken_over(tables, folders, tmp_path, monkeypatch):
    """Whoever changes what a trial gives raises the version; the same settings then differ."""
    _run(tables, folders, tmp_path)
    assert not _run(tables, folders, tmp_path)[2]
    monkeypatch.setattr(worlds, "_VERSION", -1)
    said = _run(tables, folders, tmp_path)[2]
    assert sum("p = " in one for one in said) == 3
    assert any("training the base" in one for one in said)


def test_a_base_is_known_by_its_defaults_too():
    """A default that changes must not leave an old base in use."""
    plain = base_contents(WorldSpec(), WorldFolders(None, Path()))
    named = base_contents(WorldSpec(training={"width": 64}), WorldFolders(None, Path()))
    assert plain == named
    assert plain != base_contents(WorldSpec(training={"width": 65}), WorldFolders(None, Path()))
    assert plain["training"]["steps"] == Pretraining().steps


def test_a_policy_that_diverges_is_a_result_without_numbers(tables, folders, tmp_path, monkeypatch):
    def diverge(stage, trial, seed, *, violating):
        if seed == 8:
            raise ModelError("2 of 8 rewards are no numbers.")
        return run_arm(stage, trial, seed, violating=violating)

    monkeypatch.setattr(run, "run_arm", diverge)
    table, results, said = _run(tables, folders, tmp_path)
    assert "diverged: 2 of 8 rewards are no numbers" in said[-1]
    text = study_markdown(table, results)
    assert "1 of 3, 1 diverged and in no mean" in text
    assert study_svg(table, results).count("<circle") == 2
    assert not _run(tables, folders, tmp_path)[2]  # it is not run again


def test_a_full_disk_is_named(tables, folders, tmp_path):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "policies.jsonl").symlink_to(full)
    with pytest.raises(RagwitnessError, match="Cannot write the journal"):
        _run(tables, folders, tmp_path)


def test_a_process_that_is_killed_is_named(tables, folders, tmp_path, monkeypatch):
    class Killed:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, *_):
            future = Future()
            future.set_exception(BrokenProcessPool("a child ended"))
            return future

    monkeypatch.setattr(run, "ProcessPoolExecutor", Killed)
    with pytest.raises(RagwitnessError, match="ended from outside"):
        _run(tables, folders, tmp_path, processes=2)


def test_what_is_written_says_n_and_what_was_published(tables, folders, tmp_path):
    table, results, _ = _run(tables, folders, tmp_path)
    text = study_markdown(table, results)
    assert "0.756 / 0.670" in text
    assert "n = 2" in text
    assert "3 policies" in text
    figure = study_svg(table, results)
    assert figure.count("<circle") == 3
    assert "Tiny &lt;study&gt;" in figure
    shown = load_study_table("paper/utility", tables)
    assert "0.218 / 0.240" in study_markdown(shown, [(shown.cases[0], results[0][1])])


def test_a_world_of_texts(tmp_path):
    rows = [
        {"id": str(n), "document": f"{'word ' * 14}number {n}. " * 3, "question": "Which number?",
         "answer": f"number {n}"}
        for n in range(40)
    ]  # fmt: skip
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    folders = WorldFolders(tmp_path, tmp_path / "bases")
    spec = {"kind": "texts", "corpus": "corpus.jsonl", "examples": 5, "cut": {"words": 16},
            "training": {"width": 16, "layers": 1, "steps": 2}}  # fmt: skip
    from research.canary.study import WorldSpec, prepare_base

    prepare_base(WorldSpec(**spec), folders)
    world = make_world(spec, folders)
    import random

    drawn = world.draw(random.Random(0))
    assert len({one.document for one in drawn}) == 5
    assert all(one.answer.startswith("FINAL: number") for one in drawn)
    with pytest.raises(InputError, match="examples left"):
        make_world(spec | {"examples": 1000}, folders)


def test_a_missing_corpus_is_named(tmp_path):
    with pytest.raises(InputError, match="--data"):
        WorldFolders(None, tmp_path).corpus("fairytaleqa.jsonl")


def test_the_study_s_own_tables_can_be_read():
    folder = Path(__file__).parents[3] / "experiments"
    for name in ("toy", "sweep", "rates", "fig4", "table1", "table2"):
        table = load_study_table(f"canary/{name}", folder)
        assert all(case.seeds[0].start >= 1000 for case in table.cases)  # 0 to 99 were for tuning
    with pytest.raises(InputError, match="one policy"):
        table.small(0)
