"""Verification of a pack: what it is, what was committed to, and all of it recomputed.

A verdict is a list of named checks. Cheap ones first, all of them; what a task found is
recomputed once they hold (:mod:`ragwitness.membership.evidence` and its neighbours).
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from ragwitness.attest.archive import Archive
from ragwitness.attest.plain_words import first_lines
from ragwitness.attest.verdict import (
    BundleVerdict,
    Check,
    NotCheckedError,
    VerifierStep,
    admit,
    all_steps,
    deadline_of,
    extends,
    refuse,
    unread,
    unsigned,
    verdict_on,
)
from ragwitness.core.addresses import name_follows
from ragwitness.core.errors import (
    InputError,
    MissingExtraError,
    UnlistedError,
    VerificationError,
    require,
)
from ragwitness.core.registry import nothing_but
from ragwitness.core.run_files import REPORT, SEAL, SEAL_NOTE, SEAL_STAMP
from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.hashing import Opening, commit, parse_hex
from ragwitness.crypto.keys import PublicKey, read_stamp
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import (
    Checkpoint,
    Note,
    Signers,
    check_signed,
    open_checkpoint,
    verify_signature,
)
from ragwitness.evidence.case import PackCase, PackKnown
from ragwitness.evidence.code import code_digests, task_named, wheel_digest
from ragwitness.evidence.pack import (
    ANSWERS_FILE,
    LOG,
    ROWS,
    SIGNED_LOG,
    TEXTS,
    Pack,
    page_of,
    read_pack,
)
from ragwitness.evidence.subject import (
    EARLIER,
    TEXT,
    RunAnswered,
    RunBegun,
    RunEnded,
    changed,
    decode_entry,
    result_digest,
    root_of,
    seal_text,
    units_digest,
)
from ragwitness.report import formatting as fmt
from ragwitness.runner.hash_chain import ROW, first_link, next_link

PACKAGED = ("reader", "repeat", "minilm")
"""Models that a pack may name: those that come with this package, and the packaged encoder."""

# Whose pack it is, and what was committed to before the first query.


def _sealed(case: PackCase) -> str:
    text = seal_text(case.pack.files[SEAL])
    check_signed(case.pack.files[SEAL_NOTE], text, [case.pack.key], "seal")
    return f"SHA-256 {case.digest}"


def _known(case: PackCase) -> str:
    matches = []
    # All of these were compared before anything was read.
    if case.known.key is not None:
        matches.append("the key is the given one")
    if case.known.seal is not None:
        matches.append("the seal is the one that the verifier gave")
    if case.known.signed_by:
        matches.append(f"signed through Sigstore by {case.known.signed_by}")
    if case.known.checkpoints:
        matches.append("the key signed a checkpoint that was seen before")
    if not matches:
        raise NotCheckedError(
            "nothing that you knew before was given to compare it with: anybody can make such a"
            f" file. If this is the auditor's key, give it: --key '{case.pack.key.text}'",
            needed=True,
        )
    return "; ".join(matches)


def _stamped(case: PackCase) -> str:
    token = case.pack.files.get(SEAL_STAMP)
    if token is None:
        raise NotCheckedError("the seal was not stamped by a timestamp authority")
    data, roots = case.pack.files[SEAL], case.known.roots
    try:
        stamped = read_stamp(token, data, SEAL_STAMP, roots, "seal.timestamp")
    except MissingExtraError as error:
        raise NotCheckedError(f"{error.message} {error.hint}") from error
    if not stamped.trusted:
        raise NotCheckedError(
            f"the stamp says {stamped.at.isoformat()}; its signer was not checked: give --roots"
        )
    case.kept["stamped"] = stamped.at.isoformat()
    return f"stamped {stamped.at.isoformat()} by an authority that you trust"


def _system(case: PackCase) -> str:
    """The result and every answer name the sealed system."""
    seal, result = case.pack.seal, case.pack.result
    named = result.get("summary", result).get("target")
    if not seal.system:
        raise NotCheckedError("the seal does not name the system, so that any may be", needed=True)
    # The name may be followed by a way of reading, in brackets.
    if not isinstance(named, str) or named.partition(" (")[0] != seal.system.partition(" (")[0]:
        raise refuse("seal.system", f"The result is about {named!r}, the seal {seal.system!r}.")
    address = str(seal.settings["target"])
    follows = name_follows(address, seal.system) if address else True
    if follows is None:
        raise NotCheckedError(
            f"the sealed address {address[:80]!r} does not give the name {seal.system[:80]!r}: a"
            " variable or the signer's code does (seal the system's own URL)",
            needed=True,
        )
    if not follows:
        raise refuse(
            "seal.system", f"The sealed address {address[:80]!r} is not of {seal.system[:80]!r}."
        )
    return f"{seal.system}, at the sealed address {address}"


def _settings(case: PackCase) -> str:
    """Every setting is one that the task reads; an audit has one look."""
    seal, task = case.pack.seal, task_named(case.pack.seal.task)
    if task.looks is not None and seal.looks != task.looks:
        raise refuse("settings.looks", f"{seal.looks} looks are sealed; {seal.task} has one.")
    if unread := sorted(seal.settings.keys() - task.settings):
        if "code" in case.kept:
            raise NotCheckedError(f"this version has no setting {unread[0][:40]!r}", needed=True)
        raise refuse("settings.unread", f"{seal.task} reads no setting {unread[0][:40]!r}.")
    return f"{len(seal.settings)} settings, all of them read"


def _code(case: PackCase) -> str:
    seal, version_here = case.pack.seal, version("ragwitness")
    code, earlier = seal.code, seal.version == EARLIER
    if code.keys() != {"version", *(["digest"] if earlier else ["modules", "wheel"])}:
        raise refuse("pack.form", "The seal does not say which code it was made with.")
    # An audit's result says its version in its summary, a leak's beside it, a look's nowhere.
    result = case.pack.result
    claimed = result.get("summary", {}).get("version", result.get("ragwitness", code["version"]))
    if claimed != code["version"]:
        raise refuse(
            "code.version",
            f"The result is of version {claimed!r}, the seal of {code['version']!r}.",
        )
    made_by = f"made by version {str(code['version'])[:40]}"
    if earlier:
        same = code["digest"] == wheel_digest()
        others = [] if same else ["some file of it; its seal does not say which"]
    else:
        others = changed(code["modules"], code_digests(seal.task))
    if not others:
        return f"{made_by}, module by module what computes scores here"
    names = ", ".join(module[:80] for module in others[:3])
    more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
    case.kept["code"] = made_by
    return f"{made_by}, recomputed by {version_here} with other code: {names}{more}"


def _texts(case: PackCase) -> str:
    pack = case.pack
    counts = Counter(text.part for text in pack.texts)
    if pack.seal.texts != {
        "count": dict(counts),
        "root": root_of(text.leaf for text in pack.texts),
    }:
        raise refuse("texts.root", "The texts are not those that were committed to.")
    for text in pack.texts:
        if text.text is not None:
            message = text.text.encode("utf-8", "surrogatepass")
            if not _opens(TEXT, message, text.commitment, text.blinding):
                raise refuse(
                    "texts.opening", f"The text of {text.id!r} ({text.part}) is not the sealed one."
                )
    summary = ", ".join(f"{fmt.count(n)} {kind.replace('_', '-')}" for kind, n in counts.items())
    return f"{summary}; {fmt.count(len(pack.texts) - pack.hidden)} opened, all as committed to"


def _opens(domain: str, message: bytes, commitment: str, blinding: str | None) -> bool:
    secret = parse_hex(blinding or "", 32, "pack.form")
    recomputed = commit(Opening(domain, message, secret))
    return hmac.compare_digest(recomputed, parse_hex(commitment, 32, "pack.form"))


def _heads(pack: Pack) -> list[bytes]:
    """Return the head of the chain before its first row, and after each."""
    heads = [first_link(pack.files[SEAL])]
    for answer in pack.answers:
        heads.append(
            next_link(heads[-1], answer.asked, parse_hex(answer.commitment, 32, "pack.form"))
        )
    return heads


def _chain(case: PackCase) -> str:
    pack = case.pack
    for number, answer in enumerate(pack.answers, 1):
        if answer.text is not None and not _opens(
            ROW, answer.text.encode(), answer.commitment, answer.blinding
        ):
            raise refuse("answers.opening", f"Answer {number} is not the one that was linked.")
    chain = pack.manifest.chain
    if _heads(pack)[-1].hex() != chain.head or len(pack.answers) != chain.answers:
        raise refuse("answers.chain", "The answers are not those of the signed chain.")
    wishes = [answer.asked.query.top_logprobs for answer in case.exchanges if answer is not None]
    widest = max(wishes, default=0)
    if widest > chain.alternatives or (not pack.silent and widest != chain.alternatives):
        raise refuse("answers.alternatives", "The questions ask for other alternatives per token.")
    for answer, exchange in zip(pack.answers, case.exchanges, strict=True):
        if exchange is not None:
            question = exchange.asked
            label = (question.target, question.stage, question.document)
            if (*label, "failed" if exchange.failed else "answer") != answer.asked:
                raise refuse("answers.label", f"An answer about {label[2]!r} has another label.")
    failed = sum(answer.asked[3] == "failed" for answer in pack.answers)
    failures = f", {fmt.count(failed)} of them failed" if failed else ""
    opened = fmt.count(len(pack.answers) - pack.silent)
    return f"{fmt.count(len(pack.answers))} answers linked to the seal{failures}; {opened} opened"


def _runs(case: PackCase) -> str:
    """The log of runs: whole, signed, extending what was seen, with this run in it."""
    files, logged = case.pack.files, case.pack.seal.logged
    if logged != (LOG in files) or logged != (SIGNED_LOG in files):
        raise refuse("runs.missing", "The seal and the pack disagree on whether runs are logged.")
    if not logged:
        if case.known.checkpoints:
            raise refuse("runs.missing", "A checkpoint was given, and no log of runs is here.")
        raise NotCheckedError("runs are not logged: whether others were thrown away is not known")
    # 1. Its entries are those of the signed checkpoint, and of every one that was seen before.
    entries = list(read_entries(files[LOG]))
    log = MerkleLog()
    log.extend(entries)
    signed = open_checkpoint(files[SIGNED_LOG], Signers((case.pack.key,))).checkpoint
    extends(log, signed, "runs")
    if sum(map(len, entries)) + 2 * len(entries) != len(files[LOG]) or signed.size != log.size:
        raise refuse("runs.root", "The log holds other entries than its checkpoint signs.")
    for data in case.known.checkpoints:
        extends(log, _seen(data, case.pack.key), "runs")
    # 2. This run is in it: begun once, and ended with this result.
    log_entries = [decode_entry(entry) for entry in entries]
    begun = [row for row in log_entries if isinstance(row, RunBegun)]
    grown = [row for row in log_entries if isinstance(row, RunAnswered) and row.seal == case.digest]
    ended = [row for row in log_entries if isinstance(row, RunEnded)]
    beginnings = [row for row in begun if row.seal == case.digest]
    if len(beginnings) != 1:
        raise refuse("runs.begun", f"The log says {len(beginnings)} times that this run began.")
    endings = [row for row in ended if row.seal == case.digest]
    result = result_digest(case.pack.result)
    chain = case.pack.manifest.chain
    if endings[-1:] != [RunEnded(case.digest, chain.head, chain.answers, result)]:
        raise refuse("runs.ended", "The log does not say that this run ended with this result.")
    # Every head that was logged lies on the chain of this pack.
    heads = [head.hex() for head in _heads(case.pack)]
    points: list[RunAnswered | RunEnded] = [*endings, *grown]
    if any(not 0 <= row.answers < len(heads) or heads[row.answers] != row.head for row in points):
        raise refuse("runs.forked", "The log holds other answers under this seal than the pack.")
    # How many of its answers had come when somebody else saw the log.
    size = max((_seen(data, case.pack.key).size for data in case.known.checkpoints), default=0)
    early = [row for row in log_entries[:size] if isinstance(row, RunAnswered | RunEnded)]
    case.kept["watched"] = max((row.answers for row in early if row.seal == case.digest), default=0)
    # 3. Other runs of the series.
    series = [row.seal for row in begun if row.series == beginnings[0].series]
    done = {row.seal for row in ended}
    unfinished = sum(seal not in done for seal in series)
    case.kept["runs"] = (
        f"That of the {fmt.count(len(begun))} runs that this key logged, {fmt.count(len(series))}"
        " are about these documents at this system: nobody but the key's owner can tell which are."
        f" This one is number {series.index(case.digest) + 1} of them;"
        f" {fmt.count(unfinished)} of them have no result. Ask for the others."
        if len(begun) > 1
        else ""
    )
    return f"{fmt.count(len(entries))} entries, this run begun and ended in them"


def _seen(data: bytes, key: PublicKey) -> Checkpoint:
    note = Note.parse(data)
    checkpoint = Checkpoint.parse(note.text)
    lines = note.signatures_of([key])
    if key not in lines:
        raise InputError("A checkpoint that was given is not signed by the key of the seal.")
    verify_signature(key, checkpoint, lines[key])
    return checkpoint


def _asked(case: PackCase) -> str:
    """The questions are the sealed ones: nothing added, left out or moved."""
    units = [(row.get("stage"), row.get("document")) for row in case.pack.rows]
    sealed = case.pack.seal.units
    if sealed != {"count": len(units), "digest": units_digest(units)}:  # type: ignore[arg-type]
        raise refuse("units", "The scored set is not the sealed set, in its order.")
    pairs = {*units, *task_named(case.pack.seal.task).besides}
    strangers = [answer.asked for answer in case.pack.answers if answer.asked[1:3] not in pairs]
    if strangers:
        raise refuse("units.stranger", f"An answer is about {strangers[0][2]!r}, which no row is.")
    return f"{fmt.count(len(units))} in the sealed order"


def _page(case: PackCase) -> str:
    try:
        page = page_of(case.pack.result).encode()
    except InputError as error:
        raise refuse("result.form", error.message) from error
    if page == case.pack.files[REPORT]:
        return "the page shows this result"
    # A page is presentation: by other code it looks otherwise, and decides no verdict.
    code = case.pack.seal.code
    if wheel_digest() != code.get("wheel", code.get("digest")):
        case.kept["page"] = "report.html was written by other code than is installed here"
        raise NotCheckedError(case.kept["page"])
    raise refuse("page", "report.html does not show the result of this pack.")


COMMITMENTS: tuple[VerifierStep[PackCase], ...] = (
    # The signer, and whether the seal is the published one.
    VerifierStep("seal.note", _sealed),
    VerifierStep("seal.known", _known),
    VerifierStep("seal.timestamp", _stamped),
    VerifierStep("seal.system", _system),
    VerifierStep("code", _code),
    VerifierStep("settings", _settings),
    # The commitments, the answers, and other runs.
    VerifierStep("texts", _texts),
    VerifierStep("answers", _chain),
    VerifierStep("units", _asked),
    VerifierStep("runs", _runs),
)
"""Checks that recompute no score; all of them, always."""

PAGE: VerifierStep[PackCase] = VerifierStep("page", _page)


def verify_pack(
    data: Archive,
    known: PackKnown | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BundleVerdict:
    """Return the verdict on a pack.

    Args:
        data: The file.
        known: The verifier's own knowledge.
        progress: Called with (what, done, all) while answers are replayed.
    """
    knowledge = known or PackKnown()
    try:
        pack = read_pack(data, knowledge.key, partial(_admit, knowledge))
        task = task_named(pack.seal.task)
    except NotCheckedError as error:
        return unsigned("pack", error)
    except (InputError, VerificationError) as error:
        return unread("pack", error)
    in_time = deadline_of(known=knowledge.names_the_signer)

    def advanced(*at: Any) -> None:
        in_time()
        if progress is not None:
            progress(*at)

    case = PackCase(pack, knowledge, advanced)
    checks = [
        Check("pack", "pass", f"{len(pack.files)} files in their one form"),
        Check("pack.note", "pass", f"signed by {pack.key.name}, who signed the seal"),
    ]
    steps = map(_guarded, (*task.steps, PAGE))
    with nothing_but({*PACKAGED, *case.known.models}):
        checks, lacking = all_steps(checks, map(_guarded, COMMITMENTS), steps, case, in_time)
    reason = f"on the recorded answers, which are the signer's word, {task.whole}"
    verdict = verdict_on(checks, lacking, reason)
    verdict = replace(verdict, lead=_lead(case, verdict))
    if verdict.outcome == "fail":
        return verdict
    return replace(
        verdict,
        covers=_covers(case),
        learned=_learned(case),
        rests=_rests(case),
        uncovered=_uncovered(case),
    )


def _admit(known: PackKnown, key: PublicKey, files: Mapping[str, memoryview]) -> None:
    """Refuse a pack of another signer, and a large one where no signer is known."""
    if known.seal is not None:
        same = hmac.compare_digest(known.seal.strip().lower(), sha256(files[SEAL]).hexdigest())
        require(same, "seal.digest", "The seal is not the one that the verifier gave.")
    for data in known.checkpoints:
        _seen(data, key)
    if not known.names_the_signer:
        admit(_GIVE_KEY, bytes=sum(map(len, files.values())))
        rows = sum(bytes(files[name]).count(b"\n") for name in (TEXTS, ANSWERS_FILE, ROWS))
        admit(_GIVE_KEY, rows=rows + len(files.get(LOG, b"")) // _LEAST_ENTRY)


_LEAST_ENTRY = 100  # bytes of an entry in the log of runs
_GIVE_KEY = "Give the auditor's key, as they published it: --key TEXT"

_ARITHMETIC = {*(step.name for step in COMMITMENTS), "counts"}
"""Checks that come out the same by any version of the code."""


def _guarded(step: VerifierStep[PackCase]) -> VerifierStep[PackCase]:
    """Return a check that loads nothing unlisted, and names a field that is of no use to it.

    A difference by other code proves no lie: such a check is not made.
    """

    def run(case: PackCase) -> str:
        try:
            return step.run(case)
        except UnlistedError as error:
            raise NotCheckedError(
                f"the scores come from a part outside the package: {error.message}; --models with"
                " this name loads a model or another package's method, and a removed method is in"
                " the version that made the pack",
                needed=True,
            ) from error
        except VerificationError as error:
            if step.name in _ARITHMETIC or "code" not in case.kept:
                raise
            raise NotCheckedError(
                f"the pack was {case.kept['code']} with other code, and this one finds otherwise:"
                f" {error.message} Verify it with the version that made it",
                needed=True,
            ) from error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise refuse(f"{step.name}.form", f"The pack cannot be read: {error!r}.") from error

    return VerifierStep(step.name, run)


def _lead(case: PackCase, verdict: BundleVerdict) -> tuple[str, ...]:
    from ragwitness.report.result_registry import parse_result

    seal, figures = case.pack.seal, ""
    if verdict.outcome == "pass":
        kind, result = parse_result(case.pack.result)
        figures = f"The report's finding: {kind.report(result).title}"
    signer = f"the holder of the key {case.pack.key.name}"
    system = seal.system or "the system"
    return first_lines(
        verdict, _KINDS.get(seal.task, seal.task), figures, system=system, signer=signer
    )


_KINDS = {"marks": "audit"}


def _covers(case: PackCase) -> tuple[str, ...]:
    """Return the scope of the outcome."""
    seal, counts = case.pack.seal, Counter(text.part for text in case.pack.texts)
    texts = ", ".join(f"{fmt.count(n)} {kind.replace('_', ' ')}" for kind, n in counts.items())
    return (
        f"System: {seal.system or 'not named in the seal'}; sealed address:"
        f" {seal.settings.get('target')}",
        f"Texts: {texts}. Answers: {fmt.count(len(case.pack.answers))}.",
        f"Sealed {_when(seal.begun)} by {case.pack.key.text}",
    )


def _learned(case: PackCase) -> tuple[str, ...]:
    """Return what a pack with hidden texts shows all the same."""
    if not case.pack.hidden:
        return ()
    visible = "ids of documents, how often each was asked about, all scores and settings"
    return (
        f"{visible}; the comparison of sets may contain words that many of the documents share.",
    )


def _rests(case: PackCase) -> tuple[str, ...]:
    """Whose word the outcome rests on."""
    origin = "as you gave it" if case.known.key else "which nobody told you"
    return (
        f"Signer: the key is {case.pack.key.text}, {origin}. Its holder recorded the answers; a"
        " recording that was made up is refuted by asking the system again.",
        "Documents: that those named as outside, if any, are outside is the signer's word.",
    )


def _uncovered(case: PackCase) -> tuple[str, ...]:
    """Return the limits of any pack, and the open points of this one."""
    seal, knowledge = case.pack.seal, case.known
    lines = list[str]()
    if knowledge.seal is None:
        stamp = case.kept.get("stamped")
        stamp_text = f" the stamp shows that the seal is as old as {stamp}, and" if stamp else ""
        lines.append(
            f"That the seal of {_when(seal.begun)} is older than the answers: the signer says so;"
            f"{stamp_text} nothing in a pack shows the age of the answers. A seal that was known"
            " before they came does (--seal)."
        )
    # How often answers were recorded.
    if case.kept.get("watched"):
        lines.append(
            f"That the answers after the first {fmt.count(case.kept['watched'])} of"
            f" {fmt.count(len(case.pack.answers))} were recorded once: a checkpoint that you gave"
            " holds those."
        )
    else:
        lines.append(
            "That this is the only recording under its seal: a folder copied before the answers"
            " can be answered twice. A checkpoint that somebody kept while they arrived tells"
            " (--runs-log, --checkpoint)."
        )
    lines.append("That nobody looked before without a seal: such a run is in no log.")
    if "runs" in case.kept:
        lines += [case.kept["runs"]] if case.kept["runs"] else []
        if not knowledge.checkpoints:
            lines.append(
                "That this is the only log of the key: compare it with a checkpoint that somebody"
                " else was shown (--checkpoint)."
            )
    else:
        lines.append("That no other run was made and thrown away: runs were not logged.")
    if "worded" in case.kept:
        lines.append(
            f"That {fmt.count(len(case.kept['worded']))} sentences of the result say what the"
            " figures beside them say: other code wrote them, and the figures alone were compared."
        )
    if "page" in case.kept:
        lines.append(f"That the page shows this result: {case.kept['page']}. Read result.json.")
    return tuple(lines)


def _when(begun: str) -> str:
    try:
        return datetime.fromisoformat(begun).astimezone(UTC).isoformat(sep=" ", timespec="minutes")
    except ValueError:
        return "an unknown time"
