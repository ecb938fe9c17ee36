"""Audits by the commands alone, of services that train a policy on what they were sent or not.

    PYTHONPATH=. python experiments/canary/by_commands.py --out build/experiments/canary/by-commands

Each run draws, plants over HTTP, waits while the service trains, and probes; the draw is the
command's own. A run that is in the journal is not repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from research.canary.policies import load_base
from research.canary.study import WorldFolders, load_study_table, prepare_base
from tests.support.training_service import audit_by_commands


def command(*arguments: object) -> tuple[int, str]:
    """Run a command in a process of its own."""
    program = [sys.executable, "-m", "ragwitness", *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> None:
    """Run what the journal lacks, a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--first-seed", type=int, default=7000)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    world = load_study_table("canary/traces", Path("experiments")).cases[0].world
    base = load_base(str(prepare_base(world, WorldFolders(None, Path("build/reproduce/bases")))))
    journal = given.out / "runs.jsonl"
    lines = journal.read_text().splitlines() if journal.is_file() else []
    done = {(row["seed"], row["documents"]) for row in map(json.loads, lines)}
    for seed in range(given.first_seed, given.first_seed + given.runs):
        for documents in (True, False):
            if (seed, documents) in done:
                continue
            started = time.process_time()
            place = (
                given.out / f"{seed}-{'violating' if documents else 'compliant'}-{time.time_ns()}"
            )
            found = audit_by_commands(command, place, base, seed, documents=documents)
            row = {"seed": seed, "documents": documents, **asdict(found),
                   "cpu": round(time.process_time() - started)}  # fmt: skip
            with journal.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
