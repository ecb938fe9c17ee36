"""What each defense does to each audit, and what it costs those who ask in good faith.

    PYTHONPATH=. python experiments/defenses/run.py --data DIR [--defense NAME ...] [--limit N]
    PYTHONPATH=. python experiments/defenses/run.py --table [--limit N]

All defenses stand before one system and see one split. Answers are kept, so a broken run goes on
where it stopped; a defense that is finished is not asked again.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import typer

from ragwitness.membership.evaluation import BatteryPlan
from ragwitness.rag.config import RagConfig
from ragwitness.rag.lab import rag_config
from ragwitness.report.result_registry import to_json
from ragwitness.text.documents import load_documents
from research.reproduce.batteries import run_plan

_HERE = Path(__file__).parent
_OUT = Path("build/experiments/defenses")
_FEWEST = 10  # documents that a small run still calibrates on

Config = dict[str, Any]


def _sized(config: Config, limit: int | None) -> Config:
    """The settings, with every size smaller alike where a limit asks for fewer documents."""
    if limit is None:
        return config
    share = limit / (config["members"] + config["non_members"])
    small = {key: max(2, round(config[key] * share)) for key in ("members", "non_members")}
    for key in ("calibration", "auxiliary_size"):
        fewest = 80 if key == "auxiliary_size" else _FEWEST
        small[key] = min(config[key], max(fewest, round(config[key] * share)))
    return config | small


def _plan(config: Config, rag: RagConfig) -> BatteryPlan:
    return BatteryPlan(
        audits=tuple(config["audits"]),
        members=config["members"],
        non_members=config["non_members"],
        calibration=config["calibration"],
        seed=config["seed"],
        rag=rag,
        control=False,
    )


def _run(name: str, config: Config, data: Path, folder: Path) -> None:
    path = folder / f"{name}.json"
    if path.exists() and json.loads(path.read_text())["config"] == config:
        print(f"{name}: finished before", flush=True)
        return
    rag = rag_config(**config["rag"])
    documents = load_documents(data / config["corpus"]).documents
    auxiliary = load_documents(data / config["auxiliary"]).documents[: config["auxiliary_size"]]
    # One folder for all: the journal knows systems apart, and what they share is asked once.
    battery = run_plan(
        _plan(config, rag), documents, name, config["rag"]["generator"], folder,
        auxiliary=auxiliary,
    )  # fmt: skip
    found = {"defense": name, "config": config, **to_json(battery)}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{name}: done", flush=True)


def _cell(found: Config, audit: str) -> str:
    if audit not in found["audits"]:
        return found["skipped"].get(audit, "not run")
    one = found["audits"][audit]
    low, high = one["auc_interval"]
    return f"{one['auc']:.3f} [{low:.3f}, {high:.3f}]"


def _audit_rows(results: dict[str, Config], audits: list[str]) -> list[str]:
    rows = [f"| audit | {' | '.join(results)} |", "|---" * (1 + len(results)) + "|"]
    for audit in audits:
        cells = [_cell(one, audit) for one in results.values()]
        rows += [f"| {audit} | {' | '.join(cells)} |"]
    return rows


def _table(config: Config, folder: Path) -> None:
    stored = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    results = {name: stored[name] for name in config["defenses"] if name in stored}
    if not results:
        raise SystemExit(f"nothing is finished in {folder}")
    size = next(iter(results.values()))["sizes"]
    lines = [
        f"AUC [95 %], {size['members']} members and {size['non-members']} non-members:",
        "",
        *_audit_rows(results, config["audits"]),
        "",
        *(f"- `{name}`: {found['settings'].get('defense', 'none')}"
          for name, found in results.items()),
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    """Run the defenses named, or print the tables of the finished ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--defense", nargs="*")
    parser.add_argument("--limit", type=int, help="audited documents, half of them inside")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    config = _sized(tomllib.loads((_HERE / "config.toml").read_text()), options.limit)
    folder = _OUT / f"{config['members']}+{config['non_members']}"
    if not options.table:
        if not options.data or not options.data.is_dir():
            raise SystemExit("skipped: give the folder of the data sets with --data")
        for name in options.defense or config["defenses"]:
            try:
                _run(name, config, options.data, folder)
            except typer.Exit as stop:
                raise SystemExit(stop.exit_code) from None
    _table(config, folder)


if __name__ == "__main__":
    main()
