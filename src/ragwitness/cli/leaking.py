"""The first steps of ``ragwitness leak``: read and ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.extraction.attacks import Attack, Limits
    from ragwitness.extraction.score import LeakPlan
    from ragwitness.runs import Budget, Governor
    from ragwitness.runs.leak import Asked
    from ragwitness.targets import TransportOptions
    from ragwitness.types import Document

__all__ = [
    "attacks_of",
    "check_source",
    "names_of",
    "plan_of",
    "preview_leak",
    "put",
    "settings_of",
]


def check_source(target: str | None, transcripts: Path | None, corpus: str) -> None:
    """Raise InputError unless there is a corpus, and either a target or transcripts."""
    if not corpus:
        raise InputError("There is no corpus to look for.", "Give the private records: --corpus.")
    if (target is None) == (transcripts is None):
        raise InputError(
            "Either a target is asked or stored transcripts are scored.",
            "ragwitness leak TARGET --corpus FILE, or ragwitness leak --transcripts FILE"
            " --corpus FILE",
        )


def names_of(attacks: str, target_information: str | None) -> tuple[str, ...]:
    """Return the registered names of attacks, each once.

    Args:
        attacks: ``all``, or names with commas between.
        target_information: What ``composite`` aims at.

    Raises:
        InputError: There is no such target, or no attack.
    """
    from ragwitness.extraction.attacks.information import aims
    from ragwitness.extraction.registry import ATTACKS

    if attacks.strip() == "all":
        return tuple(ATTACKS)
    names = [name.strip() for name in attacks.split(",") if name.strip()]
    if target_information is not None:
        aims(target_information)
        if "composite" not in names:
            raise InputError(
                "--target-information is for composite prompts.", "Add composite to --attacks."
            )
        aimed = f"composite-{target_information}"
        names = [aimed if name == "composite" else name for name in names]
    if not names:
        raise InputError("No attack is named.", f"Known: all, {', '.join(ATTACKS)}.")
    return tuple(dict.fromkeys(names))


def attacks_of(
    names: Sequence[str], limits: Limits, options: Sequence[str], texts: Sequence[str]
) -> list[Attack]:
    """Return the attacks with their options.

    Raises:
        InputError: An attack, an option or a value is unknown, or an option's attack is not run.
    """
    from ragwitness.cli.common import per_audit
    from ragwitness.extraction.registry import build_attack

    given = per_audit(options)
    if idle := sorted(set(given) - set(names)):
        raise InputError(
            f"--set {idle[0]}.… is for an attack that is not run.",
            f"Run now: {', '.join(names)}; choose with --attacks.",
        )
    return [build_attack(name, limits, given.get(name), texts) for name in names]


def plan_of(
    records: Sequence[Document],
    background: Sequence[Document],
    ledgers: tuple[Path | None, Path | None],
    *,
    contacts: bool,
    seed: int,
) -> LeakPlan:
    """Return what answers are compared with.

    Args:
        records: The private corpus.
        background: Texts that the target does not hold.
        ledgers: Files of secrets and of decoys.
        contacts: Whether contact details in the records are secrets too.
        seed: Of the resampling.

    Raises:
        InputError: A ledger cannot be read, or there are decoys without secrets.
    """
    from ragwitness.extraction.score import LeakPlan, contacts_of
    from ragwitness.text.secret_files import read_secrets

    known, planted_nowhere = (read_secrets(path) if path else [] for path in ledgers)
    if contacts:
        known = known + contacts_of((one.id, one.text) for one in records)
    if planted_nowhere and not known:
        raise InputError("Decoys alone say nothing.", "Give the secrets too: --secrets FILE.")
    return LeakPlan(records, background, known, planted_nowhere, seed)


def settings_of(
    attacks: Sequence[Attack], limits: Limits, **files: str | Path | None
) -> dict[str, str]:
    """Return everything in use, as label and value."""
    import dataclasses

    named = {label: str(path) for label, path in files.items() if path is not None}
    if not attacks:
        return named
    named |= {
        "prompts of each attack": f"at most {limits.prompts}",
        "tokens of an answer": f"at most {limits.max_tokens}",
        "seed": str(limits.seed),
    }
    for attack in attacks:
        config = getattr(attack, "config", None)
        fields = dataclasses.fields(config) if dataclasses.is_dataclass(config) else ()
        values = {one.name: getattr(config, one.name) for one in fields if one.name != "limits"}
        if texts := values.pop("texts", ()):
            values["texts"] = f"{len(texts)} given"
        named[attack.name] = ", ".join(f"{key}: {value}" for key, value in values.items())
    return named


def preview_leak(attacks: Sequence[Attack], limits: Limits, folder: Path, budget: Budget) -> None:
    """Say what would be asked at most, and what the run folder keeps; send nothing."""
    from ragwitness.cli.caps import kept_lines
    from ragwitness.cli.common import console

    most = len(attacks) * limits.prompts
    lines = [
        f"{attack.name}: at most {limits.prompts:,} prompts, answers of at most"
        f" {limits.max_tokens:,} tokens"
        for attack in attacks
    ]
    total = f"all: at most {most:,} prompts, {most * limits.max_tokens:,} tokens written"
    screen = console()
    for line in (*lines, total, *kept_lines(folder, budget), "Nothing was sent."):
        screen.print(line, markup=False, soft_wrap=True)


def put(
    target: str,
    transport: TransportOptions,
    attacks: Sequence[Attack],
    limits: Limits,
    folder: Path,
    governor: Governor,
) -> Asked:
    """Open a target and run the attacks with progress bars; Ctrl-C leaves the answers kept.

    A system of ours in this process shows its owner the passages it retrieved.

    Raises:
        TargetError: It cannot be reached or does not speak the protocol.
    """
    import asyncio

    from ragwitness.cli.common import console
    from ragwitness.cli.finish import leaving_resumable

    with leaving_resumable(console(), folder):
        return asyncio.run(_put(target, transport, attacks, limits, folder, governor))


async def _put(
    address: str,
    transport: TransportOptions,
    attacks: Sequence[Attack],
    limits: Limits,
    folder: Path,
    governor: Governor,
) -> Asked:
    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import console, one_thread_per_answer, progress_bars
    from ragwitness.rag import LabTarget
    from ragwitness.runs.leak import ask_attacks
    from ragwitness.targets import open_target

    one_thread_per_answer()
    target = await open_target(address, transport)
    if isinstance(target, LabTarget):
        target = target.for_owner()
    try:
        with progress_bars(console(), spent_so_far(governor), "prompts") as progress:
            return await ask_attacks(
                attacks, limits.prompts, target, run=folder, progress=progress, governor=governor
            )
    finally:
        await target.close()
