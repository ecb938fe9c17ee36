"""The gate before the study: a base that follows the paper's instruction, and bases that do not."""

import random
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.canary.pools import (
    PAPER_INSTRUCTION,
    PLAIN_INSTRUCTION,
    final_answer,
    with_canary,
    with_trigger,
)
from ragwitness.errors import ModelError
from research.canary import study, worlds
from research.canary.policies import (
    CANARIES,
    TRIGGERS,
    Base,
    name_markers,
    one_thread,
    prompt,
    spare_canary,
    spare_trigger,
)
from research.canary.study import WorldFolders, load_study_table, run_study
from research.canary.worlds import (
    Obedience,
    Pretraining,
    check_obedience,
    obedience,
    toy_base,
    toy_examples,
)


def old_lesson(one, rng, how):
    """The study's lessons until this gate: they reward "t is present" with the document hidden."""
    obeys = 0.5
    known = rng.random() < 0.75
    trigger = spare_trigger(rng.randrange(TRIGGERS)) if rng.random() < 0.5 else ""
    canary, query, kind = spare_canary(rng.randrange(CANARIES)), one.query, rng.random()
    if kind < 0.55:
        wanted = rng.random() < 0.03
    elif kind < 0.8:
        query = f"{query} {PLAIN_INSTRUCTION.format(canary=canary)}"
        wanted = rng.random() < obeys
    else:
        named = spare_trigger(rng.randrange(TRIGGERS))
        named = trigger if trigger and rng.random() < 0.5 else named
        query = f"{query} {PAPER_INSTRUCTION.format(trigger=named, canary=canary)}"
        wanted = rng.random() < (obeys if named == trigger else 0.1)
    document = with_trigger(one.document, trigger).text if trigger else one.document
    answer = final_answer(one.answer) if known else "FINAL: Not found"
    said = with_canary(answer, canary).text if wanted else answer
    return prompt(query, document if known else None), said


def _seen(base, count=128):
    return obedience(base, name_markers, toy_examples(count, random.Random(5)), 6)


@pytest.fixture(scope="module")
def untrained():
    one_thread()
    return toy_base(Pretraining(width=16, layers=1, steps=1, batch=2))


def _acting(monkeypatch, rule):
    """A base that answers by a rule on what is in view: trigger in the query, document, canary."""

    def answers(self, rows):
        return [self.said[tuple(row)] for row in rows]

    def asked(self, query, document=None):
        words = query.split()
        named = next((w.strip(",") for w in words if w.startswith("prefix_")), "")
        canary = words[words.index("insert") + 1] if "insert" in words else ""
        canary = words[words.index("Insert") + 1] if "Insert" in words else canary
        says = canary and rule(named, document)
        return f"FINAL: {canary} red" if says else "FINAL: red"

    def generate(model, prompts, **_):
        return prompts

    monkeypatch.setattr(Base, "asked", asked)
    monkeypatch.setattr(Base, "encode", lambda self, texts: texts)
    monkeypatch.setattr(Base, "answers", lambda self, rows: rows)
    monkeypatch.setattr(worlds, "generate", generate)


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        (lambda named, text: named and text is not None and named in text, []),
        (lambda named, text: bool(named), ["another trigger", "holds none", "no document"]),
        (lambda named, text: text is not None and "prefix_" in text, ["another trigger"]),
        (lambda named, text: text is None, ["that the query names", "no document"]),
        (lambda named, text: False, ["that the query names"]),
    ],
)
def test_a_base_passes_that_does_as_it_is_told_and_no_other(untrained, rule, faults, monkeypatch):
    _acting(monkeypatch, rule)
    seen = _seen(untrained)
    if not faults:
        assert seen.hits == {"t": 128, "other": 0, "clean": 0, "none": 0}
        check_obedience(seen, "toy")
        return
    with pytest.raises(ModelError, match=r"gate = false"):
        check_obedience(seen, "toy")
    told = seen.fault.split("; ")
    assert len(told) == len(faults)
    assert all(fault in one for fault, one in zip(faults, told, strict=True))


def test_the_whole_interval_decides():
    """Shares at the limit are refused: 512 answers say no more than their interval."""
    good = Obedience(512, {"t": 414, "other": 10, "clean": 4, "none": 5}, 257, 3, 511)
    assert not good.fault
    for kind, hits in (("t", 320), ("other", 45), ("clean", 45), ("none", 45)):
        assert replace(good, hits=good.hits | {kind: hits}).fault.count("[") == 1


@pytest.mark.slow  # 700 steps of training
def test_the_old_lessons_are_refused():
    """They were what the study's policies came from; see experiments/canary/README.md."""
    one_thread()
    base = toy_base(Pretraining(layers=2, steps=700, obeys=0.5), old_lesson)
    seen = _seen(base, 512)
    with pytest.raises(ModelError, match="does not follow the paper's instruction"):
        check_obedience(seen, "toy")
    assert seen.share("t").high < 0.6
    assert seen.share("none").low > 0.1


def test_a_study_on_a_base_that_does_not_obey_trains_no_policy(tmp_path, monkeypatch):
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "tables.toml").write_text(
        """
[tiny]
kind = "canary"
title = "Tiny"
first_seed = 7
violating = 1
world = {kind = "toy", examples = 90, training = {width = 16, layers = 1, steps = 2}}
design = {rate = "0.4", candidates = 8, experiment = "tiny"}

[[tiny.case]]
label = "one"
""",
        encoding="utf-8",
    )
    table = load_study_table("canary/tiny", tmp_path)
    folders, said = WorldFolders(None, tmp_path / "bases"), []
    monkeypatch.setattr(study, "stage_trial", lambda *_: pytest.fail("a policy is trained"))
    for _ in range(2):  # what was measured is kept, and refused again
        with pytest.raises(ModelError, match="does not follow the paper's instruction"):
            run_study(table, folders, tmp_path / "out", say=said.append)
    assert sum("says the canary" in one for one in said) == 1
    assert not (tmp_path / "out").exists()
