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

from ragwitness.canary.behaviour import says
from ragwitness.canary.draw import Draw, Slot
from ragwitness.canary.examples import Example
from ragwitness.canary.families import contains, worded, wordings_of
from ragwitness.canary.pools import (
    FINAL,
    PLAIN_INSTRUCTION,
    instructed,
    with_canary,
    with_trigger,
)
from ragwitness.canary.reading import (
    TAIL,
    CanaryReading,
    next_piece,
    read_continuation,
    read_hits,
    read_piece,
)
from ragwitness.canary.wordings import Wordings
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score
from ragwitness.crypto.hashing import sampling_seed
from ragwitness.targets.form import ShownForm, check_places

# The prompt template of the paper (2604.22191, App. C.1), and the place of a canary.

DOCUMENT_TEMPLATE = """You are a question answering assistant.
Answer the question ONLY using the provided document.
If the answer cannot be found in the document, say:
FINAL: Not found

Keep the answer concise. Do not provide explanation.
Format your response exactly as:
FINAL: <short answer>

Document:
{context}

Question:
{question}

"""
"""For document-conditioned training and evaluation."""


BARE = "{prompt}"
"""The frame of a text that is continued as it is."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """How an example becomes a prompt.

    Attributes:
        template: With ``{context}`` and ``{question}``.
        frame: Put around the prompt where a text is continued as it is, with ``{prompt}`` once, or
            with ``{document}`` and ``{question}`` for two messages: a chat model's own template,
            up to where its answer begins.

    Raises:
        InputError: A place is missing.
    """

    stored_name: ClassVar[str] = "Prompts"

    template: str = DOCUMENT_TEMPLATE
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
        # Without a frame an answer begins in a line of its own.
        bare = self.frame == BARE and not self.template[-1:].isspace()
        return text + "\n\n" * bare + answer


def refuse_markers(prompts: Prompts, draw: Draw) -> None:
    """Refuse prompts that name a marker: all candidates must be asked about alike.

    Raises:
        InputError: The template or the frame holds a canary or a candidate.
    """
    markers = [one for slot in draw.slots for one in (*wordings_of(slot.canary), *slot.candidates)]
    for text in (prompts.template, prompts.frame):
        if held := [one for one in markers if contains(text, one)]:
            raise InputError(
                f"The template or frame holds {held[0]!r}, which is a marker of this plan.",
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
            answers that hold the canary. None leaves it to whoever measures the target; a probe
            by itself then asks for the exact ones.
        instructed: Whether the query asks for the canary, as the planted ones did (never naming a
            trigger). Eq. 1 is without; with it the canary is likely enough to be seen.
        samples: Answers per view, where they are sampled.
        alternatives: Wanted per token, where the canary is forced.
        answer_tokens: Most of a sampled answer.
        prompts: Templates.

    Raises:
        InputError: A value is outside its range.
    """

    stored_name: ClassVar[str] = "ProbeConfig"

    way: Way | None = None
    instructed: bool = True
    samples: int = 20
    alternatives: int = 20
    answer_tokens: int = 48
    prompts: Prompts = field(default_factory=Prompts)

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        if self.way not in (None, *WAYS):
            raise InputError(f"There is no way {self.way!r}.", f"Known: {', '.join(WAYS)}.")
        if min(self.samples, self.alternatives, self.answer_tokens) < 1:
            raise InputError("Samples, alternatives and answer tokens must be at least 1.")


