"""Every option alone changes what a task does, or it is refused: none is ignored in silence."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from ragwitness.canary.task import DrawTask, ProbeTask
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.leakage.task import LeakTask
from ragwitness.membership.task import AuditTask
from ragwitness.runner.task_options import refuse_types
from ragwitness.text.sample import load_sample

_TEXTS = [document.text for document in load_sample()]

# A value for each option that is not its default, and that can be used.
_GIVEN: dict[str, object] = {
    "text_field": "body",
    "encoding": "latin-1",
    "max_queries": 7,
    "max_tokens": 7_000,
    "max_cost": 2.0,
    "price_in": 1.0,
    "price_out": 1.0,
    "timeout": 9.0,
    "retries": 1,
    "key_env": "A_KEY",
    "header": ["x-key=A_KEY"],
    "engine": "ray",
    "workers": 1,
    "worker_gpus": 0.5,
    "ray_address": "auto",
    "seal": Path("auditor.key"),
    "runs_log": Path("log"),
    "timestamp": "http://127.0.0.1:9",
    "known_out": _TEXTS[60:90],
    "known_in": _TEXTS[90:95],
    "public": _TEXTS[99:101],
    "auxiliary": _TEXTS[95:99],
    "options": {"min_words": 3},
    "alpha": 0.01,
    "accept_unlike": True,
    "yes": True,
    "run": Path("kept"),
    "reference_model": ["hf:another"],
    "group_field": "author",
    "paragraphs": True,
    "retrieval": "minilm",
    "generator": "repeat",
    "k": 9,
    "proxy": "reader:small",
    "automl": True,
    "concurrency": 2,
    "seed": 5,
}

# How documents are read and where answers are kept is seen in no order.
_ELSEWHERE = {"text_field", "encoding", "group_field", "paragraphs", "yes", "run", "workers"}
_ELSEWHERE |= {"seal", "engine"}


def _seen(task: AuditTask) -> str:
    """Return everything that a task decides, as text."""
    order = task.order()
    plan = [(one.name, getattr(order.plan, one.name)) for one in fields(order.plan)]
    return repr((order, plan, task.at_once, task.cluster, task.transport()))


@pytest.mark.parametrize("method", ["rag-mia", "s-rag:paper"])
@pytest.mark.parametrize("name", [name for name in _GIVEN if name not in _ELSEWHERE])
def test_an_option_alone_changes_the_order_or_is_refused(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "a secret")
    documents = [Document(f"d{n}", text) for n, text in enumerate(_TEXTS[:5])]
    usual = AuditTask("lab:x", documents, known_out=_TEXTS[20:50], method=method)
    with_prices = {"max_cost": {"price_in": 1.0, "price_out": 1.0}}
    more = with_prices.get(name, {}) | {"price_in": {"price_out": 2.0}}.get(name, {})
    more |= {"price_out": {"price_in": 2.0}}.get(name, {})
    if method == "s-rag:paper" and name == "options":
        more["options"] = {"top_logprobs": 7}
    before = _seen(usual)
    try:
        after = _seen(replace(usual, **{name: _GIVEN[name]} | more))
    except InputError as error:
        after = error.message
        refused = f"--{name.replace('_', '-')} is for" in error.message
    else:
        refused = False
    assert refused or (after != before and after.startswith("("))


def test_every_option_of_an_audit_is_tried_here() -> None:
    declared = {one.name for one in fields(AuditTask)}
    assert declared - {"target", "documents", "method"} == set(_GIVEN)


@pytest.mark.parametrize("given", [{"prompts": 3}, {"topic": "x"}, {"seal": "key"}, {"seed": 2}])
def test_what_is_for_asking_is_refused_of_stored_transcripts(given: dict[str, Any]) -> None:
    stored = LeakTask(corpus=_TEXTS[:3], transcripts=Path("stored.jsonl"))
    if given == {"seed": 2}:  # it draws the bootstrap as well
        assert replace(stored, **given).order().limits.seed == 2
        return
    with pytest.raises(InputError, match=r"is for what is asked|cannot be sealed"):
        replace(stored, **given).order()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (AuditTask("x", [], alpha="0.05"), "alpha cannot be '0.05'"),  # type: ignore[arg-type]
        (AuditTask("x", [], seed=1.5), "seed cannot be 1.5"),  # type: ignore[arg-type]
        (LeakTask("x", [], prompts=True), "prompts cannot be True"),
        (DrawTask("x", "y", alpha=0.05), "alpha cannot be 0.05"),  # type: ignore[arg-type]
        (ProbeTask("x", "y", release=1), "release cannot be 1"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type_is_refused(task: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        refuse_types(task)


def test_a_whole_number_is_a_number() -> None:
    refuse_types(AuditTask("x", [], timeout=9, max_cost=2))
