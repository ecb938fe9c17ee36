"""DCMI (2025): ask about the document and about a copy in which some words are turned round."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragwitness.errors import InputError
from ragwitness.kit.fields import at_least, one_of, ordered
from ragwitness.membership.reading.halves import cut_words
from ragwitness.membership.reading.yes_no import YesNo, proxy_yes, read_yes_no
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.words import Word, core, split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Message,
    Probe,
    Query,
    Role,
    Score,
)

# Parameters of DCMI, the paper's beside ours.

PROMPT = 'Is this: "{doc}" right? Answer with Yes or No.'
"""The paper's question, asked of the document and of its copy."""

PERTURB_PROMPT = (
    "Replace {n} key adjectives or adverbs in noticeable positions with their antonyms. The text"
    " must still read well, and everything else must stay as it is. Return only the modified"
    " text.\n\n{doc}"
)
"""What a model is told to make the copy by; the paper's instruction as far as it is known."""


@dataclass(frozen=True, slots=True)
class DcmiConfig:
    """How the copy is made and both are asked about.

    Attributes:
        access: ``"text"`` reads yes or no; ``"gray"`` the log-odds of the two, which needs
            log-probabilities.
        share: Share of the words to be turned round. The paper is said to use 6 %, its code 3 %.
        most: Upper limit of words turned round; at least one always is.
        perturb: ``"table"`` looks antonyms up in a table of ours; ``"llm"`` asks the proxy
            model, as the paper does, and falls back on the table.
        prompt: Must hold ``{doc}``.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        max_tokens: Room for each answer.
        top_logprobs: Alternatives asked for in gray access.
        seed: With the document's id, of the choice of words.
    """

    stored_name: ClassVar[str] = "DcmiConfig"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"paper": {"perturb": "llm"}}

    access: Literal["text", "gray"] = "text"
    share: float = 0.06
    most: int = 10
    perturb: Literal["table", "llm"] = "table"
    prompt: str = PROMPT
    max_words: int = 300
    min_words: int = 8
    max_tokens: int = 16
    top_logprobs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "access", "text", "gray")
        one_of(self, "perturb", "table", "llm")
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"share must be above 0 and at most 1, not {self.share}.")
        at_least(self, 1, "most", "min_words", "max_tokens", "top_logprobs")
        ordered(self, "min_words", "max_words")
        if "{doc}" not in self.prompt:
            raise InputError("The prompt must hold {doc}.")


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
class Perturbed:
    """A copy.

    Attributes:
        text: The copy.
        changes: Each word turned round, with what stands for it.
        kind: ``"antonyms"``, ``"negations"``, ``"numbers"`` or ``"llm"``.
    """

    text: str
    changes: tuple[tuple[str, str], ...]
    kind: str


@dataclass(frozen=True, slots=True)
class _Change:
    start: int
    end: int
    old: str
    new: str


def quota(words: int, share: float, most: int) -> int:
    """How many words of a document to turn round: a share, at least 1, at most ``most``."""
    return min(most, max(1, round(share * words)))


def perturb(text: str, n: int, rng: random.Random) -> Perturbed | None:
    """Turn ``n`` words round, spread over the text.

    Antonyms come first. Where there is none, verbs are negated or a "not" taken away; where
    there is no such verb either, numbers are changed.

    Args:
        text: The document.
        n: How many words, at most; where fewer can be, those.
        rng: Of the choice among neighbours.

    Returns:
        None where nothing can be turned round.
    """
    words = split_words(text)
    for kind, find in (("antonyms", _antonyms), ("negations", _negations), ("numbers", _numbers)):
        candidates = find(words)
        if candidates:
            chosen = _spread(candidates, n, rng)
            changes = tuple((change.old, change.new) for change in chosen)
            return Perturbed(_apply(text, words, chosen), changes, kind)
    return None


def changed_words(text: str, copy: str) -> tuple[tuple[str, str], ...] | None:
    """Compare a copy made by a model with the text, word by word.

    Returns:
        The words that differ, or None where the copy is not the text with a few words replaced.
    """
    one, other = split_words(text), split_words(copy)
    if len(one) != len(other):
        return None
    return tuple(
        (core(a.text), core(b.text))
        for a, b in zip(one, other, strict=True)
        if core(a.text).casefold() != core(b.text).casefold()
    )


