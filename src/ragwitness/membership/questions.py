"""The questions of an audit in one file, to be answered elsewhere and concluded by ``replay``.

The file has the form of the OpenAI Batch API, which vLLM and hosted services read as well: one
request per line. A batch job or a GPU answers thousands of them in minutes, because none waits for
another. Its output is a target: ``replay/ANSWERS.jsonl`` (:mod:`ragwitness.runner.replay`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragwitness.core.errors import InputError
from ragwitness.core.files import replace_file
from ragwitness.core.types import Audit, Document, Message, Query, Role
from ragwitness.membership.plan import at_target
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem
from ragwitness.rag.target import LabTarget
from ragwitness.runner.replay import ReplayTarget, question_key, read_recording
from ragwitness.runner.worker import Done, advance, probe_of
from ragwitness.targets.resolve import open_target

_OURS = ("lab:", "hf/")  # addresses of systems that retrieve in this process


def open_questions(audit: Audit, document: Document, replay: ReplayTarget | None) -> list[Query]:
    """Return the questions about a document that an audit asks next and that have no answer yet.

    An audit whose questions do not depend on answers lists all of them by a method ``questions``:
    then one round is enough.
    """
    # 1. The audit goes on by the recorded answers as far as they reach.
    probe = probe_of(audit, document)
    step = advance(probe, None)
    while replay is not None and not isinstance(step, Done):
        answers = [answer for query in step if (answer := replay.find(query)) is not None]
        if len(answers) < len(step):
            break
        step = advance(probe, answers)
    probe.close()
    if isinstance(step, Done):
        return []
    # 2. Its next questions, and those that may follow.
    listed = getattr(audit, "questions", lambda _: ())(document)
    queries = dict.fromkeys([*step, *listed])
    return [query for query in queries if not (replay and replay.find(query))]


async def write_questions(
    path: Path, order: PreparedAudit, answered: Path | None = None
) -> tuple[int, int, int]:
    """Write the questions of an audit into a file, and send nothing.

    Questions that depend on answers are written in a further round.

    A lab system (``lab:``, ``hf/``) is opened: it retrieves and fills in its prompt, and its
    model is not asked. Of any other the file holds the user's messages alone.

    Args:
        path: The file.
        order: The audit.
        answered: File of the answers so far, whose questions are left out; None before any.

    Returns:
        How many questions were written, about how many documents, and how many other documents
        have none.

    Raises:
        InputError: There is no question, or the answers are those of another audit.
        RagwitnessError: The system of ours cannot be opened, or the file cannot be written.
    """
    audit, name = order.fitted()[0], order.questions_id()
    replay = None if answered is None else read_recording(answered)
    if replay is not None:
        replay.refuse_other(name)
    # 1. How a model is given a question: by the lab system's own retrieval and template.
    opened = await open_target(order.target) if order.target.startswith(_OURS) else None
    lab = opened.system if isinstance(opened, LabTarget) else None
    # Only an endpoint's model has a name that another one knows it by; a file's would tell a path.
    model = (lab.config.generator if lab else order.target).partition("#")[2] or "model"
    # 2. The questions of every document that is asked about at the target, each once.
    bodies: dict[str, dict[str, object]] = {}
    with_questions = without = 0
    for documents in at_target(order.stages().documents).values():
        for document in documents:
            requests = {}
            for query in open_questions(audit, document, replay):
                with suppress(QueryTooLongError):  # no answer and no score, as in a run
                    requests[f"{name}-{question_key(query)}"] = _body(model, lab, query)
            bodies |= requests
            with_questions += bool(requests)
            without += not requests
    if not bodies:
        raise InputError(
            "No document has a question that is not answered yet.",
            "Conclude with replay/ANSWERS as target, or try another --method.",
        )
    # 3. The whole file at once: half a file would leave half the documents without a score.
    request = {"method": "POST", "url": "/v1/chat/completions"}
    rows = ({"custom_id": key, **request, "body": body} for key, body in bodies.items())
    replace_file(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(bodies), with_questions, without


def _body(model: str, lab: RagSystem | None, query: Query) -> dict[str, object]:
    """The request of a query to a chat endpoint."""
    messages: Sequence[Message] = (Message(Role.USER, query.prompt),)
    if lab is not None:
        messages = lab.prompt(query.prompt, query.max_tokens).messages
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": m.role.value, "content": m.content} for m in messages],
        "max_tokens": query.max_tokens,
        "temperature": query.temperature,
    }
    if query.seed is not None:
        body["seed"] = query.seed
    if query.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": query.top_logprobs}
    return body
