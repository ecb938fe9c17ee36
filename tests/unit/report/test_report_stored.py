"""Evaluations read back from their JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.results.evaluation import RESULT_TYPE, Battery, Cost, Measured
from ragwitness.stats.rates import Rate

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


def battery() -> Battery:
    return Battery(
        audits=(measured("s-rag"), measured("mba")),
        controls={"blind words": RATE, "near-duplicates: mba": NONE},
        skipped={"s2mia": "too few"},
        sizes={"members": 20},
        likeness=math.nan,
        settings={"seed": "0"},
        seconds=12.5,
    )


def test_an_evaluation_survives_its_json() -> None:
    given = battery()
    stored = json.loads(json.dumps(RESULT_TYPE.stored(given), allow_nan=False))
    assert repr(RESULT_TYPE.opened(stored)) == repr(given)  # NaN is not equal to itself
    earlier = stored | {"paired": [], "benign": None}
    assert repr(RESULT_TYPE.opened(earlier)) == repr(given)


@pytest.mark.parametrize(
    "change",
    [
        {"audits": []},
        {"audits": {"mba": {}}},
        {"controls": {"blind": {"auc": 1}}},
        {"sizes": 3},
        {"seconds": "long"},
    ],
)
def test_what_is_malformed_is_named(change: dict[str, Any]) -> None:
    stored = RESULT_TYPE.stored(battery()) | change
    with pytest.raises(InputError, match="The stored evaluation is malformed at"):
        RESULT_TYPE.opened(stored)
