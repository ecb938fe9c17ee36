"""Words as the lexical index sees them: any script, numbers kept, no stemming."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["index_words"]

# Numbers stay whole (3.5, 2024-03-01, 10:30): they tell documents apart best.
_NUMBER = r"\d+(?:[.,:/-]\d+)*(?!\w)"
# Han, Hiragana and Katakana are written without spaces: pairs of neighbours stand for words.
_UNSPACED = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+"
# Combining marks belong to their word (Devanagari, Thai and others).
_OTHER = r"(?:(?!{unspaced})[\w\u0300-\u036f\u0900-\u0dff\u0e30-\u0e4e\u0eb0-\u0ecd])+"
_TOKEN = re.compile(f"({_NUMBER})|({_UNSPACED})|({_OTHER.format(unspaced=_UNSPACED)})")


def index_words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, compatibility forms unified."""
    words: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match.group(2)
        if run and len(run) > 1:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            words.append(match.group())
    return words
