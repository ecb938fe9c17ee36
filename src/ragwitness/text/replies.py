"""Replies in several languages: declines, yes and no, and the wrapping around an answer.

The words are in ``replies.toml``, a table with a row for each language; the rules are the same
for all. A reply declines where its first sentence denies that the speaker knows, finds or may say
it, or that the sources hold it. It says yes or no by its first word, by "the answer is …", or by
a statement about the text in question: "It does not appear in the context." is a no, "The patient
has no fever." is neither. Every reader of answers strips by the rules at the end of this file, the
membership audits as well as the attacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Any, Self
from unicodedata import normalize

import regex as re

from ragwitness.text.words import (
    SENTENCE_END,
    STOP_WORDS,
    Pattern,
    all_letters,
    core,
    expression,
    is_unspaced,
    letters_of,
    plain_tokens,
    read_table,
    script_pattern,
    split_words,
    without_points,
)

_ENDS, _PAUSES = rf"{SENTENCE_END}\n", r";:,\uff1b\uff1a\uff0c\u3001\u060c\u061b"
_SENTENCE = script_pattern(rf"[^{_ENDS}]*(?:[.!?](?=\w)[^{_ENDS}]*)*")
_CLAUSE = script_pattern(rf"[{_ENDS}{_PAUSES}]+|\s(?:because|but|therefore)\s")
_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb]*)[\"\u201d\u00bb]")
_HEDGED = re.compile(
    r"\b(?:perhaps|maybe|might|may|could|possibly|vielleicht|möglich\w*|peut-être|quizás?|tal vez"
    r"|forse|talvez|misschien|może|возможно)\b|可能|かもしれ",
    re.IGNORECASE,
)
_SURE = re.compile(r"\b(?:no|without(?: a| any)?|beyond) doubt\b", re.IGNORECASE)
_FOLLOWS = (  # behind a yes or no: nothing, a sign, or the beginning of a sentence
    r"(?=\W*$|\s*[^\w\s]|[ \t]*\n"
    r"|\s+(?:the|there|i|we|as|because|since|in|le|la|il|el|der|die|o|a)\b"
    r"|\s+(?:{pointer}|{source})\b)"
)
_READ = 4_000  # characters of a reply; the rest decides nothing
_LONGEST = 300  # characters of a sentence that is read


@dataclass(frozen=True, slots=True)
class Tongue:
    """The words of one language as expressions.

    Attributes:
        name: The language.
        yes: Words that affirm, as they may be spelt by a target's tokens.
        no: Words that deny.
        opening: A yes (group 1) or no (group 2) at a reply's beginning.
        single: A yes or no anywhere, at the end of a phrase.
        both: A yes and a no beside each other.
        verdict: "The answer is yes", with the groups of ``opening``.
        speaker: The speaker does not know, find or say.
        source: Nouns for the text and its sources.
        subject: These, or a pronoun for them, as a clause begins.
        holds: Verbs of containing and appearing.
        negation: Words that turn a sentence round.
        denied: A verb of containing that is negated, or "no mention".
        bare: Whole replies that decline.
    """

    name: str
    yes: tuple[str, ...]
    no: tuple[str, ...]
    opening: Pattern
    single: Pattern
    both: Pattern
    verdict: Pattern
    speaker: Pattern
    source: Pattern
    subject: Pattern
    holds: Pattern
    negation: Pattern
    denied: Pattern
    bare: Pattern

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Make the expressions of a row of the table."""
        edge, gap = ("", r".{0,8}?") if row.get("unspaced") else (r"\b", r"(?:\W+\w+){0,3}?\W+")
        yes, no, negation = row["yes"], row["no"], row["negation"]
        source, pointer, holds = row["source"], row["pointer"], row["holds"]
        content = f"{holds}|{source}"
        follows = _FOLLOWS.format(pointer=pointer, source=source)

        def words(text: str) -> Pattern:
            return re.compile(rf"{edge}(?:{text}){edge}", re.IGNORECASE)

        def spelled(text: str) -> tuple[str, ...]:
            return tuple(word for word in text.split("|") if all_letters(word) and len(word) > 1)

        return cls(
            name=row["name"],
            yes=spelled(yes),
            no=spelled(no),
            opening=re.compile(
                rf"[\W_]*(?:({yes})|((?:{no})(?!\.?\s?\d)|(?:{yes}) not))(?!-\w){follows}",
                re.IGNORECASE,
            ),
            single=words(rf"(?<!\w-)(?:({yes})|({no}))(?!-\w)(?=\s*(?:[^\w\s]|$))"),
            both=re.compile(
                rf"[\W_]*(?:(?:{yes})\W+(?:\w{{1,3}}\W+)?(?:{no})|(?:{no})\W+(?:\w{{1,3}}\W+)?"
                rf"(?:{yes}))\b(?:(\s*:)|(?=\s*(?:[^\w\s]|$)))",
                re.IGNORECASE,
            ),
            verdict=words(
                r"(?:answer|response|antwort|réponse|respuesta|risposta|resposta|antwoord|odpowiedź"
                rf"|ответ|答案|答え).{{0,12}}?{edge}(?:({yes})|({no}))"
            ),
            speaker=words(row["speaker"].replace("NOT", negation)),
            source=words(source),
            subject=re.compile(rf"\W*(?:\w+\W+){{0,4}}?{edge}(?:{source}|({pointer})){edge}", re.I),
            holds=words(holds),
            negation=words(negation),
            denied=words(
                rf"(?:{negation}){edge}{gap}{edge}(?:{content})|(?:{negation})$"
                + (rf"|(?:{content}){edge}{gap}{edge}(?:{negation})" if row.get("after") else "")
            ),
            bare=re.compile(rf"\W*(?:{row['bare']})\W*", re.IGNORECASE),
        )

    def known(self, clause: str) -> int:
        """Number of its words in a clause."""
        kinds = (self.source, self.holds, self.negation)
        return sum(len(kind.findall(clause)) for kind in kinds)


