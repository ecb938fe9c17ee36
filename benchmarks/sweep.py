"""The 15-cell sweep at 10^6 paired trials per cell: CPU and wall seconds, and peak memory.

python benchmarks/sweep.py [trials]
"""

from __future__ import annotations

import resource
import sys
import time

from research.scalar import SweepConfig, sweep


def main() -> None:
    """Print the cost of one sweep."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    wall, cpu = time.perf_counter(), time.process_time()
    cells = sweep(SweepConfig(trials=trials))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{len(cells)} cells of {trials:,}: {wall:.1f} s, {cpu:.1f} s of CPU, {peak:.0f} MiB")


if __name__ == "__main__":
    main()
