"""A RAG service with accounts on the loopback: a key opens the documents of an account."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from ragwitness.core.types import Document, Query
from ragwitness.rag.lab import lab_target, rag_config


@contextmanager
def tenants_rag(reachable: Mapping[str, Sequence[Document]]) -> Iterator[str]:
    """Serve an OpenAI-compatible endpoint that repeats what each key's documents hold.

    Args:
        reachable: The documents that a key reaches.
    """
    systems = {
        key: lab_target(tuple(documents), rag_config(generator="repeat"), "none")
        for key, documents in reachable.items()
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(200, {"data": [{"id": "rag"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.endswith("/chat/completions"):
                self._reply(404, {"error": {"message": "There is no such path."}})
                return
            system = systems.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
            if system is None:
                self._reply(401, {"error": {"message": "No such key."}})
                return
            prompt = body["messages"][-1]["content"]
            answer = asyncio.run(system.ask(Query(prompt, body.get("max_tokens") or 256)))
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._reply(200, {"choices": [choice], "model": "rag"})

        def _reply(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
