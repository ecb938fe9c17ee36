"""One piece of the canaries' study: ten minutes at most; the same call goes on where it stopped.

::

    export PYTHONPATH=.
    python experiments/gpu/canary.py MODEL --data DIR --state build/gpu/canary --out $OUT
    python experiments/gpu/canary.py --table table1 --state build/gpu/toy   # a toy world

``MODEL`` is the folder of a chat model; without one the toy's is trained. ``--state`` holds the
policies that are done and the training that was broken off; ``--out`` gets a copy, for a machine
that is given back after each piece. Ends with 0 where nothing is left, else with 3.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from research.canary.policies import one_thread
from research.canary.study import reproduce_study

LEFT = 3
_TABLES = Path(__file__).resolve().parent.parent


def piece(table: str, state: Path, *, model: str | None = None, data: Path | None = None,
          minutes: float = 8.0, tables: Path = _TABLES) -> int:  # fmt: skip
    """Run one piece; return how many policies are left."""
    name = f"canary/{table}"
    reproduce_study(name, tables, state, data=data, model=model, minutes=minutes)
    return int(json.loads((state / name / "table.json").read_text())["left"])


def main() -> int:
    """Run the piece that the command line asks for."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--table", default="real")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args()
    one_thread("cuda" if torch.cuda.is_available() else "cpu")
    left = piece(options.table, options.state, model=options.model, data=options.data,
                 minutes=options.minutes)  # fmt: skip
    if options.out is not None:
        shutil.copytree(options.state, options.out, dirs_exist_ok=True)
    print(f"{left} policies are left.")
    return LEFT if left else 0


if __name__ == "__main__":
    sys.exit(main())
