"""Going on from an exported reader: the grown one says the same at first, and resumes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from research.reader import loop
from research.reader.batches import batch_at
from research.reader.config import PRESETS, TrainConfig
from research.reader.export import export
from research.reader.grow import StartError
from tests.research.reader.test_reader_lessons import CORPUS

# A reader from before the lessons: its tokenizer knows no gap.
TOY = dataclasses.replace(PRESETS["toy"], data=PRESETS["cpu"].data)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("start")
    run = loop.prepare(TOY, work, CORPUS)
    export(run.reader, run.vocabulary, work / "weights")
    return work / "weights"


def _grown(start: Path, layers: int = 6, inserted: tuple[int, ...] = (3, 5)) -> TrainConfig:
    return dataclasses.replace(
        TOY,
        name="grown",
        start=str(start),
        inserted=inserted,
        model=dataclasses.replace(TOY.model, layers=layers),
        data=PRESETS["lessons"].data,
    )


def _run(work: Path, config: TrainConfig, steps: int) -> loop.Run:
    run = loop.prepare(config, work, CORPUS)
    while run.step < steps:
        loop.train_step(run, batch_at(run.maker, config, run.step), run.reader.hidden)
    return run


def test_a_grown_reader_says_what_the_old_one_said(start: Path, tmp_path: Path) -> None:
    old = loop.prepare(TOY, start.parent, CORPUS)
    grown = loop.prepare(_grown(start), tmp_path, CORPUS)
    assert grown.vocabulary.gap == old.vocabulary.size == grown.vocabulary.size - 1
    tokens = batch_at(old.maker, TOY, 0).tokens[:1]
    with torch.no_grad():
        for parameter in old.reader.parameters():
            parameter.copy_(parameter.half().float())
        before, after = old.reader(tokens), grown.reader(tokens)
    assert torch.allclose(before, after[..., :-1], atol=1e-3)
    rows = grown.reader.embedding.weight
    assert torch.equal(rows[grown.vocabulary.gap], rows[grown.vocabulary.masks[0]])


def test_lessons_resume_to_the_same_weights_wherever_they_were_killed(
    start: Path, tmp_path: Path
) -> None:
    config = _grown(start)
    straight = _run(tmp_path / "straight", config, 4)
    for killed in (1, 2, 3):
        work = tmp_path / f"killed-{killed}"
        half = _run(work, config, killed)
        loop.save_checkpoint(half, work)
        (work / "checkpoint.partial").write_bytes(b"the end of a write that was killed")
        resumed = _run(work, config, 4)
        pairs = zip(straight.reader.parameters(), resumed.reader.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


def test_every_kind_of_lesson_has_a_loss(start: Path, tmp_path: Path) -> None:
    seen = loop.validate_kinds(loop.prepare(_grown(start), tmp_path, CORPUS), rows=3, length=1024)
    assert {"question", "gap", "role", "complete, defended"} <= set(seen)
    assert all(0 < value < 20 for value in seen.values())


def test_a_reader_of_another_shape_is_refused(start: Path, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="has 4 layers"):
        loop.prepare(_grown(start, layers=6, inserted=(3,)), tmp_path, CORPUS)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "tokenizer.json").write_bytes((start / "tokenizer.json").read_bytes())
    (broken / "config.json").write_text(json.dumps({}))
    with pytest.raises(StartError, match="missing"):
        loop.prepare(_grown(broken), tmp_path / "work", CORPUS)
