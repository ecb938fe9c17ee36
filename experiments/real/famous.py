"""Texts that every model has read, and no index here holds: does ``runon`` call them in?

::

    PYTHONPATH=. python experiments/real/famous.py MODEL DATA healthcaremagic.jsonl langchain

The application and the documents known to be outside are those of a row of ``table.py`` (same
``--n`` and ``--passages``, whose kept answers are used again); the ten famous texts of
``famous.txt`` are in question. Printed: their scores and p-values, and what the audit says of them.
"""

from __future__ import annotations

import json
from pathlib import Path

from experiments.real.table import Cell, arguments, audited
from ragwitness.core.types import Document

TEXTS = Path(__file__).with_name("famous.txt")


def famous() -> list[Document]:
    """Return the texts, by their names."""
    parts = [part.split("\n", 1) for part in TEXTS.read_text("utf-8").split("# ")[1:]]
    return [Document(name, text.strip(), False) for name, text in parts]


def main() -> None:
    """Audit, and print a line for each text."""
    cell = Cell(arguments(__doc__).parse_args())
    for one in audited(cell, famous(), "runon").verdicts:
        said = {"score": one.score, "p": one.p_value, "decision": str(one.decision)}
        print(json.dumps({"text": one.document, **said, "reason": one.reason}))


if __name__ == "__main__":
    main()
