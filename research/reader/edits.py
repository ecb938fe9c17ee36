"""Edited copies of a text, in which a few words are turned round, as DCMI (2025) makes them.

A lesson asks whether the text or its copy stands in the context; ``abilities.py`` measures how
well a reader tells the two apart.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.text.words import Word, core, split_words

IS_RIGHT = 'Is this: "{doc}" right? Answer with Yes or No.'
"""DCMI's question, asked of the text and of its copy."""

# Adjectives and adverbs with their opposites: common ones, and those of medical prose.

_PAIRS = """
old/young less/more careful/careless able/unable absent/present accurate/inaccurate active/inactive
acute/chronic adequate/inadequate advanced/basic alive/dead always/never ancient/modern angry/calm
anxious/relaxed asleep/awake attractive/ugly available/unavailable aware/unaware beautiful/hideous
benign/malignant best/worst better/worse big/small bilateral/unilateral bitter/sweet black/white
bold/timid brave/cowardly brief/lengthy bright/dim broad/narrow busy/idle careful/reckless
certain/uncertain certainly/hardly cheap/expensive clean/dirty clear/unclear clearly/vaguely
clever/stupid closed/open cold/hot comfortable/uncomfortable common/rare commonly/rarely
complete/incomplete completely/partly complex/simple conscious/unconscious constant/variable
cool/warm correct/incorrect correctly/wrongly curved/straight dangerous/safe dark/bright
dead/living deep/shallow definite/doubtful dense/sparse different/identical difficult/easy
direct/indirect directly/indirectly domestic/foreign dry/wet dull/sharp early/late easily/hardly
easy/hard effective/ineffective elderly/young empty/full enough/insufficient essential/unnecessary
exact/approximate exactly/roughly excellent/terrible external/internal fair/unfair
familiar/unfamiliar famous/unknown far/near fast/slow favorable/unfavorable female/male fewer/more
final/initial finally/initially flexible/rigid formal/informal former/latter fortunate/unfortunate
fortunately/sadly frequent/infrequent frequently/seldom fresh/stale friendly/hostile
generally/occasionally general/specific gentle/harsh gently/roughly genuine/fake glad/sad good/bad
gradual/sudden gradually/suddenly great/tiny greater/lesser guilty/innocent happily/sadly
happy/unhappy hard/soft healthy/sick heavily/lightly heavy/slight helpful/useless hidden/visible
high/low higher/lower highest/lowest highly/barely honest/dishonest horizontal/vertical huge/tiny
humble/proud hungry/thirsty immediate/delayed immediately/eventually important/unimportant
inner/outer inside/outside intense/mild junior/senior large/small larger/smaller largest/smallest
lazy/diligent legal/illegal likely/unlikely local/global long/short longer/shorter loose/tight
loud/quiet loudly/quietly lucky/unlucky main/minor major/minor many/few mature/immature
maximum/minimum mentally/physically mild/severe minimal/maximal most/least mostly/hardly
natural/artificial necessary/unnecessary negative/positive new/old nearby/faraway nice/nasty
noisy/silent normal/abnormal normally/abnormally obvious/subtle official/unofficial often/rarely
older/younger oral/intravenous ordinary/extraordinary painful/painless pale/dark partial/total
particular/general peaceful/violent perfect/flawed permanent/temporary pleasant/unpleasant
plentiful/scarce polite/rude poor/rich popular/unpopular possible/impossible possibly/definitely
powerful/weak precise/vague primary/secondary private/public probably/improbably proper/improper
public/secret pure/impure quick/slow quickly/slowly rapid/slow rapidly/slowly raw/cooked
real/imaginary recent/old recently/formerly regular/irregular regularly/irregularly
relevant/irrelevant reliable/unreliable responsible/irresponsible rough/smooth same/different
satisfied/dissatisfied scared/fearless secure/insecure serious/trivial severely/mildly short/tall
significant/insignificant significantly/slightly similar/dissimilar simply/elaborately
slightly/greatly smart/foolish sober/drunk solid/liquid sometimes/always soon/later sour/sweet
special/ordinary stable/unstable steady/unsteady strange/familiar strict/lenient strong/weak
stronger/weaker strongly/weakly successful/unsuccessful sufficient/insufficient suitable/unsuitable
sure/unsure swollen/shrunken temporary/lasting thick/thin tired/rested tough/tender true/false
typical/atypical unusual/usual upper/lower urgent/trivial useful/useless usually/rarely
valid/invalid valuable/worthless wealthy/poor wide/narrow widely/narrowly wild/tame wise/foolish
wonderful/awful worried/unworried wrong/right yearly/daily
"""


