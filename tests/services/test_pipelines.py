"""The page on pipelines and the action: their steps, run one by one as a runner would.

Each runs in a clean folder and a fresh environment that has nothing but the wheel, against a system
of ours on the loopback.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ragwitness.text.sample import load_sample

_ROOT = Path(__file__).parents[2]
_ACTION = _ROOT / "recipes" / "github-action"
_PAGES = [(_ROOT / "docs" / name).read_text() for name in ("pipelines.md", "recipes.md")]
_FILES: dict[str, str] = {"action.yml": (_ACTION / "action.yml").read_text()} | dict(
    re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", "".join(_PAGES), re.DOTALL | re.MULTILINE)
)
_SHA = "0123456789abcdef"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), _ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture
def project(tmp_path: Path, wheel: Path) -> Path:
    """A team's repository: the files of the page, the wheel, and the documents that they name."""
    (tmp_path / "wheels").mkdir()
    shutil.copy(wheel, tmp_path / "wheels")
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests" / "conftest.py").unlink()  # a chain of the reader's own
    texts = load_sample()
    sets = {"contracts": texts[:6], "drafts": texts[20:60], "handbook": texts[60:100]}
    (tmp_path / "privacy").mkdir()
    for name, own in sets.items():
        rows = [{"id": f"{name}-{n}", "text": one.text} for n, one in enumerate(own)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "privacy" / f"{name}.jsonl").write_text(lines)
    return tmp_path


@contextmanager
def serving(project: Path, *names: str) -> Iterator[str]:
    """Address of a system of ours over some of the project's documents."""
    rows = [(project / "privacy" / f"{name}.jsonl").read_text() for name in names]
    (project / "index.jsonl").write_text("".join(rows))
    command = [sys.executable, "-m", "ragwitness", "lab", "serve", "--port", "0"]
    command += ["--generator", "repeat", "--corpus"]
    with subprocess.Popen(
        [*command, str(project / "index.jsonl")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            told = (re.search(r"http://127\.0\.0\.1:\d+/v1", line) for line in server.stdout)
            yield next(found[0] for found in told if found)
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A fresh environment first on the path of a shell."""
    folder = tmp_path_factory.mktemp("runner")
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAGWITNESS", "PYTEST"))}
    kept.pop("PYTHONPATH", None)
    return {
        **kept,
        "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "CI": "true",
    }


def step(script: str, project: Path, environment: dict[str, str]) -> int:
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    print(done.stdout[-4000:], done.stderr[-2000:])
    assert "Traceback" not in done.stderr
    return done.returncode


def cases(path: Path) -> dict[str, int]:
    (suite,) = ET.parse(path).getroot().iter("testsuite")  # noqa: S314
    return {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}


def yaml(name: str) -> dict[str, Any]:
    import yaml as reader

    found: dict[str, Any] = reader.safe_load(_FILES[name])
    return found


def test_the_files_are_what_their_services_take(tmp_path: Path) -> None:
    for schema, name in (
        ("vendor.github-workflows", ".github/workflows/privacy.yml"),
        ("vendor.github-workflows", ".github/workflows/membership.yml"),
        ("vendor.github-actions", "action.yml"),
        ("vendor.gitlab-ci", ".gitlab-ci.yml"),
    ):
        (tmp_path / "file.yml").write_text(_FILES[name])
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
        subprocess.run([*command, str(tmp_path / "file.yml")], check=True)


def test_the_workflow_finds_what_leaks(project: Path, environment: dict[str, str]) -> None:
    (job,) = yaml(".github/workflows/privacy.yml")["jobs"].values()
    with serving(project, "handbook", "contracts") as address:
        given = {"vars.RAG_TARGET": address, "github.sha": _SHA}

        def said(text: str) -> str:
            return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda found: given[found[1]], text)

        own = environment | {name: said(value) for name, value in job["env"].items()}
        codes: list[int] = []
        steps = [one for one in job["steps"] if "run" in one]
        for one in steps:
            # A step is left out after a failure, unless it says otherwise.
            if not any(codes) or one.get("if") == "always()":
                codes.append(step(said(one["run"]), project, own))
        assert codes == [0, 1, 3]
        assert cases(project / "privacy.xml") == {
            "tests": 2, "failures": 2, "errors": 0, "skipped": 0,
        }  # fmt: skip
        (run,) = json.loads((project / "privacy.sarif").read_text())["runs"]
        assert [one["ruleId"] for one in run["results"]] == ["audit/in"] * 6
        assert run["invocations"][0]["exitCode"] == 3
        # The next start of the same commit finds its answers in the cache and asks nothing.
        spent = {path: path.read_bytes() for path in project.glob("ragwitness-runs/*/spent.jsonl*")}
        assert len(spent) == 3
        for one in steps[1:]:
            step(said(one["run"]), project, own)
        assert {path: path.read_bytes() for path in spent} == spent


@pytest.mark.parametrize(("held", "code"), [(["handbook", "contracts"], 3), (["handbook"], 4)])
def test_the_action_fails_a_job_by_what_it_finds(
    held: list[str], code: int, project: Path, environment: dict[str, str]
) -> None:
    action, (job,) = yaml("action.yml"), yaml(".github/workflows/membership.yml")["jobs"].values()
    (use,) = (one for one in job["steps"] if "ragwitness/recipes" in one.get("uses", ""))
    assert {*use["with"]} <= {*action["inputs"]}
    usual = {name: one.get("default") for name, one in action["inputs"].items()}
    summary, outputs = project / "summary.md", project / "outputs"
    runner = {
        "GITHUB_ACTION_PATH": str(_ACTION),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
        "RUNNER_TEMP": str(project / "temp"),
    }
    own = environment | runner
    (project / "temp").mkdir()
    with serving(project, *held) as address:
        inputs = usual | use["with"] | {"target": address, "key": "", "options": "--method s2mia"}
        codes = [
            step(
                one["run"],
                project,
                own
                | {k: inputs[re.findall(r"[\w-]+", v)[1]] for k, v in one.get("env", {}).items()},
            )
            for one in action["runs"]["steps"]
            if "run" in one
        ]
    assert codes == [0, code]
    assert summary.read_text().startswith("```\n")
    assert summary.read_text().count("```") == 2
    sarif = Path(outputs.read_text().removeprefix("sarif=").strip())
    (run,) = json.loads(sarif.read_text())["runs"]
    assert len(run["results"]) == (6 if code == 3 else 0)


def test_the_job_passes_where_nothing_leaks(project: Path, environment: dict[str, str]) -> None:
    job = yaml(".gitlab-ci.yml")["privacy"]
    with serving(project, "handbook") as address:
        predefined = {"RAG_TARGET": address, "CI_COMMIT_SHA": _SHA}
        variables = {k: predefined[v.removeprefix("$")] for k, v in job["variables"].items()}
        # A job ends at the first line that fails.
        codes = [
            step(line, project, environment | predefined | variables) for line in job["script"]
        ]
    assert codes == [0, 0, 0]
    first, second = (project / name for name in job["artifacts"]["reports"]["junit"])
    assert cases(first) == {"tests": 2, "failures": 0, "errors": 0, "skipped": 0}
    assert cases(second)["tests"] == 6
    assert cases(second)["failures"] == 0