@cache
def tongues() -> tuple[Tongue, ...]:
    """Return all languages; to add one, add a row to ``replies.toml``."""
    return tuple(Tongue.of(row) for row in read_table("replies.toml")["tongue"])


@dataclass(frozen=True, slots=True)
class YesOrNo:
    """The yes or no of a reply.

    Attributes:
        value: True for yes, False for no, None where it is neither or both.
        start: Place of the deciding word; None where a sentence decides.
        tongue: The language of that word, the first one where there is none.
    """

    value: bool | None
    start: int | None
    tongue: Tongue


_REFERENCES = re.compile(
    r"(?:[\[(\u3010](?:\s*(?:source|sources|doc|document|ref|quelle|fuente|fonte|bron)?\s*#?\d{1,3}"
    r"\s*[,;:\u2013-]?)+[\])\u3011][\s.,;]*)+",
    re.IGNORECASE,
)
"""A reply that only names sources: "[1]", "(Source 2)", "[1, 3]"."""


def yes_or_no(text: str) -> YesOrNo:
    """Read yes or no from a reply.

    Args:
        text: The reply; its quotations are ignored.
    """
    plain = _without_quotes(text)
    # A system that answers by its sources alone affirms with a reference.
    if _REFERENCES.fullmatch(text.strip()):
        return YesOrNo(True, None, tongues()[0])
    # 1. Both words side by side are neither, or the label "Yes/No:" before the answer.
    start = 0
    for tongue in tongues():
        if pair := tongue.both.match(plain):
            if not pair[1]:
                return YesOrNo(None, None, tongue)
            start = pair.end()
    # 2. The first word, else the last "the answer is …": "No, although yes …" is a no.
    for tongue in tongues():
        opening = tongue.opening.match(plain, start)
        for word in [opening] if opening else [*tongue.verdict.finditer(plain, start)][-1:]:
            return YesOrNo(bool(word[1]), word.start(1 if word[1] else 2), tongue)
    # 3. A clause about the text or the context, in the language that has most of its words.
    for clause in _CLAUSE.split(_SURE.sub("", plain[start:])):
        if len(clause) <= _LONGEST:
            tongue = max(tongues(), key=lambda tongue: tongue.known(clause))
            if (value := _stated(tongue, clause.strip())) is not None:
                return YesOrNo(value, None, tongue)
    # 4. The only one of the words that it holds.
    words = set(plain_tokens(plain))
    mixed = any(words & {*tongue.yes} and words & {*tongue.no} for tongue in tongues())
    for tongue in () if mixed or _HEDGED.search(plain) else tongues():
        matches = list(tongue.single.finditer(plain, start))
        if len({bool(match[1]) for match in matches}) == 1:
            value, start = bool(matches[0][1]), matches[0].start(1 if matches[0][1] else 2)
            if value and tongue.negation.search(_CLAUSE.split(plain[:start])[-1]):
                return YesOrNo(False, None, tongue)  # "That is not true."
            return YesOrNo(value, start, tongue)
    return YesOrNo(None, None, tongues()[0])


