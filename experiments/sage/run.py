"""What attacks get out of a RAG system, by what stands in the private records' place.

    python experiments/sage/run.py --data DIR [--corpus NAME] [--method NAME ...] [--prompts N]
    python experiments/sage/run.py --table [--prompts N]

Answers are kept, so a broken run goes on where it stopped; what is finished is not asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from corpora import Config, Material, load, replaced
from tables import table

from ragwitness.cli.common import one_thread_per_answer
from ragwitness.comparison.usefulness import answer_lengths, measure_utility
from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Query
from ragwitness.leakage.attack_registry import build_attack
from ragwitness.leakage.attacks.base import Attack, Limits, Transcript, write_transcripts
from ragwitness.leakage.run import ask_attacks, score_leaks
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.rag.lab import lab_target, rag_config
from ragwitness.rag.target import LabTarget
from ragwitness.report.result_registry import to_json
from ragwitness.runner.response_store import ResponseStore, StoredQuery, query_key
from research.leak_counts import published_counts

_HERE = Path(__file__).parent
_OUT = Path("build/experiments/sage")
_MEASURES = ("ROUGE-L", "BLEU-1 (as published)", "token F1")


def _attacks(config: Config, corpus: str) -> list[Attack]:
    limits = Limits(config["prompts"], config["answer_tokens"], config["seed"])
    targeted = config["corpora"][corpus]["targeted"]
    names = [targeted if name == "targeted" else name for name in config["attacks"]]
    return [build_attack(name, limits) for name in names]


async def _system(
    config: Config, material: Material, method: str, folder: Path
) -> tuple[LabTarget, Any]:
    """The system behind a method, and what it says of itself."""
    where, _, spec = method.partition(":")
    documents = material.records
    if where == "corpus":
        documents = await replaced(material, spec, folder)
    defense = spec if where == "query" else "none"
    target = lab_target(documents, rag_config(**config["rag"]), defense)
    return target, {"indexed": len(documents)}


def _originals(told: Sequence[Transcript], target: LabTarget, material: Material):
    """Transcripts with the original records in place of the passages.

    As in the published code: whatever was retrieved, outputs are held against the originals.
    """
    origin = {one.id: one.text for one in material.records}
    # Texts that stand for no record have no original: nothing of one was retrieved.
    by_text = {passage.text: origin.get(passage.document) for passage in target.system.passages}
    return [
        replace(one, contexts=tuple(filter(None, map(by_text.get, one.contexts or ()))))
        for one in told
    ]


async def _answers(config: Config, material: Material, target: LabTarget, folder: Path):
    """Answers to the questions, each asked once."""
    said = []
    with ResponseStore(folder / "questions" / ANSWERS) as journal:
        for place, question in enumerate(material.questions):
            query = Query(question.text, max_tokens=config["answer_tokens"])
            key = query_key(target.name, query)
            if (answer := journal.get(key)) is None:
                asked = StoredQuery(target.name, "questions", str(place), query)
                answer = journal.put(key, await target.ask(query), asked)
            said.append(answer.text)
    return said


def _utility(material: Material, said: list[str]) -> Config | None:
    if not said:
        return None
    references = [[question.answer] for question in material.questions]
    found = measure_utility(said, references, _MEASURES)
    scores = {name: values.tolist() for name, values in found.items()}
    return {"scores": scores, "lengths": answer_lengths(said).tolist()}


async def _measured(config: Config, corpus: str, method: str, data: Path, folder: Path) -> Config:
    material = load(corpus, config, data)
    target, about = await _system(config, material, method, folder)
    asked = await ask_attacks(
        _attacks(config, corpus), config["prompts"], target.for_owner(), run=folder
    )
    told = _originals(asked.transcripts, target, material)
    write_transcripts(folder / "transcripts.jsonl", told)
    plan = LeakPlan(
        material.records, material.background, material.secrets, material.decoys, config["seed"]
    )
    result = score_leaks(told, plan, asked=asked)
    said = await _answers(config, material, target, folder)
    sizes = [len(one.output.split()) for one in told]
    about |= {"mean words of an answer": float(np.mean(sizes)), "utility": _utility(material, said)}
    counts = {}
    for attack in result.attacks:
        answers = [transcript for transcript in told if transcript.attack == attack.name]
        counts[attack.name] = [asdict(measure) for measure in published_counts(answers)]
    about |= {"published": counts}
    return {"corpus": corpus, "method": method, "config": config, **about, **to_json(result)}


def _run(config: Config, corpus: str, method: str, data: Path, out: Path) -> None:
    folder = out / corpus / method.replace(":", "-")
    path = folder / "result.json"
    if path.exists() and json.loads(path.read_text())["config"] == config:
        print(f"{corpus} {method}: finished before", flush=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    found = asyncio.run(_measured(config, corpus, method, data, folder))
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{corpus} {method}: done", flush=True)


def main() -> None:
    """Run what is named, or print the tables of what is finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", nargs="*")
    parser.add_argument("--method", nargs="*")
    parser.add_argument("--prompts", type=int, help="of each attack; fewer to try it")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    config = tomllib.loads((_HERE / "config.toml").read_text())
    if options.prompts:
        few = min(config["questions"], options.prompts)
        config |= {"prompts": options.prompts, "questions": few}
    out = _OUT / str(config["prompts"])
    if not options.table:
        if not options.data or not options.data.is_dir():
            raise SystemExit("skipped: give the folder of the data sets with --data")
        one_thread_per_answer()
        for corpus in options.corpus or config["corpora"]:
            own = [*config["methods"], *config["corpora"][corpus].get("methods", ())]
            for method in options.method or own:
                _run(config, corpus, method, options.data, out)
    text = table(config, out)
    (out / "table.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
