"""Caps hold before a query is sent; how many are under way follows the target."""

import asyncio
import random

import pytest

from ragwitness.core.errors import CapReachedError, InputError, TargetResponseError
from ragwitness.core.types import Answer, Query
from ragwitness.runner.budget import Budget, UsageLog, Use, total_use, worst_case
from ragwitness.runner.rate_limiter import RateLimiter, Throttle
from ragwitness.targets.transport import Setback

LOST = Setback(overload=False, refused=False, again=True)
REFUSED = Setback(overload=True, refused=True, again=True)


def _together(limiter: RateLimiter, send, n: int, query: Query | None = None) -> list[object]:
    async def main() -> list[object]:
        asked = (limiter.spend(query or Query("?", 10), send) for _ in range(n))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(main())


class Counting:
    """Answers after a moment and says what it used."""

    def __init__(self, prompt: int | None = 5, completion: int | None = 2) -> None:
        self.usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        self.asked = self.now = self.most = 0

    async def __call__(self, query: Query) -> Answer:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Answer("yes", **self.usage)


def test_no_more_queries_are_sent_than_the_cap_allows() -> None:
    target, limiter = Counting(), RateLimiter(Budget(queries=7), 4)
    replies = _together(limiter, target, 20)
    assert target.asked == 7
    assert target.most == 4
    refused = [reply for reply in replies if isinstance(reply, CapReachedError)]
    assert len(refused) == 13
    assert refused[0].message == "query cap reached"
    assert "--max-queries" in refused[0].hint
    assert limiter.cap == "query"
    assert limiter.spent == Use(7, 35, 14)


def test_what_is_set_aside_and_not_used_serves_others() -> None:
    # A query may use 1 + 32 + 10 tokens and uses 7: the cap of 100 admits two at a time at
    # first, and all of ten in the end.
    target, limiter = Counting(), RateLimiter(Budget(tokens=100), 8)
    replies = _together(limiter, target, 10)
    assert target.most == 2
    assert target.asked == sum(isinstance(reply, Answer) for reply in replies) == 9
    assert limiter.spent.tokens == 63  # a tenth could have used 43 more


def test_an_answer_that_does_not_count_is_settled_at_the_worst_case() -> None:
    limiter = RateLimiter(Budget(price_in=1.0, price_out=10.0, cost=1.0))
    _together(limiter, Counting(None, None), 2)
    assert limiter.spent == Use(2, 66, 20)
    assert limiter.cost == pytest.approx((66 + 200) / 1e6)


@pytest.mark.parametrize("seed", range(5))
def test_no_cap_is_passed_whatever_the_target_does(seed: int) -> None:
    rng = random.Random(seed)
    budget = Budget(queries=30, tokens=1500, cost=0.003, price_in=1.0, price_out=5.0)
    limiter = RateLimiter(budget, 12, start=1)
    worked = 0

    async def rough(query: Query) -> Answer:
        nonlocal worked
        for _ in range(3):
            await asyncio.sleep(rng.random() / 1000)
            fate = rng.random()
            if fate < 0.5:
                worked += 1
                return Answer("", prompt_tokens=rng.randint(1, 33), completion_tokens=10)
            if fate < 0.7:
                worked += 1
                limiter.setback(LOST)
            else:
                limiter.setback(REFUSED)
        limiter.setback(Setback(overload=True, refused=True, again=False))
        raise TargetResponseError("busy")

    replies = _together(limiter, rough, 60)
    assert all(isinstance(r, Answer | CapReachedError | TargetResponseError) for r in replies)
    assert budget.passed(limiter.spent) is None
    assert worked <= limiter.spent.queries <= 30
    assert limiter.limit <= 12


def test_a_lost_attempt_counts_and_a_refused_one_does_not() -> None:
    limiter = RateLimiter()

    async def third_time(query: Query) -> Answer:
        limiter.setback(LOST)
        limiter.setback(REFUSED)
        return Answer("", prompt_tokens=1, completion_tokens=1)

    _together(limiter, third_time, 1)
    assert limiter.spent == Use(1, 33, 10) + Use(1, 1, 1)


def test_a_repetition_that_could_pass_a_cap_is_not_made() -> None:
    limiter, attempts = RateLimiter(Budget(queries=2)), 0

    async def never(query: Query) -> Answer:
        nonlocal attempts
        while True:
            attempts += 1
            limiter.setback(LOST)

    (reply,) = _together(limiter, never, 1)
    assert isinstance(reply, CapReachedError)
    assert attempts == limiter.spent.queries == 2


def test_what_the_target_adds_to_prompts_is_expected_again() -> None:
    limiter = RateLimiter(Budget(tokens=2500))
    target = Counting(prompt=1000, completion=10)

    async def main() -> list[object]:
        found = []
        for _ in range(4):
            found += await asyncio.gather(
                limiter.spend(Query("?", 10), target), return_exceptions=True
            )
        return found

    replies = asyncio.run(main())
    assert target.asked == 2
    assert isinstance(replies[2], CapReachedError)
    assert limiter.spent.tokens <= 2500


def test_a_stopped_query_gives_its_place_back() -> None:
    limiter = RateLimiter(at_once=1)

    async def main() -> Answer:
        first = asyncio.ensure_future(limiter.spend(Query("?"), _for_ever))
        second = asyncio.ensure_future(limiter.spend(Query("?"), Counting()))
        third = asyncio.ensure_future(limiter.spend(Query("?"), Counting()))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.wait_for(third, 5)

    assert asyncio.run(main()).text == "yes"
    assert limiter.spent.queries == 2  # the one that was under way may have been billed


