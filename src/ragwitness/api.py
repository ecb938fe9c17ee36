"""The four questions, each in a few lines of Python; reached as ``ragwitness.NAME``.

::

    import ragwitness as rw

    result = rw.audit("mine.jsonl", "http://127.0.0.1:8000/v1", known_out="outside.jsonl")
    leaks = rw.leak("corpus.jsonl", "http://127.0.0.1:8000/v1", prompts=50)
    bounds = rw.bounds(epsilon=1.0, delta=1e-6, queries=1000, accounts=16)
    verdict = rw.verify("bundle.zip", "trust.json")
    plan = rw.plan_canaries("examples.jsonl", "canaries")

The functions block until they are done, also inside a notebook. Asynchronous programs use what
:func:`audit` is made of: ``open_target``, ``build_audit`` and ``run_audit``.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar

from ragwitness.errors import InputError
from ragwitness.types import Document, Reading, Target

if TYPE_CHECKING:
    from ragwitness.asking.governor import Governor
    from ragwitness.attest.verdict import BundleVerdict
    from ragwitness.audits.canary import CanaryResult
    from ragwitness.canary.folder import CanaryPlan
    from ragwitness.canary.traces import Trace
    from ragwitness.privacy.accounting.bounds import Bounds
    from ragwitness.results.leak import LeakResult
    from ragwitness.results.membership import AuditResult

Documents = str | Path | Sequence[Document | str]
"""Documents as values, as plain texts, or as the path of a file or folder that holds them."""

_T = TypeVar("_T")


def audit(
    documents: Documents,
    target: object,
    *,
    known_out: Documents = (),
    known_in: Documents = (),
    auxiliary: Documents = (),
    method: str = "s-rag",
    options: Mapping[str, object] | None = None,
    proxy: str = "reader",
    alpha: float = 0.05,
    run: Path | str | None = None,
    max_queries: int | None = None,
) -> AuditResult:
    """Ask whether documents are in a RAG system's database.

    Args:
        documents: Those in question.
        target: What is audited: an address as on the command line (docs/targets.md), a target, or
            any RAG system in Python.
        known_out: Documents known to be outside; the p-values are ranks among them.
        known_in: Documents known to be inside; ``out`` is said only with them.
        auxiliary: Documents for the shadow system; generated ones by default.
        method: Name of the audit, as ``ragwitness audit --method`` takes it; ``auto`` chooses by
            what the target, the documents and the caps admit.
        options: Fields of the method's configuration; none with ``auto``.
        proxy: The auditor's own model.
        alpha: Level of the verdicts, after correction over all documents.
        run: Folder that keeps the answers; the same call resumes there. None keeps nothing.
        max_queries: Most queries that may be sent, all starts in ``run`` together.

    Returns:
        One verdict per document, in the order given, with what they rest on.

    Raises:
        InputError: Documents, a method or an option cannot be used.
        CapabilityError: The target lacks what the method requires.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    from dataclasses import replace

    from ragwitness.asking.capabilities import measured_once
    from ragwitness.audits.choice import AUTO, USUAL, choose, refuse_beforehand
    from ragwitness.audits.membership import run_audit
    from ragwitness.audits.order import audit_at
    from ragwitness.audits.pilot import run_pilot
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.membership.registry import configure
    from ragwitness.models.registry import load_language_model

    _refuse_types(("method", method, str), ("proxy", proxy, str))
    _refuse_types(("options", options or {}, Mapping))
    named = (documents, known_out, known_in, auxiliary)
    folder, given = _folder(run, *named), tuple(map(as_documents, named))
    asked, outside, inside, aside = map(tuple, given)
    plan = AuditPlan(asked, outside, inside, aside, alpha, left_out=_left_out(*given))
    by_itself = method == AUTO
    if by_itself and options:
        raise InputError(
            f"The method auto chooses, and {next(iter(options))} is an option of one method.",
            "Name the method, or leave the options out.",
        )
    usual = USUAL if by_itself else (method, options)
    config = configure(*usual)

    async def ask(system: Target) -> AuditResult:
        with _governor(folder, max_queries) as governor:
            chosen, why = (usual[0], config), ""
            # What no method has a question for is refused before the target is measured.
            if by_itself:
                own = load_language_model(proxy)
                await refuse_beforehand(plan, own, governor.budget)
                seen = await measured_once(system, governor, folder)
                piloting = partial(run_pilot, system, governor, folder)
                found = await choose(plan, seen, own, governor.budget, piloting)
                chosen, why = (found.method, found.config), found.why
            asked, identity = await audit_at(system, (*chosen, proxy), governor, folder, plan)
            result = await run_audit(
                plan, system, asked, run=folder, governor=governor, identity=identity
            )
            if not why:
                return result
            return replace(result, settings={"chosen": why} | dict(result.settings))

    return _with_target(target, ask)


