"""Whatever an endpoint does, every document ends scored or with its reason, within the caps."""

import asyncio

import pytest

from ragwitness.runner.budget import Budget
from ragwitness.runner.response_store import ResponseStore
from tests.support.asking import ask, documents, scores
from tests.support.rough import FAULTS, TURNED_AWAY, rough

_BUDGET = Budget(queries=90, tokens=20_000, cost=0.02, price_in=1.0, price_out=5.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_document_is_scored_or_counted_within_the_caps(seed: int, tmp_path) -> None:
    with rough(share=0.4, seed=seed) as server:
        outcomes, limiter = asyncio.run(
            ask(server.url, tmp_path, 40, _BUDGET, read_timeout=1.0, connect_timeout=5.0)
        )
    assert [o.document for o in outcomes] == documents(40)
    assert all((o.score.value is None) == bool(o.score.reason) for o in outcomes)
    assert any(o.score.value is not None for o in outcomes)
    assert all(o.score.reason == "query cap reached" for o in outcomes if o.capped)
    worked_on = sum(fate not in TURNED_AWAY for fate in server.fates)
    assert worked_on <= limiter.spent.queries <= 90
    assert _BUDGET.passed(limiter.spent) is None
    assert set(server.fates) == {"fine", *FAULTS}
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        # Every answer that came whole is kept.
        assert len(responses) == server.fates.count("fine")


def test_a_capped_run_goes_on_under_a_higher_cap_and_ends_as_if_there_were_none(tmp_path) -> None:
    def run(folder: str, cap: int | None):
        return asyncio.run(ask(server.url, tmp_path / folder, 20, Budget(queries=cap)))

    with rough() as server:
        whole, _ = run("whole", None)
        once = len(server.prompts)
        assert once == 60
        first, limiter = run("capped", 25)
        assert limiter.spent.queries == len(server.prompts) - once == 25
        capped = [o for o in first if o.capped]
        assert capped
        assert {o.score.reason for o in capped} == {"query cap reached"}
        assert limiter.cap == "query"
        again, limiter = run("capped", 25)  # kept answers cost nothing
        assert len(server.prompts) - once == 25
        assert scores(again) == scores(first)
        last, limiter = run("capped", 60)
        assert limiter.cap is None
        assert scores(last) == scores(whole)
    assert sorted(server.prompts[:once]) == sorted(server.prompts[once:])


def test_a_target_that_is_always_busy_costs_nothing(tmp_path) -> None:
    with rough(share=1.0) as server:
        server.fate_of = lambda prompt: "429"  # type: ignore[method-assign]
        outcomes, limiter = asyncio.run(ask(server.url, tmp_path, 5, Budget(queries=3)))
    assert limiter.spent.queries == 0
    assert limiter.limit < 4
    assert all("429" in o.score.reason for o in outcomes)
