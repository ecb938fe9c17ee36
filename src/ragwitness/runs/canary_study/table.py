"""Tables of the canary paper as TOML: conditions, seeds and what was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ragwitness.canary.design.draw import Design
from ragwitness.canary.design.families import Family
from ragwitness.canary.simulate.curation import Curation
from ragwitness.canary.simulate.feedback import VoteConfig
from ragwitness.canary.simulate.optimise import PolicyConfig
from ragwitness.canary.simulate.policies import Lora
from ragwitness.canary.simulate.reward import RewardConfig
from ragwitness.canary.simulate.trial import TrialConfig
from ragwitness.errors import InputError
from ragwitness.runs.tables import read_table

__all__ = ["Show", "StudyCase", "StudyTable", "WorldSpec", "load_study_table"]

Show = Literal["detection", "utility", "amplification"]


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Where examples and base model come from.

    Attributes:
        kind: ``toy`` or ``texts``.
        examples: Of a trial.
        corpus: File in the data folder, for ``texts``.
        model: Folder of a policy, or a cached hub name; empty trains one here.
        cut: Fields of how a corpus is made short.
        device: Of torch.
        dtype: Of the weights of ``model``; ``bfloat16`` where adapters alone are trained.
        training: Fields of the base's own training.
    """

    kind: Literal["toy", "texts"] = "toy"
    examples: int = 4000
    corpus: str = ""
    model: str = ""
    cut: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    dtype: str = "float32"
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StudyCase:
    """One condition.

    Attributes:
        label: Its name.
        world: Where examples come from.
        trial: Settings of every trial.
        seeds: Of the violating, then of the compliant trials.
        statistic: P-value that decides: a field of a trial's outcome.
        published: What the paper prints, by measure.
    """

    label: str
    world: WorldSpec
    trial: TrialConfig
    seeds: tuple[range, range]
    statistic: str
    published: Mapping[str, Any]

    @property
    def trials(self) -> list[tuple[int, bool]]:
        """Seed and arm of every trial, arms in turn, so that a part is balanced."""
        both = [(seed, True) for seed in self.seeds[0]] + [(seed, False) for seed in self.seeds[1]]
        return sorted(both, key=lambda one: (one[0], not one[1]))


@dataclass(frozen=True, slots=True)
class StudyTable:
    """One table or figure.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        show: Which measures.
        cases: Its conditions.
        note: What a reader must know.
    """

    name: str
    title: str
    show: Show
    cases: tuple[StudyCase, ...]
    note: str = ""

    def small(self, policies: int) -> StudyTable:
        """Return the table with at most so many policies in each arm.

        Raises:
            InputError: There would be none.
        """
        if policies < 1:
            raise InputError("A study needs one policy in each arm at least.")
        cases = [
            replace(one, seeds=(one.seeds[0][:policies], one.seeds[1][:policies]))
            for one in self.cases
        ]
        return replace(self, cases=tuple(cases))


def load_study_table(name: str, folder: Path) -> StudyTable:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"canary/table1"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, it is malformed, or a setting is outside its range.
    """
    data = read_table(name, folder)
    if "like" in data:  # what another table of the paper sets, but for its cases
        data = read_table(f"{name.partition('/')[0]}/{data['like']}", folder) | data
    try:
        cases = tuple(_case(row, data) for row in data["case"])
        show = data.get("show", "detection")
        if show not in get_args(Show):
            raise ValueError(f"show is one of {', '.join(get_args(Show))}")
        return StudyTable(name, data["title"], show, cases, data.get("note", ""))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _case(row: Mapping[str, Any], table: Mapping[str, Any]) -> StudyCase:
    """A condition, over what the table sets for all of them."""
    merged = {
        key: {**table.get(key, {}), **row.get(key, {})}
        for key in ("world", "design", "votes", "reward", "policy", "curation", "trial")
    }
    first = row.get("first_seed", table["first_seed"])
    counts = [row.get(arm, table.get(arm, 0)) for arm in ("violating", "compliant")]
    return StudyCase(
        label=row["label"],
        world=WorldSpec(**merged["world"]),
        trial=_trial(merged),
        seeds=(range(first, first + counts[0]), range(first, first + counts[1])),
        statistic=row.get("statistic", table.get("statistic", "p_gained")),
        published=row.get("published", {}),
    )


def _trial(given: Mapping[str, Mapping[str, Any]]) -> TrialConfig:
    design = {"family": Family(given["design"].get("family", "signature"))}
    own = dict(given["trial"])
    if "shares" in own:
        own["shares"] = tuple(own["shares"])
    return TrialConfig(
        design=Design(**dict(given["design"]) | design),
        votes=VoteConfig(**given["votes"]),
        reward=RewardConfig(**_with_lora(given["reward"])),
        policy=PolicyConfig(**_with_lora(given["policy"])),
        curation=Curation(**given["curation"]),
        **own,
    )


def _with_lora(given: Mapping[str, Any]) -> dict[str, Any]:
    lora = given.get("lora")
    return dict(given) | ({"lora": Lora(**lora)} if isinstance(lora, Mapping) else {})
