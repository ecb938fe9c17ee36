"""Which faults do the tests notice? Mutants of each room's core, drawn by seed, against its tests.

    pip install cosmic-ray coverage
    PYTHONPATH=. python benchmarks/mutants.py --out build/mutants.jsonl [--count 200] [--seed 1]

Each mutant changes one place of one module, as the operators of cosmic-ray do (another sign,
comparison, number, or condition). Mutants are drawn in equal parts from the rooms, from lines that
are executed: annotations and docstrings are left out.

First, every folder of tests runs once under coverage, which writes to ``build/traces`` which lines
each test executes. A mutant is then tried on a copy of ``src`` by the tests that execute its line,
those of its room and the quickest first, until one fails. A mutant whose tests fail, or take three
times as long as without it, is noticed. A mutant on a line that no test executes is not noticed. At
the end, the tests that noticed a mutant must pass without one. A run that was ended goes on where
it stopped.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "src" / "ragwitness"
TRACES = ROOT / "build" / "traces"

CORE = {
    "attest": "attest/policy.py attest/openings.py attest/verifier/checks.py",
    "canary": "canary/rank_test.py canary/looks.py canary/verdict.py canary/draw.py",
    "collusion": "collusion/estimate.py collusion/detectors.py",
    "crypto": "crypto",
    "leakage": "leakage/score",
    "membership": "membership/verdicts.py membership/windows.py membership/assumptions.py"
    " membership/methods membership/response_parsing",
    "privacy": "privacy",
    "runner": "runner/budget.py runner/rate_limiter.py runner/response_store.py",
    "service": "service/meters.py service/policy.py service/retrieval.py",
    "stats": "stats",
    "synthesis": "synthesis/guard.py synthesis/private",
    "text": "text/words.py text/secrets.py text/overlap.py",
}
"""The core of each room: modules whose faults make a verdict or a promise wrong."""

TESTS = [*(f"unit/{room}" for room in CORE), "unit/comparison", "unit/evidence", "unit/report"]
TESTS += ["unit/rag", "unit/testing", "unit/test_api.py", "golden"]
"""The folders of tests that can notice a mutant: those of the rooms, and of rooms above them."""

PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not long"]
PLUGINS = "_hypothesis_pytestplugin ragwitness.testing.pytest_plugin xdist.plugin"
PYTEST += [argument for name in PLUGINS.split() for argument in ("-p", name)]
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

IMPORTS = "cryptography.x509 httpx2 hypothesis jinja2 numpy pydantic rapidfuzz scipy.optimize"
IMPORTS += " scipy.stats sklearn.linear_model sklearn.metrics"
"""Modules of other packages that many tests import, and that take long."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        room: Whose tests should notice it.
        module: Below ``src/ragwitness``.
        operator: Of cosmic-ray.
        occurrence: Which place of the module, counted by that operator.
        line: Of that place.
    """

    room: str
    module: str
    operator: str
    occurrence: int
    line: int


@dataclass
class Tracer:
    """A plugin of pytest that gives each test a context of its own, and times it."""

    coverage: Any
    seconds: dict[str, float] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run a test in its context."""
        self.coverage.switch_context(item.nodeid)
        begun = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - begun
        return result


def core_files(room: str) -> list[Path]:
    """Return the modules of a room's core."""
    paths = [HOME / name for name in CORE[room].split()]
    return [
        file
        for path in paths
        for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]


def trace(folder: str) -> None:
    """Write which lines of the core each test of a folder executes, and its seconds."""
    from coverage import Coverage

    files = {str(file): file for room in CORE for file in core_files(room)}
    coverage = Coverage(data_file=None, include=list(files), config_file=False)
    tracer = Tracer(coverage)
    coverage.start()
    status = pytest.main([*PYTEST, str(ROOT / "tests" / folder)], plugins=[tracer])
    coverage.stop()
    if status:
        sys.exit(f"the tests of {folder} fail without a mutant")
    lines: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for path, file in files.items():
        for line, tests in coverage.get_data().contexts_by_lineno(path).items():
            for test in tests:
                lines[test][file.relative_to(HOME).as_posix()].append(line)
    rows = {test: [seconds, lines[test]] for test, seconds in tracer.seconds.items()}
    trace_file(folder).write_text(json.dumps(rows))


