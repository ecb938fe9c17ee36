"""``python -m ragwitness``; among files that you do not trust: ``python -P -m ragwitness``."""

import sys

# Python puts the current folder first: no module of it may stand for one of ours or of Python's.
sys.path[: not sys.flags.safe_path] = []

from ragwitness.cli.main import run  # noqa: E402

if __name__ == "__main__":
    run()
