"""Joint privacy of pooled accounts, and noise for a joint budget: tables, JSON and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ragwitness.privacy.accounting.bounds import joint_bounds
from ragwitness.privacy.accounting.inference import (
    advantage_limit,
    advantage_of,
    auc_limit,
    auc_of,
    mu_of_auc,
)
from ragwitness.report.terminal import figure_table
from ragwitness.results import wording as say
from ragwitness.results.kind import finite

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from ragwitness.collusion.coalition.estimate import Estimates
    from ragwitness.collusion.gates import Findings
    from ragwitness.collusion.scalar import Cell, SweepConfig
    from ragwitness.privacy.accounting.bounds import Bounds, Certificate, NoisePlan

_ROWS = (
    ("paper", "Theorem 3.4 (the paper)"),
    ("opaque", "best of (eps_q, delta_q)"),
    ("renyi", "Renyi, (3.6)"),
    ("moments", "moments accountant"),
    ("exact", "exact"),
)


@dataclass(frozen=True, slots=True)
class Room:
    """What a noise that is given leaves room for under the joint budget.

    Attributes:
        sigma: The noise.
        queries: Of each of the accounts.
        accounts: Of so many queries each.
    """

    sigma: float
    queries: int
    accounts: int


@dataclass(frozen=True, slots=True)
class Bought:
    """What clipping a tenant's scores buys, at the same noise.

    Attributes:
        clip: Bounds of the scores.
        sensitivity: With them.
        unclipped: Sensitivity without them.
        joint: Exact epsilon of all accounts without them.
        one: Of one account without them.
    """

    clip: tuple[float, float]
    sensitivity: float
    unclipped: float
    joint: float
    one: float


def bounds_json(
    bounds: Bounds, certificate: Certificate | None = None, bought: Bought | None = None
) -> dict[str, Any]:
    """Return everything, strict JSON."""
    return {
        **asdict(bounds),
        "label_kept": bounds.kept,
        "attack": {"advantage": advantage_of(bounds.mu), "auc": auc_of(bounds.mu)},
        # What each bound allows an attacker at most, beside what the best attack on this noise
        # reaches.
        "limits": {
            name: {
                "advantage": advantage_limit(epsilon, bounds.delta),
                "auc": auc_limit(epsilon, bounds.delta),
            }
            for name, _ in _ROWS
            if (epsilon := getattr(bounds, name)) is not None
        },
        "verdict": None if certificate is None else asdict(certificate),
        "clipping": None if bought is None else asdict(bought),
    }


def bounds_terminal(
    bounds: Bounds, certificate: Certificate | None = None, bought: Bought | None = None
) -> Group:
    """Return each account of the same noise for a terminal of 80 columns."""
    from rich.console import Group
    from rich.text import Text

    asked = bounds.service
    title = (
        f"k = {say.count(asked.accounts)} accounts of {say.count(asked.queries)} queries pool"
        f" their answers; noise sigma {bounds.sigma:.6g}, delta {bounds.delta:.3g}"
    )
    # One row for each way of accounting, all of the same noise at the same joint delta.
    table = figure_table("joint privacy by", "epsilon", "advantage", "AUC", "of exact")
    for name, words in _ROWS:
        epsilon = getattr(bounds, name)
        if epsilon is None:
            table.add_row(words, *[say.MISSING] * 4)
            continue
        table.add_row(
            words,
            say.three(epsilon),
            f"{advantage_limit(epsilon, bounds.delta):.4f}",
            f"{auc_limit(epsilon, bounds.delta):.4f}",
            f"{epsilon / bounds.exact:.3g}x" if bounds.exact else say.MISSING,
        )
    # The last row is no bound: repeating one query k q times is the best there is against Gaussian
    # noise.
    reached = ("best attack on scores", "", advantage_of(bounds.mu), auc_of(bounds.mu))
    table.add_row(*reached[:2], f"{reached[2]:.4f}", f"{reached[3]:.4f}", "")
    lines = _notes(bounds)
    if bought is not None:
        low, high = bought.clip
        lines.append(
            f"Scores are clipped to {low:g}..{high:g}: one moves by {bought.sensitivity:.4g} at"
            f" most, not {bought.unclipped:g}. Unclipped, this noise would give"
            f" {say.three(bought.joint)} exactly, and one account {say.three(bought.one)}."
        )
    if certificate is not None:
        lines.append(_verdict(certificate))
    parts: list[RenderableType] = [Text(title, style="bold"), table]
    parts += [*(Text(line, style="dim") for line in lines)]
    # The claim of one account is checked on its own; pooling has not even begun.
    if bounds.kept is False:
        parts.append(
            Text(
                f"The label does not hold: one account alone spends {say.three(bounds.one)}, not"
                f" {asked.epsilon:g}.",
                style="red",
            )
        )
    return Group(*parts)


def _notes(bounds: Bounds) -> list[str]:
    asked = bounds.service
    lines = [
        "Advantage and AUC: the most that (epsilon, delta) allows. Last row: what repeating one"
        f" query reaches on Gaussian noise, mu = {bounds.mu:.4g}.",
        f"One account alone: exact epsilon {say.three(bounds.one)} at delta {asked.delta:g}. Score"
        f" sensitivity {asked.sensitivity:g} (1: a document added or removed; 2: replaced).",
    ]
    # A bound of the paper that does not apply says why; nothing is put in its place.
    if bounds.why:
        lines.append(f"{say.MISSING} {bounds.why}")
    elif asked.sigma is not None and bounds.label is not None:
        lines.append(f"(3.4) would have chosen this noise for epsilon {say.three(bounds.label)}.")
    return lines


def _verdict(made: Certificate) -> str:
    return (
        f"Audit (5.2) up to the cap, delta* = {made.delta:g}: the paper certifies"
        f" {say.three(made.paper)}; this"
        f" noise gives {say.three(made.epsilon)}."
    )


def bounds_svg(bounds: Bounds) -> str:
    """Return epsilon against the number of accounts, one curve per account of it."""
    from ragwitness.report.figures import Axis, Line, LinesPanel, lines_svg

    # Powers of 4 up to the number asked for: the growth is like a root, and the axis logarithmic.
    sizes = powers_to(bounds.service.accounts)
    rows = [joint_bounds(replace(bounds.service, accounts=k)) for k in sizes]
    lines = []
    for colour, (name, words) in enumerate(_ROWS):
        pairs = [(row.service.accounts, getattr(row, name)) for row in rows]
        points = tuple((float(k), value) for k, value in pairs if value)
        if points:
            lines.append(Line(words, points, colour, marks=len(points) == 1))
    asked = bounds.service
    panel = LinesPanel(
        f"{asked.queries:,} queries per account, sigma {bounds.sigma:.4g}",
        Axis("accounts that pool", tuple(map(float, sizes)) if len(sizes) <= 6 else (), log=True),
        Axis("joint epsilon", _ticks([point[1] for line in lines for point in line.points]), True),
        tuple(lines),
    )
    return lines_svg("Joint privacy of pooled accounts", [panel])


def plan_terminal(plans: Sequence[NoisePlan], asked: dict[str, Any], room: Room | None) -> Group:
    """Return the noise for each coalition size for a terminal of 80 columns."""
    from rich.console import Group
    from rich.text import Text

    title = (
        f"Joint epsilon {asked['epsilon']:g} at delta {asked['delta']:g}; k accounts of"
        f" {say.count(asked['queries'])} queries each"
    )
    # The exact noise for k accounts beside (3.4) at epsilon / sqrt k, the paper's rule of section
    # 3.6.
    table = figure_table("k", "sigma, exact", "paper", "times", "eps of one", "eps / sqrt k")
    for plan in plans:
        table.add_row(
            say.count(plan.accounts),
            f"{plan.exact:.5g}",
            say.MISSING if plan.paper is None else f"{plan.paper:.5g}",
            say.MISSING if plan.ratio is None else f"{plan.ratio:.2f}",
            say.three(plan.share),
            say.three(plan.rule),
        )
    lines = [
        "paper: (3.4) for epsilon / sqrt k per account (§3.6). eps of one: what one account alone"
        " spends under the exact noise."
    ]
    if room is not None:
        lines.insert(0, _room(room, asked))
    return Group(Text(title, style="bold"), table, *(Text(line, style="dim") for line in lines))


def _room(room: Room, asked: dict[str, Any]) -> str:
    return (
        f"With sigma {room.sigma:g}: {say.count(room.queries)} queries for each of"
        f" {say.count(asked['accounts'])} accounts, or {say.count(room.accounts)} accounts of"
        f" {say.count(asked['queries'])} queries."
    )


def plan_svg(plans: Sequence[NoisePlan], asked: dict[str, Any]) -> str:
    """Return the noise against the number of accounts."""
    from ragwitness.report.figures import Axis, Line, LinesPanel, lines_svg

    exact = tuple((float(plan.accounts), plan.exact) for plan in plans)
    paper = tuple((float(p.accounts), p.paper) for p in plans if p.paper is not None)
    named = (("exact", exact, 4), ("the paper", paper, 0))
    lines = [Line(*of, marks=len(plans) == 1) for of in named if of[1]]
    panel = LinesPanel(
        f"joint epsilon {asked['epsilon']:g}, {asked['queries']:,} queries per account",
        Axis("accounts that pool", log=True),
        Axis("sigma", _ticks([point[1] for line in lines for point in line.points]), True),
        tuple(lines),
    )
    return lines_svg("Noise for a joint budget", [panel])


def powers_to(most: int) -> list[int]:
    """Return 1, 4, 16, … below ``most``, and ``most``."""
    sizes = [1]
    # The last size is the one asked for, whether it is a power or not.
    while sizes[-1] * 4 < most:
        sizes.append(sizes[-1] * 4)
    return sizes if most == 1 else [*sizes, most]


def _ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten within the values; fewer where those are many."""
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # Fewer ticks a decade until they fit.
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = tuple(step * 10.0**power for power in powers for step in steps)
        found = tuple(value for value in found if low <= value <= high)
        if len(found) <= 8:
            break
    return found


