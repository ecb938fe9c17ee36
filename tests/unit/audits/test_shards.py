"""Shards and their merge give what one process gives; what is missing or wrong is named."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.asking.governor import Governor
from ragwitness.asking.scores import finished_units
from ragwitness.asking.shards import Shard, spent_before
from ragwitness.audits import order
from ragwitness.audits.membership import run_audit
from ragwitness.audits.order import Order, audit_at, read_manifest, write_manifest
from ragwitness.audits.plan import AuditPlan
from ragwitness.audits.shards import (
    adopt_target,
    governor_of_shard,
    merge_run,
    work_shard,
)
from ragwitness.errors import InputError, TargetResponseError
from ragwitness.membership.registry import configure
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.models import registry
from ragwitness.rag.build import build_system
from ragwitness.rag.config import RagConfig
from ragwitness.rag.target import LabTarget
from ragwitness.results.membership import AuditResult
from ragwitness.types import Answer, Document, Query
from tests.support.copier import Copier

_WORDS = "bade kiro mudo nabe rute doka mibu kera robi dumo bako rina".split()


def _documents(n: int, prefix: str) -> tuple[Document, ...]:
    def text(i: int) -> str:
        return " ".join(f"{prefix}{_WORDS[(i * 7 + j * j) % 12]}{i + j}" for j in range(24))

    return tuple(Document(f"{prefix}{i}", text(i)) for i in range(n))


PLAN = AuditPlan(
    documents=(*_documents(6, "in"), *_documents(5, "new")),
    known_out=_documents(12, "out"),
    auxiliary=_documents(48, "aux"),
    shadow=ShadowConfig(audited=10),
)


@pytest.fixture(autouse=True)
def _copier_reads(monkeypatch) -> None:
    for module in (registry, order):
        monkeypatch.setattr(module, "load_language_model", lambda spec: Copier())


class Counting(LabTarget):
    """Answers like a system that holds the first documents, and counts."""

    def __init__(self) -> None:
        super().__init__(build_system(PLAN.documents[:6], RagConfig(), generator=Copier()))
        self.asked: list[str] = []
        self.fails_on = ""

    async def ask(self, query: Query) -> Answer:
        self.asked.append(query.prompt)
        if self.fails_on and self.fails_on in query.prompt:
            raise TargetResponseError("refused")
        if "appear in the context?" in query.prompt:  # a copier says neither yes nor no
            held = any(one.text[:40] in query.prompt for one in PLAN.documents[:6])
            return Answer("Yes" if held else "No")
        return await super().ask(query)


def _order(method: str, **caps: int) -> Order:
    return Order("lab:unused", PLAN, method, configure(method), budget=Budget(**caps))


def _local(work: Order, run: Path, target: Counting) -> AuditResult:
    async def audit() -> AuditResult:
        with Governor.of_run(run, work.budget) as governor:
            method = (work.method, work.config, work.proxy)
            made, identity = await audit_at(target, method, governor, run, PLAN)
            return await run_audit(
                PLAN, target, made, run=run, governor=governor, identity=identity
            )

    return asyncio.run(audit())


def _work(work: Order, run: Path, target: Counting, text: str) -> int:
    shard = Shard.parse(text)

    async def ask() -> int:
        with governor_of_shard(work, run, shard) as governor:
            adopt_target(run, shard.folder(run))
            method = (work.method, work.config, work.proxy)
            made, identity = await audit_at(target, method, governor, shard.folder(run), PLAN)
            return len(await work_shard(work, run, shard, target, made, identity, governor))

    return asyncio.run(ask())


def _said(result: AuditResult) -> AuditResult:
    """A result without what differs from one start to the next by its nature."""
    spent = replace(result.spent, queries=0, prompt_tokens=0, completion_tokens=0)
    return replace(result, started="", seconds=0.0, spent=spent)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["s-rag:paper", "s-rag", "rag-mia"])
def test_shards_in_any_order_give_the_bytes_and_verdicts_of_one_process(tmp_path, method) -> None:
    work, one, many = _order(method), tmp_path / "one", tmp_path / "many"
    whole = _local(work, one, Counting())
    write_manifest(many, work)
    target = Counting()
    counts = [_work(work, many, target, shard) for shard in ("3/4", "1/4", "4/4", "2/4")]
    result = merge_run(read_manifest(many), many)
    assert (many / "scores.jsonl").read_bytes() == (one / "scores.jsonl").read_bytes()
    assert _said(result) == _said(whole)
    assert len(result.verdicts) == 11
    assert sum(counts) == finished_units(many) == work.stages().count
    before = len(target.asked)
    assert result.spent.queries == spent_before(many).queries == before + 1  # and one to score
    # All of it is in the folder now: one process goes on from there and asks nothing.
    again = _local(work, many, target)
    assert len(target.asked) == before
    assert again.verdicts == whole.verdicts
    lines = (many / "answers.jsonl").read_text().splitlines()
    assert len(lines) == len({json.loads(line)["key"] for line in lines})


def test_other_documents_prepared_in_the_folder_of_shards_make_nothing_exact(tmp_path) -> None:
    class Says(Counting):
        left = 1000

        async def ask(self, query: Query) -> Answer:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return Answer("No.")

    work = _order("rag-mia")
    write_manifest(tmp_path, work)
    stops = Says()
    stops.left = 6  # an interruption changes nothing
    with pytest.raises(KeyboardInterrupt):
        _work(work, tmp_path, stops, "1/2")
    for shard in ("1/2", "2/2"):
        _work(work, tmp_path, Says(), shard)
    first = merge_run(read_manifest(tmp_path), tmp_path)
    assert not any("in one random order" in one for one in first.warnings)
    other = replace(work, plan=replace(PLAN, documents=_documents(6, "late")))
    write_manifest(tmp_path, other)
    for shard in ("1/2", "2/2"):
        _work(other, tmp_path, Says(), shard)
    for _ in range(2):
        result = merge_run(read_manifest(tmp_path), tmp_path)
        assert not result.calibration.exact
        assert any("in one random order" in one for one in result.warnings)


def test_other_numbers_of_shards_take_over_what_is_there(tmp_path) -> None:
    work, target = _order("rag-mia"), Counting()
    write_manifest(tmp_path, work)
    _work(work, tmp_path, target, "1/3")
    _work(work, tmp_path, target, "1/1")
    prompts = [prompt for prompt in target.asked if "context" in prompt]
    assert len(prompts) == len(set(prompts)) == work.stages().count
    assert len(merge_run(read_manifest(tmp_path), tmp_path).verdicts) == 11


def test_missing_shards_are_named_with_the_next_command(tmp_path) -> None:
    work, target = _order("rag-mia"), Counting()
    write_manifest(tmp_path, work)
    with pytest.raises(InputError, match="No shard has begun"):
        merge_run(read_manifest(tmp_path), tmp_path)
    for shard in ("1/4", "3/4"):
        _work(work, tmp_path, target, shard)
    with pytest.raises(
        InputError, match=r"11 of 23 units .* shards 2/4 \(6\), 4/4 \(5\)"
    ) as caught:
        merge_run(read_manifest(tmp_path), tmp_path)
    assert caught.value.hint.endswith(f"ragwitness run work {tmp_path} --shard 2/4")
    assert not (tmp_path / "scores.jsonl").exists()


def test_caps_hold_over_all_shards_and_raising_them_goes_on(tmp_path) -> None:
    work, target = _order("rag-mia", queries=14), Counting()
    write_manifest(tmp_path, work)
    for number in (1, 2, 3):
        _work(work, tmp_path, target, f"{number}/3")
    assert spent_before(tmp_path).queries == len(target.asked) + 1 == 14
    capped = merge_run(read_manifest(tmp_path), tmp_path)
    assert (capped.spent.queries, capped.spent.stopped_by) == (14, "query")
    assert capped.spent.unasked > 0
    more = replace(work, budget=Budget(queries=60))
    write_manifest(tmp_path, more)
    for number in (1, 2, 3):
        _work(more, tmp_path, target, f"{number}/3")
    whole = merge_run(read_manifest(tmp_path), tmp_path)
    assert whole.spent.stopped_by is None
    prompts = [prompt for prompt in target.asked if "context" in prompt]
    assert len(prompts) == len(set(prompts)) == work.stages().count


def test_what_the_target_refuses_is_unscorable_and_is_asked_again(tmp_path) -> None:
    work, target = _order("rag-mia"), Counting()
    write_manifest(tmp_path, work)
    target.fails_on = PLAN.documents[0].text
    _work(work, tmp_path, target, "1/1")
    lost = merge_run(read_manifest(tmp_path), tmp_path).verdicts[0]
    assert (lost.score, lost.reason) == (None, "refused")
    target.fails_on, before = "", len(target.asked)
    _work(work, tmp_path, target, "1/1")
    assert len(target.asked) == before + 1
    found = merge_run(read_manifest(tmp_path), tmp_path).verdicts[0]
    assert found.reason != "refused"


def test_shards_that_asked_another_system_are_named(tmp_path) -> None:
    work = _order("rag-mia")
    write_manifest(tmp_path, work)
    for number in (1, 2):
        _work(work, tmp_path, Counting(), f"{number}/2")
    path = Shard(2, 2).folder(tmp_path) / "target.json"
    path.write_text(path.read_text().replace('"lab:', '"lab:other'))
    with pytest.raises(InputError, match="Not all asked the same system") as caught:
        merge_run(read_manifest(tmp_path), tmp_path)
    assert "2-of-2" in caught.value.message


def test_nothing_is_merged_while_a_shard_is_at_work(tmp_path) -> None:
    work = _order("rag-mia")
    write_manifest(tmp_path, work)
    _work(work, tmp_path, Counting(), "1/1")
    with (
        governor_of_shard(work, tmp_path, Shard(1, 1)),
        pytest.raises(InputError, match="Another process is at work"),
    ):
        merge_run(read_manifest(tmp_path), tmp_path)
