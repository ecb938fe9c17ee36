"""What several verbs share."""

from __future__ import annotations

import io

from rich.console import Console

from ragwitness.cli import common


def test_a_log_file_shows_every_ten_seconds_that_work_goes_on(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with common.progress_bars(Console(file=out), lambda: "3 queries") as show:
        for seconds, done in ((1, 1), (9, 2), (11, 3), (20, 4), (22, 5), (25, 6)):
            now[0] = seconds
            show("probing", done, 6)
    assert out.getvalue().splitlines() == [
        "probing: 3 of 6 documents; 3 queries so far",
        "probing: 5 of 6 documents; 3 queries so far",
        "probing: all 6 documents; 3 queries so far",
    ]
