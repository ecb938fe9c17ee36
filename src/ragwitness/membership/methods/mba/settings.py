"""Parameters of MBA, the paper's beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from ragwitness.core.errors import InputError
from ragwitness.core.fields import at_least, one_of

MaskSource = Literal["proxy", "proxy-only", "random", "llm"]
"""How masks are chosen: the paper's method and the ablations of its Table 2."""

MASK_PROMPT = (
    "Predict the answers of the masks in the given texts:\n\n{masked_document}\n\n"
    "You should strictly follow the contexts to answer, and provide your answers in the"
    ' specified format: "[Mask_i]: answer_i\n" for each mask.'
)
"""Fig. 6 without its slot for retrieved documents: the target adds its own."""

PUBLISHED_PROMPT = (
    "Predict the answers of the masks in the given texts:\n\n{masked_document}\n\n"
    "You should strictly follow the contexts below to answer, and provide your answers in the"
    ' specified format: "[Mask_i]: answer_i\n" for each mask:'
)
"""Fig. 6 word for word, up to where the retrieved documents follow."""

LLM_MASK_PROMPT = (
    "Choose {masks} single words in the text below that nobody could guess without having read"
    " it: names, numbers, technical terms, unusual words. Write the text out again word for word"
    " with the chosen words replaced by [Mask_1] to [Mask_{masks}] in reading order. Change"
    " nothing else and add nothing.\n\n{document}"
)
"""Our own prompt for the LLM-based ablation; the wording of Fig. 7 is not known."""

PUBLISHED_GAMMA = 0.5
"""§5.7.2: around 0.5 "is generally a good choice"; a target may guess more than that."""


@dataclass(frozen=True, slots=True)
class MbaConfig:
    """How a document is masked, asked about and scored.

    Attributes:
        masks: M of Alg. 4. A text with fewer parts that hold a word worth a mask gets fewer.
        source: ``"proxy"`` is the paper's method; ``"proxy-only"`` masks the hardest *tokens*
            (MBA_PLM of Table 2: no fragmented words, no spelling); ``"random"`` masks random
            words, stop words among them; ``"llm"`` has a language model write the masked text.
        spelling: ``"symspell"`` (symspellpy, English), ``"none"`` (MBA w/o SC of Table 2), or
            ``"hf:NAME_OR_FOLDER"``, a sequence-to-sequence corrector; the paper's is
            ``hf:oliverguhr/spelling-correction-english-base``.
        skip_words: First words that are never masked (from the authors, by way of a
            re-implementation; not in the paper).
        unique_words: Prefer words that stand in the text once: a second, unmasked occurrence
            answers the mask (ours). False is the paper.
        avoid_adjacent: No two masks on neighbouring words (§4.3.3).
        max_chars: The text is cut at the last whole word within this many characters, as the
            re-implementation does; one query per document, whatever its length.
        min_masks: A document with fewer masks is unscorable.
        refusals: ``"lowest"`` (ours): an answer that declines has filled no mask, and one from
            which no answer can be read has no score; ``"read"``: either has filled none, as
            published.
        gamma: Decision at hits > gamma * M (§4.4), reported as ``gamma_member``; None leaves
            the decision to a calibration on documents outside.
        hit_probability: Of a right answer where the document is in context (weighted score).
        floor: Least probability of a right answer where it is not (weighted score).
        top_logprobs: 0 asks for text alone; otherwise ``score/expected`` reads the probability
            of the true answer where the target returns any.
        answer_tokens: Tokens per mask beyond those of the word itself.
        prompt: What the user types; must hold ``{masked_document}``.
        mask_model: For ``source="llm"``: the model that chooses, ``reader:NAME`` or
            ``hf:NAME_OR_FOLDER``; empty has the proxy choose.
        mask_prompt: For ``source="llm"``; must hold ``{document}``, may hold ``{masks}``.
        seed: Of ``source="random"``, together with the document's id.
    """

    stored_name: ClassVar[str] = "MbaConfig"
    later: ClassVar[tuple[str, ...]] = ("mask_model", "refusals")
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {
            "masks": 10,
            "skip_words": 5,
            "unique_words": False,
            "max_chars": 2048,
            "gamma": PUBLISHED_GAMMA,
            "refusals": "read",
            "prompt": PUBLISHED_PROMPT,
        }
    }

    masks: int = 10
    source: MaskSource = "proxy"
    spelling: str = "symspell"
    skip_words: int = 5
    unique_words: bool = True
    avoid_adjacent: bool = True
    max_chars: int = 2048
    min_masks: int = 3
    refusals: Literal["lowest", "read"] = "lowest"
    gamma: float | None = None
    hit_probability: float = 0.9
    floor: float = 0.05
    top_logprobs: int = 0
    answer_tokens: int = 16
    prompt: str = MASK_PROMPT
    mask_model: str = ""
    mask_prompt: str = LLM_MASK_PROMPT
    seed: int = 0

    @classmethod
    def paper(cls) -> MbaConfig:
        """Return the published method: M = 10, gamma = .5, the words of Fig. 6 (§5.4.2, App. B).

        What the configuration cannot name stays with the caller: the proxy (the paper's is
        GPT-2 XL) and, where a model can be had, the paper's speller,
        ``hf:oliverguhr/spelling-correction-english-base``.
        """
        return cls(**cls.presets["paper"])  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        if self.source not in get_args(MaskSource):
            known = ", ".join(repr(name) for name in get_args(MaskSource))
            raise InputError(f"source must be one of {known}, not {self.source!r}.")
        if self.spelling not in ("symspell", "none") and not self.spelling.startswith("hf:"):
            raise InputError(
                f"spelling must be 'symspell', 'none' or 'hf:NAME', not {self.spelling!r}."
            )
        if self.spelling == "hf:":
            raise InputError("spelling 'hf:' names no model.", "Give hf:NAME_OR_FOLDER.")
        one_of(self, "refusals", "lowest", "read")
        at_least(self, 1, "masks", "max_chars", "min_masks", "answer_tokens")
        for field in ("skip_words", "top_logprobs"):
            if getattr(self, field) < 0:
                raise InputError(f"{field} must not be negative, but is {getattr(self, field)}.")
        if self.min_masks > self.masks:
            raise InputError(f"min_masks ({self.min_masks}) is more than masks ({self.masks}).")
        self._check_probabilities()
        if self.mask_model and self.source != "llm":
            raise InputError(
                f"mask_model is {self.mask_model!r}, but source {self.source!r} asks no model.",
                "Set source to llm, or leave mask_model out.",
            )
        if "{masked_document}" not in self.prompt:
            raise InputError("The prompt must hold {masked_document}.")
        if "{document}" not in self.mask_prompt:
            raise InputError("mask_prompt must hold {document}.")

    def _check_probabilities(self) -> None:
        if self.gamma is not None and not 0.0 < self.gamma <= 1.0:
            raise InputError(f"gamma must lie in (0, 1], not {self.gamma}.")
        for field in ("hit_probability", "floor"):
            if not 0.0 < getattr(self, field) < 1.0:
                raise InputError(f"{field} must lie in (0, 1), not {getattr(self, field)}.")
        if self.floor >= self.hit_probability:
            raise InputError(
                f"floor ({self.floor}) must be less than hit_probability ({self.hit_probability})."
            )
