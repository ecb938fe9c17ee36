"""A leak measurement as evidence: attacks are driven again by the answers, and scored again.

What an attack asks next follows from the answers before, so its prompts are recomputed as well as
its measures. With hidden texts neither can be: a measure compares answers with records.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
from ragwitness.core.errors import CapReachedError
from ragwitness.core.quotes import refuse_secrets
from ragwitness.core.run_files import TRANSCRIPTS
from ragwitness.core.types import Document, Reading
from ragwitness.evidence.case import (
    KEPT,
    TAKEN,
    PackCase,
    PackTask,
    Replies,
    check_spent,
    same_result,
)
from ragwitness.evidence.pack import Pack
from ragwitness.evidence.subject import SealedText, SealSubject
from ragwitness.leakage.attack_registry import build_attack
from ragwitness.leakage.attacks.base import Ask, Attack, Limits, Transcript, read_transcripts
from ragwitness.leakage.result import RESULT_TYPE
from ragwitness.leakage.run import attack_run, attacked, score_leaks, transcript_of
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.models.model_registry import load_embedder
from ragwitness.report import formatting as fmt
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import Budget
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.worker import Done, Followed, advance
from ragwitness.text.secrets import Secret

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

_ROW = {"stage", "document", "prompts", "failed"}


@dataclass(frozen=True, slots=True)
class LeakOrder:
    """A leak measurement as it is asked for.

    Attributes:
        target: Address of the system, as typed.
        attacks: Their names, in order.
        options: Fields of their configurations, by attack.
        limits: How much each may ask.
        budget: Caps and prices.
        texts: Public texts from which prompts are cut.
        topic: What the system is known to be about.
        embedder: For likeness in meaning; None leaves it out.
        shown: Everything in use, as the result says it.
    """

    target: str
    attacks: tuple[str, ...]
    options: Mapping[str, Mapping[str, object]]
    limits: Limits
    budget: Budget
    texts: tuple[str, ...] = ()
    topic: str | None = None
    embedder: str | None = None
    shown: Mapping[str, str] | None = None


# Sealed.


def subject_of(order: LeakOrder, plan: LeakPlan) -> SealSubject:
    """Return what a leak measurement commits to before its first query.

    Raises:
        InputError: The address of the target holds a key.
    """
    refuse_secrets(order.target)
    named = {"records": plan.records, "background": plan.background}
    texts = [SealedText(part, one.id, one.text) for part, own in named.items() for one in own]
    texts += [SealedText("information", str(n), text) for n, text in enumerate(order.texts)]
    for part, secrets in (("secrets", plan.secrets), ("decoys", plan.decoys)):
        texts += [
            SealedText(part, str(n), dense(asdict(one)).decode()) for n, one in enumerate(secrets)
        ]
    settings = json.loads(json.dumps(asdict(order)))
    del settings["texts"]
    left_out = TypeAdapter(Reading).dump_python(plan.left_out, mode="json")
    asked = hashlib.sha256(dense(sorted(one.text for one in plan.records))).digest()
    return SealSubject(
        "leak",
        settings | {"seed": plan.seed} | ({"left_out": left_out} if left_out else {}),
        tuple(texts),
        [(name, name) for name in order.attacks],
        looks=1,
        series=order.target.encode() + asked,
    )


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return how many prompts each attack sent, in the order of the attacks.

    Raises:
        InputError: The run is not finished.
    """
    found = read_transcripts(run.folder / TRANSCRIPTS)
    sent = Counter(one.attack for one in found)
    failed = Counter(one.attack for one in found if one.error is not None)
    names = json.loads(run.seal)["settings"]["attacks"]
    return [
        {"stage": name, "document": name, "prompts": sent[name], "failed": failed[name]}
        for name in names
    ]


# Recomputed.


def _counts(case: PackCase) -> str:
    """As many answers as prompts, and no more spent than the sealed caps admit."""
    pack, said = case.pack, case.pack.result
    RESULT_TYPE.opened(said)
    if any(row.keys() != _ROW for row in pack.rows):
        raise refuse("rows.form", "A row of what was found lacks a field or has another.")
    rows = {row["document"]: (row["prompts"], row["failed"]) for row in pack.rows}
    attacks = {one["name"]: (one["prompts"], one["failed"]) for one in said["attacks"]}
    if {name: count for name, count in rows.items() if count[0]} != attacks:
        raise refuse("counts.prompts", "The result counts other prompts than the pack's rows.")
    most = pack.seal.settings["limits"]["prompts"]
    for name, (prompts, failed) in rows.items():
        if not 0 <= failed <= prompts <= most:
            raise refuse("counts.prompts", f"{name} cannot have sent so many prompts.")
    names = {one.asked[0] for one in pack.answers}
    if names - {said["target"]}:
        raise refuse("counts.target", f"Not every answer is of {said['target']!r}.")
    check_spent(case, said["spent"], said["target"], Budget(**pack.seal.settings["budget"]))
    return (
        f"{fmt.count(sum(n for n, _ in rows.values()))} prompts of {fmt.count(len(rows))} attacks"
    )


