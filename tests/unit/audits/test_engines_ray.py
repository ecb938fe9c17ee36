"""What the actors of a cluster do, without a cluster: calls go straight to the objects."""

import asyncio
import inspect
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.asking.shards import Shard, spent_before
from ragwitness.audits import order
from ragwitness.audits.engines.ray import Caller, DistantGovernor, GovernorHost, RunPlace, Scorer
from ragwitness.audits.order import Order, Reach, audit_at, read_manifest, write_manifest
from ragwitness.audits.plan import AuditPlan
from ragwitness.audits.shards import merge_run
from ragwitness.errors import CapReachedError, MissingExtraError
from ragwitness.membership.registry import configure
from ragwitness.models import registry
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import RetryPolicy
from ragwitness.types import Answer, Document, Query
from tests.support.copier import Copier
from tests.support.rough import rough

_TEXTS = [" ".join(f"word{i}x{n}" for n in range(14)) for i in range(14)]
PLAN = AuditPlan(
    documents=tuple(Document(f"d{i}", one) for i, one in enumerate(_TEXTS[:6])),
    known_out=tuple(Document(f"k{i}", one) for i, one in enumerate(_TEXTS[6:])),
)


class Direct:
    """A remote object in this process."""

    def __init__(self, there: Any) -> None:
        self.there = there

    async def call(self, method: str, *arguments: object) -> Any:
        found = getattr(self.there, method)(*arguments)
        return await found if inspect.isawaitable(found) else found

    def call_now(self, method: str, *arguments: object) -> Any:
        step = getattr(self.there, method)(*arguments)
        with pytest.raises(StopIteration) as stop:  # it never waits
            step.send(None)
        return stop.value.value


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path) -> None:
    for module in (registry, order):
        monkeypatch.setattr(module, "load_language_model", lambda spec: Copier())
    quick = partial(RetryPolicy, first=0.005, longest=0.02)
    monkeypatch.setattr(order, "RetryPolicy", quick)
    monkeypatch.chdir(tmp_path)


def _place(run: Path, url: str, **caps: int) -> RunPlace:
    reach = Reach(timeout=1, retries=3)
    work = Order(f"{url}#m", PLAN, "rag-mia", configure("rag-mia"), "x", reach, Budget(**caps))
    write_manifest(run, work)
    return RunPlace(run, str(run.parent))


def _everything(place: RunPlace, workers: int) -> None:
    """What ray.py does, one actor after the other."""
    gate = GovernorHost(place)
    remote = Direct(gate)
    asyncio.run(remote.call("open"))
    work = place.order()

    async def measured() -> tuple[int, str]:
        governor = DistantGovernor(remote)
        target = await open_target(work.target, work.reach.transport(1, governor.setback))
        try:
            method = (work.method, work.config, work.proxy)
            audit, identity = await audit_at(target, method, governor, place.run, work.plan)
        finally:
            await target.close()
        return audit.config.top_logprobs, identity

    alternatives, identity = asyncio.run(measured())
    try:
        for number in range(1, workers + 1):
            shard, scorer = Shard(workers, number), Scorer(place, alternatives)
            scorer.shadow(shard)
            Caller(place, identity, remote, Direct(scorer)).work(shard)
    finally:
        asyncio.run(remote.call("close"))


@pytest.mark.slow
def test_actors_finish_a_run_whose_ledger_is_the_gates(tmp_path) -> None:
    with rough() as server:
        place = _place(tmp_path / "run", server.url)
        _everything(place, 3)
        result = merge_run(read_manifest(place.run), place.run)
        assert len(result.verdicts) == 6
        assert result.spent.queries == len(server.prompts)
        assert not list(place.run.glob("shards/*/spent.jsonl"))
        asked = len(server.prompts)
        _everything(place, 2)  # another number of actors: nothing is left to do
        assert len(server.prompts) == asked


@pytest.mark.slow
def test_the_gate_counts_lost_attempts_and_holds_the_caps(tmp_path) -> None:
    with rough(share=0.4, seed=5) as server:
        place = _place(tmp_path / "run", server.url, queries=16)
        _everything(place, 2)
        billed = [f for f in server.fates if f not in ("429", "429 later", "503")]
        assert len(billed) <= spent_before(place.run).queries <= 16
        result = merge_run(read_manifest(place.run), place.run)
    assert result.spent.stopped_by == "query"
    # Whom the cap meets is chance, known documents or those in question: all say why.
    assert all(verdict.reason for verdict in result.verdicts if verdict.score is None)


def test_a_refused_query_is_an_error_where_it_was_asked(tmp_path) -> None:
    place = _place(tmp_path / "run", "http://127.0.0.1:9/v1", queries=1)
    gate = GovernorHost(place)

    async def ask() -> None:
        await gate.open()
        governor = DistantGovernor(Direct(gate))

        async def answer(query: Query) -> Answer:
            return Answer("", prompt_tokens=3, completion_tokens=2)

        await governor.spend(Query("one"), answer)
        with pytest.raises(CapReachedError, match="query cap reached"):
            await governor.spend(Query("two"), answer)
        await gate.close()

    asyncio.run(ask())
    row = json.loads((place.run / "spent.jsonl").read_text().splitlines()[-1])
    assert (row["prompt"], row["completion"]) == (3, 2)


def test_errors_travel_between_processes() -> None:
    import pickle

    error = MissingExtraError("The engine ray", "ray")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), again.message, again.hint) == (type(error), error.message, error.hint)
    cap = pickle.loads(pickle.dumps(CapReachedError("query cap reached", "more")))  # noqa: S301
    assert (cap.message, cap.hint) == ("query cap reached", "more")
    assert replace(PLAN, in_flight=2) == pickle.loads(  # noqa: S301
        pickle.dumps(replace(PLAN, in_flight=2))
    )