def _without_quotes(text: str) -> str:
    """The beginning of a text, of the same length, with blanks for quotations of a few words."""
    return _QUOTED.sub(
        lambda quote: " " * len(quote[0]) if len(quote[1].split()) > 2 else quote[0],
        text[:_READ].replace("\u2019", "'"),
    )


def _stated(tongue: Tongue, clause: str) -> bool | None:
    """Whether a clause says that the text is there, or that it is not."""
    subject, verb = tongue.subject.match(clause), tongue.holds.search(clause)
    nouns = len(tongue.source.findall(clause)) + bool(subject and subject[1])
    short = verb and len(clause.split()) < 4
    if not (subject or short) or _HEDGED.search(clause) or not (verb or nouns > 1):
        return None
    if tongue.negation.search(clause):
        return False if tongue.denied.search(clause) else None
    # Without a negation, a long clause quotes the text, and does not say that it is there.
    return True if nouns > 1 or (verb and len(clause[verb.end() :].split()) < 3) else None


def declines(text: str) -> bool:
    """Whether a reply says that its speaker will not or cannot answer, or found nothing.

    It opens as a refusal or an apology, or its first sentence denies knowing or finding.
    """
    plain = _without_quotes(text).strip()
    if _refusal().match(plain):
        return True
    sentence = next((s for s in _SENTENCE.findall(plain) if re.search(r"\w", s)), "").strip()
    if not sentence or len(sentence) > _LONGEST:
        return False
    for tongue in tongues():
        if tongue.bare.fullmatch(sentence) or tongue.speaker.search(sentence):
            return True
        # "The context does not mention it." and "There is no information about it in the text."
        nouns = len(tongue.source.findall(sentence))
        about_text = nouns > 1 or (nouns and tongue.holds.search(sentence))
        if about_text and tongue.denied.search(sentence):
            return True
    return False


@cache
def _refusal() -> Pattern:
    table = read_table("replies.toml")
    return expression(f"(?is){table['refusal']['opens']}", table)


# Announcements before an answer.

_LINE = re.compile(r"\s*([^\n]{1,120}):[ \t]*\n\s*")
_HEAD = re.compile(r"\s*([^\n:.,!?*]{1,120}?)\s*(?:([:.,!?])(?=\s|$)|(?=\n|$))\s*")
_COPULA = re.compile(
    r"\s*([^\n:.,!?]{1,100}?\s(?:is|are|reads|would be|should be|continues|ist|lautet|lauten|est"
    r"|sont|es|son|\u00e8|sono|\u00e9|s\u00e3o|zijn|to|brzmi)"
    r"(?:\s(?:that|as follows|dass|que|che))?)(?:[:,]\s*|\s+)(?=\S)",
    re.IGNORECASE,
)
_MOST = 15  # words before an answer


@cache
def _preambles() -> dict[str, Pattern]:
    row = read_table("replies.toml")["preamble"]
    return {name: re.compile(f"(?:{words})", re.IGNORECASE) for name, words in row.items()}


def preamble(text: str, *, cut: bool = False) -> int:
    """Return how many characters at a reply's beginning only announce its answer.

    All words of an announcement are of certain kinds: "Sure!", "Based on the context, here is the
    completed paragraph:", "The correct answer is". A document has other words.

    Args:
        text: The reply.
        cut: Whether it was cut, so that its end may be within the announcement.
    """
    kinds = _preambles()
    opening = kinds["unspaced"].match(text) or _LINE.match(text)
    # A line that ends in a colon may hold other words, where it opens as announcements do.
    if opening and (opening.re is not _LINE or kinds["opener"].match(opening[1])):
        return opening.end()
    for form in (_COPULA, _HEAD):
        head = form.match(text)
        words = re.findall(r"[^\W\d_]+(?:['\u2019/][^\W\d_]+)?|\d+", head[1]) if head else []
        if not head or not 0 < len(words) <= _MOST:
            continue
        telling = [word for word in words if kinds["words"].fullmatch(word)]
        others = [word for word in set(words) - {*telling} if word.lower() not in STOP_WORDS]
        if not all(map(kinds["filler"].fullmatch, others)):
            continue
        # "Completed paragraph:" announces by its colon, "Sure," by its kind, "The answer is" by
        # its noun.
        if form is _COPULA:
            announces = any(kinds["answer"].fullmatch(word) for word in telling)
        elif head[2]:
            announces = bool(telling and (head[2] == ":" or kinds["opener"].match(head[1])))
        else:
            ends = head.end() == len(text)
            announces = len(telling) > (not cut) and (cut if ends else "\n" in text)
        if announces:
            return head.end()
    return 0


