"""Queued: the canaries' study at GPU size (``experiments/canary/gpu.toml``), ten minutes a call.

Every call goes on from the journal in ``--work`` (or, on a fresh machine, from the one an earlier
call left in ``--resume-from``), trains policies until ``--stop-after`` seconds would be passed, and
puts journal and results so far under ``$OUT``. ``--preset toy`` runs the same road on a CPU in a
minute. See ``experiments/gpu/QUEUE.md`` for the command lines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from ragwitness.errors import RagwitnessError
from research.canary.report import Results, study_json, study_markdown, study_svg
from research.canary.study import StudyCase, StudyTable, WorldFolders, load_study_table, run_study

TABLES = Path(__file__).parents[1] / "canary" / "gpu.toml"
JOURNAL = "policies.jsonl"


def load_table(options: argparse.Namespace) -> StudyTable:
    """Read the table, and cut it down to what the options ask for."""
    folder = options.work / "tables"
    (folder / "canary").mkdir(parents=True, exist_ok=True)
    shutil.copy2(TABLES, folder / "canary" / "tables.toml")
    table = load_study_table(f"canary/{options.table}", folder)
    cases = [one for one in table.cases if options.case in one.label]
    if not cases:
        raise SystemExit(f"No case of {table.name} has {options.case!r} in its label.")
    if options.preset == "toy":
        cases = [toy(one) for one in cases]
    if options.weights is not None:
        cases = [with_weights(one, options.weights) for one in cases]
    if options.first_seed is not None:
        cases = [from_seed(one, options.first_seed) for one in cases]
    table = replace(table, cases=tuple(cases))
    return table.small(options.policies) if options.policies else table


def toy(case: StudyCase) -> StudyCase:
    """Shrink a case to seconds on a CPU: it shows that the road is open, and nothing else."""
    training = {"width": 32, "layers": 1, "steps": 40, "batch": 16, "longest": 512}
    cut = {**case.world.cut, "words": 24, "answer": 5}
    world = replace(case.world, device="cpu", examples=160, cut=cut, gate=False,
                    training={} if case.world.model else training)  # fmt: skip
    trial = replace(
        case.trial,
        design=replace(case.trial.design, rate="0.4", candidates=8),
        policy=replace(case.trial.policy, prompts=8, longest=6),
        shares=("0.5", "0.3"),
        held_out=2,
        tested=4,
    )
    one = replace(case, world=world, trial=trial)
    return from_seed(replace(one, seeds=(case.seeds[0][:1], case.seeds[1][:1])), 0)


def with_weights(case: StudyCase, folder: Path) -> StudyCase:
    """Take the model's files from a folder of its name, where there is one."""
    own = folder / case.world.model.rpartition("/")[2]
    if not case.world.model or not own.is_dir():
        return case
    return replace(case, world=replace(case.world, model=str(own)))


def from_seed(case: StudyCase, first: int) -> StudyCase:
    """Move the seeds of both arms."""
    violating, compliant = (range(first, first + len(one)) for one in case.seeds)
    return replace(case, seeds=(violating, compliant))


def bring_journal(work: Path, earlier: Path | None) -> None:
    """Put an earlier call's journal where the run looks."""
    if earlier is not None and (earlier / JOURNAL).exists() and not (work / JOURNAL).exists():
        work.mkdir(parents=True, exist_ok=True)
        shutil.copy2(earlier / JOURNAL, work / JOURNAL)


def write(table: StudyTable, results: Results, out: Path) -> None:
    """Put the results where they come back from."""
    data = json.dumps(study_json(table, results), indent=1, ensure_ascii=False, allow_nan=False)
    for name, text in (
        ("table.md", study_markdown(table, results)),
        ("table.svg", study_svg(table, results)),
        ("table.json", data + "\n"),
    ):
        (out / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Run one call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="table1")
    parser.add_argument("--case", default="", help="part of the labels to run")
    parser.add_argument("--preset", choices=("gpu", "toy"), default="gpu")
    parser.add_argument("--data", type=Path, default=Path("build/gpu/data"))
    parser.add_argument("--weights", type=Path, default=None, help="folder of model folders")
    parser.add_argument("--work", type=Path, default=Path("build/gpu/canary"))
    parser.add_argument("--resume-from", type=Path, default=None)
    parser.add_argument("--policies", type=int, default=None, help="most in each arm")
    parser.add_argument("--first-seed", type=int, default=None, help="0 to tune")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--stop-after", type=float, default=500.0, help="seconds")
    options = parser.parse_args()
    started = time.monotonic()
    out = Path(os.environ.get("OUT", options.work / "out"))
    out.mkdir(parents=True, exist_ok=True)
    table = load_table(options)
    work = options.work / table.name
    bring_journal(work, options.resume_from)
    if (work / JOURNAL).exists():
        shutil.copy2(work / JOURNAL, out / JOURNAL)
    folders = WorldFolders(options.data, options.work / "bases")
    most = max(max(map(len, one.seeds)) for one in table.cases)

    def say(told: str) -> None:
        print(told, flush=True)
        if (work / JOURNAL).exists():  # each policy comes back, even if the call is cut off
            shutil.copy2(work / JOURNAL, out / JOURNAL)

    longest = 0.0
    for count in range(1, most + 1):  # every case has as many policies, whenever it stops
        begun = time.monotonic()
        results = run_study(table.small(count), folders, work, processes=options.processes, say=say)
        write(table.small(count), results, out)
        longest = max(longest, time.monotonic() - begun)
        print(f"{count} of {most} policies in each arm", flush=True)
        if time.monotonic() - started + longest > options.stop_after:
            break


if __name__ == "__main__":
    try:
        main()
    except RagwitnessError as error:
        raise SystemExit(str(error)) from None
