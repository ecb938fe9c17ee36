"""What is a copy of a document, and what another text."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Document
from ragwitness.text.overlap import same_text, without_copies


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a dose of 2.5 g", "a dose of 25 g", False),
        ("at 1,250 each", "at 1250 each", False),
        ("rooms 3-4", "rooms 34", False),
        ("it was -8 there", "it was 8 there", False),
        ("x = y + 1", "x = y * 1", False),
        ("if a <= b", "if a < b", False),
        ("up 7% a year", "up 7 a year", False),
        ("bed 7, 10 days", "bed 71, 0 days", False),
        ("¼ of it", "14 of it", False),
        ("a cut of .7 mm", "a cut of 7 mm", False),
        ("age ≤ limit", "age ≥ limit", False),
        ("☒ yes ☐ no", "☐ yes ☒ no", False),
        ("in F# or C", "in F or C", False),
        ("up ↑ now", "up ↓ now", False),
        ("so 🙂", "so 🙁", False),
        ("6³ men", "63 men", False),
        ("सीता की", "सीता का", False),
        ("ปลา กิน", "ปลา กัน", False),
        ("paid in €", "paid in £", False),
        ("👩\u200d⚕ came", "👩⚕ came", False),
        ("man sion", "mansion", False),
        ("well :)", "well :(", False),
        ("use .net here", "use net here", False),
        ("vitamin B. 12 men", "vitamin B 12 men", False),
        ("rooms 3-4", "rooms 3\u20134", True),
        ("Well, she \u201cknew\u201d (all) of it.", "well she 'knew' all of it", True),
        ("cafe\u0301 \ufeffopen", "Caf\u00e9 open!", True),
    ],
)
def test_a_copy_has_the_same_numbers_and_signs(one: str, other: str, same: bool) -> None:
    assert (same_text(Document("a", one)) == same_text(Document("b", other))) == same


def test_of_copies_the_first_is_kept_in_its_place() -> None:
    texts = ["One way.", "Another way.", "one  way", "A third."]
    kept = without_copies([Document(str(n), text) for n, text in enumerate(texts)])
    assert [one.id for one in kept] == ["0", "1", "3"]
