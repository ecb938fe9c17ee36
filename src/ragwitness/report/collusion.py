"""Joint privacy of pooled accounts, and noise for a joint budget: tables, JSON and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ragwitness.privacy.accounting.bounds import Bounds, Plan, joint_bounds
from ragwitness.privacy.accounting.inference import (
    advantage_limit,
    advantage_of,
    auc_limit,
    auc_of,
)
from ragwitness.privacy.accounting.verdict import Certificate
from ragwitness.report import wording as say
from ragwitness.report.lines import Axis, Line, Panel, lines_svg

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

__all__ = [
    "Room",
    "bounds_json",
    "bounds_svg",
    "bounds_terminal",
    "plan_json",
    "plan_svg",
    "plan_terminal",
    "powers_to",
]

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


def bounds_json(bounds: Bounds, certificate: Certificate | None = None) -> dict[str, Any]:
    """Return everything, strict JSON."""
    return {
        **asdict(bounds),
        "label_kept": bounds.kept,
        "attack": {"advantage": advantage_of(bounds.mu), "auc": auc_of(bounds.mu)},
        "limits": {
            name: {
                "advantage": advantage_limit(epsilon, bounds.delta),
                "auc": auc_limit(epsilon, bounds.delta),
            }
            for name, _ in _ROWS
            if (epsilon := getattr(bounds, name)) is not None
        },
        "verdict": None if certificate is None else asdict(certificate),
    }


def bounds_terminal(bounds: Bounds, certificate: Certificate | None = None) -> Group:
    """Return each account of the same noise for a terminal of 80 columns."""
    from rich.console import Group
    from rich.text import Text

    asked = bounds.service
    title = (
        f"k = {say.count(asked.accounts)} accounts of {say.count(asked.queries)} queries pool"
        f" their answers; noise sigma {bounds.sigma:.6g}, delta {bounds.delta:.3g}"
    )
    table = _table("joint privacy by", "epsilon", "advantage", "AUC", "of exact")
    for name, words in _ROWS:
        epsilon = getattr(bounds, name)
        if epsilon is None:
            table.add_row(words, *[say.MISSING] * 4)
            continue
        table.add_row(
            words,
            _three(epsilon),
            f"{advantage_limit(epsilon, bounds.delta):.4f}",
            f"{auc_limit(epsilon, bounds.delta):.4f}",
            f"{epsilon / bounds.exact:.3g}x" if bounds.exact else say.MISSING,
        )
    reached = ("best attack on scores", "", advantage_of(bounds.mu), auc_of(bounds.mu))
    table.add_row(*reached[:2], f"{reached[2]:.4f}", f"{reached[3]:.4f}", "")
    lines = _notes(bounds)
    if certificate is not None:
        lines.append(_verdict(certificate))
    parts: list[RenderableType] = [Text(title, style="bold"), table]
    parts += [*(Text(line, style="dim") for line in lines)]
    if bounds.kept is False:
        parts.append(
            Text(
                f"The label does not hold: one account alone spends {_three(bounds.one)}, not"
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
        f"One account alone: exact epsilon {_three(bounds.one)} at delta {asked.delta:g}. Score"
        f" sensitivity {asked.sensitivity:g} (1: a document added or removed; 2: replaced).",
    ]
    if bounds.why:
        lines.append(f"{say.MISSING} {bounds.why}")
    elif asked.sigma is not None and bounds.label is not None:
        lines.append(f"(3.4) would have chosen this noise for epsilon {_three(bounds.label)}.")
    return lines


def _verdict(made: Certificate) -> str:
    paper = say.MISSING if made.paper is None else _three(made.paper)
    return (
        f"Audit (5.2) up to the cap, delta* = {made.delta:g}: the paper certifies {paper}; this"
        f" noise gives {_three(made.epsilon)}."
    )


def bounds_svg(bounds: Bounds) -> str:
    """Return epsilon against the number of accounts, one curve per account of it."""
    sizes = powers_to(bounds.service.accounts)
    rows = [joint_bounds(replace(bounds.service, accounts=k)) for k in sizes]
    lines = []
    for colour, (name, words) in enumerate(_ROWS):
        pairs = [(row.service.accounts, getattr(row, name)) for row in rows]
        points = tuple((float(k), value) for k, value in pairs if value)
        if points:
            lines.append(Line(words, points, colour, marks=len(points) == 1))
    asked = bounds.service
    panel = Panel(
        f"{asked.queries:,} queries per account, sigma {bounds.sigma:.4g}",
        Axis("accounts that pool", tuple(map(float, sizes)) if len(sizes) <= 6 else (), log=True),
        Axis("joint epsilon", _ticks([point[1] for line in lines for point in line.points]), True),
        tuple(lines),
    )
    return lines_svg("Joint privacy of pooled accounts", [panel])


def plan_json(plans: Sequence[Plan], asked: dict[str, Any], room: Room | None) -> dict[str, Any]:
    """Return everything, strict JSON.

    Args:
        plans: One per coalition size.
        asked: The budget and the load.
        room: Under a given noise; None where none was given.
    """
    return {
        "asked": asked,
        "plans": [{**asdict(plan), "ratio": plan.ratio} for plan in plans],
        "room": None if room is None else asdict(room),
    }


def plan_terminal(plans: Sequence[Plan], asked: dict[str, Any], room: Room | None) -> Group:
    """Return the noise for each coalition size for a terminal of 80 columns."""
    from rich.console import Group
    from rich.text import Text

    title = (
        f"Joint epsilon {asked['epsilon']:g} at delta {asked['delta']:g}; k accounts of"
        f" {say.count(asked['queries'])} queries each"
    )
    table = _table("k", "sigma, exact", "paper", "times", "eps of one", "eps / sqrt k")
    for plan in plans:
        table.add_row(
            say.count(plan.accounts),
            f"{plan.exact:.5g}",
            say.MISSING if plan.paper is None else f"{plan.paper:.5g}",
            say.MISSING if plan.ratio is None else f"{plan.ratio:.2f}",
            _three(plan.share),
            _three(plan.rule),
        )
    lines = [
        "paper: (3.4) for epsilon / sqrt k per account (§3.6). eps of one: what one account alone"
        " spends under the exact noise.",
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


def plan_svg(plans: Sequence[Plan], asked: dict[str, Any]) -> str:
    """Return the noise against the number of accounts."""
    exact = tuple((float(plan.accounts), plan.exact) for plan in plans)
    paper = tuple((float(p.accounts), p.paper) for p in plans if p.paper is not None)
    named = (("exact", exact, 4), ("the paper", paper, 0))
    lines = [Line(*of, marks=len(plans) == 1) for of in named if of[1]]
    panel = Panel(
        f"joint epsilon {asked['epsilon']:g}, {asked['queries']:,} queries per account",
        Axis("accounts that pool", log=True),
        Axis("sigma", _ticks([point[1] for line in lines for point in line.points]), True),
        tuple(lines),
    )
    return lines_svg("Noise for a joint budget", [panel])


def powers_to(most: int) -> list[int]:
    """Return 1, 4, 16, … below ``most``, and ``most``."""
    sizes = [1]
    while sizes[-1] * 4 < most:
        sizes.append(sizes[-1] * 4)
    return sizes if most == 1 else [*sizes, most]


def _ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten within the values; fewer where those are many."""
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = tuple(step * 10.0**power for power in powers for step in steps)
        found = tuple(value for value in found if low <= value <= high)
        if len(found) <= 8:
            break
    return found


def _three(value: float) -> str:
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:,.0f}"


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table
