"""Results of ``ragwitness collusion estimate`` and ``sweep``: coalitions in logs and in theory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from ragwitness.collusion.coalition.estimate import Estimates
from ragwitness.collusion.gates import judge
from ragwitness.collusion.scalar import Cell as SweepCell
from ragwitness.collusion.scalar import SweepConfig
from ragwitness.kit.shown import Shown
from ragwitness.privacy.accounting.inference import auc_of, mu_of_auc
from ragwitness.results import wording as say
from ragwitness.results.curves import Axis, Curves, Line, LinesPanel
from ragwitness.results.kind import Kind, Row, plain, restored
from ragwitness.results.sheet import (
    Cell,
    Column,
    Name,
    Paragraph,
    Sheet,
    plain_table,
    simple_sheet,
    table_rows,
)

_WORDS = "coalition of accounts"

# ``collusion estimate``: estimates of a coalition.

_SHOWN = 6  # names in a sentence; the JSON has all
_LOOKS_FOR = {
    "pairs": "similar queries (R5)",
    "cores": "the same, inner core",
    "lsh": "the same, by hashes",
    "means": "similar mean queries",
    "spectral": "one shared direction",
    "communities": "shared rare buckets",
}


@dataclass(frozen=True, slots=True)
class CoalitionEstimates(Shown):
    """How many accounts of a log work together.

    Attributes:
        found: The estimates.
        k_max: Declared cap on a coalition; None without one.
        curve: Rows of (least cosine, accounts in the largest component, accounts in its core);
            empty where no figure was asked for.
    """

    found: Estimates
    k_max: int | None = None
    curve: tuple[tuple[float, int, int], ...] = ()

    def dump(self) -> Row:
        """Return everything as JSON, each estimate by its name."""
        told = asdict(self.found)
        told["estimates"] = {one["name"]: one for one in told["estimates"]}
        return told | {"k_max": self.k_max, "curve": self.curve}

    def sheet(self) -> Sheet:
        """Return one line per estimator, what is known of the log, and whom that names."""
        names = ("estimator", "group", "p", "p traffic", "corrected", "looks for")
        rows = (
            (
                Name(one.name),
                str(one.size),
                say.p_text(one.own_p),
                say.p_text(one.traffic_p),
                say.p_text(one.adjusted_p),
                _LOOKS_FOR[one.name],
            )
            for one in self.found.estimates
        )
        table = plain_table("Each estimator", names, rows)
        columns = (*table.columns[:-1], Column("looks for", "text", "looks for"))
        against = self.found.comparison
        judged = against is not None and against.suspicious
        named = [Paragraph(line, "", brief=True) for line in self._named()]
        return simple_sheet(
            _WORDS,
            self._judged(),
            replace(table, columns=columns),
            self._notes(),
            Curves("Accounts joined by similar queries", self._panels) if self.curve else None,
            said=named,
            warnings=["The log is suspicious."] if judged else [],
        )

    def _judged(self) -> str:
        found, k_max, against = self.found, self.k_max, self.found.comparison
        if against is None:
            return (
                "Not judged: without ordinary traffic (--ordinary) an embedder's habits and"
                " questions that many users share pass for a coalition. Nobody is named."
            )
        if not against.suspicious:
            return (
                "No sign of a coalition: a benign log looks as suspicious with p ="
                f" {against.p:.3g}, above {against.alpha:g}."
            )
        cap = f", {'above' if found.size > k_max else 'within'} the cap of {k_max}" if k_max else ""
        size = (
            f"is estimated at {say.count(found.size)} accounts" if found.size > 1 else "has no size"
        )
        return (
            f"Suspicious: at most {against.p:.1%} of benign logs look so to any estimator. The"
            f" coalition {size}{cap}."
        )

    def _named(self) -> list[str]:
        against = self.found.comparison
        if against is None or not against.suspicious:
            return []
        if against.suspects:
            shown = ", ".join(
                f"{say.visible(one.account, 24)} ({one.p:.2g})" for one in against.suspects[:_SHOWN]
            )
            left = len(against.suspects) - _SHOWN
            more = f" and {say.count(left)} more" if left > 0 else ""
            return [
                f"Named, each with the chance that an innocent account looks so: {shown}{more}."
            ]
        if against.least > against.account_alpha:
            return [
                f"Nobody can be named: the smallest p of an account is {against.least:.2g} with"
                f" {say.count(against.accounts)} ordinary accounts, above"
                f" {against.account_alpha:g}. Give more of them."
            ]
        return [f"Nobody is named: no account has p <= {against.account_alpha:g} by itself."]

    def _notes(self) -> list[str]:
        found, against = self.found, self.found.comparison
        lines = [
            f"{say.count(found.accounts)} accounts, {say.count(found.queries)} queries,"
            f" {found.dim} dimensions; queries are similar from cosine {found.threshold:.3f}."
        ]
        if against is not None and against.unit == "windows":
            lines.append(
                f"Compared with {against.draws} ordinary windows of as many accounts: p holds if"
                " this window is like them but for a coalition."
            )
        elif against is not None:
            lines.append(
                f"Compared with {against.draws} logs drawn from its own accounts and"
                f" {say.count(against.accounts)} ordinary ones: p holds if innocent accounts are"
                " like those. A question that only this window has (news, an outage) is no"
                " coalition:"
                + (
                    " the fifth of each account's queries that is most like others' is left out;"
                    if against.trimmed
                    else ""
                )
                + " ordinary traffic of 20 windows or more, of as many accounts each, tells better."
            )
            if against.accounts < 4 * found.accounts:
                lines.append(
                    "There are few ordinary accounts; a small coalition stands out less among logs"
                    f" that hold parts of it. Give {say.count(6 * found.accounts)} or more."
                )
        lines.append("An estimate bounds no leakage (ragwitness collusion bound).")
        return lines

    def _panels(self) -> list[LinesPanel]:
        """The size of the group against the threshold."""
        most, in_use = max(component for _, component, _ in self.curve), self.found.threshold
        components = tuple((tau, float(size)) for tau, size, _ in self.curve)
        cores = tuple((tau, float(size)) for tau, _, size in self.curve)
        lines = (
            Line("largest component (R5)", components, 0),
            Line("innermost core", cores, 1),
            Line("threshold in use", ((in_use, 0.0), (in_use, float(most))), 5, dashed=True),
        )
        title = "by least cosine of two queries"
        return [LinesPanel(title, Axis("cosine"), Axis("accounts"), lines, 0.0)]


# ``collusion sweep``: coalition sizes by budgets, against theory.


@dataclass(frozen=True, slots=True)
class CoalitionSweep(Shown):
    """Whether the privacy of pooled answers falls as theory says.

    Attributes:
        config: What was varied and what was held.
        cells: Each coalition size at each budget.
    """

    config: SweepConfig
    cells: tuple[SweepCell, ...]

    def dump(self) -> Row:
        """Return everything as JSON, what follows from the cells included."""
        findings = asdict(judge(self.config, self.cells))
        findings["within_one_error"] = findings.pop("within_one")
        findings["chance_of_all_within_one_error"] = findings.pop("chance")
        ceilings = findings.pop("ceilings")
        told = asdict(self)
        for cell, most in zip(told["cells"], ceilings, strict=True):
            cell["most"] = most
        return told | {"findings": findings}

    def sheet(self) -> Sheet:
        """Return the cells, the slopes and the gates."""
        cells, findings = self.cells, judge(self.config, self.cells)
        names = ("epsilon", "k", "sigma", "AUC", "95 %", "theory", "z", "at most")
        rows: list[tuple[Cell, ...]] = []
        for at, (cell, most) in enumerate(zip(cells, findings.ceilings, strict=True)):
            # Budget and noise stand once, above the coalition sizes that share them.
            first = at == 0 or cells[at - 1].epsilon != cell.epsilon
            rows.append(
                (
                    Name(f"{cell.epsilon:g}" if first else ""),
                    str(cell.accounts),
                    f"{cell.sigma:.4g}" if first else "",
                    f"{cell.area.value:.4f}",
                    f"{cell.area.low:.4f} to {cell.area.high:.4f}",
                    f"{cell.predicted:.4f}",
                    f"{cell.z:+.1f}".replace("-", "\N{MINUS SIGN}"),
                    say.rate_text(most),
                )
            )
        # P2 is a diagnostic and has no colour of a gate.
        gates = [f"{gate.name}: {gate.state}: {gate.why}" for gate in findings.gates]
        failed = [one for one in gates if ": fail: " in one and not one.startswith("P2")]
        return simple_sheet(
            _WORDS,
            "Accounts that pool their answers: how well they tell one document's presence",
            plain_table("Each coalition size at each budget", names, rows),
            self._notes(),
            Curves("Accounts that pool their answers", self._panels),
            said=[Paragraph(line, "", brief=True) for line in gates if line not in failed],
            warnings=failed,
        )

    def _notes(self) -> list[str]:
        config, n, findings = self.config, len(self.cells), judge(self.config, self.cells)
        growth = ", ".join(
            f"{row.growth:.2f} at {row.epsilon:g}"
            for row in findings.rows
            if math.isfinite(row.growth)
        )
        largest, smallest = max(config.accounts), min(config.accounts)
        lines = [
            f"{say.count(config.trials)} paired trials per cell; q = {say.count(config.queries)},"
            f" delta = {config.delta:g}, gap {config.gap:g}, {config.calibration} noise. theory:"
            " Phi(sqrt(kq) gap / (sigma sqrt 2)). z: in exact standard errors. at most: what"
            " Theorem 3.4 allows.",
            f"{findings.outside} of {n} cells outside the band |z| < {findings.band:.2f}, which all"
            " keep with 95 % where theory holds.",
            f"The paper's criterion, within one standard error: {findings.within_one} of {n}; all"
            f" {n} would be chance once in {1 / findings.chance:,.0f}.",
        ]
        if growth and largest > smallest:
            root = math.sqrt(largest / smallest)
            lines.append(
                f"AUC excess at k = {largest} over that at {smallest} (sqrt: {root:.3g}): {growth}."
            )
        return lines

    def _panels(self) -> list[LinesPanel]:
        """The AUC against k, and the scale on which theory is a line."""
        largest = max(self.config.accounts)
        dense = [1 + (largest - 1) * step / 60 for step in range(61)] if largest > 1 else [1.0]
        areas, scaled = [], []
        for at, epsilon in enumerate(self.config.epsilons):
            mine = [cell for cell in self.cells if cell.epsilon == epsilon]
            # mu of k accounts is sqrt k times that of one; both panels draw theory from this single
            # number.
            one = mine[0].mu / math.sqrt(mine[0].accounts)
            theory, measured = f"epsilon {epsilon:g}, theory", f"epsilon {epsilon:g}, measured"
            points = tuple((c.accounts, c.area.value, c.area.low, c.area.high) for c in mine)
            areas += [
                Line(theory, tuple((k, auc_of(one * math.sqrt(k))) for k in dense), at),
                Line(measured, points, at, marks=True),
            ]
            # In sqrt k and probit AUC, theory is a straight line through the origin: its slope is
            # what P1 tests.
            ends = tuple((root, one * root) for root in (0.0, math.sqrt(largest)))
            probits = tuple(
                (math.sqrt(k), *map(mu_of_auc, area)) for k, *area in points if area[-1] < 1
            )
            scaled += [Line(theory, ends, at), Line(measured, probits, at, True)]
        ks = tuple(float(k) for k in sorted(self.config.accounts))
        x, y = Axis("sqrt k"), Axis("sqrt 2 · probit of AUC")
        size = Axis("k", ks, log=True)
        return [
            LinesPanel("coalition size k", size, Axis("AUC"), tuple(areas), 0.5),
            LinesPanel("P1: a line in sqrt k", x, y, tuple(scaled), 0.0),
        ]


CoalitionResult: TypeAlias = CoalitionEstimates | CoalitionSweep


def _load(data: Mapping[str, Any]) -> CoalitionResult:
    """Return which of the two results a file holds, by a field that it alone has."""
    if "cells" in data:
        return restored(CoalitionSweep, data, KIND)
    named = {**data, "estimates": list(data["estimates"].values())}
    rest = {name: data[name] for name in ("k_max", "curve") if name in data}
    return restored(CoalitionEstimates, {"found": named, **rest}, KIND)


KIND: Kind[CoalitionResult, str] = Kind(
    name="coalition",
    words=_WORDS,
    verb="collusion estimate --json",
    dump=lambda result: dict(plain(result.dump())),
    load=_load,
    recognises=lambda data: (
        {"cells", "findings"} <= data.keys() or {"estimates", "threshold"} <= data.keys()
    ),
    sheet=lambda result: result.sheet(),
    rows=lambda result: table_rows(result.sheet()),
)
