"""The pytest plugin: a target and documents as fixtures, and assertions bound to its options.

It comes with ``pip install ragwitness``; nothing of it is imported before a test needs it.

::

    def test_contracts_stay_outside(rag_target, rag_known_out, assert_not_in):
        assert_not_in(rag_target, "contracts.jsonl", rag_known_out)

Each setting is taken from the command line (``--rag-target``), else from the environment
(``RAGWITNESS_TARGET``), else from the ini file (``rag_target``). A suite that makes its system or
its documents in Python defines a fixture of the same name.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragwitness.testing.assertions import AssertionOutcome

_PROPERTY = "ragwitness"
"""Key of the finding in a test's report; pytest writes it into its JUnit file too."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting.

    Attributes:
        help: Its meaning.
        role: Of a path in it: ``target``, ``documents``, ``folder``; empty for none.
        type: Reads its text.
        choices: Texts that there are; empty for any.
    """

    help: str
    role: str = ""
    type: Callable[[str], object] = str
    choices: tuple[str, ...] = ()


_SETTINGS = {
    "target": _Setting("Address of the RAG system under test.", "target"),
    "corpus": _Setting("The private records that may not leak.", "documents"),
    "background": _Setting("Texts like the corpus that the system does not hold.", "documents"),
    "known-out": _Setting("Documents that are certainly outside the system.", "documents"),
    "known-in": _Setting("Documents that are certainly inside the system.", "documents"),
    "release": _Setting("Name of this version of the system; its answers are kept."),
    "runs": _Setting("Folder in which runs and their answers are kept.", "folder"),
    "alpha": _Setting("Share of audits that an innocent system may fail.", type=float),
    "max-queries": _Setting("Most queries that each test may send.", type=int),
    "inconclusive": _Setting(
        "Outcome of a test that decides nothing.", choices=("fail", "warn", "skip")
    ),
}


class _Private(tuple[Any, ...]):
    """Documents whose texts pytest does not show: it prints a failing test's arguments."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} document{'' if len(self) == 1 else 's'}>"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option and an ini value for each setting."""
    group = parser.getgroup("ragwitness", "privacy of RAG systems (ragwitness)")
    for name, setting in _SETTINGS.items():
        more: dict[str, Any] = {"choices": setting.choices} if setting.choices else {}
        group.addoption(f"--rag-{name}", default=None, help=setting.help, **more)
        parser.addini(_ini(name), setting.help)


def _ini(name: str) -> str:
    return f"rag_{name.replace('-', '_')}"


def _variable(name: str) -> str:
    return f"RAGWITNESS_{name.upper().replace('-', '_')}"


def _setting(config: pytest.Config, name: str) -> Any:
    """Return a setting from the first place that has it; None where none has.

    Raises:
        UsageError: Its text cannot be read.
    """
    setting = _SETTINGS[name]
    # Paths of the ini file are relative to its folder, as pytest's own are.
    sources: list[tuple[str, object, Path | None]] = [
        (f"--rag-{name}", config.getoption(f"--rag-{name}"), None),
        (_variable(name), os.environ.get(_variable(name)), None),
        (_ini(name), config.getini(_ini(name)), config.inipath.parent if config.inipath else None),
    ]
    for where, text, base in sources:
        if text in (None, ""):
            continue
        if setting.choices and text not in setting.choices:
            raise pytest.UsageError(f"{where} cannot be {text!r}: use {', '.join(setting.choices)}")
        try:
            return setting.type(_located(str(text), setting.role, base))
        except ValueError:
            raise pytest.UsageError(f"{where} cannot be {text!r}: a number is wanted") from None
    return None


def _located(text: str, role: str, base: Path | None) -> str:
    """Return a setting whose files are found from any folder."""
    if base is None or not role:
        return text
    from ragwitness.core.options import PathRole, map_paths

    roles = {"target": PathRole.ADDRESS, "documents": PathRole.DOCUMENTS, "folder": PathRole.FILLS}
    return map_paths(roles[role], text, lambda path: os.path.join(base, os.path.expanduser(path)))


def _needed(request: pytest.FixtureRequest, name: str) -> Any:
    value = _setting(request.config, name)
    if value is None:
        pytest.fail(
            f"{_SETTINGS[name].help} It is not known: give --rag-{name}, set {_variable(name)},"
            f" write {_ini(name)} into the ini file, or define a fixture {request.fixturename}.",
            pytrace=False,
        )
    return value


def _documents(request: pytest.FixtureRequest, name: str, *, needed: bool) -> Any:
    from ragwitness.core.errors import RagwitnessError
    from ragwitness.runner.task_runtime import as_documents

    value = _needed(request, name) if needed else _setting(request.config, name)
    try:
        return _Private(() if value is None else as_documents(value))
    except RagwitnessError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def rag_target(request: pytest.FixtureRequest) -> Any:
    """Address of the system under test."""
    return _needed(request, "target")


@pytest.fixture(scope="session")
def rag_corpus(request: pytest.FixtureRequest) -> Any:
    """The private records that may not leak."""
    return _documents(request, "corpus", needed=True)


@pytest.fixture(scope="session")
def rag_background(request: pytest.FixtureRequest) -> Any:
    """Texts like the corpus that the system does not hold; none where none are named."""
    return _documents(request, "background", needed=False)


@pytest.fixture(scope="session")
def rag_known_out(request: pytest.FixtureRequest) -> Any:
    """Documents that are certainly outside the system."""
    return _documents(request, "known-out", needed=True)


@pytest.fixture(scope="session")
def rag_known_in(request: pytest.FixtureRequest) -> Any:
    """Documents that are certainly inside the system; none where none are named."""
    return _documents(request, "known-in", needed=False)


@pytest.fixture
def assert_not_in(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """:func:`ragwitness.assert_not_in` with the settings of this session."""
    from ragwitness.testing.assertions import assert_not_in as asserted

    return _bound(request, asserted, "alpha")


@pytest.fixture
def assert_no_leak(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """:func:`ragwitness.assert_no_leak` with the settings of this session."""
    from ragwitness.testing.assertions import assert_no_leak as asserted

    return _bound(request, asserted)


def _bound(
    request: pytest.FixtureRequest, asserted: Callable[..., Any], *more: str
) -> Callable[..., Any]:
    """Bind the session's settings to an assertion, and record its finding; arguments win."""
    names = ("release", "runs", "max-queries", "inconclusive", *more)
    settings = {name.replace("-", "_"): _setting(request.config, name) for name in names}
    known_settings = {name: value for name, value in settings.items() if value is not None}
    known_settings.setdefault("runs", request.config.rootpath / "ragwitness-runs")

    # On the test's report, which travels from a worker of pytest-xdist to its master.
    def on_outcome(finding: AssertionOutcome) -> None:
        request.node.user_properties.append((_PROPERTY, finding.text))

    return functools.partial(asserted, **known_settings, on_outcome=on_outcome)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the finding of each assertion that passed or decided nothing."""
    # Findings travel with the reports, also from the workers of pytest-xdist.
    lines = [
        (report.nodeid, value)
        for outcome in ("passed", "skipped")
        for report in terminalreporter.stats.get(outcome, ())
        if getattr(report, "when", "") == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == _PROPERTY
    ]
    if not lines:
        return
    terminalreporter.section("privacy of the RAG system")
    for nodeid, value in lines:
        first, *rest = value.splitlines()
        terminalreporter.line(f"{nodeid}: {first}")
        for line in rest:
            terminalreporter.line(f"  {line}")
