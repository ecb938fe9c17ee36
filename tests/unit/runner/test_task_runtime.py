"""What tasks do in common: a wrong target is refused before any document is read."""

from __future__ import annotations

import pytest

from ragwitness.core.errors import InputError
from ragwitness.leakage.task import LeakTask
from ragwitness.membership.task import AuditTask


@pytest.mark.parametrize("target", ["htp://x", "http/missing.toml", "http://"])
def test_a_wrong_target_is_refused_before_a_document_is_read(target: str) -> None:
    for task in (
        AuditTask(target, "no-such-documents.jsonl"),
        LeakTask(target, corpus="no-such-records.jsonl"),
    ):
        with pytest.raises(InputError) as refused:
            task.order()
        assert "no-such" not in str(refused.value)
