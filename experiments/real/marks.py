r"""Marked documents at real chat models, by the product's own code.

::

    PYTHONPATH=. python experiments/real/marks.py MODEL DATA fairytaleqa.jsonl --work WORK

MODEL is a GGUF file, which llama.cpp runs. Ten marked documents are indexed beside three hundred
others, ten are not (``--n``); ``ragwitness mark`` draws their words out of its packaged list, and
the audit asks about all. Answers are kept, so the same command goes on. The target answers as it
does, or by ``--manner``: ``filter`` withholds every answer with six words of a retrieved passage in
a row, and ``own-words`` asks the model to use its own words.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.real.one_document import LlamaTarget
from experiments.real.table import Application, texts_of
from ragwitness.core.types import Answer, Document, Query
from ragwitness.membership.marks.key import MarksKey, read_key, write_key
from ragwitness.membership.marks.lots import find_lots, word_pool
from ragwitness.membership.marks.questions import tail
from ragwitness.membership.marks.run import MarksAudit, ask_about_marks
from ragwitness.models.endpoint import GgufModel
from ragwitness.stats.rates import proportion_interval

ALPHA = 0.05


def make_key(path: Path, texts: Sequence[str], number: int) -> MarksKey:
    """Return the key of the first texts that can be found beside the others, or a kept one."""
    if not path.exists():
        documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
        pool, draw, marked = word_pool(documents), random.Random("places"), []
        for document in documents:
            lots = find_lots(document, 12, pool, draw, braces=False)
            chances = [1 / len(lot.alternatives) for lot in lots.lots]
            if tail(chances, len(chances)) <= ALPHA / number:
                marked.append(lots)
            if len(marked) == number:
                print(f"{document.id}: the last of {len(marked)} documents with enough lots")
                break
        write_key(path, MarksKey.fresh(marked))
    return read_key(path)


def withheld(answer: str, passages: Sequence[str], size: int = 6) -> bool:
    """Whether an answer holds this number of words of a passage in a row."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}

    return bool(runs(answer) & set().union(*map(runs, passages)))


class OwnWords(LlamaTarget):
    """A target that is told to answer in its own words."""

    async def ask(self, query: Query) -> Answer:
        """Return the answer."""
        request = f"{query.prompt}\nAnswer in your own words. Do not quote."
        return await super().ask(replace(query, prompt=request))


class Guarded(LlamaTarget):
    """A target whose guard withholds every answer that quotes a passage."""

    async def ask(self, query: Query) -> Answer:
        """Return the answer, or a refusal in its place."""
        answer = await super().ask(query)
        if withheld(answer.text, self.application.retrieve(query.prompt)):
            return Answer("I cannot answer that.")
        return answer


MANNERS = {"plain": LlamaTarget, "filter": Guarded, "own-words": OwnWords}


def main() -> None:
    """Mark, index half, ask about all, and print a line of the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("corpus")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--prompt", default="langchain")
    parser.add_argument("--passages", nargs=3, type=int, default=[500, 100, 2], metavar="N")
    parser.add_argument("--n", nargs=2, type=int, default=[10, 10], metavar="N")
    parser.add_argument("--manner", choices=MANNERS, default="plain")
    given = parser.parse_args()
    # 1. Texts in another order than in the other measurements, and lots.
    texts = [t for t in texts_of(given.data / given.corpus) if 150 <= len(t.split()) <= 450]
    random.Random(7).shuffle(texts)
    inside, number = given.n[0], sum(given.n)
    name = f"marks-{Path(given.corpus).stem}-{number}.json"
    key = make_key(given.work / name, texts, number)
    own = {document.text for document in key.documents}
    others = [text for text in texts if text not in own][:300]
    copies = [d.copy(drawn) for d, drawn in zip(key.documents, key.drawn, strict=True)]
    # 2. The application holds half of them.
    size, overlap, k = given.passages
    texts = [*copies[:inside], *others]
    application = Application(texts, size, overlap, k, given.prompt)
    model = GgufModel(str(given.model))
    target = MANNERS[given.manner](application, model, f"{given.model.stem} {given.prompt}")
    parts = ("marks", given.model.stem, Path(given.corpus).stem, given.manner, str(number))
    folder = given.work / "-".join(parts)
    work = ask_about_marks(MarksAudit(key, ALPHA), target, run=folder, in_flight=1)
    result = asyncio.run(work)
    # 3. The verdicts on those inside, and on the others.
    cells = [f"{given.model.stem}, {Path(given.corpus).stem}, {given.manner}"]
    for side in (result.documents[:inside], result.documents[inside:]):
        called = sum(verdict.decision == "in" for verdict in side)
        low, high = proportion_interval(called, len(side))
        cells += [
            f"{called}/{len(side)} [{low:.2f}, {high:.2f}]",
            f"{sum(v.p_value <= ALPHA for v in side)}",
            " of ".join(
                str(sum(getattr(v, n) for v in side)) for n in ("right", "answered", "lots")
            ),
            f"{sum(v.queries for v in side) / len(side):.1f}",
        ]
        ways = Counter((r.way, r.named == r.drawn) for v in side for r in v.evidence if r.named)
        print({f"{way} {'right' if hit else 'wrong'}": n for (way, hit), n in ways.items()})
    print("| " + " | ".join(cells) + f" | {result.log10_e:.1f} |")


if __name__ == "__main__":
    main()
