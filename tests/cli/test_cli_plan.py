"""``plan`` and ``doctor --documents``: costs and expected power before the first query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.loopback import loopback, reply

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


def _evaluation(path: Path, *audits: str) -> Path:
    entry = {
        "roc": [[0.0, 0.0], [0.0, 0.6], [0.1, 0.9], [1.0, 1.0]],
        "false_positives": {"0.05": {"value": 0.05, "low": 0.0, "high": 0.1, "n": 40}},
    }
    path.write_text(json.dumps({"audits": dict.fromkeys(audits, entry)}))
    return path


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


def test_one_assumed_separation_is_shown_with_its_spread(command, files) -> None:
    arguments = ["plan", "--documents", files["documents"], "--known-out", files["known"]]
    code, said = command(*arguments, "--method", _QUICK, "--auc", 1, "--inside-share", 1)
    assert code == 0
    assert "100 % to 100 %" in said


def test_an_evaluation_says_what_to_expect_of_each_audit(command, files, tmp_path) -> None:
    evaluation = _evaluation(tmp_path / "evaluation.json", "rag-mia")
    arguments = ["plan", "--documents", files["documents"], "--known-out", files["known"]]
    out = tmp_path / "plan.json"
    code, said = command(
        *arguments, "--evaluation", evaluation, "--method", "rag-mia", "--json", out
    )
    assert code == 0, said
    power = json.loads(out.read_text())["methods"]["rag-mia"]["power"]["as evaluated"]
    assert power["auc"] == pytest.approx(0.6 * 0.1 + 0.3 * 0.1 / 2 + 0.9 * (0.9 + 1) / 2)
    assert 0 < power["found"] < 1


@pytest.mark.long
def test_the_json_of_evaluate_is_understood(command, files, tmp_path) -> None:
    corpus = _write(
        tmp_path / "source.jsonl", [{"id": d.id, "text": d.text} for d in load_sample()[:60]]
    )
    measured = tmp_path / "measured.json"
    code, said = command(
        "evaluate", "--corpus", corpus, "--audits", "rag-mia", "--limit", 12, "--calibration", 6,
        "--no-control", "--run", tmp_path / "run", "--json", measured,
    )  # fmt: skip
    assert code == 0, said
    arguments = ["plan", "--documents", files["documents"], "--method", "rag-mia"]
    out = tmp_path / "plan.json"
    code, said = command(*arguments, "--evaluation", measured, "--json", out)
    assert code == 0, said
    assert "No --known-out was given" in _shown(said)
    auc = json.loads(measured.read_text())["audits"]["rag-mia"]["auc"]
    power = json.loads(out.read_text())["methods"]["rag-mia"]["power"]["as evaluated"]
    assert power["auc"] == pytest.approx(auc)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--alpha", "1.5"], "alpha must lie"),
        (["--alpha", "0"], "alpha must lie"),
        (["--inside-share", "0"], "share inside"),
        (["--inside-share", "1.2"], "share inside"),
        (["--auc", "0.3"], "AUC must lie"),
        (["--sample", "0"], "sample must hold"),
        (["--method", "magic"], "There is no audit 'magic'"),
        (["--method", ","], "no method"),
        (["--set", "rag-mia.colour=red"], "no option 'colour'"),
        (["--set", "colour=red"], "names no audit"),
        (["--set", "mba.masks=3"], "'mba', which is not planned"),
        (["--proxy", "gpt"], "gpt"),
        (["--evaluation", "nowhere.json"], "nowhere.json"),
        (["--known-out", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_plan_refuses_in_one_line(command, files, arguments, says) -> None:
    code, said = command("plan", "--documents", files["documents"], "--method", _QUICK, *arguments)
    assert code == 2
    assert says in said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("not json", "is not JSON"),
        ("[1]", "does not hold a JSON object"),
        ('{"documents": []}', "no 'audits'"),
        ('{"audits": {"mba": {"auc": 0.9}}}', "ROC of 'mba' is malformed"),
        ('{"audits": {"mba": {"roc": [[0, 0]], "false_positives": {}}}}', "ROC of 'mba'"),
        ('{"audits": {}}', "no evaluation of 'rag-mia'"),
    ],
)
def test_what_is_no_evaluation_is_named(command, files, tmp_path, content, says) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(content)
    arguments = ["plan", "--documents", files["documents"], "--method", "rag-mia"]
    code, said = command(*arguments, "--evaluation", path)
    assert code == 2
    assert "evaluation.json" in said
    assert says in said


def test_an_audit_that_was_not_evaluated_is_named(command, files, tmp_path) -> None:
    path = _evaluation(tmp_path / "evaluation.json", "mba", "s2mia")
    arguments = ["plan", "--documents", files["documents"], "--method", "rag-mia"]
    code, said = command(*arguments, "--evaluation", path)
    assert code == 2
    assert "'rag-mia'" in said
    assert "mba, s2mia" in said
    code, said = command(*arguments, "--evaluation", path, "--auc", 0.9)
    assert code == 2
    assert "Give one of them" in said


def test_doctor_says_what_the_admitted_audits_would_cost(
    command, files, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr("ragwitness.cli.doctor.admitted", lambda _: (_QUICK.split(","), []))
    arguments = ["doctor", f"lab:{files['corpus']}", "--documents", files["documents"]]
    code, said = command(*arguments, "--known-out", files["known"])
    assert code == 0, said
    assert max(map(len, said.splitlines()[10:])) <= 80
    assert "seconds per answer" in said
    assert "cost:" not in said
    out = tmp_path / "doctor.json"
    prices = ["--price-in", 2, "--price-out", 8, "--json", out]
    code, priced = command(*arguments, "--known-out", files["known"], *prices)
    assert code == 0, priced
    assert "cost: at most, at 2 and 8 per million tokens" in _shown(priced)
    found = json.loads(out.read_text())
    assert "top_logprobs" in found["capabilities"]
    assert set(found["pilots"]) == {"runon", "s-rag:few", "mba", "rag-mia"}
    assert {m: one["cost_most"] > 0 for m, one in found["forecast"]["methods"].items()} == (
        dict.fromkeys(_QUICK.split(","), True)
    )
    assert "time: from 4 queries at once to one after the other" in _shown(said)
    assert "AUC .95" in _shown(said)


def test_doctor_reads_documents_before_it_asks_anything(command, files) -> None:
    nobody = "http://127.0.0.1:9/v1"
    code, said = command("doctor", nobody, "--documents", files["documents"].parent / "none.jsonl")
    assert code == 2
    assert "none.jsonl" in said
    code, said = command("doctor", nobody, "--known-out", files["known"])
    assert code == 2
    assert "--documents" in said


@pytest.mark.parametrize("method", ["all", _QUICK])
def test_doctor_sends_nothing_where_nothing_can_be_scored(command, files, tmp_path, method) -> None:
    tiny = _write(tmp_path / "tiny.jsonl", [{"id": f"t{i}", "text": f"tiny {i}"} for i in range(9)])
    with loopback(reply({})) as server:
        asked = ("--documents", tiny, "--known-out", files["known"], "--method", method)
        code, said = command("doctor", f"{server.url}#m", *asked)
        assert server.requests == []
    assert code == 2
    assert "None of the 9 documents can be scored" in _shown(said)


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


@pytest.fixture
def run(command, files, tmp_path) -> Path:
    """A finished run by rag-mia, whose scores are yes or no."""
    both = ["--documents", files["documents"], "--known-out", files["known"]]
    folder = tmp_path / "finished"
    line = ["audit", "--yes", f"lab:{files['corpus']}", *both, "--method", "rag-mia"]
    assert command(*line, "--run", folder)[0] == 0
    return folder


@pytest.mark.long
def test_a_run_says_how_much_power_equal_scores_cost(command, files, run, tmp_path) -> None:
    both = ["--documents", files["documents"], "--known-out", files["known"]]
    line = ["plan", *both, "--method", "rag-mia", "--auc", 0.99, "--json", tmp_path / "plan.json"]
    found = []
    for more in ([], ["--from", run]):
        code, said = command(*line, *more)
        assert code == 0, said
        [power] = json.loads((tmp_path / "plan.json").read_text())["methods"]["rag-mia"][
            "power"
        ].values()
        found.append(power["found"])
    assert found[1] <= found[0]
    code, said = command("plan", *both, "--method", "mba", "--from", run)
    assert (code, "an audit by rag-mia" in said) == (2, True)
    code, said = command("plan", *both, "--from", tmp_path)
    assert (code, "result.json does not exist" in _shown(said)) == (2, True)


def test_doctor_counts_the_methods_that_are_named_on_the_sample_that_is_asked_for(
    command, files, tmp_path
) -> None:
    line = ["doctor", f"lab:{files['corpus']}", "--documents", files["documents"]]
    line += ["--method", "rag-mia", "--sample", 3, "--json", tmp_path / "d.json"]
    code, said = command(*line, "--known-out", files["known"])
    assert code == 0, said
    methods = json.loads((tmp_path / "d.json").read_text())["forecast"]["methods"]
    assert list(methods) == ["rag-mia"]
    assert methods["rag-mia"]["documents"]["sampled"] == 3
    assert methods["rag-mia"]["seconds_of_your_own"] >= 0
    assert "this machine works on the probes, and on a shadow system: rag-mia" in _shown(said)
    code, said = command(*line[:4], "--method", "magic")
    assert (code, "magic" in said) == (2, True)
