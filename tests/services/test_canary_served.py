"""A trained policy behind a server: the one trained with documents is found, the other is not.

Both probes are exact tests: on another processor the compliant one may be found 1 time in 20.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.policies import Providers, probe_policy

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]
Serve = Callable[[str, Path], AbstractContextManager[str]]


@pytest.mark.parametrize(
    ("server", "way"),
    [
        ("own", ["exact"]),
        ("transformers", ["sampled", "--samples", 3]),
    ],
    ids=["own", "transformers"],
)
def test_who_trained_with_documents_is_found(
    command: Command,
    providers: Providers,
    serve_policy: Serve,
    tmp_path: Path,
    server: str,
    way: list[object],
) -> None:
    for name in ("violating", "compliant"):
        (tmp_path / name).mkdir()
        policy = serve_policy(server, getattr(providers, name))
        code, found, said = probe_policy(
            command, providers.audit, policy, tmp_path / name, "--way", *way
        )
        if name == "violating":
            assert (code, found["verdict"]) == (3, "trained"), said
            assert found["p_value"] <= 2 / 40
        else:
            assert (code, found["verdict"]) == (4, "inconclusive"), said
