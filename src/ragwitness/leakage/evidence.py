"""A leak measurement as evidence: attacks run again on the stored answers, and are scored again.

The next prompt of an attack follows from the answers before it, so prompts are recomputed as well
as measures. With hidden texts neither can be: a measure compares answers with records.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
from ragwitness.core.errors import CapReachedError
from ragwitness.core.files import parse_json
from ragwitness.core.quotes import refuse_secrets
from ragwitness.core.run_files import TRANSCRIPTS
from ragwitness.core.types import Document, Reading
from ragwitness.evidence import case as cases
from ragwitness.evidence.pack import Pack
from ragwitness.evidence.subject import SealedText, SealSubject
from ragwitness.leakage.attack_registry import build_attack
from ragwitness.leakage.attacks.base import Ask, Attack, Limits, Transcript, read_transcripts
from ragwitness.leakage.result import RESULT_TYPE, without_published
from ragwitness.leakage.run import attack_run, attacked, score_leaks, transcript_of
from ragwitness.leakage.score.table import CHANNELS, LeakPlan
from ragwitness.report import formatting as fmt
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import Budget
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.worker import Done, GeneratorResult, advance
from ragwitness.text.secrets import Secret

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

_ROW = {"stage", "document", "prompts", "failed"}


@dataclass(frozen=True, slots=True)
class LeakOrder:
    """The order of a leak measurement.

    Attributes:
        target: Address of the system, as typed.
        attacks: Names of the attacks, in order.
        options: Fields of their configurations, by attack.
        limits: Limits of each attack.
        budget: Caps and prices.
        texts: Public texts from which prompts are cut.
        topic: Known subject of the system.
        shown: All settings, as in the result.
    """

    target: str
    attacks: tuple[str, ...]
    options: Mapping[str, Mapping[str, object]]
    limits: Limits
    budget: Budget
    texts: tuple[str, ...] = ()
    topic: str | None = None
    shown: Mapping[str, str] | None = None


# Sealed.


def subject_of(order: LeakOrder, plan: LeakPlan) -> SealSubject:
    """Return the commitment of a leak measurement before its first query.

    Raises:
        InputError: The address of the target holds a key.
    """
    refuse_secrets(order.target)
    documents = {"records": plan.records, "background": plan.background}
    texts = [SealedText(kind, d.id, d.text) for kind, listed in documents.items() for d in listed]
    texts += [SealedText("information", str(n), text) for n, text in enumerate(order.texts)]
    for kind, secrets in (("secrets", plan.secrets), ("decoys", plan.decoys)):
        texts += [
            SealedText(kind, str(n), dense(asdict(secret)).decode())
            for n, secret in enumerate(secrets)
        ]
    settings = json.loads(json.dumps(asdict(order)))
    del settings["texts"]
    left_out = TypeAdapter(Reading).dump_python(plan.left_out, mode="json")
    corpus = hashlib.sha256(dense(sorted(document.text for document in plan.records))).digest()
    return SealSubject(
        "leak",
        settings
        | {"seed": plan.seed, "channels": list(plan.channels)}
        | ({"left_out": left_out} if left_out else {}),
        tuple(texts),
        [(name, name) for name in order.attacks],
        looks=1,
        series=order.target.encode() + corpus,
    )


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return how many prompts each attack sent, in the order of the attacks.

    Raises:
        InputError: The run is not finished.
    """
    transcripts = read_transcripts(run.folder / TRANSCRIPTS)
    sent = Counter(t.attack for t in transcripts)
    failed = Counter(t.attack for t in transcripts if t.error is not None)
    names = json.loads(run.seal)["settings"]["attacks"]
    return [
        {"stage": name, "document": name, "prompts": sent[name], "failed": failed[name]}
        for name in names
    ]


# Recomputed.


def _counts(case: cases.PackCase) -> str:
    """As many answers as prompts, and no more spent than the sealed caps admit."""
    pack, result = case.pack, case.pack.result
    RESULT_TYPE.opened(result)
    if any(row.keys() != _ROW for row in pack.rows):
        raise refuse("rows.form", "A row of the results lacks a field or has another.")
    rows = {row["document"]: (row["prompts"], row["failed"]) for row in pack.rows}
    attacks = {
        attack["name"]: (attack["prompts"], attack["failed"]) for attack in result["attacks"]
    }
    if {name: count for name, count in rows.items() if count[0]} != attacks:
        raise refuse("counts.prompts", "The result counts other prompts than the pack's rows.")
    limit = pack.seal.settings["limits"]["prompts"]
    for name, (prompts, failed) in rows.items():
        if not 0 <= failed <= prompts <= limit:
            raise refuse("counts.prompts", f"{name} cannot have sent that number of prompts.")
    if {answer.asked[0] for answer in pack.answers} - {result["target"]}:
        raise refuse("counts.target", f"Not every answer is of {result['target']!r}.")
    cases.check_spent(
        case, result["spent"], result["target"], Budget(**pack.seal.settings["budget"])
    )
    prompts = fmt.count(sum(count for count, _ in rows.values()))
    return f"{prompts} prompts of {fmt.count(len(rows))} attacks"