def leak(
    corpus: Documents,
    target: object,
    *,
    attacks: Sequence[str] = ("composite",),
    prompts: int = 250,
    answer_tokens: int = 256,
    background: Documents = (),
    contacts: bool = False,
    seed: int = 0,
    run: Path | str | None = None,
    max_queries: int | None = None,
) -> LeakResult:
    """Attack a RAG system and measure how much of its private corpus comes back.

    Args:
        corpus: The private records; answers are compared with every one of them.
        target: As in :func:`audit`. A system in this process shows its owner what it retrieved.
        attacks: Names, as ``ragwitness leak --attacks`` takes them.
        prompts: Most prompts of each attack.
        answer_tokens: Most tokens of an answer.
        background: Texts like the corpus that the target does not hold: what chance gives.
        contacts: Whether the corpus's contact details are counted as secrets.
        seed: Seed of the prompts and of the bootstrap.
        run: As in :func:`audit`.
        max_queries: As in :func:`audit`.

    Raises:
        InputError: The corpus, an attack or an option cannot be used.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    from ragwitness.audits.leak import AttackRun, ask_attacks, refuse_records, score_leaks
    from ragwitness.extraction.attacks.base import Limits
    from ragwitness.extraction.registry import build_attack
    from ragwitness.extraction.score.table import LeakPlan
    from ragwitness.rag.target import LabTarget
    from ragwitness.text.pii import personal_of, pii_finder

    folder, records = _folder(run, corpus, background), as_documents(corpus)
    if not records:
        raise InputError("There is no corpus to look for.", "Give the private records.")
    limits = Limits(prompts, answer_tokens, seed)
    made = [build_attack(name, limits) for name in dict.fromkeys(attacks)]
    others = as_documents(background)
    refuse_records("background", [one.text for one in others], records)
    named = ((one.id, one.text) for one in records)
    secrets = personal_of(named, pii_finder()) if contacts else []

    async def ask(system: Target) -> AttackRun:
        if isinstance(system, LabTarget):
            system = system.for_owner()
        with _governor(folder, max_queries) as governor:
            return await ask_attacks(made, prompts, system, run=folder, governor=governor)

    asked = _with_target(target, ask)
    plan = LeakPlan(records, others, secrets, [], seed, _left_out(records, others))
    return score_leaks(asked.transcripts, plan, asked=asked)


def bounds(
    *,
    delta: float,
    queries: int,
    accounts: int,
    epsilon: float | None = None,
    sigma: float | None = None,
    sensitivity: float = 1.0,
) -> Bounds:
    """Say what accounts that pool their answers learn: by the paper's theorem, and exactly.

    Args:
        delta: Delta that each account is promised.
        queries: Queries of one account in a window.
        accounts: Accounts that pool their answers, k.
        epsilon: Epsilon that each account is promised; the noise follows by (3.4) of the paper.
        sigma: The committed standard deviation of the noise instead, in units of one score.
        sensitivity: L2 change of one score when one document changes.

    Raises:
        InputError: A value is outside its range, or there is neither ``epsilon`` nor ``sigma``.
    """
    from ragwitness.privacy.accounting.bounds import ServiceTerms, joint_bounds

    return joint_bounds(ServiceTerms(delta, queries, accounts, epsilon, sigma, sensitivity))


def verify(bundle: Path | str, trust: Path | str | None = None) -> BundleVerdict:
    """Check a sealed file by itself: no network, no index.

    Args:
        bundle: File that ``ragwitness seal`` (an evidence pack) or ``ragwitness attest prove`` (the
            bundle of an audit window) wrote.
        trust: For a bundle: file with what the verifier knows and accepts by itself (whose log,
            whose setup, which policy, which randomness); without it a bundle cannot pass.

    Raises:
        InputError: A file cannot be read.
        MissingExtraError: The extra ``verify`` is not installed.
    """
    from ragwitness.attest.bundle import MAX_ARCHIVE
    from ragwitness.attest.trust import parse_trust
    from ragwitness.evidence.kinds import SEALED, sealed_kind
    from ragwitness.kit.files import map_file, read_file

    known = None if trust is None else parse_trust(read_file(Path(trust)))
    data = map_file(Path(bundle), MAX_ARCHIVE)
    kind = sealed_kind(data)
    found: BundleVerdict = SEALED.load(kind)(data, *([known] if kind == "bundle.json" else []))
    return found


def plan_canaries(
    examples: Path | str,
    folder: Path | str,
    *,
    held_out: Path | str | None = None,
    candidates: int = 128,
    slots: int = 1,
    looks: int = 1,
    alpha: str = "0.05",
) -> CanaryPlan:
    """Draw canaries in secret and commit to them in a new folder.

    Publish ``commitment.json`` before anything is sent; keep ``secret/`` to yourself.

    Args:
        examples: JSON Lines with ``id``, ``document`` and ``question``.
        folder: Of the audit; must be new.
        held_out: Examples to probe with, never sent; a fifth of the documents by default.
        candidates: Triggers that might be drawn; no p-value of one slot is below 1 in so many.
        slots: Independent draws, each with its own canary.
        looks: Probes that may decide.
        alpha: Level of the verdict, committed to; as text, so that it is hashed as it is written.

    Raises:
        InputError: The examples cannot be used, or the folder is not new.
    """
    from ragwitness.canary.draw import Design, DrawSecret
    from ragwitness.canary.examples import read_examples
    from ragwitness.canary.folder import make_plan, write_plan
    from ragwitness.crypto.commitments import draw_blinding

    plan = make_plan(
        read_examples(Path(examples)),
        Design(candidates=candidates, slots=slots, releases=looks, alpha=alpha, triggers="name"),
        DrawSecret(os.urandom(32), draw_blinding()),
        held_out=read_examples(Path(held_out)) if held_out is not None else (),
    )
    plan.traces()  # what cannot be planted must be known before the commitment is published
    write_plan(Path(folder), plan)
    return plan


def plant_canaries(folder: Path | str) -> tuple[Trace, ...]:
    """Write what is to be sent, and return it: document, query and vote of each trace, in order.

    Args:
        folder: From :func:`plan_canaries`.

    Raises:
        InputError: The folder holds no plan, or its draw waits for a beacon.
        VerificationError: The plan is not the one committed to.
    """
    from ragwitness.canary.folder import read_plan, write_traces

    plan = read_plan(Path(folder))
    plan.draw()
    plan.check()
    traces = tuple(plan.traces())
    write_traces(Path(folder), plan, traces)
    return traces


def probe_canaries(
    folder: Path | str,
    target: object,
    *,
    release: str = "1",
    run: Path | str | None = None,
    max_queries: int | None = None,
) -> CanaryResult:
    """Ask whether a deployed model was trained on the planted documents. Counts as one look.

    Args:
        folder: From :func:`plan_canaries`, planted.
        target: As in :func:`audit`.
        release: What this release of the model is called.
        run: As in :func:`audit`.
        max_queries: As in :func:`audit`.

    Raises:
        CapabilityError: The target gives no log-probabilities; sample with
            ``ragwitness canary probe --way sampled``.
        InputError: The plan is not planted, its draw was opened, or its looks were taken.
    """
    from ragwitness.audits.canary import probe_canaries as probe

    async def ask(system: Target) -> CanaryResult:
        kept = _folder(run)
        with _governor(kept, max_queries) as governor:
            return await probe(Path(folder), system, release=release, run=kept, governor=governor)

    return _with_target(target, ask)


def _with_target(target: object, ask: Callable[[Target], Coroutine[Any, Any, _T]]) -> _T:
    """Open a target, ask, and close it again; a target that was handed in stays open."""
    from ragwitness.targets.objects import wrap
    from ragwitness.targets.resolve import open_target

    async def work() -> _T:
        opened = await open_target(target) if isinstance(target, str) else wrap(target)
        try:
            return await ask(opened)
        finally:
            if opened is not target:
                await opened.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    # A notebook has a loop of its own: the work gets one in a thread beside it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work()).result()


def _governor(run: Path | None, max_queries: int | None) -> AbstractContextManager[Governor]:
    from ragwitness.asking.budget import Budget
    from ragwitness.asking.governor import Governor, Pace

    _refuse_types(("max_queries", max_queries, int | None))
    return Governor.of_run(run, Budget(queries=max_queries), Pace.at_most(4))


def _folder(run: Path | str | None, *given: Documents) -> Path | None:
    """The run folder, in which nothing that was ``given`` may lie: its files are replaced."""
    if run is None:
        return None
    if not isinstance(run, str | Path) or run == "" or "\0" in str(run):
        raise InputError(f"run names no folder: {run!r}.", "Name one, or '.' for the current one.")
    folder = Path(run).resolve()
    for one in given:
        with suppress(OSError, ValueError):  # a text and no path
            path = Path(one) if isinstance(one, str | Path) else None
            if path and path.exists() and folder in path.resolve().parents:
                raise InputError(f"run {run} holds {one}, which is read.", "Name another folder.")
    return Path(run)


def _refuse_types(*given: tuple[str, object, type | UnionType]) -> None:
    for name, value, kind in given:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{name} cannot be {value!r}.", "help(ragwitness.audit) says what.")


class _Read(tuple[Document, ...]):
    """Documents of a file, with what reading it came to."""

    left_out: Reading = ()


def _left_out(*given: Sequence[Document]) -> Reading:
    return tuple(told for one in given for told in getattr(one, "left_out", ()))


def as_documents(given: Documents) -> tuple[Document, ...]:
    """Return documents however they were given; plain texts are numbered.

    Raises:
        InputError: A file cannot be read, or nothing in it can be used.
    """
    from ragwitness.text.documents import load_documents

    if isinstance(given, str | Path):
        loaded = load_documents(str(given))
        if loaded.remarks:
            warnings.warn("\n".join(loaded.remarks), stacklevel=3)
        found = _Read(loaded.documents)
        found.left_out = (*loaded.left_out, *loaded.notes)
        return found
    if isinstance(given, _Read):
        return given
    # What is one document, or names each, is no series of them.
    series = isinstance(given, Iterable) and not isinstance(given, Mapping)
    listed: list[Any] = list(given) if series else [given]
    for n, one in enumerate(listed, start=1):
        if isinstance(one, str):
            listed[n - 1] = Document(str(n), one)
        elif not isinstance(getattr(one, "text", None), str):
            how = "Give texts or ragwitness.Document(id, text), or the path of a file."
            raise InputError(f"Document {n} is of the type {type(one).__name__}.", how)
    return tuple(listed)
