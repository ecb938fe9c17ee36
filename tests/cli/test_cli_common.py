"""What several verbs share."""

from __future__ import annotations

import io

from rich.console import Console

from ragwitness.cli import common


def test_a_log_file_shows_once_a_minute_that_work_goes_on(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with common.progress_bars(Console(file=out), lambda: "3 queries") as show:
        for seconds, done in ((1, 1), (59, 2), (61, 3), (80, 4), (122, 5), (130, 6)):
            now[0] = seconds
            show("probing", done, 6)
    assert out.getvalue().splitlines() == [
        "probing: 3 of 6 documents; spent: 3 queries",
        "probing: 5 of 6 documents; spent: 3 queries",
        "probing: 6 documents; spent: 3 queries",
    ]
