"""S-RAG on real data, over HTTP, as a user would run it.

    python experiments/s-rag/run.py --data DIR [--case NAME ...] [--mode MODE ...] [--scale 1.0]
    python experiments/s-rag/run.py --table

Each case serves a random half of a corpus with ``ragwitness lab serve`` in one process and runs
``ragwitness audit`` from another. Answers are kept, so a broken run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from splits import read_rows, split

_HERE = Path(__file__).parent
_OUT = Path("build/experiments/s-rag")
_CLI = [sys.executable, "-m", "ragwitness"]


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@contextmanager
def _lab(corpus: Path, case: dict[str, object]) -> Iterator[str]:
    command = [*_CLI, "lab", "serve", "--corpus", str(corpus), "--port", "0"]
    command += ["--retrieval", str(case["retrieval"])]
    command += ["--template", str(case.get("template", "plain"))]
    if not case.get("retrieve", True):
        command.append("--no-retrieve")
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in lab.stdout or ():
            if found := re.search(r"http://\S+/v1", line):
                yield found.group()
                return
        raise SystemExit(f"the lab did not start: {' '.join(command)}")
    finally:
        lab.terminate()
        lab.wait(30)


def _run_case(case: dict[str, object], config: dict[str, object], data: Path, scale: float) -> None:
    for mode in case["modes"]:  # type: ignore[attr-defined]
        own = case.get(f"{mode}_scale", case.get("scale", 1))
        _run_mode(case, config, data, scale * float(str(own)), mode)


def _run_mode(case: dict[str, object], config: dict[str, object], data: Path, scale: float,
              mode: str) -> None:  # fmt: skip
    sizes = {
        key: max(10, round(int(str(config[key])) * scale))
        for key in ("members", "non_members", "known_out")
    }
    folder = _OUT / str(case["name"]) / mode
    seed = int(str(case.get("seed", config["seed"])))
    parts = split(read_rows(data / str(case["corpus"])), sizes, seed)
    key = f"{mode}_auxiliary_size"
    size = case.get(key, config.get(key, config["auxiliary_size"]))
    auxiliary = read_rows(data / str(config["auxiliary"]))[: int(str(size))]
    corpus = _write(folder / "corpus.jsonl", parts.indexed)
    arguments = ["--documents", str(_write(folder / "documents.jsonl", parts.documents))]
    arguments += ["--auxiliary", str(_write(folder / "auxiliary.jsonl", auxiliary))]
    if case.get("calibrate", True):
        arguments += ["--known-out", str(_write(folder / "known_out.jsonl", parts.known_out))]
    with _lab(corpus, case) as url:
        started = time.monotonic()
        command = [*_CLI, "audit", f"{url}", *arguments, "--mode", mode, "--run", str(folder)]
        with (folder / "audit.log").open("w") as log:
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
        spent = time.monotonic() - started
        print(f"{case['name']} {mode}: exit {done.returncode}, {spent:.0f} s", flush=True)


def _table() -> None:
    rate = "{value:.3f} [{low:.3f}, {high:.3f}]"
    columns = "case, mode, n in + out, AUC, accuracy, F1, TPR at 1 % FPR"
    columns += ", realised FPR, TPR at alpha, queries/doc, s/doc"
    print(f"| {columns.replace(', ', ' | ')} |")
    print("|---" * len(columns.split(", ")) + "|")
    for path in sorted(_OUT.glob("*/*/result.json")):
        stored = json.loads(path.read_text())
        summary = stored["summary"]
        found = summary["evaluation"]
        cells = [
            rate.format(**found[key])
            for key in (
                "auc",
                "accuracy",
                "f1",
                "tpr_at_1_fpr",
                "false_positives",
                "true_positives",
            )
        ]
        documents = stored["documents"]
        queries = sum(d["queries"] for d in documents) / len(documents)
        asked = len(documents) + summary["calibration"]["n"]
        print(
            f"| {path.parts[-3]} | {path.parts[-2]}"
            f" | {found['members']} + {found['non_members']} | "
            + " | ".join(cells)
            + f" | {queries:.1f} | {summary['seconds'] / asked:.2f} |"
        )


def main() -> None:
    """Run the cases named, or print the table of all finished ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--case", nargs="*")
    parser.add_argument("--mode", nargs="*", default=["single", "probing"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        _table()
        return
    config = tomllib.loads((_HERE / "config.toml").read_text())
    if not options.data or not options.data.is_dir():
        raise SystemExit("skipped: give the folder of the data sets with --data")
    for case in config["case"]:
        case["modes"] = [mode for mode in case["modes"] if mode in options.mode]
        if case["modes"] and (not options.case or case["name"] in options.case):
            _run_case(case, config, options.data, options.scale)


if __name__ == "__main__":
    main()
