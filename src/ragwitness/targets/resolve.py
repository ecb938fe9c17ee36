"""Opens a target by what the user calls it."""

from __future__ import annotations

from ragwitness.errors import InputError
from ragwitness.targets.transport import Clock, TransportOptions
from ragwitness.types import Target

__all__ = ["open_target"]


async def open_target(
    spec: str, options: TransportOptions | None = None, *, clock: Clock | None = None
) -> Target:
    """Open the endpoint at ``http(s)://...[#model]``.

    ``lab:FILE`` is a RAG system in this process; a higher layer builds it.

    Raises:
        InputError: Another form, an unusable URL or key, or several models and none named.
        TargetError: The endpoint does not answer.
    """
    if spec.strip().lower().startswith(("http://", "https://")):
        from ragwitness.targets.openai import OpenAITarget

        return await OpenAITarget.connect(spec, options, clock=clock)
    raise InputError(
        f"There is no target of the form {spec[:80]!r}.",
        "Use lab:FILE (a RAG system over that corpus, in this process) or the base URL of an "
        "OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1, with #MODEL where it has "
        "several.",
    )
