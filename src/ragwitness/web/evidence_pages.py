"""One document: the questions about it, their answers, and the deciding words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import regex as re
from markupsafe import Markup, escape

from ragwitness.core.types import Answer, Decision, Evidence, Query, Verdict
from ragwitness.membership.method_registry import AUDITS, AuditListing
from ragwitness.membership.results.audit import AuditResult, how_often_wrong
from ragwitness.report import formatting as fmt
from ragwitness.runner.response_store import StoredResponse
from ragwitness.text.words import Word, word_spans

_LONGEST = 20_000
"""Characters of a prompt or answer that are shown."""
_RUN = 6  # words in a row that two texts share before they are marked in both


class DecidingWord(NamedTuple):
    """A deciding word, and the numbers of the queries that asked for it."""

    evidence: Evidence
    bars: tuple[float, float, float]
    """Ends of its bars, from 0 to 1: the system's lower and upper one, the baseline's."""
    queries: tuple[int, ...]


class MarkedExchange(NamedTuple):
    """A question with its answer, as HTML in which shared and deciding words are marked."""

    exchange: StoredResponse
    prompt: Markup
    settings: str
    answer: Markup
    outcome: str
    contexts: tuple[Markup, ...]


def deciding_words(verdict: Verdict, exchanges: Sequence[StoredResponse]) -> list[DecidingWord]:
    """Return the words that decided, each with the queries that asked for it."""
    return [
        DecidingWord(
            word,
            (_unit(word.probability.low), _unit(word.probability.high), _unit(word.baseline)),
            _queries_for(word, exchanges),
        )
        for word in verdict.evidence
    ]


def explanation(result: AuditResult, verdict: Verdict) -> str:
    """Say in plain words why a document has its verdict, and how often such a sentence is wrong."""
    scores = [score for score in result.calibration.scores if verdict.score is not None]
    high = fmt.count(sum(score >= (verdict.score or 0.0) for score in scores))
    # Each verdict has its own reason, and its own error.
    if verdict.decision is Decision.IN:
        # A plug-in's audit is not listed here.
        method = AUDITS.get(re.split(r"[ :]", result.method)[0], AuditListing(None))
        return (
            f"It is called in because {method.shows}: {high} of {fmt.documents(len(scores))} known"
            f" to be outside scored as high. {how_often_wrong(result)}"
        )
    if verdict.decision is Decision.OUT:
        return (
            "It shows no sign because documents that are inside this system answer so weakly only"
            f" with probability {fmt.p_text(verdict.p_out)}. It may be inside all the same."
        )
    rank_text = f"{high} of {fmt.documents(len(scores))} known to be outside scored as high."
    return f"Nothing is decided. {rank_text if scores else ''}".strip()


def marked_exchanges(
    exchanges: Sequence[StoredResponse], words: Sequence[Evidence]
) -> list[MarkedExchange]:
    """Return the questions with their answers, shared and deciding words marked in both."""
    # One pattern for all deciding words, so that overlapping ones are marked once.
    named = [word.word for word in words]
    pattern = _pattern([*named, *(["No"] if "Yes" in named else [])])
    marked = []
    for exchange in exchanges:
        prompt, answer = exchange.asked.query.prompt, exchange.answer
        contexts = answer.contexts or ()
        marked.append(
            MarkedExchange(
                exchange,
                _marked(prompt, None, "\n".join((answer.text, *contexts))),
                _settings(exchange.asked.query),
                _marked(answer.text, pattern, prompt),
                _outcome(answer),
                tuple(_marked(context, None, prompt) for context in contexts),
            )
        )
    return marked


def readable(text: str) -> str:
    """Return untrusted text with its line breaks, all else unseen named; not yet escaped."""
    visible_text = "\n".join(fmt.visible(line, _LONGEST) for line in text[:_LONGEST].split("\n"))
    rest = len(text) - _LONGEST
    return f"{visible_text}… ({fmt.count(rest)} more characters)" if rest > 0 else visible_text


def _queries_for(word: Evidence, exchanges: Sequence[StoredResponse]) -> tuple[int, ...]:
    """Return the numbers of the queries that asked for a word, else of answers that hold it."""
    # First by the prompt that stops where the word comes; an audit that asks otherwise is searched
    # by its answers.
    numbered = tuple(enumerate(exchanges, start=1))
    numbers = tuple(n for n, exchange in numbered if _asks_for(word, exchange))
    pattern = _pattern([word.word])
    if numbers or pattern is None:
        return numbers
    return tuple(n for n, exchange in numbered if pattern.search(exchange.answer.text))


def _asks_for(word: Evidence, one: StoredResponse) -> bool:
    """Whether a prompt leaves off where a word comes, or the answer has it where it comes."""
    before = " ".join(word.before.split())
    if before and " ".join(one.asked.query.prompt.split()).endswith(before):
        return True
    return bool(before) and f"{before} {word.word}" in " ".join(one.answer.text.split())


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    """Match any of the words where it stands by itself."""
    # Longest first: a word that begins another would otherwise win.
    named = sorted({word for word in words if word.strip()}, key=len, reverse=True)
    if not named:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, named))})(?!\w)", re.IGNORECASE)


def _marked(text: str, pattern: re.Pattern[str] | None, other: str) -> Markup:
    """Escape a text, and mark in it the words of a pattern and the runs that another text holds."""
    text_shown = readable(text)
    matches = [match.span() for match in pattern.finditer(text_shown)] if pattern else []
    # Cut, escape, join: nothing is marked up before it is escaped.
    pieces, at = [], 0
    for start, end in sorted([*matches, *_shared(text_shown, readable(other))]):
        if end > at:
            pieces += [escape(text_shown[at:start]), _MARK.format(text_shown[max(at, start) : end])]
            at = end
    return Markup("").join([*pieces, escape(text_shown[at:])])


def _shared(text: str, other: str) -> list[tuple[int, int]]:
    """Return the places in a text of runs of words that another text holds too."""
    runs = {key for key, _ in _runs_of(other)}
    spans: list[tuple[int, int]] = []
    for key, words in _runs_of(text):
        if key in runs:
            start, end = words[0].start, words[-1].end
            # Runs that overlap are one.
            if spans and start <= spans[-1][1]:
                start = spans.pop()[0]
            spans.append((start, end))
    return spans


def _runs_of(text: str) -> Iterator[tuple[tuple[str, ...], list[Word]]]:
    """Yield every run of words, without regard to case."""
    words = word_spans(text)
    for at in range(len(words) - _RUN + 1):
        run = words[at : at + _RUN]
        yield tuple(word.text.casefold() for word in run), run


_MARK = Markup("<mark>{}</mark>")


def _settings(query: Query) -> str:
    """Say how a question was to be answered."""
    settings = [
        f"at most {fmt.count(query.max_tokens)} tokens",
        f"temperature {query.temperature:g}",
    ]
    if query.top_logprobs:
        settings.append(f"{query.top_logprobs} alternatives per token")
    if query.seed is not None:
        settings.append(f"seed {query.seed}")
    return ", ".join(settings)


def _outcome(answer: Answer) -> str:
    """Say how an answer ended and what it cost."""
    facts = [f"ended: {fmt.visible(answer.finish_reason, 60)}"] if answer.finish_reason else []
    for number, verb in ((answer.prompt_tokens, "read"), (answer.completion_tokens, "written")):
        if number is not None:
            facts.append(f"{fmt.count(number)} tokens {verb}")
    if answer.tokens is None:
        facts.append("no log-probabilities")
    return ", ".join(facts)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
