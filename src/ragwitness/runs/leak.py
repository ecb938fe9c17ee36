"""Extraction attacks at a target: what they asked and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.extraction.attacks import Ask, Attack, Attacking
from ragwitness.extraction.transcript import Transcript, write_transcripts
from ragwitness.quoting import quote_error
from ragwitness.runs.budget import OPTIONS
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import ANSWERS, Journal, query_key
from ragwitness.runs.pace import Pace
from ragwitness.runs.remarks import spending
from ragwitness.runs.result import Spending
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.types import Answer, Capability, Document, Probe, Query, Score, Target

__all__ = ["TRANSCRIPTS", "Asked", "ask_attacks"]

TRANSCRIPTS = "transcripts.jsonl"
"""Name of the file in a run folder."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What attacks asked of a target.

    Attributes:
        target: Its name.
        transcripts: Attack after attack, in the order of asking.
        spent: At the target.
        warnings: What was left unasked or was not asked now.
    """

    target: str
    transcripts: tuple[Transcript, ...]
    spent: Spending
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _AttackAudit:
    """An attack as the audit of one document, so that a worker drives it."""

    attack: Attack
    name: str = ""
    requires: frozenset[Capability] = frozenset({Capability.TEXT})
    transcripts: list[Transcript] = field(default_factory=list)
    under_way: list[Ask] = field(default_factory=list)

    def probe(self, document: Document) -> Probe:
        """Attack; the document is nothing but the attack's name."""
        steps, answers = self.attack.steps(), None
        while self._advance(steps, answers):
            answers = yield [ask.query for ask in self.under_way]
            for ask, answer in zip(self.under_way, answers, strict=True):
                self.keep(ask, answer)
            self.under_way = []
        return Score(None, reason=f"{document.id} has asked all it will")

    def keep(self, ask: Ask, answer: Answer) -> None:
        """Note a prompt with its answer."""
        self.transcripts.append(
            Transcript(
                self.attack.name,
                ask.query.prompt,
                answer.text,
                answer.contexts,
                ask.aim,
                answer.error,
            )
        )

    def _advance(self, steps: Attacking, answers: list[Answer] | None) -> bool:
        """Let the attack say what it asks next; False where it is done."""
        try:
            self.under_way = steps.send(answers)  # type: ignore[arg-type]  # None starts it
        except StopIteration:
            return False
        except RagwitnessError:
            raise
        except Exception as error:  # an attack of another package may fail in any way
            raise InputError(f"{self.attack.name} failed: {quote_error(error)}.") from None
        return True


async def ask_attacks(
    attacks: Sequence[Attack],
    prompts: int,
    target: Target,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
    governor: Governor | None = None,
) -> Asked:
    """Run attacks one after the other; answers already in ``run`` are not asked for again.

    A prompt that two attacks share is asked once where there is a journal.

    Args:
        attacks: With their limits.
        prompts: Most that each sends, for the progress.
        target: The system under attack.
        run: Folder of the journal, to which the transcripts go too; None keeps nothing.
        progress: Called after each answer.
        governor: Lets queries pass; None makes one without caps for ``run``.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: An attack of another package fails.
    """
    with ExitStack() as files:
        if governor is None:
            governor = files.enter_context(Governor.of_run(run, pace=Pace.at_most(4)))
        journal = files.enter_context(Journal(run / ANSWERS)) if run else None
        found: list[Transcript] = []
        outcomes: list[Outcome] = []
        for attack in attacks:
            audit, outcome = await _attack(attack, prompts, target, journal, governor, progress)
            found += audit.transcripts
            outcomes.append(outcome)
    if run is not None:
        write_transcripts(run / TRANSCRIPTS, found)
    spent = spending(governor.spent, governor.budget, governor.cap, outcomes)
    warnings = [*_unasked(governor.cap, outcomes), *_not_asked_now(found, outcomes)]
    return Asked(target.name, tuple(found), spent, tuple(warnings))


async def _attack(
    attack: Attack,
    prompts: int,
    target: Target,
    journal: Journal | None,
    governor: Governor,
    progress: Progress | None,
) -> tuple[_AttackAudit, Outcome]:
    done = 0

    def watch(document: Document, _query: Query, _answer: Answer) -> None:
        nonlocal done
        done += 1
        if progress:
            progress(document.id, done, prompts)

    audit = _AttackAudit(attack, attack.name)
    worker = Worker(target, journal, 1, watch, governor)
    [outcome] = await worker.run(audit, [Document(attack.name, "")], attack.name)
    for ask in audit.under_way if journal else ():  # of a batch that a cap cut short
        stored = journal.get(query_key(target.name, ask.query)) if journal else None
        if stored is not None:
            audit.keep(ask, stored)
    if progress and done < prompts:
        progress(attack.name, prompts, prompts)  # it ended early
    return audit, outcome


def _unasked(cap: str | None, outcomes: Sequence[Outcome]) -> list[str]:
    if cap is None:
        return []
    names = ", ".join(one.document.id for one in outcomes if one.capped)
    return [
        f"{cap} cap reached: {names} could not finish. The same command with a higher"
        f" {OPTIONS[cap]} resumes; nothing is asked twice."
    ]


def _not_asked_now(found: Sequence[Transcript], outcomes: Sequence[Outcome]) -> list[str]:
    """Say which answers are kept ones: of another attack's same prompt, or of an earlier start."""
    kept = sum(one.queries - one.sent for one in outcomes)
    shared = len(found) - len({one.prompt for one in found})
    said = []
    if shared:
        said.append(f"{shared} prompts are shared by two attacks, and asked once.")
    if kept > shared:
        said.append(
            f"{kept - shared} of {len(found)} answers were kept from an earlier start of this run,"
            " not asked now; if the system has changed since, choose another folder with --run."
        )
    return said
