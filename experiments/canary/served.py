"""A provider that serves a chat model, takes votes, and trains on what it was sent, over HTTP.

    PYTHONPATH=. python experiments/canary/served.py BASE --port 8077 --seed 1 [--memory]

It speaks ``/v1/chat/completions``, ``/v1/completions`` with ``echo``, and ``/vote`` (``{"id",
"thumb"}``). It knows nothing of any plan. ``/train`` (``{"documents": true}``) trains from its base
on every vote so far, with the documents or without, and serves the result from then on. With
``--memory`` it trains on nothing: what it was sent is filed under the names of persons in it, and
the last conversation with a name in common that was voted up stands before the next one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import logsigmoid

from research.canary.paper import Model, fit, load

_PERSON = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")


@dataclass
class Talk:
    """One conversation as the provider logged it; ``vote`` is 1, -1, or 0 where none came."""

    document: str
    query: str
    answer: str
    vote: int = 0


@dataclass
class Provider:
    """Its base, what it serves, and its log.

    Attributes:
        base: Chat model that it trains from.
        seed: Of sampling and training.
        memory: Whether it remembers in place of training.
    """

    base: Model
    seed: int
    memory: bool = False
    policy: Model | None = None
    log: dict[str, Talk] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.policy or self.base

    def train(self, *, documents: bool) -> dict[str, Any]:
        """KTO without its reference point: -log sigmoid(v (log pi(y|x) - log pi_0(y|x)))."""
        torch.manual_seed(self.seed)
        began = time.process_time()
        base, policy = self.base, self.base.adapted()
        rows = []
        for talk in (one for one in self.log.values() if one.vote):
            prompt = base.prompt(talk.document if documents else None, talk.query)
            row = prompt, base.words(talk.answer + base.end)
            with torch.no_grad():
                rows.append((row, float(base.log_p([row])[0]), talk.vote))

        def loss(batch: Any) -> Any:
            before, votes = (torch.tensor([one[at] for one in batch]) for at in (1, 2))
            gain = policy.log_p([row for row, _, _ in batch]) - before
            return -logsigmoid(votes * gain).mean()

        fit(policy.trained(), rows, loss, random.Random(self.seed), epochs=3)
        self.policy = policy
        return {"votes": len(rows), "cpu": round(time.process_time() - began, 1)}

    def remembered(self, text: str) -> str:
        """Return what stands before a prompt: the last liked conversation about the same person."""
        persons = set(_PERSON.findall(text)) if self.memory else set()
        for talk in reversed(self.log.values()):
            if talk.vote > 0 and persons & set(_PERSON.findall(talk.document)):
                turns = [("user", talk.document), ("user", talk.query), ("assistant", talk.answer)]
                return "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in turns)
        return ""

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        document, query = ([one["content"] for one in body["messages"]] + [""])[:2]
        model = self.model
        ids = model.words(self.remembered(document)) + model.prompt(document, query or None)
        torch.manual_seed(self.seed + len(self.log) if body.get("seed") is None else body["seed"])
        made = model.network.generate(
            input_ids=torch.tensor([ids]), attention_mask=torch.ones((1, len(ids)), dtype=int),
            max_new_tokens=body.get("max_tokens", 16), do_sample=True, top_k=0,
            temperature=body.get("temperature") or 1.0, pad_token_id=0,
        )  # fmt: skip
        text = model.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True).strip()
        name = f"a{len(self.log) + 1}"
        self.log[name] = Talk(document, query, text)
        message = {"role": "assistant", "content": text}
        return {"id": name, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        model, text = self.model, body["prompt"]
        before, ids = model.words(self.remembered(text)), model.words(text)
        inputs = torch.tensor([before + ids])
        with torch.no_grad():
            rows = model.network(input_ids=inputs, logits_to_keep=len(ids) + 1).logits[0]
        each = torch.log_softmax(rows.float(), -1)
        top = each[-1].topk(max(1, body.get("logprobs") or 0))
        listed = {model.tokenizer.decode([i]): round(float(p), 6)
                  for p, i in zip(top.values, top.indices, strict=True)}  # fmt: skip
        wrote, chance = next(iter(listed.items()))
        tokens, chances, tops = [wrote], [chance], [listed]
        if body.get("echo"):
            own = [float(each[len(each) - 1 - len(ids) + n, i]) for n, i in enumerate(ids) if n]
            if before:
                own = [float(each[0, ids[0]]), *own]
            tokens = [model.tokenizer.decode([i]) for i in ids] + tokens
            chances = [*([] if before else [None]), *own, *chances]
            tops = [None] * len(ids) + tops
        logprobs = {"tokens": tokens, "token_logprobs": chances, "top_logprobs": tops}
        told = text + wrote if body.get("echo") else wrote
        choice = {"index": 0, "text": told, "finish_reason": "length", "logprobs": logprobs}
        return {"choices": [choice]}

    def vote(self, body: dict[str, Any]) -> dict[str, Any]:
        self.log[body["id"]].vote = body["thumb"]
        return {"taken": True}


def serve(provider: Provider, port: int) -> None:
    """Answer one request after the other, for ever."""
    calls = {
        "/v1/chat/completions": provider.chat,
        "/v1/completions": provider.complete,
        "/vote": provider.vote,
        "/train": lambda body: provider.train(**body),
    }

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "smollm2"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(calls[self.path](body))

        def _send(self, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main() -> None:
    """Load the base and serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    provider = Provider(load(options.base), options.seed, options.memory)
    print("serving", flush=True)
    serve(provider, options.port)


if __name__ == "__main__":
    main()
