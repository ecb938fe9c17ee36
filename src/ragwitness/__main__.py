"""``python -m ragwitness``."""

from ragwitness.cli.main import run

if __name__ == "__main__":
    run()
