"""The forecast in a terminal: 80 columns, nothing cut off, no figure without what it rests on."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from ragwitness.membership.method_registry import AUDITS
from ragwitness.membership.results.forecast import RESULT_TYPE, Expected, Outlook, Spent, Workload
from ragwitness.report.terminal import terminal
from ragwitness.stats.power import AuditPower

_LABELS = ("AUC .7", "AUC .8", "AUC .9", "AUC .95", "AUC .99")


def _asked(n: int, lost: dict[str, int] | None = None) -> Workload:
    dear = Spent(30.0, 12_345.6, 7_777.0)
    return Workload(n, min(n, 20), lost or {}, dear, replace(dear, queries=60.0))


def _outlook(
    n: int = 200, known: int = 100, *, labels: tuple[str, ...] = _LABELS, **options: object
) -> Outlook:
    power = AuditPower(0.123, 0.05, 0.4, 1.5, 0.02, 2000, 0.9)
    methods = tuple(
        Expected(
            name,
            _asked(n, {"words " * 30: min(i, n)}),
            _asked(known),
            name == "s-rag",
            dict.fromkeys(labels, power),
        )
        for i, name in enumerate(AUDITS)
    )
    plain: dict[str, object] = {
        "alpha": 0.05, "calibration": "known-out", "warning": None,
        "tokens_by": "reader@abcdef", "in_flight": 4,
    }  # fmt: skip
    return Outlook(methods, **{**plain, **options})  # type: ignore[arg-type]


def _printed(outlook: Outlook) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(terminal(RESULT_TYPE.report(outlook)))
    return stream.getvalue()


@pytest.mark.parametrize("n", [1, 200, 12_345_678])
@pytest.mark.parametrize("known", [0, 5, 100, 99_999])
@pytest.mark.parametrize("labels", [(), _LABELS])
@pytest.mark.parametrize("latency", [None, 0.4, 99.0])
@pytest.mark.parametrize("price_in", [None, 1.25])
def test_80_columns_without_cut_off(n: int, known: int, labels, latency, price_in) -> None:
    prices = {"price_in": price_in, "price_out": price_in and 10.0, "warning": "w " * 90}
    asked = _outlook(n, known, labels=labels, seconds_per_short_answer=latency, **prices)
    text = _printed(asked)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    assert "nan" not in text.split()
    whole = Counter(re.findall(r"[\d,]+\d", text))
    queries = f"{round(30 * (n + known)):,}"
    for number in (queries, "12,346", "7,777"):
        assert whole[number] >= len(AUDITS), number
    stored = json.loads(json.dumps(RESULT_TYPE.stored(asked), allow_nan=False))
    assert RESULT_TYPE.opened(stored) == asked


def test_methods_that_can_show_the_same_share_a_row() -> None:
    outlook = _outlook()
    alike = replace(
        outlook, methods=tuple(replace(m, documents=_asked(200)) for m in outlook.methods)
    )
    table = _printed(alike).split("members found by")[1]
    assert table.count("12.3 %") == len(_LABELS)
    assert "s-rag, mba" in table


def test_what_so_many_known_documents_can_decide() -> None:
    (one, *_) = _outlook().methods

    def said(n: int, known: int) -> str:
        method = replace(one, documents=_asked(n), known_out=_asked(known))
        return " ".join(_printed(replace(_outlook(), methods=(method,))).split())

    assert "a single document can be called in at alpha 0.05" in said(1, 19)
    assert "no document can be called in at alpha 0.05 (smallest p-value 0.0526" in said(1, 18)
    assert "only 40 or more together." in said(200, 99)
    assert "some 100 are expected inside" in said(200, 19)
    assert "takes 3,999 known-out documents" in said(200, 99)


def test_a_power_nobody_could_measure_is_null() -> None:
    outlook = _outlook(labels=("AUC .9",))
    blank = AuditPower(math.nan, math.nan, math.nan, 0.0, 0.0, 2000, 0.9)
    methods = (replace(outlook.methods[0], power={"AUC .9": blank}),)
    data = RESULT_TYPE.stored(replace(outlook, methods=methods))
    assert data["methods"]["s-rag"]["power"]["AUC .9"]["found"] is None
    assert "nan" not in _printed(replace(outlook, methods=methods)).lower().split()
    again = RESULT_TYPE.opened(json.loads(json.dumps(data, allow_nan=False)))
    assert math.isnan(again.methods[0].power["AUC .9"].found)