# The wrapping of an answer: thoughts, fences, JSON, markdown, openers, echoes.

SPECIAL = re.compile(
    r"<[|\uff5c][^|\uff5c>]*[|\uff5c]>|</?s>|[<\[](?:eos|bos|pad|unk|cls|sep|end_of_turn"
    r"|start_of_turn|end_of_text|endoftext)[>\]]",
    re.IGNORECASE,
)
"""A special token such as <|im_start|>, </s> or [BOS]: listed by servers, seldom shown."""

# Tags of thoughts, with a group where they close: <think>, [THINK], <seed:think>, <|END_THINKING|>,
# channels of gpt-oss (or the rest of them without special tokens), and MedGemma's.
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
    r"\s*(?:[^\w\s\"'\u201c\u2018\u00ab(\[{<$\u20ac\u00a3+\-#@&%\\|*`_~.,]|\.{2,})+\s*"
)
_QUOTES = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "'": "'", "\u2018": "\u2019"}
_FIELD = re.compile(r'"([^"\\\d]{1,40})"\s*:\s*("(?:[^"\\]|\\.)*(?:"|$)|true|false|-?\d[\d.]*)')
_ANSWER_FIELD = re.compile(
    r"answers?|response|output|result|text|completion|content|message|reply|paragraph|completed\w*"
    r"|antwort|r\u00e9ponse|respuesta|risposta|resposta",
    re.IGNORECASE,
)
_ECHO = 4  # words in a row that repeat the question
_GAP = 4  # words altered in an echo

_Spans = list[tuple[int, int]]


def after_thought(text: str) -> tuple[str | None, bool]:
    """Return the text behind the last thought, None if it has no end; and whether there was one."""
    tags = list(_THOUGHT.finditer(text))
    # Templates may open the thought themselves: then the answer holds its end alone.
    closed = [tag for tag in tags if any(tag.groups())]
    before = "" if tags[:1] == closed[:1] else SPECIAL.sub("", text[: tags[0].start()]).strip()
    if not tags or (before and not closed):
        return text, False
    rest = text[closed[-1].end() :] if closed else None
    # An answer may precede its thought.
    return (rest if not before or (rest and rest.strip()) else before), True


def stripped(text: str, question: str) -> tuple[dict[int, str], tuple[str, ...]]:
    """Apply the rules until none matches; return the remaining characters and the rules' names."""
    characters, names = dict(enumerate(text)), list[str]()
    for _ in range(_ROUNDS):
        size = len(characters)
        for name, rule in _RULES.items():
            spans = rule("".join(characters.values()), question)
            dropped = {n for span in spans for n in range(*span)}
            rest = [item for n, item in enumerate(characters.items()) if n not in dropped]
            # An echo may be all there is; of anything else something stays.
            if dropped and (name == "echo" or any(letters_of(char) for _, char in rest)):
                # The backslash of a line break in JSON becomes the line break.
                breaks = {n for n, char in rest if name == "json" and char == "\\"}
                characters = dict(rest) | dict.fromkeys(breaks, "\n")
                names += [] if name in names else [name]
        if len(characters) == size:
            break
    # Blanks at both ends are no part of it.
    inside = [n for n, char in characters.items() if not char.isspace()]
    first, last = (inside[0], inside[-1]) if inside else (0, -1)
    return {n: char for n, char in characters.items() if first <= n <= last}, tuple(names)


