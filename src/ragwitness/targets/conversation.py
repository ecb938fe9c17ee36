"""A service as its users have it: send a document with a question, read the answer, vote on it.

There are three kinds. A chat of the OpenAI protocol needs a description for its votes. Any JSON
service has one (``http/FILE.toml``). An object in Python has ``send`` and ``vote``.
"""

from __future__ import annotations

import base64
import inspect
import re
from dataclasses import dataclass, replace
from typing import Any, Protocol

import httpx2

from ragwitness.core.errors import InputError, RagwitnessError, TargetResponseError
from ragwitness.core.quotes import quote_error
from ragwitness.core.threads import in_thread
from ragwitness.core.types import Answer, Capability, Query, Target
from ragwitness.targets.form import ShownForm, parted
from ragwitness.targets.objects import field_of, load_object, read_reply
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.resolve import open_target
from ragwitness.targets.service import ServiceTarget, SessionReply, VoteBox
from ragwitness.targets.service_config import load_service, load_votes
from ragwitness.targets.transport import TransportOptions


@dataclass(frozen=True, slots=True)
class Turn:
    """A document with a question.

    Attributes:
        id: Of the trace.
        document: The text to answer from.
        question: The question about it.
    """

    id: str
    document: str
    question: str


class VotedService(Protocol):
    """A service that takes documents, questions and, perhaps, votes."""

    @property
    def name(self) -> str:
        """Stable identity."""

    @property
    def votes(self) -> bool:
        """Whether votes can be given through it."""

    async def send(self, turn: Turn) -> SessionReply:
        """Send a document with a question.

        Raises:
            TargetError: The service fails or refuses.
        """

    async def vote(self, turn: Turn, reply: SessionReply, vote: str) -> bool:
        """Vote ``up`` or ``down`` on an answer; False where the service did not take the vote.

        Raises:
            TargetError: The service fails or refuses.
        """

    async def close(self) -> None:
        """Close all connections."""


class _Described:
    """A service whose votes, if any, go where a description says."""

    def __init__(self, target: OpenAITarget | ServiceTarget, box: VoteBox | None) -> None:
        self._opened, self._box = target, box
        self._cookies: dict[str, httpx2.Cookies] = {}

    @property
    def name(self) -> str:
        """The target's: a URL, with the model or a hash of the description."""
        return self._opened.name

    @property
    def votes(self) -> bool:
        """Whether there is a description of votes."""
        return self._box is not None

    async def vote(self, turn: Turn, reply: SessionReply, vote: str) -> bool:
        """Vote by the description."""
        if self._box is None:
            return False
        cookies = self._cookies.pop(turn.id, None)
        return await self._box.vote({**_values(turn), **reply.kept}, vote, cookies)

    def _begin(self, turn: Turn) -> httpx2.Cookies:
        """Return the cookies of a new session, in which an answer is voted on too."""
        cookies = httpx2.Cookies()
        if self._box is not None:
            self._cookies[turn.id] = cookies
        return cookies

    async def close(self) -> None:
        """Close all connections."""
        await self._opened.close()
        if self._box is not None:
            await self._box.close()


_ALTERNATE = re.compile(r"\balternat(?:e|ing)\b", re.IGNORECASE)


class ChatConversation(_Described):
    """A chat of the OpenAI protocol.

    Args:
        target: The endpoint.
        form: How the document is given. Where the chat's template wants roles to alternate, the
            document and the question are given in one message.
        box: Where votes go; None leaves them to be given by hand.
    """

    def __init__(self, target: OpenAITarget, form: ShownForm, box: VoteBox | None) -> None:
        super().__init__(target, box)
        self._target, self._form = target, form

    async def send(self, turn: Turn) -> SessionReply:
        """Send one conversation: a chat has no memory of another."""
        form = self._form
        try:
            answer, name = await self._target.converse(
                self._messages(turn), form.answer_tokens, form.temperature, self._begin(turn)
            )
        except TargetResponseError as error:
            # Gemma's, Mistral's and Llama 2's templates refuse two messages of one role.
            if form.kind != "messages" or not _ALTERNATE.search(error.message):
                raise
            self._form = replace(form, kind="one")
            return await self.send(turn)
        return SessionReply(answer.text, {"id": name})

    def _messages(self, turn: Turn) -> list[dict[str, object]]:
        """Return the document and the question in the form; a question alone is one message."""
        if not turn.document:
            return [{"role": "user", "content": turn.question}]
        if self._form.kind == "one":
            return [{"role": "user", "content": self._form.text(turn.document, turn.question)}]
        if self._form.kind == "attachment":
            data = base64.b64encode(turn.document.encode()).decode()
            file = {"filename": f"{turn.id}.txt", "file_data": f"data:text/plain;base64,{data}"}
            content = [{"type": "file", "file": file}, {"type": "text", "text": turn.question}]
            return [{"role": "user", "content": content}]
        return [
            {"role": "user", "content": turn.document},
            {"role": "user", "content": turn.question},
        ]


class ServiceConversation(_Described):
    """A described service.

    Args:
        target: Of a description that holds ``{document}`` and ``{question}``.
        box: Of its ``[vote]``.
    """

    def __init__(self, target: ServiceTarget, box: VoteBox | None) -> None:
        super().__init__(target, box)
        self._target = target

    async def send(self, turn: Turn) -> SessionReply:
        """Send the requests of one session."""
        return await self._target.converse(_values(turn), self._begin(turn))