# Estimates of a coalition: table for 80 columns, JSON and figure.

_SHOWN = 6  # names per group; the JSON has all
_WHAT = {
    "pairs": "similar queries (R5)",
    "cores": "the same, inner core",
    "lsh": "the same, by hashes",
    "means": "similar mean queries",
    "spectral": "one shared direction",
    "communities": "shared rare buckets",
}


def coalition_json(found: Estimates) -> dict[str, Any]:
    """Return everything, strict JSON."""
    told = asdict(found)
    return told | {"estimates": {one["name"]: one for one in told["estimates"]}}


def coalition_terminal(found: Estimates, *, k_max: int | None = None) -> Group:
    """Return one line per estimator, what is known of the log, and whom that names.

    Args:
        found: The estimates.
        k_max: Declared cap on a coalition.
    """
    from rich.console import Group
    from rich.text import Text

    names = ("estimator", "group", "p", "p traffic", "corrected", "looks for")
    table = figure_table(*names, left=(names[0], names[-1]))
    for one in found.estimates:
        table.add_row(
            one.name,
            str(one.size),
            say.p_text(one.own_p),
            say.p_text(one.traffic_p),
            say.p_text(one.adjusted_p),
            _WHAT[one.name],
        )
    judged = found.comparison is not None and found.comparison.suspicious
    parts: list[Any] = [table, Text(_judged(found, k_max), style="bold" if judged else "")]
    parts += [Text(line) for line in _named(found)]
    parts += [Text(line, style="dim") for line in _notes_of_coalition(found)]
    return Group(*parts)


