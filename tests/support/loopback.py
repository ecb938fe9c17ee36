"""A scripted HTTP server on a loopback port that misbehaves on purpose."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

Step = bytes | Callable[[socket.socket], None]


def reply(body: object, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """One whole HTTP reply; text and bytes are sent as they are, the rest as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + data


def chat_body(text: str = "hi", logprobs: Any = None, **message: Any) -> dict[str, Any]:
    """A chat completion."""
    said = {"role": "assistant", "content": text} | message
    choice = {"index": 0, "message": said, "logprobs": logprobs, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


class Loopback:
    """Answers the i-th request with the i-th step, and further ones with the last."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        # A thread waiting in accept() is woken by shutting down, not by closing.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            head, body = _read(connection)
            if not head:  # opened ahead of need, and never used
                return
            step = self.steps[min(len(self.requests), len(self.steps) - 1)]
            self.headers.append(head)
            self.requests.append((head.split()[1], json.loads(body) if body else {}))
            if callable(step):
                step(connection)
            else:
                connection.sendall(step)


@contextlib.contextmanager
def loopback(*steps: Step) -> Iterator[Loopback]:
    """Run the server in a thread."""
    server = Loopback(steps)
    threading.Thread(target=server.run, daemon=True).start()
    try:
        yield server
    finally:
        server.close()


def _read(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().splitlines()
    size = next((int(x.split(":")[1]) for x in lines if x.startswith("content-length")), 0)
    while len(body) < size:
        body += connection.recv(65536)
    return head.decode("latin-1"), body
