"""Write made-up records of a kind that readers know, or do not, with their secrets and public text.

    PYTHONPATH=src:. python experiments/sage/kinds.py build/kinds

For each kind: KIND.jsonl (60 records), KIND-secrets.jsonl (what identifies in them),
KIND-public.jsonl (600 other records, whose phrases nobody owns) and KIND-background.jsonl (60 more,
in no index).
With a kind and a file of synthetic texts behind the folder, it counts instead how many values of
their records (symptoms, drugs, prices; nothing that identifies) the texts tell.
``clinic`` is a kind on which the readers learned SAGE's roles, ``personnel`` one that was kept out.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path

from research.reader.questions import record_text
from research.reader.roles import GROUNDS, NAMES

KINDS = ("clinic", "personnel")
_SECRETS = {"phone": "phone", "email": "email", "street": "other", "code": "other"}


def write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write JSONL."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def told(kind: str, path: Path) -> None:
    """Print how many values of their records the texts of a file tell."""
    rng = random.Random(f"held/{kind}")
    records = [record_text(rng, kind)[1] for _ in range(60)]
    found = known = 0
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        kept = records[int(row["id"].rsplit("-", 1)[1])]
        values = [value.lower() for slot in kept if slot in NAMES for value in kept[slot]]
        found += sum(value in row["text"].lower() for value in values)
        known += len(values)
    print(f"{len(rows)} texts tell {found} of {known} values of their records")


def main() -> None:
    """Write all files of all kinds, or count what one tells."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        told(sys.argv[2], Path(sys.argv[3]))
        return
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        rng, secrets, records = random.Random(f"held/{kind}"), [], []
        for number in range(60):
            text, kept, _ = record_text(rng, kind)
            records.append({"id": f"{kind}-{number}", "text": text})
            secrets += [
                {"text": value, "kind": _SECRETS.get(slot, "name"), "record": f"{kind}-{number}"}
                for slot in kept
                if slot in GROUNDS
                for value in kept[slot]
            ]
        write(folder / f"{kind}.jsonl", records)
        write(folder / f"{kind}-secrets.jsonl", secrets)
        for name, count, drawn in (
            ("public", 600, rng),
            ("background", 60, random.Random(f"background/{kind}")),
        ):
            texts = [{"text": record_text(drawn, kind)[0]} for _ in range(count)]
            write(folder / f"{kind}-{name}.jsonl", texts)


if __name__ == "__main__":
    main()