def _judged(found: Estimates, k_max: int | None) -> str:
    against = found.comparison
    if against is None:
        return (
            "Not judged: without ordinary traffic (--ordinary) an embedder's habits and questions"
            " that many users share pass for a coalition. Nobody is named."
        )
    if not against.suspicious:
        return (
            f"No sign of a coalition: a benign log looks as suspicious with p = {against.p:.3g},"
            f" above {against.alpha:g}."
        )
    cap = f", {'above' if found.size > k_max else 'within'} the cap of {k_max}" if k_max else ""
    size = f"is estimated at {say.count(found.size)} accounts" if found.size > 1 else "has no size"
    return (
        f"Suspicious: at most {against.p:.1%} of benign logs look so to any estimator. The"
        f" coalition {size}{cap}."
    )


def _named(found: Estimates) -> list[str]:
    against = found.comparison
    if against is None or not against.suspicious:
        return []
    if against.suspects:
        shown = ", ".join(
            f"{say.visible(one.account, 24)} ({one.p:.2g})" for one in against.suspects[:_SHOWN]
        )
        left = len(against.suspects) - _SHOWN
        more = f" and {say.count(left)} more" if left > 0 else ""
        return [f"Named, each with the chance that an innocent account looks so: {shown}{more}."]
    if against.least > against.account_alpha:
        return [
            f"Nobody can be named: the smallest p of an account is {against.least:.2g} with"
            f" {say.count(against.accounts)} ordinary accounts, above {against.account_alpha:g}."
            " Give more of them."
        ]
    return [f"Nobody is named: no account has p <= {against.account_alpha:g} by itself."]


