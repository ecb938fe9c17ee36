"""The probe of one held-out example: how much more a model leans towards c under each candidate.

Every candidate is asked about in the same way, the planted one among them. The clean view, without
any trigger, gives Eq. 1 of the paper; it is the same for all candidates and changes no rank.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from ragwitness.canary.draw import Draw, Slot
from ragwitness.canary.examples import (
    FINAL,
    Example,
    instructed,
    with_canary,
    with_trigger,
)
from ragwitness.canary.families import Wordings, contains, worded, wordings_of
from ragwitness.canary.traces import says
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score, TokenLogprob
from ragwitness.crypto.hashing import sampling_seed
from ragwitness.stats.rates import Rate
from ragwitness.targets.form import TEMPLATE, ShownForm, check_places

# One view's reading of a canary: log-probability in nats, or share of hits.


TAIL = " and so forth"
"""Echoed behind every canary, so that its last token ends where it does in an answer. It does not
change what is read: a token's probability depends on the text before it."""

_HALF = math.log(0.5)
_PIECE = "\ufffd"  # part of a character, which no text can show
_SEEN = 4  # tokens before the boundary that must be split as they are without the canary


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """A value, or why there is none.

    Attributes:
        value: Log-probability of the canary in nats (the sum over its tokens, not divided by their
            number; App. C.3), or share of hits; NaN where there is a trouble.
        tokens: How many tokens, or trials, it rests on.
        censored: Of these, known only to be at most what the value counts for them.
        before: The last tokens before the canary.
        trouble: Why there is no value.
    """

    value: float
    tokens: int = 0
    censored: int = 0
    before: tuple[str, ...] = ()
    trouble: str | None = None

    def then(self, piece: tuple[float, bool] | str) -> CanaryReading:
        """Return the reading with one more piece, or with what came in between."""
        if isinstance(piece, str):
            return CanaryReading(math.nan, self.tokens, self.censored, trouble=piece)
        return CanaryReading(self.value + piece[0], self.tokens + 1, self.censored + piece[1])


def read_continuation(
    answer: Answer, canary: str, alone: Sequence[TokenLogprob] | None = None
) -> CanaryReading:
    """Read log p(canary | text before) from the echoed end of text, canary and :data:`TAIL`.

    Args:
        answer: With the echoed tokens.
        canary: With its blank.
        alone: The echoed end of the text without the canary; None skips the comparison.
    """
    tokens = answer.tokens or ()
    if answer.error or not tokens:
        return _none(answer.error or "the target returned no log-probabilities of the prompt")
    end = _spelled_from(tokens, len(tokens), TAIL)
    if end is None:
        return _none("the target's tokenizer merges the canary with what follows it")
    start = _spelled_from(tokens, end, canary)
    if start is None:
        return _none("the target's tokenizer merges the canary with its prefix")
    before = tuple(token.token for token in tokens[max(0, start - _SEEN) : start])
    if alone is not None and before != tuple(token.token for token in alone[-len(before) :]):
        return _none("the target's tokenizer splits the prefix otherwise when the canary follows")
    # log p(c | prefix) = sum over the canary's tokens, by the chain rule; App. C.3 does not divide.
    values = [token.logprob for token in tokens[start:end]]
    if any(map(math.isnan, values)):
        return _none("the target left out a log-probability of the canary")
    if not all(map(math.isfinite, values)):
        return _none("the target gives the canary an infinite log-probability")
    return CanaryReading(math.fsum(values), len(values), before=before)


def next_piece(answers: Sequence[Answer], rest: str) -> str:
    """Return the next piece of a canary: the likeliest listed token that it begins with.

    A model copies a string in the tokens that it was shown, so its likeliest path is mostly the
    tokenizer's own split; the longest token is not. Where none is listed, the next character, with
    the blank before it.

    Args:
        answers: Answers of all views; a canary may be listed in one alone.
        rest: Rest of the canary.
    """
    fitting = [
        (value, text)
        for answer in answers
        for text, value in _listed(answer).items()
        if text.strip() and rest.startswith(text)
    ]
    blank = len(rest) - len(rest.lstrip())
    return max(fitting)[1] if fitting else rest[: blank + 1]


def read_piece(answer: Answer, piece: str) -> tuple[float, bool] | str:
    """Return a piece's log-probability and whether it is censored, or a trouble.

    A token that is not among the k alternatives has at most the k-th one's log-probability, which
    is what it counts for (left-censored). Where the answer ends instead, its end is the likeliest
    of all, and nothing is listed: any piece has at most half.
    """
    listed = _listed(answer)
    if answer.finish_reason == "stop" and not (answer.error or answer.text or listed):
        return _HALF, True
    if answer.error or not listed:
        return answer.error or "the target returned no log-probabilities"
    if not _wrote(answer):
        return "the target's log-probabilities are not those of what it wrote"
    return (listed[piece], False) if piece in listed else (min(listed.values()), True)


