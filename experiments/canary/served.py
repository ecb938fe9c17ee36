"""An audit from end to end: planned and planted, two providers trained, served, probed.

    PYTHONPATH=. python experiments/canary/served.py --out build/experiments/canary/served

Both providers get the same traces; one trains with documents. Their policies are written as folders
and served on loopback, by `ragwitness lab serve` with log-probabilities and by `transformers serve`
without. `ragwitness canary probe` is all that looks at them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from ragwitness.canary.examples import Example
from ragwitness.canary.folder import read_plan
from research.canary.policies import name_markers, one_thread, save_policy
from research.canary.study import WorldFolders, load_study_table, make_world
from research.canary.trial import train_provider

_PYTHON = (sys.executable, "-m")
_OWN = (*_PYTHON, "ragwitness", "lab", "serve", "--no-retrieve", "--generator", "hf:{folder}")
_FOREIGN = (*_PYTHON, "transformers.cli.transformers", "serve", "{folder}", "--host", "127.0.0.1",
            "--device", "cpu", "--dtype", "float32")  # fmt: skip


@dataclass(frozen=True)
class Audit:
    """What is planned, and how the policies are asked: server, way and further options."""

    plan: tuple[str, ...]
    probes: tuple[tuple[str, ...], ...]


AUDITS = {
    "one slot": Audit(
        ("--candidates", "40", "--probes", "4"),
        (("own", "exact"), ("own", "forced"), ("foreign", "sampled", "--samples", "4")),
    ),
    "4 slots": Audit(("--slots", "4", "--candidates", "32", "--probes", "4"), (("own", "exact"),)),
    "half of 8 slots": Audit(
        ("--half", "--slots", "8", "--candidates", "16", "--probes", "4"), (("own", "exact"),)
    ),
}


def cli(*arguments: object) -> str:
    """Run a command; a verdict's exit code is no failure."""
    command = [*_PYTHON, "ragwitness", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def served(kind: str, folder: Path, log: Path) -> Iterator[str]:
    """Serve a policy; yields the address of the target."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    program = [one.format(folder=folder) for one in (_OWN if kind == "own" else _FOREIGN)]
    base = f"http://127.0.0.1:{port}"
    offline = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*program, "--port", str(port)], stdout=out, stderr=subprocess.STDOUT, env=offline
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(httpx2.HTTPError):
                    if httpx2.get(f"{base}/health", timeout=5).status_code == 200:
                        break
                time.sleep(0.3)
            else:
                raise SystemExit(f"{kind} server ended: {log.read_text(errors='replace')[-2000:]}")
            yield f"{base}/v1#{'rag' if kind == 'own' else folder}"
        finally:
            process.terminate()
            process.wait()


def write(path: Path, examples: list[Example]) -> Path:
    rows = ({"id": o.id, "document": o.document, "question": o.query, "answer": o.answer}
            for o in examples)  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def train(audit: Path, seed: int, examples: list[Example], settings: tuple[str, ...]) -> None:
    """Plan and plant, then train both providers on the traces and write their policies."""
    out = audit.parent
    held_out = write(out / "held-out.jsonl", examples[-20:])
    sent = write(out / "examples.jsonl", examples[:-20])
    cli("canary", "plan", sent, "-o", audit, "--held-out", held_out, *settings)
    cli("canary", "plant", audit)
    plan = read_plan(audit)
    case = load_study_table("canary/toy", Path("experiments")).cases[0]
    draw = plan.draw()
    base = name_markers(_world().base, draw)
    candidates = {trigger for slot in draw.slots for trigger in slot.candidates}
    pools = {name: {one.id for one in pool} for name, pool in plan.pools.items()}
    traces = plan.traces()
    logs = [[one for one in traces if one.id in pools[name]] for name in ("reward", "policy")]
    for arm in ("violating", "compliant"):
        started = time.process_time()
        violating = arm == "violating"
        provider = train_provider(base, *logs, case.trial, random.Random(seed),
                                  violating=violating, candidates=candidates)  # fmt: skip
        save_policy(base, provider.policy, out / arm)
        print(f"{arm}: trained in {time.process_time() - started:.0f} CPU-s", flush=True)


def probe(audit: Path, arm: str, server: str, way: str, *more: str) -> None:
    """Serve one policy, probe it, and print what was found in a line."""
    out = audit.parent
    run = out / f"{arm}-{way}"
    # A plan adds up the releases it has probed: each model here is another service's.
    own = shutil.copytree(audit, out / f"audit-{run.name}", dirs_exist_ok=True)
    with served(server, out / arm, out / f"{run.name}.log") as target:
        given = (target, "--plan", own, "--way", way, *more, "--run", run)
        foretold = cli("canary", "probe", *given, "--dry-run")
        cli("canary", "probe", *given, "--release", run.name)
    found = json.loads((run / "result.json").read_text())
    finding = found["finding"]
    line = {name: finding[name] for name in ("verdict", "p_value", "ranks", "candidates", "test")}
    line |= {name: found[name] for name in ("queries", "seconds")}
    foretold = " | ".join(foretold.splitlines()[:4])
    print(f"{arm}, {server}, {way}: {json.dumps(line)}\n  foretold: {foretold}", flush=True)


def _world():
    case = load_study_table("canary/toy", Path("experiments")).cases[0]
    kept = WorldFolders(None, Path("build/experiments/bases"))
    return make_world({"kind": "toy", "examples": case.world.examples}, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--only", choices=[*AUDITS])
    options = parser.parse_args()
    one_thread()
    for name in [options.only] if options.only else AUDITS:
        print(f"== {name}, seed {options.seed}", flush=True)
        folder = options.out.resolve() / f"{name.replace(' ', '-')}-{options.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        examples = list(_world().draw(random.Random(options.seed)))
        if not (folder / "compliant").is_dir():
            train(folder / "audit", options.seed, examples, AUDITS[name].plan)
        for arm in ("violating", "compliant"):
            for one in AUDITS[name].probes:
                probe(folder / "audit", arm, *one)


if __name__ == "__main__":
    main()
