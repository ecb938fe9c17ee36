"""Evaluations read back from their JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.results.evaluation import RESULT_TYPE, Battery, Cost, Measured
from ragwitness.rag.defenses.cost import AnswerCost, DefenseCost, RetrievalCost
from ragwitness.stats.evaluation import Rate

RATE = Rate(0.75, 0.5, 0.9, 40)
NONE = Rate(math.nan, math.nan, math.nan, 0)


def measured(name: str) -> Measured:
    return Measured(
        audit=name,
        auc=RATE,
        accuracy=RATE,
        precision=None,
        recall=RATE,
        f1=RATE,
        threshold=math.nan,
        decided_by="best balanced accuracy",
        tpr_at_1_fpr=RATE,
        tpr_at_01_fpr=0.25,
        false_positives={"0.05": NONE, "0.01": RATE},
        true_positives={"0.05": RATE, "0.01": RATE},
        unscorable=RATE,
        recall_at_k=None,
        auc_retrieved=RATE,
        outcomes={"refused": 0.5},
        cost=Cost(3.0, None, 0.25),
        scores={"a": 1.0, "b": -2.5},
        roc=((0.0, 0.0), (0.5, 1.0), (1.0, 1.0)),
    )


def battery(answers: AnswerCost | None) -> Battery:
    retrieval = RetrievalCost(RATE, RATE, RATE, RATE)
    return Battery(
        audits=(measured("s-rag"), measured("mba")),
        controls={"blind words": RATE, "near-duplicates: mba": NONE},
        skipped={"s2mia": "too few"},
        paired={("s-rag", "mba"): Rate(-0.1, -0.2, 0.05, 39)},
        sizes={"members": 20},
        likeness=math.nan,
        settings={"seed": "0"},
        seconds=12.5,
        benign=DefenseCost("rerank", 4, retrieval, answers, 1, 2),
    )


@pytest.mark.parametrize(
    "answers",
    [
        None,
        AnswerCost(RATE, RATE, RATE, RATE, RATE, RATE),
        AnswerCost(RATE, None, None, None, RATE, RATE),
    ],
)
def test_an_evaluation_survives_its_json(answers: AnswerCost | None) -> None:
    given = battery(answers)
    stored = json.loads(json.dumps(RESULT_TYPE.stored(given), allow_nan=False))
    back = RESULT_TYPE.opened(stored)
    assert repr(back) == repr(given)  # NaN is not equal to itself
    plain = RESULT_TYPE.opened(stored | {"benign": None})
    assert repr(plain) == repr(replace(given, benign=None))


@pytest.mark.parametrize(
    "change",
    [
        {"audits": []},
        {"audits": {"mba": {}}},
        {"controls": {"blind": {"auc": 1}}},
        {"sizes": 3},
        {"seconds": "long"},
        {"paired": [{"first": "a"}]},
        {"benign": {"recall": None}},
    ],
)
def test_what_is_malformed_is_named(change: dict[str, Any]) -> None:
    stored = RESULT_TYPE.stored(battery(None)) | change
    with pytest.raises(InputError, match="The stored evaluation is malformed at"):
        RESULT_TYPE.opened(stored)
