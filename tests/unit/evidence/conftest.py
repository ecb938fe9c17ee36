"""A sealed and logged audit, made once, and its packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragwitness.models.base import TextScores
from ragwitness.models.reader.model import Reader
from tests.unit.evidence.forger import Forger, audited, called

_known: dict[tuple, TextScores] = {}


@pytest.fixture(scope="module", autouse=True)
def _reader_remembers() -> Iterator[None]:
    """The reader scores a text once: the same packs are verified again and again here.

    No longer than a module: other tests of the same process must meet the reader as it is.
    """
    score_one = Reader._score_one

    def remembered(self: Reader, text: str, prompt, top: int, *, reuse: bool) -> TextScores:
        key = (self.name, text, prompt.tobytes(), top)
        if key not in _known:
            _known[key] = score_one(self, text, prompt, top, reuse=reuse)
        return _known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "_score_one", remembered)
        yield


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two audits of the same documents in one log, the second one with its pack."""
    folder = tmp_path_factory.mktemp("sealed")
    log = folder / "log"
    audited(folder, "--runs-log", log, run="first")
    (folder / "seen").write_bytes((log / "checkpoint").read_bytes())
    run = audited(folder, "--runs-log", log)
    assert called("seal", run, "-o", folder / "open.zip") == 0
    assert called("seal", run, "-o", folder / "hidden.zip", "--hide-texts") == 0
    return folder


@pytest.fixture
def honest(place: Path) -> Forger:
    """The open pack, taken apart."""
    return Forger.of(place / "open.zip", place / "auditor.key")


@pytest.fixture
def hidden(place: Path) -> Forger:
    """The pack with hidden texts, taken apart."""
    return Forger.of(place / "hidden.zip", place / "auditor.key")
