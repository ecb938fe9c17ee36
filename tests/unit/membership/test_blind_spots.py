"""Warnings where a method tells nothing at a target, and versions that calibrate nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Score
from ragwitness.membership.blind_spots import blind_spots
from ragwitness.membership.method_registry import build_audit
from ragwitness.membership.plan import AuditPlan, stages_of, versions
from ragwitness.models.base import EchoModel
from ragwitness.runner.worker import Outcome
from ragwitness.text.sample import load_sample

_AUDIT = build_audit("runon", EchoModel())
_DETAILS = {"asked": 2.0, "declined": 0.0, "said again": 1.0}


def _outcomes(*values: float | None, **details: float) -> list[Outcome]:
    return [
        Outcome(Document(f"d{n}", "t"), Score(value, details=_DETAILS | details), 2, 2)
        for n, value in enumerate(values)
    ]


def _warned(outcomes, inside=(), outside=()) -> str:
    return " ".join(blind_spots(_AUDIT, outcomes, inside, outside))


def test_nothing_is_said_where_the_method_sees_something() -> None:
    seen = _outcomes(0.0, 1.0, 9.0)
    assert _warned(seen, seen[2:], seen[:1]) == ""


def test_what_cannot_be_seen_is_said_with_the_way_out() -> None:
    assert "All 6 answers declined" in _warned(_outcomes(0.0, 0.0, 0.1, declined=2.0))
    silent = _warned(_outcomes(0.0, 0.0, 0.1, **{"said again": 0.0}))
    assert "No answer repeated any words" in silent
    assert "--method" in silent
    alike = _warned(_outcomes(0.5, 0.5, 0.5))
    assert "saw the same in all 3 documents" in alike
    assert _AUDIT.name not in alike.partition("--method")[2]


def test_documents_known_to_be_inside_are_a_control() -> None:
    outside, inside = _outcomes(0.0, 2.0), _outcomes(1.0, None)
    assert "None of 2 documents known to be inside gave a sign" in _warned(
        [*outside, *inside], inside, outside
    )
    assert "None of" not in _warned([*outside, *inside], _outcomes(2.5), outside)


def _version(document: Document, share: float) -> Document:
    rng = random.Random(document.id)
    words = [f"w{rng.random():.6f}" if rng.random() < share else w for w in document.text.split()]
    return replace(document, id=f"{document.id} earlier", text=" ".join(words))


def test_versions_of_documents_in_question_are_named_and_calibrate_nothing() -> None:
    sample = load_sample()
    earlier = [_version(document, 0.1) for document in sample[:3]]
    plan = AuditPlan(tuple(sample[:10]), (*earlier, *sample[100:140]))
    assert set(versions(plan.known_out, plan.documents)) == set(earlier)
    reference = stages_of(plan, shadow=False).reference
    assert not set(earlier) & set(reference.documents)
    assert "3 known-outside documents are versions of documents in question" in reference.warning
    assert earlier[0].id in reference.warning


def test_versions_of_a_text_without_spaces_are_named() -> None:
    draw = random.Random(1)

    def text() -> str:
        return "".join(chr(draw.randrange(0x4E00, 0x9000)) for _ in range(90))

    documents = tuple(Document(f"d{n}", text()) for n in range(5))
    earlier = Document("earlier", documents[0].text[:84] + text()[:6])
    others = tuple(Document(f"k{n}", text()) for n in range(20))
    assert versions((earlier, *others), documents) == (earlier,)


def test_texts_of_one_template_are_no_versions() -> None:
    template = " ".join(f"clause{n} of the agreement stays the same here" for n in range(12))
    texts = [Document(f"n{n}", f"{template} between party{n} and holder{n * 7}") for n in range(30)]
    assert versions(tuple(texts[10:]), tuple(texts[:10])) == ()


def test_known_documents_that_are_all_versions_are_refused() -> None:
    sample = load_sample()[:3]
    plan = AuditPlan(tuple(sample), tuple(_version(document, 0.1) for document in sample))
    with pytest.raises(InputError, match="All known-outside documents are versions"):
        stages_of(plan, shadow=False)
