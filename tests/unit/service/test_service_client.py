"""The client's reading of a service's replies; against a server in ``tests/services``."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ragwitness.core.errors import TargetResponseError, TargetUnreachableError
from ragwitness.service.client import Client, ServiceDocument

_REPLY: dict[str, object] = {}
_SEEN: list[tuple[str, str, object]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _SEEN.append((self.path, self.headers["Authorization"], body))
        told = _REPLY["body"]
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(int(str(_REPLY["status"])))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Retry-After", "7")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    _SEEN.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_documents_come_in_the_service_s_order(url: str, suffix: str) -> None:
    documents = [{"slot": 7, "id": "b", "text": "B"}, {"slot": 2, "id": "a", "text": "A"}]
    _REPLY.update(status=200, body={"ids": [7, 5, 2], "documents": documents})
    wanted = [ServiceDocument("b", "B", 7), ServiceDocument("a", "A", 2)]
    assert Client(url + suffix, "k").retrieve("q") == wanted
    assert _SEEN == [("/v1/retrieval", "Bearer k", {"query": "q"})]
    _REPLY["body"] = {"ids": [7, 5]}  # a tenant that gives no texts
    assert Client(url, "k").retrieve("q") == [
        ServiceDocument("slot 7", "", 7),
        ServiceDocument("slot 5", "", 5),
    ]


def test_refusals_and_nonsense_are_named(url: str) -> None:
    client = Client(url, "k")
    _REPLY.update(status=429, body={"error": {"message": "No query is left."}})
    with pytest.raises(TargetResponseError, match="429: No query is left") as found:
        client.retrieve("q")
    assert "7 seconds" in found.value.hint
    for status, body in ((200, b"<html>"), (502, b"gone"), (200, []), (200, {"documents": [{}]})):
        _REPLY.update(status=status, body=body)
        with pytest.raises(TargetResponseError, match="none of /v1/retrieval"):
            client.retrieve("q")
    with pytest.raises(TargetUnreachableError, match="does not answer"):
        Client("http://127.0.0.1:9", "k").retrieve("q")
    assert "secret" not in repr(Client(url, "secret"))