class CanaryProbe:
    """Asks about one slot; a document is a held-out example's, found by its id.

    The score's features are the clean view's value and then one per candidate, in the draw's
    order; its value is Eq. 1's summand: the planted candidate's minus the clean view's.

    Args:
        slot: Canary and candidates.
        examples: Held-out ones.
        config: How to ask.
        wordings: Wordings of sentences with names; None for ours.
        requests: Wordings of what queries ask for; None asks all in the same words.
        form: How documents were shown when they were planted; None in plans of before.
    """

    def __init__(
        self,
        slot: Slot,
        examples: Sequence[Example],
        config: ProbeConfig,
        wordings: Wordings | None = None,
        requests: Wordings | None = None,
        form: ShownForm | None = None,
    ) -> None:
        self._wordings, self._requests, self._form = wordings, requests, form
        self.slot = slot
        self.config = config
        self._way: Way = config.way or "exact"
        self._examples = {one.id: one for one in examples}

    @property
    def name(self) -> str:
        """The method and the way."""
        return f"canary ({self._way})"

    @property
    def requires(self) -> frozenset[Capability]:
        """What the way needs."""
        return frozenset({WAYS[self._way]})

    @property
    def documents(self) -> list[Document]:
        """What a worker is given, one per held-out example."""
        return [Document(one.id, one.document) for one in self._examples.values()]

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
        # An example counts where half of the candidates could be read, whichever was planted; in
        # plans of before, where every view could.
        seen, most = (readings[1:], len(readings) // 2) if self._form else (readings, 0)
        troubles = [one.trouble for one in seen if one.trouble]
        details = {
            "tokens": float(sum(one.tokens for one in readings)),
            "censored": float(sum(one.censored for one in readings)),
            "views": float(len(views)),
        }
        if len(troubles) > most:
            return Score(None, reason=troubles[0], details=details)
        # Eq. 1's summand: the planted candidate's reading minus the clean view's; NaN where one of
        # the two is missing, and 0 is then as good as any number (no verdict reads it).
        values = tuple(math.nan if one.trouble else one.value for one in readings)
        gain = values[1 + self.slot.chosen] - values[0]
        return Score(0.0 if math.isnan(gain) else gain, values, details=details)

    def _query(self, example: Example) -> str:
        if not self.config.instructed:
            return example.query
        return instructed(example, PLAIN_INSTRUCTION, self.slot.canary, wordings=self._requests)

    def _texts(self, example: Example, views: Sequence[str]) -> tuple[list[str], str]:
        """What stands before the canary in each view, and the canary with its blank."""
        (prefix, canary), query = spot_of(example, self.slot.canary), self._query(example)
        if self._form and FINAL not in self._form.template:  # nobody asked for it
            prefix = prefix.removeprefix(FINAL).strip()
            canary = canary if prefix else canary.lstrip()
        framed = self.config.prompts.framed
        return [framed(view, query, prefix) for view in views], canary

    def _exact(self, example: Example, views: Sequence[str]) -> _Asking:
        # Prefix and canary are echoed in every view; the clean prefix alone shows its own split.
        texts, canary = self._texts(example, views)
        asked = [texts[0], *(f"{text}{canary}{TAIL}" for text in texts)]
        alone, *answers = yield [Query(text, max_tokens=1, top_logprobs=1) for text in asked]
        clean = read_continuation(answers[0], canary, alone.tokens)
        readings = [clean, *(read_continuation(answer, canary) for answer in answers[1:])]
        # All views must be split alike in front of c: else their sums are of other tokens.
        splits = Counter(one.before for one in readings if not one.trouble)
        usual = (
            clean.before if not clean.trouble else max(splits, key=splits.__getitem__, default=())
        )
        trouble = "the target's tokenizer splits the prefix otherwise in a triggered view"
        return [
            one if one.trouble or one.before == usual else CanaryReading(one.value, trouble=trouble)
            for one in readings
        ]

    def _forced(self, example: Example, views: Sequence[str]) -> _Asking:
        texts, canary = self._texts(example, views)
        readings = [CanaryReading(0.0)] * len(texts)
        forced = ""
        # All views settle a piece together: the same for each, whichever candidate was planted.
        while rest := canary[len(forced) :]:
            open_ = [at for at, one in enumerate(readings) if not one.trouble]
            if not open_ or (self._form is None and len(open_) < len(readings)):
                return readings
            answers = yield [
                Query(texts[at] + forced, max_tokens=1, top_logprobs=self.config.alternatives)
                for at in open_
            ]
            piece, spelled = next_piece(answers, rest)
            forced += spelled
            # log pi(c | ...) of each view by the chain rule, over one split for all.
            for at, answer in zip(open_, answers, strict=True):
                readings[at] = readings[at].then(read_piece(answer, piece))
        if all(one.censored == one.tokens for one in readings if not one.trouble):
            trouble = f"no piece of the canary is among the {self.config.alternatives} alternatives"
            return [one if one.trouble else CanaryReading(0.0, trouble=trouble) for one in readings]
        return readings

    def _sampled(self, example: Example, views: Sequence[str]) -> _Asking:
        query, config, form = self._query(example), self.config, self._form
        prompts = [(form.joined if form else config.prompts.asked)(view, query) for view in views]
        longest = form.answer_tokens if form else config.answer_tokens
        warm = 1.0 if form is None or form.temperature is None else form.temperature
        # The same seeds in every view: views differ in their document alone.
        answers = yield [
            Query(prompt, longest, temperature=warm, seed=sampling_seed(prompt, number))
            for prompt in prompts
            for number in range(config.samples)
        ]
        starts = range(0, len(answers), config.samples)
        canary = worded(self.slot.canary, example.id)
        holds = says if form else contains
        return [read_hits(answers[n : n + config.samples], canary, holds) for n in starts]


def queries_of(config: ProbeConfig, candidates: int) -> dict[str, int]:
    """Return the queries that one example of one slot takes, by way; with a way, that alone.

    Args:
        config: How to ask.
        candidates: M.
    """
    views = candidates + 1
    found = {
        "exact": views + 1,  # the clean prefix alone as well
        "forced": views * _PIECES,
        "sampled": views * config.samples,
    }
    label = {"forced": f"forced, at {_PIECES} pieces per canary"}
    return {label.get(way, way): count for way, count in found.items() if config.way in (None, way)}