def _prompts(case: PackCase) -> str:
    """Every prompt again, from the answers before it."""
    pack = case.pack
    if pack.hidden or pack.silent:
        raise NotCheckedError("the prompts were not recomputed: texts are hidden", needed=True)
    order, plan = _order(pack)
    replies = Replies(case.exchanges)
    transcripts: list[Transcript] = []
    ended: dict[str, Followed[str | None]] = {}
    capped = pack.result["spent"]["stopped_by"]
    for name in order.attacks:
        attack = build_attack(
            name,
            order.limits,
            order.options.get(name),
            order.texts,
            topic=order.topic,
            records=[one.text for one in (*plan.records, *plan.background)],
        )
        found, ended[name] = _driven(attack, replies, capped)
        transcripts += found
        case.progress("attacks", len(ended), len(order.attacks))
    rows = {row["document"]: (row["prompts"], row["failed"]) for row in pack.rows}
    for name in order.attacks:
        mine = [one for one in transcripts if one.attack == name]
        failed = sum(one.error is not None for one in mine)
        if rows[name] != (len(mine), failed):
            raise refuse("prompts", f"The answers lead {name} to {len(mine)} prompts, not so many.")
    case.kept["leak"] = (transcripts, ended)
    return f"{fmt.count(len(transcripts))} prompts follow from the answers before them"


def _driven(
    attack: Attack, replies: Replies, capped: str | None
) -> tuple[list[Transcript], Followed[str | None]]:
    found: list[Transcript] = []
    under_way: list[Ask] = []
    steps, answers, queries = attacked(attack, found, under_way), None, 0
    while True:
        step = advance(steps, answers)
        if isinstance(step, Done):
            return found, Followed(step.value, queries, queries)
        there = [replies.get(attack.name, attack.name, query) for query in step]
        if None not in there:
            queries += len(step)
            answers = [one for one in there if one is not None]
            continue
        # A cap may have ended it here; what was answered of the batch counts.
        if capped is None:
            raise refuse("prompts.unanswered", f"A prompt of {attack.name} has no answer.")
        steps.close()
        for ask, answer in zip(list(under_way), there, strict=True):
            if answer is not None and answer.error is None:
                found.append(transcript_of(attack.name, ask, answer))
        refusal = CapReachedError(f"{capped} cap reached")
        return found, Followed(None, queries, queries, passing=True, refusal=refusal)


def _measures(case: PackCase) -> str:
    """Every measure again, from prompts, answers and records; then all that the result says."""
    if "leak" not in case.kept:
        raise NotCheckedError("the measures were not recomputed: texts are hidden", needed=True)
    transcripts, ended = case.kept["leak"]
    order, plan = _order(case.pack)
    said = json.loads(json.dumps(case.pack.result))
    measure = load_embedder(order.embedder) if order.embedder else None
    spent = Spending(**said["spent"])
    asked = attack_run(said["target"], transcripts, ended, spent, order.limits.prompts)
    result = score_leaks(transcripts, plan, embedder=measure, asked=asked, settings=order.shown)
    mine = json.loads(json.dumps(RESULT_TYPE.stored(result)))
    capped = sum(one.capped for one in ended.values())
    budget = asdict(order.budget)
    mine["spent"] |= {"unasked": capped} | {
        f"max_{name}": budget[name] for name in ("queries", "tokens", "cost")
    }
    mine["ragwitness"] = said["ragwitness"]
    for one in (mine, said):
        one["warnings"] = [line for line in one["warnings"] if not KEPT.match(line)]
    same_result(case, "measures", mine, said, TAKEN)
    return (
        f"{fmt.count(len(mine['together']))} measures of {len(ended)} attacks, as the result says"
    )


def _order(pack: Pack) -> tuple[LeakOrder, LeakPlan]:
    settings = dict(pack.seal.settings)
    seed = settings.pop("seed")
    for gone in ("model", "attack_embedder"):  # of packs from before the attacks that learned left
        settings.pop(gone, None)
    left_out = TypeAdapter(Reading).validate_python(settings.pop("left_out", ()))
    parts: dict[str, list[tuple[str, str]]] = {
        name: [] for name in ("records", "background", "information", "secrets", "decoys")
    }
    for one in pack.texts:
        parts[one.part].append((one.id, str(one.text)))
    order = LeakOrder(
        **settings
        | {
            "attacks": tuple(settings["attacks"]),
            "limits": Limits(**settings["limits"]),
            "budget": Budget(**settings["budget"]),
            "texts": tuple(text for _, text in parts["information"]),
        }
    )
    known, decoys = (_secrets(parts[name]) for name in ("secrets", "decoys"))
    records, background = (
        [Document(name, text) for name, text in parts[part]] for part in ("records", "background")
    )
    return order, LeakPlan(records, background, known, decoys, seed, left_out, order.texts)


def _secrets(texts: Sequence[tuple[str, str]]) -> list[Secret]:
    return [Secret(**json.loads(text)) for _, text in texts]


TASK = PackTask(
    rows_of,
    (
        VerifierStep("counts", _counts),
        VerifierStep("prompts", _prompts),
        VerifierStep("measures", _measures),
    ),
    "every prompt and every measure was recomputed",
)
