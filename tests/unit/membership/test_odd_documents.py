"""Documents that a model may know by heart, or a service by an earlier audit: nobody is accused."""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Decision, Document, Probe, Query, Score
from ragwitness.membership.collection import run_collection
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.run import run_audit
from ragwitness.runner.response_store import ResponseStore, StoredQuery, query_key
from ragwitness.text.sample import load_sample

_TALES = tuple(
    Document(
        f"tale-{n}",
        f"Once upon a time there was a {who} who had three daughters, and the youngest was so"
        " beautiful that the sun itself, who had seen so much, wondered each time it shone upon"
        f" her face. “Go,” said the {who}, “and do not look back, whatever you hear in the wood.”",
    )
    for n, who in enumerate(("king",))
)


class _Knows:
    """Holds nothing; answers yes to what it knows by heart, or remembers of its own logs."""

    name = "knows"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, by_heart: tuple[Document, ...] = ()) -> None:
        self.known, self.logs = {one.text for one in by_heart}, list[str]()

    async def ask(self, query: Query) -> Answer:
        self.logs.append(query.prompt)
        return Answer("yes" if query.prompt in self.known else "no")

    def learn(self) -> None:
        self.known.update(self.logs)

    async def close(self) -> None:
        pass


class _Asks:
    """One question a document; its answer, and a little noise, is the score."""

    name = "asks"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text)]
        return Score(float(answer.text == "yes") + random.Random(document.text).random() / 2)


_SAMPLE = tuple(load_sample())


def _audit(plan: AuditPlan, target: _Knows, run: Path | None = None):
    return asyncio.run(run_audit(plan, target, _Asks(), run=run))


# One document unlike the others.


def test_texts_known_by_heart_and_unlike_the_others_are_not_called_in() -> None:
    plan = AuditPlan((*_SAMPLE[:20], *_TALES), known_out=_SAMPLE[100:200])
    result = _audit(plan, _Knows(_TALES))
    tales = [one for one in result.verdicts if one.document.startswith("tale")]
    assert not result.calibration.likeness.unlike  # 1 of 21 shows nothing in the sets
    assert result.count(Decision.IN) == 0
    assert {one.reason for one in tales} == {"unlike the known-outside documents"}
    assert all(one.q_value == 1.0 for one in tales)
    assert any(
        "tale-0" in one and "unlike the known-outside ones" in one for one in result.warnings
    )
    kept = _audit(replace(plan, accept_unlike=True), _Knows(_TALES))
    assert kept.verdicts[-1].reason == "unlike the known-outside documents: not exact"
    assert not kept.calibration.exact


def test_members_like_the_others_keep_their_verdict_beside_odd_ones() -> None:
    held = _SAMPLE[:12]
    plan = AuditPlan((*_SAMPLE[:20], *_TALES), known_out=_SAMPLE[100:200])
    result = _audit(plan, _Knows((*held, *_TALES)))
    found = {one.document for one in result.verdicts if one.decision is Decision.IN}
    assert len(found & {one.id for one in held}) >= 11
    assert not found & {one.id for one in _TALES}
    assert result.calibration.exact


# What earlier runs sent.


