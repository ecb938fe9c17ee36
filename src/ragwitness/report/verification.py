"""The verdict on a sealed file: for a terminal of 80 columns, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwitness.attest.verdict import BundleVerdict, Numbers, Sampling
from ragwitness.report.terminal import figure_table
from ragwitness.results import wording as say

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

_STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow", "not checked": "yellow"}


def verdict_json(verdict: BundleVerdict) -> dict[str, Any]:
    """Return everything, strict JSON."""
    found = asdict(verdict)
    # The first failure by itself: scripts compare its name with what they expect.
    first = verdict.failures[:1]
    found["failure"] = first[0].failure if first else None
    found["epsilon"] = verdict.epsilon
    if verdict.sampling is not None:
        found["sampling"]["mode"] = verdict.sampling.mode
    return found


def verdict_terminal(verdict: BundleVerdict) -> Group:
    """Return outcome, checks and numbers."""
    from rich.console import Group
    from rich.text import Text

    # Outcome and window, why, the checks, then numbers: a reader who stops early has read the
    # verdict.
    style = _STYLES[verdict.outcome]
    said = Text(verdict.outcome.upper(), style=f"bold {style}")
    if verdict.window:
        said.append(f"  window {say.visible(verdict.window)}", style="not bold default")
    if verdict.outcome == "pass" and verdict.epsilon is not None:
        first = verdict.numbers[0]
        said.append(f": epsilon {verdict.epsilon:.3g} at delta* {first.delta:g} towards accounts")
    parts: list[RenderableType] = [said, Text(say.visible(verdict.why)), _checks(verdict)]
    # Numbers mean something only under the outcome above them.
    if verdict.numbers:
        parts += [_numbers(verdict.numbers), *_legend(verdict)]
    if verdict.sampling is not None:
        parts.append(Text(sampling_line(verdict.sampling)))
    parts += [Text(say.visible(note), style="yellow") for note in verdict.notes]
    # The number above is one towards accounts; the rest of what was said is not in it.
    for title, lines in (
        ("What whoever holds this file learns besides:", verdict.learned),
        ("What this rests on:", verdict.rests),
    ):
        if lines:
            parts += [Text(title, style="bold"), *(Text(f"- {say.visible(one)}") for one in lines)]
    return Group(*parts)


def sampling_line(sampling: Sampling) -> str:
    """Return in words which records were looked at, and what that finds."""
    everything = (
        f"Mode {sampling.mode}: {say.count(sampling.challenged)} of"
        f" {say.count(sampling.population)} answers were proved."
    )
    # Mode A proves every answer; otherwise the verdict covers the others only with the chances
    # given.
    if sampling.mode == "A":
        return everything
    chances = ", ".join(f"{say.count(bad)}: {chance:.2%}" for bad, chance in sampling.detection)
    return (
        f"{everything} The verdict is conditional on the others. Chance to have looked at one of"
        f" so many bad ones: {chances}."
    )


def _checks(verdict: BundleVerdict) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for check in verdict.checks:
        detail = f"{check.failure}: {check.detail}" if check.failure else check.detail
        table.add_row(
            check.name, Text(check.status, style=_STYLES[check.status]), Text(say.visible(detail))
        )
    return table


def _numbers(numbers: tuple[Numbers, ...]) -> Table:
    from rich.text import Text

    names = ("epsilon of", "paper (5.2)", "exact", "odometer", "attack")
    table = figure_table(*names, folds=names[0])
    for row in numbers:
        # Four epsilons of the same noise: the paper's bound (5.2), the exact one, the odometer's
        # over everything answered, and a lower bound that an attack has shown.
        values = (row.paper, row.exact, row.odometer, row.empirical)
        table.add_row(Text(say.visible(row.tenant)), *map(say.three, values))
    return table


def _legend(verdict: BundleVerdict) -> list[Text]:
    from rich.text import Text

    first = verdict.numbers[0]
    lines = [
        f"All at delta* {first.delta:g}. Paper: from the epsilon promised to one account. Exact:"
        f" of the committed noise, k_max accounts with {say.count(first.cap)} answers in all."
        " Odometer: of every answer given, whoever asked. Attack: lower bound that one has shown."
    ]
    if first.paper is None:
        lines.append(f"{say.MISSING} {first.why}")
    return [Text(say.visible(line), style="dim") for line in lines]
