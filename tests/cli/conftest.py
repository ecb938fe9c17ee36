"""The command line as a user calls it, in this process."""

import sys
from collections.abc import Callable

import pytest

from ragwitness.cli.main import run


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return a function from arguments to exit code and everything printed; no traceback."""

    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ragwitness", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return int(stop.value.code or 0), out + err

    return call
