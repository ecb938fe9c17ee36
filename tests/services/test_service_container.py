"""The container file, its steps run as they are written, without a container engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "docs" / "deploy" / "Containerfile"


def lines() -> dict[str, str]:
    found = dict(re.findall(r"^([A-Z]+) (.*)$", FILE.read_text(), re.MULTILINE))
    return {name: value.removeprefix("CMD ") for name, value in found.items()}


def test_entry_point_health_check_and_stop_work_in_an_empty_folder(tmp_path: Path) -> None:
    steps = lines()
    entry = json.loads(steps["ENTRYPOINT"])
    # The programs of this environment, and nothing else of it.
    scripts = Path(sys.executable).parent
    if not (scripts / entry[0]).exists():
        pytest.skip(f"{entry[0]} is not installed beside {sys.executable}")
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    env = {"PATH": f"{scripts}:/usr/bin:/bin", "HOME": str(tmp_path), **kept}
    made = subprocess.run(
        [*entry, "tenants", "create", "acme", "--json"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["tenant"] == "acme"
    # A free port in place of the container's own.
    serve = [*entry, *json.loads(steps["CMD"]), "--port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        port = re.search(r":(\d+)/v1", run.stdout.readline())
        assert port is not None
        check = json.loads(steps["HEALTHCHECK"])
        here = [part.replace(":8000", f":{port[1]}") for part in check]
        assert here != check
        assert subprocess.run(here, cwd=tmp_path, env=env, check=False).returncode == 0
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) in (0, -signal.SIGTERM)
        # A server that is gone is unhealthy.
        gone = subprocess.run(here, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert gone.returncode != 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names <= {
        "ragwitness-service.db",
        "ragwitness-service.db-wal",
        "ragwitness-service.db-shm",
    }


def test_the_image_is_served_by_nobody_s_root_and_keeps_its_data() -> None:
    steps = lines()
    assert steps["USER"] not in ("root", "0")
    assert steps["VOLUME"] == steps["WORKDIR"]
    assert f"--home-dir {steps['WORKDIR']} {steps['USER']}" in steps["RUN"]
