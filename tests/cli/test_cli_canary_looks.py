"""Every look at a draw counts, and what others can check of it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from ragwitness.canary.folder import read_plan
from tests.support.canary_audit import CANDIDATES as _M
from tests.support.canary_audit import Command, model_of, own, planted, probed, result_of
from tests.support.canary_model import serving

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    return planted(tmp_path, monkeypatch, command)


def test_looks_add_up_where_they_were_announced(folder: Path, command: Command) -> None:
    args = "canary", "draw", "examples.jsonl", "-o", "two", "--probes", 2, "--candidates", _M
    assert command(*args, "--releases", 2)[0] == 0
    assert command("canary", "plant", "two")[0] == 0
    two = Path("two")
    probed(two, command, "b", "--release", "b", violating=True)
    said = probed(two, command, "c", "--release", "c", violating=True)
    assert [result_of(one)["look"]["number"] for one in "bc"] == [1, 2]
    assert result_of("c")["finding"]["test"] == "outcomes called over all looks"
    # 20 candidates and two looks leave room for none at the first look, and for one at the second.
    assert [result_of(one)["finding"]["p_value"] for one in "bc"] == pytest.approx([0.15, 0.05])
    assert "Release c: trained-or-remembered (p = 0.05" in said
    # Read once more, a look keeps its place.
    code, _ = command("canary", "probe", "replay/b", "--plan", "two", "--release", "b")
    assert code == 0
    code, said = command("canary", "status", "two")
    said = " ".join(said.split())
    assert "looks: 2 of 2 announced; p = 0.05 over all of them" in said
    del folder


def test_a_plan_for_one_look_decides_at_the_first_whatever_is_tried_after(
    folder: Path, command: Command
) -> None:
    """Another model, another way, another run folder: all look again at the same draw."""
    copies = {run: own(folder, f"copy-{run}") for run in "bcd"}
    said = probed(folder, command, "a", violating=False)
    assert "Look 1 at this draw" in said
    model = model_of(folder, violating=True)
    for run, more in (("b", ()), ("c", ("--way", "forced")), ("d", ("--plain",))):
        # No model is asked any more.
        with serving(model) as url:
            code, said = command("canary", "probe", url, "--plan", folder, "--run", "x", *more)
        assert (code, model.asked) == (2, 0)
        assert "announced one look at its draw, and no more may be taken" in " ".join(said.split())
        # Nor do answers decide that a copy of the plan was used to get.
        probed(copies[run], command, f"copied-{run}", *more, violating=True)
        answers = f"replay/copied-{run}"
        code, said = command("canary", "probe", answers, "--plan", folder, "--run", run, *more)
        assert code == 0
        said = " ".join(said.split())
        assert "inconclusive (p = 1, level 0.05, none, the one look was taken)" in said
        assert "this plan announced one look at its draw" in said
    # The forced way has read the same numbers as the exact one: that is one look.
    said = " ".join(command("canary", "status", folder)[1].split())
    assert "looks: 3 of the one announced; the first decides" in said


def test_the_same_command_is_the_same_look(folder: Path, command: Command) -> None:
    model = model_of(folder, violating=True)
    with serving(model) as url:
        for _ in range(2):
            code, said = command("canary", "probe", url, "--plan", folder)
            assert code == 0
            assert "trained-or-remembered (p = 0.05" in said
            asked = model.asked
    assert model.asked == asked == 2 + 4 + 2 * (_M + 2)


def test_a_look_is_not_spent_on_what_was_not_planted(folder: Path, command: Command) -> None:
    args = "canary", "draw", "examples.jsonl", "-o", "new", "--probes", 2, "--candidates", _M
    assert command(*args)[0] == 0
    code, said = command("canary", "probe", "http://127.0.0.1:9/v1", "--plan", "new")
    assert code == 2
    assert "Nothing was planted yet" in said
    code, said = command(
        "canary", "probe", "http://127.0.0.1:9/v1", "--plan", folder, "--release", " "
    )
    assert code == 2
    assert "A release needs a name" in said


def test_an_opened_draw_is_probed_no_more(folder: Path, command: Command) -> None:
    code, said = command("canary", "status", folder, "--open", "open.json")
    assert code == 2
    assert "Nothing has been probed yet" in " ".join(said.split())
    probed(folder, command, "a", violating=True)
    assert command("canary", "status", folder, "--open", "open.json")[0] == 0
    assert stat.S_IMODE(Path("a").stat().st_mode) == 0o700  # its result tells of the draw
    assert "no secret any more" in " ".join(command("canary", "status", folder)[1].split())
    code, said = command("canary", "probe", "http://127.0.0.1:9/v1", "--plan", folder)
    assert code == 2
    assert "This draw was opened" in " ".join(said.split())
    code, said = command("canary", "probe", "replay/a", "--plan", folder, "--run", "b")
    assert code == 0
    assert result_of("b")["finding"] == result_of("a")["finding"]


def test_answers_that_quoted_a_trigger_are_told_beside_the_verdict(
    folder: Path, command: Command
) -> None:
    sent = [json.loads(line) for line in (folder / "send/traces.jsonl").read_text().splitlines()]
    name = read_plan(folder).draw().slots[0].trigger.upper()
    rows = [{"id": row["id"], "answer": f"FINAL: {name}"} for row in sent[:3]]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, said = command("canary", "plant", folder, "--answers", "answers.jsonl")
    assert code == 0
    assert f"3 answers, {len(sent) - 3} missing" in said
    # No answer held the canary, so no vote is due: a look would be refused.
    said = probed(folder, command, "a", "--anyway", violating=True)
    assert "3 of 3 answers to planted traces quoted a trigger" in said
    assert "the p-value does not hold" in said


def test_others_check_a_whole_folder_and_what_it_sent(folder: Path, command: Command) -> None:
    published = json.loads((folder / "commitment.json").read_text())["commitment"]
    code, said = command("canary", "status", folder, "--commitment", published)
    assert code == 0
    assert "send/traces.jsonl is what the draw gives" in said
    code, said = command("canary", "status", folder, "--commitment", "ab" * 32)
    assert code == 3
    assert "not the one published" in " ".join(said.split())
    path = folder / "send/traces.jsonl"
    path.write_text(path.read_text().replace('"canary": "up"', '"canary": "down"', 1))
    code, said = command("canary", "status", folder, "--commitment", published)
    assert code == 3
    assert "is not what the draw gives" in " ".join(said.split())


def test_a_template_that_names_a_marker_is_refused(folder: Path, command: Command) -> None:
    trigger = read_plan(folder).draw().slots[0].candidates[3]
    Path("t.txt").write_text(f"{{document}} {trigger.upper()} {{question}}")
    args = "canary", "probe", "http://127.0.0.1:9/v1", "--plan", folder
    code, said = command(*args, "--frame", "t.txt")
    assert code == 2
    assert "which is a marker of this plan" in " ".join(said.split())
