"""The one reader of answers: strip what stands around an answer, then say what the answer is.

A chat model thinks, greets, quotes, formats and declines. Every method reads its answers through
:func:`read_answer`, so that known and questioned documents are read by one rule. Where the words
of an answer stand in a document is told by :mod:`ragwitness.membership.reading.continuation`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from ragwitness.membership.reading.continuation import begins_to_echo, echo
from ragwitness.membership.reading.tokens import SPECIAL, answer_tokens, kept
from ragwitness.text.replies import declines, preamble
from ragwitness.text.words import split_words
from ragwitness.types import SILENT, Answer, Query, TokenLogprob

READING = "+reading.3"
"""Version of the rules by which answers are read, as keys of scores hold it: scores of different
rules do not mix."""


class AnswerOutcome(enum.StrEnum):
    """What an answer is."""

    ANSWERED = "answered"
    DECLINED = "declined"
    """The target was asked and says that it lacks the answer: the lowest answer there is."""
    FAILED = "failed"
    """There is no answer: an error, a filter, nothing, a web page, or a thought without an end."""


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """An answer without what stands around it.

    Attributes:
        outcome: What the answer is.
        text: What is left of the answer.
        tokens: The tokens that spell ``text``; empty where the target gave none, or others.
        reason: Why it declined or failed, in words; None where it answered.
        removed: Names of what was stripped, in order, such as ``"thought"``.
    """

    outcome: AnswerOutcome
    text: str
    tokens: tuple[TokenLogprob, ...] = ()
    reason: str | None = None
    removed: tuple[str, ...] = ()


DECLINED = "the target says that it does not know or may not say"
THINKING = "it thought until its tokens were spent"
FILTERED = SILENT["content_filter"]
CUT = "it said the text again until its tokens were spent"
REPEATED = "it only said the question again"
NOTHING = "the target answered with nothing"
UNSPELT = "the log-probabilities do not spell the answer"
NO_LOGPROBS = "the target returned no log-probabilities"


def read_answer(answer: Answer, question: str = "", expected: str = "") -> AnswerReading:
    """Read one answer.

    A filter is a failure and no decline: it also stops answers that quote what was found.

    Args:
        answer: What the target said.
        question: What it was asked; an echo of it at the answer's beginning is no answer.
        expected: How the document goes on where it should go on with it. An answer with its first
            two words is no decline: a document may say "I am unable to sleep".
    """
    if answer.error:
        return AnswerReading(AnswerOutcome.FAILED, "", reason=answer.error.rstrip("."))
    # 1. Thoughts first: many servers hide their tokens.
    text, thought = _after_thought(SPECIAL.sub("", answer.text))
    removed = ("thought",) if thought else ()
    if text is None:
        return AnswerReading(AnswerOutcome.FAILED, "", reason=THINKING, removed=removed)
    # 2. What is left, as its tokens spell it.
    tokens = answer_tokens(text, answer.tokens or ())
    if tokens and (text.strip() or not thought):
        text = "".join(token.token for token in tokens)
    left, named = _stripped(text, "" if _begins_as(text, expected) else question)
    plain = "".join(left.values())
    reading = AnswerReading(
        AnswerOutcome.ANSWERED, plain, tuple(kept(tokens or (), left)), removed=(*removed, *named)
    )
    # 3. What it is.
    declined = declines(plain) and not _begins_as(plain, expected)
    if answer.finish_reason == "content_filter" and not declined:
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=FILTERED)
    if _PAGE.match(text):
        page = "the target answered with a web page"
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=page)
    if not plain.strip():
        silent = SILENT.get(answer.finish_reason, NOTHING)
        reason = REPEATED if "echo" in named else silent
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=reason)
    return (
        replace(reading, outcome=AnswerOutcome.DECLINED, reason=DECLINED) if declined else reading
    )


def _begins_as(text: str, expected: str) -> bool:
    said, wanted = ([word.text.casefold() for word in split_words(t)[:2]] for t in (text, expected))
    return bool(wanted) and said == wanted


def read_continuation(answer: Answer, before: str, expected: str = "") -> AnswerReading:
    """Read an answer that should go on with a text: what it says beyond that text.

    Args:
        answer: What the target said.
        before: The text.
        expected: How it goes on.

    Returns:
        A reading whose text is empty where the answer says the text again and then leaves it. One
        that failed where the answer was cut while it said the text again.
    """
    reading = read_answer(answer, expected=expected)
    words = split_words(reading.text)
    said, left = echo(before, [word.text for word in words])
    if reading.outcome is not AnswerOutcome.ANSWERED or not said:
        return reading
    removed = (*reading.removed, "echo")
    if (
        answer.finish_reason == "length"
        and (left or said == len(words))
        and len(words) - said < _NEAR
    ):
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=CUT, removed=removed)
    start = len(reading.text) if left or said == len(words) else words[said].start
    rest = {place: reading.text[place] for place in range(start, len(reading.text))}
    tokens = tuple(kept(reading.tokens, rest))
    return replace(reading, text=reading.text[start:], tokens=tokens, removed=removed)


def with_room(
    queries: Sequence[Query],
    before: Sequence[str],
    room: Sequence[int],
    read: Callable[[Answer], bool] | None = None,
) -> Generator[list[Query], list[Answer], list[Answer]]:
    """Ask, and ask once more with room for the form that the target uses.

    An answer that was cut while it thought, greeted or said again what it was sent never came to
    its point. Documents in question and known ones are asked again by the same rule.

    Args:
        queries: What is asked.
        before: For each query, the text that its answer may say again.
        room: For each query, the tokens that this takes.
        read: Whether the point can be read from an answer; None where its form alone tells.
    """
    answers = list((yield list(queries)))
    short = [
        n
        for n, answer in enumerate(answers)
        if answer.finish_reason == "length"
        and not answer.error
        and not (read(answer) if read else _reached(answer, before[n]))
    ]
    if short:
        thought = [_after_thought(answers[n].text)[0] for n in short]
        again = yield [
            replace(
                queries[n],
                max_tokens=queries[n].max_tokens + room[n] + (0 if rest else _THOUGHT_ROOM),
            )
            for n, rest in zip(short, thought, strict=True)
        ]
        for n, answer in zip(short, again, strict=True):
            answers[n] = answer
    return answers


def _reached(answer: Answer, before: str) -> bool:
    """Whether an answer that was cut had come to its point."""
    text, _ = _after_thought(answer.text)
    if not text or not text.strip():
        return False
    rest = "".join(_stripped(text, "")[0].values())
    said = [word.text for word in split_words(rest)]
    return preamble(rest, cut=True) < len(rest) and not begins_to_echo(before, said)


# What is stripped: each rule returns the spans that are no part of the answer.

_TAG = r"[<\[\u25c1]\s*(/?)\s*(?:think\w*|thoughts?|reason\w*|reflection|scratchpad)\s*[>\]\u25b7]"
_THOUGHT = re.compile(_TAG, re.IGNORECASE)
_NEAR = 5  # words behind an echo that was cut
_THOUGHT_ROOM = 1024  # tokens
_ROUNDS = 12  # of stripping; more are a model that stammers
_PAGE = re.compile(r"^\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?=[\\`*_{}\[\]()#+\-.!|<>~])")
_BOXED = re.compile(r"\$*\\(?:boxed|text\w*|mathrm|mathbf)\{([^{}]*)\}\$*")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*\n?", re.MULTILINE)
_EMPHASIS = re.compile(
    r"\*\*|~~|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|`+|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"
    r"|^[ \t]*(?:#{1,6}|>+)[ \t]+|</?(?:b|i|em|strong|u|mark|code|span)\b[^<>]*>",
    re.MULTILINE | re.IGNORECASE,
)
_ELEMENT = re.compile(r"\s*<([a-z]+\d?)\b[^<>]*>(.*)</\1>\s*", re.IGNORECASE | re.DOTALL)
_ITEM = re.compile(
    r"^[ \t]*(?:[-\u2022\u2023\u25aa\u2013\u2014*+]|\(?\d{1,2}[.)])[ \t]+(?=\S)", re.M
)
_SIGNS = re.compile(
    r"(?:[^\w\s\"'\u201c\u2018\u00ab(\[{<$\u20ac\u00a3+\-#@&%\\|*`_~.,]|\.{2,})+\s*"
)
_QUOTES = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "'": "'", "\u2018": "\u2019"}
_FIELD = re.compile(r'"([^"\\\d]{1,40})"\s*:\s*("(?:[^"\\]|\\.)*(?:"|$)|true|false|-?\d[\d.]*)')
_ANSWER_FIELD = re.compile(
    r"answers?|response|output|result|text|completion|content|message|reply|paragraph|completed\w*"
    r"|antwort|r\u00e9ponse|respuesta|risposta|resposta",
    re.IGNORECASE,
)

_Spans = list[tuple[int, int]]


def _after_thought(text: str) -> tuple[str | None, bool]:
    """What follows the last thought, None where it has no end; and whether there was one."""
    tags = list(_THOUGHT.finditer(text))
    opens = tags and not text[: tags[0].start()].strip()
    # Templates may open the thought themselves: then the answer holds its end alone.
    closed = [tag for tag in tags if tag[1]]
    if not tags or not (opens or (closed and closed[0] is tags[0])):
        return text, False
    return (text[closed[-1].end() :] if closed else None), True


def _stripped(text: str, question: str) -> tuple[dict[int, str], tuple[str, ...]]:
    """Apply the rules until none finds anything; return what is left by place, and their names."""
    left, named = dict(enumerate(text)), list[str]()
    changed, rounds = True, 0
    while changed and rounds < _ROUNDS:
        changed, rounds = False, rounds + 1
        for name, rule in _RULES.items():
            plain = "".join(left.values())
            spans = [one for one in rule(plain, question) if one[1] > one[0]]
            dropped = {place for start, end in spans for place in range(start, end)}
            rest = [item for place, item in enumerate(left.items()) if place not in dropped]
            # An echo may be all there is; of anything else something stays.
            if spans and (name == "echo" or any(char.isalnum() for _, char in rest)):
                # What is left of a line break in JSON is one again.
                breaks = {place for place, char in rest if name == "json" and char == "\\"}
                left, changed = dict(rest) | dict.fromkeys(breaks, "\n"), True
                named += [] if name in named else [name]
    # Blanks at both ends are no part of it.
    places = [place for place, char in left.items() if not char.isspace()]
    first, last = (places[0], places[-1]) if places else (0, -1)
    return {p: c for p, c in left.items() if first <= p <= last}, tuple(named)


def _markdown(text: str, _question: str) -> _Spans:
    boxed = [
        span
        for found in _BOXED.finditer(text)
        for span in ((found.start(), found.start(1)), (found.end(1), found.end()))
    ]
    element = _ELEMENT.fullmatch(text)
    around = [(0, element.start(2)), (element.end(2), len(text))] if element else []
    return [*boxed, *around, *(m.span() for rx in (_ESCAPE, _EMPHASIS) for m in rx.finditer(text))]


def _fence(text: str, _question: str) -> _Spans:
    return [found.span() for found in _FENCE.finditer(text)]


def _json(text: str, _question: str) -> _Spans:
    """An object of which one field is the answer; masks are fields with numbers."""
    opening = re.match(r"\s*\{", text)
    fields = list(_FIELD.finditer(text)) if opening else []
    named = [one for one in fields if _ANSWER_FIELD.fullmatch(one[1])]
    if len(named or fields) != 1 or re.search(r'"[^"]*\d"\s*:', text):
        return []
    (found,) = named or fields
    start, end = found.span(2)
    quoted = text[start] == '"'
    closed = quoted and text[end - 1] == '"' and end - start > 1
    spans = [(0, start + quoted), (end - closed, len(text))]
    # Of an escaped sign the backslash goes, of a line break its letter.
    for escape in re.finditer(r'\\(["\\/])|\\[nrt]', found[2]):
        first = start + escape.start() + (not escape[1])
        spans.append((first, first + 1))
    return spans


def _quotation(text: str, _question: str) -> _Spans:
    """Quotation marks around the whole answer, or before it where it was cut."""
    bare = text.strip()
    start, closing = text.find(bare), _QUOTES.get(bare[:1], "")
    ends = bare.find(closing, 1) if closing else 0
    # Within the answer it is the answer's own; behind it only a bracket or a full stop may follow.
    if not closing or (ends > 0 and bare[ends + 1 :].strip(" .}])\n")):
        return []
    behind = len(bare[ends:]) - len(bare[ends:].lstrip(closing + "}]) \n"))
    return [(start, start + 1), *([(start + ends, start + ends + behind)] if ends > 0 else [])]


def _item(text: str, _question: str) -> _Spans:
    """A bullet or number before the only item; several are a list."""
    items = list(_ITEM.finditer(text))
    return [items[0].span()] if len(items) == 1 and not text[: items[0].start()].strip() else []


def _signs(text: str, _question: str) -> _Spans:
    blank = len(text) - len(text.lstrip())
    found = _SIGNS.match(text, blank)
    return [(0, found.end())] if found else []


def _preamble(text: str, _question: str) -> _Spans:
    return [(0, preamble(text))]


def _echo(text: str, question: str) -> _Spans:
    words = split_words(text)
    said, _ = echo(question, [word.text for word in words]) if question else (0, 0)
    return [(0, words[said].start if said < len(words) else len(text))] if said else []


_RULES: dict[str, Callable[[str, str], _Spans]] = {
    "fence": _fence,
    "markdown": _markdown,
    "json": _json,
    "item": _item,
    "signs": _signs,
    "quotation": _quotation,
    "preamble": _preamble,
    "echo": _echo,
}
