"""The pytest plugin: suites as a team writes them, run by pytest as a team runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.indexed import INSIDE, MINE, OUTSIDE
from tests.support.rough import rough

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[3]
_PATH = os.pathsep.join(map(str, (_ROOT / "src", _ROOT)))
# Other plug-ins that are installed here take longer to load than most of these suites to run.
_OTHERS = ("cacheprovider", "langsmith_plugin", "hypothesispytest", "anyio")
_ALONE = [word for name in _OTHERS for word in ("-p", f"no:{name}")]
_SUITE = """
import pytest
from tests.support import indexed

@pytest.fixture
def rag_target(request):
    return getattr(indexed, request.param)()

def each(*names):
    return pytest.mark.parametrize("rag_target", names, indirect=True)

@each("innocent", "leaking")
def test_contracts(rag_target, rag_known_out, rag_known_in, assert_not_in):
    assert_not_in(rag_target, indexed.MINE, rag_known_out, known_in=rag_known_in, method="passages")

@each("innocent", "leaking")
def test_leaks(rag_target, rag_corpus, rag_known_out, assert_no_leak):
    more = {"background": rag_known_out, "prompts": 40, "inconclusive": "warn"}
    assert_no_leak(rag_target, rag_corpus, **more)
"""
_INI = """
[pytest]
rag_known_out = data/outside.jsonl
rag_known_in = data/inside.jsonl
rag_corpus = data/mine.jsonl
rag_release = v1
"""


def suite(folder: Path, code: str, ini: str = "[pytest]\n") -> None:
    (folder / "data").mkdir(exist_ok=True)
    for name, texts in (("outside", OUTSIDE), ("inside", INSIDE), ("mine", MINE)):
        (folder / "data" / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"id": f"{name}-{n}", "text": one}) + "\n" for n, one in enumerate(texts)
            )
        )
    (folder / "test_privacy.py").write_text(code)
    (folder / "pytest.ini").write_text(ini)


def run(
    folder: Path, *arguments: object, cwd: Path | None = None, **variables: str
) -> tuple[int, str]:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("RAGWITNESS", "PYTEST"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *_ALONE, *map(str, arguments)],
        cwd=cwd or folder,
        env={**environment, "PYTHONPATH": _PATH, "COLUMNS": "120", **variables},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def ended(said: str) -> dict[str, int]:
    last = said.strip().splitlines()[-1]
    return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", last)}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A team's suite after its first run."""
    folder = tmp_path_factory.mktemp("a team")
    suite(folder, _SUITE, _INI)
    code, said = run(folder, f"--junit-xml={folder / 'out.xml'}")
    assert code == 1, said
    return folder, said


def test_leaks_fail_with_a_message_that_a_stranger_understands(team: tuple[Path, str]) -> None:
    folder, said = team
    assert ended(said)["failed"] == ended(said)["passed"] == 2
    assert "E       AssertionError: 20 of 20 documents: in the database. fails --fail-on in" in said
    assert "Error rate: a system that holds none of these 20 documents fails this test" in said
    assert re.search(r"Show more: ragwitness report \S+", said)
    # The test's own line is shown, and none of ours.
    assert "test_privacy.py:" in said
    assert "src/ragwitness" not in said
    # pytest shows the arguments of a test that failed; no text of a document is among them.
    assert "rag_known_out = <60 documents>" in said
    assert not any(text[:30] in said for text in (*MINE, *OUTSIDE, *INSIDE))
    # What passed says its figures too, and stands in pytest's own JUnit file.
    assert "privacy of the RAG system" in said
    assert "0 of 20 documents: in the database" in said
    cases = ET.parse(folder / "out.xml").getroot().iter("testcase")  # noqa: S314
    kept = {
        case.get("name"): case.find("properties/property[@name='ragwitness']") for case in cases
    }
    assert len(kept) == 4
    assert None not in kept.values()


def test_a_second_run_costs_no_query(team: tuple[Path, str]) -> None:
    folder, _ = team
    journals = sorted((folder / "ragwitness-runs").glob("*/spent.jsonl*"))
    assert len(journals) == 4
    before = [path.read_bytes() for path in journals]
    code, said = run(folder)
    assert code == 1
    assert ended(said)["failed"] == ended(said)["passed"] == 2
    assert "answers were kept from an earlier start" in said
    assert [path.read_bytes() for path in journals] == before
    code, said = run(folder, "--rag-release", "v2", "-k", "leaks and innocent")
    assert code == 0
    assert "were kept" not in said
    assert len(list((folder / "ragwitness-runs").glob("*/spent.jsonl*"))) == 5


