"""Estimates of a coalition: table for 80 columns, JSON and figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwitness.collusion.coalition.estimate import Estimate, Estimates
from ragwitness.report import wording as say
from ragwitness.report.lines import Axis, Line, Panel, lines_svg

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["coalition_json", "coalition_svg", "coalition_terminal", "counts"]

_SHOWN = 6  # names per group; the JSON has all
_WHAT = {
    "pairs": "similar queries, joined (R5)",
    "cores": "the same, innermost core",
    "lsh": "the same by sign hashes",
    "means": "similar mean queries",
    "spectral": "one direction shared by many",
    "communities": "rare buckets in common",
}


def counts(one: Estimate) -> bool:
    """Whether an estimate counts against a cap: ordinary traffic does not explain it at 5 %."""
    return one.traffic_p is None or one.traffic_p <= 0.05


def coalition_json(found: Estimates) -> dict[str, Any]:
    """Return everything, strict JSON."""
    told = asdict(found)
    return told | {"estimates": {one["name"]: one for one in told["estimates"]}}


def coalition_terminal(found: Estimates, *, k_max: int | None = None) -> Group:
    """Return one line per estimator, and whom it names.

    Args:
        found: The estimates.
        k_max: Declared cap on a coalition; estimates that count and are above it are marked.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(("estimator", "accounts", "p", "p traffic", "looks for")):
        table.add_column(name, justify="right" if 0 < at < 4 else "left", no_wrap=True)
    for one in found.estimates:
        over = k_max is not None and one.size > k_max and counts(one)
        table.add_row(
            one.name,
            f"{one.size}{' > k_max' if over else ''}",
            say.p_text(one.own_p),
            say.p_text(one.traffic_p),
            _WHAT[one.name],
            style="bold" if over else "",
        )
    parts: list[Any] = [table]
    parts += [Text(line) for line in _named(found.estimates)]
    parts += [Text(line, style="dim") for line in _notes(found)]
    return Group(*parts)


def _named(estimates: Sequence[Estimate]) -> list[str]:
    """Each group once, with the estimators that name it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in estimates:
        if one.members:
            groups.setdefault(tuple(sorted(one.members)), []).append(one.name)
    lines = []
    for members, names in groups.items():
        shown = ", ".join(say.visible(name, 24) for name in members[:_SHOWN])
        more = f" and {say.count(len(members) - _SHOWN)} more" if len(members) > _SHOWN else ""
        lines.append(f"{', '.join(names)}: {shown}{more}")
    return lines


def _notes(found: Estimates) -> list[str]:
    lines = [
        f"{say.count(found.accounts)} accounts, {say.count(found.queries)} queries,"
        f" {found.dim} dimensions; queries are similar from cosine {found.threshold:.3f}.",
    ]
    if found.draws:
        lines.append(
            f"p traffic: among {found.draws} samples of {found.accounts} ordinary accounts,"
            f" {found.disjoint} of which fit into that traffic without overlap."
        )
    else:
        lines.append(
            "Without ordinary traffic (--ordinary) an embedder's habits and questions that many"
            " users share pass for a coalition."
        )
    lines.append("An estimate names suspects; it bounds no leakage (ragwitness collusion bound).")
    return lines


def coalition_svg(curve: Sequence[tuple[float, int, int]], found: Estimates) -> str:
    """Return the size of the group against the threshold.

    Args:
        curve: (threshold, accounts in the component, accounts in the core).
        found: The estimates.
    """
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
        [Panel("by least cosine of two queries", Axis("cosine"), Axis("accounts"), lines, 0.0)],
    )
