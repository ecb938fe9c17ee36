"""Two texts that name nobody, and a walk through a probe."""

from collections.abc import Callable

from ragwitness.core.types import Answer, Document, Query, Score

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
