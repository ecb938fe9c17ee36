"""A lab by its address, over vectors of an embeddings endpoint."""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ragwitness.text.sample import load_sample


def _vector(text: str) -> list[float]:
    row = np.zeros(256)
    for word in text.lower().split():
        row[int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % 256] += 1
    return row.tolist()


async def _embeddings(request: Request) -> JSONResponse:
    texts = (await request.json())["input"]
    rows = [{"index": i, "embedding": _vector(text)} for i, text in enumerate(texts)]
    return JSONResponse({"data": rows})


@pytest.fixture(scope="module")
def embedder() -> Iterator[str]:
    app = Starlette(routes=[Route("/v1/embeddings", _embeddings, methods=["POST"])])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1#hashes"
    server.should_exit = True
    thread.join(5)
    listener.close()


def _write(path: Path, texts: list[str], **more: object) -> Path:
    rows = [json.dumps({"id": str(i), "text": text, **more}) for i, text in enumerate(texts)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.mark.slow
def test_an_audit_of_a_lab_over_vectors(command, embedder: str, tmp_path: Path) -> None:
    texts = [" ".join(document.text.split()[:25]) for document in load_sample()[:50]]
    corpus = _write(tmp_path / "corpus.jsonl", texts[:30])
    asked = _write(tmp_path / "asked.jsonl", texts[:2])
    known = _write(tmp_path / "known.jsonl", texts[30:])
    target = f"lab:{corpus}?k=1&retrieval={embedder}"
    options = ["--method", "rag-mia", "--documents", asked, "--known-out", known]
    out = tmp_path / "out.json"
    code, said = command(
        "audit", "--yes", target, *options, "--run", tmp_path / "run", "--json", out
    )
    assert code == 0, said
    assert len(json.loads(out.read_text())["documents"]) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("index=exact", "Unknown lab option 'index'"),
        ("retrieval=http://127.0.0.1:9/v1", "URL#MODEL"),
    ],
)
def test_what_cannot_be_used_is_said(command, tmp_path: Path, options: str, says: str) -> None:
    corpus = _write(tmp_path / "corpus.jsonl", [load_sample()[0].text])
    code, said = command("doctor", f"lab:{corpus}?{options}")
    assert code == 2
    assert says in said.replace("\n", " ")
