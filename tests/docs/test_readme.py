"""The README's commands, options and links exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_README = (_ROOT / "README.md").read_text(encoding="utf-8")


def _help(*verbs: str) -> str:
    command = [sys.executable, "-m", "ragwitness", *verbs, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_first_block_names_targets_of_the_makefile() -> None:
    block = re.findall(r"```\n(.*?)```", _README, re.S)[0]
    rules = (_ROOT / "Makefile").read_text()
    assert re.findall(r"make (\w+)", block) == ["demo", "test"]
    for rule in ("demo", "test"):
        assert re.search(rf"^{rule}:", rules, re.M)


def test_it_is_read_in_three_minutes() -> None:
    assert len(_README.split()) <= 700


def test_it_counts_what_there_is() -> None:
    from ragwitness.leakage.attack_registry import ATTACKS
    from ragwitness.membership.method_registry import AUDITS

    assert f"[audit](docs/audit.md), {len(AUDITS)} methods |" in _README
    assert f"[leak](docs/leak.md), {len(ATTACKS)} attacks |" in _README


@pytest.mark.parametrize(
    ("here", "there", "page"),
    [
        (
            "59 of 60 found [.91, 1], 4 of 60 others [.02, .16]",
            "59/60** [.911, 1.000] | 4/60 [.018, .162]",
            "real",
        ),
        ("MBA: 10 of 30 [.17, .53]", "| `mba:paper` | .728 | 10/30 [.173, .528]", "real"),
        ("48 prompts: 48 leak [.93, 1]", "**48/48 [.926, 1]**", "leak"),
        ("SAGE's: 10 of 64 [.08, .27]", "| 10/64 [.078, .269] |", "leak"),
        (
            "7 found [.28, .85], 0 falsely [0, .26]",
            "| 7 of 12 [0.28, 0.85] | 0 of 12 [0.00, 0.26]",
            "canary",
        ),
        (
            "AUROC .83 [.58, .94]; the paper's statistic: .69 [.43, .87]",
            "| 0.69 [0.43, 0.87] | 0.83 [0.58, 0.94]",
            "canary",
        ),
    ],
)
def test_its_results_are_those_of_the_experiments(here: str, there: str, page: str) -> None:
    assert here in _README
    assert there in (_ROOT / "experiments" / page / "README.md").read_text(encoding="utf-8")


def test_its_bound_is_the_one_that_is_computed() -> None:
    from ragwitness import bounds

    joint = bounds(epsilon=1, delta=1e-6, queries=1000, accounts=16)
    exact = f"{joint.exact:.2f}".lstrip("0")
    assert f"have {exact} together, exactly; the paper's theorem: {joint.paper:.2f} |" in _README


def test_every_room_has_a_line() -> None:
    from ragwitness.cli.main import HEADINGS

    rooms = {name for members in HEADINGS.values() for name in members}
    # What a first audit needs, and what only several machines need, stands on the pages.
    for name in sorted(rooms - {"demo", "init", "report", "run"}):
        assert f"ragwitness {name}" in _README, name


def test_options_described_in_prose_exist() -> None:
    text = (_ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(--[a-z-]+)", text))
    assert shown
    assert shown <= set(re.findall(r"--[a-z-]+", _help("audit") + _help("plan")))


def test_every_exit_code_is_in_the_table() -> None:
    from ragwitness.core.errors import ExitCode

    text = (_ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    _, table = text.split("| exit code | meaning |\n|---|---|\n")
    rows = re.findall(r"^\| (\d+) \|", table.split("\n\n")[0], re.M)
    assert rows == [str(int(code)) for code in ExitCode]


@pytest.mark.parametrize(
    "page", sorted(p.relative_to(_ROOT).as_posix() for p in _ROOT.glob("*.md"))
)
def test_relative_links_resolve(page: str) -> None:
    text = (_ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (_ROOT / link).exists(), link


def test_files_named_in_papers_exist() -> None:
    text = (_ROOT / "PAPERS.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:membership|rag|benchmarks|experiments|docs)/[\w/.-]+)`", text):
        assert any((_ROOT / base / path).exists() for base in (".", "src/ragwitness")), path
    for path in re.findall(r"`(unit/[\w/.]+)`", text):
        assert (_ROOT / "tests" / path).exists(), path


def test_python_example_compiles_and_uses_public_names() -> None:
    import ragwitness

    pages = {"README": _README}
    pages |= {path.name: path.read_text(encoding="utf-8") for path in _ROOT.glob("docs/*.md")}
    for name, page in pages.items():
        for code in re.findall(r"```python\n(.*?)```", page, re.S):
            compile(code, name, "exec")
            assert set(re.findall(r"\brw\.(\w+)", code)) <= set(ragwitness.__all__), name
            assert not re.findall(r"from ragwitness\.\S+ import", code), name
