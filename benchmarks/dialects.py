"""Sixteen dialects of chat services by four kinds of documents: is the audit right, or refused?

    PYTHONPATH=. python benchmarks/dialects.py [--dialects NAME …] [--kinds NAME …] [--table]

Each cell serves documents of one kind in one dialect on the loopback and calls ``ragwitness audit``
as a user would, in a process of its own: 12 documents in question of which the service holds 6, and
40 known to be outside. A cell is *right* where at least 9 of 10 held documents are ``in`` and no
other is; *refused* where the audit ended before the first question about a document and named the
true cause; and *wrong* otherwise. A service that answers nothing must be refused. Cells that are
done are kept in --out, and the same command goes on; another --out asks anew.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.dialects_stand_ins.documents import RESULT_TYPES, World, make_world
from benchmarks.dialects_stand_ins.services import DIALECTS, KEY, KEY_VARIABLE, Dialect, serving
from ragwitness.cli.main import run
from ragwitness.stats.rates import proportion_interval

_PATIENCE = 400  # seconds of one cell; most take 10 on an idle core
_ENOUGH = 0.9  # of the held documents
_RUN = 6  # words in a row by which a question is known to be about a document
_RIGHT, _REFUSED, _WRONG = "right", "refused", "wrong"


def cell(dialect: Dialect, world: World) -> dict[str, Any]:
    """Return how one cell ended: ``end``, ``why``, and what it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, serving(dialect, world.index) as service:
        place = Path(folder)
        asked = [("held", world.held), ("other", world.others)]
        _write(place / "mine.jsonl", asked)
        _write(place / "outside.jsonl", [("outside", world.known_out)])
        arguments = ["audit", service.address, "--documents", "mine.jsonl"]
        arguments += ["--known-out", "outside.jsonl", "--json", "result.json", *dialect.options]
        code = _called(arguments, place)
        said = (place / "said.txt").read_text(encoding="utf-8", errors="replace")
        result = place / "result.json"
        rows = json.loads(result.read_text())["documents"] if result.exists() else []
        questions = list(service.questions)
    end, why = _judged(dialect, rows, said, code, _about(questions, world))
    return {
        "end": end,
        "why": why,
        "code": code,
        "questions": len(questions),
        "seconds": round(time.monotonic() - began, 1),
        "said": said,
    }


def _called(arguments: list[str], folder: Path) -> int | None:
    """Call ``ragwitness`` in a process of its own; return its exit code, None where it was ended.

    The process is forked off this one, which has imported what each audit imports.
    """
    process = multiprocessing.get_context("fork").Process(target=_run, args=(arguments, folder))
    process.start()
    process.join(_PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _run(arguments: list[str], folder: Path) -> None:
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.argv = ["ragwitness", *arguments]
    run()


def _write(path: Path, groups: list[tuple[str, list[str]]]) -> None:
    rows = [{"id": f"{name}-{n}", "text": t} for name, texts in groups for n, t in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _about(questions: list[str], world: World) -> int:
    """Count the questions that hold words of a document in question and of no known-outside one."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = text.split()
        return {tuple(words[n : n + _RUN]) for n in range(len(words) - _RUN + 1)}

    own = {run for text in (*world.held, *world.others) for run in runs(text)}
    own -= {run for text in world.known_out for run in runs(text)}
    return sum(not own.isdisjoint(runs(question)) for question in questions)


def _judged(
    dialect: Dialect, rows: list[dict[str, Any]], said: str, code: int | None, about: int
) -> tuple[str, str]:
    """Judge a cell by its verdicts, or by what was said where there are none."""
    called = [row["id"] for row in rows if row["verdict"] == "in"]
    held = [row["id"] for row in rows if row["id"].startswith("held")]
    found = sum(name in called for name in held)
    others = len(called) - found
    # 1. A refusal: nothing was asked about a document, and the cause is named.
    if not rows and code and not about:
        told = " ".join(re.findall(r"^ *(?:error|next):.*(?:\n .*)*", said, re.MULTILINE))
        named = dialect.cause and re.search(dialect.cause, told, re.IGNORECASE)
        return (_REFUSED if named else _WRONG), _last_words(told or said)
    # 2. Verdicts.
    if rows and not dialect.refused and found >= _ENOUGH * len(held) and not others:
        return _RIGHT, ""
    if rows:
        counted = f"{found} of {len(held)} held in, {others} others in"
        reasons = [row["reason"] for row in rows if row.get("reason")]
        return _WRONG, "; ".join([counted, *sorted(set(reasons), key=reasons.count)[-1:]])
    # 3. Anything else.
    late = f"ended after {_PATIENCE} s; " if code is None else ""
    return _WRONG, f"{late}{about} questions about documents, no verdict: {_last_words(said)}"


def _last_words(said: str) -> str:
    return " ".join(said.split())[-400:]


def table(out: Path) -> None:
    """Print the matrix, the share of good cells with its interval, and what went wrong."""
    cells = {
        (dialect, kind): json.loads(path.read_text())
        for dialect in DIALECTS
        for kind in RESULT_TYPES
        if (path := _file(out, dialect, kind)).exists()
    }
    print(f"| dialect | {' | '.join(RESULT_TYPES)} |\n|---{'|---' * len(RESULT_TYPES)}|")
    for dialect in DIALECTS:
        ends = [cells.get((dialect, kind), {"end": "-"})["end"] for kind in RESULT_TYPES]
        print(f"| {dialect} | {' | '.join(ends)} |")
    for part in (None, *RESULT_TYPES):
        ends = [one["end"] for (_, kind), one in cells.items() if part in (None, kind)]
        good = len(ends) - ends.count(_WRONG)
        low, high = proportion_interval(good, len(ends)) if ends else (0.0, 1.0)
        print(
            f"\n{part or 'all'}: {good} of {len(ends)} right or refused [{low:.2f}, {high:.2f}]"
            f" (right {ends.count(_RIGHT)}, refused {ends.count(_REFUSED)})",
            end="",
        )
    print("\n")
    for (dialect, kind), one in cells.items():
        if one["end"] == _WRONG:
            print(f"- {dialect}, {kind}: {one['why']}")


def _file(out: Path, dialect: str, kind: str) -> Path:
    return out / f"{re.sub(r'[^a-z0-9]+', '-', dialect.lower()).strip('-')}.{kind}.json"


def main() -> None:
    """Run what is left to run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dialects", nargs="+", choices=DIALECTS, default=list(DIALECTS))
    parser.add_argument("--kinds", nargs="+", choices=RESULT_TYPES, default=list(RESULT_TYPES))
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/dialects"))
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    os.environ |= {KEY_VARIABLE: KEY, "COLUMNS": "200"}
    if not asked.table:
        for name in ("scipy.stats", "sklearn.linear_model", "ragwitness.cli.audit"):
            importlib.import_module(name)
    for kind in () if asked.table else asked.kinds:
        world = make_world(kind)
        for name in asked.dialects:
            if (path := _file(asked.out, name, kind)).exists():
                continue
            row = cell(DIALECTS[name], world)
            path.write_text(json.dumps(row, indent=1), encoding="utf-8")
            took = f"{row['questions']} questions, {row['seconds']} s"
            print(f"{name}, {kind}: {row['end']} ({took}) {row['why']}", flush=True)
    table(asked.out)


if __name__ == "__main__":
    main()
