"""A loopback endpoint that remembers every prompt it is sent and may answer roughly.

The same prompt always has the same answer, so that results can be compared across runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = ("429", "429 later", "500", "503", "slow", "cut", "html", "bare", "closed")
TURNED_AWAY = {"429", "429 later", "503"}
"""Faults that say: nothing was worked on."""


class Rough(ThreadingHTTPServer):
    """Answers chat completions.

    Args:
        share: Of requests that meet a fault.
        seed: Of the faults.
        seconds: Each answer takes so long.

    Attributes:
        prompts: Of every request, in the order they came.
        fates: What befell each, ``"fine"`` where nothing did.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, share: float = 0.0, seed: int = 0, seconds: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.share, self.seconds = share, seconds
        self.rng, self.lock = random.Random(seed), threading.Lock()
        self.faults = itertools.cycle(self.rng.sample(FAULTS, len(FAULTS)))
        self.prompts: list[str] = []
        self.fates: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def fate_of(self, prompt: str) -> str:
        with self.lock:
            fate = next(self.faults) if self.rng.random() < self.share else "fine"
            self.prompts.append(prompt)
            self.fates.append(fate)
        return fate

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Rough

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        if not self.path.endswith("/chat/completions"):
            self._send(404, b"{}")
            return
        prompt = asked["messages"][-1]["content"]
        fate = self.server.fate_of(prompt)
        time.sleep(self.server.seconds)
        body = json.dumps(answer_to(prompt, logprobs=fate != "bare")).encode()
        if fate == "closed":
            self.close_connection = True
        elif fate == "slow":
            self._send(200, body[:20], len(body))
            self.wfile.flush()
            time.sleep(2.5)
        elif fate == "cut":
            self._send(200, body[: len(body) // 2])
        elif fate == "html":
            self._send(200, b"<html>maintenance</html>", kind="text/html")
        elif fate in ("fine", "bare"):
            self._send(200, body)
        else:
            headers = {"Retry-After": "0"} if fate == "429 later" else {}
            self._send(int(fate[:3]), b'{"error": {"message": "not now"}}', **headers)

    def _send(
        self,
        status: int,
        body: bytes,
        length: int | None = None,
        kind: str = "application/json",
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length or len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def answer_to(prompt: str, *, logprobs: bool = True) -> dict[str, Any]:
    """The one answer to a prompt: Yes or No where it asks for that, else eight hex digits."""
    text = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    if "Yes or No" in prompt:
        text = "Yes" if int(text, 16) % 2 else "No"
    top = [{"token": text, "logprob": -len(prompt) / 100}]
    content = [{**top[0], "top_logprobs": top}] if logprobs else []
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "logprobs": {"content": content} if logprobs else None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": len(prompt.split()), "completion_tokens": 1},
    }


@contextlib.contextmanager
def rough(share: float = 0.0, seed: int = 0, seconds: float = 0.0) -> Iterator[Rough]:
    """Run the endpoint in threads."""
    server = Rough(share, seed, seconds)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
