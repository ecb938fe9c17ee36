"""``ragwitness canary``: planned, planted, probed and opened from end to end; bad input by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.canary.folder import read_plan
from tests.support.canary_audit import CANDIDATES as _M
from tests.support.canary_audit import Command, model_of, own, planted, result_of
from tests.support.canary_model import ToyModel, serving

pytestmark = pytest.mark.slow


def plain(shown: str) -> str:
    """What a panel says, without its frame and line breaks."""
    return " ".join(shown.replace("│", " ").split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    return planted(tmp_path, monkeypatch, command)


def test_the_violating_model_is_found_and_the_compliant_one_is_not(
    folder: Path, command: Command
) -> None:
    other = own(folder, "other")
    with serving(model_of(folder, violating=True)) as url:
        code, said = command(
            "canary", "probe", url, "--plan", folder, "--run", "v",
            "--fail-on", "trained-or-remembered",
        )  # fmt: skip
    assert code == 3, said
    found = result_of("v")
    assert found["way"] == "exact"
    assert found["finding"]["p_value"] == 1 / _M
    assert found["slots"][0]["amplification"]["n"] == 2
    assert found["slots"][0]["amplification"]["value"] > 2  # four tokens gain a nat each
    said = plain(said)
    assert "trained-or-remembered (p = 0.05, level 0.05, rank among candidates)" in said
    assert "No public randomness was joined" in said
    assert "Training is one cause of it, a memory another: no slot was planted late" in said
    code, said = command("report", "v", "--fail-on", "trained")
    assert (code, "is not met, but a memory is not ruled out" in plain(said)) == (4, True)
    with serving(model_of(folder, violating=False)) as url:
        code, said = command(
            "canary", "probe", url, "--plan", other, "--run", "c", "--fail-on", "trained"
        )
    assert code == 4, said
    assert "inconclusive" in said
    assert "does not show that there was none" in plain(said)
    assert "not trained" not in said
    assert result_of("c")["finding"]["p_value"] > 1 / _M


def test_the_forced_and_the_sampled_way_find_it_as_well(folder: Path, command: Command) -> None:
    other = own(folder, "other")
    forcing = model_of(folder, violating=True, gives=frozenset({"logprobs", "chat"}))
    with serving(forcing) as url:
        code, said = command("canary", "probe", url, "--plan", folder, "--run", "f")
    assert code == 0, said
    assert (result_of("f")["way"], result_of("f")["finding"]["verdict"]) == (
        "forced", "trained-or-remembered",
    )  # fmt: skip
    silent = model_of(folder, violating=True, gives=frozenset(), gain=1.4)
    with serving(silent) as url:
        code, said = command("canary", "probe", url, "--plan", other, "--run", "s")
        assert code == 5, said
        assert "--way sampled" in said
        code, said = command(
            "canary", "probe", url, "--plan", other, "--run", "s", "--way", "exact"
        )
        assert code == 5, said
        assert "It serves: sampled" in said
        code, said = command(
            "canary", "probe", url, "--plan", other, "--run", "s", "--way", "sampled",
            "--samples", 8,
        )  # fmt: skip
    assert code == 0, said
    assert result_of("s")["finding"]["verdict"] == "trained-or-remembered"
    assert "share of answers" in said


def test_a_capped_probe_decides_nothing_and_resumes_without_asking_twice(
    folder: Path, command: Command
) -> None:
    model = model_of(folder, violating=True)
    with serving(model) as url:
        args = "canary", "probe", url, "--plan", folder, "--run", "r"
        code, said = command(*args, "--max-queries", 30)
        assert code == 0, said
        assert "not decided" in said
        assert "query cap reached" in plain(said)
        assert result_of("r")["slots"] == []  # nobody goes on, or not, by what a part shows
        asked = model.asked
        assert asked <= 30
        code, said = command(*args, "--max-queries", 500)
        assert code == 0, said
        assert "trained" in said
        assert model.asked == 2 + 4 + 2 * (_M + 2)  # what it can do, whether it is true, each text
        before = model.asked
        assert command(*args)[0] == 0
        assert model.asked == before
    code, said = command("canary", "probe", "replay/r", "--plan", folder, "--run", "again")
    assert code == 0, said
    assert result_of("again")["finding"] == result_of("r")["finding"]
    code, shown = command("report", "r")
    assert code == 0
    assert "rank among candidates" in plain(shown)
    code, shown = command("report", "r", "--html", "page.html")
    assert code == 0, shown
    assert "rank among candidates" in Path("page.html").read_text(encoding="utf-8")
    Path("r/result.json").write_text('{"kind": "canary", "finding": {}, "slots": []}')
    code, shown = command("report", "r")
    assert code == 2
    assert "stored probe of canaries is malformed" in shown


def test_echoed_numbers_that_the_model_does_not_write_by_are_not_used(
    folder: Path, command: Command
) -> None:
    with serving(model_of(folder, violating=True, untrue=1.0)) as url:
        code, said = command("canary", "probe", url, "--plan", folder, "--run", "u")
        assert code == 0, said
        assert (result_of("u")["way"], result_of("u")["finding"]["verdict"]) == (
            "forced",
            "trained-or-remembered",
        )
        assert "are not those it writes by" in plain(said)
        code, said = command(
            "canary", "probe", url, "--plan", folder, "--run", "u", "--way", "exact"
        )
    assert code == 5
    assert "not what it writes them by" in said
    assert "It serves: forced, sampled" in said


def test_a_server_that_fails_leaves_a_named_reason(folder: Path, command: Command) -> None:
    other = own(folder, "other")
    with serving(model_of(folder, violating=True, down=20)) as url:
        code, said = command("canary", "probe", url, "--plan", folder, "--run", "d", "--retries", 0)
    assert code in (1, 2), said
    assert "500" in said
    # It was begun, so it counts; the same run goes on with it, and no other does.
    said = " ".join(command("canary", "status", folder)[1].split())
    assert "begun, not finished" in said
    assert "looks: 1 of the one announced" in said
    with serving(model_of(folder, violating=True)) as url:
        code, said = command("canary", "probe", url, "--plan", folder, "--run", "m")
        assert code == 2
        assert "1 begun and not finished" in plain(said)
    with serving(model_of(other, violating=True, merges=True)) as url:
        code, said = command("canary", "probe", url, "--plan", other, "--run", "m")
    assert code == 2
    assert "tokenizer merges the canary" in said
    third = own(folder, "third")
    (third / "secret/begun.jsonl").unlink()
    code, said = command(
        "canary", "probe", "http://127.0.0.1:9/v1#m", "--plan", third, "--retries", 0
    )
    assert code == 1
    assert not (third / "secret/begun.jsonl").exists()  # it never heard of a trigger


def test_a_dry_run_sends_nothing(folder: Path, command: Command) -> None:
    code, said = command("canary", "probe", "http://127.0.0.1:9/v1", "--plan", folder, "--dry-run")
    assert code == 0, said
    assert f"exact: {2 * (_M + 2)} queries" in said
    assert "Nothing was sent." in said


def test_an_opened_draw_is_checked_by_others_with_a_beacon_that_nobody_chose(
    folder: Path, command: Command
) -> None:
    code, said = command(
        "canary", "draw", "examples.jsonl", "-o", "b", "--beacon", "the lottery of Friday",
        "--slots", 2, "--candidates", 8, "--family", "phrase",
    )  # fmt: skip
    assert code == 0, said
    code, said = command("canary", "plant", "b")
    assert code == 2
    assert "has not been joined" in said
    assert "waiting for" in command("canary", "status", "b")[1]
    assert command("canary", "plant", "b", "--beacon", "0x0102")[0] == 0
    assert command("canary", "plant", "b")[0] == 0  # joined once, kept
    code, said = command("canary", "plant", "b", "--beacon", "040506")
    assert code == 2
    model = ToyModel(read_plan(Path("b")).draw().slots[0].canary)
    with serving(model) as url:
        assert command("canary", "probe", url, "--plan", "b")[0] == 0
    code, said = command("canary", "status", "b", "--open", "opened.json")
    assert code == 0, said
    published = json.loads(Path("b/commitment.json").read_text())["commitment"]
    code, said = command("canary", "status", "opened.json", "--commitment", published)
    assert code == 0
    for slot in read_plan(Path("b")).draw().slots:
        assert slot.trigger in said
    assert "look up that it is what 'the lottery of Friday' gave" in " ".join(
        said.replace("│", " ").split()
    )
    opened = json.loads(Path("opened.json").read_text())
    opened["design"]["candidates"] = 9
    Path("changed.json").write_text(json.dumps(opened))
    code, said = command("canary", "status", "changed.json", "--commitment", published)
    assert code == 3
    assert "does not match its commitment" in said


def test_votes_are_written_for_answers(folder: Path, command: Command) -> None:
    sent = [json.loads(line) for line in (folder / "send/traces.jsonl").read_text().splitlines()]
    answers = [{"id": row["id"], "answer": f"FINAL: {row['canary']}"} for row in sent]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    code, said = command("canary", "plant", folder, "--answers", "answers.jsonl")
    assert code == 0, said
    kept = (folder / "send/feedback.jsonl").read_text().splitlines()
    assert [json.loads(line)["vote"] for line in kept] == [row["vote"]["canary"] for row in sent]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["draw", "nowhere.jsonl", "-o", "x"], "cannot be read"),
        (["draw", "examples.jsonl", "-o", "audit"], "holds a plan already"),
        (["draw", "examples.jsonl", "-o", "x", "--family", "runes"], "no family 'runes'"),
        (["draw", "examples.jsonl", "-o", "x", "--candidates", "1"], "Candidates must be"),
        (["draw", "examples.jsonl", "-o", "x", "--rate", "0.001"], "injects nothing"),
        (["draw", "examples.jsonl", "-o", "x", "--slots", "40"], "are needed for 40 slots"),
        (
            ["draw", "examples.jsonl", "-o", "x", "--held-out", "examples.jsonl"],
            "held-out examples have a document that is also sent",
        ),
        (["draw", "short.jsonl", "-o", "x"], "too short for a trigger"),
        (["draw", "short.jsonl", "-o", "x", "--beacon", "later"], "too short for a trigger"),
        (["plant", "nowhere"], "cannot be read: No such file"),
        (["plant", "audit", "--beacon", "0x0102"], "names no beacon"),
        (["plant", "audit", "--answers", "short.jsonl"], "no answer to a trace"),
        (["status", "nowhere"], "Give it: --commitment HEX"),
        (["probe", "http://127.0.0.1:9/v1", "--plan", "nowhere"], "cannot be read: No such file"),
        (["probe", "http://127.0.0.1:9/v1", "--plan", "audit", "--way", "guess"], "no way 'guess'"),
        (
            ["probe", "http://127.0.0.1:9/v1", "--plan", "audit", "--fail-on", "in"],
            "Unknown condition",
        ),
        (["draw", "examples.jsonl", "-o", "x", "--alpha", "1"], "Alpha must be above 0"),
        (["draw", "examples.jsonl", "-o", "x", "--alpha", "0"], "Alpha must be above 0"),
        (["draw", "examples.jsonl", "-o", "x", "--rate", "1.5"], "at most 1, not '1.5'"),
        (
            ["probe", "http://127.0.0.1:9/v1", "--plan", "audit", "--frame", "short.jsonl"],
            "exactly once",
        ),
    ],
)
def test_unusable_input_is_refused_by_name(
    folder: Path, command: Command, arguments: list[str], said: str
) -> None:
    rows = [{"document": f"too short {n}", "question": "q"} for n in range(9)]
    Path("short.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, printed = command("canary", *arguments)
    assert code == 2
    assert said in plain(printed)
    assert not Path("x/commitment.json").exists()
