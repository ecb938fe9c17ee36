"""Queued: train the larger embedded reader (preset ``gpu``) in the minutes that a machine is lent.

``--fit SECONDS`` first trains for a minute to see how fast the machine is, then sets the number of
steps so that the run, its falling rates included, ends that many seconds after the script began.
Without it the preset's steps are trained until ``--stop-after``, and a further call resumes. Log,
checkpoint and ``weights.tar`` (in parts that a machine's limit on files lets pass) are put under
``$OUT``. ``--preset toy`` runs the same road on a CPU in seconds. See ``experiments/gpu/QUEUE.md``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import tarfile
import time
from pathlib import Path

import torch

from research.reader.config import PRESETS, TrainConfig
from research.reader.export import export
from research.reader.loop import run_training

_STATE = ("checkpoint.pt", "tokenizer.json", "log.jsonl")
_PART_BYTES = 15 << 20
_LOOK_SECONDS = 75.0  # long enough for the first compilation and some hundred steps
_END_SECONDS = 45.0  # the second compilation, the exports, the last copy


def bring_state(work: Path, earlier: Path | None) -> None:
    """Put the text of the CPU run, and an earlier call's state, where the run looks."""
    work.mkdir(parents=True, exist_ok=True)
    text = Path("build/reader/text")
    if text.is_dir() and not (work / "text").exists():
        shutil.copytree(text, work / "text")
    if earlier is not None:
        for name in _STATE:
            if (earlier / name).exists() and not (work / name).exists():
                shutil.copy2(earlier / name, work / name)


def seconds_per_step(log: Path, begun: int = 0) -> float:
    """Seconds that a step took in the second half of the logged steps, without compilation.

    ``begun`` lines are of earlier calls, whose seconds began anew.
    """
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()[begun:]]
    timed = [(line["step"], line["seconds"]) for line in lines if "tokens_per_second" in line]
    if len(timed) < 2:
        raise RuntimeError(f"only {5 * len(timed)} steps: too few to tell how long one takes")
    (first, since), (last, ended) = timed[len(timed) // 2 - 1], timed[-1]
    return max(ended - since, 0.1) / (last - first)


def fitted(config: TrainConfig, work: Path, out: Path, until: float) -> TrainConfig:
    """Train a little, and set the steps so that the run ends at ``until`` (``time.monotonic``)."""
    look = min(_LOOK_SECONDS, (until - time.monotonic()) / 4)
    first = dataclasses.replace(config.schedule, steps=100_000, export_steps=100_000)
    log = work / "log.jsonl"
    before = len(log.read_text("utf-8").splitlines()) if log.exists() else 0
    seen = run_training(dataclasses.replace(config, schedule=first), work, out, look)
    each = seconds_per_step(log, before)
    left = until - time.monotonic() - min(_END_SECONDS, look)
    steps = seen.step + max(1, int(0.95 * left / each))
    print(f"a step takes {each * 1000:.0f} ms: {steps} steps", flush=True)
    return dataclasses.replace(config, schedule=dataclasses.replace(config.schedule, steps=steps))


def pack(folder: Path, out: Path) -> None:
    """``folder`` as ``weights.tar.00``, ``.01``, ... in ``out``; ``cat`` joins them."""
    whole = out / "weights.tar"
    with tarfile.open(whole, "w") as archive:
        archive.add(folder, arcname="weights")
    data = whole.read_bytes()
    whole.unlink()
    for number, at in enumerate(range(0, len(data), _PART_BYTES)):
        (out / f"weights.tar.{number:02d}").write_bytes(data[at : at + _PART_BYTES])


def main() -> None:
    """Run one call."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="gpu")
    parser.add_argument("--work", type=Path, default=Path("build/reader_large"))
    parser.add_argument("--resume-from", type=Path, default=None)
    parser.add_argument("--tokenizer", type=Path, default=None, help="in place of a trained one")
    parser.add_argument("--fit", type=float, default=None, help="seconds for the whole run")
    parser.add_argument("--stop-after", type=float, default=500.0, help="seconds of training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # Products of the optimiser in TF32: they only turn the update.
    torch.set_float32_matmul_precision("high")
    out = Path(os.environ.get("OUT", "build/reader_large_out"))
    out.mkdir(parents=True, exist_ok=True)
    bring_state(options.work, options.resume_from)
    if options.tokenizer is not None:
        shutil.copy2(options.tokenizer, options.work / "tokenizer.json")
    config = dataclasses.replace(PRESETS[options.preset], seed=options.seed)
    weights, stop_after = options.work / "weights", options.stop_after
    if options.fit is not None:
        config = fitted(config, options.work, weights, begun + options.fit)
        stop_after = begun + options.fit - time.monotonic()
    run = run_training(config, options.work, weights, stop_after)
    export(run.reader, run.vocabulary, weights)
    pack(weights, out)
    for name in _STATE:
        if (options.work / name).exists():
            shutil.copy2(options.work / name, out / name)
    print(f"step {run.step} of {config.schedule.steps}")


if __name__ == "__main__":
    main()
