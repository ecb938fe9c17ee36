"""The tokens that spell an answer, whatever their tokenizer calls a blank or a byte."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from ragwitness.core.types import TokenLogprob
from ragwitness.text.reply_cleanup import SPECIAL

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")
_BLANK = "\u2581"  # SentencePiece
_SPACE, _LINE = "\u0120", "\u010a"  # GPT-2: a space and a line break, as printable letters
_OTHER = re.compile(r"[^0-9a-z]")

# GPT-2 writes each byte as a printable character: printable ones as themselves, the others in order
# from U+0100 on.
_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
_BYTES = {chr(byte): byte for byte in _SHOWN}
_BYTES |= {chr(256 + number): byte for number, byte in enumerate(_HIDDEN)}


def spelt(tokens: Sequence[TokenLogprob]) -> tuple[TokenLogprob, ...]:
    """Return tokens as they spell text: without special ones, marks as blanks, bytes as characters.

    A character that several tokens spell belongs to the last of them; the others are empty.
    """
    own = [token for token in tokens if not SPECIAL.fullmatch(token.token.strip())]
    names = [token.token for token in own]
    coded = any(_SPACE in name or _LINE in name for name in names) and not any(
        " " in name or "\n" in name for name in names
    )
    if not coded and not any(
        _BLANK in name or name.startswith("bytes:") or _BYTE.fullmatch(name)
        for token in own
        for name in (token.token, *(text for text, _ in token.top))
    ):
        return tuple(own)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return tuple(
        replace(
            token,
            token=decoder.decode(_bytes(token.token, coded)),
            top=tuple((_bytes(text, coded).decode(errors="ignore"), p) for text, p in token.top),
        )
        for token in own
    )


def _bytes(name: str, coded: bool) -> bytes:
    """The bytes that a token's name stands for."""
    if found := _BYTE.fullmatch(name):
        return bytes.fromhex(found[1])
    if name.startswith("bytes:"):
        plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name.removeprefix("bytes:"))
        return plain.encode("latin-1", errors="ignore")
    if coded and all(char in _BYTES for char in name):
        return bytes(_BYTES[char] for char in name)
    return name.replace(_BLANK, " ").encode()


def answer_tokens(text: str, tokens: Sequence[TokenLogprob]) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens of a text, or None where the tokens spell something else.

    Servers trim white space, hide what a model thinks before it answers, or list its special
    tokens; so the text may begin later, or end earlier, than the tokens do. Only Latin letters
    and digits are compared: other characters can be split between tokens.
    """
    own = spelt(tokens)
    letters = [_letters(token.token) for token in own]
    wanted, joined = _letters(text), "".join(letters)
    if not wanted or wanted == joined:
        return own
    at = len(joined) - len(wanted) if joined.endswith(wanted) else 0
    if not joined.startswith(wanted, at):
        return None
    # Both ends must lie between two tokens.
    ends = list(accumulate((len(part) for part in letters), initial=0))
    if at not in ends or at + len(wanted) not in ends:
        return None
    first = len(ends) - 1 - ends[::-1].index(at) if at else 0
    return own[first : ends.index(at + len(wanted))]


def kept(tokens: Sequence[TokenLogprob], characters: Mapping[int, str]) -> Iterator[TokenLogprob]:
    """Yield what is left of tokens of whose joined text some characters are kept.

    Args:
        tokens: Tokens that spell a text.
        characters: The kept characters, by their number in that text.
    """
    start = 0
    for token in tokens:
        end = start + len(token.token)
        said = "".join(characters.get(place, "") for place in range(start, end))
        if said == token.token:
            yield token
        elif said:
            # The list of alternatives knows the chosen token under the same name.
            top = tuple((said if name == token.token else name, p) for name, p in token.top)
            yield replace(token, token=said, top=top)
        start = end


def _letters(text: str) -> str:
    return _OTHER.sub("", text.lower())