def _table() -> dict[str, str]:
    """Each word with the opposite it is first listed with."""
    found: dict[str, str] = {}
    for pair in _PAIRS.split():
        one, other = pair.split("/")
        found.setdefault(one, other)
        found.setdefault(other, one)
    return found


ANTONYMS = _table()
"""Lower-case words and their opposites."""


# The perturbed copy: a few words turned round, everything else as it was.

_AUXILIARIES = frozenset(
    "am is are was were can could will would should must may might has have had do does did".split()
)
_NUMBER = re.compile(r"\d")
_AN = re.compile(r"honest|hour|(?!use|usu|unil|uniq|eu|one)[aeiou]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Change:
    start: int
    end: int
    new: str


def quota(words: int, share: float, most: int) -> int:
    """How many words of a document to turn round: a share, at least 1, at most ``most``."""
    return min(most, max(1, round(share * words)))


def perturb(text: str, n: int, rng: random.Random) -> str | None:
    """Turn ``n`` words round, spread over the text.

    Antonyms come first. Where there is none, verbs are negated or a "not" taken away; where
    there is no such verb either, numbers are changed.

    Args:
        text: The document.
        n: How many words, at most; where fewer can be, those.
        rng: Of the choice among neighbours.

    Returns:
        The copy, or None where nothing can be turned round.
    """
    words = split_words(text)
    for find in (_antonyms, _negations, _numbers):
        candidates = find(words)
        if candidates:
            return _apply(text, words, _spread(candidates, n, rng))
    return None


def _antonyms(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        stem = core(word.text)
        new = ANTONYMS.get(stem.casefold())
        if new:
            start = word.start + word.text.index(stem)
            found.append(_Change(start, start + len(stem), _cased(new, stem)))
    return found


def _negations(words: Sequence[Word]) -> list[_Change]:
    found = []
    for i, word in enumerate(words):
        if word.text.casefold() not in _AUXILIARIES:
            continue
        following = words[i + 1] if i + 1 < len(words) else None
        if following and following.text.casefold() == "not":
            found.append(_Change(word.start, following.end, word.text))
        else:
            found.append(_Change(word.start, word.end, f"{word.text} not"))
    return found


def _numbers(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        first = _NUMBER.search(word.text)
        if first:
            # Another leading digit of the same length: 500 becomes 900, 1998 becomes 5998.
            digit = (int(first.group()) + 3) % 9 + 1
            new = word.text[: first.start()] + str(digit) + word.text[first.end() :]
            found.append(_Change(word.start, word.end, new))
    return found


def _cased(new: str, old: str) -> str:
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new.capitalize() if old[:1].isupper() else new


def _spread(candidates: Sequence[_Change], n: int, rng: random.Random) -> list[_Change]:
    """One candidate from each of n equal stretches of the candidates."""
    n = min(n, len(candidates))
    # Spread over the text, so that no passage alone decides.
    edges = [i * len(candidates) // n for i in range(n + 1)]
    return [candidates[rng.randrange(a, b)] for a, b in itertools.pairwise(edges)]


def _apply(text: str, words: Sequence[Word], changes: Sequence[_Change]) -> str:
    """Make the changes, last first; "a" and "an" before a changed word follow it."""
    before = {words[i].end: words[i - 1] for i in range(1, len(words))}
    for change in reversed(changes):
        text = text[: change.start] + change.new + text[change.end :]
        article = next((w for end, w in before.items() if end >= change.end), None)
        if article and article.text.casefold() in ("a", "an") and change.new[:1].isalpha():
            right = "an" if _AN.match(change.new) else "a"
            right = right.capitalize() if article.text[0].isupper() else right
            text = text[: article.start] + right + text[article.end :]
    return text
