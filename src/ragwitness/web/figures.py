"""Geometry of the pages' own figures; templates only draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ragwitness.asking.budget import Use
from ragwitness.results.geometry import Course, Curve, Square, course, roc_square
from ragwitness.results.membership import AuditResult
from ragwitness.results.spending import Spending
from ragwitness.results.wording import count


def tokens_figure(spent: Sequence[Use], known: Spending | None) -> Course | None:
    """Return the tokens spent so far over the queries; None where nothing was."""
    # Cumulated over queries in the order in which they were paid for; resumed runs go on where they
    # stopped.
    sums = list(accumulate(use.tokens for use in spent))
    if not sums or not sums[-1]:
        return None
    cap = known.max_tokens if known else None
    said = f"{count(sums[-1])} tokens after {count(len(sums))} queries"
    limit = f"; the cap is {count(cap)}." if cap is not None else "."
    labels = ("queries sent", "tokens")
    return course("tokens", "Tokens spent", said + limit, [0, *sums], labels, (cap, "cap"))


def money_figure(spent: Sequence[Use], known: Spending | None) -> Course | None:
    """Return the money spent so far over the queries; None without prices."""
    if known is None or known.price_in is None or known.price_out is None:
        return None
    # Prices are for a million tokens, as providers quote them; without prices there is no figure of
    # money.
    prices = known.price_in / 1e6, known.price_out / 1e6
    sums = list(accumulate(use.prompt * prices[0] + use.completion * prices[1] for use in spent))
    if not sums or not sums[-1]:
        return None
    said = f"{sums[-1]:.4g} after {count(len(sums))} queries, at the prices given"
    limit = f"; the cap is {known.max_cost:g}." if known.max_cost is not None else "."
    labels = ("queries sent", "cost")
    return course("cost", "Cost", said + limit, [0, *sums], labels, (known.max_cost, "cap"))


def both_rocs(results: Sequence[AuditResult], names: Sequence[str]) -> Square | None:
    """Return the ROCs of two audits in one plot; None where the truth of neither is known."""
    # Two audits in one square: an audit without the truth has no ROC and is left out.
    curves, said = [], []
    for result, name, style in zip(results, names, ("in", "out"), strict=True):
        found = result.evaluation
        if found is None or len(found.roc) < 2:
            continue
        one = roc_square(found.roc, found.auc.value, name, "roc")
        curves.append(Curve(f"{name} (n = {count(found.auc.n)})", one.curves[0].path, style))
        said.append(f"{name}: {found.auc.value:.3f}")
    if not curves:
        return None
    text = "True-positive rate against false-positive rate. Area under the curve: "
    return Square("rocs", "ROC curves", f"{text}{'; '.join(said)}.", tuple(curves))
