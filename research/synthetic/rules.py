"""What the rules say where a published baseline of SAGE asks a model."""

from __future__ import annotations

import re

from ragwitness.synthesis.rules import KNOWN_TO, Rules, sentences_of
from ragwitness.text.words import STOP_WORDS

_SHARE = 0.5  # share of a record's sentences that is "useful or important"


class BaselineRules(Rules):
    """The roles by rules, those of the baselines among them."""

    def useful(self, text: str) -> str:
        """Copy out the half of a text's sentences that its other sentences agree with most."""
        sentences = sentences_of(text)
        wanted = max(1, round(len(sentences) * _SHARE))
        best = self._ranked(text)[:wanted]
        return " ".join(one for one in sentences if one in best)

    def question(self, text: str, answer: str) -> str:
        """Ask for an answer by the sentence in which it stands, without it."""
        holding = next((one for one in sentences_of(text) if answer.lower() in one.lower()), text)
        rest = re.sub(re.escape(answer), "what", holding, flags=re.IGNORECASE).strip(" .!?")
        return f"{' '.join(rest.split())[:300]}?"

    def subtopics(self, count: int) -> list[str]:
        """Name words that many records hold."""
        common = (w for w, n in self._held.most_common() if n >= KNOWN_TO)
        fit = (w for w in common if w.isalpha() and len(w) > 3 and w not in STOP_WORDS)
        return [word for word, _ in zip(fit, range(count), strict=False)]
