"""Finished units are kept exactly, once, and in the order of the audit."""

import asyncio
import json
import math

import pytest

from ragwitness.core.errors import TargetUnreachableError
from ragwitness.core.run_files import FINISHED
from ragwitness.core.types import Answer, Capability, Document, Evidence, Interval, Query, Score
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.score_store import (
    AuditUnit,
    RunFolder,
    ScoreStore,
    read_scores,
    write_scores,
)
from ragwitness.runner.worker import Outcome

DOCUMENTS = [Document(f"d{i}", f"text {i}") for i in range(6)]
SCORE = Score(
    0.1 + 0.2,
    features=(1 / 3, math.nan, -0.0, 5e-324),
    evidence=(Evidence("wörd", "before ", Interval(0.1, math.nextafter(0.1, 1)), 1e-300),),
    details={"n": 3.0, "rate": 2 / 3},
)


class Once:
    """One question; the answer's length is the score."""

    name = "once"
    requires = frozenset({Capability.TEXT})

    def __init__(self) -> None:
        self.probed: list[str] = []

    def probe(self, document: Document):
        self.probed.append(document.id)
        (answer,) = yield [Query(document.text)]
        if answer.error:
            return Score(None, reason=answer.error)
        return Score(float(len(answer.text)))


class Target:
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, name: str = "target", broken: str = "") -> None:
        self.name, self.broken, self.asked = name, broken, 0

    async def ask(self, query: Query) -> Answer:
        self.asked += 1
        if query.prompt == self.broken:
            raise TargetUnreachableError("no connection")
        return Answer(query.prompt)

    async def close(self) -> None: ...


def _run(run, target: Target, audit: Once, identity: str = "made so", **caps) -> list[Outcome]:
    with RunFolder.of_run(run, identity) as records, RateLimiter(Budget(**caps)) as limiter:
        worker = records.worker(target, 1, limiter)
        return asyncio.run(worker.run(audit, DOCUMENTS, "documents"))


def test_a_score_is_read_back_as_it_was_to_the_last_bit(tmp_path) -> None:
    outcome = Outcome(DOCUMENTS[0], SCORE, queries=3, sent=2)
    with ScoreStore(tmp_path / FINISHED, "made so") as book:
        first = book.put("a system", outcome)
    with ScoreStore(tmp_path / FINISHED, "made so") as book:
        again = book.get("a system", DOCUMENTS[0])
    assert repr(first) == repr(outcome)  # by repr: NaN equals nothing
    assert repr(again.score) == repr(SCORE)
    assert (again.queries, again.sent) == (3, 0)  # nothing was sent now


def test_a_finished_document_is_not_probed_again(tmp_path) -> None:
    target, first, second = Target(), Once(), Once()
    found = _run(tmp_path, target, first)
    again = _run(tmp_path, target, second)
    assert (len(first.probed), second.probed, target.asked) == (6, [], 6)
    assert [o.score for o in again] == [o.score for o in found]
    assert [o.queries for o in again] == [1] * 6
    other = Once()
    _run(tmp_path, target, other, "made otherwise")
    assert (len(other.probed), target.asked) == (6, 6)  # scored anew, from kept answers
    _run(tmp_path, Target("another"), other)
    assert len(other.probed) == 12


def test_what_may_pass_is_tried_again_and_then_stays(tmp_path) -> None:
    found = _run(tmp_path, Target(broken="text 2"), Once())
    assert [o.passing for o in found] == [i == 2 for i in range(6)]
    assert found[2].score.reason == "no connection"
    audit = Once()
    again = _run(tmp_path, Target(), audit)
    assert audit.probed == ["d2"]
    assert again[2].score.value == 6.0
    kept = read_scores(tmp_path / FINISHED)
    assert len(kept) == 6
    assert not any(row.passing for row in kept.values())


def test_what_a_cap_refused_is_tried_again(tmp_path) -> None:
    found = _run(tmp_path, Target(), Once(), queries=4)
    assert [o.capped for o in found] == [False] * 4 + [True] * 2
    audit = Once()
    _run(tmp_path, Target(), audit)
    assert audit.probed == ["d4", "d5"]


def test_a_row_cut_short_loses_itself_alone(tmp_path) -> None:
    _run(tmp_path, Target(), Once())
    path = tmp_path / FINISHED
    path.write_bytes(path.read_bytes()[:-20])
    audit = Once()
    found = _run(tmp_path, Target(), audit)
    assert audit.probed == ["d5"]
    assert [o.score.value for o in found] == [6.0] * 6


def test_a_lasting_outcome_goes_before_a_passing_one(tmp_path) -> None:
    lasting = Outcome(DOCUMENTS[0], SCORE, 1, 1)
    passing = Outcome(DOCUMENTS[0], Score(None, reason="late"), 1, 1, passing=True)
    for name, outcomes in (("ab", (lasting, passing)), ("ba", (passing, lasting))):
        with ScoreStore(tmp_path / name, "made so") as book:
            for outcome in outcomes:
                book.put("a system", outcome)
        (outcome,) = read_scores(tmp_path / name).values()
        assert not outcome.passing


def test_scores_are_written_in_the_order_of_the_audit(tmp_path) -> None:
    units = [
        AuditUnit(stage, document, f"id-{document.id}") for stage in "xy" for document in DOCUMENTS
    ]
    found = {
        stage: [Outcome(document, SCORE, 1, sent) for document in DOCUMENTS]
        for sent, stage in enumerate("xy")
    }
    write_scores(tmp_path / "scores.jsonl", units, found)
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [(row["stage"], row["document"]) for row in rows] == [
        (unit.stage, unit.document.id) for unit in units
    ]
    assert rows[0]["value"] == SCORE.value
    assert "sent" not in rows[0]  # it differs between a fresh start and a resumed one
    assert list(tmp_path.iterdir()) == [tmp_path / "scores.jsonl"]


@pytest.mark.parametrize("identity", [None, "made so"])
def test_without_an_identity_answers_alone_are_kept(tmp_path, identity) -> None:
    with RunFolder.of_run(tmp_path, identity) as records:
        worker = records.worker(Target(), 1)
        asyncio.run(worker.run(Once(), DOCUMENTS, "documents"))
    assert (tmp_path / FINISHED).exists() is (identity is not None)
