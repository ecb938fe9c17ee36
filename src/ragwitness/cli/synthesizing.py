"""The steps of ``ragwitness synthesize``: read, make, write, show."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError, RagwitnessError

if TYPE_CHECKING:
    from ragwitness.defenses.synthetic.asking import Asking
    from ragwitness.defenses.synthetic.base import AnyMethod
    from ragwitness.defenses.synthetic.guard import Guard, GuardConfig
    from ragwitness.defenses.synthetic.private.config import PrivateConfig
    from ragwitness.defenses.synthetic.private.evolution import Candidates
    from ragwitness.runs import Budget, Governor
    from ragwitness.runs.made import SynthesisResult
    from ragwitness.targets import TransportOptions
    from ragwitness.text.documents import Skipped
    from ragwitness.text.secrets import Secret
    from ragwitness.types import Document

__all__ = ["conclude", "guard_of", "make", "method_of", "preview", "secrets_of"]

_SHOWN = 8  # reasons on the screen; the result has all


def secrets_of(
    path: Path | None, documents: Sequence[Document], *, contacts: bool
) -> tuple[Secret, ...]:
    """Return the known secrets, with the corpus's contact details where they count as such.

    Raises:
        InputError: The file cannot be used.
    """
    from ragwitness.text.secret_files import read_secrets
    from ragwitness.text.secrets import contacts_of

    found = read_secrets(path) if path is not None else []
    own = contacts_of((d.id, d.text) for d in documents) if contacts else []
    return (*found, *own)


def method_of(
    name: str,
    domain: str,
    rounds: int,
    asking: Asking,
    secrets: Sequence[Secret],
    pii: str,
    k: int,
    model: str | None,
    private: tuple[PrivateConfig, Candidates] | None = None,
) -> AnyMethod:
    """Return the method.

    Raises:
        InputError: An option cannot be used, or there is no model where one is needed.
    """
    from ragwitness.defenses.synthetic.config import MakingConfig
    from ragwitness.defenses.synthetic.domains import load_domain
    from ragwitness.defenses.synthetic.registry import build_method

    config = MakingConfig(domain=load_domain(domain), asking=asking, rounds=rounds)
    found = build_method(name, config, secrets, pii=pii, k=k, private=private)
    if found.asks and model is None:
        raise InputError(
            f"{name} asks a chat model, and there is none.",
            "Name one, e.g. --model openai/MODEL; redact and keywords need none.",
        )
    return found


def guard_of(
    method: str,
    documents: Sequence[Document],
    secrets: Sequence[Secret],
    config: GuardConfig,
    embedder: str,
) -> Guard:
    """Return the conditions as they apply to a method.

    Raises:
        MissingExtraError: The embedder or Presidio is not installed.
        ModelError: The embedder cannot be loaded.
    """
    from ragwitness.defenses.synthetic.guard import Guard
    from ragwitness.defenses.synthetic.registry import METHODS, guard_config

    applied = guard_config(method, config)
    if METHODS[method].private:
        return Guard((), (), applied)
    embed = None
    if applied.cosine is not None:
        from ragwitness.rag.embedders import load_embedder

        embed = load_embedder(embedder).embed
    return Guard([document.text for document in documents], secrets, applied, embed)


def preview(method: AnyMethod, records: int, folder: Path, budget: Budget) -> None:
    """Say what a command would ask at most, and what its run folder has; send nothing."""
    from ragwitness.cli.caps import kept_lines
    from ragwitness.cli.common import console

    screen = console()
    screen.print(
        f"{method.name}: {records:,} records, at most {method.most(records):,} queries",
        markup=False,
    )
    for line in kept_lines(folder, budget):
        screen.print(line, markup=False, soft_wrap=True)
    screen.print("Nothing was sent.")


def make(
    documents: Sequence[Document],
    method: AnyMethod,
    guard: Guard,
    model: str | None,
    transport: TransportOptions,
    folder: Path,
    governor: Governor,
) -> SynthesisResult:
    """Make the texts with a progress bar.

    Raises:
        TargetError: The model cannot be reached, or does not speak the protocol.
        CapReachedError: A cap was reached before the first record.
    """
    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.finish import leaving_resumable
    from ragwitness.defenses.synthetic.base import CorpusMethod
    from ragwitness.runs.synthesis import run_synthesis
    from ragwitness.targets import open_target

    screen = console()

    async def work() -> SynthesisResult:
        target = await open_target(model, transport) if model and method.asks else None
        try:
            items = "queries" if isinstance(method, CorpusMethod) else "records"
            with progress_bars(screen, spent_so_far(governor), items) as progress:
                return await run_synthesis(
                    documents,
                    method,
                    guard,
                    target,
                    run=folder,
                    in_flight=transport.concurrency,
                    progress=progress,
                    governor=governor,
                )
        finally:
            if target is not None:
                await target.close()

    with leaving_resumable(screen, folder):
        return asyncio.run(work())


def conclude(
    result: SynthesisResult,
    skipped: Sequence[Skipped],
    folder: Path,
    out: Path | None,
    json_out: Path | None,
) -> None:
    """Write the texts and the report; show what became of the records.

    Raises:
        RagwitnessError: No record passed, or a file cannot be written.
    """
    import json

    from ragwitness.cli.common import console
    from ragwitness.report.view import spent_text
    from ragwitness.report.writing import write_text
    from ragwitness.runs.made import write_made

    path = out or folder / "safe.jsonl"
    counts = result.counts
    passed = counts.get("passed", 0)
    if passed:
        write_made(path, result)
    report = json.dumps(_report(result, skipped, str(path) if passed else None), indent=1) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder / "result.json", json_out):
        if place is not None:
            write_text(place, report)
    screen = console()
    for label, value in result.settings.items():
        screen.print(f"{label:<28}{value}", markup=False, soft_wrap=True)
    screen.print("")
    for fate, count in counts.items():
        screen.print(f"{fate:<28}{count}", markup=False)
    for reason, count in list(result.reasons.items())[:_SHOWN]:
        screen.print(f"  {count} {reason}", markup=False, soft_wrap=True)
    if skipped:
        screen.print(f"{'rows that cannot be used':<28}{len(skipped)}", markup=False)
    screen.print(f"{'spent':<28}{spent_text(result.spent)}", markup=False, soft_wrap=True)
    for warning in result.warnings:
        screen.print(f"note: {warning}", markup=False, soft_wrap=True)
    screen.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)
    if not passed:
        raise RagwitnessError(
            "No synthetic text may be used; nothing was written.",
            f"{folder / 'result.json'} says why for each.",
        )
    screen.print(f"synthetic records: {path}", markup=False, soft_wrap=True)


def _report(
    result: SynthesisResult, skipped: Sequence[Skipped], path: str | None
) -> dict[str, object]:
    """The result for machines; it holds no text, only what became of each record."""
    from dataclasses import asdict

    return {
        "method": result.method,
        "model": result.model,
        "settings": dict(result.settings),
        "counts": result.counts,
        "reasons": result.reasons,
        "skipped": [asdict(row) for row in skipped],
        "records": [
            {
                "id": one.record,
                "fate": str(one.fate),
                "reason": one.reason,
                "rounds": one.rounds,
                "violation": one.violation,
            }
            for one in result.made
        ],
        "queries": result.queries,
        "sent": result.sent,
        "seconds": result.seconds,
        "spent": asdict(result.spent),
        "warnings": list(result.warnings),
        "out": path,
    }
