"""A full audit window on real documents: every phase by its command, its time, its memory.

PYTHONPATH=. python experiments/attest/window.py --data DIR [--window wide]

Doctors' answers are indexed, patients' questions ask. config.toml names the windows that there are.
Each phase is a process of its own and is left out where its result is there: the same command
resumes, a new `--out` starts anew.
Verification runs in an empty folder that holds the bundle and the trust file, nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import HERE, Paths, Run, load_config


@dataclass(frozen=True)
class Phase:
    """A step of the protocol, in a process of its own.

    Attributes:
        name: Shown, and the key of its figures.
        command: What is run.
        leaves: Files whose sizes are told.
        alone: Files copied into an empty folder where it runs; None runs it here.
    """

    name: str
    command: list[str]
    leaves: tuple[Path, ...] = ()
    alone: tuple[Path, ...] | None = None


def phases(paths: Paths, data: Path, which: str) -> list[Phase]:
    """Return all phases in order: A commit, B serve, C close, D challenge to verify."""
    config = load_config(which)

    def step(name: str) -> list[str]:
        """A process that does a step of this experiment."""
        where = ["--data", str(data), "--out", str(paths.out), "--window", which]
        return [sys.executable, str(Path(__file__).resolve()), *where, "--step", name]

    def command(text: str) -> list[str]:
        return [sys.executable, "-m", "ragwitness", *text.split()]

    policy, keys = HERE / config["policy"], f"--key {paths.key}"
    public = paths.window / "public"
    indexed = f"--index {config['tenant']}={paths.corpus}"
    opened = f"{keys} --name clinic.example/log -o {paths.window}"
    opened += f" --embedder {config['embedder']}"
    drawn = f"--records {config['challenged']} --trust {paths.trust} -o {paths.challenge}"
    handed = (paths.bundle, paths.trust)
    checked = f"verify {paths.bundle.name} --trust {paths.trust.name}"
    attacks = []
    if config["attacked"]:
        attacks = [Phase("attack", step("attack"))]
    again = f"--receipt receipts --embedder {config['embedder']}"
    return [
        Phase("texts", step("texts")),
        Phase(
            "commit",
            command(f"attest commit --policy {policy} {indexed} {opened}"),
            (public,),
        ),
        # The auditor's: a value that enters the noise once the opening was shown.
        Phase("beacon", command(f"attest beacon {public} --trust {paths.trust} -o {paths.beacon}")),
        Phase("begin", command(f"attest begin {paths.window} {paths.beacon} {keys}")),
        Phase("serve", step("serve"), (public / "log", public / "tile")),
        Phase("close", command(f"attest close {paths.window} {keys}")),
        # The auditor's: it knows the log's key from the provider's site.
        Phase("challenge", command(f"attest challenge {public} {drawn}")),
        Phase("pin", command(f"attest pin {public} --trust {paths.trust} --policy")),
        Phase(
            "prove",
            command(f"attest prove {paths.window} {paths.challenge} {keys} -o {paths.bundle}"),
            (paths.bundle,),
        ),
        *attacks,
        Phase(
            "verify",
            command(f"{checked} --json"),
            alone=handed,
        ),
        Phase(  # what the accounts hand in, and what only who has the embedder can look at
            "verify, receipts and texts too",
            command(f"{checked} {again} --json"),
            alone=(*handed, paths.out / "receipts"),
        ),
    ]


def run_phase(phase: Phase) -> dict[str, Any]:
    """Run a phase and return its seconds, its memory and what it printed last."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as empty:
        where = None
        if phase.alone is not None:
            where = empty
            for path in phase.alone:
                copied = shutil.copytree if path.is_dir() else shutil.copy
                copied(path, Path(empty, path.name))
        child = subprocess.Popen(phase.command, cwd=where, stdout=subprocess.PIPE, text=True)
        said = "" if child.stdout is None else child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
    print(said, end="", flush=True)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise SystemExit(f"{phase.name} ended with {code}.")
    return {
        "wall s": time.perf_counter() - started,
        "CPU s": used.ru_utime + used.ru_stime,
        "memory MB": used.ru_maxrss / 1024,
        "bytes": {path.name: _size(path) for path in phase.leaves},
        "said": json.loads(said) if said.startswith("{") else said,
    }


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def table(figures: dict[str, Any]) -> str:
    """Return the phases as Markdown."""
    lines = ["| phase | wall, s | CPU, s | memory, MB | leaves |", "|---|---|---|---|---|"]
    for name, one in figures.items():
        sizes = ", ".join(f"{file} {size:,} bytes" for file, size in one["bytes"].items())
        numbers = (f"{one[key]:,.1f}" for key in ("wall s", "CPU s", "memory MB"))
        lines.append(f"| {name} | {' | '.join(numbers)} | {sizes} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--window", choices=["window", "wide"], default="window")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--step", choices=["texts", "serve", "attack"])
    options = parser.parse_args()
    paths = Paths(options.out or Path("build/experiments/attest") / options.window)
    if options.step:
        run = Run(load_config(options.window), options.data, paths)
        print(json.dumps(getattr(run, options.step)()))
        return
    paths.out.mkdir(parents=True, exist_ok=True)
    todo = phases(paths, options.data, options.window)
    figures = json.loads(paths.figures.read_text()) if paths.figures.exists() else {}
    for phase in todo:
        if phase.name in figures:
            continue
        print(f"== {phase.name}", flush=True)
        figures[phase.name] = run_phase(phase)
        paths.figures.write_text(json.dumps(figures, indent=1) + "\n")
    print(table(figures))


if __name__ == "__main__":
    main()
