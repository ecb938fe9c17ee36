"""``ragwitness leak``: what can be got out of that system, and how much of it is private?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ragwitness.cli.common import console, per_audit, read_documents, run_folder
from ragwitness.cli.options import (
    AddressIfAny,
    AnswerTokens,
    AttackEmbedder,
    AttackModel,
    AttackSettings,
    Background,
    Caps,
    Concurrency,
    ContactFinder,
    Contacts,
    Decoys,
    DryRun,
    HowRead,
    Information,
    Likeness,
    Prompts,
    Reached,
    RunPath,
    Sealing,
    Secrets,
    Topic,
)
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview, seal_first
from ragwitness.cli.typer_options import Files
from ragwitness.errors import InputError
from ragwitness.kit.options import Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.asking.budget import Budget
    from ragwitness.asking.worker import Progress
    from ragwitness.audits.leak import AttackRun
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.extraction.attacks.base import Attack, Limits
    from ragwitness.extraction.score.table import LeakPlan
    from ragwitness.types import Document, LeftOut, Target

_EXAMPLES = 3


def leak(
    target: AddressIfAny = None,
    corpus: Annotated[str, PathRole.DOCUMENTS] = "",
    transcripts: Annotated[Path | None, PathRole.READS] = None,
    attacks: str = "composite",
    target_information: Annotated[str | None, Opt(shown="nothing")] = None,
    prompts: Prompts = 250,
    answer_tokens: AnswerTokens = 256,
    information: Information = None,
    topic: Topic = None,
    attack_embedder: AttackEmbedder = None,
    model: AttackModel = None,
    background: Background = None,
    secrets: Secrets = None,
    decoys: Decoys = None,
    contacts: Contacts = False,
    pii: ContactFinder = "auto",
    embedder: Likeness = None,
    options: AttackSettings = None,
    seed: int = 0,
    run: RunPath = None,
    files: Files | None = None,
    examples: bool = True,
    fail_on: Annotated[list[str] | None, Opt(metavar="CONDITION")] = None,
    *,
    how: HowRead,
    concurrency: Concurrency = 4,
    caps: Caps,
    dry_run: DryRun = False,
    reached: Reached,
    sealing: Sealing,
) -> None:
    """Attack a RAG system and measure how much of its corpus leaks.

    It counts what comes back in two ways: as papers publish it, and corrected, against every
    record of the corpus. Each count has n, its interval, and what unrelated text gives by chance.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        corpus: The private records that may leak: a JSONL or CSV file, or a folder of text files.
            Always needed.
        transcripts: Stored transcripts that are scored instead; nothing is asked.
        attacks: The attacks: all, or names with commas between them: composite,
            composite-conditions, composite-contacts, pide, thief, pirates, benign, crawler,
            novelty, auto.
        target_information: What composite prompts aim at: conditions or contacts.
        seed: The seed of the prompts and of the resampling.
        examples: Show a few leaked answers in the report, behind a fold.
        fail_on: Exit with 3 if a measure is over a bound: "repeat records > 0", "secrets >= 1%",
            "coverage > .05". May be repeated.
    """
    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.leak import ask_attacks, refuse_records, score_leaks
    from ragwitness.extraction.attacks.base import Limits
    from ragwitness.extraction.transcript import read_transcripts
    from ragwitness.kit.run_files import REPORT
    from ragwitness.lab import open_model
    from ragwitness.models.registry import load_embedder
    from ragwitness.rag.target import LabTarget
    from ragwitness.results.leak import leak_sheet, pick_examples
    from ragwitness.targets.resolve import open_target

    # Step 1, the options: conditions, source, attacks and limits are checked before anything is
    # read that is large or spent that is dear.
    outputs = Outputs.wanted("leak", files, fail_on)
    check_source(target, transcripts, corpus)
    names, given = names_of(attacks, target_information), sorted(options or ())
    limits = Limits(prompts, answer_tokens, seed)
    budget = caps.budget()
    reach = reached.reach()
    texts = [one.text for one in read_documents(information)] if information else []
    own = load_embedder(attack_embedder) if attack_embedder else None
    knows = {"texts": texts, "topic": topic, "embedder": own, "chat": model is not None}
    made = [] if transcripts else attacks_of(names, limits, given, **knows)
    # The run's name follows from target, corpus and attacks: another list of secrets, or another
    # background, scores the same answers again.
    more = (topic, attack_embedder, model)
    known = (information, *more) if any(more) else information
    folder = run_folder(run, "leak", target, transcripts, corpus, names, limits, given, known)
    # Step 2, the preview: at most so many prompts and tokens, and what the folder keeps.
    if dry_run:
        preview_leak(made, limits, folder, budget)
        return
    # Step 3, what answers are held against: records, background, secrets and decoys.
    lost: list[LeftOut | str] = []
    plan = plan_of(
        read_documents(corpus, how, left_out=lost),
        read_documents(background, how, left_out=lost) if background else (),
        (secrets, decoys),
        contacts=contacts,
        seed=seed,
        pii=pii,
    )
    refuse_records("--information", texts, plan.records)
    # Whatever cannot be loaded must be known before anything is spent.
    measure = load_embedder(embedder) if embedder else None
    files_read = {"corpus": corpus, "background": background, "transcripts": transcripts}
    shown = settings_of(made, limits, model=model, **files_read) | ledger_of(pii, contacts=contacts)
    plan = dataclasses.replace(plan, left_out=tuple(lost))
    asked = None
    if transcripts is not None and sealing.seal is not None:
        raise InputError("Stored transcripts cannot be sealed before their first query.")

    def subject() -> SealSubject:
        from ragwitness.evidence.leak import LeakOrder, subject_of

        options_by_attack = per_audit(given)
        order = LeakOrder(
            str(target), names, options_by_attack, limits, budget, tuple(texts), topic,
            attack_embedder, model, embedder, shown,
        )  # fmt: skip
        return subject_of(order, plan)

    if transcripts is None:
        seal_first(folder, subject, sealing)
    # Step 4, the asking; with --transcripts it was done elsewhere, and scoring alone remains.
    if transcripts is None:
        with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
            transport = reach.transport(concurrency, governor.setback)

            async def work(opened: Target, progress: Progress) -> AttackRun:
                # The passages are needed by the published counts, which look at those retrieved for
                # the same prompt: a system of ours in this process shows them to its owner.
                shown_too = opened.for_owner() if isinstance(opened, LabTarget) else opened
                chat = await open_model(model, transport) if model else None
                try:
                    return await ask_attacks(
                        made,
                        limits.prompts,
                        shown_too,
                        run=folder,
                        progress=progress,
                        governor=governor,
                        model=chat,
                    )
                finally:
                    if chat is not None:
                        await chat.close()

            asked = ask(open_target(str(target), transport), work, folder, governor, "prompts")
    # Step 5, the conclusion: published counts and corrected ones, from the same transcripts.
    told = asked.transcripts if asked else read_transcripts(Path(str(transcripts)))
    console().print(f"scoring {len(told):,} transcripts", markup=False)
    result = score_leaks(told, plan, embedder=measure, asked=asked, settings=shown)
    # Examples are private text: they go into the page, behind a fold, and never into the stored
    # result.
    sheet = leak_sheet(result, pick_examples(told, plan.records, _EXAMPLES if examples else 0))
    conclude(result, folder / REPORT, console(), outputs, store=folder, sheet=sheet)


# The first steps of ``ragwitness leak``: read and preview.


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
        # SAGE aims composite prompts at a kind of information; each aim is an attack of its own
        # here, so that a table can hold both.
        aimed = f"composite-{target_information}"
        names = [aimed if name == "composite" else name for name in names]
    if not names:
        raise InputError("No attack is named.", f"Known: all, {', '.join(ATTACKS)}.")
    return tuple(dict.fromkeys(names))


def attacks_of(
    names: Sequence[str], limits: Limits, options: Sequence[str], **knows: Any
) -> list[Attack]:
    """Return the attacks with their options, and with what the attacker knows or has.

    Raises:
        InputError: An attack, an option or a value is unknown, or an option's attack is not run.
    """
    from ragwitness.extraction.registry import build_attack

    given = per_audit(options)
    if idle := sorted(set(given) - set(names)):
        raise InputError(
            f"--set {idle[0]}.… is for an attack that is not run.",
            f"Run now: {', '.join(names)}; choose with --attacks.",
        )
    return [build_attack(name, limits, given.get(name), **knows) for name in names]


def plan_of(
    records: Sequence[Document],
    background: Sequence[Document],
    ledgers: tuple[Path | None, Path | None],
    *,
    contacts: bool,
    seed: int,
    pii: str = "auto",
) -> LeakPlan:
    """Return what answers are compared with.

    Args:
        records: The private corpus.
        background: Texts that the target does not hold.
        ledgers: Files of secrets and of decoys.
        contacts: Whether contact details in the records are secrets too.
        seed: Of the resampling.
        pii: Who finds them.

    Raises:
        InputError: A ledger cannot be read, decoys stand alone, or the corpus holds what is given.
    """
    from ragwitness.audits.leak import refuse_records
    from ragwitness.extraction.score.table import LeakPlan
    from ragwitness.text.pii import personal_of, pii_finder
    from ragwitness.text.secrets import SecretIndex, read_secrets

    refuse_records("--background", [one.text for one in background], records)
    # Secrets are private for certain; decoys are planted nowhere, and finding one is chance.
    known, planted_nowhere = (read_secrets(path) if path else [] for path in ledgers)
    if contacts:
        known = known + personal_of(((one.id, one.text) for one in records), pii_finder(pii))
    # A rate of decoys is a background and needs a rate above it.
    if planted_nowhere and not known:
        raise InputError("Decoys alone say nothing.", "Give the secrets too: --secrets FILE.")
    if held := {n for _, n in SecretIndex(planted_nowhere).pairs([one.text for one in records])}:
        raise InputError(
            f"{len(held)} of {len(planted_nowhere)} decoys stand in the corpus (the first is number"
            f" {min(held) + 1}): what is found of them is no chance.",
            "Leave them out of --decoys.",
        )
    return LeakPlan(records, background, known, planted_nowhere, seed)


def ledger_of(pii: str, *, contacts: bool) -> dict[str, str]:
    """Return who made the ledger of contact details, and what that does not find."""
    from ragwitness.text.pii import pii_finder

    if not contacts:
        return {}
    finder = pii_finder(pii)
    return {"contact details found by": finder.name, "of which it misses": finder.misses}


def settings_of(
    attacks: Sequence[Attack], limits: Limits, **files: str | Path | None
) -> dict[str, str]:
    """Return everything in use, as label and value."""
    named = {label: str(path) for label, path in files.items() if path is not None}
    if not attacks:
        return named
    named |= {
        "prompts of each attack": f"at most {limits.prompts}",
        "tokens of an answer": f"at most {limits.max_tokens}",
        "seed": str(limits.seed),
    }
    for attack in attacks:
        # Everything an attack depends on stands in the report; long texts by their number alone.
        config = getattr(attack, "config", None)
        fields = dataclasses.fields(config) if dataclasses.is_dataclass(config) else ()
        values = {one.name: getattr(config, one.name) for one in fields if one.name != "limits"}
        if texts := values.pop("texts", ()):
            values["texts"] = f"{len(texts)} given"
        if (own := values.pop("embedder", None)) is not None:
            values["embedder"] = own.name
        named[attack.name] = ", ".join(f"{key}: {value}" for key, value in values.items())
    return named


def preview_leak(attacks: Sequence[Attack], limits: Limits, folder: Path, budget: Budget) -> None:
    """Say what would be asked at most, and what the run folder keeps; send nothing."""
    most = len(attacks) * limits.prompts
    lines = [
        f"{attack.name}: at most {limits.prompts:,} prompts, answers of at most"
        f" {limits.max_tokens:,} tokens"
        for attack in attacks
    ]
    total = f"all: at most {most:,} prompts, {most * limits.max_tokens:,} tokens written"
    preview([*lines, total], folder, budget)
