"""An audit from end to end: planned and planted, two providers trained, served, probed.

    python experiments/canary/served.py --out build/experiments/canary/served

Both providers get the same traces; one trains with documents. Each policy is served on loopback by
the OpenAI protocol, and `ragwitness canary probe` is all that looks at it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ragwitness.canary.examples import Example
from ragwitness.canary.plant.folder import read_plan
from ragwitness.canary.simulate.pieces import name_markers
from ragwitness.canary.simulate.policies import Base, one_thread
from ragwitness.canary.simulate.sequences import generate
from ragwitness.canary.simulate.trial import train_provider
from ragwitness.runs.canary_study import load_study_table
from ragwitness.runs.canary_study.worlds import WorldFolders, make_world


class Served:
    """A policy as two endpoints answer for it."""

    def __init__(self, base: Base, policy: Any, logprobs: bool) -> None:
        import torch

        self.base, self.policy, self.logprobs = base, policy, logprobs
        self.draws = torch.Generator().manual_seed(0)
        self.lock = threading.Lock()

    def complete(self, text: str, echo: bool, top: int) -> dict[str, Any]:
        """One more token, and with ``echo`` the log-probability of every token of the text."""
        import torch

        coded = self.base.tokenizer(text, return_offsets_mapping=True)
        ids, places = coded["input_ids"], coded["offset_mapping"]
        with torch.no_grad():
            logits = self.policy(input_ids=torch.tensor([ids])).logits[0].float()
        logits[:, self.base.pad] = -1e9
        scores = logits.log_softmax(1)
        best = scores[-1].topk(max(1, top))
        names = self.base.tokenizer.convert_ids_to_tokens(best.indices.tolist())
        listed = dict(zip(names, best.values.tolist(), strict=True))
        said = [names[0]], [best.values[0].item()], [listed]
        tokens = [text[start:end] for start, end in places] if echo else []
        known = [None, *(scores[at, one].item() for at, one in enumerate(ids[1:]))] if echo else []
        return {
            "text": (text if echo else "") + names[0],
            "logprobs": {
                "tokens": tokens + said[0],
                "token_logprobs": known + said[1],
                "top_logprobs": [None] * len(tokens) + said[2],
            },
        }

    def say(self, text: str, longest: int) -> str:
        ids = self.base.encode([text])
        rows = generate(self.policy, ids, longest=longest, eos=self.base.eos, pad=self.base.pad,
                        generator=self.draws)  # fmt: skip
        return self.base.answers(rows)[0]


def handler(model: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self.send(200, {"object": "list", "data": [{"id": "toy"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            usage = {"prompt_tokens": 0, "completion_tokens": 1}
            with model.lock:
                if self.path.endswith("/chat/completions"):
                    text = model.say(body["messages"][-1]["content"], 6)
                    choice = {"index": 0, "finish_reason": "stop",
                              "message": {"role": "assistant", "content": text}}  # fmt: skip
                elif model.logprobs:
                    found = model.complete(
                        body["prompt"], bool(body.get("echo")), int(body.get("logprobs") or 0)
                    )
                    choice = {"index": 0, "finish_reason": "length", **found}
                else:
                    self.send(404, {"error": {"message": "no completions"}})
                    return
            self.send(200, {"choices": [choice], "usage": usage})

        def send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


@contextlib.contextmanager
def serving(model: Served) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(model))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def cli(*arguments: object) -> str:
    command = [sys.executable, "-m", "ragwitness", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def write(path: Path, examples: list[Example]) -> Path:
    rows = ({"id": o.id, "document": o.document, "question": o.query, "answer": o.answer}
            for o in examples)  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--probes", type=int, default=4)
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    one_thread()
    case = load_study_table("canary/toy", Path("experiments")).cases[0]
    world = make_world(
        {"kind": "toy", "examples": case.world.examples},
        WorldFolders(None, Path("build/experiments/bases")),
    )
    examples = list(world.draw(random.Random(options.seed)))
    sent, held_out = examples[:-20], examples[-20:]
    audit = out / "audit"
    probed = ("--held-out", write(out / "held-out.jsonl", held_out), "--probes", options.probes)
    sent_to = write(out / "examples.jsonl", sent)
    cli("canary", "plan", sent_to, "-o", audit, "--rate", case.trial.design.rate, *probed)
    cli("canary", "plant", audit)
    plan = read_plan(audit)
    base = name_markers(world.base, plan.draw())
    pools = {name: {one.id for one in pool} for name, pool in plan.pools.items()}
    traces = plan.traces()
    logs = [[one for one in traces if one.id in pools[name]] for name in ("reward", "policy")]
    for violating in (True, False):
        rng = random.Random(options.seed)
        provider = train_provider(base, *logs, case.trial, rng, violating=violating)
        arm = "violating" if violating else "compliant"
        for logprobs in (True, False):
            way = "exact" if logprobs else "sampled"
            # A plan adds up the releases it has probed: each model here is another service's.
            own = shutil.copytree(audit, out / f"audit-{arm}-{way}")
            with serving(Served(base, provider.policy, logprobs)) as url:
                told = cli("canary", "probe", url, "--plan", own, "--way", way, "--samples", 2,
                           "--release", f"{arm}-{way}", "--run", out / f"{arm}-{way}")  # fmt: skip
            print(f"== {arm}, {way}\n{told}", flush=True)


if __name__ == "__main__":
    main()
