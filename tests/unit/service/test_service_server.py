import logging
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, ModelError
from ragwitness.service import server
from ragwitness.service.server import ServiceSettings
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
        app = server.make_app(ServiceSettings(store.name))
    assert {route.path for route in app.routes} >= {"/health", "/v1/retrieval"}
    assert [record.ragwitness_fields for record in caplog.records] == [
        {"name": "hashing:64", "failed": "ModelError"}
    ]


@pytest.mark.parametrize("workers", [0, 13])
def test_the_number_of_workers_has_bounds(tmp_path: Path, workers: int) -> None:
    with pytest.raises(InputError, match=f"1 to 12 processes, not {workers}"):
        server.serve(ServiceSettings(str(tmp_path / "s.db")), workers=workers)
