"""Joint: several kinds of questions about each document, and one score.

A method that suits one target sees nothing at another. A filter of quotations stops answers that
go on with a text. A target that ignores texts in a question never says yes. So each document is
asked a few questions of each kind. The sum of the kinds' scores is ranked, each on a scale that was
fixed beforehand. Known documents and those in question are asked and scored by one rule, so ranks
stay exact. E-values rest on the kinds whose bets need no test (``e_values``). See
``docs/design/joint.md``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least
from ragwitness.core.types import Audit, Capability, Document, Probe, Query, Score
from ragwitness.models.base import LanguageModel

SCALES = {"runon": 8.0, "s-rag:few": 12.0, "mba": 1.0, "rag-mia": 1.0}
"""Kinds that may be joined, and the score of each that counts as one."""

NATURAL = (
    "I remember reading something like this. Was it \u201c\u2026{altered} \u2026\u201d or"
    " \u201c\u2026{true} \u2026\u201d?",
    "A colleague quoted this to me, and I am not sure of the words: \u201c\u2026{altered}"
    " \u2026\u201d or \u201c\u2026{true} \u2026\u201d?",
    "How does it go on: \u201c\u2026{altered} \u2026\u201d or \u201c\u2026{true} \u2026\u201d?",
)
"""Questions of ``runon`` that a person might ask, for targets that refuse odd ones."""

_OPTIONS: dict[str, dict[str, object]] = {"runon": {"natural": NATURAL}}


@dataclass(frozen=True, slots=True)
class JointConfig:
    """The kinds of questions.

    Attributes:
        kinds: Their names, separated by commas, in the order of asking.
        questions: Most questions of ``runon``.
        enough: Score at which asking ends: that of the first kind, with full marks for the rest.
        look: Questions of ``runon`` after which it ends if they brought nothing; 0 asks them all.
        top_logprobs: Alternatives that ``runon`` asks for per token; 0 of a target that gives none.
    """

    stored_name: ClassVar[str] = "JointConfig"
    later: ClassVar[tuple[str, ...]] = ("look", "top_logprobs")
    logprobs_optional: ClassVar[bool] = True
    asks: ClassVar[str] = "questions"
    stops_at: ClassVar[str] = "enough"

    kinds: str = "runon,mba,rag-mia"
    questions: int = 4
    enough: float = 3.0
    look: int = 0
    top_logprobs: int = 20

    def __post_init__(self) -> None:
        """Refuse kinds that cannot be joined."""
        at_least(self, 1, "questions")
        if not self.enough > 0:
            raise InputError(f"enough must be above 0, not {self.enough:g}.")
        unknown = [kind for kind in self.listed if kind not in SCALES]
        if unknown or not self.listed or len(set(self.listed)) < len(self.listed):
            raise InputError(
                f"The kinds {self.kinds!r} cannot be joined.",
                f"Name some of {', '.join(SCALES)}, each once.",
            )

    @property
    def listed(self) -> tuple[str, ...]:
        """The kinds, in order."""
        return tuple(filter(None, (kind.strip() for kind in self.kinds.split(","))))

    @property
    def parts(self) -> dict[str, dict[str, object]]:
        """The audits that are joined, with their settings."""
        return {kind: _OPTIONS.get(kind, {}) for kind in self.listed}


class Joint:
    """Several kinds of questions about each document.

    Args:
        proxy: The auditor's own model, for the kinds that need one.
        config: The kinds.
        audits: Those of the kinds.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.joint.Joint"
    name = "joint"
    stands_alone: ClassVar[bool] = True

    def __init__(
        self,
        proxy: LanguageModel,
        config: JointConfig,
        audits: Mapping[str, Audit],
    ) -> None:
        self.proxy, self.config, self._audits = proxy, config, audits

    @property
    def requires(self) -> frozenset[Capability]:
        """The capabilities that any of the kinds needs."""
        return frozenset().union(*(audit.requires for audit in self._audits.values()))

    @property
    def elsewhere(self) -> Any:
        """The words of the documents' set, which name the audit."""
        sets = (getattr(audit, "elsewhere", None) for audit in self._audits.values())
        return next(filter(None, sets), None)

    def among(self, documents: Iterable[Document]) -> Joint:
        """Return the audit for documents of one set."""
        listed = list(documents)
        audits = {
            kind: audit.among(listed) if hasattr(audit, "among") else audit
            for kind, audit in self._audits.items()
        }
        return Joint(self.proxy, self.config, audits)

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "kinds of questions": ", ".join(self.config.listed),
            "score": "the sum of each kind's score, in "
            + ", ".join(f"{SCALES[kind]:g} of {kind}" for kind in self.config.listed),
        }

    def _audit(self, kind: str) -> Any:
        audit: Any = self._audits[kind]
        if kind == "runon":
            audit, names = copy.copy(audit), ("questions", "look", "top_logprobs")
            audit.config = replace(
                audit.config, **{name: getattr(self.config, name) for name in names}
            )
        return audit

    def questions(self, document: Document) -> list[Query]:
        """Return every question of the kinds that can list them."""
        listed = (getattr(self._audit(kind), "questions", None) for kind in self.config.listed)
        return [query for ask in listed if ask for query in ask(document)]

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        scores: dict[str, Score] = {}
        kinds = self.config.listed
        for index, kind in enumerate(kinds):
            scores[kind] = yield from self._audit(kind).probe(document)
            # Full marks for the kinds that are not asked any more.
            if _marks(scores, kinds) >= self.config.enough - (len(kinds) - 1 - index):
                break
        return _joined(scores, kinds)


def _marks(scores: dict[str, Score], kinds: tuple[str, ...]) -> float:
    """Sum of the scores so far, each in its unit; an unreadable kind counts as nothing."""
    return math.fsum((scores[k].value or 0.0) / SCALES[k] for k in kinds if k in scores)


def _joined(scores: dict[str, Score], kinds: tuple[str, ...]) -> Score:
    """Return the score of a document from those of its kinds."""
    details: dict[str, float] = {}
    for kind, score in scores.items():
        for name, value in score.details.items():
            if not name.startswith("score/"):
                details[name] = details.get(name, 0.0) + value
        if score.value is not None:
            details[f"score/{kind}"] = score.value
    bets = scores["runon"].bets if "runon" in scores else ()
    readable = [score for score in scores.values() if score.value is not None]
    if not readable:
        reason = "; ".join(dict.fromkeys(s.reason for s in scores.values() if s.reason))
        return Score(None, reason=reason, details=details, bets=bets)
    value = _marks(scores, kinds) + (len(kinds) - len(scores))
    evidence = tuple(word for score in readable for word in score.evidence)
    return Score(value, evidence=evidence, details=details, bets=bets)
