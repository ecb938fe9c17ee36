"""``plan``: costs and expected power before the first query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample

pytestmark = pytest.mark.slow

_QUICK = "rag-mia,min-k"


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rows: list[dict[str, object]] = [{"id": d.id, "text": d.text} for d in load_sample()[::9]]
    return {
        "documents": _write(tmp_path / "documents.jsonl", [*rows[:7], {"text": "two words"}]),
        "known": _write(tmp_path / "known.jsonl", rows[20:60]),
        "few": _write(tmp_path / "few.jsonl", rows[20:30]),
        "corpus": _write(tmp_path / "corpus.jsonl", rows[:20]),
    }


def _shown(said: str) -> str:
    return " ".join(said.split())


def test_plan_says_costs_and_power_and_sends_nothing(command, files, tmp_path, monkeypatch) -> None:
    def refuse(*_args: object, **_kw: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    out = tmp_path / "plan.json"
    code, said = command(
        "plan", "--documents", files["documents"], "--known-out", files["known"],
        "--method", _QUICK, "--json", out,
    )  # fmt: skip
    assert code == 0, said
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    assert "Nothing was sent." in said
    for heading in ("AUC .7", "AUC .99", "q/doc", "falsely in", "1 of 8 lost"):
        assert heading in _shown(said)
    data = json.loads(out.read_text())
    one = data["methods"]["rag-mia"]
    assert one["queries"] == 7 + 40
    assert [*one["documents"]["reasons"].values()] == [1]
    assert one["documents"]["per_document"]["answer"] > 0
    assert [power["auc"] for power in one["power"].values()] == [0.7, 0.8, 0.9, 0.95, 0.99]
    found = [power["found"] for power in one["power"].values()]
    assert found == sorted(found)
    assert one["needed_together"] == 4
    assert one["seconds"] is None
    assert one["cost_most"] is None


def test_one_document_is_planned_as_the_audit_asks_about_it(
    command, files, tmp_path, monkeypatch
) -> None:
    """Ranks would take 19 others and 606 questions; the audit takes six, and e-values decide."""
    monkeypatch.setattr("ragwitness.models.smollm2.can_be_had", lambda: True)
    one = _write(tmp_path / "one.jsonl", [json.loads(files["corpus"].read_text().split("\n")[0])])
    code, said = command("plan", "--documents", one, "--json", tmp_path / "plan.json")
    assert code == 0, said
    assert "Each document gets a verdict by itself, from an e-value of 20" in _shown(said)
    assert "AUC" not in said
    methods = json.loads((tmp_path / "plan.json").read_text())["methods"]
    assert methods["runon"]["queries"] == 6
    assert list(methods) == ["runon", "s-rag", "mba", "joint"]
    code, said = command("audit", "lab:x", "--documents", one, "--dry-run")
    assert "without that, it would be runon" in _shown(said)


def test_plan_says_what_it_costs_at_most(command, files, tmp_path) -> None:
    out = tmp_path / "plan.json"
    arguments = ["plan", "--documents", files["documents"], "--known-out", files["known"]]
    prices = ["--price-in", 2, "--price-out", 8]
    code, said = command(*arguments, "--method", _QUICK, *prices, "--json", out)
    assert code == 0, said
    assert max(map(len, said.splitlines())) <= 80
    assert "cost: at most, at 2 and 8 per million tokens" in _shown(said)
    data = json.loads(out.read_text())
    assert (data["price_in"], data["price_out"]) == (2, 8)
    for one in data["methods"].values():
        tokens = one["tokens_most"]
        assert one["cost_most"] == (2 * tokens["sent"] + 8 * tokens["answer"]) / 1e6 > 0
        assert f"{one['cost_most']:.4g}" in said
    code, said = command(*arguments, "--price-in", 2)
    assert code == 2
    assert "Give --price-in and --price-out" in said


@pytest.mark.long
def test_what_plan_counts_is_what_audit_spends(command, files, tmp_path) -> None:
    both = ["--documents", files["documents"], "--known-out", files["known"]]
    code, said = command("plan", *both, "--method", "rag-mia", "--json", tmp_path / "plan.json")
    assert code == 0, said
    arguments = ["audit", "--yes", f"lab:{files['corpus']}", *both, "--method", "rag-mia"]
    arguments += ["--run", tmp_path / "run", "--json", tmp_path / "audit.json"]
    code, said = command(*arguments)
    assert code == 0, said
    foreseen = json.loads((tmp_path / "plan.json").read_text())["methods"]["rag-mia"]
    assert (
        json.loads((tmp_path / "audit.json").read_text())["summary"]["queries"]
        == (foreseen["queries"])
    )


def test_too_few_known_documents_are_said_plainly(command, files) -> None:
    code, said = command(
        "plan", "--documents", files["documents"], "--known-out", files["few"],
        "--method", "rag-mia",
    )  # fmt: skip
    assert code == 0
    assert "no document can be called in at alpha 0.05" in " ".join(said.split())
    assert "It takes 139 known-out documents to call in one by itself" in _shown(said)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--alpha", "1.5"], "alpha must lie"),
        (["--alpha", "0"], "alpha must lie"),
        (["--method", "magic"], "There is no audit 'magic'"),
        (["--method", ","], "no method"),
        (["--set", "rag-mia.colour=red"], "no option 'colour'"),
        (["--set", "colour=red"], "names no audit"),
        (["--set", "mba.masks=3"], "'mba', which is not planned"),
        (["--proxy", "gpt"], "gpt"),
        (["--known-out", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_plan_refuses_in_one_line(command, files, arguments, says) -> None:
    code, said = command("plan", "--documents", files["documents"], "--method", _QUICK, *arguments)
    assert code == 2
    assert says in said


def test_doctor_alone_names_the_verb_that_counts(command, files) -> None:
    code, said = command("doctor", f"lab:{files['corpus']}")
    assert code == 0
    assert "ragwitness plan --documents FILE" in said
    assert "q/doc" not in said


def _fixed(question: str) -> str:
    return "Hello there."


def test_doctor_names_why_a_method_cannot_read_a_target(command, tmp_path) -> None:
    out = tmp_path / "doctor.json"
    code, said = command("doctor", f"python:{__name__}:_fixed", "--json", out)
    assert code == 0, said
    found = json.loads(out.read_text())
    assert {name: one["possible"] for name, one in found["pilots"].items()} == dict.fromkeys(
        ("runon", "mba", "rag-mia"), False
    )
    assert not {"runon", "mba", "rag-mia"} & set(found["audits"])
    assert "pilot of runon" in said
    assert "only 0 of 4 texts shown in the question stood out" in _shown(said)
    code, said = command("doctor", f"python:{__name__}:_fixed", "--no-pilot")
    assert code == 0
    assert "pilot of" not in said
