"""``python -m research.reader``: train the reader; run it again to resume."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from ragwitness.models.reader.model import PACKAGED_WEIGHTS
from research.reader.config import PRESETS
from research.reader.loop import train


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m research.reader", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=PACKAGED_WEIGHTS, help="folder for the exported weights"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/reader"), help="text, tokenizer, checkpoint, log"
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--stop-after", type=float, default=None, help="leave after so many seconds, resumable"
    )
    arguments = parser.parse_args()
    config = dataclasses.replace(PRESETS[arguments.preset], seed=arguments.seed)
    if arguments.stop_after is not None and config.processes > 1:
        parser.error(
            "--stop-after needs a preset of one process (gpu, toy); stop this one with Ctrl-C"
        )
    train(config, arguments.work, arguments.out, arguments.stop_after)


if __name__ == "__main__":
    main()
