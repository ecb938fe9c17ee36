import random
from email.utils import formatdate

import pytest

from ragwitness.targets.transport import RetryPolicy
from ragwitness.targets.waits import seconds_until

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), 0.0),
        ("soon", None),
        ("", None),
        ("-3", None),
        ("nan", None),
        ("²", None),
    ],
)
def test_retry_after_reads_seconds_and_dates(header: str | None, seconds: float | None) -> None:
    assert seconds_until(header, NOW) == seconds


def test_waits_double_and_are_spread_over_their_whole_range() -> None:
    policy, rng = RetryPolicy(first=1.0, longest=6.0), random.Random(0)
    for attempt, limit in enumerate((1.0, 2.0, 4.0, 6.0, 6.0)):
        waits = [policy.wait(attempt, rng) for _ in range(400)]
        assert 0 <= min(waits) < 0.1 * limit
        assert 0.9 * limit < max(waits) <= limit


def test_only_passing_troubles_are_repeated() -> None:
    policy = RetryPolicy()
    assert all(policy.repeats(status) for status in (408, 409, 425, 429, 500, 502, 503, 529))
    assert not any(policy.repeats(status) for status in (200, 301, 400, 401, 403, 404, 422))
