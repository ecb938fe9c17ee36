"""What an operator sees: numbers behind a token, a document of the surface, rates of keys."""

import json
import sys
from pathlib import Path

import pytest

from ragwitness.errors import InputError, MissingExtraError
from ragwitness.service.metrics import KeyRates, Metrics, read_token
from tests.support.service import make_tenant

TOKEN = "an operator's token"
pytest.importorskip("prometheus_client")


def test_metrics_count_requests_and_refusals_and_name_nobody(service, store) -> None:
    keys = make_tenant(store, "acme", accounts=1)
    service.more = {"metrics": Metrics(TOKEN)}
    for _ in range(21):  # the claim allows 20
        service.send("/v1/retrieval", {"query": "the code of door 3"}, keys[0])
    told = service.send("/metrics", key=TOKEN)
    assert told.headers["content-type"].startswith("text/plain")
    for line in (
        'ragwitness_requests_total{path="/v1/retrieval",status="200"} 20.0',
        'ragwitness_requests_total{path="/v1/retrieval",status="429"} 1.0',
        'ragwitness_refused_total{by="account"} 1.0',
        'ragwitness_request_seconds_count{path="/v1/retrieval"} 21.0',
    ):
        assert line in told.text
    for secret in ("acme", "a0", "door", keys[0], TOKEN):
        assert secret not in told.text


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Basic " + TOKEN, "Bearer other", "Bearer é"]
)
def test_without_the_token_there_are_no_metrics(service, store, header) -> None:
    """The opponent: an account's own key among them."""
    [key] = make_tenant(store, "acme", accounts=1)
    nothing = service.send("/v1/metrics").json()
    for more in ({}, {"metrics": Metrics(TOKEN)}):
        service.more = more
        headers = {} if header is None else {"Authorization": header.encode()}
        for reply in (service.send("/metrics", headers=headers), service.send("/metrics", key=key)):
            assert (reply.status_code, reply.json()) == (404, nothing)


def test_a_token_comes_from_a_file_and_is_long(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "token"
    path.write_text(f" {TOKEN}\n")
    assert read_token(path) == TOKEN
    path.write_text("short")
    with pytest.raises(InputError, match="under 16 characters"):
        read_token(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[service\]"):
        Metrics(TOKEN)


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


def test_the_openapi_document_names_every_route_and_its_body(service) -> None:
    document = service.send("/openapi.json").json()
    routes = {
        (route.path, method.lower())
        for route in service.app.routes
        for method in route.methods - {"HEAD"}
        if route.path not in ("/metrics", "/openapi.json")
    }
    assert routes == {
        (path, method) for path, methods in document["paths"].items() for method in methods
    }
    assert document["openapi"].startswith("3.1")
    text = json.dumps(document)
    for reference in text.split('"$ref": "')[1:]:
        *_, name = reference.split('"')[0].split("/")
        assert name in document["components"]["schemas"]
    body = document["components"]["schemas"]["RetrievalBody"]
    assert set(body["properties"]) == {
        *("query", "vector", "nonce", "checkpoint"),
        *("sequence", "blinding", "signature"),
    }
    assert body["additionalProperties"] is False
    open_to_all = {path for path, by in document["paths"].items() for one in by.values()
                   if "security" not in one}  # fmt: skip
    assert open_to_all == {"/live", "/health"}


def test_a_process_lives_without_its_database(service, store, monkeypatch) -> None:
    from ragwitness.service.store import StoreGoneError

    def gone() -> None:
        raise StoreGoneError("The database failed.")

    monkeypatch.setattr(store, "check", gone)
    assert service.send("/live").status_code == 200
    assert service.send("/health").status_code == 503