def trace_file(folder: str) -> Path:
    """Return where the trace of a folder of tests is."""
    return TRACES / f"{folder.replace('/', '-')}.json"


def read_traces() -> tuple[dict[str, float], dict[tuple[str, int], list[str]]]:
    """Trace the folders that have no trace yet; return the seconds and the tests of each line."""
    TRACES.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, float] = {}
    tests: dict[tuple[str, int], list[str]] = defaultdict(list)
    for folder in TESTS:
        if not trace_file(folder).exists():
            subprocess.run([sys.executable, __file__, "--trace", folder], cwd=ROOT, check=True)
        for test, (duration, modules) in json.loads(trace_file(folder).read_text()).items():
            seconds[test] = duration
            for module, lines in modules.items():
                for line in lines:
                    tests[module, line].append(test)
    return seconds, tests


def candidates(room: str) -> list[Mutant]:
    """Return every mutant of a room's core."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    mutants = []
    for file in core_files(room):
        source = file.read_text(encoding="utf-8")
        nodes, executed = list(ast_nodes(get_ast(source))), statement_lines(source)
        annotations = [
            ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
            for statement in ast.walk(ast.parse(source))
            if isinstance(statement, ast.AnnAssign)
            for node in [statement.annotation]
        ]
        module = file.relative_to(HOME).as_posix()
        for name in (name for name in operator_names() if "Variable" not in name):
            operator = get_operator(name)()
            places = (start for node in nodes for start, _ in operator.mutation_positions(node))
            mutants += [
                Mutant(room, module, name, occurrence, start[0])
                for occurrence, start in enumerate(places)
                if start[0] in executed
                and not any(first <= start < end for first, end in annotations)
            ]
    return mutants


def statement_lines(source: str) -> dict[int, range]:
    """Return for each line of a function's statements the lines of the innermost statement.

    Of a statement with a body, these are the lines of its head.
    """
    lines: dict[int, range] = {}
    # ast.walk goes breadth first, so that inner statements replace the outer ones.
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in (node for child in function.body for node in ast.walk(child)):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    continue
                if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                    first = node.pattern if isinstance(node, ast.match_case) else node
                    body = getattr(node, "body", None)
                    end = body[0].lineno - 1 if body else node.end_lineno
                    head = range(first.lineno, max(first.lineno, end) + 1)
                    lines |= dict.fromkeys(head, head)
    return lines


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, in equal parts from the rooms, or read those drawn before."""
    file = TRACES / f"draw-{seed}-{count}.json"
    if file.exists():
        return [Mutant(*row) for row in json.loads(file.read_text())]
    generator, share = random.Random(seed), -(-count // len(CORE))
    drawn = []
    for room in CORE:
        mutants = candidates(room)
        drawn += generator.sample(mutants, min(share, len(mutants)))
    generator.shuffle(drawn)
    file.write_text(json.dumps([astuple(mutant) for mutant in drawn[:count]]))
    return drawn[:count]


def run_tests(tests: list[str], source: Path, limit: float) -> tuple[str, str]:
    """Run tests on a copy of the package, in a fork of this process.

    The fork saves the imports of other packages; this process never imports the package itself. A
    mutant that waits for ever uses no processor, so there is a limit by the clock as well.

    Args:
        tests: Their node ids.
        source: The copy of ``src``.
        limit: Seconds of the processor.

    Returns:
        ``passed``, ``failed`` or ``late``, and the test that failed.
    """
    process = get_context("fork").Process(target=call_pytest, args=(tests, source, limit))
    process.start()
    process.join(60 + 8 * limit)
    if process.exitcode in (None, -signal.SIGXCPU, -signal.SIGKILL):
        process.kill()
        process.join()
        return "late", ""
    output = (source.parent / "output.txt").read_text(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
    return ("failed" if process.exitcode else "passed"), (failed[1] if failed else "")


def call_pytest(tests: list[str], source: Path, limit: float) -> None:
    """Run tests in this process, with their output in a file beside the source, and end it."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 10))
    os.environ |= {"PYTHONPATH": f"{source}:{ROOT}", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(source), str(ROOT)]
    os.chdir(ROOT)
    output = os.open(source.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    (source.parent / "tests.txt").write_text("\n".join(tests))
    arguments = [*PYTEST, "--tb=no", "-rfE", f"@{source.parent / 'tests.txt'}"]
    sys.exit(int(pytest.main(arguments)))


def try_mutant(
    mutant: Mutant, source: Path, seconds: dict[str, float], tests: dict[tuple[str, int], list[str]]
) -> tuple[str, str]:
    """Run the tests of a mutant's line, those of its room and the quickest first.

    Returns:
        ``unexecuted``, or the outcome of the tests and the test that failed.
    """
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    file = source / "ragwitness" / mutant.module
    before = file.read_text(encoding="utf-8")
    lines = statement_lines(before)[mutant.line]
    pending = sorted(
        {test for line in lines for test in tests.get((mutant.module, line), [])},
        key=lambda test: (f"tests/unit/{mutant.room}/" not in test, seconds[test]),
    )
    if not pending:
        return "unexecuted", ""
    after = mutate_code(before, get_operator(mutant.operator)(), mutant.occurrence)
    outcome, failed, size = "passed", "", 20
    write_module(file, after)
    while pending and outcome == "passed":
        batch, pending, size = pending[:size], pending[size:], 8 * size
        limit = 10 + 3 * sum(seconds[test] for test in batch)
        outcome, failed = run_tests(batch, source, limit)
    write_module(file, before)
    return outcome, failed


def write_module(file: Path, text: str) -> None:
    """Write a module with a time of its own, so that no stored bytecode passes for its."""
    changed = file.stat().st_mtime + 10
    file.write_text(text, encoding="utf-8")
    os.utime(file, (changed, changed))


def report(rows: list[dict[str, Any]]) -> None:
    """Print the share of mutants that is noticed, by room and in total."""
    from ragwitness.stats.rates import proportion_interval

    noticed, drawn = Counter[str](), Counter[str]()
    for row in rows:
        drawn[row["mutant"][0]] += 1
        noticed[row["mutant"][0]] += row["outcome"] in ("failed", "late")
    for room in sorted(drawn):
        print(f"{room:12} {noticed[room]:4} of {drawn[room]}")
    low, high = proportion_interval(noticed.total(), drawn.total())
    share = noticed.total() / max(1, drawn.total())
    print(f"noticed      {share:.3f} [{low:.3f}, {high:.3f}] of {drawn.total()}")


def main() -> None:
    """Run the mutants that have no row yet, then print the share that is noticed by room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON lines, one for each mutant")
    parser.add_argument("--trace", help="trace this folder of tests, and nothing else")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.trace:
        trace(options.trace)
        return
    seconds, tests = read_traces()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.touch()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    finished = {tuple(row["mutant"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        for name in IMPORTS.split():
            import_module(name)
        for mutant in draw(options.count, options.seed):
            key = (mutant.room, mutant.module, mutant.operator, mutant.occurrence)
            if key in finished:
                continue
            outcome, failed = try_mutant(mutant, source, seconds, tests)
            rows.append({"mutant": key, "line": mutant.line, "outcome": outcome, "by": failed})
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        killers = sorted({row["by"] for row in rows if row["by"]})
        if killers and run_tests(killers, source, 3600)[0] != "passed":
            sys.exit("a test that noticed a mutant fails without one")
    report(rows)


if __name__ == "__main__":
    main()