def _prompts(case: cases.PackCase) -> str:
    """Every prompt again, from the answers before it."""
    pack = case.pack
    if pack.hidden or pack.silent:
        raise NotCheckedError("the prompts were not recomputed: texts are hidden", needed=True)
    order, plan = _order(pack)
    replies = cases.Replies(case.exchanges)
    transcripts: list[Transcript] = []
    ended: dict[str, GeneratorResult[str | None]] = {}
    capped = pack.result["spent"]["stopped_by"]
    rows = {row["document"]: (row["prompts"], row["failed"]) for row in pack.rows}
    corpus = [document.text for document in (*plan.records, *plan.background)]
    for name in order.attacks:
        attack = build_attack(
            name,
            order.limits,
            order.options.get(name),
            order.texts,
            topic=order.topic,
            records=corpus,
            secrets=plan.secrets,
        )
        sent, ended[name] = _driven(attack, replies, capped)
        if rows[name] != (len(sent), sum(t.error is not None for t in sent)):
            raise refuse(
                "prompts", f"The answers lead {name} to {len(sent)} prompts, not to that number."
            )
        transcripts += sent
        case.progress("attacks", len(ended), len(order.attacks))
    case.kept["leak"] = (transcripts, ended)
    return f"{fmt.count(len(transcripts))} prompts follow from the answers before them"


def _driven(
    attack: Attack, replies: cases.Replies, capped: str | None
) -> tuple[list[Transcript], GeneratorResult[str | None]]:
    transcripts: list[Transcript] = []
    under_way: list[Ask] = []
    steps, answers, queries = attacked(attack, transcripts, under_way), None, 0
    while True:
        step = advance(steps, answers)
        if isinstance(step, Done):
            return transcripts, GeneratorResult(step.value, queries, queries)
        stored = [replies.get(attack.name, attack.name, query) for query in step]
        if None not in stored:
            queries += len(step)
            answers = [answer for answer in stored if answer is not None]
            continue
        # A cap may have ended it here; the answered prompts of the batch count.
        if capped is None:
            raise refuse("prompts.unanswered", f"A prompt of {attack.name} has no answer.")
        steps.close()
        for ask, answer in zip(list(under_way), stored, strict=True):
            if answer is not None and answer.error is None:
                transcripts.append(transcript_of(attack.name, ask, answer))
        refusal = CapReachedError(f"{capped} cap reached")
        return transcripts, GeneratorResult(None, queries, queries, passing=True, refusal=refusal)


def _measures(case: cases.PackCase) -> str:
    """Every measure again, from prompts, answers and records; then the whole result."""
    if "leak" not in case.kept:
        raise NotCheckedError("the measures were not recomputed: texts are hidden", needed=True)
    transcripts, ended = case.kept["leak"]
    order, plan = _order(case.pack)
    claimed = without_published(json.loads(json.dumps(case.pack.result)))
    spent = Spending(**claimed["spent"])
    run = attack_run(claimed["target"], transcripts, ended, spent, order.limits.prompts)
    result = score_leaks(transcripts, plan, asked=run, settings=order.shown)
    recomputed = json.loads(json.dumps(RESULT_TYPE.stored(result)))
    # Spending and version are not recomputed from answers; they are taken over.
    budget = asdict(order.budget)
    recomputed["spent"] |= {"unasked": sum(end.capped for end in ended.values())} | {
        f"max_{name}": budget[name] for name in ("queries", "tokens", "cost")
    }
    recomputed["ragwitness"] = claimed["ragwitness"]
    for version in (recomputed, claimed):
        version["warnings"] = [line for line in version["warnings"] if not cases.KEPT.match(line)]
    cases.same_result(case, "measures", recomputed, claimed, cases.TAKEN)
    count = fmt.count(len(recomputed["together"]))
    return f"{count} measures of {len(ended)} attacks, as the result says"


def _order(pack: Pack) -> tuple[LeakOrder, LeakPlan]:
    settings = dict(pack.seal.settings)
    seed = settings.pop("seed")
    for removed in ("model", "attack_embedder", "embedder"):  # settings of earlier packs
        settings.pop(removed, None)
    left_out = TypeAdapter(Reading).validate_python(settings.pop("left_out", ()))
    channels = tuple(settings.pop("channels", CHANNELS))  # earlier packs have none
    rows: dict[str, list[tuple[str, str]]] = {
        name: [] for name in ("records", "background", "information", "secrets", "decoys")
    }
    for text in pack.texts:
        rows[text.part].append((text.id, str(text.text)))
    order = LeakOrder(
        **settings
        | {
            "attacks": tuple(settings["attacks"]),
            "limits": Limits(**settings["limits"]),
            "budget": Budget(**settings["budget"]),
            "texts": tuple(text for _, text in rows["information"]),
        }
    )
    if unread := sorted(order.options.keys() - {*order.attacks}):
        raise refuse("settings.unread", f"No attack {unread[0][:40]!r} reads its sealed options.")
    secrets, decoys = (
        [Secret(**parse_json(text)) for _, text in rows[name]] for name in ("secrets", "decoys")
    )
    records, background = (
        [Document(name, text) for name, text in rows[kind]] for kind in ("records", "background")
    )
    return order, LeakPlan(
        records, background, secrets, decoys, seed, left_out, order.texts, channels
    )


TASK = cases.PackTask(
    rows_of,
    (
        VerifierStep("counts", _counts),
        VerifierStep("prompts", _prompts),
        VerifierStep("measures", _measures),
    ),
    "every prompt and every measure was recomputed",
    frozenset({"seed", "left_out", "channels", *(field.name for field in fields(LeakOrder))})
    - {"texts"},
)
