"""What the defense before the system under audit costs those who ask in good faith."""

from __future__ import annotations

import random

from ragwitness.defenses import (
    BenignQuestion,
    DefenseCost,
    benign_questions,
    compare_answers,
    undefended,
)
from ragwitness.membership.outcomes import refuses
from ragwitness.rag import LabTarget
from ragwitness.runs.battery.split import Split
from ragwitness.runs.journal import Journal
from ragwitness.runs.worker import Progress, Worker
from ragwitness.types import Answer, Capability, Document, Probe, Query, Score

__all__ = ["questions_of", "weigh_defense"]

_LONGEST = 128  # tokens of an answer


class _Asks:
    """Puts a question as it stands; whoever watches reads the answer."""

    name = "benign"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        yield [Query(document.text, _LONGEST)]
        return Score(None, reason="a benign question is no evidence")


def questions_of(split: Split, n: int, seed: int) -> list[BenignQuestion]:
    """Make questions about indexed documents that are not audited.

    Calibration documents are asked about only where the others are too few.

    Args:
        split: The parts of the corpus.
        n: How many questions are wanted.
        seed: Chooses the documents.

    Raises:
        InputError: ``n`` is not positive, or no document gives a question.
    """
    audited = {document.id for document in split.members}
    known = {document.id for document in split.known_in}
    free = [document for document in split.indexed if document.id not in audited]
    spare = [document for document in free if document.id not in known]
    return benign_questions(spare if len(spare) >= n else free, n, random.Random(seed))


async def weigh_defense(
    target: LabTarget,
    questions: list[BenignQuestion],
    *,
    seed: int = 0,
    journal: Journal | None = None,
    in_flight: int = 4,
    progress: Progress | None = None,
) -> DefenseCost:
    """Ask a defended system and the same without its defense, and compare.

    Args:
        target: The system behind a defense.
        questions: About its documents.
        seed: Of the bootstrap.
        journal: Where answers are kept; None keeps nothing.
        in_flight: Questions asked at the same time.
        progress: Called after each question.

    Raises:
        InputError: A question belongs to a document that is not in the database.
    """
    asked = [Document(question.document, question.text) for question in questions]

    async def answers_of(system: LabTarget, stage: str) -> list[str | None]:
        found: dict[str, str | None] = {}

        def keep(document: Document, _query: Query, answer: Answer) -> None:
            found[document.id] = None if answer.error else answer.text

        await Worker(system, journal, in_flight, keep).run(_Asks(), asked, stage, progress)
        return [found[document.id] for document in asked]

    bare = LabTarget(undefended(target.system))
    before = await answers_of(bare, "benign questions, undefended")
    after = await answers_of(target, "benign questions, defended")
    return compare_answers(bare.system, target.system, questions, before, after, refuses, seed=seed)
