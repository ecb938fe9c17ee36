"""Trials side by side in processes; each is in the journal once it is done, and never run again."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.canary.simulate.trial import run_trial
from ragwitness.errors import InputError, ModelError, RagwitnessError
from ragwitness.runs.appending import Appender
from ragwitness.runs.canary_study.table import StudyCase, StudyTable
from ragwitness.runs.canary_study.worlds import (
    WorldFolders,
    base_contents,
    make_world,
    prepare_base,
)

__all__ = ["run_study"]

JOURNAL = "policies.jsonl"
"""One line per trained policy."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """One trial to run."""

    case: StudyCase
    seed: int
    violating: bool
    folders: WorldFolders
    key: str


def run_study(
    table: StudyTable,
    folders: WorldFolders,
    out: Path,
    *,
    processes: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> list[tuple[StudyCase, list[Outcome]]]:
    """Train and audit every policy of a table that the journal does not hold.

    Args:
        table: Conditions.
        folders: Corpora, and where bases are kept.
        out: Folder of the journal.
        processes: Policies trained at once, one thread each.
        say: Told of every policy.

    Returns:
        The outcomes of each condition, by seed.

    Raises:
        InputError: A corpus is missing, or a setting is unusable.
        MissingExtraError: torch or transformers is not installed.
    """
    if processes < 1:
        raise InputError("At least one process is needed.")
    units = [
        _Unit(case, seed, violating, folders, _key(case, seed, violating, folders))
        for case in table.cases
        for seed, violating in case.trials
    ]
    # Conditions that tables of one paper share are trained once.
    beside = sorted(out.parent.glob(f"*/{JOURNAL}"))
    done = {key: row for path in beside for key, row in _read(path).items()}
    for case in table.cases:
        if any(unit.case is case and unit.key not in done for unit in units):
            prepare_base(case.world, folders, say)
    journal = Appender(out / JOURNAL, "journal")
    try:
        for unit, outcome in _results([u for u in units if u.key not in done], processes):
            done[unit.key] = outcome
            journal.append({"key": unit.key, "case": unit.case.label, "outcome": outcome})
            say(_told(unit, outcome))
    finally:
        journal.close()
    return [
        (case, [_outcome(done[unit.key]) for unit in units if unit.case is case])
        for case in table.cases
    ]


def _results(units: list[_Unit], processes: int) -> Iterator[tuple[_Unit, dict[str, Any]]]:
    if processes == 1:
        for unit in units:
            yield unit, _run(unit)
        return
    # Not forked: torch's threads would be copied in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = {pool.submit(_run, unit): unit for unit in units}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise RagwitnessError(
                "A process that trained a policy was ended from outside, as for want of memory.",
                "Take fewer --processes; the same command goes on with the next policy.",
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(unit: _Unit) -> dict[str, Any]:
    from ragwitness.canary.simulate.policies import one_thread

    one_thread(unit.case.world.device)
    world = _world(unit.case, unit.folders)
    try:
        return asdict(run_trial(world, unit.case.trial, unit.seed, violating=unit.violating))
    except ModelError as error:  # diverged: a result, and reported as one
        return _diverged(unit, error.message)


@lru_cache(maxsize=2)
def _loaded(spec: str, folders: WorldFolders) -> Any:
    return make_world(json.loads(spec), folders)


def _world(case: StudyCase, folders: WorldFolders) -> Any:
    return _loaded(json.dumps(asdict(case.world), sort_keys=True), folders)


def _diverged(unit: _Unit, why: str) -> dict[str, Any]:
    """No evidence whatever: p = 1; the zeros stand in no mean."""
    return {
        "seed": unit.seed, "violating": unit.violating, "p_plain": 1.0, "p_instructed": 1.0,
        "p_gained": 1.0, "p_named": 1.0, "amplification": 0.0, "base_amplification": 0.0,
        "gained": 0.0, "reward_bias": 0.0, "behaviour": {}, "before": {},
        "rewards": (0.0, 0.0), "kl": 0.0,
        "collapsed": f"diverged: {why}", "dropped": {}, "traces": (0, 0), "seconds": {},
    }  # fmt: skip


def _key(case: StudyCase, seed: int, violating: bool, folders: WorldFolders) -> str:
    content = {  # where it is computed is no part of what is asked
        "base": base_contents(case.world, folders),
        "examples": case.world.examples,
        "trial": asdict(case.trial),
        "seed": seed,
        "violating": violating,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Outcomes by key; what a kill cut short, or another version wrote, is run again."""
    found: dict[str, dict[str, Any]] = {}
    if not path.is_file():
        return found
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
            _outcome(row["outcome"])
            found[row["key"]] = row["outcome"]
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _outcome(row: Mapping[str, Any]) -> Outcome:
    own = dict(row)
    return Outcome(**own | {"rewards": tuple(own["rewards"]), "traces": tuple(own["traces"])})


def _told(unit: _Unit, outcome: Mapping[str, Any]) -> str:
    arm = "violating" if unit.violating else "compliant"
    state = f", collapsed: {outcome['collapsed']}" if outcome["collapsed"] else ""
    value = outcome[unit.case.statistic]
    seconds = sum(outcome["seconds"].values())
    return f"{unit.case.label}: {arm} {unit.seed}, p = {value:.3f}{state} ({seconds:.0f} CPU-s)"
