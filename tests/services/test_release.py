"""``make release``: a wheel, the list of its parts, and no more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def test_one_command_makes_the_wheel_and_the_list_of_its_parts(tmp_path: Path) -> None:
    command = ["make", "-C", str(ROOT), "release", f"DIST={tmp_path}", f"PYTHON={sys.executable}"]
    subprocess.run(command, check=True, capture_output=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # 1. The wheel of this version.
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"ragwitness-{project['version']}-")
    # 2. Every requirement stands among the parts, with its version.
    parts = json.loads((tmp_path / "ragwitness.cdx.json").read_text(encoding="utf-8"))
    assert (parts["bomFormat"], parts["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "ragwitness",
    )
    versions = {part["name"].lower(): part["version"] for part in parts["components"]}
    needed = {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower() for line in project["dependencies"]}
    assert needed <= versions.keys()
    assert all(versions.values())
