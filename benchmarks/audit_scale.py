"""An audit of many documents from end to end, against a target that answers at once.

    python benchmarks/audit_scale.py [documents] [method]

By the command line, as a user runs it, with a method of one question and no model, so that what is
measured is the harness (name another method to add its own work): CPU and wall seconds, peak memory
(goal 2 GB), the files of the run; then `report` on it, and the pages of `view` (goals 300 ms and
300 kB each): the first page, which reads the result, and every page after it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_WORDS, _KNOWN = 60, 200
_TARGET = '''
import zlib
from dataclasses import dataclass
from ragwitness.core.types import Capability, Evidence, Interval, Query, Score

def answer(prompt):
    """A sentence, whatever it is asked."""
    return f"Perhaps {zlib.crc32(prompt.encode())}."

@dataclass(frozen=True)
class InstantConfig:
    pass

class Instant:
    """One question a document, and no model: the harness alone."""
    name, requires = "instant", frozenset({Capability.TEXT})
    def __init__(self, proxy, config=None):
        self.proxy, self.config = proxy, config or InstantConfig()
    def probe(self, document):
        (answer,) = yield [Query(f"Is this known? {document.text}", 16)]
        number = zlib.crc32(answer.text.encode())
        if number % 50 == 0:
            return Score(None, reason="the answer is neither yes nor no")
        words = document.text.split()
        told = tuple(
            Evidence(words[at], " ".join(words[at - 6 : at]), Interval(0.2, 0.9), 0.1)
            for at in range(10, 60, 10)
        )
        # Members score higher: those with an odd number at the end.
        return Score(number % 1009 / 1009 + 0.4 * (document.id[-1] in "13579"), evidence=told)
'''
_PLUGIN = """[ragwitness.audits]
instant = instant:Instant
"""


def _write(folder: Path, count: int) -> None:
    from ragwitness.text.sample import load_sample

    words = [word for document in load_sample() for word in document.text.split()]
    rng = random.Random(0)
    for name, first, n in (("docs", 0, count), ("known", count, _KNOWN)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(first, first + n):
                text = " ".join(rng.choices(words, k=_WORDS))
                file.write(json.dumps({"id": f"record-{number:06d}", "text": text}) + "\n")
    # Target and method of our own, found as those of any other package are: by their metadata.
    (folder / "instant.py").write_text(_TARGET)
    about = folder / "instant-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "entry_points.txt").write_text(_PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: instant\nVersion: 1.0\n")


def _run(folder: Path, *arguments: str) -> str:
    """Run a command of ours; say what it took."""
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    path = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with subprocess.Popen(
        [sys.executable, "-m", "ragwitness", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{arguments[0]}: {cpu or used.ru_utime + used.ru_stime:.1f} s CPU,"
        f" {time.monotonic() - clock:.1f} s wall, peak {used.ru_maxrss / 1024:.0f} MB",
        flush=True,
    )
    return said


async def _pages(folder: Path) -> None:
    import httpx2

    from ragwitness.web.app import create_app

    transport = httpx2.ASGITransport(app=create_app([folder]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def get(address: str) -> str:
            before, clock = time.process_time(), time.monotonic()
            reply = await client.get(address)
            cpu, wall = time.process_time() - before, time.monotonic() - clock
            kind = f"{reply.status_code}, {1000 * cpu:.0f} ms CPU, {1000 * wall:.0f} ms wall"
            print(f"  {address}: {kind}, {len(reply.content) / 1000:.0f} kB", flush=True)
            return reply.text

        run = re.search(r'href="(/run/\w+)"', await get("/"))
        address = run[1] if run else ""
        await get(address)
        await get(address)
        await get(f"{address}/document?id=record-000007")
        for query in ("", "?page=90", "?group=inconclusive", "?sort=-score", "?search=1234"):
            await get(f"{address}/rows{query}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"view: peak {peak:.0f} MB", flush=True)


def main() -> None:
    """Audit, report and view."""
    if sys.argv[1:2] == ["--pages"]:
        asyncio.run(_pages(Path(sys.argv[2])))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    method = sys.argv[2] if len(sys.argv) > 2 else "instant"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get("KEEP", name))
        folder.mkdir(exist_ok=True)
        _write(folder, count)
        documents = ["--documents", "docs.jsonl", "--known-out", "known.jsonl"]
        said = _run(
            folder,
            *("audit", "python:instant:answer", *documents, "--method", method, "--run", "run"),
        )
        print("\n".join(said.splitlines()[-60:]))
        for path in sorted((folder / "run").rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                print(f"  {path.relative_to(folder)}: {path.stat().st_size / 1e6:.2f} MB")
        _run(folder, "report", "run")
        subprocess.run([sys.executable, __file__, "--pages", str(folder)], check=True)


if __name__ == "__main__":
    main()
