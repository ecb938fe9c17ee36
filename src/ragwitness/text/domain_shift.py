"""How kinds of text differ: in words, lengths and signs, and in how surprising a text is.

:func:`unlikeness` rates each text by itself against a set of known ones. A model of the known texts
alone calls every difficult text unlike. So surprise under a model of English at large, trained on
the sample that comes with the package, counts half against it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import regex as re
from numpy.typing import NDArray

from ragwitness.text.sample import load_sample
from ragwitness.text.words import LETTER, all_letters, is_unspaced, letters_of, script_pattern

Float64 = NDArray[np.float64]
Symbols = NDArray[np.uint64]

_WORD = script_pattern(rf"[[{LETTER}]--_]+(?:['\u2019][[{LETTER}]--_]+)*")
_SIGN = script_pattern(rf"[{LETTER}]+|[^{LETTER}\s]|\n")
_LONG_WORD = 30
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_MARK = re.compile(r"https?://|www\.|\S@\S|</?\w+|[#*|]{2,}|\[\w+\]")

MEASURES = (
    ("length", "words", False),
    ("length of words", "letters", False),
    ("length of sentences", "words", False),
    ("figures", "of the characters", True),
    ("capital letters", "of the characters", True),
    ("punctuation", "of the characters", True),
    ("letters beyond a to z", "of the characters", True),
    ("line breaks", "in 100 words", False),
    ("links, addresses and markup", "in 100 words", False),
    ("years that are named", "", False),
    # Where a method counts characters, white space leaves less room for words.
    ("white space", "of the characters", True),
    ("white space other than blanks and line breaks", "of the characters", True),
    ("longest gap between words", "characters", False),
)
"""Name of each value of :func:`measure`, its unit, and whether it is a share."""


def measure(text: str, words: Sequence[str]) -> tuple[float, ...]:
    """Return the values of ``MEASURES``; NaN for no year."""
    # Counts of characters are shares; empty texts divide by 1.
    n, size, characters = max(1, len(words)), max(1, len(text)), Counter(text).items()
    years = [int(year) for year in _YEAR.findall(text)]
    sentences = max(1, len(re.findall(r"[.!?。]+(?=\s|$)", text)))
    gaps = re.findall(r"\s+", text)
    return (
        float(len(words)),
        sum(map(len, words)) / n,
        n / sentences,
        sum(times for c, times in characters if c.isdigit()) / size,
        sum(times for c, times in characters if c.isupper()) / size,
        sum(times for c, times in characters if is_mark(c)) / size,
        sum(times for c, times in characters if all_letters(c) and not c.isascii()) / size,
        100 * text.count("\n") / n,
        100 * len(_MARK.findall(text)) / n,
        float(np.median(years)) if years else float("nan"),
        sum(map(len, gaps)) / size,
        sum(c not in " \n" for gap in gaps for c in gap) / size,
        float(max(map(len, gaps), default=0)),
    )


@functools.cache
def is_mark(sign: str) -> bool:
    """Whether a character is neither a letter, a figure nor white space."""
    return not letters_of(sign) and not sign.isspace()


@functools.lru_cache(1 << 11)  # sets of texts are compared in several ways
def kind_words(text: str) -> Sequence[str]:
    """Return words without case; letters and pairs of letters in scripts without spaces."""
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        dense = len(word) > _LONG_WORD or is_unspaced(word)
        words += [*map("".join, pairwise(word)), *word] if dense else [word]
    return words


# How unlike a set of texts each text is.

_BLANKS = re.compile(r"[^\S\n]+")  # line breaks are signs of lists and tables
_LONGEST = 2_048  # characters of a text that count; many methods read no further
_BACKGROUND = 0.5  # share of the surprise at large that is no sign of another kind
_FOLDS = 10
_LEAST = 0.05  # bits; where known texts spread less, so small a difference is none
_SIGNS = 40  # most frequent words and marks each, whose rates are compared
_FARTHEST = 8.0  # spreads from the mean beyond which a rate is no odder


def unlikeness(known: Sequence[str], texts: Sequence[str]) -> tuple[Float64, Float64]:
    """Return how unlike the known texts each of them is (to the others), and each of ``texts``.

    The views are bits per letter and per word under models of short and long context, and the
    distance of style. Each is scaled by the median and spread of the known texts; the result sums
    the squares of the excess.

    Args:
        known: At least two texts of one kind.
        texts: Those to be compared with them; none learns from another.

    Returns:
        Higher is less alike; shapes (known,) and (texts,).
    """
    readable = [[_BLANKS.sub(" ", t[:_LONGEST]) for t in group] for group in (known, texts)]
    # 1. The views: distance of style, then bits per letter and per word.
    views = [_distance(*readable)]
    for letters, orders in ((True, (4, 6)), (False, (1, 2))):
        known_symbols, symbols = ([_symbols(t, letters) for t in group] for group in readable)
        model, large = _Surprise(known_symbols, max(orders)), _english(letters, max(orders))
        inside = np.array(
            [model.bits(t, inside=True) - _BACKGROUND * large.bits(t) for t in known_symbols]
        )
        outside = np.array([model.bits(t) - _BACKGROUND * large.bits(t) for t in symbols])
        outside = outside.reshape(-1, max(orders))
        views += [(inside[:, order - 1], outside[:, order - 1]) for order in orders]
    # 2. The excess of each view over the median of the known texts.
    sums = np.zeros(len(known)), np.zeros(len(texts))
    for view in views:
        middle, high = np.percentile(view[0], (50, 84))
        for total, values in zip(sums, view, strict=True):
            total += np.maximum(0.0, (values - middle) / (high - middle + _LEAST)) ** 2
    return sums


def _symbols(text: str, letters: bool) -> Symbols:
    """Letters by their code points, or words and marks by a stable hash."""
    import zlib

    if letters:
        return np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), "<u4").astype("u8")
    signs = _SIGN.findall(text.lower())
    return np.array([zlib.crc32(s.encode("utf-8", "surrogatepass")) for s in signs], dtype="u8")


class _Surprise:
    """An interpolated model of symbols in contexts up to an order (MacKay and Peto 1995).

    P_k(s | c) = (count(c s) + weight P_(k-1)(s | c')) / (count(c) + weight), c' one symbol shorter.
    """

    def __init__(self, texts: Sequence[Symbols], order: int) -> None:
        self._order, self._weight = order, 6.0 if order > 2 else 20.0
        runs = zip(*map(self._runs, texts), strict=True)
        self._counts = [np.unique(np.concatenate(run), return_counts=True) for run in runs]
        self._all = float(sum(len(text) + 1 for text in texts))

    def _runs(self, text: Symbols) -> list[Symbols]:
        """Hashes of the last 1, 2, … symbols at the beginning and after each; (n + 1,) each."""
        padded = np.concatenate([np.full(self._order, 7, dtype="u8"), text + np.uint64(11)])
        # From the last symbol back: each context extends the one before.
        hashed, runs = np.zeros(len(text) + 1, dtype="u8"), []
        for back in range(self._order - 1, -1, -1):
            symbols = padded[back : back + len(text) + 1]
            runs.append(hashed := (hashed ^ symbols) * np.uint64(1099511628211))  # FNV-1a
        return runs

    def bits(self, text: Symbols, *, inside: bool = False) -> Float64:
        """Return the mean surprise of a symbol by order; ``inside`` leaves the text itself out."""
        chance = np.full(len(text), 1 / (len(self._counts[0][0]) + 50.0))
        before, bits = np.full(len(text), self._all - inside * (len(text) + 1)), []
        # From short contexts to long ones: each is smoothed by the shorter one.
        for run, (contexts, times) in zip(self._runs(text), self._counts, strict=True):
            index = np.minimum(np.searchsorted(contexts, run), len(contexts) - 1)
            count = np.where(contexts[index] == run, times[index], 0)
            if inside:
                _, position, repeats = np.unique(run, return_inverse=True, return_counts=True)
                count = count - repeats[position]
            chance = (count[1:] + self._weight * chance) / (before + self._weight)
            bits.append(-np.log2(chance).mean() if len(text) else 0.0)
            before = count[:-1]
        return np.array(bits)


@functools.lru_cache(maxsize=2)
def _english(letters: bool, order: int) -> _Surprise:
    """A model of the sample that comes with the package, which is of no user's kind."""
    return _Surprise([_symbols(d.text, letters) for d in load_sample()], order)


def _distance(known: Sequence[str], texts: Sequence[str]) -> tuple[Float64, Float64]:
    """Log of the Mahalanobis distance of style; a known text is compared with the other ones.

    Style is the measures and the rates of the most frequent words and marks of the known texts.
    """
    from sklearn.covariance import LedoitWolf

    # 1. The most frequent words and marks of the known texts.
    words = [[kind_words(text) for text in group] for group in (known, texts)]
    common = [w for w, _ in Counter(w for row in words[0] for w in {*row}).most_common(_SIGNS)]
    marks = Counter(c for text in known for c in {*text} if not all_letters(c) and c != " ")
    signs = [c for c, _ in marks.most_common(_SIGNS)]

    def style(text: str, row: Sequence[str], known: bool) -> list[float]:
        counts, characters, size = Counter(row), Counter(text), max(1, len(row))
        rates = [counts[word] / size for word in common]
        rates += [characters[sign] / max(1, len(text)) for sign in signs]
        # Marks of no other known text: the marks of a known text count itself once.
        alone = sum(
            n for c, n in characters.items() if not letters_of(c) and c != " " and marks[c] <= known
        )
        rates.append(alone / max(1, len(text)))
        named = np.nan_to_num(measure(text, row))
        return [*np.sqrt(rates), *np.log1p(named), len(set(row)) / size]

    # 2. A row of style for every text.
    known_styles, styles = (
        np.array([style(t, row, group is known) for t, row in zip(group, rows, strict=True)])
        for group, rows in zip((known, texts), words, strict=True)
    )
    # 3. Each known text by a model of the other folds; other texts by all of these models.
    inside, outside = np.zeros(len(known)), np.zeros(len(texts))
    fold = np.arange(len(known)) % _FOLDS
    for left_out in range(min(_FOLDS, len(known))):
        rest = known_styles[fold != left_out]
        middle, spread = rest.mean(axis=0), np.maximum(rest.std(axis=0), 1e-3)

        def placed(rows: Float64, middle: Float64 = middle, spread: Float64 = spread) -> Float64:
            return np.asarray(np.clip((rows - middle) / spread, -_FARTHEST, _FARTHEST))

        shape = LedoitWolf().fit(placed(rest))
        inside[fold == left_out] = shape.mahalanobis(placed(known_styles[fold == left_out]))
        if len(texts):
            outside += shape.mahalanobis(placed(styles)) / min(_FOLDS, len(known))
    return np.log(inside + 1e-9), np.log(outside + 1e-9)
