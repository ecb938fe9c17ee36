"""What the version of ``stored/made.json`` wrote still opens, resumes, verifies and is counted.

Nothing in ``stored`` may be made anew to please a test: a user has such files, and paid for them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.types import READING
from tests.golden import answering, tasks
from tests.golden.tasks import INPUTS, RUNS, STORED, TABLES, TASKS, WHERE, done, same

_RUNS = sorted(TASKS)


@pytest.fixture(autouse=True)
def _as_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with the inputs, under the version that is part of every key."""
    made = json.loads((STORED / "made.json").read_text(encoding="utf-8"))
    tasks.pretend(made["ragwitness"], tmp_path, monkeypatch)
    here = shutil.copytree(INPUTS, tmp_path / "here")
    _private(shutil.copytree(STORED / "canary" / "plan", here / "plan"))
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", "80")
    answering.PROMPTS.clear()


def _run_of(folder: Path) -> Path:
    [run] = (folder / RUNS).iterdir()
    return run


def _taken(*parts: str) -> Path:
    """A copy of something stored, in the folder at hand."""
    return shutil.copytree(STORED.joinpath(*parts), Path(parts[-1]))


def _private(folder: Path) -> Path:
    """Let nobody else open what is in a folder: a checkout forgets that it was so."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


def _spending() -> dict[str, bytes]:
    """Every journal and record of spending, by its path."""
    kinds = ("answers.jsonl", "spent.jsonl", "votes.jsonl", "made.jsonl", "finished.jsonl")
    return {str(path): path.read_bytes() for kind in kinds for path in Path().rglob(kind)}


# Opened


@pytest.mark.parametrize("name", _RUNS)
def test_report_opens_a_stored_run(name: str) -> None:
    run = _run_of(shutil.copytree(STORED / "runs" / name, Path("kept")))
    before = (run / "result.json").read_bytes()
    assert len(done(*tasks.report(run)).split()) > 20
    assert (run / "result.json").read_bytes() == before


def test_a_run_that_was_shared_among_machines_still_opens() -> None:
    run = _taken("sharded", "run")
    assert len(done(*tasks.report(run)).split()) > 20
    [(kind, page)] = tasks.pages(run)
    assert kind == "audit"
    assert "documents" in page


@pytest.mark.parametrize("method", ["dcmi", "interrogation", "menta", "twin (text)"])
def test_a_run_of_a_method_that_left_still_opens(method: str) -> None:
    run = _run_of(shutil.copytree(STORED / "runs" / "audit", Path("kept")))
    stored = (run / "result.json").read_text(encoding="utf-8")
    (run / "result.json").write_text(stored.replace('"rag-mia"', f'"{method}"'), encoding="utf-8")
    assert "in the database" in done(*tasks.report(run))
    [(kind, page)] = tasks.pages(Path("kept") / RUNS)
    assert kind == "audit"
    assert method in page


def test_a_run_of_an_attack_that_left_still_opens() -> None:
    run = _run_of(shutil.copytree(STORED / "runs" / "leak", Path("kept")))
    assert "thief" in done(*tasks.report(run))
    [(kind, page)] = tasks.pages(Path("kept") / RUNS)
    assert kind == "leak"
    assert "thief" in page


@pytest.mark.parametrize("name", ["audit", "audit-learning", "leak", "compare"])
def test_report_writes_a_stored_result_again_as_it_was(name: str) -> None:
    run = _run_of(shutil.copytree(STORED / "runs" / name, Path("kept")))
    done(*tasks.report(run, "--json", "again.json"))
    assert same(json.loads(Path("again.json").read_bytes())) == same(tasks.result_of(run))


def test_every_stored_run_has_a_page() -> None:
    kinds = [kind for name in _RUNS for kind, _ in tasks.pages(STORED / "runs" / name / RUNS)]
    assert sorted(kinds) == sorted(
        ["audit", "audit", "collection", "leak", "synthesis", "synthesis", "comparison",
         "evaluation", "canary"]
    )  # fmt: skip


def test_unfinished_runs_have_a_page() -> None:
    assert [k for k, _ in tasks.pages(STORED / "stopped" / "killed" / RUNS)] == ["not finished"]
    assert [k for k, _ in tasks.pages(STORED / "stopped" / "capped" / RUNS)] == ["leak"]


# Resumed


# MBA's default speller and S-RAG's settings are others than those of the stored runs; the attack
# "thief" and the benign questions of an evaluation were removed, and a synthesis names fewer points
# of a record.
_OTHERWISE = {"owner", "leak", "audit-learning", "evaluate", "compare"}


@pytest.mark.slow
# A probe hangs on its plan, and plans of another version are refused.
@pytest.mark.parametrize("name", [name for name in _RUNS if name != "canary"])
def test_a_run_that_lost_its_result_finds_it_again_and_asks_nothing(name: str) -> None:
    """The command without ``--run`` finds the folder, its journal, its scores and its result."""
    stored = tasks.result_of(_run_of(STORED / "runs" / name))
    run = _run_of(_taken("runs", name, RUNS).parent)
    for lost in ("result.json", "scores.jsonl", "transcripts.jsonl"):
        (run / lost).unlink(missing_ok=True)
    before = _spending()
    done(*TASKS[name])
    if name in _OTHERWISE:
        # Another method by now: it asks, and what was paid for is kept.
        after = _spending()
        assert all(after[path].startswith(kept) for path, kept in before.items())
        assert after != before
        return
    assert [path.name for path in Path(RUNS).iterdir()] == [run.name]
    assert answering.PROMPTS == []
    after = _spending()
    assert after.keys() == before.keys()
    # Votes of 0.2.0 name no spend: the first start since books them in the ledger.
    changed = [path for path, kept in before.items() if after[path] != kept]
    assert all(
        path.endswith("votes.jsonl") and after[path].startswith(before[path]) for path in changed
    )
    assert tasks.holds(_without_starts(tasks.result_of(run)), _without_starts(stored))
    if name.startswith("audit"):
        kept = _run_of(STORED / "runs" / name) / "scores.jsonl"
        assert (run / "scores.jsonl").read_bytes() == kept.read_bytes()


def _without_starts(result: dict[str, Any]) -> object:
    """A result without what tells a resumed run from one that was never stopped."""
    told = same(result)
    if "counts" in told:  # of synthesis: queries of this start, for records not finished before
        del told["queries"]
        told.pop("skipped", None)  # "left_out" by now
    told.pop("caution", None)  # of a collection: said since texts are compared
    if "calibration" in told.get("summary", {}):
        told["summary"] = tasks.as_before(told["summary"])
        told["documents"] = _untested(told["documents"])
    for held in (told, told.get("summary", {})):
        told_of = held.get("warnings", [])
        held["warnings"] = [one for one in told_of if "earlier start" not in one]
    return told


def test_a_killed_audit_goes_on_where_it_was() -> None:
    run = _run_of(_taken("stopped", "killed", RUNS).parent)
    kept = {row["asked"]["query"]["prompt"] for row in tasks.rows_of(run / "answers.jsonl")}
    finished = len(tasks.rows_of(run / "finished.jsonl"))
    assert not (run / "result.json").exists()
    done(*TASKS["audit"])
    whole = _run_of(STORED / "runs" / "audit")
    assert [path.name for path in Path(RUNS).iterdir()] == [run.name] == [whole.name]
    assert not kept & set(answering.PROMPTS)
    assert len(answering.PROMPTS) == len(tasks.rows_of(whole / "answers.jsonl")) - len(kept)
    assert finished >= 6
    assert _scores(run) == _scores(whole)


def test_answers_of_an_earlier_reading_are_read_again_and_none_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores of other rules are in no result; the answers are kept, and scored by those of now."""
    run = _run_of(_taken("runs", "audit", RUNS).parent)
    (run / "result.json").unlink()
    kept, before = tasks.rows_of(run / "scores.jsonl"), _spending()
    asked = {row["asked"]["query"]["prompt"] for row in tasks.rows_of(run / "answers.jsonl")}
    monkeypatch.setattr("ragwitness.runner.score_store.READING", READING)
    done(*TASKS["audit"], "--run", run, "--reference-model", "none")
    # Some documents are asked about at other words by now; nothing that was paid for is lost.
    assert not asked & set(answering.PROMPTS)
    assert len(answering.PROMPTS) < len(asked)
    after = _spending()
    assert all(after[path].startswith(rows) for path, rows in before.items())
    scores = tasks.rows_of(run / "scores.jsonl")
    assert {row["document"] for row in scores} == {row["document"] for row in kept}
    assert not {row["unit"] for row in scores} & {row["unit"] for row in kept}


