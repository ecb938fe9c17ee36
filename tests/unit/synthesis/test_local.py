"""Redaction leaves no part of a listed name; the words that many records share name nobody."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Document
from ragwitness.synthesis.baselines import Redact
from ragwitness.text.secrets import Secret

TEXT = (
    "LINDEN, Evelyn van der: the van was late. Evelyn rang +17138531234; Mrs. van der Linden's file"
    " is under evelyn_linden. Jose \u00c1lvarez drove, and Jos\u00e9 waited."
)


@pytest.mark.parametrize("record", ["r", "", "another"])
def test_no_part_of_a_listed_name_is_left(record: str) -> None:
    listed = [
        Secret("Evelyn van der Linden", "name", record),
        Secret("Jos\u00e9 \u00c1lvarez", "driver's name", record),
        Secret("(713) 853-1234", "phone", record),
    ]
    assert Redact(listed, "none").redacted(Document("r", TEXT)) == (
        "<NAME>: the van was late. <NAME> rang <PHONE>; Mrs. <NAME>'s file"
        " is under <NAME>. <DRIVER_S_NAME> drove, and <DRIVER_S_NAME> waited."
    )


def test_names_of_other_records_are_taken_as_wholes_alone() -> None:
    method = Redact([Secret("Rose May", "name", "other")], "none")
    assert method.redacted(Document("r", "In May a rose; Rose May")) == (
        "In <NAME> a <NAME>; <NAME>"  # it stands here as a whole, so each word may be of it
    )
    assert method.redacted(Document("r", "In May a rose")) == "In May a rose"