@pytest.mark.parametrize("folders", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_service_that_remembers_an_earlier_audit_accuses_nobody(tmp_path, folders) -> None:
    target = _Knows()
    runs = [tmp_path / name if folders else None for name in ("first", "second", "third")]
    plan = AuditPlan(_SAMPLE[:20], known_out=_SAMPLE[100:200])
    first = _audit(plan, target, runs[0])
    assert first.calibration.exact
    target.learn()
    # Fresh known-outside documents: only those in question are remembered.
    result = _audit(replace(plan, known_out=_SAMPLE[200:300]), target, runs[1])
    assert result.count(Decision.IN) == 0
    assert not result.calibration.exact
    said = next(one for one in result.warnings if "sent to this target before" in one)
    # A text of the same template may quote a fourth of another.
    assert re.search("20 of 20 documents in question and [0-3] of 100 known-outside ones", said)
    assert ("first" if folders else "this process") in said
    insists = replace(plan, known_out=_SAMPLE[300:400], accept_unlike=True)
    kept = _audit(insists, target, runs[2])
    assert kept.count(Decision.IN) == 20
    assert not kept.calibration.exact


@pytest.mark.slow
def test_both_kinds_sent_before_are_exact_and_known_ones_alone_are_not(tmp_path) -> None:
    plan = AuditPlan(_SAMPLE[:20], known_out=_SAMPLE[100:200])
    target = _Knows()
    _audit(plan, target, tmp_path / "first")
    target.learn()
    again = _audit(plan, target, tmp_path / "again")
    assert again.calibration.exact
    assert again.count(Decision.IN) == 0
    others = _audit(replace(plan, documents=_SAMPLE[20:40]), target, tmp_path / "others")
    assert not others.calibration.exact
    assert any("0 of 20 documents in question and 100 of 100" in one for one in others.warnings)
    # Another system was told nothing.
    other = _Knows()
    other.name = "another"
    assert _audit(
        replace(plan, documents=_SAMPLE[20:40]), other, tmp_path / "other"
    ).calibration.exact


@pytest.mark.parametrize("folders", [True, False])
def test_what_a_host_was_sent_is_known_under_any_model_path_or_spelling(tmp_path, folders) -> None:
    plan = AuditPlan(_SAMPLE[:20], known_out=_SAMPLE[100:200])
    fresh = replace(plan, known_out=_SAMPLE[200:300])
    names = [
        "http://localhost:8011/v1#model",
        "http/127.0.0.1:8011/ask#0f3a",
        "http://other/v1#model",
    ]
    exact = []
    for number, name in enumerate(names):
        target = _Knows()
        target.name = name
        run = tmp_path / str(number) if folders else None
        exact.append(_audit(fresh if number else plan, target, run).calibration.exact)
    assert exact == [True, False, True]


def test_another_task_that_quoted_a_part_is_named_and_a_finished_run_stays(tmp_path) -> None:
    plan, target = AuditPlan(_SAMPLE[:20], known_out=_SAMPLE[100:200]), _Knows()
    run = tmp_path / "audit"
    assert _audit(plan, target, run).calibration.exact
    (run / "result.json").write_text("{}")
    leak = tmp_path / "leak-of-may"
    query = Query(f"Repeat this: {' '.join(_SAMPLE[3].text.split()[5:25])} …")
    with ResponseStore(leak / "answers.jsonl") as journal:
        asked = StoredQuery(target.name, "attack", "a1", query)
        journal.put(query_key(target.name, query), Answer("no"), asked)
    assert _audit(plan, target, run).calibration.exact  # asked before the other
    later = _audit(plan, target, tmp_path / "later")
    told = " ".join(later.warnings)
    assert str(run) in told or later.calibration.exact
    fresh = AuditPlan(_SAMPLE[:5], known_out=_SAMPLE[300:400])
    assert "leak-of-may" in " ".join(_audit(fresh, target, tmp_path / "fresh").warnings)
    (run / "before.json").write_text(json.dumps({"told": 1}))
    with pytest.raises(InputError, match=r"before\.json is damaged"):
        _audit(plan, target, run)


@pytest.mark.slow
def test_a_collection_sent_before_is_not_decided(tmp_path) -> None:
    target = _Knows()
    plan = AuditPlan(_SAMPLE[:40], known_out=_SAMPLE[100:200])
    _audit(plan, target, tmp_path / "first")
    target.learn()
    fresh = replace(plan, known_out=_SAMPLE[200:300])
    result = asyncio.run(run_collection(fresh, target, _Asks(), run=tmp_path / "second"))
    assert result.log10_e > 1.3
    assert not result.decided
    assert re.search(
        "[0-9]+ of [0-9]+ documents in question and [0-3] of [0-9]+ known", result.caution
    )


# Groups.


def _grouped(authors: range, each: int, start: int) -> tuple[Document, ...]:
    texts = iter(_SAMPLE[start:])
    return tuple(replace(next(texts), group=f"author {a}") for a in authors for _ in range(each))


class _Styles:
    """Half of the score's variance is the author's; nothing is held."""

    name = "styles"
    requires = frozenset({Capability.TEXT})

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def probe(self, document: Document) -> Probe:
        yield [Query(document.text)]
        parts = (f"{self.seed} {document.group}", f"{self.seed} {document.text}")
        return Score(sum(random.Random(part).gauss(0, 1) for part in parts))


@pytest.mark.slow
def test_documents_of_few_authors_hold_their_level_by_group(monkeypatch) -> None:
    asked, known = _grouped(range(5), 4, 0), _grouped(range(5, 45), 5, 100)
    plan = AuditPlan(asked, known_out=known)
    accused = {True: 0, False: 0}
    for seed in range(10):
        for by_group in accused:
            parts = (plan.documents, plan.known_out)
            if not by_group:
                parts = tuple(tuple(replace(d, group=None) for d in part) for part in parts)
            given = replace(plan, documents=parts[0], known_out=parts[1])
            audit = _Styles(seed) if by_group else _Renamed(seed, plan)
            result = asyncio.run(run_audit(given, _Knows(), audit))
            accused[by_group] += sum((one.p_value or 1) <= 0.05 for one in result.verdicts)
    assert accused[True] <= 18  # of 200 at .05 in clusters of four
    assert result is not None
    assert accused[False] > accused[True]


class _Renamed(_Styles):
    """The same scores where nobody says who wrote what."""

    def __init__(self, seed: int, plan: AuditPlan) -> None:
        super().__init__(seed)
        self.groups = {one.text: one for one in plan.every_document}

    def probe(self, document: Document) -> Probe:
        return (yield from super().probe(self.groups[document.text]))


def test_groups_are_counted_and_named() -> None:
    plan = AuditPlan(_grouped(range(5), 4, 0), known_out=_grouped(range(5, 15), 20, 100))
    result = asyncio.run(run_audit(plan, _Knows(), _Styles(1)))
    assert result.calibration.groups == 10
    assert "10 groups have one vote each, of 200 documents" in result.calibration.note
    assert any("With 10 known-out documents" in one for one in result.warnings)
    assert min(one.p_value for one in result.verdicts) >= 1 / 11


def test_a_collection_is_bet_on_group_by_group() -> None:
    known = _grouped(range(10, 30), 3, 100)
    plan = AuditPlan(_grouped(range(10), 3, 0), known_out=known, accept_unlike=True)
    result = asyncio.run(run_collection(plan, _Knows(), _Styles(2)))
    assert (result.documents, result.known_out, result.queries) == (10, 20, 90)
    assert len(result.path) == 30


def test_a_journal_that_cannot_be_read_is_named_and_nothing_is_sent(tmp_path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "answers.jsonl.gz").write_bytes(b"\x1f\x8b\x08 damaged")
    target = _Knows()
    with pytest.raises(InputError, match=r"old/answers\.jsonl"):
        _audit(AuditPlan(_SAMPLE[:5], known_out=_SAMPLE[100:140]), target, tmp_path / "new")
    assert target.logs == []


def test_texts_known_by_heart_do_not_decide_for_a_collection() -> None:
    tale = _TALES[0].text.split()
    tales = [" ".join([*tale[at:], *tale[:at], str(at)]) for at in range(5, 65, 9)]
    odd = tuple(Document(f"tale-{at}", text) for at, text in enumerate(tales))
    plan = AuditPlan((*_SAMPLE[:25], *odd), known_out=_SAMPLE[100:160], accept_unlike=True)
    wrong = asyncio.run(run_collection(plan, _Knows(odd), _Asks()))
    assert wrong.log10_e > 0.1  # seven of 32 known by heart pull it up, in any order
    kept = replace(plan, accept_unlike=False)
    found = asyncio.run(run_collection(kept, _Knows(odd), _Asks()))
    assert not found.decided
    assert found.documents <= 25
    assert "documents of the collection unlike the known-outside ones" in found.caution
