"""Start-up of ``ragwitness --help`` against a bare interpreter, in turns.

python benchmarks/cli_help.py [runs]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def seconds(*arguments: str) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print medians and their ratio."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    pairs = [(seconds("-m", "ragwitness", "--help"), seconds("-c", "pass")) for _ in range(runs)]
    shown = statistics.median(pair[0] for pair in pairs)
    bare = statistics.median(pair[1] for pair in pairs)
    print(f"--help: median {1000 * shown:.0f} ms of {runs}; bare interpreter {1000 * bare:.0f} ms")


if __name__ == "__main__":
    main()
