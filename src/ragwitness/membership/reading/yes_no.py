"""Reading yes or no: from the words of an answer, and from the odds of its first word."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ragwitness.membership.reading.outcomes import Reply, outcome_name, read_reply, trouble_with
from ragwitness.membership.reading.probabilities import UNREAD, word_probability
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.words import core
from ragwitness.types import Answer, Interval, Message, Role, TokenLogprob

# The tokens that spell an answer.

_SPECIAL = re.compile(r"<\|[^|>]*\|>|</?s>|<(eos|bos|pad|end_of_turn)>")
_OTHER = re.compile(r"[^0-9a-z]")


def answer_tokens(answer: Answer) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens of an answer's text, or None where the tokens spell something else.

    Servers trim white space, hide what a model thinks before it answers, or list its special
    tokens; so the text may begin later, or end earlier, than the tokens do. Only Latin letters
    and digits are compared: other characters can be split between tokens.
    """
    tokens = tuple(t for t in answer.tokens or () if not _SPECIAL.fullmatch(t.token.strip()))
    letters = [_letters(token.token) for token in tokens]
    text, joined = _letters(answer.text), "".join(letters)
    if not text or text == joined:
        return tokens
    if joined.endswith(text):
        skip, place = len(joined) - len(text), 0
        while skip > 0:
            skip -= len(letters[place])
            place += 1
        return tokens[place:] if skip == 0 else None
    if joined.startswith(text):
        end, left = 0, len(text)
        while left > 0:
            left -= len(letters[end])
            end += 1
        return tokens[:end] if left == 0 else None
    return None


def _letters(text: str) -> str:
    return _OTHER.sub("", text.lower())


_FLOOR = 1e-8
_ROOM = 16  # tokens a chat template adds around a question

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
        # Either word may be censored; one of them must be listed.
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
