"""Texts by private prediction, after DP-SynRAG, beside private evolution at equal epsilon::

    PYTHONPATH=. python experiments/sage/prediction.py write MODEL --data DIR --epsilon 10
    PYTHONPATH=. python experiments/sage/prediction.py table --data DIR

DP-SynRAG (arXiv 2510.06719) has four steps: noisy keywords, clusters by keyword, texts by private
prediction in each cluster, and a filter. Here clusters are those of public texts, each record joins
the nearest, and nothing is filtered: the noisy keywords of 997 dialogues were "hello", "month" and
"really". A text is written token by token from the sum of its cluster's clipped logits (Amin et
al., arXiv 2407.12108). Sampling a token from softmax(sum / T), each record's logits within [-c, c],
is an exponential mechanism and costs c² / 2T² of zCDP for one record more or less. Clusters are
disjoint, so that the cost of a corpus is that of its most expensive cluster.

Private evolution draws its noise from the operating system. Private prediction has a seed here: it
is measured and not released.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.sage.private import chosen, vectors
from ragwitness.models.model_registry import load_embedder
from ragwitness.stats.evaluation import bootstrap_interval
from ragwitness.synthesis.private.evolution import PrivateConfig
from ragwitness.text.documents import load_documents

_OUT = Path("build/experiments/sage/prediction")
_DELTA = 1e-6
_CLUSTERS = 12
_CLIP = 10.0
_TOKENS = 60  # of a text
_ASK = "Write a short text like this one, about {word}, with other people:\n\n{text}"
_PUBLIC = "Write a short text in which a patient asks a doctor about {word}."


def rho_of(epsilon: float, delta: float = _DELTA) -> float:
    """Return the zCDP that (epsilon, delta) allows: epsilon = rho + 2 sqrt(rho log(1 / delta))."""
    term = math.log(1 / delta)
    return (math.sqrt(term + epsilon) - math.sqrt(term)) ** 2


def words_of(text: str) -> list[str]:
    """Return the different words of a text, in lower case."""
    return list(dict.fromkeys(re.findall(r"[a-z]{4,}", text.lower())))


def clusters_of(private: NDArray[np.float32], public: Sequence[str]) -> dict[str, list[int]]:
    """Return records by the cluster of public texts that each is nearest to.

    Clusters and their words follow from public texts, and a record's place from the record alone:
    they cost nothing.

    Args:
        private: Vectors of the records, (n, dimensions).
        public: Public texts.
    """
    from sklearn.cluster import KMeans

    pool = vectors("public", public)
    made = KMeans(_CLUSTERS, n_init=5, random_state=0).fit(pool)
    everywhere = Counter(word for text in public for word in words_of(text))
    names = []
    for n in range(_CLUSTERS):
        texts = [text for text, label in zip(public, made.labels_, strict=True) if label == n]
        inside = Counter(word for text in texts for word in words_of(text))
        lift = {
            w: c * math.log(c / everywhere[w] * len(public) / len(texts)) for w, c in inside.items()
        }
        names.append(" or ".join(sorted(lift, key=lift.__getitem__, reverse=True)[:3]))
    nearest = made.predict(private.astype(pool.dtype))
    return {name: np.flatnonzero(nearest == n).tolist() for n, name in enumerate(names)}


class Writer:
    """Writes texts by private prediction.

    Args:
        path: A GGUF file.
        temperature: T, of a sum of logits.
        seed: Of the tokens.
    """

    def __init__(self, path: Path, temperature: float, seed: int) -> None:
        import torch

        from experiments.real.eight_bits import in_eight_bits
        from experiments.real.weights import load

        torch.set_num_threads(1)
        model, self.tokenizer = load(path, "cpu")
        self.tokenizer.padding_side = "left"
        self.model = in_eight_bits(model, self.tokenizer, _PUBLIC)
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id
        self.temperature, self.torch = temperature, torch
        self.draw = torch.Generator().manual_seed(seed)

    def _laid_out(self, prompts: Sequence[str]) -> Any:
        texts = [
            self.tokenizer.apply_chat_template(
                [{"role": "user", "content": one}], tokenize=False, add_generation_prompt=True
            )
            for one in prompts
        ]
        return self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)

    def write(self, word: str, records: Sequence[str], tokens: int) -> list[str]:
        """Write texts of one cluster from so many tokens in all."""
        torch = self.torch
        given = self._laid_out([_ASK.format(word=word, text=one[:400]) for one in records])
        # 1. Which tokens can be drawn follows from public text and the noisy keyword alone.
        with torch.inference_mode():
            public = self.model(**self._laid_out([_PUBLIC.format(word=word)])).logits[0]
            allowed = torch.zeros(public.shape[-1], dtype=torch.bool)
            allowed[public.topk(500, -1).indices.flatten()] = True
            first = self.model(**given, use_cache=True, logits_to_keep=1)
        cache, length = first.past_key_values, given.input_ids.shape[1]
        texts: list[str] = []
        while tokens > 0:
            # 2. The prompts were read once; each text goes on from them.
            if more := cache.get_seq_length() - length:
                cache.crop(-more)
            logits, mask = first.logits[:, -1], given.attention_mask
            said: list[int] = []
            while tokens > 0 and len(said) < _TOKENS:
                each = logits.float()
                each = (each - each.amax(-1, keepdim=True) + _CLIP).clamp_min(-_CLIP)
                total = each.sum(0).masked_fill(~allowed, -torch.inf) / self.temperature
                token = int(torch.multinomial(total.softmax(-1), 1, generator=self.draw))
                tokens -= 1
                if token == self.tokenizer.eos_token_id:
                    break
                said.append(token)
                mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
                places = (mask.cumsum(1) - 1)[:, -1:]
                with torch.inference_mode():
                    step = self.model(
                        input_ids=torch.full((len(mask), 1), token),
                        attention_mask=mask,
                        position_ids=places,
                        past_key_values=cache,
                    )
                logits = step.logits[:, -1]
            texts.append(self.tokenizer.decode(said, skip_special_tokens=True).strip())
        return [text for text in texts if text]


def parts(data: Path) -> tuple[list[str], list[str]]:
    """Return the private records and 1,200 public texts, as in ``private.py``."""
    records = [d.text for d in load_documents(data / "healthcaremagic.jsonl").documents]
    pool = [d.text for d in load_documents(data / "medical-qa.jsonl").documents]
    pool = list(dict.fromkeys(pool))
    random.Random(0).shuffle(pool)
    return records, pool[:1200]


def write(given: argparse.Namespace) -> None:
    """Write the texts of one epsilon, a line of a file each."""
    records, public = parts(given.data)
    found = clusters_of(vectors("healthcaremagic", records), public)
    tokens = int(rho_of(given.epsilon) / (_CLIP**2 / (2 * given.temperature**2)))
    print({word: len(held) for word, held in found.items()}, f"{tokens} tokens", file=sys.stderr)
    writer = Writer(given.model, given.temperature, given.seed)
    _OUT.mkdir(parents=True, exist_ok=True)
    name = f"{given.model.stem}-{given.epsilon:g}-{given.temperature:g}-{given.seed}.jsonl"
    with (_OUT / name).open("w", encoding="utf-8") as out:
        for word, held in found.items():
            began = time.monotonic()
            if not held:
                continue
            for text in writer.write(word, [records[n] for n in held], tokens):
                out.write(json.dumps({"keyword": word, "n": len(held), "text": text}) + "\n")
            out.flush()
            print(f"{word}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def _halves(text: str) -> tuple[str, str]:
    question, _, answer = text.partition("Doctor:")
    return question.removeprefix("Patient:").strip(), answer.strip()


def table(given: argparse.Namespace) -> None:
    """Print nearness, words and use of each set of texts, paired with random public texts."""
    records, public = parts(given.data)
    embedder = load_embedder("minilm")

    def embedded(texts: Sequence[str]) -> NDArray[np.float32]:
        found = [embedder.embed(texts[n : n + 32]) for n in range(0, len(texts), 32)]
        return np.concatenate(found)

    private, pool = vectors("healthcaremagic", records), vectors("public", public)
    asked = vectors("healthcaremagic-questions", [_halves(one)[0] or "none" for one in records])
    replies = vectors("healthcaremagic-answers", [_halves(one)[1] or "none" for one in records])
    known = dict(zip(public, pool, strict=True)) | dict(zip(records, private, strict=True))
    documents = load_documents(given.data / "healthcaremagic.jsonl").documents
    theirs = [set(words_of(text)) for text in records]

    def measured(texts: Sequence[str], held: NDArray[np.float32]) -> NDArray[np.float64]:
        said = set().union(*map(words_of, texts))
        # What an index of these texts gives for a record's question, against the reply it got.
        found = held[(asked @ held.T).argmax(1)]
        shares = [len(words & said) / max(1, len(words)) for words in theirs]
        return np.array([(private @ held.T).max(1), (found * replies).sum(1), shares])

    rng = np.random.default_rng(0)
    for path in sorted(_OUT.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        texts = [row["text"] for row in rows]
        epsilon = float(path.stem.split("-")[1])
        draws = [rng.permutation(len(public))[: len(texts)] for _ in range(20)]
        chance = np.mean([measured([public[n] for n in d], pool[d]) for d in draws], axis=0)
        budget = PrivateConfig(epsilon, texts=len(texts))
        runs = [chosen(documents, public, known, budget) for _ in range(given.repeats)]
        evolved = np.mean(
            [measured(run, np.stack([known[text] for text in run])) for run in runs], axis=0
        )
        words = np.mean([len(text.split()) for text in texts])
        for name, each in (
            ("public, at random", chance),
            ("private evolution", evolved),
            ("private prediction", measured(texts, embedded(texts))),
        ):
            cells = []
            for row, base in zip(each, chance, strict=True):
                gain = row - base
                low, high = bootstrap_interval(
                    lambda n, gain=gain: gain[n].mean(), np.ones(len(gain), bool)
                )
                cells.append(f"{row.mean():.3f} ({low:+.3f} to {high:+.3f})")
            print(f"| {path.stem} | {name} | {len(texts)} | {words:.0f} | {' | '.join(cells)} |")


def main() -> None:
    """Write texts, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("write", "table"))
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--temperature", type=float, default=80.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    (write if given.step == "write" else table)(given)


if __name__ == "__main__":
    main()
