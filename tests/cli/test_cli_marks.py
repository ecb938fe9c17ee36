"""``ragwitness mark`` and ``audit --marks``: end to end, as evidence, and unusable input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.core.run_files import ANSWERS, REPORT, RESULT
from ragwitness.evidence.pack import ANSWERS_FILE, TEXTS, page_of
from ragwitness.membership.marks.key import read_key
from tests.support.marked import VARIABLE, document
from tests.unit.evidence.forger import Forger, called, judged

_SYSTEM = "python:tests.support.marked:tell"
_LEVEL = ("--alpha", "0.001")  # the lots are drawn anew each time, and .05 is a flaky test


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two marked documents, of which one is indexed, and a sealed audit of both."""
    folder = tmp_path_factory.mktemp("marks")
    (folder / "own").mkdir()
    for number in range(2):
        (folder / "own" / f"report {number}.txt").write_text(document(number).text)
    assert (
        called("mark", folder / "own", "--key", folder / "key.json", "-o", folder / "copies") == 0
    )
    (folder / "index").mkdir()
    copy = folder / "copies" / "report-0.txt"
    (folder / "index" / copy.name).write_text(copy.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "index"))
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        code = called(
            "audit", _SYSTEM, "--marks", folder / "key.json", "--run", folder / "run",
            "--seal", folder / "auditor.key", "--documents", folder / "copies", "--fail-on", "in",
            *_LEVEL,
        )  # fmt: skip
    assert code == 3
    return folder


def _result(folder: Path) -> dict:
    return json.loads((folder / "run" / RESULT).read_text())


def test_the_document_inside_is_called_in(marked: Path) -> None:
    first, second = _result(marked)["documents"]
    assert (first["document"], first["decision"], second["decision"]) == (
        "report 0.txt", "in", "inconclusive",
    )  # fmt: skip
    assert first["right"] == first["answered"] >= 6
    assert _result(marked)["commitment"] == read_key(marked / "key.json").commitment.hex()
    page = (marked / "run" / REPORT).read_text()
    assert "1 of 2 documents: in the system" in page
    assert "once in " in page


def test_the_same_run_asks_nothing_again(marked: Path, monkeypatch, command) -> None:
    monkeypatch.setenv(VARIABLE, str(marked / "index"))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    before = (marked / "run" / ANSWERS).read_bytes()
    code, shown = command(
        "audit", _SYSTEM, "--marks", marked / "key.json", "--run", marked / "run",
        "--seal", marked / "auditor.key", *_LEVEL,
    )  # fmt: skip
    assert code == 0, shown
    assert (marked / "run" / ANSWERS).read_bytes() == before
    assert "answers were kept from an earlier start" in " ".join(shown.split())


def test_a_preview_sends_nothing(marked: Path, command, tmp_path: Path) -> None:
    code, shown = command(
        "audit", "http://127.0.0.1:9/v1", "--marks", marked / "key.json", "--dry-run",
        "--run", tmp_path / "run",
    )  # fmt: skip
    assert code == 0
    lots = sum(len(one.lots) for one in read_key(marked / "key.json").documents)
    assert f"2 marked documents: at most {2 * lots} questions" in shown


def _lie(change: Callable[[dict], object]) -> Callable[[Forger], None]:
    def told(forger: Forger) -> None:
        forger.edit(RESULT, change)
        forger.files[REPORT] = page_of(json.loads(forger.files[RESULT])).encode()

    return told


def _other_lot(rows: list[dict]) -> None:
    """Another alternative is said to have been committed to."""
    row = next(row for row in rows if row["part"] == "marked")
    row["text"] = row["text"].replace("meagre", "sparse")


LIES: dict[str, tuple[Callable[[Forger], None], str]] = {
    "one more right": (
        _lie(lambda r: r["documents"][1].update(right=9)),
        "verdicts.right",
    ),
    "a verdict": (
        _lie(lambda r: r["documents"][1].update(decision="in")),
        "verdicts.decision",
    ),
    "another target": (_lie(lambda r: r.update(target="lab:another")), "seal.system"),
    "an answer dropped, linked anew": (
        lambda f: (f.edit(ANSWERS_FILE, lambda rows: rows.pop(0)), f.relink()),
        "verdicts.unanswered",
    ),
    "another lot": (lambda f: (f.edit(TEXTS, _other_lot), f.recommit()), "texts.root"),
}


@pytest.mark.slow
def test_a_pack_of_marks_passes_and_hides(marked: Path) -> None:
    assert called("seal", marked / "run", "-o", marked / "open.zip") == 0
    assert called("seal", marked / "run", "-o", marked / "hidden.zip", "--hide-texts") == 0
    opened = judged((marked / "open.zip").read_bytes())
    assert (opened.outcome, opened.failures) == ("pass", ())
    hidden = judged((marked / "hidden.zip").read_bytes())
    assert (hidden.outcome, hidden.failures) == ("inconclusive", ())
    data = (marked / "hidden.zip").read_bytes()
    assert b"meagre" not in data
    for lie, (change, check) in LIES.items():
        forger = Forger.of(marked / "open.zip", marked / "auditor.key")
        change(forger)
        failures = judged(forger.packed()).failures
        assert [failure.failure for failure in failures[:1]] == [check], lie


def test_a_promised_beacon_is_joined_before_the_copies_are_written(tmp_path, command) -> None:
    text = tmp_path / "report.txt"
    text.write_text(document(3).text)
    key, out = tmp_path / "key.json", tmp_path / "copies"
    code, shown = command("mark", text, "--key", key, "-o", out, "--beacon", "the lottery of May 1")
    assert code == 0, shown
    assert not out.exists()
    assert "--beacon-value HEX" in shown
    code, shown = command("audit", _SYSTEM, "--marks", key)
    assert (code, "has not been joined" in shown) == (2, True)
    code, shown = command("mark", "--key", key, "-o", out, "--beacon-value", "0xAB12")
    assert code == 0, shown
    assert (out / "report.txt").exists()
    assert read_key(key).beacon == "ab12"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["mark", "--key", "new.json", "-o", "out"], "Give documents, or --beacon-value"),
        (["mark", "{own}", "--key", "{key}", "-o", "out"], "is there already"),
        (["mark", "{own}", "--key", "new.json", "-o", "{copies}"], "is not empty"),
        (["mark", "lost.txt", "--key", "new.json", "-o", "out"], "lost.txt"),
        (["audit", _SYSTEM, "--marks", "lost.json"], "lost.json"),
        (["audit", _SYSTEM], "There are no documents in question"),
        (["audit", _SYSTEM, "--marks", "{key}", "--known-out", "{own}"], "--known-out does not"),
        (["audit", _SYSTEM, "--marks", "{key}", "--method", "mba"], "--method does not apply"),
        (["audit", _SYSTEM, "--marks", "{key}", "--collection"], "do not apply to --marks"),
        (["audit", _SYSTEM, "--marks", "{key}", "--alpha", "2"], "alpha must lie between"),
    ],
)
def test_unusable_input_is_named(marked, tmp_path, monkeypatch, command, arguments, why) -> None:
    monkeypatch.chdir(tmp_path)
    named = {"own": marked / "own", "key": marked / "key.json", "copies": marked / "copies"}
    code, shown = command(*(argument.format(**named) for argument in arguments))
    assert code == 2
    assert why in " ".join(shown.split())
    assert not (tmp_path / "new.json").exists()
    assert not (tmp_path / "out").exists()
