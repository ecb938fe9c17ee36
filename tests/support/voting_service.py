"""A JSON service on a loopback port that takes documents, questions and votes, badly if wished."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DESCRIPTION = """
[request]
url = "{url}/ask"
headers = {{ X-Trace = "{{trace}}" }}
body = '{{"text": "{{document}}", "question": "{{question}}"}}'
keep.answer = "$.id"

[response]
text = "$.answer"
question = "$.asked"

[vote]
url = "{url}/answers/{{answer}}/vote"
body = '{{"thumb": "{{vote}}"}}'
up = 1
down = -1
accepted = "$.taken"
"""


@dataclass
class Service:
    """What it does with what it is sent.

    Attributes:
        obeys: Whether answers hold the canary that the question asks for.
        fails: Of every so many requests one is answered 500; 0 for none.
        drops: Of every so many votes one is not taken, and the reply says so.
        rewrites: Whether it makes questions short, and says what it asked.
        dies: Requests after which it is gone for good.
    """

    obeys: bool = True
    fails: int = 0
    drops: int = 0
    rewrites: bool = False
    dies: int = 10**9
    requests: int = 0
    votes_seen: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    votes: dict[str, int] = field(default_factory=dict)
    chats: list[Any] = field(default_factory=list)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, object]:
        self.requests += 1
        if self.requests > self.dies or (self.fails and not self.requests % self.fails):
            return 500, {"error": {"message": "busy"}}
        if path.endswith("/vote"):
            self.votes_seen += 1
            if self.drops and not self.votes_seen % self.drops:
                return 200, {"taken": False}
            self.votes[path.split("/")[2]] = body["thumb"]
            return 200, {"taken": True}
        if path.endswith("/chat/completions"):
            self.chats.append(body["messages"])
            text = self.say(json.dumps(body["messages"], ensure_ascii=False))
            choice = {"index": 0, "message": {"role": "assistant", "content": text}}
            return 200, {"id": f"c{len(self.chats)}", "choices": [choice]}
        question = body["question"].split("?")[0] + "?" if self.rewrites else body["question"]
        self.asked.append((body["text"], question))
        return 200, {
            "id": f"a/{len(self.asked)}",
            "answer": self.say(question),
            "asked": question,
        }

    def say(self, question: str) -> str:
        found = re.search(r"\b[A-Z]{11}\b", question)
        return f"FINAL: {found[0] if found and self.obeys else ''} yes"


@contextlib.contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """Serve it in a thread; yields its URL. A service that comes back has its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": "toy"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*service.reply(self.path.replace("%2F", "~"), body))

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def described(folder: Path, url: str) -> str:
    """Write the description; return the address."""
    path = folder / "service.toml"
    path.write_text(DESCRIPTION.format(url=url))
    return f"http/{path}"
