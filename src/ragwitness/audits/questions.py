"""The questions of an audit in one file, to be answered elsewhere and concluded by ``replay``.

The file has the form of the OpenAI Batch API, which vLLM and hosted services read as well: one
request in each line. A batch job or a GPU answers thousands of them in minutes, because none waits
for another. Its output is a target: ``replay/ANSWERS.jsonl`` (:mod:`ragwitness.asking.replay`).
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from ragwitness.asking.replay import question_key
from ragwitness.asking.scores import questions_id
from ragwitness.asking.worker import Done, advance, probe_of
from ragwitness.audits.order import Order, fitted
from ragwitness.audits.plan import at_target
from ragwitness.errors import InputError
from ragwitness.kit.files import replace_file
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem
from ragwitness.rag.target import LabTarget
from ragwitness.targets.resolve import open_target
from ragwitness.types import Answer, Audit, Document, Message, Query, Role

_NOT_ASKED = Answer("", error="not asked yet")

_OURS = ("lab:", "hf/")  # addresses of systems that retrieve in this process


def questions_of(audit: Audit, document: Document) -> list[Query]:
    """Return every question that an audit may ask about a document, whatever is answered.

    An audit that asks in several turns lists them itself, by a method ``questions``.

    Raises:
        InputError: Which questions it asks depends on the answers.
    """
    listed = getattr(audit, "questions", None)
    if listed is not None:
        return list(listed(document))
    # Failed answers stand in for those to come: only an audit that asks in turns asks on.
    probe = probe_of(audit, document)
    batch = advance(probe, None)
    if isinstance(batch, Done):
        return []
    if not isinstance(advance(probe, [_NOT_ASKED] * len(batch)), Done):
        probe.close()
        raise InputError(
            f"{audit.name} asks on after its first answers, so its questions cannot be written"
            " beforehand.",
            "Ask the target itself, or name a method that asks all at once: --method mba.",
        )
    return batch


async def write_questions(path: Path, order: Order) -> tuple[int, int, int]:
    """Write what an audit asks its target into a file, and send nothing.

    A system of ours (``lab:``, ``hf/``) is opened: it retrieves and fills in its prompt, and its
    model is not asked. Of any other the file holds the user's messages alone.

    Args:
        path: The file.
        order: The audit.

    Returns:
        How many questions were written, about how many documents, and how many other documents
        have none.

    Raises:
        InputError: The questions depend on the answers, or there is none.
        RagwitnessError: The system of ours cannot be opened, or the file cannot be written.
    """
    audit, identity = fitted(order.method, order.config, order.proxy, 0, order.plan)
    setting = questions_id(identity, order.plan.every_document)
    # 1. How a model is given a question: by the lab system's own retrieval and template.
    opened = await open_target(order.target) if order.target.startswith(_OURS) else None
    lab = opened.system if isinstance(opened, LabTarget) else None
    # Only an endpoint's model has a name that another one knows it by; a file's would tell a path.
    model = (lab.config.generator if lab else order.target).partition("#")[2] or "model"
    # 2. The questions of every document that is asked about at the target, each once.
    documents = [one for part in at_target(order.stages().documents).values() for one in part]
    bodies: dict[str, dict[str, object]] = {}
    without = 0
    for document in documents:
        own = {}
        for query in questions_of(audit, document):
            with suppress(QueryTooLongError):  # no answer, and no score, as where it is asked
                own[f"{setting}-{question_key(query)}"] = _body(model, lab, query)
        bodies |= own
        without += not own
    if not bodies:
        raise InputError("No document has a question that can be written.", "Try another --method.")
    # 3. The whole file at once: half a file would leave half the documents without a score.
    request = {"method": "POST", "url": "/v1/chat/completions"}
    rows = ({"custom_id": name, **request, "body": body} for name, body in bodies.items())
    replace_file(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(bodies), len(documents) - without, without


def _body(model: str, lab: RagSystem | None, query: Query) -> dict[str, object]:
    """What a chat endpoint is sent for a query."""
    alone = (Message(Role.USER, query.prompt),)
    messages = alone if lab is None else lab.prompt(query.prompt, query.max_tokens).messages
    listed = {"logprobs": True, "top_logprobs": query.top_logprobs} if query.top_logprobs else {}
    return {
        "model": model,
        "messages": [{"role": one.role.value, "content": one.content} for one in messages],
        "max_tokens": query.max_tokens,
        "temperature": query.temperature,
        **({} if query.seed is None else {"seed": query.seed}),
        **listed,
    }
