"""The lock of a verifier's dependencies: each with its hashes, and above the known holes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
_LOCK = (ROOT / "requirements" / "verify.txt").read_text()
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

HOLES = {
    "cryptography": "46.0.5",
    "filelock": "3.20.3",
    "jinja2": "3.1.6",
    "pypdf": "6.10",
    "python-multipart": "0.0.22",
    "rfc3161-client": "1.0.3",  # CVE-2025-52556
    "starlette": "0.49.1",
}
"""The least version without a hole that was known when the bounds were set."""


def _locked() -> dict[str, Version]:
    return {
        canonicalize_name(name): Version(version)
        for name, version in re.findall(r"^([A-Za-z0-9_.-]+)(?:\[.*?\])?==([^ \\]+)", _LOCK, re.M)
    }


def _wanted() -> list[Requirement]:
    extras = _PROJECT["optional-dependencies"]
    lines = [*_PROJECT["dependencies"], *extras["verify"], *extras["timestamp"]]
    return [Requirement(line) for line in lines]


def test_every_package_of_the_lock_has_a_hash() -> None:
    blocks = re.split(r"^(?=[A-Za-z0-9_.-]+(?:\[.*?\])?==)", _LOCK, flags=re.M)[1:]
    assert len(blocks) > len(_wanted())
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_lock_is_of_what_the_project_asks_for() -> None:
    locked = _locked()
    for wanted in _wanted():
        assert locked[canonicalize_name(wanted.name)] in wanted.specifier, wanted.name


def test_no_lower_bound_admits_a_hole_that_is_known() -> None:
    bounds = {canonicalize_name(wanted.name): wanted.specifier for wanted in _wanted()}
    for name, least in HOLES.items():
        below = Version(least).release
        before = Version(".".join(map(str, (*below[:-1], max(0, below[-1] - 1)))))
        assert before not in bounds[name], name
        assert _locked()[name] >= Version(least)