def _markdown(text: str, _question: str) -> _Spans:
    boxed = [
        span
        for box in _BOXED.finditer(text)
        for span in ((box.start(), box.start(1)), (box.end(1), box.end()))
    ]
    element = _ELEMENT.fullmatch(text)
    around = [(0, element.start(2)), (element.end(2), len(text))] if element else []
    return [*boxed, *around, *(m.span() for rx in (_ESCAPE, _EMPHASIS) for m in rx.finditer(text))]


def _json(text: str, _question: str) -> _Spans:
    """An object of which one field is the answer; masks are fields with numbers."""
    opening = re.match(r"\s*\{", text)
    fields = list(_FIELD.finditer(text)) if opening else []
    fields = [field for field in fields if _ANSWER_FIELD.fullmatch(field[1])] or fields
    if len(fields) != 1 or re.search(r'"[^"]*\d"\s*:', text):
        return []
    start, end = fields[0].span(2)
    quoted = text[start] == '"'
    closed = quoted and text[end - 1] == '"' and end - start > 1
    spans = [(0, start + quoted), (end - closed, len(text))]
    # Of an escaped sign the backslash goes, of a line break its letter.
    for escape in re.finditer(r'\\(["\\/])|\\[nrt]', fields[0][2]):
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


def _echo(text: str, question: str) -> _Spans:
    words = split_words(text)
    count, _ = echo(question, [word.text for word in words])
    return [(0, words[count].start if count < len(words) else len(text))] if count else []


_RULES: dict[str, Callable[[str, str], _Spans]] = {
    "fence": lambda text, _: [fence.span() for fence in _FENCE.finditer(text)],
    "markdown": _markdown,
    "json": _json,
    "item": _item,
    "signs": lambda text, _: [signs.span() for signs in (_SIGNS.match(text),) if signs],
    "quotation": _quotation,
    "preamble": lambda text, _: [(0, preamble(text))],
    "echo": _echo,
}


def echo(before: str, reply: Sequence[str]) -> tuple[int, int]:
    """Return how many words at an answer's beginning repeat the question.

    An echo may begin anywhere in the question, may alter a few words, and ends where the answer
    leaves it.

    Args:
        before: The question, or the part of it that an answer should continue.
        reply: The words of the answer.

    Returns:
        Words of the answer that are the echo, and words of ``before`` behind the last of them: 0
        where the answer continues from there.
    """
    sent, words = plain_words(before), [plain_word(word) for word in reply]
    # 1. The very last words of the question, however few.
    for size in range(min(len(sent), len(words)), 0, -1):
        # One word alone is an echo only where it is no function word, and more follows.
        if words[:size] == sent[-size:] and (
            size > 1 or (words[1:] and words[0] not in STOP_WORDS)
        ):
            return size, 0
    # 2. A few words in a row, then words a little further on in both.
    end = sent_end = 0
    for block in SequenceMatcher(None, sent, words, autojunk=False).get_matching_blocks()[:-1]:
        begins = block.b == 0 and block.size >= _ECHO
        near = end and block.b - end <= _GAP and block.a - sent_end <= 2 * _GAP
        if not (begins or near):
            break
        end, sent_end = block.b + block.size, block.a + block.size
    return end, len(sent) - sent_end if end else 0


def same_word(first: str, second: str) -> bool:
    """Whether two words are the same but for case and punctuation around them."""
    return plain_word(first) == plain_word(second)


@lru_cache(64)  # a question's words are looked for in each of its answers
def plain_words(text: str) -> list[str]:
    """Return the plain words of a text. The list is shared: it must not be changed."""
    return [plain_word(word.text) for word in split_words(text)]


@lru_cache(1 << 13)
def plain_word(word: str) -> str:
    """Return a word without case, punctuation around it, and the kind of its letters' codes."""
    plain = without_points(normalize("NFKC", word))
    return (core(plain) or plain).casefold().replace("\u2019", "'")


def shape_of(stem: str) -> tuple[bool, int | str] | None:
    """Return the form that a word shares with its replacements; None where it has none."""
    if stem.isdigit():
        return False, len(stem)
    if not all_letters(stem) or plain_word(stem) in STOP_WORDS:
        return None
    # A unit of an unspaced script has no ending; short words are grammar.
    if is_unspaced(stem) or (len(stem) == 1 and not stem.isascii()):
        return (False, "")
    return (stem[0].isupper(), stem[-2:].lower()) if len(stem) > 3 else None
