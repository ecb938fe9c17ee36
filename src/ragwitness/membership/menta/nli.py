"""An NLI model from transformers as the judge of entailment; needs the extra ``hf``."""

from __future__ import annotations

import threading
from typing import Any

from ragwitness.errors import ModelError
from ragwitness.models.hf_loading import identity, import_libraries, load_pretrained

__all__ = ["NLI_MODEL", "NliEntailment"]

NLI_MODEL = "tasksource/deberta-base-long-nli"
"""What MEntA judges with."""

_LONGEST = 1280  # tokens that model was trained with; a premise beyond is cut


class NliEntailment:
    """Probability that a premise entails a hypothesis; loads at the first pair.

    Args:
        source: Hub name or local folder of a sequence classifier with a class whose label
            begins with "entail".
    """

    def __init__(self, source: str = NLI_MODEL) -> None:
        self._source = source
        self._model: Any = None
        self._tokenizer: Any = None
        self._entailed = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Identity with version, once loaded."""
        return self._source if self._model is None else identity(self._source, self._model.config)

    def __call__(self, premise: str, hypothesis: str) -> float:
        """Return the probability of the class "entailment".

        Raises:
            MissingExtraError: torch or transformers is not installed.
            ModelError: There is no such model, or it has no such class.
        """
        torch, _ = import_libraries("the NLI model of MEntA")
        # Fast tokenizers keep the truncation as state and refuse a second thread that sets it.
        with self._lock:
            if self._model is None:
                self._load()
            longest = min(_LONGEST, int(self._model.config.max_position_embeddings))
            pair = self._tokenizer(
                premise,
                hypothesis,
                truncation="only_first",
                max_length=longest,
                return_tensors="pt",
            )
        with torch.inference_mode():
            logits = self._model(**pair).logits[0]
        return float(torch.softmax(logits.float(), -1)[self._entailed])

    def _load(self) -> None:
        """Load; the model is set last, because it says that the rest is there."""
        _, transformers = import_libraries("the NLI model of MEntA")
        model = load_pretrained(transformers.AutoModelForSequenceClassification, self._source)
        labels = {int(i): str(label).casefold() for i, label in model.config.id2label.items()}
        found = [i for i, label in labels.items() if label.startswith("entail")]
        if not found:
            raise ModelError(
                f"{self._source} has no class 'entailment', but {', '.join(labels.values())}.",
                f"Give an NLI model, such as {NLI_MODEL}.",
            )
        self._tokenizer = load_pretrained(transformers.AutoTokenizer, self._source)
        self._entailed = found[0]
        self._model = model.eval()
