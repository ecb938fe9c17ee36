"""The service under load, killed, and attacked; on SQLite and on PostgreSQL.

python benchmarks/service.py [--requests 10000] [--in-flight 200] [--hostile 500]

Prints what was asked, what was paid, whether any meter was passed by a single query, what a kill -9
in the middle lost, what 500 requests for another tenant's documents brought, and the CPU of a
request beside a bare endpoint's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' server and clients

from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.release import quantise
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.store import Store, open_store
from ragwitness.service.tenants import TenantBudget, budget_of
from tests.support.postgres import find_postgres, postgres
from tests.support.service import (
    Outcome,
    Server,
    attempts,
    flood,
    make_tenant,
    send_all,
)

DIMENSION = 384
_ACCOUNTS, _PAYERS = 40, 8
_KILLS = 6
_LARGE = Claim(
    mechanism="noise",
    epsilon=3.0,
    queries=5000,
    accounts=2,
    capacity=1000,
    top=4,
    embedder=f"hashing:{DIMENSION}",
)


def claims(requests: int) -> dict[str, Claim]:
    """Three claims, each short of one meter: it admits 60 % of a third of the requests."""
    admitted = requests // 5
    policy = make_policy(_LARGE, DIMENSION)
    joint = epsilon_at(_LARGE.joint_delta, policy.terms.worst_mu(admitted))
    return {
        "account": replace(_LARGE, queries=admitted // _ACCOUNTS, accounts=_ACCOUNTS),
        "payer": replace(_LARGE, payer_queries=admitted // _PAYERS),
        "index": replace(_LARGE, joint_epsilon=joint),
    }


def main() -> None:
    """Run everything on each database."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--hostile", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for kind in ("sqlite", "postgresql"):
        with tempfile.TemporaryDirectory() as name, database_of(kind, Path(name)) as url:
            if url is None:
                print(f"== {kind}: not installed")
                continue
            print(f"== {kind}", flush=True)
            log = Path(name) / "log"
            load(url, log, options)
            overhead(url, log, options.rounds)
            hostile(url, log, options.hostile)


@contextlib.contextmanager
def database_of(kind: str, folder: Path) -> Iterator[str | None]:
    if kind == "sqlite":
        open_store(str(folder / "service.db"), create=True).close()
        yield str(folder / "service.db")
        return
    programs = find_postgres()
    if programs is None:
        yield None
        return
    with postgres(programs) as cluster:
        yield cluster.url


def load(url: str, log: Path, options: argparse.Namespace) -> None:
    """Three tenants at once, each short of another meter; kill -9 in the middle."""
    store = open_store(url)
    claimed = claims(options.requests)
    keys = {
        name: make_tenant(store, name, _ACCOUNTS, _PAYERS, claim) for name, claim in claimed.items()
    }
    mixed = [key for trio in zip(*keys.values(), strict=True) for key in trio]
    before: list[Outcome] = []
    with Server(url, log) as server:
        for i in range(_KILLS):
            before += _killed(server, mixed, options.in_flight, i)
            server.start()
        paid = {name: _paid(before, keys[name]) for name in claimed}
        kept = {name: budget_of(store, name).queries for name in claimed}
        answered, charged = sum(map(len, paid.values())), sum(kept.values())
        lost = sum(max(0, len(paid[name]) - kept[name]) for name in claimed)
        print(f"{_KILLS} times kill -9 with {options.in_flight} in flight: answered {answered},")
        print(f"  charged {charged}; answered but not charged {lost}")
        outcomes = asyncio.run(
            flood(server.url, mixed, options.requests, options.in_flight, DIMENSION, 99, 0.9)
        )
    print(f"{options.requests} retrievals, {options.in_flight} in flight:", end=" ")
    print(dict(Counter(one.status for one in outcomes)))
    seconds = np.array([one.seconds for one in outcomes])
    quantiles = np.quantile(seconds, [0.5, 0.95, 0.99]) * 1000
    print("  ms p50 / p95 / p99: {:.0f} / {:.0f} / {:.0f}".format(*quantiles))
    for name in claimed:
        every = [*paid[name], *_paid(outcomes, keys[name])]
        _check(name, make_policy(claimed[name], DIMENSION), budget_of(store, name), every)
    store.close()


def _killed(server: Server, keys: list[str], in_flight: int, seed: int) -> list[Outcome]:
    """Flood a server that another process kills a moment after it has got going."""
    moment = 1.5 + random.Random(seed).random()
    killer = subprocess.Popen(["sh", "-c", f"sleep {moment}; kill -9 -{server.process.pid}"])  # noqa: S607
    found = asyncio.run(flood(server.url, keys, 2000, in_flight, DIMENSION, seed, 0.9))
    killer.wait()
    server.kill()
    return found


def _check(meter: str, policy: TenantPolicy, found: TenantBudget, paid: list[Outcome]) -> None:
    """Print by how much a meter was passed, from what the clients hold in their hands."""
    rows = quantise(np.array([one.vector for one in paid]), policy.mechanism).astype(float)
    rows /= policy.terms.scale
    mu = policy.terms.mu_of(float(np.linalg.eigvalsh(rows.T @ rows)[-1]), len(rows))
    most = {
        "account": max(row.queries for row in found.accounts) - found.account_limit,
        "payer": max(row.payer_queries for row in found.accounts) - (found.payer_limit or 0),
        "index": found.mu / found.budget - 1,
    }
    clients = Counter(one.key for one in paid)
    print(
        f"  {meter:<8} answered {len(paid)}, charged {found.queries}; above its limit by"
        f" {most[meter]:.3g}; most answers of one account {max(clients.values())}; mu of"
        f" the answers {mu / policy.budget:.4f} of the budget"
    )


