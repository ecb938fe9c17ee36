"""A chat model at an endpoint that reads what a question shows, and holds nothing else."""

from __future__ import annotations

from tests.support.loopback import Loopback, chat_body, reply

MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})


def reading(text: str) -> str:
    """Say whether the quoted text stands in what was shown before it."""
    before, _, quoted = text.rpartition("\u201c")
    return "Yes, it does." if quoted.partition("\u201d")[0].strip() in before else "No, it is not."


def answering(server_of):
    """Return a step of a loopback server that answers by :func:`reading`.

    Args:
        server_of: Returns the server, once it runs.
    """

    def step(connection) -> None:
        server: Loopback = server_of()
        path, body = server.requests[-1]
        said = "".join(one["content"] for one in body.get("messages", ()))
        models = path.endswith("/models")
        connection.sendall(MODELS if models else reply(chat_body(reading(said))))

    return step
