"""A chat model at an endpoint that reads what a question shows, and holds nothing else."""

from __future__ import annotations

from tests.support.loopback import Loopback, chat_body, reply

MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})


def reading(text: str) -> str:
    """Say whether the quoted text stands in what was shown before it."""
    before, _, quoted = text.rpartition("\u201c")
    return "Yes, it does." if quoted.partition("\u201d")[0].strip() in before else "No, it is not."


def _as_read(said: str) -> bytes:
    return reply(chat_body(reading(said)))


def answering(server_of, answer=_as_read, models=MODELS):
    """Return a step of a loopback server that lists its model and answers what it is asked.

    Args:
        server_of: Returns the server, once it runs.
        answer: Returns the reply to a conversation; by :func:`reading` unless given.
        models: Its list of models.
    """

    def step(connection) -> None:
        server: Loopback = server_of()
        path, body = server.requests[-1]
        said = "".join(one["content"] for one in body.get("messages", ()))
        connection.sendall(models if path.endswith("/models") else answer(said))

    return step