def test_workers_side_by_side_share_answers_and_tell_what_they_found(tmp_path: Path) -> None:
    same = "".join(
        f"def test_{n}(rag_target, assert_no_leak, rag_corpus):\n"
        "    assert_no_leak(rag_target, rag_corpus, prompts=20)\n"
        for n in range(4)
    )
    suite(tmp_path, same)
    with rough() as server:
        given = ["--rag-target", f"{server.url}#m", "--rag-release", "v1"]
        code, said = run(tmp_path, "-n", "2", *given, "--rag-corpus", "data/mine.jsonl")
        assert code == 0, said
        assert ended(said)["passed"] == 4
        # Four tests of one system ask the same: each question went out once.
        assert len(server.prompts) == len(set(server.prompts)) == 20
    assert said.count("No record was repeated") == 4


def test_what_keeps_a_test_from_being_made_is_an_error_and_inconclusive_a_choice(
    tmp_path: Path,
) -> None:
    suite(
        tmp_path,
        "import pytest\n"
        "def test_down(rag_target, rag_corpus, assert_no_leak):\n"
        "    assert_no_leak(rag_target, rag_corpus)\n"
        "def test_not_given(rag_known_out):\n"
        "    pass\n"
        "@pytest.mark.parametrize('how', ['', 'warn', 'fail'])\n"
        "def test_silent(rag_corpus, assert_no_leak, how):\n"
        "    more = {'inconclusive': how} if how else {}\n"
        "    silent = 'python:tests.support.indexed:silent'\n"
        "    assert_no_leak(silent, rag_corpus, prompts=4, **more)\n",
        "[pytest]\nrag_corpus = data/mine.jsonl\n",
    )
    # Asked to skip what is inconclusive, it skips nothing that is broken.
    given = ("--rag-target", "python:tests.support.indexed:down", "--rag-inconclusive", "skip")
    code, said = run(tmp_path, *given)
    assert code == 1
    found = {"failed": 2, "error": 1, "skipped": 1, "passed": 1, "warning": 1}
    assert found.items() <= ended(said).items(), said
    assert "E       ragwitness.core.errors.TargetUnreachableError" in said
    assert "src/ragwitness" not in said
    assert "give --rag-known-out, set RAGWITNESS_KNOWN_OUT, write rag_known_out into the" in said
    assert said.count("no answer holds a letter or a digit") >= 3


def test_the_command_line_comes_before_the_environment_and_that_before_the_ini_file(
    tmp_path: Path,
) -> None:
    suite(
        tmp_path,
        "def test_it(rag_corpus, rag_known_out):\n"
        "    print('corpus', len(rag_corpus), 'out', len(rag_known_out))\n",
        "[pytest]\nrag_corpus = data/mine.jsonl\nrag_known_out = data/outside.jsonl\n",
    )
    elsewhere = tmp_path / "data"
    ini = ("-s", "-c", tmp_path / "pytest.ini", tmp_path)
    # Paths of the ini file are relative to it, wherever pytest is called.
    assert "corpus 20 out 60" in run(tmp_path, *ini, cwd=elsewhere)[1]
    assert "corpus 30 out 60" in run(tmp_path, "-s", RAGWITNESS_CORPUS="data/inside.jsonl")[1]
    option = ("-s", "--rag-corpus", "data/outside.jsonl")
    assert "corpus 60 out 60" in run(tmp_path, *option, RAGWITNESS_CORPUS="data/inside.jsonl")[1]
    (tmp_path / "test_privacy.py").write_text("def test_it(assert_no_leak):\n    pass\n")
    code, said = run(tmp_path, RAGWITNESS_INCONCLUSIVE="ignore")
    assert code == 1
    assert "RAGWITNESS_INCONCLUSIVE cannot be 'ignore': use fail, warn, skip" in said


def test_a_suite_that_does_not_use_it_loads_nothing_of_it(tmp_path: Path) -> None:
    suite(
        tmp_path,
        "import sys\n"
        "def test_it():\n"
        "    ours = {m for m in sys.modules if m.startswith('ragwitness.')}\n"
        "    assert ours == {'ragwitness.testing', 'ragwitness.testing.pytest_plugin'}\n"
        "    assert not {'numpy', 'httpx2', 'typer', 'pydantic'} & set(sys.modules)\n",
        "[pytest]\nfilterwarnings = error\n",
    )
    # No other plug-in that is installed: some load half of this by themselves.
    ours = ("-p", "ragwitness.testing.pytest_plugin")
    code, said = run(tmp_path, *ours, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert code == 0, said
    assert "privacy of the RAG system" not in said
    (tmp_path / "test_privacy.py").write_text("def test_it():\n    pass\n")
    assert run(tmp_path, "-p", "no:ragwitness")[0] == 0
