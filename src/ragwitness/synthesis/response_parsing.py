"""Answers of models in the roles of the synthesis: forms, lists, texts, judgements.

Real models add remarks, fences, bold letters and JSON, put values on the next line and parts in
another order. All of that is read; a missing part is counted, and never assumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import regex as re

from ragwitness.text.replies import declines, preamble
from ragwitness.text.words import plain_tokens

# The protocol words of SAGE, App. A.1.2 (Tables 15 and 16).
SAFE, SUGGEST, BEGIN, END = "THISISSAFE", "SUGGESTIONS:", "[BEG]", "[END]"
PROTOCOL = re.compile(
    r"THIS\W?IS\W?SAFE|SUGGESTIONS:|SAFE\W{0,2}DATA:|\[(?:BEG|END)\]|<<<|>>>", re.IGNORECASE
)

Attribute = tuple[str, str]
"""Part of the record, empty for the whole, and name."""

Pair = tuple[Attribute, str]
"""An attribute with the content of the record."""


class UnreadError(Exception):
    """An answer does not keep to its form; the message names the missing part."""


# Text around an answer.

_FENCE = re.compile(r"\A.*?^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```.*\Z", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"\A\s*(?:<<<|>>>|\"\"\")\s*|\s*(?:<<<|>>>|\"\"\")\s*\Z")
_REMARK = re.compile(
    r"\W*(?:i hope|let me know|please (?:let|note)|feel free|note(?: that)?\b"
    r"|if you (?:need|want|have)|this (?:text|version|rewrit\w+|response|new)"
    r"|the (?:text|above|rewritten|new) (?:text |version )?(?:above |is |was |has |keeps)"
    r"|(?=[^.\n]*\b(?:names?|personal|identif\w+|sensitive|private|details?|information)\b)"
    r"[^.:\n]{0,60}\b(?:were|was|been|have|ve|i|we)"
    r" (?:remov|chang|replac|rewrit|omit|alter|anonymi|generali)\w+)",
    re.IGNORECASE | re.MULTILINE,
)
_LAST = re.compile(
    r"\n\W*(?:note|explanation|remarks?|anonymi[sz]\w+|changes(?: made)?):.*\Z", re.I | re.S
)


def bare(text: str) -> str:
    """Return an answer without what models put around one: fences, announcements, remarks."""
    fenced = _FENCE.match(text)
    text_left = (fenced[1] if fenced else text).strip()
    while (less := _MARKS.sub("", text_left)) != text_left:
        text_left = less.strip()
    text_left = text_left[preamble(text_left) :].strip()
    if text_left[:1] + text_left[-1:] in ('""', "\u201c\u201d") and len(text_left) > 1:
        text_left = text_left[1:-1].strip()
    # A remark at the end is a separate paragraph, or has a label.
    paragraphs = re.split(r"\n\s*\n", _LAST.sub("", text_left))
    while len(paragraphs) > 1 and _REMARK.match(paragraphs[-1]):
        paragraphs.pop()
    return "\n\n".join(paragraphs).strip()


# A form: attributes of a record, each with its content (§3.1; Tables 11 and 12).

_EDGE = " \t\n*_`\"'[](){}|#•-–—>.:;,"  # noqa: RUF001  # as models write them
_BEFORE = r"^(?:[^\w\n]|_|\d{1,2}[.)]|\[x\])*"
_BEHIND = r"(?<=[^\w\s])[ \t]+"  # within a line
_CLOSES = r"[\]\"'*_`|]*[ \t]*"
_SIGN = r"(?::|=>?|\||[–—→]|->?(?=\s))[\]\"'*_`]*"  # noqa: RUF001
_WHOLE = 12  # words of an answer that may say that nothing is said
_FEW = 6  # words that only decline, or of an entry of a list without a bullet

# A sentence that only says that the record is silent has no other words than these: of speech, of
# the record and its people, and of grammar. They are listed by their beginnings.
_SILENT = re.compile(
    r"""(?:mention|specif|stat|given?|gave|giv|provid|describ|discuss|indicat|inform|detail|avail|appl
    |clos|disclos|said|say|told|tell|express|shar|rais|voic|outlin|recommend|suggest|offer|list|ask
    |question|nam|cover|conver|either|mad|mak|brought|left|unstated|exclu|omit|concern|report|record|found|present|known|relevant|address|includ|not[eai]
    |reply|repli|text|messag|document|conversation|patient|doctor|person|writer|speaker|data|sure
    |present|writ|part|specific|steps?)\p{L}*
    |no|not|none|nothing|never|neither|without|any|new|yet|far|so|here|up|out|in|the|it|this|that|is|are|was|were|be|been|has
    |have|had|do|does|did|there|of|by|for|to|from|with|at|all|a|an|their|his|her|its|about|or|and|on
    |isn|aren|doesn|didn|wasn|hasn|haven|don|t|s""",
    re.IGNORECASE | re.VERBOSE,
)
# "How long is not indicated": whatever it is of, nobody said it.
_UNSAID = re.compile(
    r"[^,;]*(?:\bnot|n['’]t|\bnever) (?:clear|(?:mention|specifi|indicat|stat|provid|describ"  # noqa: RUF001
    r"|discuss|report|includ|address|not)\p{L}*)(?: (?:in|from|by) (?:the|this) (?:text|record"
    r"|dialogue|conversation|patient|doctor|message))?\W*",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:no|not|none|nothing|never|neither|without|un\w+|cannot)\b|n[’']t\b", re.I)  # noqa: RUF001
_NONE = re.compile(
    r"\W*(?:none|nothing|n\W?a|nil|unknown|unspecified|no|(?:left )?blank|empty|omitted\b.*|tbd"
    r"|(?:not )?applicable|to be (?:determined|confirmed|added)|(?:see|as) above"
    r"|keine?|ningun[oa]|aucune?)?\W*",
    re.I,
)


def read_form(text: str, attributes: Sequence[Attribute]) -> tuple[Pair, ...]:
    """Return the content of an answer by attribute; a missing line says nothing.

    Args:
        text: The answer.
        attributes: In the order of the form; parts may share a name.

    Raises:
        UnreadError: Half of the lines are missing, or no attribute has content.
    """
    values = _of_json(text, attributes) or _of_lines(text, attributes)
    missing = len(attributes) - len(values)
    if 2 * missing >= len(attributes):
        raise UnreadError(f"{missing} of the {len(attributes)} lines are missing")
    pairs = tuple(
        (attribute, values[attribute])
        for attribute in attributes
        if attribute in values and not says_nothing(attribute[1], values[attribute])
    )
    if not pairs:
        raise UnreadError(f"nothing is said of any of the {len(attributes)} attributes")
    return pairs


def says_nothing(name: str, value: str) -> bool:
    """Whether a value only says that the record is silent: "none", "not given", "No history"."""
    words = plain_tokens(value)
    if (
        _NONE.fullmatch(value)
        or _plain(value) in (_plain(name), "information")
        or (len(words) <= _FEW and declines(value))
    ):
        return True
    # A question is asked of something, whatever it denies.
    if len(words) > _WHOLE or value.rstrip().endswith("?") or not _NOT.search(value):
        return False
    # "No recent events" of recent events says nothing; "no fever" of symptoms says something.
    named = set(map(_singular, plain_tokens(name)))
    silent = all(_singular(word) in named or _SILENT.fullmatch(word) for word in words)
    return silent or _UNSAID.fullmatch(value) is not None


def _singular(word: str) -> str:
    return re.sub("(?:ies|y|e?s)$", "", word)


def _of_json(text: str, attributes: Sequence[Attribute]) -> dict[Attribute, str]:
    """Read an object, nested by part or not; empty where there is none."""
    first, last = text.find("{"), text.rfind("}")
    try:
        data = json.loads(text[first : last + 1])
    except ValueError:
        return {}
    leaves = [(_plain(section), _plain(name), value) for section, name, value in _leaves(data)]
    values: dict[Attribute, str] = {}
    for section, name in attributes:
        rows = [leaf for leaf in leaves if leaf[1] == _plain(name)]
        matching = [leaf for leaf in rows if section and _plain(section) in leaf[0]] or rows
        if matching:
            values[section, name] = matching[0][2]
            leaves.remove(matching[0])
    return values


def _leaves(data: object, path: str = "", name: str = "") -> Iterator[tuple[str, str, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{path} {name}", str(key))
    elif isinstance(data, list) and all(not isinstance(item, dict | list) for item in data):
        yield path, name, "; ".join(map(str, data))
    elif data is None or isinstance(data, str | int | float):
        yield path, name, "" if data is None else str(data)


def _of_lines(text: str, attributes: Sequence[Attribute]) -> dict[Attribute, str]:
    """Read lines, headings, tables and values on the next line, in any order."""
    # A part opens with its name on a line by itself; an attribute with its name and a sign, within
    # a line too.
    sections = {_plain(section): section for section, _ in attributes if section}
    names = {_plain(name): name for _, name in attributes}
    words = "|".join(
        r"[\W_]+".join(attribute.split())
        for attribute in sorted({*sections, *names}, key=len)[::-1]
    )
    opens, within = (
        rf"{_BEFORE}({words}){_CLOSES}(?:{_SIGN}|$)",
        rf"{_BEHIND}({words}){_CLOSES}{_SIGN}",
    )
    label = re.compile(rf"{opens}|{within}", re.MULTILINE | re.IGNORECASE)
    marks = list(label.finditer(text))
    values: dict[Attribute, str] = {}
    section = ""
    for mark, after in zip_longest(marks, marks[1:]):
        key = _plain(mark[1] or mark[2])
        value = text[mark.end() : after.start() if after else len(text)]
        if key in sections and key not in names:
            section = sections[key]
            continue
        # Of several parts with such a name it is the one that is open, else the first without.
        fits = [
            attribute
            for attribute in attributes
            if _plain(attribute[1]) == key and attribute not in values
        ]
        fits = [attribute for attribute in fits if attribute[0] == section] or fits
        if fits:
            values[fits[0]] = _value(value)
    return values


def _value(text: str) -> str:
    """Return the words of a value: up to the next blank line, its items joined."""
    paragraph = re.split(r"\n\s*\n", text.strip("\n"))[0] if text.strip() else ""
    lines = (line.strip(_EDGE) for line in paragraph.splitlines())
    return "; ".join(filter(None, lines))


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", name).split()).casefold()


# A list: attributes of a corpus, subjects of a kind of text.

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*", re.MULTILINE)
_MOST = 80  # characters of an entry


def read_list(text: str) -> list[str]:
    """Return the entries of a list (bullets, lines, commas or JSON), without explanations."""
    content = bare(text)
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if isinstance(data, list):
        entries = [str(entry) for entry in data]
    else:
        lines = [line for line in content.splitlines() if line.strip()]
        entries = [line for line in lines if _BULLET.match(line)]
        # Without bullets a list is short entries alone; anything else is prose, or a refusal.
        plain = lines if len(lines) > 1 else content.split(",")
        if (
            not entries
            and not declines(content)
            and all(len(entry.split()) <= _FEW for entry in plain)
        ):
            entries = plain
    named = (re.split(r":|\s[–—-]\s", _BULLET.sub("", entry), maxsplit=1)[0] for entry in entries)  # noqa: RUF001
    # The form's own word, handed back, names nothing.
    bared = (
        re.sub(r"\[?attribute\]?\s+(?=\S)", "", entry.strip(_EDGE), count=1) for entry in named
    )
    return [entry for entry in dict.fromkeys(bared) if 1 < len(entry) <= _MOST]


# A text of the domain's form.


def read_text(text: str, labels: Sequence[str] = ()) -> str | None:
    """Return a text without its surroundings; None for a refusal or another form.

    Args:
        text: The answer.
        labels: Words that open its parts, once each and in this order, on a line of their own or
            within one.
    """
    content = bare(_turns(text.replace("**", ""), labels))
    if not content or PROTOCOL.search(content) or declines(content):
        return None
    starts = []
    for label in labels:
        matches = list(re.finditer(rf"(?:^\W*|(?<=\s)){re.escape(label)}", content, re.M | re.I))
        if len(matches) != 1:
            return None
        starts.append(matches[0].start())
    return content[starts[0] if starts else 0 :] if starts == sorted(starts) else None


def _turns(text: str, labels: Sequence[str]) -> str:
    """Return the parts of a JSON object as lines, where its fields are the labels."""
    try:
        data = json.loads(bare(text))
    except ValueError:
        return text
    fields = (
        {_plain(str(key)): value for key, value in data.items()} if isinstance(data, dict) else {}
    )
    keys = [_plain(label) for label in labels]
    if (
        not keys
        or {*fields} != {*keys}
        or not all(isinstance(value, str) for value in fields.values())
    ):
        return text
    return "\n".join(f"{label} {fields[key]}" for label, key in zip(labels, keys, strict=True))


# A judgement.

# At the start of a line: within a sentence it may be negated.
_HANDED = re.compile(
    rf"^\W*(?:SAFE.DATA\W*)?{re.escape(BEGIN)}(.*){re.escape(END)}\W*{SAFE}",
    re.DOTALL | re.M | re.I,
)
_BUT = re.compile(r"\bnot\b|n[\u2019']t\b|fail|unsafe|except|\bbut\b|however", re.IGNORECASE)
_WANTED = re.compile(
    r"^\W*suggest(?:ions?|ed changes?)\b\W*|\bsuggestions\s*:\W*", re.IGNORECASE | re.MULTILINE
)


def read_judgement(answer: str, alike: Callable[[str], bool]) -> str | None:
    """Return the changes that a judge wants, empty where the text is safe; None for neither.

    The text between the markers is compared with the judged text and never used itself: its author
    has seen the original.

    Args:
        answer: Of the privacy agent.
        alike: Whether a returned text is the judged one.
    """
    plain = answer.replace("*", "")
    marker = _WANTED.search(plain)
    if marker is not None:
        suggestions = plain[marker.end() :].strip()
        return suggestions if suggestions and BEGIN not in plain else None
    handed = _HANDED.search(plain)
    if handed is None or any(plain.count(mark) != 1 for mark in (SAFE, BEGIN, END)):
        return None
    # Remarks around it may praise the text, and must not object.
    around = plain[: handed.start()] + plain[handed.end() :]
    return "" if alike(handed[1]) and not _BUT.search(around) else None
