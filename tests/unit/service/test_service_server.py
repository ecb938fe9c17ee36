import logging

import pytest

from ragwitness.core.errors import ModelError
from ragwitness.service import server
from ragwitness.service.store import Store
from tests.support.service import SMALL, create_tenant


def test_an_embedder_that_cannot_be_loaded_stops_nobody_else(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_tenant(store, "t", SMALL)

    def fail(spec: str) -> None:
        raise ModelError(f"{spec} is not there.")

    monkeypatch.setattr(server, "load_embedder", fail)
    with caplog.at_level(logging.INFO, logger="ragwitness.service"):
        server._load_embedders(store)
    [record] = caplog.records
    assert record.fields["name"] == "hashing:64"
    assert record.fields["cause"].startswith("ModelError at fail:")
