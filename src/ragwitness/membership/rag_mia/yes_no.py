"""Reading yes or no: from the words of an answer, and from the odds of its first word."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.membership.outcomes import Reply, named_trouble, read_reply
from ragwitness.membership.rag_mia.tokens import answer_tokens
from ragwitness.membership.srag.reading import UNREAD, word_probability
from ragwitness.models import ChatPrompt, LanguageModel
from ragwitness.text.words import core
from ragwitness.types import Answer, Interval, Message, Role

__all__ = ["YesNo", "outcome_name", "proxy_yes", "read_yes_no", "trouble_with"]

_PAGE = re.compile(r"^\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_FLOOR = 1e-8
_ROOM = 16  # tokens a chat template adds around a question

_OUTCOMES = {
    "the target refused to answer": "refused",
    "the target answered with nothing": "empty",
    "the target returned no log-probabilities": "no_logprobs",
    "the target answered with a web page": "unreadable",
}
_REASONS = {
    Reply.UNKNOWN: "the target says that it does not know",
    Reply.UNREADABLE: "neither yes nor no can be read from the answer",
}


@dataclass(frozen=True, slots=True)
class YesNo:
    """What one answer says.

    Attributes:
        outcome: ``"yes"``, ``"no"``, ``"unknown"``, ``"unreadable"``, ``"refused"``,
            ``"empty"``, ``"no_logprobs"`` or ``"error"``.
        text: 1 for yes, 0 for no, else None.
        log_odds: log p(Yes) - log p(No), None where neither is listed.
        yes: Probability of Yes, UNREAD without log-probabilities.
        reason: Why there is no value, for each kind of access.
        published: RAG-MIA's own rule: what is not Yes is 0; None for a request that failed.
    """

    outcome: str
    text: float | None
    log_odds: float | None
    yes: Interval
    reason: str | None
    published: float | None

    def value(self, *, gray: bool) -> float | None:
        """The value for one kind of access."""
        return self.log_odds if gray else self.text


def trouble_with(
    answer: Answer, expected: Sequence[str] = (), *, logprobs: bool = False
) -> str | None:
    """:func:`named_trouble`, and the error pages that gateways put in an answer's place."""
    if not answer.error and _PAGE.match(answer.text):
        return "the target answered with a web page"
    return named_trouble(answer, expected, logprobs=logprobs)


def outcome_name(trouble: str | None) -> str:
    """The key under which an outcome is counted in ``Score.details``."""
    return "answered" if trouble is None else _OUTCOMES.get(trouble, "error")


def read_yes_no(answer: Answer, *, gray: bool) -> YesNo:
    """Read one answer.

    Args:
        answer: What the target said.
        gray: Whether an answer without log-probabilities is useless.
    """
    trouble = trouble_with(answer, logprobs=gray)
    if trouble:
        name = outcome_name(trouble)
        says_yes = name == "no_logprobs" and read_reply(answer.text) is Reply.YES
        published = None if name == "error" else float(says_yes)
        return YesNo(name, None, None, UNREAD, trouble, published)
    reply = read_reply(answer.text)
    text = {Reply.YES: 1.0, Reply.NO: 0.0}.get(reply)
    odds, yes, reason = _odds(answer, reply)
    if not gray:
        reason = _REASONS.get(reply)
    return YesNo(reply.value, text, odds, yes, reason, float(reply is Reply.YES))


def _odds(answer: Answer, reply: Reply) -> tuple[float | None, Interval, str | None]:
    if not answer.tokens:
        return None, UNREAD, None
    tokens = answer_tokens(answer)
    if tokens is None:
        return None, UNREAD, "the log-probabilities do not spell the answer"
    starts = [0]
    if reply in (Reply.YES, Reply.NO):
        starts += [i for i, t in enumerate(tokens) if core(t.token.strip()).lower() == reply.value]
    for start in starts:
        yes, no = (word_probability(tokens[start:], word) for word in ("yes", "no"))
        if yes.low > 0.0 or no.low > 0.0:
            return _log(yes) - _log(no), yes, None
    return None, UNREAD, "neither Yes nor No is among the listed alternatives"


def _log(p: Interval) -> float:
    """A censored word stands at its bound: the list's last entry, or the mass not listed."""
    return math.log(max(p.high, _FLOOR))


def proxy_yes(proxy: LanguageModel, question: str) -> float:
    """Probability of Yes against No by a model that sees no database; .5 where it cannot read.

    Args:
        proxy: The auditor's model.
        question: The whole prompt.
    """
    if proxy.count_tokens(question) + _ROOM > proxy.context_length:
        return 0.5
    asked = ChatPrompt((Message(Role.USER, question),))
    yes, no = (
        float(score.logprobs.sum()) for score in proxy.score(["Yes", "No"], after=[asked, asked])
    )
    return 1.0 / (1.0 + math.exp(min(700.0, no - yes)))
