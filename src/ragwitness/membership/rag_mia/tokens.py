"""The tokens that spell an answer."""

from __future__ import annotations

import re

from ragwitness.types import Answer, TokenLogprob

__all__ = ["answer_tokens"]

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
