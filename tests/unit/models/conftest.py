"""Fixtures around one small random model; no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragwitness.models.reader.model import Reader
from tests.unit.models.models_fakes import TEXT, write_folder

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Session-wide model folder; copy it before changing anything."""
    return write_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def reader(folder: Path) -> Reader:
    return Reader.load(folder)


@pytest.fixture(scope="session")
def long_context() -> str:
    return " ".join([TEXT.strip()] * 4)