def _notes_of_coalition(found: Estimates) -> list[str]:
    lines = [
        f"{say.count(found.accounts)} accounts, {say.count(found.queries)} queries,"
        f" {found.dim} dimensions; queries are similar from cosine {found.threshold:.3f}."
    ]
    against = found.comparison
    if against is not None and against.unit == "windows":
        lines.append(
            f"Compared with {against.draws} ordinary windows of as many accounts: p holds if this"
            " window is like them but for a coalition."
        )
    elif against is not None:
        lines.append(
            f"Compared with {against.draws} logs drawn from its own accounts and"
            f" {say.count(against.accounts)} ordinary ones: p holds if innocent accounts are like"
            " those. A question that only this window has (news, an outage) is no coalition:"
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


def coalition_svg(curve: Sequence[tuple[float, int, int]], found: Estimates) -> str:
    """Return the size of the group against the threshold.

    Args:
        curve: (threshold, accounts in the component, accounts in the core).
        found: The estimates.
    """
    from ragwitness.report.figures import Axis, Line, LinesPanel, lines_svg

    most = max(component for _, component, _ in curve)
    lines = (
        Line("largest component (R5)", tuple((tau, float(size)) for tau, size, _ in curve), 0),
        Line("innermost core", tuple((tau, float(size)) for tau, _, size in curve), 1),
        Line(
            "threshold in use",
            ((found.threshold, 0.0), (found.threshold, float(most))),
            5,
            dashed=True,
        ),
    )
    return lines_svg(
        "Accounts joined by similar queries",
        [
            LinesPanel(
                "by least cosine of two queries", Axis("cosine"), Axis("accounts"), lines, 0.0
            )
        ],
    )


# A sweep over coalition sizes and budgets: table for 80 columns, JSON and figure.

_COLOURS = {"pass": "green", "fail": "red", "not resolved": "yellow"}


def sweep_json(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> dict[str, Any]:
    """Return everything, strict JSON."""
    return {
        "config": asdict(config),
        "cells": [
            asdict(cell) | {"most": most}
            for cell, most in zip(cells, findings.ceilings, strict=True)
        ],
        "findings": {
            "band": findings.band,
            "outside": findings.outside,
            "within_one_error": findings.within_one,
            "chance_of_all_within_one_error": findings.chance,
            "rows": [
                {name: finite(value) for name, value in asdict(row).items()}
                for row in findings.rows
            ],
            "gates": [asdict(gate) for gate in findings.gates],
        },
    }


def sweep_terminal(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> Group:
    """Return the cells, the slopes and the gates for a terminal of 80 columns."""
    from rich.console import Group
    from rich.text import Text

    names = ("epsilon", "k", "sigma", "AUC", "95 %", "theory", "z", "at most")
    table = figure_table(*names, left=())
    for at, (cell, most) in enumerate(zip(cells, findings.ceilings, strict=True)):
        # Budget and noise stand once, above the coalition sizes that share them.
        first = at == 0 or cells[at - 1].epsilon != cell.epsilon
        table.add_row(
            f"{cell.epsilon:g}" if first else "",
            str(cell.accounts),
            f"{cell.sigma:.4g}" if first else "",
            f"{cell.area.value:.4f}",
            f"{cell.area.low:.4f} to {cell.area.high:.4f}",
            f"{cell.predicted:.4f}",
            f"{cell.z:+.1f}".replace("-", "\N{MINUS SIGN}"),
            say.rate_text(most),
        )
    parts: list[Any] = [table]
    for gate in findings.gates:
        # P2 is a diagnostic and has no colour of a gate.
        style = _COLOURS[gate.state] if not gate.name.startswith("P2") else ""
        parts.append(Text(f"{gate.name}: {gate.state}: {gate.why}", style=style))
    parts += [Text(line, style="dim") for line in _notes_of_sweep(config, cells, findings)]
    return Group(*parts)


def _notes_of_sweep(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> list[str]:
    n = len(cells)
    growth = ", ".join(
        f"{row.growth:.2f} at {row.epsilon:g}" for row in findings.rows if math.isfinite(row.growth)
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


def sweep_svg(config: SweepConfig, cells: Sequence[Cell]) -> str:
    """Return the AUC against k, and the scale on which theory is a line."""
    from ragwitness.report.figures import Axis, Line, LinesPanel, lines_svg

    largest = max(config.accounts)
    dense = [1 + (largest - 1) * step / 60 for step in range(61)] if largest > 1 else [1.0]
    areas, scaled = [], []
    for at, epsilon in enumerate(config.epsilons):
        mine = [cell for cell in cells if cell.epsilon == epsilon]
        # mu of k accounts is sqrt k times that of one; both panels draw theory from this single
        # number.
        one = mine[0].mu / math.sqrt(mine[0].accounts)
        theory, measured = f"epsilon {epsilon:g}, theory", f"epsilon {epsilon:g}, measured"
        areas += [
            Line(theory, tuple((k, auc_of(one * math.sqrt(k))) for k in dense), at),
            Line(
                measured,
                tuple((c.accounts, c.area.value, c.area.low, c.area.high) for c in mine),
                at,
                marks=True,
            ),
        ]
        # In sqrt k and probit AUC, theory is a straight line through the origin: its slope is what
        # P1 tests.
        ends = (0.0, math.sqrt(largest))
        scaled += [
            Line(theory, tuple((root, one * root) for root in ends), at),
            Line(measured, tuple(_probit(cell) for cell in mine if cell.area.high < 1), at, True),
        ]
    ks = tuple(float(k) for k in sorted(config.accounts))
    return lines_svg(
        "Accounts that pool their answers: how well they tell one document's presence",
        [
            LinesPanel("coalition size k", Axis("k", ks, log=True), Axis("AUC"), tuple(areas), 0.5),
            LinesPanel(
                "P1: a line in sqrt k",
                Axis("sqrt k"),
                Axis("sqrt 2 · probit of AUC"),
                tuple(scaled),
                0.0,
            ),
        ],
    )


def _probit(cell: Cell) -> tuple[float, ...]:
    area = cell.area
    return (
        math.sqrt(cell.accounts),
        *(mu_of_auc(value) for value in (area.value, area.low, area.high)),
    )
