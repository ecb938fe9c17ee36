"""Count the faces that services and files show, and how many of them are read as they must be.

    python benchmarks/faces.py [KIND ...]

A face is a test that is marked ``@pytest.mark.face(KIND)``, alone or as ``pytestmark`` of its file;
each of its parameters is a case.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent / "tests"


class Table:
    """Collects outcomes by kind and face.

    Args:
        kinds: Those that are run; none runs all.
    """

    def __init__(self, kinds: set[str]) -> None:
        self._kinds = kinds
        self._faces: dict[str, tuple[str, str]] = {}
        self.cases: Counter[tuple[str, str]] = Counter()
        self.passes: Counter[tuple[str, str]] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the faces of these kinds."""
        chosen = []
        for item in items:
            mark = item.get_closest_marker("face")
            if mark and (not self._kinds or mark.args[0] in self._kinds):
                name = item.name.partition("[")[0].removeprefix("test_").replace("_", " ")
                self._faces[item.nodeid] = mark.args[0], name
                chosen.append(item)
        items[:] = chosen
        self.cases.update(self._faces.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case that passes."""
        if report.when == "call" and report.passed:
            self.passes[self._faces[report.nodeid]] += 1


def main() -> None:
    """Run the faces and print the table."""
    table = Table(set(sys.argv[1:]))
    options = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
    marked = [str(file) for file in TESTS.rglob("test_*.py") if "mark.face(" in file.read_text()]
    status = pytest.main([*options, *sorted(marked)], plugins=[table])
    print("\n| kind | face | passes |\n|---|---|---|")
    for kind, name in sorted(table.cases):
        row = kind, name
        print(f"| {kind} | {name} | {table.passes[row]} of {table.cases[row]} |")
    print(f"\n{table.passes.total()} of {table.cases.total()} cases of {len(table.cases)} faces")
    sys.exit(int(status))


if __name__ == "__main__":
    main()
