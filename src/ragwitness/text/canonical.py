"""The canonical form of a text: what measures, guard and secrets compare in place of the text.

Two texts that a reader takes for the same have one canonical form: no accents, no letters of
another alphabet that look like Latin ones, nothing invisible, no markup, and base64 and hexadecimal
in plain. Every rule is a row of :data:`RULES` with an example, and the examples are tests. What
this form leaves apart (ciphers, typing errors, other languages) stands in
``docs/design/threat-model.md``.
"""

from __future__ import annotations

import html
import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

Span = tuple[int, int]
"""Where a stretch of text begins and ends."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which a text is written otherwise than it reads.

    Attributes:
        name: A name for it, also of its group in the expression of its pass.
        pattern: A regular expression of what it changes.
        plain: What such a stretch reads as.
        example: A text that it changes.
        reads: The canonical form of the example.
    """

    name: str
    pattern: str
    plain: Callable[[str], str]
    example: str
    reads: str


# Letters.

# "LATIN SMALL LETTER O WITH STROKE", "LATIN LETTER SMALL CAPITAL A": the letter is in the name.
_LATIN = re.compile(r"LATIN .*?\b([A-Z])(?: WITH .*)?")
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")  # whose letters pass for others
_UNIT = "\u03bc"  # "\u03bcg" is not "mg"
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_TAGS = 0xE0000  # where ASCII stands a second time, unseen


def unseen(char: str) -> bool:
    """Say whether a character is shown as nothing: controls, joiners, fillers, selectors."""
    if char.isspace():
        return False
    return (
        unicodedata.category(char)[0] == "C"
        or char in _BLANK
        or unicodedata.name(char, "").startswith("VARIATION SELECTOR")
    )


@cache
def _letter(char: str) -> str:
    """One character as the plain letter, digit or space that it reads as; "" where unseen."""
    if char.isspace():
        return " "
    if 0x20 <= ord(char) - _TAGS < 0x7F:
        return chr(ord(char) - _TAGS)
    apart = unicodedata.normalize("NFKD", char)
    seen = (c for c in apart if not unicodedata.combining(c) and not unseen(c))
    return unicodedata.normalize("NFC", "".join(map(_like, seen)))


def _like(char: str) -> str:
    """A digit of any script as ASCII, and a letter as the Latin one that it looks like."""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if len(folded := char.casefold()) > 1:  # sharp s
        return folded
    name = unicodedata.name(char, "")
    if name.split(" ", 1)[0] not in _ALPHABETS or char.lower() == _UNIT:
        return char
    # Letters that look alike in one case are one in both.
    found = _LATIN.fullmatch(name)
    plain = found[1] if found else _latin_like(char.casefold()) or _latin_like(char.upper())
    return (plain.upper() if char.isupper() else plain.lower()) or char


def _latin_like(char: str) -> str:
    from confusable_homoglyphs.confusables import confusables_data

    alike = (one["c"] for one in confusables_data.get(char, ()))
    return next((one for one in alike if one.isascii() and one.isalpha()), "")


def _entity(said: str) -> str:
    while (plain := html.unescape(said)) != said:
        said = plain
    return "".join(map(_letter, plain)) if not plain.isascii() else plain


def _escape(said: str) -> str:
    plain = re.sub(r"\\+", r"\\", said).encode().decode("unicode_escape")
    # Characters beyond the first plane are escaped in two halves.
    plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return "".join(map(_letter, plain))


def _percent(said: str) -> str:
    return "".join(map(_letter, unquote(said)))


# Codes.

_FEWEST_LETTERS = 0.8  # of what a code says, spaces among them: else it says nothing


def _code(said: str) -> str:
    """What base64 or hexadecimal says in words; the same where it says none."""
    bare = "".join(said.split()).rstrip("=")
    if bare[1:] in (bare[1:].lower(), bare[1:].upper()) and bare.isalpha():
        return said  # a word
    for decode in (_from_hexadecimal, _from_base64):
        with suppress(ValueError):
            plain = decode(bare).decode()
            words = sum(c.isalpha() or c.isspace() for c in plain)
            if plain and words >= _FEWEST_LETTERS * len(plain):
                return canonical_text(plain)
    return said


def _from_hexadecimal(code: str) -> bytes:
    return b"" if code.isdigit() else bytes.fromhex(code.removeprefix("0x"))


