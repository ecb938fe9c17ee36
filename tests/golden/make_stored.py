"""Make the stored forms again: ``python -m tests.golden.make_stored FOLDER``.

What lies in ``tests/golden/stored`` was written by the package as it was at the commit that
``stored/made.json`` names, before its parts were moved and merged. To make it again by hand, run
this from the root of this repository with the sources of that commit in front::

    git worktree add --detach ../before 52e8ec2
    PYTHONPATH=../before/src:. python -m tests.golden.make_stored /tmp/stored

It takes about two minutes. What lies there must open for ever: a new form of a file is stored
beside the old one, which is never made anew to please a test. Pages are left out, since nothing
reads them; noise, keys and clocks differ each time. The study of canaries has scripted outcomes
in place of policies that are trained for hours.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import chdir
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from unittest import mock

from tests.golden.tasks import INPUTS, RUNS, TABLES, TASKS, WHERE, done
from tests.support.canary_model import ToyModel, serving

COMMIT = "52e8ec2"
SEARCHED = [str(Path(one).absolute()) for one in sys.path]  # before the folder changes
POLICY = """\
window = "w1"
relation = "add-remove"
queries = 2
accounts_most = 3
epsilon = 30.0
delta = 1e-8
k_max = 2
joint_delta = 1e-6

[tenants.clinic]
dimension = 16
capacity = 16
top = 2
scale = 64
"""
EMBEDDER = "hashing:16"
BEACON = sha256(b"drawn after the close").hexdigest()


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_inputs(folder: Path) -> None:
    """Short documents of the project's own corpus; ``golden/tables.toml`` is written by hand."""
    from ragwitness.text.sample import load_sample

    docs = sorted(load_sample(), key=lambda document: len(document.text))[:150]
    docs = [*docs[::3], *docs[1::3], *docs[2::3]]

    def plain(start: int, stop: int) -> list[dict[str, object]]:
        return [{"id": d.id, "text": d.text} for d in docs[start:stop]]

    asked = [{**row, "member": i < 4} for i, row in enumerate([*plain(0, 4), *plain(12, 16)])]
    write_rows(folder / "corpus.jsonl", plain(0, 12))
    write_rows(folder / "documents.jsonl", asked)
    write_rows(folder / "known.jsonl", plain(16, 36))
    write_rows(folder / "auxiliary.jsonl", plain(36, 76))
    write_rows(folder / "background.jsonl", plain(76, 116))
    private = [{**row, "text": f"{row['text']} Ask Ada Fenn."} for row in plain(116, 120)]
    write_rows(folder / "private.jsonl", private)
    write_rows(folder / "secrets.jsonl", [{"text": "Ada Fenn", "kind": "name"}])
    with_questions = []
    for i, row in enumerate(plain(120, 128)):
        words = str(row["text"]).split()
        pair = {"question": " ".join(words[:6]), "answer": " ".join(words[6:12])}
        told = f"{row['text']} Call 212-555-0{100 + i}."
        with_questions.append({**row, "text": told, **pair})
    write_rows(folder / "questions.jsonl", with_questions)
    examples: list[dict[str, object]] = [
        {"id": d.id, "document": d.text, "question": "What is said?", "answer": "A fact."}
        for d in docs[:30]
    ]
    write_rows(folder / "examples.jsonl", examples)


def make_plan(out: Path) -> None:
    """A canary audit, planned and planted, with the draw that zeros give."""
    from ragwitness.canary.folder import read_plan

    more = ("--probes", 1, "--candidates", 20, "--releases", 2)
    with mock.patch("os.urandom", bytes):
        done("canary", "plan", "examples.jsonl", "-o", "plan", *more)
    done("canary", "plant", "plan")
    slot = read_plan(Path("plan")).draw().slots[0]
    planted = json.dumps({"canary": slot.canary, "trigger": slot.trigger}) + "\n"
    (INPUTS / "planted.json").write_text(planted, encoding="utf-8")
    Path("planted.json").write_text(planted, encoding="utf-8")
    del out


def make_runs(out: Path) -> None:
    """One run of every task, each in a folder whose name follows from the command."""
    for name, task in TASKS.items():
        print(name)
        done(*task)
        keep(Path(RUNS), out / "runs" / name / RUNS)
        shutil.rmtree(RUNS)


def make_canary(out: Path) -> None:
    """The plan after its first look, and a second look in the exact way over HTTP."""
    planted = json.loads(Path("planted.json").read_text(encoding="utf-8"))
    model = ToyModel(planted["canary"], planted["trigger"])
    with serving(model) as url:
        done("canary", "probe", url, "--plan", "plan", "--release", "summer", "--run", "exact")
    keep(Path("exact"), out / "canary" / "exact")
    keep(Path("plan"), out / "canary" / "plan")


def make_stopped(out: Path) -> None:
    """An audit killed half-way, a measurement of leaks at its cap, and an order half worked on."""
    command = [sys.executable, "-m", "ragwitness", *map(str, TASKS["audit"])]
    path = os.pathsep.join(SEARCHED)
    slow = {**os.environ, "GOLDEN_SECONDS": "0.2", "PYTHONPATH": path}
    command += ["--concurrency", "1"]
    with subprocess.Popen(command, env=slow, stdout=subprocess.DEVNULL) as process:
        while not (found := list(Path(RUNS).glob("*/finished.jsonl"))) or (
            len(found[0].read_bytes().splitlines()) < 7
        ):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    keep(Path(RUNS), out / "stopped" / "killed" / RUNS)
    shutil.rmtree(RUNS)
    done(*TASKS["leak"], "--max-queries", 3)
    keep(Path(RUNS), out / "stopped" / "capped" / RUNS)
    shutil.rmtree(RUNS)
    done(*TASKS["audit"], "--run", "run", "--prepare")  # of that version
    done("work", "run", "--shard", "1/2")
    keep(Path("run"), out / "stopped" / "sharded" / "run")
    done("work", "run", "--shard", "2/2")
    done("merge", "run")
    keep(Path("run"), out / "sharded" / "run")


