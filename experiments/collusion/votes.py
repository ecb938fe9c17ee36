"""Answers by votes with a real model: the words that are released for questions on two corpora.

    PYTHONPATH=. python experiments/collusion/votes.py --data DIR --model gguf:FILE [--questions 10]

The 24 best documents of each question vote (hashed words; in the product the threshold is public
and the same for all questions), each with a life of its own, so that what one question finds is at
its best. Documents are cut at 120 words and answers at 16 tokens.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.usefulness import pairs_of
from ragwitness.core.types import Message
from ragwitness.models.base import ChatPrompt
from ragwitness.models.model_registry import load_embedder, load_language_model
from ragwitness.privacy.codes import word_weights
from ragwitness.service.votes import VotePromise, ballot, voted_words

_VOTERS, _WORDS, _TOKENS, _BATCH = 24, 120, 16, 64
_ASK = "Answer in five words at most, from this text alone.\n\nText: {}\n\nQuestion: {}"


class Unbounded:
    """Every document has votes left."""

    def use(self, names: Sequence[str], most: int) -> set[str]:
        """Return all of them."""
        del most
        return set(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", type=int, default=10)
    options = parser.parse_args()
    model, embedder = load_language_model(options.model), load_embedder("hashing:512")
    for name in ("healthcaremagic", "fairytaleqa"):
        (documents, pairs), _ = pairs_of(name, options.data)
        texts = [" ".join(text.split()[:_WORDS]) for text in documents]
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        vectors = np.concatenate([embedder.embed(batch) for batch in batches])
        released = own = 0
        for at, question in pairs[: options.questions]:
            scores = vectors @ embedder.embed([question[:500]])[0]
            answers: dict[str, str] = {}

            def vote(asked: str, text: str, answers: dict[str, str] = answers) -> str:
                prompt = ChatPrompt((Message("user", _ASK.format(text, asked[:300])),))
                answers[text] = model.generate([prompt], max_tokens=_TOKENS)[0].text
                return answers[text]

            threshold = float(np.sort(scores)[-_VOTERS])
            rows = [(str(n), text, float(scores[n])) for n, text in enumerate(texts)]
            promise = VotePromise(threshold=threshold)
            words = voted_words(question, rows, vote, promise, Unbounded())
            counts = Counter(w for said in answers.values() for w in ballot(said, question, 4))
            print(f"{name}: {counts.most_common(3)}; released {words}", flush=True)
            released += bool(words)
            own += bool({*words} & {*word_weights(texts[at])})
        asked = len(pairs[: options.questions])
        print(f"{name}: words for {released} of {asked}, of the own document for {own}", flush=True)


if __name__ == "__main__":
    main()
