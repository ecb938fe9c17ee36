"""A trained policy behind a server: the one trained with documents is found, the other is not.

Which of two servers answers, and in which way it is asked, changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.policies import Providers, check_told_apart, probe_policy

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]
Serve = Callable[[str, Path], AbstractContextManager[str]]


@pytest.mark.parametrize(
    ("server", "way"),
    [
        ("own", ["exact"]),
        ("transformers", ["sampled", "--samples", 4]),
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
    found = {}
    for name in ("violating", "compliant"):
        (tmp_path / name).mkdir()
        policy = serve_policy(server, getattr(providers, name))
        found[name] = probe_policy(command, providers.audit, policy, tmp_path / name, "--way", *way)
    check_told_apart(**found)
    with pytest.raises(AssertionError):  # a policy that read nothing passes for none that did
        check_told_apart(found["compliant"], found["compliant"])
