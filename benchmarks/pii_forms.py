"""Personal details in the forms in which people and tables write them, by kind: what is found.

``PYTHONPATH=. python benchmarks/pii_forms.py [contacts presidio …]``

The forms stand in ``pii_forms.toml``. One is found where a find covers half of what is personal.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from ragwitness.stats.rates import proportion_interval
from ragwitness.text.pii import pii_finder

FORMS = Path(__file__).with_suffix(".toml")


def forms() -> list[tuple[str, str, tuple[int, int]]]:
    """Return kind, text and the span of what is personal, for each form."""
    made = []
    for kind, rows in tomllib.loads(FORMS.read_text(encoding="utf-8")).items():
        for row in rows:
            before, _, rest = row.partition("[")
            personal, _, after = rest.rpartition("]")
            span = (len(before), len(before) + len(personal))
            made.append((kind, before + personal + after, span))
    return made


def main() -> None:
    """Print, for each finder, the share that it finds of each kind."""
    every = forms()
    for name in sys.argv[1:] or ["contacts"]:
        finder = pii_finder(name)
        hits: dict[str, list[bool]] = {}
        for kind, text, (start, end) in every:
            covered = sum(
                max(0, min(one.end, end) - max(one.start, start)) for one in finder.find(text)
            )
            hits.setdefault(kind, []).append(covered * 2 >= end - start)
        whole = [hit for own in hits.values() for hit in own]
        print(f"{finder.name}: {sum(whole)} of {len(whole)}")
        for kind, own in hits.items():
            low, high = proportion_interval(sum(own), len(own))
            print(f"  {kind:<36}{sum(own):>3} of {len(own):<3} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
