"""Queued: the canaries' study at GPU size (``experiments/canary/gpu.toml``), ten minutes a call.

Every call goes on from the journal in ``--work`` (or, on a fresh machine, from the one an earlier
call left in ``--resume-from``), trains policies until ``--stop-after`` seconds would be passed, and
puts journal and results so far under ``$OUT``. ``--fit SECONDS`` trains bases in place of policies:
those of the table's cases side by side, with as many steps as the machine does in that time; the
one that obeys best comes back under ``$OUT``, for ``--bases-from`` of later calls. ``--preset toy``
runs the same road on a CPU in a minute. See ``experiments/gpu/QUEUE.md`` for the command lines.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import shutil
import tarfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from ragwitness.errors import RagwitnessError
from research.canary.policies import one_thread
from research.canary.report import Results, study_json, study_markdown, study_svg
from research.canary.study import (
    StudyCase,
    StudyTable,
    WorldFolders,
    WorldSpec,
    gate,
    load_study_table,
    prepare_base,
    run_study,
    start_of,
)
from research.canary.worlds import Cut, Obedience, Pretraining, text_base

_PART_BYTES = 15 << 20
_LOOK = 40  # steps that tell how long one takes

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
    if options.settings is not None:
        tried = load_study_table("canary/tune", folder).cases
        named = [one for one in tried if options.settings in one.label]
        if len(named) != 1:
            raise SystemExit(
                f"{len(named)} cases of tune have {options.settings!r} in their label."
            )
        cases = [as_tuned(one, named[0]) for one in cases]
    if options.preset == "toy":
        cases = [toy(one) for one in cases]
    if options.weights is not None:
        cases = [with_weights(one, options.weights) for one in cases]
    if options.first_seed is not None:
        cases = [from_seed(one, options.first_seed) for one in cases]
    table = replace(table, cases=tuple(cases))
    return table.small(options.policies) if options.policies else table


def as_tuned(case: StudyCase, tuned: StudyCase) -> StudyCase:
    """Take the settings of a case of ``tune``, but for what this case is about: its design."""
    own = tuned.trial
    design = replace(case.trial.design, rate=own.design.rate)
    trial = replace(
        case.trial, design=design, votes=own.votes, reward=own.reward, policy=own.policy
    )
    return replace(case, trial=trial)


def toy(case: StudyCase) -> StudyCase:
    """Shrink a case to seconds on a CPU: it shows that the road is open, and nothing else."""
    rate = case.world.training.get("rate", 1e-3)
    training = {"width": 32, "layers": 1, "steps": 40, "batch": 16, "longest": 512, "rate": rate}
    cut = {**case.world.cut, "words": 24, "answer": 5}
    world = replace(case.world, device="cpu", examples=160, cut=cut, gate=False, start=False,
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


def fitted_base(
    world: WorldSpec, folders: WorldFolders, until: float
) -> tuple[WorldSpec, Path, Obedience | None]:
    """Train a base with the steps that fit until ``time.time()`` is there, and look what it does.

    Its weights are kept in half precision, so that they travel; every policy begins at those.
    """
    one_thread(world.device)
    how, cut = Pretraining(**world.training), Cut(**world.cut)

    def seconds(steps: int) -> float:
        """Those included in which a GPU still works on what it was given."""
        import torch

        begun = time.monotonic()
        text_base(folders.corpus(world.corpus), cut, replace(how, steps=steps))
        if torch.get_default_device().type == "cuda":
            torch.cuda.synchronize()
        return time.monotonic() - begun

    seconds(2)  # loads what the first call of all loads
    each = max(1e-3, seconds(2 + _LOOK) - seconds(2)) / _LOOK
    steps = max(1, min(how.steps, int((until - time.time()) / each)))
    print(f"rate {how.rate:g}: a step takes {each * 1000:.0f} ms, {steps} steps", flush=True)
    world = replace(world, training={**world.training, "steps": steps}, gate=False)
    folder = Path(prepare_base(world, folders, print))
    _halve(folder / "model.safetensors")
    try:
        seen = gate(replace(world, gate=True), folders, print)
    except RagwitnessError as error:
        print(f"rate {how.rate:g}: {error}", flush=True)
        seen = None
    return world, folder, seen


def _halve(path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    with torch.device("cpu"):
        kept = {name: value.half() for name, value in load_file(path).items()}
        save_file(kept, path, metadata={"format": "pt"})


def train_bases(table: StudyTable, folders: WorldFolders, out: Path, seconds: float) -> None:
    """Train the bases of a table's cases side by side; the best one is put under ``out``."""
    until = time.time() + seconds
    worlds = [case.world for case in table.cases]
    for world in worlds:
        if world.start:
            prepare_base(start_of(world), folders, print)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(worlds), mp_context=context) as pool:
        found = list(pool.map(fitted_base, worlds, [folders] * len(worlds), [until] * len(worlds)))
    told = []
    for world, folder, seen in found:
        shares = {} if seen is None else {**seen.hits, "plain": seen.plain, "bare": seen.bare}
        told.append({"training": dict(world.training), "base": folder.name, "hits": shares})
    (out / "bases.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told), flush=True)
    pack(max(found, key=lambda one: 0 if one[2] is None else one[2].hits["t"])[1], out)


def pack(folder: Path, out: Path) -> None:
    """Put a base under ``out``, in parts that a machine's limit on files lets pass."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(folder, arcname=folder.name)
    data = whole.getvalue()
    for number, at in enumerate(range(0, len(data), _PART_BYTES)):
        (out / f"base.tar.{number:02d}").write_bytes(data[at : at + _PART_BYTES])


def bring_bases(bases: Path, earlier: Path | None) -> None:
    """Unpack the base of an earlier call."""
    if earlier is not None:
        data = b"".join(path.read_bytes() for path in sorted(earlier.glob("base.tar.*")))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(bases, filter="data")


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
    parser.add_argument("--fit", type=float, default=None, help="seconds of bases alone")
    parser.add_argument("--bases-from", type=Path, default=None, help="$OUT of a call with --fit")
    parser.add_argument("--settings", default=None, help="label of a case of tune to go by")
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
    bring_bases(folders.bases, options.bases_from)
    if options.fit is not None:
        train_bases(table, folders, out, options.fit)
        return
    most = max(max(map(len, one.seeds)) for one in table.cases)

    def say(told: str) -> None:
        print(told, flush=True)
        if (work / JOURNAL).exists():  # each policy comes back, even if the call is cut off
            shutil.copy2(work / JOURNAL, out / JOURNAL)

    longest = 0.0
    together = max(1, options.processes // len(table.cases))
    for count in range(together, most + together, together):  # as many of every case
        begun = time.monotonic()
        results = run_study(table.small(count), folders, work, processes=options.processes, say=say)
        write(table.small(count), results, out)
        longest = max(longest, time.monotonic() - begun)
        print(f"{min(count, most)} of {most} policies in each arm", flush=True)
        if time.monotonic() - started + longest > options.stop_after:
            break


if __name__ == "__main__":
    try:
        main()
    except RagwitnessError as error:
        raise SystemExit(str(error)) from None
