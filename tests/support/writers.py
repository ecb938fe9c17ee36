"""A loopback chat endpoint that plays SAGE's model and both agents by a script.

What is asked is told from the prompt alone, so that the same question has the same answer and a
resumed run can be compared with one that was not stopped.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[str, str], "Said | str"]
"""From the kind of question (``identify``, ``extract``, ``generate``, ``judge``, ``rewrite``,
``other``) and the prompt to what is said."""

_KINDS = (
    ("judge", "You judge"),
    ("rewrite", "You improve a synthetic text"),
    ("identify", "Below are examples of one kind of text"),
    ("extract", "Answer with these lines, completed"),
    ("generate", "These are the main points of a text"),
    # As the paper prints them; the agents' system messages come first.
    ("judge", "You are a privacy evaluation agent"),
    ("rewrite", "You are a synthetic data generator"),
    ("extract", "Please summarize the key points"),
    ("generate", "Here is a summary of the key points"),
)
_BETWEEN = re.compile(r"<<<\n(.*?)\n>>>", re.DOTALL)


class Said:
    """An answer with how it ended, or an HTTP status, or silence."""

    def __init__(
        self, text: str = "", finish: str = "stop", status: int = 200, wait: float = 0.0
    ) -> None:
        self.text, self.finish, self.status, self.wait = text, finish, status, wait


def kind_of(prompt: str) -> str:
    return next((kind for kind, words in _KINDS if words in prompt), "other")


def blocks(prompt: str) -> list[str]:
    """The texts that a prompt holds between <<< and >>>."""
    return _BETWEEN.findall(prompt)


def good(kind: str, prompt: str) -> str:
    """A model that does what it is told; the judge finds everything safe."""
    if kind == "identify":
        return "- [subject]\n- [cause]\n- [remedy]"
    if kind == "extract":
        told = blocks(prompt) or [prompt]
        words = re.findall(r"[a-z]{6,}", told[0].lower())
        rare = sorted(set(words))[::3][:9]
        names = re.findall(r"- \[([^\]]+)\]", prompt)
        return "\n".join(f"- [{n}]: {' '.join(rare[i::3])}" for i, n in enumerate(names))
    if kind == "judge":
        shown = blocks(prompt) or [prompt, prompt.rpartition("GENERATED DATA:")[2].strip()]
        return f"SAFE_DATA: [BEG]{shown[1].removesuffix('Joe:').strip()}[END]THISISSAFE"
    told = re.findall(r"\]: (.*)", prompt) or blocks(prompt)[:1] or ["it"]
    told = ["it"] if kind == "other" else told
    return f"Somebody asked about {' and about '.join(told)}, and was given kind advice."


class Writers(ThreadingHTTPServer):
    """Answers chat completions as a script says.

    Attributes:
        prompts: Of every request, in the order they came.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.prompts: list[tuple[str, Any]] = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Writers

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        with self.server.lock:
            self.server.prompts.append((prompt, asked.get("seed")))
        said = self.server.script(kind_of(prompt), prompt)
        said = Said(said) if isinstance(said, str) else said
        time.sleep(said.wait)
        message = {"role": "assistant", "content": said.text}
        body = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
            "usage": {"prompt_tokens": len(prompt.split()), "completion_tokens": 9},
        }
        data = json.dumps(body).encode()
        self.send_response(said.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


@contextlib.contextmanager
def writers(script: Script = good) -> Iterator[Writers]:
    """Run the endpoint in threads."""
    server = Writers(script)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
