"""The training run: determinism, resume, export, and the constructed circuits."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from research.reader import corpus as sources
from research.reader import loop
from research.reader.batches import RowMaker, batch_at
from research.reader.config import PRESETS, TrainConfig
from research.reader.corpus import Corpus
from research.reader.export import CHAT_TEMPLATE, export, named_weights
from research.reader.grammar.domains import DOMAINS, cluster
from research.reader.loop import rate_at


def _words(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [word for _ in range(60) for word in cluster(rng.choice(list(DOMAINS)), rng, 1, 60)[0]]


CORPUS = Corpus({"a": _words(1), "b": _words(2)}, {"a": _words(3)})
TOY = PRESETS["toy"]


def _run(work: Path, config: TrainConfig = TOY, steps: int | None = None) -> loop.Run:
    run = loop.prepare(config, work, CORPUS)
    while run.step < (config.schedule.steps if steps is None else steps):
        loop.train_step(run, batch_at(run.maker, config, run.step), run.reader.hidden)
    return run


def _same(first: loop.Run, second: loop.Run) -> bool:
    pairs = zip(first.reader.parameters(), second.reader.parameters(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def test_two_runs_agree_and_a_resumed_run_equals_a_straight_one(tmp_path: Path) -> None:
    straight, again = _run(tmp_path / "one"), _run(tmp_path / "two")
    assert _same(straight, again)
    half = _run(tmp_path / "three", steps=3)
    loop.save_checkpoint(half, tmp_path / "three")
    resumed = _run(tmp_path / "three")
    assert resumed.step == straight.step
    assert _same(straight, resumed)


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    other = dataclasses.replace(TOY, seed=1)
    assert not _same(_run(tmp_path / "one", steps=1), _run(tmp_path / "two", other, steps=1))


def test_batches_depend_on_seed_and_step_only(tmp_path: Path) -> None:
    run = loop.prepare(TOY, tmp_path, CORPUS)
    fresh = RowMaker(run.vocabulary, CORPUS.training, TOY.data)
    late = batch_at(run.maker, TOY, 5)
    assert torch.equal(late.tokens, batch_at(fresh, TOY, 5).tokens)
    assert not torch.equal(batch_at(fresh, TOY, 4).tokens, late.tokens)
    assert not torch.equal(batch_at(fresh, dataclasses.replace(TOY, seed=9), 5).tokens, late.tokens)


def test_learning_rate_warms_up_holds_and_falls() -> None:
    schedule = PRESETS["cpu"].schedule
    rates = [rate_at(schedule, step) for step in range(schedule.steps)]
    assert rates[0] < rates[schedule.warmup_steps] == 1.0
    assert rates[-1] < 0.05
    peak_end = int(schedule.steps * (1 - schedule.decay_share))
    assert all(
        earlier >= later
        for earlier, later in zip(rates[peak_end:], rates[peak_end + 1 :], strict=False)
    )


def test_a_second_stage_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    first = dataclasses.replace(TOY, schedule=dataclasses.replace(TOY.schedule, steps=2))
    schedule = dataclasses.replace(TOY.schedule, begin=2, steps=4, peak=0.4)
    second = dataclasses.replace(TOY, name="second", schedule=schedule)
    with pytest.raises(ValueError, match="second goes on from step 2"):
        loop.prepare(second, tmp_path, CORPUS)
    loop.save_checkpoint(_run(tmp_path, first), tmp_path)
    assert loop.prepare(second, tmp_path, CORPUS).step == 2
    assert 0 < rate_at(schedule, 2) <= rate_at(schedule, 3) <= 0.4


def test_export_gives_the_same_logits_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    run = _run(tmp_path / "work", steps=1)
    export(run.reader, run.vocabulary, tmp_path / "weights")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "weights", dtype=torch.float32
    ).eval()
    assert type(model).__name__ == "Qwen3ForCausalLM"
    tokens = batch_at(run.maker, TOY, 0).tokens[:1]
    with torch.no_grad():
        for parameter in run.reader.parameters():
            parameter.copy_(parameter.half().float())
        ours, theirs = run.reader(tokens), model(tokens).logits
    assert torch.allclose(ours, theirs, atol=2e-3), float((ours - theirs).abs().max())


def test_exported_template_builds_the_trained_layout(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    run = loop.prepare(TOY, tmp_path / "work", CORPUS)
    export(run.reader, run.vocabulary, tmp_path / "weights")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "weights")
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "<|system|><|user|>one<|assistant|> two<|end|><|assistant|>"
    assert (tmp_path / "weights" / "chat_template.jinja").read_text("utf-8") == CHAT_TEMPLATE
    assert tokenizer("<|system|>").input_ids == [run.vocabulary.system]


def test_exported_names_are_complete(tmp_path: Path) -> None:
    run = loop.prepare(TOY, tmp_path, CORPUS)
    weights = named_weights(run.reader)
    assert len(weights) == 2 + 11 * TOY.model.layers
    assert all(weight.dtype == torch.float16 for weight in weights.values())


def test_constructed_heads_look_back_exactly(tmp_path: Path) -> None:
    run = loop.prepare(TOY, tmp_path, CORPUS)
    tokens = batch_at(run.maker, TOY, 0).tokens[:1]
    time = tokens.shape[1]
    block = run.reader.blocks[0]
    with torch.no_grad():
        state = run.reader.embedding(tokens)
        query, key, _ = block.project(state, run.reader.cosine[:time], run.reader.sine[:time])
        scores = query @ key.transpose(-1, -2) / 8 + torch.full((time, time), -1e9).triu(1)
        attention = scores.softmax(-1)[0]
    for head in range(3):
        assert attention[head].diagonal(-head - 1).mean() > 0.95


def test_only_permitted_packages_are_training_text() -> None:
    assert set(sources.TRAINING_PACKAGES) == {
        "python3.11-doc", "wordnet-base", "apache2-doc", "dict-jargon", "dict-devil",
    }  # fmt: skip
    assert not set(sources.TRAINING_PACKAGES) & set(sources.EVALUATION_PACKAGES)


def test_missing_text_names_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources.shutil, "which", lambda _: None)
    with pytest.raises(sources.SourceError, match="dpkg-deb -x"):
        sources.load_corpus(tmp_path, 0.02)


def test_corpus_reads_each_source_from_the_cache_and_holds_the_end_back(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    for package in sources.TRAINING_PACKAGES:
        (tmp_path / "text" / f"{package}.json").write_text('["a", "b", "c", "d"]', "utf-8")
    corpus = sources.load_corpus(tmp_path, 0.25)
    assert set(corpus.training) == set(sources.TRAINING_PACKAGES)
    assert corpus.training["dict-devil"] == ["a", "b", "c"]
    assert corpus.held_out["dict-devil"] == ["d"]
