"""What stands around an answer, stripped: thoughts, fences, JSON, markdown, openers, echoes.

Every reader of answers strips by these rules, the membership audits as well as the attacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from unicodedata import normalize

from ragwitness.text.replies import preamble
from ragwitness.text.words import STOP_WORDS, core, split_words

SPECIAL = re.compile(
    r"<[|\uff5c][^|\uff5c>]*[|\uff5c]>|</?s>|[<\[](?:eos|bos|pad|unk|cls|sep|end_of_turn"
    r"|start_of_turn|end_of_text|endoftext)[>\]]",
    re.IGNORECASE,
)
"""A special token such as <|im_start|>, </s> or [BOS]: listed by servers, seldom shown."""

# Tags of thoughts, with a group where they close: <think>, [THINK], <seed:think>, <|END_THINKING|>,
# channels of gpt-oss (or what is left of them without special tokens), and MedGemma's.
_THOUGHT = re.compile(
    r"(?:<|\[|\u25c1|&lt;)\|?\s*(?:(/|end_(?:of_)?)|begin_of_|start_(?:of_)?)?\s*(?:\w+:)?"
    r"(?:(?:ant)?think\w*|thoughts?|reason\w*|reflection|scratch_?pad)\s*\|?(?:>|\]|\u25b7|&gt;)"
    r"|(?:<\|start\|>)?(?:assistant)?<\|channel\|>(?:analysis|commentary|(final))\b[^<]*<\|message\|>"
    r"|\Aanalysis(?=(?-i:[A-Z]))|assistant(final)|<unused9(?:4|(5))>",
    re.IGNORECASE,
)
_ROUNDS = 12  # of stripping; more are a model that stammers
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
_ECHO = 4  # words in a row that say again what was sent
_GAP = 4  # words altered in an echo

_Spans = list[tuple[int, int]]


def after_thought(text: str) -> tuple[str | None, bool]:
    """What follows the last thought, None where it has no end; and whether there was one."""
    tags = list(_THOUGHT.finditer(text))
    # Templates may open the thought themselves: then the answer holds its end alone.
    closed = [tag for tag in tags if any(tag.groups())]
    before = "" if tags[:1] == closed[:1] else SPECIAL.sub("", text[: tags[0].start()]).strip()
    if not tags or (before and not closed):
        return text, False
    rest = text[closed[-1].end() :] if closed else None
    # An answer may stand before its thought.
    return (rest if not before or (rest and rest.strip()) else before), True


def stripped(text: str, question: str) -> tuple[dict[int, str], tuple[str, ...]]:
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
    """A bullet or number before the only item; several are a list, on lines or in one."""
    items = list(_ITEM.finditer(text))
    only = len(items) == 1 and not text[: items[0].start()].strip()
    return [items[0].span()] if only and not re.search(r"\s\(?2[.)]\s", text) else []


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


def echo(before: str, said: Sequence[str]) -> tuple[int, int]:
    """Return how many words at an answer's beginning say again what was sent.

    An echo may begin anywhere in what was sent, may alter a few words, and ends where the answer
    leaves it.

    Args:
        before: What was sent, or the part of it that an answer should go on with.
        said: The words of the answer.

    Returns:
        Words of the answer that are the echo, and words of ``before`` behind the last of them: 0
        where the answer goes on from there.
    """
    sent = [plain_word(word.text) for word in split_words(before)]
    words = [plain_word(word) for word in said]
    # 1. The very last words that were sent, however few.
    for size in range(min(len(sent), len(words)), 0, -1):
        # One word alone is said again only where it is no function word, and more follows.
        if words[:size] == sent[-size:] and (
            size > 1 or (words[1:] and words[0] not in STOP_WORDS)
        ):
            return size, 0
    # 2. A few words in a row, then words a little further on in both.
    end = place = 0
    for block in SequenceMatcher(None, sent, words, autojunk=False).get_matching_blocks()[:-1]:
        begins = block.b == 0 and block.size >= _ECHO
        if not (begins or (end and block.b - end <= _GAP and block.a - place <= 2 * _GAP)):
            break
        end, place = block.b + block.size, block.a + block.size
    return end, len(sent) - place if end else 0


def same_word(one: str, other: str) -> bool:
    """Whether two words are the same but for case and punctuation around them."""
    return plain_word(one) == plain_word(other)


def plain_word(word: str) -> str:
    """Return a word without case, punctuation around it, and the kind of its letters' codes."""
    plain = normalize("NFKC", word).replace("\u00ad", "")
    return (core(plain) or plain).casefold().replace("\u2019", "'")
