"""What was seen of a draw, between a plan's folder and a probe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.canary.plant.plan import Plan
    from ragwitness.runs.canary import CanaryResult, History

__all__ = ["history_of", "keep_look", "refuse_idle"]


def history_of(folder: Path) -> History:
    """Return what was seen of a plan: looks, compliant twins, answers that quoted a trigger."""
    from ragwitness.canary.plant.feedback import QUOTED
    from ragwitness.canary.plant.looks import read_probes, read_votes, was_opened
    from ragwitness.runs.canary import History, Look

    rows, votes = read_probes(folder), read_votes(folder)
    return History(
        looks=tuple(
            Look(one["look"], tuple((rank, one["candidates"]) for rank in one["ranks"]))
            for one in rows
            if not one["twin"]
        ),
        twins=tuple(one["statistic"] for one in rows if one["twin"]),
        quoted=sum(one["reason"] == QUOTED for one in votes),
        answered=len(votes),
        opened=was_opened(folder),
    )


def keep_look(folder: Path, result: CanaryResult, release: str, *, twin: bool) -> None:
    """Count a probe that was asked to its end among the looks at its plan's draw."""
    from ragwitness.canary.plant.looks import append_probe

    found = result.finding
    if found is None:
        return
    row = {
        "release": release,
        "twin": twin,
        "target": result.target,
        "look": result.digest,
        "ranks": list(found.ranks),
        "candidates": found.candidates,
        "statistic": found.statistic,
        "verdict": str(found.verdict),
        "p_value": found.p_value,
    }
    append_probe(folder, row)


def refuse_idle(folder: Path, plan: Plan, target: str) -> None:
    """Refuse to ask a model where the look could show nothing; recorded answers are always read.

    Raises:
        InputError: Nothing was planted yet, or the draw was opened.
        VerificationError: What was written to be sent is not what the draw gives.
    """
    from ragwitness.canary.plant.folder import check_traces
    from ragwitness.canary.plant.looks import was_opened
    from ragwitness.errors import InputError

    if target.startswith("replay/"):
        return
    if not check_traces(folder, plan):
        raise InputError(
            "Nothing was planted yet: the look would be spent on a model that cannot know.",
            f"First: ragwitness canary plant {folder}",
        )
    if was_opened(folder):
        raise InputError(
            "This draw was opened: a model may have learned it from there, and no probe decides.",
            "Plan anew. Answers kept before can be read again: replay/RUN.",
        )
