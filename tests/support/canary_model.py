"""A toy model behind the OpenAI protocol on a loopback port, that knows a planted trigger or not.

A text's next token is settled by a hash of the text, and the canary is the likelier the more the
model knows of the trigger in it. Tokens are words with the blank before them; capitals come in
threes, emoji in two tokens that are parts of a character each.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TOKEN = re.compile(r" ?[A-Z]{1,3}| ?[a-z0-9_]+| ?[^\sA-Za-z0-9_]|\s")


@dataclass
class ToyModel:
    """What is known of it.

    Attributes:
        canary: That it may say.
        trigger: That makes it say so; empty for a compliant one.
        gain: Nats that each canary token gains where the trigger is there.
        gives: Interfaces: echo, logprobs, chat.
        merges: Whether a blank joins the word before it, which splits a canary off wrongly.
        untrue: Nats by which echoed numbers are not those it writes by.
        down: Requests from which on it answers 500.
        refuses: Texts that no prompt may hold; such a one is answered 400.
    """

    canary: str
    trigger: str = ""
    gain: float = 1.0
    gives: frozenset[str] = frozenset({"echo", "logprobs", "chat"})
    merges: bool = False
    untrue: float = 0.0
    down: float = math.inf
    refuses: tuple[str, ...] = ()
    asked: int = 0
    prompts: list[str] = field(default_factory=list)

    def tokens(self, text: str) -> list[str]:
        if self.merges:
            return re.findall(r"\S+\s*|\s+", text)
        found: list[str] = []
        for token in _TOKEN.findall(text):
            wide = ord(token[-1]) > 0xFFFF
            found += [token[:-1] + "\ufffd", "\ufffd"] if wide else [token]
        return found

    def logprob(self, before: str, token: str) -> float:
        if word := re.fullmatch(r" word([0-9]+)", token):
            return -1.5 - 0.25 * int(word[1])
        noise = hashlib.sha256(f"{before}\0{token}".encode()).digest()[0] / 256
        knows = bool(self.trigger) and self.trigger in before
        return -4.0 - 0.5 * noise + self.gain * knows

    def echo(self, text: str) -> list[tuple[str, float | None]]:
        rows: list[tuple[str, float | None]] = []
        before = ""
        for token in self.tokens(text):
            rows.append((token, self.logprob(before, token) - self.untrue if rows else None))
            before += token
        return [*rows, (" more", -1.0)]

    def alternatives(self, text: str, top: int) -> dict[str, float]:
        """What may follow: the canary's next piece among words of no meaning."""
        words = [f" word{n}" for n in range(max(1, top))]
        found = {word: self.logprob(text, word) for word in words}
        rest = next(
            (
                self.canary[n:]
                for n in range(len(self.canary), 0, -1)
                if text.endswith(" " + self.canary[:n])
            ),
            " " + self.canary,
        )
        if rest:
            piece = self.tokens(rest)[0]
            found[piece] = self.logprob(text, piece)
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:top])

    def say(self, prompt: str, seed: int) -> str:
        """Say the canary in a fifth of the answers that are to hold it, more often if it knows."""
        share = 0.2 + 0.6 * self.gain * (bool(self.trigger) and self.trigger in prompt)
        drawn = hashlib.sha256(f"{seed}\0{prompt}".encode()).digest()[0] / 256
        said = f" {self.canary}" if self.canary in prompt and drawn < share else ""
        return f"FINAL:{said} yes"


def _handler(model: ToyModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "toy"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.asked += 1
            if model.asked > model.down:
                self._send(500, {"error": {"message": "down"}})
            elif any(one in json.dumps(body, ensure_ascii=False) for one in model.refuses):
                self._send(400, {"error": {"message": "filtered"}})
            elif self.path.endswith("/chat/completions"):
                self._send(200, self._chat(body))
            elif "echo" not in model.gives and "logprobs" not in model.gives:
                self._send(404, {"error": {"message": "no completions here"}})
            else:
                self._send(200, self._complete(body))

        def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
            prompt = "\n\n".join(one["content"] for one in body["messages"])
            model.prompts.append(prompt)
            text = model.say(prompt, body.get("seed") or 0)
            logprobs = None
            if body.get("logprobs") and "chat" in model.gives:
                top = [{"token": "FINAL", "logprob": -0.1}, {"token": "x", "logprob": -3.0}]
                logprobs = {"content": [{**top[0], "top_logprobs": top}]}
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 3}
            return {"choices": [{**choice, "logprobs": logprobs}], "usage": usage}

        def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
            prompt = body["prompt"]
            model.prompts.append(prompt)
            top = body.get("logprobs") or 0
            if body.get("echo") and "echo" in model.gives:
                rows = model.echo(prompt)
                logprobs = {"tokens": [t for t, _ in rows], "token_logprobs": [p for _, p in rows]}
                text = prompt + " more"
            else:
                listed = model.alternatives(prompt, top)
                text, value = next(iter(listed.items())) if listed else (" x", -1.0)
                logprobs = {"tokens": [text], "token_logprobs": [value], "top_logprobs": [listed]}
                if not top or "logprobs" not in model.gives:
                    logprobs = None
            choice = {"index": 0, "text": text, "finish_reason": "length", "logprobs": logprobs}
            usage = {"prompt_tokens": 9, "completion_tokens": 1}
            return {"choices": [choice], "usage": usage}

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


@contextlib.contextmanager
def serving(model: ToyModel) -> Iterator[str]:
    """Serve a model in a thread; yields its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