class ObjectConversation:
    """An object in Python.

    Args:
        name: Stable identity.
        system: Has ``send(document, question)``, which returns a text or anything that holds one
            (and an ``id``), and may have ``vote(id, vote)``, which returns False where the vote
            was not taken. Either may be asynchronous.

    Raises:
        InputError: It has no ``send``.
    """

    def __init__(self, name: str, system: Any) -> None:
        if not callable(getattr(system, "send", None)):
            raise InputError(
                f"{name} has no send(document, question).",
                "Give an object with send(document, question) and vote(id, vote).",
            )
        self._name, self._system = name, system

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def votes(self) -> bool:
        """Whether it has ``vote``."""
        return callable(getattr(self._system, "vote", None))

    async def send(self, turn: Turn) -> SessionReply:
        """Call ``send``."""
        value = await self._call(self._system.send, turn.document, turn.question)
        name = field_of(value, "id")
        return SessionReply(read_reply(value).text, {"id": str(turn.id if name is None else name)})

    async def vote(self, turn: Turn, reply: SessionReply, vote: str) -> bool:  # noqa: ARG002
        """Call ``vote``."""
        return await self._call(self._system.vote, reply.kept["id"], vote) is not False

    async def close(self) -> None:
        """Nothing to release; the object is its owner's."""

    async def _call(self, function: Any, *arguments: str) -> Any:
        try:
            value = await in_thread(function, *arguments)
            return await value if inspect.isawaitable(value) else value
        except RagwitnessError:
            raise
        except Exception as error:
            raise TargetResponseError(
                f"{self._name} raised {quote_error(error)}.", "Call it by hand."
            ) from None


async def open_conversation(
    spec: str,
    options: TransportOptions | None = None,
    *,
    form: ShownForm | None = None,
    votes: str | None = None,
) -> VotedService:
    """Open a service to plant in.

    Args:
        spec: URL of a chat, ``http/FILE.toml`` or ``python:MODULE:OBJECT``.
        options: Timeouts, retries, name of the key's variable.
        form: How a chat is given the document; None for two messages.
        votes: Description with a ``[vote]``, for a chat.

    Raises:
        InputError: The address or a description cannot be used.
        TargetError: The target does not answer.
    """
    options = options or TransportOptions()
    box = VoteBox(load_votes(votes), options) if votes else None
    if spec.startswith("python:"):
        return ObjectConversation(spec, await load_object(spec.removeprefix("python:")))
    if spec.startswith("http/"):
        service = load_service(spec.removeprefix("http/"), turns=True)
        if box is None and service.ballot is not None:
            box = VoteBox(service.ballot, options)
        return ServiceConversation(ServiceTarget(service, options), box)
    target = await open_target(spec, options)
    if not isinstance(target, OpenAITarget):
        raise InputError(
            f"Nothing can be planted at {spec}.",
            "Give the URL of a chat, http/FILE.toml or python:MODULE:OBJECT; or plant by hand,"
            " with the files that the command writes without a target.",
        )
    return ChatConversation(target, form or ShownForm(), box)


def query_of(turn: Turn) -> Query:
    """Return a turn as a query, by which what it may use is counted."""
    return Query(f"{turn.document}\n\n{turn.question}")


def _values(turn: Turn) -> dict[str, object]:
    return {"document": turn.document, "question": turn.question, "trace": turn.id}


class InForm:
    """A deployed service as a target whose prompts are turns, in the form of planting.

    Args:
        service: Where documents were planted with their questions; or a target that takes texts.
        form: How both are shown.
    """

    capabilities = frozenset({Capability.TEXT})

    def __init__(self, service: VotedService | Target, form: ShownForm) -> None:
        self._service, self._form = service, form
        self.name = service.name

    async def ask(self, query: Query) -> Answer:
        """Send the document and the question of a prompt.

        Raises:
            TargetError: The service fails or refuses.
        """
        document, question = parted(query.prompt)
        if isinstance(self._service, Target):
            text = self._form.text(document, question) if document else question
            return await self._service.ask(replace(query, prompt=text))
        reply = await self._service.send(Turn("probe", document, question))
        return Answer(reply.text)

    async def close(self) -> None:
        """Close all connections."""
        await self._service.close()


async def open_deployed(
    spec: str, options: TransportOptions | None = None, form: ShownForm | None = None
) -> Target:
    """Open a deployed service, by the description with which canaries were planted.

    Args:
        spec: Address of the model or service.
        options: Timeouts, retries, name of the key's variable.
        form: Of the plan; None in older plans, which are probed by prompts.

    Raises:
        InputError: The address or a description cannot be used.
        TargetError: The target does not answer.
    """
    if form is not None and spec.startswith("http/"):
        return InForm(await open_conversation(spec, options, form=form), form)
    if form is not None and spec.startswith("python:"):
        system = await load_object(spec.removeprefix("python:"))
        if callable(getattr(system, "send", None)):
            return InForm(ObjectConversation(spec, system), form)
    return await open_target(spec, options)


def in_form(target: Target, form: ShownForm) -> Target:
    """Return a target that is asked in the form in which canaries were planted."""
    if isinstance(target, InForm):
        return target
    if isinstance(target, OpenAITarget):
        return InForm(ChatConversation(target, form, None), form)
    return InForm(target, form)
