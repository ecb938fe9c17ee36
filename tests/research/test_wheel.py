"""The wheel holds the package and what its help texts point to; nothing of research."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in a wheel that hatchling builds here."""
    wheel = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    [built] = wheel.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_every_file_is_of_the_package_and_none_of_research(names: list[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"ragwitness", next(top for top in tops if top.endswith(".dist-info"))}
    assert not [name for name in names if "research" in name]


def test_what_help_texts_point_to_is_there(names: list[str]) -> None:
    assert "ragwitness/RESPONSIBLE_USE.md" in names
    assert any(name.startswith("ragwitness/models/reader/weights/") for name in names)


def test_the_package_imports_no_research_but_to_reproduce_a_table() -> None:
    found = [
        str(path.relative_to(ROOT / "src/ragwitness"))
        for path in (ROOT / "src/ragwitness").rglob("*.py")
        if "from research" in (text := path.read_text(encoding="utf-8"))
        or "import research" in text
    ]
    assert [one for one in found if not one.startswith("cli/")] == []