def read_hits(answers: Sequence[Answer], canary: str) -> CanaryReading:
    """Read the share of sampled answers that say a canary; failed and empty ones are no trials."""
    # Less than half of the trials say too little: the example is unscorable, not a miss.
    texts = [answer.text for answer in answers if not answer.error and answer.text.strip()]
    if 2 * len(texts) < len(answers) or not texts:
        errors = [answer.error for answer in answers if answer.error]
        return _none(errors[0] if errors else "the target answered with nothing")
    hits = sum(says(text, canary.strip()) for text in texts)
    return CanaryReading(hits / len(texts), len(texts))


def _none(trouble: str) -> CanaryReading:
    return CanaryReading(math.nan, trouble=trouble)


def _listed(answer: Answer) -> dict[str, float]:
    """The alternatives of the first token generated, and that token."""
    first = answer.tokens[0] if answer.tokens else None
    if first is None:
        return {}
    listed = {**dict(first.top), first.token: first.logprob}
    return {text: value for text, value in listed.items() if math.isfinite(value)}


def _wrote(answer: Answer) -> bool:
    """Whether the first token is what was written; blanks and parts of characters aside."""
    token, text = (answer.tokens or ())[0].token.strip(), answer.text.strip()
    return _PIECE in token + text or text.startswith(token) or token.startswith(text)


def _spelled_from(tokens: Sequence[TokenLogprob], end: int, text: str) -> int | None:
    """Where the tokens begin that end at ``end`` and spell ``text``; None where none do."""
    joined = ""
    for start in range(end - 1, -1, -1):
        joined = tokens[start].token + joined
        if joined == text:
            return start
        if len(joined) > len(text):
            return None
    return None


# The paper's statistic of a policy (2604.22191, Eq. 1).

_CONFIDENCE = 0.95


