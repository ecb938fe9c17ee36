"""Which faults do the tests notice? Mutants of each room's core, drawn by seed, against its tests.

    pip install cosmic-ray
    PYTHONPATH=. python benchmarks/mutants.py --out build/mutants.jsonl [--count 200] [--seed 1]

Each mutant changes one place of one module, as the operators of cosmic-ray do (another sign,
comparison, number, or condition). The room's tests run on a copy of ``src`` with that one change,
until the first failure. A mutant whose tests fail, or take three times as long as without it, is
noticed. Mutants are drawn in equal parts from the rooms, from lines that are executed: annotations
and docstrings are left out. A run that was ended goes on where it stopped.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ragwitness.stats.evaluation import proportion_interval

ROOT = Path(__file__).resolve().parent.parent

CORE = {
    "attest": "attest/policy.py attest/openings.py attest/verifier/checks.py",
    "canary": "canary/rank_test.py canary/looks.py canary/verdict.py canary/draw.py",
    "collusion": "collusion/estimate.py collusion/detectors.py",
    "crypto": "crypto",
    "leakage": "leakage/score",
    "membership": "membership/verdicts.py membership/windows.py membership/assumptions.py"
    " membership/methods",
    "privacy": "privacy",
    "runner": "runner/budget.py runner/rate_limiter.py runner/response_store.py",
    "service": "service/meters.py service/policy.py service/retrieval.py",
    "stats": "stats",
    "synthesis": "synthesis/guard.py synthesis/private",
    "text": "text/words.py text/secrets.py text/overlap.py text/canonical.py",
}
"""The core of each room: modules whose faults make a verdict or a promise wrong."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        room: Whose tests should notice it.
        module: Below ``src/ragwitness``.
        operator: Of cosmic-ray.
        occurrence: Which place of the module, counted by that operator.
    """

    room: str
    module: str
    operator: str
    occurrence: int


def candidates(room: str) -> list[Mutant]:
    """Return every mutant of a room's core."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    home = ROOT / "src" / "ragwitness"
    paths = [home / name for name in CORE[room].split()]
    files = [
        f for path in paths for f in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]
    mutants = []
    for file in files:
        source = file.read_text(encoding="utf-8")
        nodes, executed = list(ast_nodes(get_ast(source))), executed_lines(source)
        module = file.relative_to(home).as_posix()
        for name in (name for name in operator_names() if "Variable" not in name):
            operator = get_operator(name)()
            places = (start for node in nodes for start, _ in operator.mutation_positions(node))
            mutants += [
                Mutant(room, module, name, occurrence)
                for occurrence, start in enumerate(places)
                if start[0] in executed
            ]
    return mutants


def executed_lines(source: str) -> set[int]:
    """Return the lines of a module on which statements inside functions are."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                if not (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                ):
                    lines |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, in equal parts from the rooms."""
    generator, share = random.Random(seed), -(-count // len(CORE))
    drawn = []
    for room in CORE:
        mutants = candidates(room)
        drawn += generator.sample(mutants, min(share, len(mutants)))
    generator.shuffle(drawn)
    return drawn[:count]


def tests_of(room: str) -> list[str]:
    """Return the arguments by which pytest runs a room's tests."""
    return [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow and not long",
        f"tests/unit/{room}",
    ]


def run_tests(room: str, source: Path, limit: float) -> str:
    """Run a room's tests on a copy of the package: ``passed``, ``failed`` or ``late``."""
    environment = {**os.environ, "PYTHONPATH": str(source), "HF_HUB_OFFLINE": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *tests_of(room)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return "late"
    return "failed" if done.returncode else "passed"


def apply(mutant: Mutant, source: Path) -> str:
    """Change the copy by a mutant; return the module as it was."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    file = source / "ragwitness" / mutant.module
    before = file.read_text(encoding="utf-8")
    after = mutate_code(before, get_operator(mutant.operator)(), mutant.occurrence)
    file.write_text(after if after is not None else before, encoding="utf-8")
    return before


def main() -> None:
    """Run the mutants that have no row yet, then print the share that is noticed by room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one for each mutant")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        [json.loads(line) for line in options.out.read_text().splitlines()]
        if options.out.exists()
        else []
    )
    finished = {tuple(row["mutant"]) for row in rows}
    limits: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        for mutant in draw(options.count, options.seed):
            key = (mutant.room, mutant.module, mutant.operator, mutant.occurrence)
            if key in finished:
                continue
            # The room's tests must pass without a change, and say how long they take.
            if mutant.room not in limits:
                begun = time.monotonic()
                if run_tests(mutant.room, source, 3600) != "passed":
                    sys.exit(f"the tests of {mutant.room} fail without a mutant")
                limits[mutant.room] = 30 + 3 * (time.monotonic() - begun)
            before = apply(mutant, source)
            outcome = run_tests(mutant.room, source, limits[mutant.room])
            (source / "ragwitness" / mutant.module).write_text(before, encoding="utf-8")
            rows.append({"mutant": key, "outcome": outcome})
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    noticed, drawn = Counter[str](), Counter[str]()
    for row in rows:
        drawn[row["mutant"][0]] += 1
        noticed[row["mutant"][0]] += row["outcome"] != "passed"
    for room in sorted(drawn):
        print(f"{room:12} {noticed[room]:4} of {drawn[room]}")
    low, high = proportion_interval(sum(noticed.values()), sum(drawn.values()))
    total = sum(noticed.values()) / max(1, sum(drawn.values()))
    print(f"noticed      {total:.3f} [{low:.3f}, {high:.3f}] of {sum(drawn.values())}")


if __name__ == "__main__":
    main()
