"""Results of ``ragwitness collusion bound`` and ``calibrate``: privacy of accounts that pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from ragwitness.core.types import Shown
from ragwitness.privacy.bounds import Bounds, Certificate, NoisePlan
from ragwitness.privacy.gaussian import (
    advantage_limit,
    advantage_of,
    auc_limit,
    auc_of,
)
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Cell,
    Name,
    ReportDocument,
    plain_table,
    simple_report,
    table_rows,
)
from ragwitness.report.result_type import ResultType, Row, plain, restored

_WORDS = "privacy of accounts that pool"


# ``collusion bound``: joint privacy of pooled accounts, by several accounts of the same noise.

_ACCOUNTING = {
    "paper": "Theorem 3.4 (the paper)",
    "renyi": "Renyi, (3.6)",
    "moments": "moments accountant",
    "exact": "exact",
}


@dataclass(frozen=True, slots=True)
class JointBounds(Shown):
    """Joint spending of pooled accounts.

    Attributes:
        bounds: Each way of accounting for the same noise.
        verdict: The audit's verdict (5.2); None where none was asked for.
    """

    bounds: Bounds
    verdict: Certificate | None = None

    def dump(self) -> Row:
        """Return everything as JSON, the bounds at the top."""
        bounds = self.bounds
        limits = {
            name: {
                "advantage": advantage_limit(epsilon, bounds.delta),
                "auc": auc_limit(epsilon, bounds.delta),
            }
            for name in _ACCOUNTING
            if (epsilon := getattr(bounds, name)) is not None
        }
        rest = {name: value for name, value in asdict(self).items() if name != "bounds"}
        # The most that each bound allows an attacker, and the best attack on this noise.
        attack = {"advantage": advantage_of(bounds.mu), "auc": auc_of(bounds.mu)}
        return {
            **asdict(bounds),
            "label_kept": bounds.kept,
            "attack": attack,
            "limits": limits,
            **rest,
        }

    def report(self) -> ReportDocument:
        """Return each account of the same noise."""
        bounds, terms = self.bounds, self.bounds.service
        title = (
            f"k = {fmt.count(terms.accounts)} accounts of {fmt.count(terms.queries)} queries pool"
            f" their answers; noise sigma {bounds.sigma:.6g}, delta {bounds.delta:.3g}"
        )
        # One row for each way of accounting, all of the same noise at the same joint delta.
        rows: list[tuple[Cell, ...]] = []
        for name, words in _ACCOUNTING.items():
            epsilon = getattr(bounds, name)
            if epsilon is None:
                rows.append((Name(words), None, None, None, None))
                continue
            rows.append(
                (
                    Name(words),
                    fmt.three(epsilon),
                    f"{advantage_limit(epsilon, bounds.delta):.4f}",
                    f"{auc_limit(epsilon, bounds.delta):.4f}",
                    f"{epsilon / bounds.exact:.3g}x" if bounds.exact else None,
                )
            )
        # The last row is no bound: repeating one query k q times is the best there is against
        # Gaussian noise.
        reached = f"{advantage_of(bounds.mu):.4f}", f"{auc_of(bounds.mu):.4f}"
        rows.append((Name("best attack on scores"), "", *reached, ""))
        names = ("joint privacy by", "epsilon", "advantage", "AUC", "of exact")
        # The claim of one account is checked on its own; pooling has not even begun.
        broken = (
            f"The label does not hold: one account alone spends {fmt.three(bounds.one)}, not"
            f" {terms.epsilon or 0.0:g}."
        )
        return simple_report(
            _WORDS,
            title,
            plain_table("Joint privacy by each account of the same noise", names, rows),
            self._notes(),
            warnings=[broken] if bounds.kept is False else [],
        )

    def _notes(self) -> list[str]:
        bounds, terms = self.bounds, self.bounds.service
        lines = [
            "Advantage and AUC: the most that (epsilon, delta) allows. Last row: what repeating one"
            f" query reaches on Gaussian noise, mu = {bounds.mu:.4g}.",
            f"One account alone: exact epsilon {fmt.three(bounds.one)} at delta {terms.delta:g}."
            f" Score sensitivity {terms.sensitivity:g} (1: a document added or removed; 2:"
            " replaced).",
        ]
        # A bound of the paper that does not apply says why; nothing is put in its place.
        if bounds.why:
            lines.append(f"{fmt.MISSING} {bounds.why}")
        elif terms.sigma is not None and bounds.label is not None:
            chosen = fmt.three(bounds.label)
            lines.append(f"(3.4) would have chosen this noise for epsilon {chosen}.")
        if (verdict := self.verdict) is not None:
            lines.append(
                f"Audit (5.2) up to the cap, delta* = {verdict.delta:g}: the paper certifies"
                f" {fmt.three(verdict.paper)}; this noise gives {fmt.three(verdict.epsilon)}."
            )
        return lines


def powers_to(most: int) -> list[int]:
    """Return 1, 4, 16, … below ``most``, and ``most``."""
    sizes = [1]
    # The last size is the one asked for, whether it is a power or not.
    while sizes[-1] * 4 < most:
        sizes.append(sizes[-1] * 4)
    return sizes if most == 1 else [*sizes, most]


# ``collusion calibrate``: the noise for a joint budget.


@dataclass(frozen=True, slots=True)
class JointBudget:
    """A joint budget.

    Attributes:
        epsilon: Epsilon of all accounts together.
        delta: Delta of all accounts together.
        queries: Queries of each account.
        accounts: Number of accounts.
        sensitivity: L2 change of one score when one document changes.
    """

    epsilon: float
    delta: float
    queries: int
    accounts: int
    sensitivity: float


@dataclass(frozen=True, slots=True)
class NoisePlans(Shown):
    """The noise for a joint budget, by coalition size.

    Attributes:
        asked: The budget.
        plans: The noise of each coalition size.
    """

    asked: JointBudget
    plans: tuple[NoisePlan, ...]

    def dump(self) -> Row:
        """Return everything as JSON."""
        plans = [{**asdict(plan), "ratio": plan.ratio} for plan in self.plans]
        return asdict(self) | {"plans": plans}

    def report(self) -> ReportDocument:
        """Return the noise for each coalition size."""
        budget = self.asked
        # The exact noise for k accounts beside (3.4) at epsilon / sqrt k, the paper's rule of
        # section 3.6.
        rows = (
            (
                Name(fmt.count(plan.accounts)),
                f"{plan.exact:.5g}",
                None if plan.paper is None else f"{plan.paper:.5g}",
                None if plan.ratio is None else f"{plan.ratio:.2f}",
                fmt.three(plan.share),
                fmt.three(plan.rule),
            )
            for plan in self.plans
        )
        names = ("k", "sigma, exact", "paper", "times", "eps of one", "eps / sqrt k")
        notes = [
            "paper: (3.4) for epsilon / sqrt k per account (§3.6). eps of one: what one account"
            " alone spends under the exact noise."
        ]
        return simple_report(
            _WORDS,
            f"Joint epsilon {budget.epsilon:g} at delta {budget.delta:g}; k accounts of"
            f" {fmt.count(budget.queries)} queries each",
            plain_table("Noise for each number of accounts", names, rows),
            notes,
        )


CollusionResult: TypeAlias = JointBounds | NoisePlans


def _load(data: Mapping[str, Any]) -> CollusionResult:
    """Return which of the two results a file holds, by a field that it alone has."""
    if "plans" in data:
        return restored(NoisePlans, data, RESULT_TYPE)
    rest = {name: data[name] for name in ("verdict",) if name in data}
    return restored(JointBounds, {"bounds": data, **rest}, RESULT_TYPE)


RESULT_TYPE: ResultType[CollusionResult, str] = ResultType(
    name="collusion",
    words=_WORDS,
    verb="collusion bound --json",
    dump=lambda result: dict(plain(result.dump())),
    load=_load,
    recognises=lambda data: {"plans", "asked"} <= data.keys() or {"moments", "mu"} <= data.keys(),
    report=lambda result: result.report(),
    rows=lambda result: table_rows(result.report()),
)
