"""What the verdicts of an audit claim, what they do not, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.report import wording as say
from ragwitness.runs.result import AuditResult

__all__ = ["Claims", "claims"]

_NOT_CLAIMED = (
    "A verdict is not proof: at this level, some documents outside are called in.",
    "It cannot tell this document from a copy or near-copy of it in the database.",
    "It says nothing about who put it there, by what right, or whether the model was "
    "trained on it.",
    "\N{LEFT DOUBLE QUOTATION MARK}No sign of it\N{RIGHT DOUBLE QUOTATION MARK} does not certify "
    "absence: a system that hides its sources well gives no sign either.",
)
_NO_RATE = (
    "How often that is wrong is not known: nobody has said that the calibration documents are "
    "like the audited ones."
)
_SOURCES = {
    "known-out": "documents named by the user as outside the database",
    "auxiliary": "auxiliary documents taken to be outside the database",
    "generated": "the generated corpus that ships with Ragwitness",
}


@dataclass(frozen=True, slots=True)
class Claims:
    """What the verdicts claim and rest on, in words.

    Attributes:
        claimed: One sentence or two per verdict.
        not_claimed: What a reader might wrongly conclude.
        correction: Name of the correction for the number of documents.
        calibration: Source of the calibration documents, with n.
        smallest_p: The least p-value that n calibration documents can give, 1 / (n + 1).
    """

    claimed: tuple[str, ...]
    not_claimed: tuple[str, ...]
    correction: str
    calibration: str
    smallest_p: str


def claims(result: AuditResult) -> Claims:
    """Return what a verdict of this audit claims, what it does not, and what it rests on."""
    calibration = result.calibration
    source = _SOURCES.get(calibration.source, say.visible(calibration.source))
    return Claims(
        claimed=(
            f"In the database: the system answers as if it could read this very document. "
            f"{_error_rate(result) if calibration.exact else _NO_RATE}",
            "No sign of it: were the document inside, answers this weak would be rare, by the "
            "same measure.",
            "Inconclusive: the answers fit both, or the document could not be scored. It is "
            "not a weaker yes and not a no.",
        ),
        not_claimed=_NOT_CLAIMED,
        correction=_correction(result),
        calibration=f"{source} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{say.count(calibration.n)})",
        smallest_p=say.p_text(1 / (max(0, calibration.n) + 1)),
    )


def _correction(result: AuditResult) -> str:
    named = next((v for k, v in result.settings.items() if "correction" in k.lower()), None)
    if named:
        return say.visible(named)
    return "q-values" if any(v.q_value is not None for v in result.verdicts) else "none"


def _error_rate(result: AuditResult) -> str:
    """Say what alpha bounds: false discoveries, any error at all, or each test by itself."""
    level, name = say.percent(result.alpha), _correction(result).lower()
    if any(word in name for word in ("benjamini", "discovery", "fdr")):
        return f"Of the documents called so, at most {level} are expected to be outside."
    if any(word in name for word in ("bonferroni", "holm")):
        return f"The chance that even one document called so is outside is at most {level}."
    return f"A document outside would be called so with probability at most {level}."