def _antonyms(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        stem = core(word.text)
        new = ANTONYMS.get(stem.casefold())
        if new:
            found.append(_replace(word, stem, _cased(new, stem)))
    return found


def _negations(words: Sequence[Word]) -> list[_Change]:
    found = []
    for i, word in enumerate(words):
        if word.text.casefold() not in _AUXILIARIES:
            continue
        following = words[i + 1] if i + 1 < len(words) else None
        if following and following.text.casefold() == "not":
            old = f"{word.text} {following.text}"
            found.append(_Change(word.start, following.end, old, word.text))
        else:
            found.append(_Change(word.start, word.end, word.text, f"{word.text} not"))
    return found


def _numbers(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        first = _NUMBER.search(word.text)
        if first:
            # Another leading digit of the same length: 500 becomes 900, 1998 becomes 5998.
            digit = (int(first.group()) + 3) % 9 + 1
            new = word.text[: first.start()] + str(digit) + word.text[first.end() :]
            found.append(_Change(word.start, word.end, word.text, new))
    return found


def _replace(word: Word, stem: str, new: str) -> _Change:
    start = word.start + word.text.index(stem)
    return _Change(start, start + len(stem), stem, new)


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


# The DCMI audit of one document: its answer less that of a perturbed copy.

_ROOM = 32  # tokens a chat template adds, and a copy may be longer by


class Dcmi:
    """DCMI: f(document) - f(copy), where the copy has some words turned into their opposites.

    A target that holds the document affirms it and denies the copy; one that does not treats
    both alike, and what it says of such texts anyway cancels out.

    Args:
        proxy: Makes the copy where ``config.perturb`` says so, and answers the same questions
            without any database for the report; its answers are not part of the score.
        config: Access, share of words and limits.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.dcmi.probe.Dcmi"
    name = "dcmi"

    def __init__(self, proxy: LanguageModel, config: DcmiConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or DcmiConfig()

    @property
    def requires(self) -> frozenset[Capability]:
        """Text, or log-probabilities in gray access."""
        gray = self.config.access == "gray"
        return frozenset({Capability.TOP_LOGPROBS if gray else Capability.TEXT})

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        by = "the proxy model" if self.config.perturb == "llm" else "a table of antonyms"
        return {
            "copy": f"{self.config.share:.0%} of the words turned round by {by}",
            "read": "log-odds of yes" if self.config.access == "gray" else "yes or no",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config, gray = self.config, self.config.access == "gray"
        text, cut = cut_words(document.text, config.max_words)
        words = [word for word in split_words(text) if core(word.text)]
        details = {"cut": float(cut)}
        if len(words) < config.min_words:
            return Score(None, reason=f"fewer than {config.min_words} words to ask about")
        # 1. A copy in which a few words are turned round.
        copy, fell_back = self._copy(text, len(words), document.id)
        if copy is None:
            return Score(None, reason="no word of it can be turned round", details=details)
        details |= {"perturbed": float(len(copy.changes)), copy.kind: float(len(copy.changes))}
        details |= {"fallback": 1.0} if fell_back else {}
        # 2. The same question about both.
        questions = [config.prompt.replace("{doc}", said) for said in (text, copy.text)]
        top = config.top_logprobs if gray else 0
        answers = yield [
            Query(q, max_tokens=config.max_tokens, top_logprobs=top) for q in questions
        ]
        return self._score(copy, answers, details)

    def baselines(self, document: Document) -> tuple[float, ...]:
        """Return what the proxy gives the words of the evidence; four passes, so on request."""
        text, _ = cut_words(document.text, self.config.max_words)
        words = sum(bool(core(word.text)) for word in split_words(text))
        copy, _ = self._copy(text, words, document.id)
        shown = (text,) if copy is None else (text, copy.text)
        return tuple(
            proxy_yes(self.proxy, self.config.prompt.replace("{doc}", said)) for said in shown
        )

    def _copy(self, text: str, words: int, identity: str) -> tuple[Perturbed | None, bool]:
        n = quota(words, self.config.share, self.config.most)
        if self.config.perturb == "llm":
            # The paper's way; what the model made counts only if it replaced a few words.
            made = self._by_model(text, n)
            if made:
                return made, False
        rng = random.Random(f"{self.config.seed}/{identity}")
        return perturb(text, n, rng), self.config.perturb == "llm"

    def _by_model(self, text: str, n: int) -> Perturbed | None:
        """Ask the proxy for the copy; None where it made something else of the text."""
        told = PERTURB_PROMPT.replace("{n}", str(n)).replace("{doc}", text)
        room = self.proxy.count_tokens(text) + _ROOM
        if self.proxy.count_tokens(told) + room + _ROOM > self.proxy.context_length:
            return None
        prompt = ChatPrompt((Message(Role.USER, told),))
        made = self.proxy.generate([prompt], max_tokens=room)[0].text.strip().strip('"')
        changes = changed_words(text, made)
        return Perturbed(made, changes, "llm") if changes and len(changes) <= 2 * n else None

    def _score(self, copy: Perturbed, answers: list[Answer], details: dict[str, float]) -> Score:
        gray = self.config.access == "gray"
        # 3. f(document) and f(copy).
        one, other = (read_yes_no(answer, gray=gray) for answer in answers)
        for reading in (one, other):
            details[reading.outcome] = details.get(reading.outcome, 0.0) + 1.0
        details |= _differences(one, other)
        values = [reading.value(gray=gray) for reading in (one, other)]
        if values[0] is None or values[1] is None:
            reason = one.reason if values[0] is None else f"of the copy: {other.reason}"
            return Score(None, reason=reason, details=details)
        # 4. Their difference: what the target says of such texts anyway cancels out.
        details["score/uncalibrated"] = values[0]
        return Score(
            values[0] - values[1], evidence=self._evidence(copy, (one, other)), details=details
        )

    def _evidence(self, copy: Perturbed, readings: tuple[YesNo, YesNo]) -> tuple[Evidence, ...]:
        """Both questions, told by the words in which they differ."""
        olds = ", ".join(old for old, _ in copy.changes)
        news = ", ".join(new for _, new in copy.changes)
        labels = (f"right? (as it stands: {olds})", f"right? (turned round: {news})")
        found = []
        for label, reading in zip(labels, readings, strict=True):
            said = reading.yes
            if self.config.access == "text" and reading.text is not None:
                said = Interval(reading.text, reading.text)
            found.append(Evidence("Yes", label, said, math.nan))
        return tuple(found)


def _differences(one: YesNo, other: YesNo) -> dict[str, float]:
    """Every score that both answers allow, whatever the access."""
    pairs = {
        "score/text": (one.text, other.text),
        "score/gray": (one.log_odds, other.log_odds),
        "score/published": (one.published, other.published),
    }
    return {
        key: first - second
        for key, (first, second) in pairs.items()
        if first is not None and second is not None
    }
