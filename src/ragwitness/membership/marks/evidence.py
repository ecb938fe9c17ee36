"""An audit of marked documents as evidence: its commitment, and the recomputation.

Questions and verdicts follow from the key and the answers, so both are recomputed. A pack that
opens the texts opens the key: its lots prove nothing to those who come later.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
from ragwitness.core.errors import CapReachedError, VerificationError
from ragwitness.core.files import parse_json
from ragwitness.core.quotes import refuse_secrets
from ragwitness.evidence.case import TAKEN as LOOSE
from ragwitness.evidence.case import PackCase, PackTask, Replies, check_spent, same_result
from ragwitness.evidence.subject import SealedText, SealSubject
from ragwitness.membership.marks.key import MarksKey
from ragwitness.membership.marks.questions import LotAnswers
from ragwitness.membership.marks.run import STAGE, MarksAudit
from ragwitness.membership.results.marks import RESULT_TYPE
from ragwitness.report import formatting as fmt
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import Budget
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.worker import GeneratorResult, replay

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun


def subject_of(audit: MarksAudit, task: Any) -> SealSubject:
    """Return the commitment of an audit of marks before its first query.

    Raises:
        InputError: The address of the target holds a key.
    """
    target = str(task.target)
    refuse_secrets(target)
    stored = audit.key.stored()
    documents = stored.pop("documents")
    public = {name: stored.pop(name) for name in ("commitment", "beacon_source", "beacon")}
    texts = [SealedText("key", "key", dense(stored).decode())]
    texts += [SealedText("marked", row["id"], dense(row).decode()) for row in documents]
    budget = task.budget
    caps = {name: getattr(budget, name) for name in budget.__dataclass_fields__}
    settings = {"target": target, "alpha": audit.alpha, "budget": caps, **public}
    series = target.encode() + hashlib.sha256(audit.key.commitment).digest()
    units = [(STAGE, document.id) for document in audit.key.documents]
    return SealSubject("marks", settings, tuple(texts), units, looks=1, series=series)


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return a row for each document; the findings follow from the answers."""
    return [{"stage": STAGE, "document": t.id} for t in run.texts if t.part == "marked"]


def _audit(case: PackCase) -> MarksAudit:
    pack = case.pack
    if pack.hidden or pack.silent:
        raise NotCheckedError(
            "lots and verdicts were not recomputed: texts are hidden", needed=True
        )
    settings = pack.seal.settings
    secret, *documents = (parse_json(str(text.text)) for text in pack.texts)
    public = {name: settings[name] for name in ("commitment", "beacon_source", "beacon")}
    key = MarksKey.from_stored({**secret, **public, "documents": documents})
    return MarksAudit(key, float(settings["alpha"]))


def _check_lots(case: PackCase) -> str:
    """The lots follow from the seed that the published commitment opens to."""
    key = _audit(case).key
    try:
        key.check()
    except VerificationError as error:
        raise refuse("lots.commitment", "The key is not the one committed to.") from error
    lots = sum(len(document.lots) for document in key.documents)
    return f"{fmt.count(lots)} lots follow from the seed under {key.commitment.hex()[:16]}…"


def _check_counts(case: PackCase) -> str:
    """Answers of the sealed target, within the sealed caps."""
    result, settings = case.pack.result, case.pack.seal.settings
    RESULT_TYPE.opened(result)
    if {answer.asked[0] for answer in case.pack.answers} - {result["target"]}:
        raise refuse("counts.target", f"Not every answer is of {result['target']!r}.")
    check_spent(case, result["spent"], result["target"], Budget(**settings["budget"]))
    return f"{fmt.count(result['queries'])} questions"


def _check_verdicts(case: PackCase) -> str:
    """Every question and verdict again, from the key and the answers."""
    audit, claimed = _audit(case), json.loads(json.dumps(case.pack.result))
    replies, outcomes = Replies(case.exchanges), list[GeneratorResult[LotAnswers]]()
    for number, document in enumerate(audit.key.documents):
        end, queries, _ = replay(audit.steps(number), partial(replies.get, STAGE, document.id))
        if end is not None:
            outcomes.append(GeneratorResult(end.value, queries, queries))
            continue
        if claimed["spent"]["stopped_by"] is None:
            raise refuse("verdicts.unanswered", f"A question about {document.id!r} has no answer.")
        refusal = CapReachedError(claimed["documents"][number]["reason"])
        outcomes.append(GeneratorResult(None, queries, queries, refusal=refusal))
    spent = Spending(**claimed["spent"])
    result = audit.conclude(outcomes, claimed["target"], spent, claimed["seconds"])
    recomputed = json.loads(json.dumps(RESULT_TYPE.stored(result)))
    recomputed["warnings"] = claimed["warnings"]
    same_result(case, "verdicts", recomputed, claimed, LOOSE)
    return f"{fmt.count(len(outcomes))} verdicts recomputed from the key and the answers"


TASK = PackTask(
    rows_of,
    (
        VerifierStep("counts", _check_counts),
        VerifierStep("lots", _check_lots),
        VerifierStep("verdicts", _check_verdicts),
    ),
    "every lot, question and verdict was recomputed",
    frozenset("target alpha budget commitment beacon_source beacon".split()),
)
