"""A target that knows some texts by heart, and a language model that says what it is told."""

import re
from collections.abc import Callable, Sequence

from ragwitness.models.base import ChatPrompt, Generation
from ragwitness.types import Answer, Document, Message, Query, Role, Score
from tests.support.copier import Copier

_QUOTED = re.compile(r'"(.+)"', re.DOTALL)

FERRY = (
    "The ferry to Marrowdale leaves at nine and captain Quillington keeps a brown dog called"
    " Tamarind that barks at every lighthouse between Oxcombe and the outer islands. On 14 May"
    " the harbour of Petherwick closed for 250 hours because a barge lost its copper cargo."
)
CLINIC = (
    "A gardener from Stavelling came with swollen joints and was given 75 milligrams of Brentazol"
    " each morning. After 12 weeks doctor Hallowmere measured the pressure again and wrote that"
    " the violet rash behind the knee had gone while the appetite of Jorvin returned slowly."
)


def run(audit, document: Document, answer: Callable[[Query], Answer]) -> Score:
    """Walk a probe to its end."""
    probe = audit.probe(document)
    answers: list[Answer] | None = None
    while True:
        try:
            queries = next(probe) if answers is None else probe.send(answers)
        except StopIteration as stop:
            return stop.value
        answers = [answer(query) for query in queries]


def always(answer: Answer) -> Callable[[Query], Answer]:
    """Answer every query alike."""
    return lambda _query: answer


def quoted(prompt: str) -> str:
    """Return what a question quotes."""
    return _QUOTED.search(prompt).group(1)


class Told(Copier):
    """Generates what a function of the prompt says; counts calls."""

    name = "told"

    def __init__(self, say: Callable[[str], str], context_length: int = 10_000) -> None:
        self.say = say
        self.context_length = context_length
        self.asked: list[str] = []
        self.settings: list[tuple[float, int | None]] = []

    def generate(
        self,
        prompts: Sequence[ChatPrompt],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> list[Generation]:
        made = []
        for prompt in prompts:
            self.asked.append(prompt.messages[-1].content)
            self.settings.append((temperature, seed))
            made.append(Generation(self.say(self.asked[-1]), (), "stop", 1, 1))
        return made


def copying(*texts: str) -> Callable[[Query], Answer]:
    """Answer with the copier, these texts being its context."""
    system = Message(Role.SYSTEM, " ".join(texts))

    def answer(query: Query) -> Answer:
        prompt = ChatPrompt((system, Message(Role.USER, query.prompt)))
        made = Copier().generate(
            [prompt], max_tokens=query.max_tokens, top_logprobs=query.top_logprobs
        )[0]
        return Answer(made.text, made.tokens, made.finish_reason)

    return answer
