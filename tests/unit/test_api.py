"""The four questions from Python, against systems that count what they are asked."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

import ragwitness as rw
from ragwitness.core.errors import InputError
from ragwitness.crypto.keys import PrivateKey
from ragwitness.rag.lab import lab_target, rag_config
from ragwitness.report.result_registry import result_type_named
from ragwitness.text.sample import load_sample
from tests.golden import answering
from tests.golden.tasks import STORED
from tests.support.canary_audit import model_of
from tests.support.canary_model import serving
from tests.support.tenants_rag import tenants_rag
from tests.unit.evidence.forger import Forger

HERE = "python:tests.golden.answering"
INPUTS = STORED / "inputs"


def test_an_audit_names_members_and_resumes_in_its_folder(tmp_path):
    given = {"known_out": INPUTS / "known.jsonl", "method": "rag-mia", "yes": True}
    given["run"] = tmp_path / "run"
    first = rw.audit(f"{HERE}:knows", INPUTS / "documents.jsonl", **given)
    asked = len(answering.PROMPTS)
    again = rw.audit(f"{HERE}:knows", str(INPUTS / "documents.jsonl"), **given)
    assert len(answering.PROMPTS) == asked  # nothing is asked twice
    assert again.verdicts == first.verdicts
    values = {verdict.score for verdict in first.verdicts}
    assert len(values) > 1
    rw.write_html(first, tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()


def test_rows_left_out_are_told_and_let_no_gate_pass(tmp_path):
    rows = (INPUTS / "documents.jsonl").read_text("utf-8") + '{"id": "lost", "text": "a\\u0000b"}\n'
    (tmp_path / "mine.jsonl").write_text(rows, "utf-8")
    known = {"known_out": INPUTS / "known.jsonl", "method": "rag-mia", "yes": True}
    kind = result_type_named("audit")
    for documents, lost in ((tmp_path / "mine.jsonl", 1), (INPUTS / "documents.jsonl", 0)):
        told = (
            pytest.warns(UserWarning, match=r"left out: mine.jsonl:\d+: the text holds NUL")
            if lost
            else nullcontext()
        )
        with told:
            found = rw.audit(f"{HERE}:knows", documents, **known)
        assert len(found.left_out) == lost
        # Decided or not: no condition is met, and what was not audited shows nothing.
        sure = replace(found.verdicts[0], decision=rw.Decision.OUT)
        found = replace(found, verdicts=(sure, *found.verdicts[1:]))
        ruling = kind.rule(found, kind.conditions(["unscorable"]))
        assert ruling.code == (4 if lost else 0)
        assert ("1 row could not be read and was left out" in ruling.why) is bool(lost)
        assert not kind.rule(found, ()).code


def test_texts_functions_and_a_running_loop_will_do():
    async def inside() -> rw.AuditResult:
        texts = [document.text for document in load_sample()[:3]]
        return rw.audit(
            lambda prompt: "Yes, it is.", texts, method="rag-mia", max_queries=3, yes=True
        )

    found = asyncio.run(inside())
    assert [verdict.document for verdict in found.verdicts] == ["1", "2", "3"]
    assert found.queries <= 3  # the cap holds over checks and probes


def test_what_leaks_is_counted_beside_a_system_that_tells_nothing():
    corpus = INPUTS / "corpus.jsonl"
    told = rw.leak(f"{HERE}:tells", corpus, prompts=3, answer_tokens=24)
    blind = rw.leak(lambda prompt: "I cannot say.", corpus, prompts=3)
    assert sum(one.count for one in told.together) > sum(one.count for one in blind.together)
    with pytest.raises(rw.RagwitnessError, match="corpus"):
        rw.leak(f"{HERE}:tells", [])


def test_bounds_are_those_of_the_guide():
    found = rw.bounds(epsilon=1, delta=1e-6, queries=1000, accounts=16)
    assert found.paper == pytest.approx(5.16, abs=0.005)
    assert found.exact == pytest.approx(0.390, abs=0.0005)
    # An oracle by hand: Gaussian privacy adds in squares, and (3.4) is inverted by mu_of.
    mu = rw.mu_of(found.sigma, 16 * 1000)
    assert rw.epsilon_at(found.delta, mu) == pytest.approx(found.exact)


def test_a_stored_window_is_verified_and_nothing_passes_without_trust(tmp_path):
    golden = STORED.parent / "attest"
    bundle, trust = golden / "window-v3.zip", golden / "trust-v3.json"
    assert rw.verify(bundle, trust).outcome == "pass"
    assert rw.verify(bundle).outcome == "inconclusive"
    unpinned = tmp_path / "trust.json"
    unpinned.write_text(json.dumps(json.loads(trust.read_bytes()) | {"pins": {}}))
    assert rw.verify(bundle, unpinned).outcome == "inconclusive"
    # A window of an earlier proof system is left to the release that checks it.
    before = rw.verify(golden / "window-v1.zip", golden / "trust-v1.json")
    assert before.outcome == "inconclusive"
    assert "ragwitness 0.2.0" in before.why


def test_a_pack_is_verified_by_what_its_verifier_knew():
    pack = STORED.parent / "evidence" / "audit-v1.zip"
    key = Forger.of(pack, PrivateKey.generate("any")).key_named.text
    before, beside = rw.verify(pack), rw.verify(str(pack), key=key)
    assert "nothing that you knew before" in before.why
    assert "nothing that you knew before" not in beside.why
    # A pack of 0.2.0: its seal names no system, and its cosine was one of words.
    assert (beside.outcome, beside.failures) == ("inconclusive", ())
    assert beside.why.count(";") == 1
    assert "details.score/cosine" in beside.why
    assert "the seal does not name the system" in beside.why
    with pytest.raises(InputError, match="--trust does not apply to a pack"):
        rw.verify(pack, STORED.parent / "attest" / "trust-v3.json")


@pytest.mark.slow
def test_accounts_are_audited_at_one_level_by_their_keys_or_their_own_systems(
    tmp_path, monkeypatch
):
    sample = load_sample()
    own, outside, others = sample[:6], sample[6:66], sample[66:96]
    given = {"known_out": outside, "method": "s2mia", "yes": True}
    monkeypatch.setenv("BOB_KEY", "bob")
    monkeypatch.setenv("EVE_KEY", "eve")
    with tenants_rag({"bob": [*others, *own], "eve": others}) as url:
        found = rw.audit_as(
            {"bob": "BOB_KEY", "eve": "EVE_KEY"}, own, target=url, run=tmp_path / "run", **given
        )
    systems = {
        name: lab_target(tuple(documents), rag_config(generator="repeat"), "none")
        for name, documents in {"bob": [*others, *own], "eve": others}.items()
    }
    apart = rw.audit_as(systems, own, **given)
    reached = {(one.document, one.account) for one in found.cells if one.verdict == "in"}
    assert reached == {(one.id, "bob") for one in own}
    assert {one.account for one in apart.cells if one.verdict == "in"} == {"bob"}
    assert (tmp_path / "run" / "bob" / "answers.jsonl").is_file()
    with pytest.raises(InputError, match="No account is named"):
        rw.audit_as({}, own, **given)
    with pytest.raises(InputError, match="does not apply to --as"):
        rw.audit_as({"bob": "BOB_KEY"}, own, key_env="EVE_KEY", **given)


def test_canaries_from_plan_to_verdict_for_a_model_that_knows_and_one_that_does_not(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": d.id, "document": d.text, "question": "What is said?", "answer": "A fact, no more."}
        for d in load_sample()[:30]
    ]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with monkeypatch.context() as patch:  # one draw in twenty accuses the innocent model
        patch.setattr("os.urandom", lambda size: b"\x07" * size)
        plan = rw.plan_canaries("examples.jsonl", "one", candidates=20)
    assert plan.commitment.hex() in Path("one/commitment.json").read_text()
    assert rw.plant_canaries("one")
    shutil.copytree("one", "two")
    for folder, violating in (("one", True), ("two", False)):
        with serving(model_of(Path(folder), violating=violating)) as url:
            found = rw.probe_canaries(url, folder, run=f"run-{folder}")
            assert (found.finding.p_value <= 0.05) is violating
            # The same answers, read again, are the same look.
            later = rw.probe_canaries(url, folder, run=f"run-{folder}")
            assert later.look == found.look
            assert found.look.number == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"alpha": None}, "alpha cannot be None"),
        ({"alpha": True}, "alpha cannot be True"),
        ({"options": {"min_words": [3]}}, r"min_words cannot be \[3\]"),
        ({"known_out": {"a": "one text"}}, "Document 1 is of the type dict"),
        ({"known_in": ["one text", None]}, "Document 2 is of the type NoneType"),
        ({"auxiliary": b"bytes"}, "Document 1 is of the type int"),
        ({"run": ""}, "run names no folder"),
        ({"run": 5}, "run names no folder"),
        ({"run": "a\0b"}, "run names no folder"),
        ({"max_queries": "10"}, "max_queries cannot be '10'"),
        ({"max_queries": True}, "max_queries cannot be True"),
        ({"method": None}, "method cannot be None"),
        ({"proxy": None}, "proxy cannot be None"),
        ({"options": [("max_chars", 5)]}, "has no value"),
    ],
)
def test_what_is_of_another_type_is_refused_before_anything_is_asked(
    given, says, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        rw.audit(lambda _: pytest.fail("asked"), ["one text"], **{"method": "rag-mia"} | given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["scores.jsonl", "answers.jsonl", "deep/mine.jsonl"])
def test_what_is_read_does_not_lie_where_the_run_is_kept(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(rows := '{"id": "a", "text": "one text of some words"}\n')
    for call in (
        lambda: rw.audit(lambda _: "no", name, method="rag-mia", run="."),
        lambda: rw.leak(lambda _: "no", tmp_path / name, run=tmp_path),
    ):
        with pytest.raises(InputError, match="holds the input"):
            call()
    assert Path(name).read_text() == rows
    assert len([one for one in tmp_path.rglob("*") if one.is_file()]) == 1
