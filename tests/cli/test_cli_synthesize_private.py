"""``ragwitness synthesize --method private-evolution``: its statement, its files, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.writers import blocks, writers

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample = load_sample()
    rows = [{"id": f"p{n}", "text": f"{d.text} Ask Ada Fenn."} for n, d in enumerate(sample[:40])]
    for name, texts in (("corpus", rows), ("public", [{"text": d.text} for d in sample[40:]])):
        lines = "".join(json.dumps(row) + "\n" for row in texts)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def evolve(command: Command, folder: Path, *more: object) -> tuple[int, str]:
    given = ("--method", "private-evolution", "--pii", "contacts", "--run", folder / "run")
    return command("synthesize", folder / "corpus.jsonl", *given, *more)


def usual(folder: Path) -> tuple[object, ...]:
    public = folder / "public.jsonl"
    return ("--epsilon", 4, "--public", public, "--embedder", "words", "-o", folder / "safe.jsonl")


def test_without_a_model_it_writes_public_texts_and_says_what_epsilon_covers(
    command: Command, folder: Path
) -> None:
    report = folder / "report.json"
    code, said = evolve(command, folder, *usual(folder), "--texts", 8, "--json", report)
    assert code == 0, said
    rows = [json.loads(line) for line in (folder / "safe.jsonl").read_text().splitlines()]
    lines = (folder / "public.jsonl").read_text().splitlines()
    public = {json.loads(line)["text"] for line in lines}
    assert {row["text"] for row in rows} <= public
    assert [row["id"] for row in rows] == [f"text-{n + 1}" for n in range(len(rows))]
    found = json.loads(report.read_text())
    assert found["counts"]["passed"] == len(rows)
    ids = [one["id"] for one in found["records"]]
    assert ids[:8] == [f"text-{n + 1}" for n in range(8)]
    assert all(one.startswith("draft-") for one in ids[8:])  # public texts with contact details
    assert found["settings"]["privacy"] == "epsilon 4, delta 1e-06, for one record added or removed"
    for label in ("covers", "does not cover", "assumes", "a record replaced", "noise"):
        assert found["settings"][label]
    # What was promised, for which files, and what these records have spent, stands on the screen.
    for line in ("privacy: epsilon 4, delta 1e-06", "covers: ", "spent on these records"):
        assert line in said
    assert "Ada Fenn" not in said + report.read_text() + (folder / "safe.jsonl").read_text()
    before = (folder / "safe.jsonl").read_bytes()
    code, _ = evolve(command, folder, *usual(folder), "--texts", 8)
    assert (code, (folder / "safe.jsonl").read_bytes()) == (0, before)


def test_a_finished_command_draws_nothing_anew(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    method = ("--method", "private-evolution", "--pii", "contacts", "--texts", 8)
    texts = []
    for _ in range(3):
        code, said = command("synthesize", "corpus.jsonl", *method, *usual(folder))
        assert code == 0, said
        texts.append((folder / "safe.jsonl").read_bytes())
    assert len(set(texts)) == 1
    assert len(list((folder / "ragwitness-runs").iterdir())) == 1
    code, _ = command("synthesize", "corpus.jsonl", *method, *usual(folder), "--seed", 1)
    assert len(list((folder / "ragwitness-runs").iterdir())) == 2


def test_epsilon_adds_up_over_runs_and_names_of_the_corpus(command: Command, folder: Path) -> None:
    code, said = evolve(command, folder, *usual(folder), "--texts", 8)
    assert (code, "epsilon 4 at delta 1e-06, 1 run" in " ".join(said.split())) == (0, True)
    evolve(command, folder, *usual(folder), "--texts", 8)  # resumes: nothing is drawn
    (folder / "copy.jsonl").write_bytes((folder / "corpus.jsonl").read_bytes())
    given = ("--method", "private-evolution", "--pii", "contacts", "--texts", 8, "--run")
    code, said = command(
        "synthesize", folder / "copy.jsonl", *given, folder / "run2", *usual(folder), "--dry-run"
    )
    assert "before: epsilon 4 at delta 1e-06, 1 run" in " ".join(said.split())
    code, said = command(
        "synthesize", folder / "copy.jsonl", *given, folder / "run2", *usual(folder)
    )
    assert code == 0
    assert "2 runs (8 as a plain sum)" in " ".join(said.split())
    rows = (folder / "ragwitness-privacy.jsonl").read_text().splitlines()
    assert len(rows) == 2
    assert not any("Ada" in row or "boiler" in row for row in rows)


def test_a_near_copy_of_the_records_is_told_and_changes_nothing(
    command: Command, folder: Path
) -> None:
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    near = {"text": json.loads(lines[3])["text"].replace("Ada Fenn", "somebody else")}
    public = folder / "public.jsonl"
    public.write_text(public.read_text() + json.dumps(near) + "\n")
    code, said = evolve(command, folder, *usual(folder), "--texts", 8)
    assert code == 0, said
    said = " ".join(said.split())
    assert "1 of" in said
    assert "nearly are private records" in said
    # Advice that follows from the records is another run that no epsilon covers.
    assert "Leave the file as it is" in said
    for advice in ("Take them out", "larger --epsilon", "--public-overlap"):
        assert advice not in said
    assert near["text"] in (folder / "public.jsonl").read_text()


def test_a_refused_release_books_nothing_and_leaves_the_first_as_it_was(
    command: Command, folder: Path
) -> None:
    assert evolve(command, folder, *usual(folder), "--texts", 8)[0] == 0
    kept = [folder / "run" / "votes.jsonl", folder / "ragwitness-privacy.jsonl"]
    before = [path.read_bytes() for path in kept]
    code, said = evolve(command, folder, *usual(folder)[2:], "--epsilon", 9, "--texts", 8)
    assert code == 2
    assert "noisy votes of another corpus or of other settings" in " ".join(said.split())
    assert [path.read_bytes() for path in kept] == before
    code, said = evolve(command, folder, *usual(folder), "--texts", 8)
    assert code == 0, said


@pytest.mark.parametrize(
    "public",
    [
        lambda texts: " ".join(texts[:4]),  # several in one text
        lambda texts: texts[2][: int(0.7 * len(texts[2]))],  # a part
        lambda texts: f"{'So it was told to us. ' * 60}{texts[3]} {'And so on. ' * 60}",
    ],
    ids=["glued", "part", "among others"],
)
def test_a_public_text_that_holds_records_is_named(
    command: Command, folder: Path, public: Callable[[list[str]], str]
) -> None:
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    told = {"text": public([json.loads(line)["text"] for line in lines])}
    path = folder / "public.jsonl"
    path.write_text(path.read_text() + json.dumps(told) + "\n")
    code, said = evolve(command, folder, *usual(folder), "--texts", 8)
    assert code == 0
    assert "1 of 1161 texts" in " ".join(said.split()).replace(",", "")


@pytest.mark.parametrize("method", ["redact", "private-evolution"])
def test_no_output_takes_the_place_of_the_ledger(
    command: Command, folder: Path, method: str
) -> None:
    assert evolve(command, folder, *usual(folder), "--texts", 8)[0] == 0
    ledger = folder / "ragwitness-privacy.jsonl"
    before = ledger.read_bytes()
    for option in ("-o", "--json"):
        more = usual(folder)[:-2] if method == "private-evolution" else ()
        corpus = folder / "corpus.jsonl"
        code, said = command("synthesize", corpus, "--method", method, *more, option, ledger)
        assert code == 2, said
        assert "the name of a privacy ledger" in " ".join(said.split())
    assert ledger.read_bytes() == before


def test_a_model_varies_what_was_voted_for(command: Command, folder: Path) -> None:
    # So few public texts and so little noise that some of six places go to variations.
    public = folder / "public.jsonl"
    public.write_text("\n".join(public.read_text().splitlines()[:8]) + "\n")

    def script(kind: str, prompt: str) -> str:
        words = blocks(prompt)[0].split()
        return f"Another case: {' '.join(words[:12])}, and {len(server.prompts)} more."

    with writers(script) as server:
        model = ("--epsilon", 40, "--model", f"{server.url}#m", "--texts", 6)
        code, said = evolve(command, folder, *usual(folder), *model)
        asked = len(server.prompts)
        assert code == 0, said
        assert evolve(command, folder, *usual(folder), *model)[0] == 0
        assert len(server.prompts) == asked > 0
    assert not any("Ada Fenn" in prompt for prompt, _ in server.prompts)
    assert "by the model, which is shown no record" in (folder / "run/result.json").read_text()
    assert "Another case" in (folder / "safe.jsonl").read_text()


def test_a_look_beforehand_sends_and_draws_nothing(command: Command, folder: Path) -> None:
    with writers() as server:
        model = ("--model", f"{server.url}#m", "--dry-run")
        code, said = evolve(command, folder, *usual(folder), *model)
        assert (code, server.prompts) == (0, [])
    assert "at most 800 queries" in said  # two rounds of variations, two attempts each
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ((), "needs a privacy budget"),
        (("--epsilon", 0), "epsilon must be above 0"),
        (("--epsilon", -3), "epsilon must be above 0"),
        (("--epsilon", 1, "--delta", 1), "delta must be at least"),
        (("--epsilon", 1), "nothing to choose from"),
        (("--epsilon", 1, "--public", "missing.jsonl"), "missing.jsonl does not exist"),
        (("--epsilon", 1, "--public", "EMPTY"), "empty.jsonl is empty"),
        (("--epsilon", 1, "--public", "ONE"), "1 usable texts"),
        (("--epsilon", 1, "--public", "CORPUS"), "is the private corpus itself"),
        (("--epsilon", 1, "--public", "PUBLIC", "--contacts"), "compares texts with the records"),
        (("--epsilon", 1e-7, "--public", "PUBLIC"), "asks for noise"),
        (("--epsilon", 1, "--public", "PUBLIC", "--texts", 0), "texts must be"),
        (("--epsilon", 1, "--public", "PUBLIC", "--rounds", 0), "rounds 1 to"),
        (("--method", "redact", "--epsilon", 1), "redact is not differentially private"),
        (("--method", "redact", "--public", "PUBLIC"), "redact copies what its records hold"),
    ],
)
def test_bad_input_is_named(
    command: Command, folder: Path, options: tuple[object, ...], cause: str
) -> None:
    (folder / "empty.jsonl").write_text("")
    (folder / "one.jsonl").write_text('{"text": "one text stands here alone"}\n')
    known = {"EMPTY": "empty", "ONE": "one", "CORPUS": "corpus", "PUBLIC": "public"}
    given = [folder / f"{known[one]}.jsonl" if one in known else one for one in options]
    code, said = evolve(command, folder, *given)
    assert code == 2
    assert cause in said
    assert "next:" in said
    assert not (folder / "run" / "votes.jsonl").exists()
