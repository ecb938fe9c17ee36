"""Serve a RAG system over a small real chat model: ``make chat``.

SmolLM2-135M-Instruct (98 MB, Apache-2.0) is fetched once. The index holds 600 of the packaged
generated documents; files of documents inside and outside are written for the printed commands.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ragwitness.core.files import write_rows
from ragwitness.models.endpoint import THREADS_VARIABLE
from ragwitness.models.smollm2 import cache_folder, fetch
from ragwitness.rag.lab import lab_target, rag_config
from ragwitness.rag.server import serve
from ragwitness.text.documents import load_documents
from ragwitness.text.sample import load_sample

INDEXED, ASKED, OUTSIDE = 600, 20, 100


def write_corpus(folder: Path) -> Path:
    """Write what is indexed, what is asked about (half of it inside) and what is surely outside."""
    documents = load_sample()
    inside, outside = documents[:INDEXED], documents[INDEXED:]
    parts = {
        "corpus": inside,
        "mine": [*inside[:ASKED], *outside[:ASKED]],
        "never-shared": outside[ASKED : ASKED + OUTSIDE],
    }
    for name, part in parts.items():
        write_rows(folder / f"{name}.jsonl", ({"id": one.id, "text": one.text} for one in part))
    return folder / "corpus.jsonl"


def main() -> None:
    """Fetch, index and serve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("build/chat"))
    parser.add_argument("--corpus", type=Path, help="documents of your own for the index")
    parser.add_argument("--template", default="langchain", help="a RAG prompt by its name")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("-k", type=int, default=2, help="passages for each question")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    os.environ[THREADS_VARIABLE] = str(chosen.threads)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    corpus = chosen.corpus or write_corpus(chosen.folder)
    generator = f"gguf:{fetch(cache_folder())}"
    config = rag_config(k=chosen.k, generator=generator, template=chosen.template)
    target = lab_target(load_documents(str(corpus)).documents, config, "none")
    for label, value in target.system.describe().items():
        print(f"{label:<24}{value}")

    def announce(line: str) -> None:
        print(line, flush=True)
        url = line.removeprefix("Listening on ")
        if url == line:
            return
        mine, never = chosen.folder / "mine.jsonl", chosen.folder / "never-shared.jsonl"
        command = os.path.relpath(Path(sys.executable).with_name("ragwitness"))
        print(
            "\nTry in a second terminal:\n\n"
            f"  {command} doctor {url}\n"
            f"  {command} audit {url} --documents {mine} --known-out {never}\n\n"
            "Where the machine is busy and answers take long, add --timeout 600. Ctrl-C ends it.",
            flush=True,
        )

    serve(target.system, port=chosen.port, announce=announce)


if __name__ == "__main__":
    main()