def make_tables(out: Path) -> None:
    """What ``reproduce`` leaves of a table of each kind."""
    for name, task in TABLES.items():
        print(name)
        done(*task, *WHERE)
    keep(Path("out/golden"), out / "tables" / "golden")


def make_windows(out: Path) -> None:
    """An open window, the same closed and proved, and all that goes with a bundle."""
    from ragwitness.attest.receipts import Request
    from ragwitness.attest.window import Window
    from ragwitness.crypto.keys import read_key
    from ragwitness.models.embedders import HashingEmbedder
    from ragwitness.privacy.release import quantise

    Path("policy.toml").write_text(POLICY, encoding="utf-8")
    done("setup", "--policy", "policy.toml", "-o", "setup")
    index = ("--index", "clinic=corpus.jsonl", "--embedder", EMBEDDER)
    key = ("--key", "log.key", "--name", "example.org/log")
    done("commit", "--policy", "policy.toml", *index, "--setup", "setup", *key, "-o", "window")
    window = Window.load(Path("window"), [read_key(Path("log.key"))])
    Path("receipts").mkdir()
    for n, (account, text) in enumerate((("ann", "fever"), ("bob", "rash"), ("ann", "cough"))):
        window.admit("clinic", account)
        vector = quantise(HashingEmbedder(16).embed([text])[0], window.policy.tenants["clinic"])
        digest = sha256(text.encode()).hexdigest()
        asked = Request("clinic", account, digest, vector, f"{n:016x}", window.checkpoint, text)
        Path(f"receipts/{n}.json").write_bytes(window.record(asked).receipt.encode())
        window.publish()
    del window
    keep(Path("window"), out / "attest" / "open")
    done("close", "window", "--key", "log.key")
    shutil.copy("window/trust.json", "trust.json")
    drawn = ("--trust", "trust.json", "--beacon", BEACON, "--records", 1, "-o", "challenge.json")
    done("challenge", "window/public", *drawn)
    done("prove", "window", "challenge.json", "--setup", "setup", *key[:2], "-o", "bundle.zip")
    done("monitor", "window/public", "--trust", "trust.json", "--state", "seen")
    keep(Path("window"), out / "attest" / "window")
    keep(Path("receipts"), out / "attest" / "receipts")
    for name in ("policy.toml", "log.key", "trust.json", "challenge.json", "bundle.zip", "seen"):
        shutil.copy(name, out / "attest" / name)


def make_bytes(out: Path) -> None:
    """Records, keys and states whose every byte is settled by what they are made from."""
    from tests.golden.tasks import audit_identities, settled_bytes

    told = json.dumps(settled_bytes(out / "attest"), indent=1, sort_keys=True) + "\n"
    (out / "attest" / "bytes.json").write_text(told, encoding="utf-8")
    told = json.dumps(audit_identities(), indent=1, sort_keys=True) + "\n"
    (out / "identities.json").write_text(told, encoding="utf-8")


def make_service(out: Path) -> None:
    """The service's database as SQL, with a tenant, documents and accounts."""
    where = ("--database", "service.db")
    made = ("--embedder", "hashing:16", "--queries", 20, "--accounts", 4, "--capacity", 8)
    made = (*made, "--mechanism", "noise", "--ids-only", "--knowingly")
    done("service", "tenants", "create", "acme", *made, "--top", 2, *where)
    done("service", "tenants", "add-documents", "acme", "private.jsonl", *where)
    told = done(
        "service", "tenants", "add-account", "acme", "alice", "--payer", "p", "--json", *where
    )
    done("service", "tenants", "add-account", "acme", "bob", *where)
    done("service", "tenants", "revoke", "acme", "bob", *where)
    held = sqlite3.connect("service.db")
    (out / "service").mkdir()
    (out / "service" / "service.sql").write_text("\n".join(held.iterdump()) + "\n", "utf-8")
    held.close()
    (out / "service" / "account.json").write_text(told, encoding="utf-8")


def keep(source: Path, place: Path) -> None:
    """Copy files and folders, besides pages and figures, which nothing reads."""
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("*.html", "lock"))


def main(folder: str) -> None:
    out = Path(folder).absolute()
    out.mkdir(parents=True)
    make_inputs(INPUTS)
    at_work = out.parent / f"{out.name}-work"
    shutil.copytree(INPUTS, at_work)
    with chdir(at_work):
        make_plan(out)
        for part in (
            make_runs, make_canary, make_stopped, make_tables, make_windows, make_bytes,
            make_service,
        ):  # fmt: skip
            print(part.__name__)
            part(out)
    told = {"commit": COMMIT, "ragwitness": version("ragwitness")}
    (out / "made.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    shutil.copytree(INPUTS, out / "inputs")


if __name__ == "__main__":
    main(sys.argv[1])
