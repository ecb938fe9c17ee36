"""What errands do in common: a wrong target is refused before any document is read."""

from __future__ import annotations

import pytest

from ragwitness.errands.audit import AuditErrand
from ragwitness.errands.leak import LeakErrand
from ragwitness.errors import InputError


@pytest.mark.parametrize("target", ["htp://x", "http/missing.toml", "http://"])
def test_a_wrong_target_is_refused_before_a_document_is_read(target: str) -> None:
    for errand in (
        AuditErrand(target, "no-such-documents.jsonl"),
        LeakErrand(target, corpus="no-such-records.jsonl"),
    ):
        with pytest.raises(InputError) as refused:
            errand.order()
        assert "no-such" not in str(refused.value)
