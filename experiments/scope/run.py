"""Who reaches what: a service with a leak between accounts, and one without, 100 pairs each.

``python experiments/scope/run.py CORPUS.jsonl [SEED]`` prints one line of JSON. 50 documents of the
corpus belong to one account, and two others are audited that must not reach them. 200 further
documents are known to be outside, and 100 belong to the two accounts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from ragwitness.core.types import Document
from ragwitness.text.documents import load_documents
from tests.support.tenants_rag import tenants_rag

OWN, OUTSIDE, OTHERS = 50, 200, 100


def write(path: Path, documents: list[Document]) -> Path:
    rows = (json.dumps({"id": one.id, "text": one.text}) for one in documents)
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def main(corpus: str, seed: int) -> None:
    documents = [Document(d.id, d.text[:900]) for d in load_documents(corpus).documents]
    random.Random(seed).shuffle(documents)
    own, outside = documents[:OWN], documents[OWN : OWN + OUTSIDE]
    others = documents[OWN + OUTSIDE : OWN + OUTSIDE + OTHERS]
    found = {}
    for name, reach in (("leak", [*others, *own]), ("sound", others)):
        with tempfile.TemporaryDirectory() as place, tenants_rag({"a": reach, "b": reach}) as url:
            folder = Path(place)
            command = [sys.executable, "-m", "ragwitness", "audit", url, "--method", "s2mia"]
            command += ["--documents", write(folder / "own.jsonl", own)]
            command += ["--known-out", write(folder / "outside.jsonl", outside)]
            command += ["--as", "alice=KEY_A", "--as", "bob=KEY_B", "--run", folder / "run"]
            environment = os.environ | {"KEY_A": "a", "KEY_B": "b"}
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            cells = json.loads((folder / "run" / "result.json").read_text())["cells"]
            found[name] = dict(Counter(cell["verdict"] for cell in cells))
    print(json.dumps({"seed": seed, **found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