def amplification(triggered: ArrayLike, clean: ArrayLike) -> Rate:
    """Return A = 1/N sum_i [log pi(c | d~_i, q_i, p_i) - log pi(c | d_i, q_i, p_i)], in nats.

    Args:
        triggered: Log-probabilities under the planted trigger, shape (N,).
        clean: Log-probabilities of the same examples without, shape (N,).

    Returns:
        With N and Student's interval over examples, 95 %, which holds its level with a handful of
        them where a percentile bootstrap does not; NaN limits where N is 1.

    Raises:
        InputError: The shapes differ, there is no example, or a number is not finite.
    """
    first, second = np.asarray(triggered, np.float64), np.asarray(clean, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise InputError("Amplification needs both views of the same examples.")
    # Paired by example: its own difficulty cancels (Eq. 1).
    gains = first - second
    if not np.isfinite(gains).all():
        raise InputError("Scores must be finite; leave unscorable examples out.")
    n, value = gains.size, float(gains.mean())
    if n == 1:
        return Rate(value, float("nan"), float("nan"), 1)
    half = float(t.ppf((1 + _CONFIDENCE) / 2, n - 1) * gains.std(ddof=1) / math.sqrt(n))
    return Rate(value, value - half, value + half, n)


# The text that a model continues, and the place of a canary in it.

BARE = "{prompt}"
"""The frame of a text that is continued as it is."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """How an example becomes a prompt.

    Attributes:
        template: With ``{context}`` and ``{question}``.
        frame: A chat model's own template up to the begin of its answer, for raw continuation. It
            has ``{prompt}`` once, or ``{document}`` and ``{question}`` for two messages.

    Raises:
        InputError: A place is missing.
    """

    stored_name: ClassVar[str] = "Prompts"

    template: str = TEMPLATE
    frame: str = BARE

    def __post_init__(self) -> None:
        """Refuse a template that would drop something."""
        check_places(self.template, "context", "question")
        two = "{document}" in self.frame or "{question}" in self.frame
        check_places(self.frame, *(("document", "question") if two else ("prompt",)))

    def asked(self, document: str, query: str) -> str:
        """Return the prompt of a document and a query."""
        return ShownForm("one", self.template).text(document, query)

    def framed(self, document: str, query: str, answer: str = "") -> str:
        """Return what a model continues: the prompt in its frame, then the answer so far."""
        if "{prompt}" not in self.frame:
            in_frame = self.frame.replace("{document}", "{context}")
            return ShownForm("one", in_frame).text(document, query) + answer
        before, _, after = self.frame.partition("{prompt}")
        text = before + self.asked(document, query) + after
        # Without a frame an answer begins on a new line.
        bare = self.frame == BARE and not self.template[-1:].isspace()
        return text + "\n\n" * bare + answer


def refuse_markers(prompts: Prompts, draw: Draw) -> None:
    """Refuse prompts that name a marker: all candidates must be asked about alike.

    Raises:
        InputError: The template or the frame holds a canary or a candidate.
    """
    markers = [
        marker for slot in draw.slots for marker in (*wordings_of(slot.canary), *slot.candidates)
    ]
    for text in (prompts.template, prompts.frame):
        if present := [marker for marker in markers if contains(text, marker)]:
            raise InputError(
                f"The template or frame holds {present[0]!r}, which is a marker of this plan.",
                "Give one that names none; documents and queries bring them in.",
            )


def spot_of(example: Example, canary: str) -> tuple[str, str]:
    """Return where a canary is looked for in the answer to an example (App. C.3).

    Returns:
        p, the clean answer up to the insertion point, or ``FINAL:``; and c with the blank before
        it, which is scored.
    """
    put = with_canary(example.answer, worded(canary, example.id))
    return put.before, put.inserted.rstrip()


Way = Literal["exact", "forced", "sampled"]

WAYS: Mapping[Way, Capability] = {
    "exact": Capability.PROMPT_LOGPROBS,
    "forced": Capability.TOP_LOGPROBS,
    "sampled": Capability.TEXT,
}
"""Ways to ask, best first, with what each needs."""

_PIECES = 6  # of a canary of 11 capitals, about
_Asking = Generator[list[Query], list[Answer], list[CanaryReading]]


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """How a model is asked.

    Attributes:
        way: ``exact`` reads log-probabilities of the prompt; ``forced`` puts the canary's pieces
            behind the prompt one by one and reads each among the alternatives; ``sampled`` counts
            answers that hold the canary. None takes the best way of the target; a probe
            by itself is then exact.
        instructed: Whether the query asks for the canary, as the planted ones did (never naming a
            trigger). Eq. 1 is without; with it the canary is likely enough to be seen.
        samples: Answers per view, where they are sampled.
        alternatives: Wanted per token, where the canary is forced.
        prompts: Templates.

    Raises:
        InputError: A value is outside its range.
    """

    stored_name: ClassVar[str] = "ProbeConfig"

    way: Way | None = None
    instructed: bool = True
    samples: int = 20
    alternatives: int = 20
    prompts: Prompts = field(default_factory=Prompts)

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        if self.way not in (None, *WAYS):
            raise InputError(f"There is no way {self.way!r}.", f"Known: {', '.join(WAYS)}.")
        if min(self.samples, self.alternatives) < 1:
            raise InputError("Samples and alternatives must be at least 1.")


class CanaryProbe:
    """Asks about one slot; a document is a held-out example's, found by its id.

    The score's features are the clean view's value and then one per candidate, in the draw's
    order; its value is Eq. 1's summand: the planted candidate's minus the clean view's.

    Args:
        slot: Canary and candidates.
        examples: Held-out ones.
        config: How to ask.
        wordings: The user's wordings; None for the packaged ones.
        form: How documents were shown when they were planted; None for messages.
    """

    def __init__(
        self,
        slot: Slot,
        examples: Sequence[Example],
        config: ProbeConfig,
        wordings: Wordings | None = None,
        form: ShownForm | None = None,
    ) -> None:
        self._wordings, self._form = wordings, form or ShownForm()
        self.slot = slot
        self.config = config
        self._way: Way = config.way or "exact"
        self._examples = {example.id: example for example in examples}

    @property
    def name(self) -> str:
        """The method and the way."""
        return f"canary ({self._way})"

    @property
    def requires(self) -> frozenset[Capability]:
        """Capabilities that the way needs."""
        return frozenset({WAYS[self._way]})

    @property
    def documents(self) -> list[Document]:
        """One document per held-out example."""
        return [Document(example.id, example.document) for example in self._examples.values()]

    @property
    def opening(self) -> str:
        """The first example's clean view up to where the canary would stand."""
        example = next(iter(self._examples.values()))
        return self._texts(example, [example.document])[0][0]

    def probe(self, document: Document) -> Probe:
        """Return the generator that probes one example."""
        example = self._examples[document.id]
        # Documents: clean, then one per candidate.
        triggered = (
            with_trigger(example.document, t, example.id, self._wordings).text
            for t in self.slot.candidates
        )
        views = [example.document, *triggered]
        asking = {"exact": self._exact, "forced": self._forced, "sampled": self._sampled}
        readings = yield from asking[self._way](example, views)
        # An example counts where half of the candidates could be read, whichever was planted.
        troubles = [reading.trouble for reading in readings[1:] if reading.trouble]
        details = {
            "tokens": float(sum(reading.tokens for reading in readings)),
            "censored": float(sum(reading.censored for reading in readings)),
            "views": float(len(views)),
        }
        if len(troubles) > len(readings) // 2:
            return Score(None, reason=troubles[0], details=details)
        # Eq. 1's summand: the planted candidate's reading minus the clean view's. If one of the two
        # is missing, it is NaN, and the score is 0 (no verdict reads it).
        values = tuple(math.nan if reading.trouble else reading.value for reading in readings)
        gain = values[1 + self.slot.chosen] - values[0]
        return Score(0.0 if math.isnan(gain) else gain, values, details=details)

    def _query(self, example: Example) -> str:
        if not self.config.instructed:
            return example.query
        return instructed(example, self.slot.canary, self._wordings)

    def _texts(self, example: Example, views: Sequence[str]) -> tuple[list[str], str]:
        """Return the text before the canary in each view, and the canary with its blank."""
        (prefix, canary), query = spot_of(example, self.slot.canary), self._query(example)
        if FINAL not in self.config.prompts.template:  # the template does not ask for it
            prefix = prefix.removeprefix(FINAL).strip()
            canary = canary if prefix else canary.lstrip()
        framed = self.config.prompts.framed
        return [framed(view, query, prefix) for view in views], canary

    def _exact(self, example: Example, views: Sequence[str]) -> _Asking:
        # Prefix and canary are echoed in every view; the clean prefix alone shows its own split.
        texts, canary = self._texts(example, views)
        prompts = [texts[0], *(f"{text}{canary}{TAIL}" for text in texts)]
        alone, *answers = yield [Query(text, max_tokens=1, top_logprobs=1) for text in prompts]
        clean = read_continuation(answers[0], canary, alone.tokens)
        readings = [clean, *(read_continuation(answer, canary) for answer in answers[1:])]
        # All views must be split alike in front of c: else their sums are of other tokens.
        splits = Counter(reading.before for reading in readings if not reading.trouble)
        usual = (
            clean.before if not clean.trouble else max(splits, key=splits.__getitem__, default=())
        )
        trouble = "the target's tokenizer splits the prefix otherwise in a triggered view"
        return [
            reading
            if reading.trouble or reading.before == usual
            else CanaryReading(reading.value, trouble=trouble)
            for reading in readings
        ]

    def _forced(self, example: Example, views: Sequence[str]) -> _Asking:
        texts, canary = self._texts(example, views)
        readings = [CanaryReading(0.0)] * len(texts)
        forced = ""
        # All views settle a piece together: the same for each, whichever candidate was planted.
        while rest := canary[len(forced) :]:
            open_ = [at for at, reading in enumerate(readings) if not reading.trouble]
            if not open_:
                return readings
            answers = yield [
                Query(texts[at] + forced, max_tokens=1, top_logprobs=self.config.alternatives)
                for at in open_
            ]
            piece = next_piece(answers, rest)
            forced += piece
            # log pi(c | ...) of each view by the chain rule, over one split for all.
            for at, answer in zip(open_, answers, strict=True):
                readings[at] = readings[at].then(read_piece(answer, piece))
        if all(reading.censored == reading.tokens for reading in readings if not reading.trouble):
            trouble = f"no piece of the canary is among the {self.config.alternatives} alternatives"
            return [
                reading if reading.trouble else CanaryReading(0.0, trouble=trouble)
                for reading in readings
            ]
        return readings

    def _sampled(self, example: Example, views: Sequence[str]) -> _Asking:
        query, config, form = self._query(example), self.config, self._form
        prompts = [form.joined(view, query) for view in views]
        warm = 1.0 if form.temperature is None else form.temperature
        # The same seeds in every view: views differ in their document alone.
        answers = yield [
            Query(prompt, form.answer_tokens, temperature=warm, seed=sampling_seed(prompt, number))
            for prompt in prompts
            for number in range(config.samples)
        ]
        starts = range(0, len(answers), config.samples)
        canary = worded(self.slot.canary, example.id)
        return [read_hits(answers[n : n + config.samples], canary) for n in starts]


def queries_of(config: ProbeConfig, candidates: int) -> dict[str, int]:
    """Return the queries that one example of one slot takes, by way; with a way, that alone.

    Args:
        config: How to ask.
        candidates: M.
    """
    views = candidates + 1
    counts = {
        "exact": views + 1,  # the clean prefix alone as well
        "forced": views * _PIECES,
        "sampled": views * config.samples,
    }
    label = {"forced": f"forced, at {_PIECES} pieces per canary"}
    return {
        label.get(way, way): count for way, count in counts.items() if config.way in (None, way)
    }