def _from_base64(code: str) -> bytes:
    return b64decode(code + "=" * (-len(code) % 4), "-_" if {*"-_"} & {*code} else None)


_BASE64 = "[A-Za-z0-9+/_-]"
_ATTRIBUTES = r"(?:\s+[\w-]+=[^<>]{0,60})?\s*/?>"  # longer ones hold text
_PASSES = (
    # 1. Characters, one by one.
    (
        Rule("entity", r"&(?:amp;)*(?:#\w{1,8}|[A-Za-z]\w{1,30});", _entity,
             "caf&eacute; &amp;#38; t&#101;a", "cafe & tea"),
        Rule("escape", r"(?:\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt]))+", _escape,
             r"caf\u00e9\nT\x65a", "cafe Tea"),
        Rule("percent", "(?:%[0-9A-Fa-f]{2})+", _percent, "caf%C3%A9%20tea", "cafe tea"),
        Rule("jamo", "[\u1100-\u11ff]+", lambda said: unicodedata.normalize("NFC", said),
             "\u1112\u1161\u11ab", "\ud55c"),
        Rule("letter", "[^\\t\\n\\r -~]", _letter,
             "Zo\u00eb \u0141uk S\u00f8r\u200ben \uff21\U0001d41b p\u0430\u03bfr Gro\u00df \u0663",
             "Zoe Luk Soren Ab paor Gross 3"),
    ),
    # 2. Whole codes.
    (
        Rule("code", rf"(?<![\w+/=-])(?:(?:{_BASE64}{{64}}\r?\n|{_BASE64}{{76}}\r?\n)+{_BASE64}+"
             rf"|{_BASE64}{{12,}})={{0,2}}(?![\w+/=-])", _code,
             "see VG9tIEJha2Vy, 546f6d2042616b6572", "see Tom Baker, Tom Baker"),
    ),
    # 3. Markup: emphasis parts no word, all else does.
    (
        Rule("emphasis", r"(?i:</?(?:[abisuq]|em|strong|span|font|mark|small|big|su[bp]|code|tt|wbr"
             rf"|del|ins|abbr){_ATTRIBUTES})|[*`]+|~~+", lambda _: "",
             "<b>Z</b>oe **T**om `x` ~~no~~", "Zoe Tom x no"),
        Rule("tag", rf"</?[A-Za-z][\w:.-]{{0,30}}{_ATTRIBUTES}", lambda _: " ",
             "<td>a</td><td class=x>b</td>", " a  b "),
        Rule("sign", "[~#|_]+", lambda _: " ", "# a_b|c", "  a b c"),
    ),
)  # fmt: skip
RULES = tuple(rule for rules in _PASSES for rule in rules)
"""Every rule, in the order in which they are applied."""

_PLAIN = {rule.name: rule.plain for rule in RULES}
_EXPRESSIONS = tuple(
    re.compile("|".join(f"(?P<{rule.name}>{rule.pattern})" for rule in rules)) for rules in _PASSES
)
_MARKED = re.compile(r"[^\t\n\r -~]|[&<*`~#|_\\%]|[A-Za-z0-9+/-]{12}")


def canonical_text(text: str) -> str:
    """Return the canonical form of a text; its case is kept, since some measures count it."""
    if _MARKED.search(text):
        for expression in _EXPRESSIONS:
            text = expression.sub(lambda found: _PLAIN[found.lastgroup or ""](found[0]), text)
    return text


def canonical_places(text: str) -> tuple[str, list[Span] | None]:
    """Return the canonical form of a text and where each of its characters comes from.

    Returns:
        The form, and a range of the text for each character; None where they are the same.
    """
    if not _MARKED.search(text):
        return text, None
    places = [(at, at + 1) for at in range(len(text))]
    for expression in _EXPRESSIONS:
        parts, kept, done = list[str](), list[Span](), 0
        for found in expression.finditer(text):
            start, end = found.span()
            plain = _PLAIN[found.lastgroup or ""](found[0])
            parts += [text[done:start], plain]
            kept += places[done:start]
            # What is as it was keeps its places; else all of it comes from the whole stretch.
            whole = [(places[start][0], places[end - 1][1])] * len(plain)
            kept += places[start:end] if plain == found[0] else whole
            done = end
        text, places = "".join((*parts, text[done:])), kept + places[done:]
    return text, places
