"""An evaluation from Python."""

from __future__ import annotations

import pytest

import ragwitness as rw
from ragwitness.core.errors import InputError
from ragwitness.membership.evaluation_task import EvaluateTask
from ragwitness.text.sample import load_sample


@pytest.mark.slow
def test_every_audit_that_is_named_has_its_rate() -> None:
    found = rw.evaluate(
        list(load_sample())[:60], audits="rag-mia", limit=8, calibration=20, control=False,
    )  # fmt: skip
    assert [one.audit for one in found.audits] == ["rag-mia"]
    assert found.sizes["members"] == found.sizes["non-members"] == 4


def test_options_say_the_plan() -> None:
    task = EvaluateTask(["x"], audits=["mba", "rag-mia"], limit=10, k=3)
    plan, documents = task.order()
    assert [one.text for one in documents] == ["x"]
    assert plan.audits == ("mba", "rag-mia")
    assert (plan.members, plan.non_members, plan.rag.k) == (5, 5, 3)
    plan, _ = EvaluateTask(["x"], options=["mba.masks=9"]).order()
    assert plan.options == {"mba": {"masks": "9"}}
    with pytest.raises(InputError, match="limit cannot be"):
        EvaluateTask(["x"], limit="10").order()  # type: ignore[arg-type]