async def _for_ever(query: Query) -> Answer:
    await asyncio.sleep(3600)
    raise AssertionError


def test_the_limit_grows_by_one_a_round_and_falls_by_a_fifth_once_a_round() -> None:
    throttle = Throttle(5, 2)
    for _ in range(2):
        throttle.answered(under_way=2)
    assert throttle.limit == 3
    for _ in range(30):
        throttle.answered(under_way=throttle.limit)
    assert throttle.limit == 5
    for _ in range(5):  # of one burst
        throttle.overloaded(sent_in=0)
    assert throttle.limit == 4
    for turn in range(1, 20):
        throttle.overloaded(sent_in=turn)
    assert throttle.limit == 1


def test_a_limit_of_hundreds_grows_as_well() -> None:
    throttle = Throttle(400, 300)
    for _ in range(300):
        throttle.answered(under_way=300)
    assert throttle.limit == 301


def test_an_idle_limit_does_not_grow() -> None:
    throttle = Throttle(8, 4)
    for _ in range(50):
        throttle.answered(under_way=1)
    assert throttle.limit == 4


def test_a_target_that_bears_three_is_asked_about_three() -> None:
    limiter, seen = RateLimiter(at_once=16), []
    now = 0

    async def bears_three(query: Query) -> Answer:
        nonlocal now
        while now >= 3:
            limiter.setback(REFUSED)
            await asyncio.sleep(0.003)
        now += 1
        await asyncio.sleep(0.001)
        now -= 1
        seen.append(limiter.limit)
        return Answer("")

    _together(limiter, bears_three, 300)
    assert 1 <= sum(seen[100:]) / len(seen[100:]) <= 8


def test_nobody_starts_while_as_many_are_under_way_as_a_lower_limit() -> None:
    limiter, within = RateLimiter(at_once=8), []
    now = 0

    async def send(query: Query) -> Answer:
        nonlocal now
        now += 1
        within.append(now <= limiter.limit)
        if len(within) == 8:
            limiter.setback(Setback(overload=True, refused=False, again=True, late=True))
        await asyncio.sleep(0.001 * len(within))
        now -= 1
        return Answer("")

    _together(limiter, send, 20)
    assert within == [True] * 20


def test_the_ledger_remembers_what_earlier_starts_spent(tmp_path) -> None:
    with RateLimiter.of_run(tmp_path, Budget(queries=5)) as limiter:
        _together(limiter, Counting(), 3)
    with RateLimiter.of_run(tmp_path, Budget(queries=5)) as limiter:
        assert limiter.spent == Use(3, 15, 6)
        target = Counting()
        _together(limiter, target, 5)
        assert target.asked == 2
    assert total_use(tmp_path / "spent.jsonl") == Use(5, 25, 10)


def test_a_query_never_settled_counts_at_its_worst_case(tmp_path) -> None:
    path = tmp_path / "spent.jsonl"
    with UsageLog(path) as ledger:
        ledger.open(Use(1, 33, 10))
        number = ledger.open(Use(1, 33, 10))
        ledger.note(number, Use(1, 5, 2))
    path.write_bytes(path.read_bytes()[:-4])  # killed while it wrote the last line
    with UsageLog(path) as again:
        assert again.before == Use(2, 66, 20)
        again.open(Use(1, 1, 1))
    assert total_use(tmp_path / "spent.jsonl") == Use(3, 67, 21)


def test_no_tokenizer_makes_more_tokens_than_bytes() -> None:
    assert worst_case(Query("héllo", 9)) == Use(1, 6 + 32, 9)


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        ({"queries": 0}, "--max-queries"),
        ({"tokens": -1}, "--max-tokens"),
        ({"cost": float("nan"), "price_in": 1.0, "price_out": 1.0}, "--max-cost"),
        ({"cost": 1.0}, "prices"),
        ({"price_in": 1.0}, "two prices"),
        ({"price_in": -1.0, "price_out": 1.0}, "--price-in"),
    ],
)
def test_unusable_caps_are_refused(caps, said) -> None:
    with pytest.raises(InputError, match=said):
        Budget(**caps)


@pytest.mark.parametrize(("at_once", "start"), [(0, 1), (-4, 1), (0, None), (4, 0), (4, -1)])
def test_a_limit_that_lets_nothing_pass_is_refused(at_once: int, start: int | None) -> None:
    with pytest.raises(InputError, match="under way"):
        RateLimiter(at_once=at_once, start=start)


def test_a_start_above_the_limit_begins_at_the_limit() -> None:
    assert RateLimiter(at_once=2, start=4).limit == 2


def test_after_an_answer_that_came_too_late_one_is_asked_at_a_time() -> None:
    throttle = Throttle(8, 8)
    first = throttle.round
    assert throttle.overloaded(first, late=True) == 1
    assert throttle.limit == 1
    throttle.overloaded(first, late=True)  # sent together with the first: one message
    for _ in range(99):
        throttle.answered(throttle.limit)
    assert throttle.limit == 4  # never again as many as were too many
    throttle.overloaded(throttle.round, late=True)
    for _ in range(99):
        throttle.answered(throttle.limit)
    assert throttle.limit == 2


def test_a_governor_counts_what_came_too_late() -> None:
    limiter = RateLimiter(at_once=4)

    async def slow(query: Query) -> Answer:
        if limiter.late == 0:
            limiter.setback(Setback(overload=True, refused=False, again=True, late=True))
        return Answer("yes")

    _together(limiter, slow, 3)
    assert (limiter.late, limiter.turned_away, limiter.answered) == (1, 1, 3)
    assert limiter.limit <= 2