_BARE = """
import sys
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from ragwitness.core.server import listen, origin, serve_app

async def answer(request):
    return JSONResponse({"ids": [1, 2, 3, 4], "characters": len((await request.json())["query"])})

listener = listen("127.0.0.1", 0)
listener.listen(1024)
app = Starlette(routes=[Route("/v1/retrieval", answer, methods=["POST"])])
serve_app(app, listener, lambda: print(origin("127.0.0.1", listener), flush=True))
"""


def overhead(url: str, log: Path, rounds: int) -> None:
    """CPU of the server's process a request, in turns with a bare endpoint; 50 in flight."""
    store = open_store(url)
    codes = Claim(capacity=1024, texts=True)
    placed = make_tenant(store, "placed", accounts=1, claim=codes)
    noised = make_tenant(store, "noised", accounts=1, claim=replace(_LARGE, capacity=1024))
    store.close()
    command = [sys.executable, "-c", _BARE]
    with (
        Server(url, log) as server,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bare,
    ):
        address = bare.stdout.readline().strip() if bare.stdout is not None else ""
        served = (server.url, server.process.pid)
        asked = {
            "bare": ((address, bare.pid), "none"),
            "codes": (served, placed[0]),
            "noise": (served, noised[0]),
        }
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, ((where, pid), key) in asked.items():
                spent[name].append(asyncio.run(_turn(where, pid, key)))
        bare.terminate()
    for name, turns in spent.items():
        ratios = [mine[0] / its[0] for mine, its in zip(turns, spent["bare"], strict=True)]
        cpu = ", ".join(f"{ms:.2f}" for ms, _ in turns)
        rate = ", ".join(f"{count:.0f}" for _, count in turns)
        print(
            f"{name}: CPU ms a request {cpu}; requests a second {rate}; times the bare endpoint's"
            f" CPU {min(ratios):.1f} to {max(ratios):.1f}",
            flush=True,
        )


async def _turn(where: str, pid: int, key: str, seconds: float = 4.0) -> tuple[float, float]:
    """CPU milliseconds of a process a request, and requests a second, over kept sockets."""
    loop = asyncio.get_running_loop()
    host, _, port = where.removeprefix("http://").removesuffix("/v1").partition(":")
    head = f"POST /v1/retrieval HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
    answered, end = 0, loop.time() + seconds

    async def ask(number: int) -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(host, int(port))
        while loop.time() < end:
            body = json.dumps({"query": f"the code of door {answered} of patient {number}"})
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            reply = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b" 200 " not in reply[:16]:
                raise SystemExit(f"the server failed: {reply!r}")
            await reader.readexactly(int(reply.split(b"content-length: ")[1].split()[0]))
            answered += 1
        writer.close()

    before, began = _cpu(pid), loop.time()
    await asyncio.gather(*(ask(number) for number in range(50)))
    return 1000 * (_cpu(pid) - before) / answered, answered / (loop.time() - began)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hostile(url: str, log: Path, count: int) -> None:
    """Requests of one tenant for another's documents."""
    store = open_store(url)
    claim = replace(_LARGE, capacity=16)  # most slots are full, so that answers show documents
    [attacker] = make_tenant(store, "mallory", accounts=1, claim=claim)
    make_tenant(store, "victim", accounts=2, claim=claim)
    before = budget_of(store, "victim")
    with Server(url, log) as server:
        asyncio.run(send_all(server.url, list(attempts(attacker, "victim", 200, 1))))
        held = [server.resident()]
        tries = list(attempts(attacker, "victim", count))
        replies = []
        for start in range(0, count, 1000):  # what grows with requests grows with each thousand
            replies += asyncio.run(send_all(server.url, tries[start : start + 1000]))
            held.append(server.resident())
    print(
        "  MiB of all processes after 200 and after each thousand more:",
        " ".join(f"{one:.0f}" for one in held),
    )
    after = budget_of(store, "victim")
    # What a client sends of the victim's comes back in its own words; documents are numbered.
    leaks = sum("of door" in reply.text and "victim0" in reply.text for reply in replies)
    leaks += sum(f"is victim{i}." in reply.text for reply in replies for i in range(12))
    own = sum("is mallory" in reply.text for reply in replies)
    statuses = dict(sorted(Counter(reply.status_code for reply in replies).items()))
    print(f"{count} hostile requests: {statuses}; with a document of the victim's: {leaks}; with")
    print(f"  one of the sender's own: {own}; charged to the victim: {after.queries}", end="")
    print(f" (before: {before.queries}); charged to the sender: {_queries(store, 'mallory')}")
    store.close()


def _queries(store: Store, tenant: str) -> int:
    return budget_of(store, tenant).queries


def _paid(outcomes: list[Outcome], keys: list[str]) -> list[Outcome]:
    mine = set(keys)
    return [one for one in outcomes if one.status == 200 and one.key in mine]


if __name__ == "__main__":
    main()
