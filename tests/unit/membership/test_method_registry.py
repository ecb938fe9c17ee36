"""Configurations by name, with values as a command line gives them; what a method may import."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.method_registry import AUDITS, configure
from ragwitness.membership.methods.mba.masks import MbaConfig
from ragwitness.membership.methods.srag import SRagConfig


@pytest.mark.parametrize(
    ("given", "gamma"),
    [("0.5", 0.5), ("1", 1.0), (" none ", None), ("None", None), (0.25, 0.25), (None, None)],
)
def test_a_field_without_a_default_is_a_number_or_none(given, gamma) -> None:
    assert configure("mba", {"gamma": given}) == MbaConfig(gamma=gamma)


@pytest.mark.parametrize("given", ["often", "", "0,5", "true"])
def test_what_is_neither_is_refused_by_name(given) -> None:
    with pytest.raises(InputError, match="mba: gamma cannot be"):
        configure("mba", {"gamma": given})


@pytest.mark.parametrize("given", ["0", "1.5", "nan", "-inf", math.nan])
def test_a_number_out_of_range_is_refused_by_name(given) -> None:
    with pytest.raises(InputError, match="gamma must lie in"):
        configure("mba", {"gamma": given})


def test_text_is_turned_into_the_type_of_the_default() -> None:
    config = configure("mba", {"masks": "7", "floor": "0.1", "unique_words": "off"})
    assert config == MbaConfig(masks=7, floor=0.1, unique_words=False)
    with pytest.raises(InputError, match="mba: masks cannot be"):
        configure("mba", {"masks": "7.5"})


@pytest.mark.parametrize(
    "name", [name for name in AUDITS if name not in ("passages", "runon", "joint")]
)
def test_every_audit_with_a_paper_has_it_as_a_preset_and_is_not_its_default(name: str) -> None:
    published = configure(f"{name}:paper")
    assert type(published) is type(configure(name))
    assert published != configure(name)
    assert AUDITS.load(f"{name}:paper") is AUDITS.load(name)


def test_a_preset_sets_what_the_paper_says() -> None:
    assert configure("s-rag:paper") == SRagConfig(mode="probing", missing=0.01)
    assert configure("s-rag:few") == configure("s-rag")
    assert configure("s-rag:paper-gpt").top_logprobs == 5
    assert configure("mba:paper").gamma == 0.5
    assert configure("min-k:paper").combine == "sum"


def test_an_option_goes_over_a_preset() -> None:
    assert configure("s-rag:paper", {"intervals": "5"}) == replace(
        configure("s-rag:paper"), intervals=5
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("s-rag:published", "s-rag has no preset 'published'"),
        ("passages:paper", "passages has no preset 'paper'"),
        ("nonsense:paper", "no audit 'nonsense'"),
    ],
)
def test_a_preset_that_there_is_not_is_named(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        configure(name)
    with pytest.raises(InputError, match=says):
        AUDITS.load(name)


# A package with the names of ours, so that the contracts of pyproject.toml are checked in seconds.
_METHODS = "ragwitness.membership.methods"
_FILES = {
    "__init__": "",
    "membership.__init__": "",
    "membership.method_registry": "",
    "membership.run": "import ragwitness.runner",
    "membership.response_parsing": "",
    "methods.__init__": "",
    "methods.old": "import ragwitness.membership.response_parsing",
    "methods.new": "import ragwitness.membership.response_parsing",
    "runner": "",
}


@pytest.mark.parametrize(
    ("name", "imports", "broken"),
    [
        ("methods.new", "ragwitness.core", 0),
        ("membership.method_registry", f"{_METHODS}.new", 0),
        ("methods.new", f"{_METHODS}.old", 2),
        ("methods.new", "ragwitness.membership.run", 1),
        ("membership.run", f"{_METHODS}.new", 1),
    ],
)
def test_the_contracts_cover_a_method_that_no_list_names(tmp_path, name, imports, broken) -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    contracts = [
        contract
        for contract in project["tool"]["importlinter"]["contracts"]
        if f"{_METHODS}.*" in str(contract)
    ]
    assert len(contracts) == 3
    lines = ["[tool.importlinter]", 'root_package = "ragwitness"']
    for contract in contracts:
        lines += ["[[tool.importlinter.contracts]]"]
        lines += [f"{key} = {value!r}" for key, value in contract.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(lines))
    for module, text in (_FILES | {"core": "", name: f"import {imports}"}).items():
        place = module.replace("methods.", "membership.methods.").replace(".", "/")
        file = tmp_path / "ragwitness" / f"{place}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    command = "import sys; from importlinter.cli import lint_imports_command as main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert f"{3 - broken} kept, {broken} broken." in done.stdout, done.stdout + done.stderr
    assert (done.returncode != 0) == bool(broken)
