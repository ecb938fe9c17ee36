"""Rates of keys, and a process whose database is gone."""

import pytest

from ragwitness.core.errors import InputError
from ragwitness.service.principals import KeyRates
from tests.support.service import make_tenant


def test_a_key_that_asks_too_often_waits_and_pays_nothing(service, store) -> None:
    keys = make_tenant(store, "acme", accounts=2)
    now = [0.0]
    service.more = {"rates": KeyRates(2.0, lambda: now[0])}

    def ask(key: str) -> tuple[int, str | None]:
        reply = service.send("/v1/usage", key=key)
        return reply.status_code, reply.headers.get("retry-after")

    assert [ask(keys[0])[0] for _ in range(4)] == [200] * 4  # a bucket of two seconds
    assert ask(keys[0]) == (429, "1")
    assert service.send("/v1/retrieval", {"query": "x"}, keys[0]).json()["error"]["code"] == (
        "rate_limited"
    )
    assert ask(keys[1])[0] == 200  # another key has a bucket of its own
    assert ask("rw_" + "0" * 16 + "_" + "a" * 43)[0] == 401  # and who has none is told so
    now[0] = 0.5
    assert ask(keys[0])[0] == 200
    now[0] = 0.0  # a clock set back gives nothing
    assert ask(keys[0])[0] == 429
    now[0] = 9.0
    used = service.send("/v1/usage", key=keys[0]).json()["meters"]["account"]["used"]
    assert used == 0


def test_a_slow_rate_still_admits_one_and_an_impossible_one_is_refused() -> None:
    now = [0.0]
    rates = KeyRates(0.1, lambda: now[0])
    assert (rates.wait(1), rates.wait(1)) == (0, pytest.approx(10))
    now[0] = 10.0
    assert rates.wait(1) == 0
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="above 0"):
            KeyRates(rate)


def test_a_process_lives_without_its_database(service, store, monkeypatch) -> None:
    from ragwitness.service.store import StoreGoneError

    def gone() -> None:
        raise StoreGoneError("The database failed.")

    monkeypatch.setattr(store, "check", gone)
    assert service.send("/live").status_code == 200
    assert service.send("/health").status_code == 503
