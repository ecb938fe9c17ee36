"""``ragwitness collusion bound`` and ``plan``: the figures, files, and unusable input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str]]
BOUND = ("collusion", "bound")
ASKED = (*BOUND, "--epsilon", 1, "--delta", "1e-6", "--queries", 1000, "--accounts", 16)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_bound_prints_each_account_of_the_same_noise(command: Command) -> None:
    code, text = command(*ASKED)
    assert code == 0, text
    cells = {line.split("  ")[0].strip(): line.split() for line in text.splitlines() if line}
    assert cells["Theorem 3.4 (the paper)"][4] == "5.16"
    assert cells["Renyi, (3.6)"][2] == "0.558"
    assert cells["exact"][1] == "0.390"
    assert max(map(len, text.splitlines())) <= 80
    assert "does not hold" not in text


def test_bound_writes_json(command: Command) -> None:
    code, text = command(*ASKED, "--json", "bound.json")
    assert code == 0, text
    told = json.loads(Path("bound.json").read_text())
    assert told["exact"] == pytest.approx(0.3900104543)
    assert told["paper"] == pytest.approx(5.158, abs=1e-3)
    assert told["delta"] == pytest.approx(1.7e-5)
    assert told["exact"] < told["moments"] < told["renyi"] < told["paper"]
    assert told["attack"]["auc"] < told["limits"]["exact"]["auc"] < told["limits"]["paper"]["auc"]
    assert (told["label_kept"], told["verdict"]) == (True, None)


def test_a_claim_is_checked_against_the_committed_noise(command: Command) -> None:
    code, text = command(*BOUND, "--epsilon", 1, "--sigma", 100, "--json", "b.json")
    assert code == 0, text
    assert "The label does not hold" in text
    told = json.loads(Path("b.json").read_text())
    assert told["sigma"] == 100
    assert told["label"] == pytest.approx(1075.89 / 100, rel=1e-4)
    assert told["label_kept"] is False
    code, text = command(*BOUND, "--sigma", 1075.89, "--sensitivity", 2, "--json", "c.json")
    assert json.loads(Path("c.json").read_text())["mu"] == pytest.approx(0.2351, abs=1e-4)


def test_noise_too_small_for_the_paper_has_the_exact_account_alone(command: Command) -> None:
    code, text = command(
        *BOUND, "--sigma", 0.2, "--queries", 5, "--accounts", 2, "--json", "b.json"
    )
    assert code == 0, text
    assert "too small for (3.4)" in text
    told = json.loads(Path("b.json").read_text())
    assert told["paper"] is told["label"] is None
    assert told["exact"] > 100


def test_verdict_uses_the_whole_of_delta_star(command: Command) -> None:
    arguments = ("--epsilon", 1, "--delta", "1e-8", "--delta-star", "1e-6", "--json", "v.json")
    code, text = command(*BOUND, *arguments, "--k-max", 64)
    assert code == 0, text
    made = json.loads(Path("v.json").read_text())["verdict"]
    assert made["paper"] == pytest.approx(10.654, abs=1e-3)
    assert made["epsilon"] == pytest.approx(0.7643, abs=1e-4)
    assert made["delta"] == 1e-6
    assert "10.7" in text


def test_plan_sets_the_paper_beside_the_exact_noise(command: Command) -> None:
    arguments = ("collusion", "calibrate", "--epsilon", 1, "--accounts", 64)
    code, text = command(*arguments, "--json", "p.json")
    assert code == 0, text
    assert max(map(len, text.splitlines())) <= 80
    told = json.loads(Path("p.json").read_text())
    assert [one["accounts"] for one in told["plans"]] == [1, 4, 16, 64]
    assert [one["ratio"] for one in told["plans"]] == pytest.approx([8.05] * 4, abs=0.006)
    assert told["plans"][2]["exact"] == pytest.approx(534.4, abs=0.1)
    assert "8.05" in text


def test_options_may_come_from_a_file(command: Command) -> None:
    Path("c.toml").write_text("epsilon = 1\naccounts = 16\nqueries = 1000\n")
    code, text = command(*BOUND, "--config", "c.toml")
    assert code == 0, text
    assert "0.390" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Give --epsilon or --sigma"),
        (("--epsilon", -1), "epsilon must be a finite number above 0, not -1"),
        (("--epsilon", "nan"), "epsilon must be a finite number above 0, not nan"),
        (("--epsilon", 1, "--delta", 0), "delta must be a number above 0 and below 1, not 0"),
        (("--epsilon", 1, "--delta", 2), "not 2"),
        (("--epsilon", 1, "--queries", 0), "queries must be a whole number, 1 or more, not 0"),
        (("--epsilon", 1, "--accounts", -4), "accounts must be a whole number, 1 or more, not -4"),
        (("--sigma", 0), "sigma must be a finite number above 0, not 0"),
        (("--sigma", "inf"), "sigma must be a finite number above 0, not inf"),
        (("--sigma", 1, "--sensitivity", 0), "sensitivity must be a finite number above 0, not 0"),
        (("--epsilon", 1, "--delta-prime", 1), "delta' must be a number above 0"),
        (("--epsilon", 1, "--delta", 0.3), "the joint delta must be"),
        (("--epsilon", 50, "--queries", 1), "(3.4) holds below 1 per query"),
        (("--epsilon", 1, "--delta-star", "1e-6"), "k_max x delta is 1.6e-05"),
        (("--epsilon", 1, "--k-max", 4), "--k-max belongs to a verdict"),
        (("--epsilon", 1, "--json", "."), "Cannot write"),
    ],
)
def test_unusable_input_of_bound(
    command: Command, arguments: tuple[object, ...], said: str
) -> None:
    code, text = command(*BOUND, *arguments)
    assert code == 2
    assert said in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--epsilon", 0), "epsilon must be a finite number above 0, not 0"),
        (("--epsilon", 1, "--accounts", 0), "accounts must be a whole number, 1 or more, not 0"),
        (("--epsilon", 1, "--delta", 1), "not 1"),
        (("--epsilon", "many"), "Invalid value for '--epsilon'"),
    ],
)
def test_unusable_input_of_plan(command: Command, arguments: tuple[object, ...], said: str) -> None:
    code, text = command("collusion", "calibrate", *arguments)
    assert code == 2
    assert said in " ".join(text.split())
