"""Queued: train the larger embedded reader (preset ``gpu``) in calls of at most ten minutes.

Every call resumes from the checkpoint in ``--work`` (or, on a fresh machine, from the one an
earlier call left in ``--resume-from``), trains until ``--stop-after`` seconds have passed, and puts
checkpoint, log and exported weights under ``$OUT``. ``--preset toy`` runs the same road on a CPU in
seconds. See ``experiments/gpu/QUEUE.md`` for the command lines.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
from pathlib import Path

from research.reader.config import PRESETS
from research.reader.loop import run_training


def bring_state(work: Path, earlier: Path | None) -> None:
    """Put text and tokenizer of the CPU run, and an earlier checkpoint, where the run looks."""
    work.mkdir(parents=True, exist_ok=True)
    text = Path("build/reader/text")
    if text.is_dir() and not (work / "text").exists():
        shutil.copytree(text, work / "text")
    if earlier is not None:
        for name in ("checkpoint.pt", "tokenizer.json", "log.jsonl"):
            if (earlier / name).exists() and not (work / name).exists():
                shutil.copy2(earlier / name, work / name)


def main() -> None:
    """Run one call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="gpu")
    parser.add_argument("--work", type=Path, default=Path("build/reader_large"))
    parser.add_argument("--resume-from", type=Path, default=None)
    parser.add_argument("--stop-after", type=float, default=500.0, help="seconds of training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "build/reader_large_out"))
    out.mkdir(parents=True, exist_ok=True)
    bring_state(options.work, options.resume_from)
    config = dataclasses.replace(PRESETS[options.preset], seed=options.seed)
    run = run_training(config, options.work, out / "weights", options.stop_after)
    for name in ("checkpoint.pt", "tokenizer.json", "log.jsonl"):
        if (options.work / name).exists():
            shutil.copy2(options.work / name, out / name)
    print(f"step {run.step} of {config.schedule.steps}")


if __name__ == "__main__":
    main()