def _scores(run: Path) -> list[dict[str, Any]]:
    """Every score of a run, without what the proxy says of the words: that was asked for each
    document once, and is asked today where a report shows it."""
    rows = tasks.rows_of(run / "scores.jsonl")
    return [row | {"evidence": [word[:-1] for word in row["evidence"]]} for row in rows]


def _documents(run: Path) -> object:
    """What a result says of every document, as ``_scores``."""
    documents = tasks.result_of(run)["documents"]
    for document in documents:
        for word in document["evidence"]:
            del word["baseline"]
    return same(_untested(documents))


def _untested(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Documents without what the runs knew otherwise.

    Each one is tested by itself since, and none is ranked among those of a shadow system.
    """
    since = ("q_value", "reason", "p_out")
    return [{k: v for k, v in one.items() if k not in since} for one in documents]


@pytest.mark.slow
def test_a_measurement_at_its_cap_goes_on_with_a_higher_one() -> None:
    run = _run_of(_taken("stopped", "capped", RUNS).parent)
    assert tasks.result_of(run)["spent"]["stopped_by"] == "query"
    stored = tasks.rows_of(run / "answers.jsonl")
    done(*TASKS["leak"], "--run", run)
    assert [path.name for path in Path(RUNS).iterdir()] == [run.name]
    # "thief" of the stored run left; what was answered to composite prompts is not asked again.
    every = tasks.rows_of(run / "answers.jsonl")
    assert every[:3] == stored
    assert len({row["key"] for row in every}) == len(every) == 3 + len(answering.PROMPTS)
    assert tasks.result_of(run)["spent"]["queries"] == len(every)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_written_again_without_work(name: str) -> None:
    shutil.copytree(STORED / "tables", "out")
    folder = Path("out", "golden", name)
    before = _spending()
    told = json.loads((folder / "table.json").read_bytes())
    (folder / "table.json").unlink()
    said = done(*TABLES[name], *WHERE)
    assert "measuring" not in said
    assert _spending() == before
    found = json.loads((folder / "table.json").read_bytes())
    assert tasks.holds(same(found), same(told))


@pytest.mark.slow
def test_recorded_answers_and_transcripts_are_read_again() -> None:
    run, leak = _run_of(STORED / "runs" / "audit"), _run_of(STORED / "runs" / "leak")
    replay = ("audit", f"replay/{run}", *TASKS["audit"][2:], "--run", "again")
    done(*replay)
    assert _documents(Path("again")) == _documents(run)
    again = ("leak", "--transcripts", leak / "transcripts.jsonl", "--corpus", "corpus.jsonl")
    done(*again, "--background", "background.jsonl", "--run", "scored")
    found, stored = tasks.result_of(Path("scored")), tasks.result_of(leak)
    assert same(found["together"]) == same(stored["together"])
    assert same(found["attacks"]) == same(stored["attacks"])


# Keys


def test_keys_of_every_stored_answer_follow_from_what_was_asked() -> None:
    journals = [path for path in STORED.rglob("answers.jsonl") if path.stat().st_size]
    rows = [row for path in journals for row in tasks.rows_of(path)]
    assert len(rows) > 300
    assert {row["key"] for row in rows} == {tasks.stored_keys(row) for row in rows}


def test_units_of_stored_scores_follow_from_audit_target_and_document() -> None:
    run = _run_of(STORED / "runs" / "audit")
    finished = tasks.rows_of(run / "finished.jsonl")
    asked = [row["asked"] for row in tasks.rows_of(run / "answers.jsonl")]
    files = [INPUTS / f"{part}.jsonl" for part in ("documents", "known", "auxiliary")]
    rows = [row for path in files for row in tasks.rows_of(path)]
    identity = tasks.audit_identity_of("rag-mia", {})
    systems = {one["target"] for one in asked}
    known = {unit for one in systems for unit in tasks.unit_ids(identity, one, rows)}
    assert len(finished) > 20
    assert {row["unit"] for row in finished} <= known


# Ids that do not depend on where a class lives


def test_identities_of_audits_are_those_under_which_scores_are_kept() -> None:
    stored = json.loads((STORED / "identities.json").read_text(encoding="utf-8"))
    found = tasks.audit_identities()
    assert {name: found.get(name) for name in stored} == stored
    new = {name: found[name] for name in found if name not in stored}
    assert not new, f"a new audit keeps its id from now on: add to identities.json: {new}"


def test_scores_of_another_reading_are_not_mixed_with_those_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = tasks.audit_identities()
    monkeypatch.undo()
    found = tasks.audit_identities()
    assert all(found[name] != before[name] for name in found)


# Windows


@pytest.fixture
def attest() -> Path:
    return _private(_taken("attest"))


def test_a_stored_window_is_left_to_the_release_that_checks_its_proofs(attest: Path) -> None:
    from ragwitness.attest.trust import parse_trust
    from ragwitness.attest.verifier import verify

    trust = parse_trust((attest / "trust.json").read_bytes())
    found = verify((attest / "bundle.zip").read_bytes(), trust)
    assert (found.outcome, found.failures) == ("inconclusive", ())
    assert "Verify it with ragwitness 0.2.0." in found.why


def test_a_stored_challenge_is_drawn_again_to_the_byte(attest: Path) -> None:
    beacon = json.loads((attest / "trust.json").read_bytes())["beacon"]
    drawn = ("attest", "challenge", attest / "window/public", "--beacon", beacon, "--records", 1)
    done(*drawn, "-o", "again.json")
    assert Path("again.json").read_bytes() == (attest / "challenge.json").read_bytes()


def test_stored_receipts_hold(attest: Path) -> None:
    trust = ("--trust", attest / "trust.json")
    for n, (account, text) in enumerate((("ann", "fever"), ("bob", "rash"), ("ann", "cough"))):
        path = attest / "receipts" / f"{n}.json"
        told = json.loads(
            done("attest", "receipt", "check", path, *trust, "--query", text, "--json")
        )
        assert (told["holds"], told["account"]) == (True, account)


def test_a_stored_window_is_watched_further(attest: Path) -> None:
    watch = ("attest", "monitor", attest / "window/public", "--trust", attest / "trust.json")
    told = json.loads(done(*watch, "--state", attest / "seen", "--json"))
    assert told["before"] == told["now"] > 3


def test_an_open_window_is_closed_with_the_log_that_it_had(attest: Path) -> None:
    entries = attest / "open/public/log/entries.bin"
    before = entries.read_bytes()
    told = json.loads(
        done("attest", "close", attest / "open", "--key", attest / "log.key", "--json")
    )
    assert told["queries"] == 3
    assert entries.read_bytes().startswith(before)
    assert entries.read_bytes() == (attest / "window/public/log/entries.bin").read_bytes()
    # Its tiles are published where the log's prefix is now, from the first entry on.
    watch = ("attest", "monitor", attest / "open/public", "--trust", attest / "trust.json")
    told = json.loads(done(*watch, "--state", attest / "own", "--json"))
    assert (told["before"], (attest / "open/public/tile/entries").is_dir()) == (None, True)
    for name in ("close.checkpoint", "estimate.json"):
        stored = attest / "window/public" / name
        assert (attest / "open/public" / name).read_bytes() == stored.read_bytes()


def test_records_noise_policies_and_meters_are_the_same_bytes(attest: Path) -> None:
    stored = json.loads((attest / "bytes.json").read_text(encoding="utf-8"))
    assert tasks.settled_bytes(attest) == stored


# Canaries


@pytest.mark.parametrize("verb", ["status", "plant", "probe"])
def test_a_plan_of_another_version_is_refused_by_name_and_stays_as_it_is(verb: str) -> None:
    before = {path: path.read_bytes() for path in Path("plan").rglob("*") if path.is_file()}
    exact = STORED / "canary" / "exact"
    asked = {"probe": (f"replay/{exact}", "--plan", "plan", "--run", "again")}
    code, text = tasks.call("canary", verb, *asked.get(verb, ("plan",)))
    assert code == 2
    assert "Use the version of Ragwitness that it was planned with" in " ".join(text.split())
    assert {path: path.read_bytes() for path in Path("plan").rglob("*") if path.is_file()} == before


def test_a_stored_probe_still_opens() -> None:
    run = _taken("canary", "exact")
    assert "Release summer: inconclusive" in " ".join(done(*tasks.report(run)).split())


# The service


def test_a_stored_database_of_an_earlier_schema_is_refused_and_kept() -> None:
    pytest.importorskip("sqlalchemy")
    script = (STORED / "service" / "service.sql").read_text(encoding="utf-8")
    with sqlite3.connect("service.db") as held:
        held.executescript(script)
        before = list(held.iterdump())
    held.close()
    code, said = tasks.call("service", "tenants", "list", "--database", "service.db")
    assert code == 2
    assert "The database has schema version 2" in said
    assert "Use the version of ragwitness that made it" in said
    with sqlite3.connect("service.db") as held:
        assert list(held.iterdump()) == before
    held.close()
