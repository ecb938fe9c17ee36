"""Servers of other projects over the weights of the embedded reader, and databases for ours."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from ragwitness.models.reader.model import PACKAGED_WEIGHTS
from ragwitness.text.sample import load_sample
from tests.cli.conftest import command  # noqa: F401
from tests.support.postgres import Cluster, find_postgres, postgres
from tests.support.servers import free_port, served

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # traffic of a test goes to loopback only


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of llama.cpp's server over the embedded reader."""
    _needs("xllamacpp", "gguf")
    from research.gguf_file import write_gguf

    folder = tmp_path_factory.mktemp("llama")
    write_gguf(folder / "reader.gguf")
    with _llama(folder / "reader.gguf", 2048) as url:
        yield url


@pytest.fixture(scope="session")
def transformers_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of ``transformers serve``; its model's name is the folder of the weights."""
    _needs("torch", "transformers", "fastapi", "openai")
    with _transformers(PACKAGED_WEIGHTS, tmp_path_factory.mktemp("transformers")) as url:
        yield url


def _needs(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: see make services")


@contextmanager
def _llama(model: Path, context: int) -> Iterator[str]:
    port = free_port()
    program = [
        sys.executable, "-m", "tests.support.llama_server", str(model), str(port), str(context),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}/v1"
    with served(program, f"{url}/models", model.parent / "log"):
        yield url


@contextmanager
def _transformers(model: Path, folder: Path) -> Iterator[str]:
    port = free_port()
    (folder / "hub").mkdir(exist_ok=True)
    program = [
        sys.executable, "-m", "transformers.cli.transformers", "serve", str(model),
        "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32",
    ]  # fmt: skip
    base = f"http://127.0.0.1:{port}"
    with served(program, f"{base}/health", folder / "log", {"HF_HUB_CACHE": str(folder / "hub")}):
        yield f"{base}/v1"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Options that name four documents in question and four known to be outside."""
    rows = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[:80:10]]
    named = {"--documents": rows[:4], "--known-out": rows[4:]}
    options = []
    for option, lines in named.items():
        path = tmp_path / f"{option.strip('-')}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [option, str(path)]
    return options


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own."""
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL is not installed; see make services")
    with postgres(programs) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a service keeps its tables, on both kinds of database."""
    from ragwitness.service.store import open_store

    if request.param == "postgresql":
        return str(request.getfixturevalue("cluster").url)
    path = str(tmp_path / "service.db")
    open_store(path, create=True).close()
    return path
