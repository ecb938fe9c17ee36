"""Comparing what stands in a corpus's place: division, worst case, leaks, usefulness, resuming."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.comparison.result import RESULT_TYPE, Comparison, headline
from ragwitness.comparison.run import (
    closest_f1,
    longest_run,
    run_comparison,
    worst_case,
)
from ragwitness.comparison.usefulness import QuestionAnswers, rouge_l, usefulness
from ragwitness.comparison.variants import (
    ComparisonPlan,
    Material,
    UsefulnessQuestion,
    Variant,
    check_method,
    default_held_out,
    divide,
    origin,
    own_questions,
    read_questions,
    read_variant,
    zero_shot,
)
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.leakage.attack_registry import build_attack
from ragwitness.leakage.attacks.base import Limits
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.rag.config import RagConfig
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import StoredAnswers
from ragwitness.stats.rates import Rate
from ragwitness.text.secrets import Secret
from ragwitness.text.words import plain_tokens
from tests.support.parrot import parrot_speaks


def _records(count: int = 12) -> tuple[Document, ...]:
    rng = random.Random(3)
    words = [f"{a}{b}" for a in "bdfgklmnpr" for b in ("ado", "imo", "une", "ori", "ast")]
    return tuple(
        Document(f"r{i}", " ".join(rng.choice(words) for _ in range(40)) + f" the visit of day {i}")
        for i in range(count)
    )


RECORDS = _records()
QUESTIONS = tuple(
    UsefulnessQuestion(f"visit of day {i}", (f"day {i}", "nothing at all")) for i in range(4)
)


def _write(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_held_out_records_are_background_and_give_the_questions(tmp_path: Path) -> None:
    rows = [
        {"id": one.id, "text": one.text, "question": f"q {one.id}", "answer": [one.id, "x"]}
        for one in RECORDS[:8]
    ] + [{"id": one.id, "text": one.text, "question": "q", "answer": ""} for one in RECORDS[8:]]
    own = own_questions(str(_write(tmp_path / "c.jsonl", rows)))
    assert set(own) == {one.id for one in RECORDS[:8]}
    secrets = [Secret("x", "name", one.id) for one in RECORDS]
    first = divide(RECORDS, 3, 7, own=own, secrets=secrets)
    assert len(first.held) == len(first.background) == len(first.questions) == 3
    assert {one.id for one in first.records} | first.held == {one.id for one in RECORDS}
    assert {one.text for one in first.questions} == {f"q {name}" for name in first.held}
    assert {one.record for one in first.secrets} == {one.id for one in first.records}
    assert divide(RECORDS, 3, 7, own=own) == divide(RECORDS, 3, 7, own=own)
    assert divide(RECORDS, 3, 8, own=own).held != first.held
    given = divide(RECORDS, 3, 7, background=[Document("b", "else")])
    assert [one.id for one in given.background] == ["b"]
    assert not given.questions
    with pytest.raises(InputError, match="9 of 12 records cannot be held out; 8 have"):
        divide(RECORDS, 9, 7, own=own)
    assert (default_held_out(5), default_held_out(997), default_held_out(40)) == (1, 99, 4)
    assert own_questions(str(tmp_path / "none.jsonl")) == {}
    assert own_questions("a pasted text of at least eight words is no file") == {}


def test_questions_without_an_id_are_known_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('\n{"text": "t", "question": "q", "answer": "a"}\n')
    assert own_questions(str(path)) == {"line-2": UsefulnessQuestion("q", ("a",))}


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "holds no question"),
        (b"\xff\xfe\x00", "binary or not UTF-8"),
        (b'{"question": "q"}\n', ":1 is no question"),
        (b'{"question": "q", "answer": "a"}\n[1]\n', ":2 is no question"),
        (b'{"question": "q", "answer": []}\n', ":1 is no question"),
        (b'{"question": "q", "answer": ["a", 3]}\n', ":1 is no question"),
        (b'{"question": "a\\u0000b", "answer": "a"}\n', ":1 is no question"),
    ],
)
def test_unusable_questions_are_named(tmp_path: Path, content: bytes, cause: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=cause):
        read_questions(path)
    with pytest.raises(InputError, match="Cannot read"):
        read_questions(tmp_path / "none")


def _longest(texts: Sequence[str], records: Sequence[str]) -> int:
    """By trying all pairs of places."""
    best = 0
    for one in map(plain_tokens, texts):
        for other in map(plain_tokens, records):
            for i in range(len(one)):
                for j in range(len(other)):
                    n = 0
                    while i + n < len(one) and j + n < len(other) and one[i + n] == other[j + n]:
                        n += 1
                    best = max(best, n)
    return best


def test_the_worst_case_is_what_trying_all_pairs_finds() -> None:
    rng = random.Random(5)
    texts = [one.text for one in RECORDS[:4]]
    cut = [" ".join(text.upper().split()[rng.randrange(5) :][: rng.randrange(3, 20)])
           for text in texts]  # fmt: skip
    assert longest_run(cut, texts) == _longest(cut, texts) > 2
    assert longest_run(["nothing shared"], texts) == 0
    assert longest_run(texts, texts) == max(len(plain_tokens(text)) for text in texts)
    expected = max(rouge_l(one, [other]) for one in cut for other in texts)
    assert closest_f1(cut, texts) == pytest.approx(expected)
    assert closest_f1(texts, texts) == 1.0


def test_the_worst_case_compares_each_text_with_every_record() -> None:
    swapped = [Document("r0", RECORDS[1].text), Document("r2", RECORDS[2].text)]
    found = worst_case(swapped, LeakPlan(RECORDS[:3]))
    counts = {one.label: one.count for one in found.measures}
    assert counts["repeat records 10"] == 2
    assert (found.texts, found.closest) == (2, 1.0)


def test_usefulness_is_paired_and_leaves_out_what_was_not_answered() -> None:
    base = QuestionAnswers(("a b", "c", "d"), {"m": np.array([0.5, 0.25, 0.0])})
    other = QuestionAnswers(("a b", "c c", None), {"m": np.array([0.7, 0.45, np.nan])})
    found = usefulness(other, base, 0)["m"]
    assert found.mean.value == pytest.approx(0.575)
    assert found.gain is not None
    assert (found.gain.value, found.gain.n) == (pytest.approx(0.2), 2)
    assert found.near == 1
    assert usefulness(base, None, 0)["m"].gain is None
    nothing = QuestionAnswers((None,) * 3, {"m": np.full(3, np.nan)})
    assert usefulness(nothing, base, 0) == {}


@pytest.fixture
def material() -> Material:
    return divide(RECORDS, 3, 1, questions=QUESTIONS)


def _compare(
    material: Material, variants: Sequence[Variant], run: Path, *, by_original: bool = False
) -> Comparison:
    attack = build_attack("composite", Limits(5, 64))
    plan = ComparisonPlan(material, [attack], 5, 32, RagConfig(k=1), by_original=by_original)
    return asyncio.run(run_comparison(plan, variants, run, limiter=RateLimiter()))


def test_leaks_are_of_the_originals_and_everything_resumes(
    material: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parrot_speaks(monkeypatch)
    others = tuple(Document(one.id, f"a visit of day {one.id[1:]}") for one in material.records)
    variants = [origin(material), Variant("other", others), zero_shot(material)]
    result = _compare(material, variants, tmp_path, by_original=True)
    base, other, none = result.variants

    def count(place: int, label: str) -> float:
        return next(m.count for m in result.variants[place].together if m.label == label)

    leaked = count(0, "repeat prompts 10")
    assert leaked >= 1
    assert count(1, "repeat prompts 10") == count(2, "repeat prompts 10") == 0
    assert (base.worst.closest, base.worst.longest) == (1.0, 45)  # type: ignore[union-attr]
    assert other.worst is not None
    assert other.worst.longest == 4  # "visit of day 3"
    assert none.worst is None
    assert none.indexed == 0
    assert other.usefulness["token F1"].gain is not None
    assert other.usefulness["token F1"].mean.value > none.usefulness["token F1"].mean.value
    assert any("holds the private records" in one for one in result.warnings)
    with StoredAnswers(tmp_path / "other" / "answers.jsonl") as kept:
        asked = len(kept)
    again = _compare(material, variants, tmp_path, by_original=True)
    assert again.variants == result.variants
    with StoredAnswers(tmp_path / "other" / "answers.jsonl") as kept:
        assert len(kept) == asked


def test_what_was_hardly_answered_passes_nothing_and_is_not_ranked(
    material: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parrot_speaks(monkeypatch)
    result = _compare(material, [origin(material), zero_shot(material)], tmp_path)
    other = replace(result.variants[0], name="other", together=result.variants[1].together)
    doubtful = replace(other, doubt="only 1 of 5 prompts were answered")
    conditions = RESULT_TYPE.conditions(["repeat records > 0"])
    for variant, code, told in ((other, 0, None), (doubtful, 4, "only 1 of 5 prompts")):
        found = replace(result, variants=(result.variants[0], variant))
        ruling = RESULT_TYPE.rule(found, conditions)
        assert ruling.code == code
        assert told is None or told in ruling.why
        assert RESULT_TYPE.load(json.loads(json.dumps(RESULT_TYPE.stored(found)))) == found
        assert ("none did with other" in headline(found)[1]) == (told is None)
    # What did come out, and is no chance, fails all the same.
    many = tuple(replace(m, excess=Rate(0.2, 0.1, 0.3, 9)) for m in result.variants[0].together)
    leaking = replace(doubtful, together=result.variants[0].together)
    found = replace(result, variants=(result.variants[0], leaking))
    ruling = RESULT_TYPE.rule(found, conditions)
    assert ruling.code == 3
    assert "2 of 9, excess" in ruling.why  # told whole: proved, whatever the interval
    unproved = tuple(replace(m, proved=0) for m in result.variants[0].together)
    found = replace(found, variants=(result.variants[0], replace(leaking, together=unproved)))
    ruling = RESULT_TYPE.rule(found, conditions)
    assert ruling.code == 4
    assert "may be chance" in ruling.why  # 2 of 9 records, and 3 background texts
    found = replace(found, variants=(result.variants[0], replace(leaking, together=many)))
    assert RESULT_TYPE.rule(found, conditions).code == 3


def test_files_are_read_by_id_and_texts_of_held_out_records_left_out(
    material: Material, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [{"id": one.id, "text": f"safe {one.id}"} for one in RECORDS]
    rows += [{"id": "stranger", "text": "of nobody"}, {"id": "bad", "text": ""}]
    path = _write(tmp_path / "safe.jsonl", rows)
    found = read_variant("mine", path, material, by_original=False)
    assert {one.id for one in found.documents} == {
        "stranger", *(one.id for one in material.records)
    }  # fmt: skip
    assert any("1 rows of its file" in one for one in found.warnings)
    assert any("1 of 10 texts have no record's id" in one for one in found.warnings)
    with pytest.raises(InputError, match="1 of 10 texts"):
        read_variant("mine", path, material, by_original=True)
    held = _write(tmp_path / "held.jsonl", [{"id": next(iter(material.held)), "text": "x y"}])
    with pytest.raises(InputError, match="held out"):
        read_variant("mine", held, material, by_original=False)
    for name in ("origin", "zero-shot", "a/b", ".x", ""):
        with pytest.raises(InputError):
            read_variant(name, path, material, by_original=False)


def test_methods_are_known_before_anything_is_made() -> None:
    assert check_method("sage")
    assert not check_method("redact")
    for spec, cause in (
        ("magic", "no method 'magic'"),
        ("redact+k=3", "has no setting 'k=3'"),
        ("private-evolution", "spends a privacy budget"),
    ):
        with pytest.raises(InputError, match=cause):
            check_method(spec)
