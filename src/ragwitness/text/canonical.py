"""The canonical form of a text: what measures, guard and secrets compare in place of the text.

Two texts that a reader takes for the same have one canonical form: no accents, no letters of
another alphabet that look like Latin ones, nothing invisible, no markup, and base64 and hexadecimal
in plain. The rules are rows of ``canonical.toml``, each with an example that is a test. What this
form leaves apart (ciphers, typing errors, other languages) stands in
``docs/design/threat-model.md``.
"""

from __future__ import annotations

import html
import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from urllib.parse import unquote

from ragwitness.core.quotes import shown
from ragwitness.text.rules import expression, read_table

Span = tuple[int, int]
"""Where a stretch of text begins and ends."""


TABLE = read_table("canonical.toml")
"""The rules, as the file has them."""

# 1. Letters: what one character reads as.

# "LATIN SMALL LETTER O WITH STROKE", "LATIN LETTER SMALL CAPITAL A": the letter is in the name.
_LATIN = re.compile(r"LATIN .*?\b([A-Z])(?: WITH .*)?")
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")  # whose letters pass for others
_UNIT = "\u03bc"  # "\u03bcg" is not "mg"
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_TAGS = 0xE0000  # where ASCII stands a second time, unseen


def unseen(char: str) -> bool:
    """Say whether a character is shown as nothing: controls, joiners, fillers, selectors."""
    return not char.isspace() and (
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
    latin = _LATIN.fullmatch(name)
    plain = latin[1] if latin else _latin_like(char.casefold()) or _latin_like(char.upper())
    return (plain.upper() if char.isupper() else plain.lower()) or char


def _latin_like(char: str) -> str:
    from confusable_homoglyphs.confusables import confusables_data

    alike = (entry["c"] for entry in confusables_data.get(char, ()))
    return next((like for like in alike if like.isascii() and like.isalpha()), "")


def _settled(read: Callable[[str], str], written: str) -> str:
    """What is written, and what that is a code of, until it says no more."""
    while (plain := read(written)) != written:
        written = plain
    return written


def _escape(written: str) -> str:
    plain = re.sub(r"\\+", r"\\", written).encode().decode("unicode_escape")
    # Characters beyond the first plane are escaped in two halves.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# 2. Codes: what a word of base64 or hexadecimal says.

_FEWEST_LETTERS = 0.8  # of what a code says, spaces among them: else it says nothing


def _code(written: str) -> str:
    """What base64 or hexadecimal says in words; the same where it says none."""
    bare = "".join(written.split()).rstrip("=").removeprefix("0x")
    if bare.isdigit() or (bare.isalpha() and bare[1:] in (bare[1:].lower(), bare[1:].upper())):
        return written  # a number or a word
    for decode in (bytes.fromhex, _from_base64):
        with suppress(ValueError):
            plain = decode(bare).decode()
            words = sum(c.isalpha() or c.isspace() for c in plain)
            if plain and words >= _FEWEST_LETTERS * len(plain):
                return canonical_text(plain)
    return written


def _from_base64(code: str) -> bytes:
    return b64decode(code + "=" * (-len(code) % 4), "-_" if {*"-_"} & {*code} else None)


# 3. The rules, pass by pass.

_READ: dict[str, Callable[[str], str]] = {
    "entity": partial(_settled, html.unescape),
    "escape": _escape,
    "percent": partial(_settled, unquote),
    "jamo": lambda written: unicodedata.normalize("NFC", written),
    "letter": _letter,
    "code": _code,
}
_PLAIN: dict[str, str] = {rule["name"]: rule.get("plain", "") for rule in TABLE["rule"]}
_PASSES = tuple(
    expression(
        "|".join(
            f"(?P<{rule['name']}>{rule['pattern']})"
            for rule in TABLE["rule"]
            if rule["pass"] == name
        ),
        TABLE,
    )
    for name in dict.fromkeys(rule["pass"] for rule in TABLE["rule"])
)
_MARKED = re.compile(r"[^\t\n\r -~]|[&<*`~#|_\\%]|[A-Za-z0-9+/-]{12}")


def _plain(match: re.Match[str]) -> str:
    name = match.lastgroup or ""
    return _READ[name](match[0]) if name in _READ else _PLAIN[name]


def canonical_text(text: str) -> str:
    """Return the canonical form of a text; its case is kept, since some measures count it."""
    if _MARKED.search(text):
        for rules in _PASSES:
            text = rules.sub(_plain, text)
    return text


def canonical_places(text: str) -> tuple[str, list[Span] | None]:
    """Return the canonical form of a text and where each of its characters comes from.

    Returns:
        The form, and a range of the text for each character; None where they are the same.
    """
    if not _MARKED.search(text):
        return text, None
    places = [(at, at + 1) for at in range(len(text))]
    for rules in _PASSES:
        parts, kept, done = list[str](), list[Span](), 0
        for match in rules.finditer(text):
            start, end = match.span()
            parts += [text[done:start], plain := _plain(match)]
            kept += places[done:start]
            # What is as it was keeps its places; else all of it comes from the whole stretch.
            whole = [(places[start][0], places[end - 1][1])] * len(plain)
            kept += places[start:end] if plain == match[0] else whole
            done = end
        text, places = "".join((*parts, text[done:])), kept + places[done:]
    return text, places


# 4. What is used of it for errors.

_WORD = re.compile(r"[^\W_]+")


def unquoted(message: str, sent: str) -> str:
    """Return what a server written, cut where it begins to repeat what it was sent.

    Args:
        message: The text of an error.
        sent: A prompt that may hold a private record.
    """
    begun = _WORD.findall(canonical_text(sent).casefold())
    known = set(zip(begun, begun[1:], begun[2:], strict=False))
    words = list(_WORD.finditer(plain := shown(canonical_text(message))))
    for run in zip(words, words[1:], words[2:], strict=False):
        if tuple(word[0].casefold() for word in run) in known:
            return f"{plain[: run[0].start()].rstrip()} [what was sent]"
    return message
