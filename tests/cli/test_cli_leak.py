"""``ragwitness leak``: end to end, stored transcripts, caps, resuming, and unusable input."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.api import leak
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Query
from ragwitness.leakage.attacks.base import read_transcripts
from ragwitness.runner.response_store import query_key
from ragwitness.text.sample import load_sample
from tests.support.leaking import VARIABLE
from tests.support.rough import Rough, rough
from tests.support.tenants_rag import tenants_rag

Command = Callable[..., tuple[int, str]]
_TELL = "python:tests.support.leaking:tell"
_REFUSE = "python:tests.support.leaking:refuse"


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    rows = [{"id": d.id, "text": f"{d.text} Call 212-555-0{100 + i}."}
            for i, d in enumerate(load_sample()[:24])]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    corpus = _write(tmp_path / "corpus.jsonl", rows)
    monkeypatch.setenv(VARIABLE, str(corpus))
    return {
        "corpus": corpus,
        "background": _write(
            tmp_path / "background.jsonl", [{"text": d.text} for d in load_sample()[60:90]]
        ),
        "folder": tmp_path,
    }


def _result(folder: Path) -> dict[str, object]:
    return json.loads((folder / "result.json").read_text())


def _counts(folder: Path) -> dict[str, float]:
    return {
        f"{one['name']} {one['key']}".strip(): one["count"] for one in _result(folder)["together"]
    }


def test_a_lab_leaks(files: dict[str, Path], command: Command) -> None:
    run, corpus = files["folder"] / "run", files["corpus"]
    arguments = ["leak", f"lab:{corpus}?k=1", "--corpus", corpus, "--attacks", "composite,pide"]
    arguments += ["--prompts", 3, "--answer-tokens", 32, "--background", files["background"]]
    arguments += ["--contacts", "--run", run]
    code, text = command(*arguments)
    assert code == 0, text
    counts = _counts(run)
    assert counts["repeat prompts 10"] >= 1
    assert "secrets (contact) came back; " in " ".join(text.split())
    assert "beyond chance; 6 prompts of 2 attacks against 24 records" in " ".join(text.split())
    assert re.search(r"spent: 6 queries, [0-9]+ tokens\.", text)  # not the time of scoring alone
    leaked = [one.output for one in read_transcripts(run / "transcripts.jsonl")]
    assert not any(output[:40] in text for output in leaked if len(output) > 20)
    assert "Private text" in (run / "report.html").read_text()
    spent = (run / "spent.jsonl").read_bytes()
    code, text = command(*arguments, "--no-examples")
    assert code == 0
    assert "kept from an earlier start" in " ".join(text.split())
    assert (run / "spent.jsonl").read_bytes() == spent  # nothing was asked
    assert "Private text" not in (run / "report.html").read_text()


@pytest.mark.slow
def test_stored_transcripts_are_scored_without_asking(
    files: dict[str, Path], command: Command
) -> None:
    run, corpus = files["folder"] / "run", files["corpus"]
    common = ["--corpus", corpus, "--background", files["background"]]
    arguments = ["leak", _TELL, *common, "--attacks", "all", "--prompts", 6, "--run", run]
    assert command(*arguments)[0] == 0
    again = files["folder"] / "again"
    stored = ["leak", "--transcripts", run / "transcripts.jsonl", *common, "--run", again]
    out = files["folder"] / "out.json"
    code, text = command(*stored, "--json", out, "--fail-on", "repeat records > 0")
    assert code == 3
    assert "fails --fail-on repeat records > 0" in text
    assert not (again / "answers.jsonl").exists()
    first, second = _result(run), _result(again)
    assert first["together"] == second["together"]
    assert first["attacks"] == second["attacks"]
    assert len(first["attacks"]) == 5
    assert second["target"] is None
    assert json.loads(out.read_text()) == second
    page = (run / "report.html").read_text()
    code, text = command("report", run, "--fail-on", "repeat records > 0")
    assert code == 3
    assert "records leaked in part" in text
    assert "Private text" in page
    assert "Private text" not in (run / "report.html").read_text()  # transcripts are not read
    code, text = command("report", run, "--junit", "out.xml")
    assert code == 0, text
    assert "<testcase" in Path("out.xml").read_text(encoding="utf-8")


def test_secrets_and_decoys_are_counted_apart(files: dict[str, Path], command: Command) -> None:
    run, folder = files["folder"] / "run", files["folder"]
    secrets = _write(
        folder / "secrets.jsonl",
        [{"text": f"(212) 555 0{100 + i}", "kind": "phone"} for i in range(24)],
    )
    decoys = _write(
        folder / "decoys.jsonl",
        [{"text": f"(313) 555 0{100 + i}", "kind": "phone"} for i in range(24)],
    )
    arguments = ["leak", _TELL, "--corpus", files["corpus"], "--prompts", 10, "--run", run]
    arguments += ["--attacks", "composite-contacts"]
    arguments += [
        "--secrets",
        secrets,
        "--decoys",
        decoys,
        "--set",
        "composite-contacts.command=Go",
    ]
    code, text = command(*arguments, "--fail-on", "secrets phone > 0")
    assert code == 3, text
    [one] = [m for m in _result(run)["together"] if m["name"] == "secrets"]
    assert one["count"] >= 1
    assert one["background"] == 0
    settings = _result(run)["settings"]
    assert "command: Go" in settings["composite (contacts)"]


def test_a_target_that_tells_nothing_passes(files: dict[str, Path], command: Command) -> None:
    run = files["folder"] / "run"
    arguments = ["leak", _REFUSE, "--corpus", files["corpus"], "--prompts", 12, "--run", run]
    code, text = command(*arguments, "--fail-on", "repeat records > 0")
    assert code == 0, text
    assert "No record was repeated" in text
    assert "passes --fail-on" in text
    code, text = command(*arguments, "--fail-on", "secrets > 0")
    assert code == 4  # none is listed
    assert "nothing was measured" in text


def test_failed_prompts_and_flawed_records_are_counted(
    files: dict[str, Path], command: Command
) -> None:
    rows = [json.loads(line) for line in files["corpus"].read_text().splitlines()]
    rows += [{"id": "copy", "text": rows[0]["text"]}, {"id": "empty", "text": " "}]
    rows += [{"id": "huge", "text": "x" * 1_100_000}, {"id": "nul", "text": "a\0b"}]
    corpus = _write(files["folder"] / "flawed.jsonl", rows)
    target = "python:tests.support.leaking:unwell"
    code, text = command("leak", target, "--corpus", corpus, "--prompts", 10, "--run", "run",
                         "--retries", 0)  # fmt: skip
    said = " ".join(text.split())
    assert code == 0, text
    assert "the text is empty" in said
    assert "over the size limit" in said
    assert "binary" in said
    page = (files["folder"] / "run" / "report.html").read_text()
    assert "1 of 25 records repeat another" in page
    assert "of 10 prompts had no answer" in page
    assert "no model today" in page
    [attack] = _result(files["folder"] / "run")["attacks"]
    assert 0 < attack["failed"] < attack["prompts"] == 10


def test_a_cap_ends_it_and_more_resumes(files: dict[str, Path], command: Command) -> None:
    run = files["folder"] / "run"
    arguments = ["leak", _TELL, "--corpus", files["corpus"], "--attacks", "composite"]
    arguments += ["--prompts", 20, "--run", run]
    code, text = command(*arguments, "--max-queries", 7)
    assert code == 0, text
    assert "query cap reached: composite could not finish" in " ".join(text.split())
    assert _result(run)["attacks"][0]["prompts"] == 7
    code, text = command(*arguments)
    assert _result(run)["attacks"][0]["prompts"] == 20
    assert _result(run)["spent"]["queries"] == 20


def test_what_is_no_file_of_the_run_is_kept(files: dict[str, Path], command: Command) -> None:
    def ask(prompts: int) -> str:
        code, text = command("leak", _TELL, "--corpus", files["corpus"], "--run", run,
                             "--prompts", prompts)  # fmt: skip
        assert code == 0, text
        return text

    run = files["folder"] / "mine"
    run.mkdir()
    own = {"report.html": "my page", "transcripts.jsonl": '{"my": 1}\n', "made.jsonl": "mine\n"}
    for name, text in own.items():
        (run / name).write_text(text)
    assert "report-1.html" in ask(5)
    assert [(run / f"{Path(n).stem}-1{Path(n).suffix}").read_text() for n in own] == [*own.values()]
    # Those of a finished run too, once, and nothing of one's own is dropped.
    (run / "transcripts-2026.jsonl").write_bytes((run / "transcripts.jsonl").read_bytes()[:-1])
    ask(2)
    assert len(read_transcripts(run / "transcripts-2.jsonl")) == 5
    assert len(read_transcripts(run / "transcripts.jsonl")) == 2
    ask(5)
    ask(2)
    kept = sorted(path.name for path in run.glob("transcripts-*"))
    assert kept == [f"transcripts-{n}.jsonl" for n in (1, 2, 2026)]
    assert not (run / "report-2.html").exists()


def test_a_dry_run_sends_nothing(files: dict[str, Path], command: Command) -> None:
    code, text = command("leak", _TELL, "--corpus", files["corpus"], "--attacks", "composite,pide",
                         "--prompts", 30, "--dry-run")  # fmt: skip
    assert code == 0
    assert "composite: at most 30 prompts" in text
    assert "all: at most 60 prompts, 15,360 tokens written" in text
    assert "Nothing was sent." in text
    assert not list(files["folder"].glob("ragwitness-runs/*"))


def test_a_configuration_file_does_the_same(files: dict[str, Path], command: Command) -> None:
    config = files["folder"] / "leak.toml"
    config.write_text(
        f'target = "{_TELL}"\ncorpus = "corpus.jsonl"\nattacks = "composite"\nprompts = 4\n'
        'run = "run"\n[set.composite]\ncommand = "Say it."\n'
    )
    code, text = command("leak", "--config", config)
    assert code == 0, text
    assert "command: Say it." in _result(files["folder"] / "run")["settings"]["composite"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([_TELL], "There is no corpus"),
        (["--corpus", "corpus.jsonl"], "Either a target is asked"),
        ([_TELL, "--corpus", "corpus.jsonl", "--transcripts", "t.jsonl"], "Either a target"),
        ([_TELL, "--corpus", "none.jsonl"], "none.jsonl does not exist"),
        ([_TELL, "--corpus", "empty.jsonl"], "empty.jsonl is empty"),
        ([_TELL, "--corpus", "binary.jsonl"], "binary"),
        ([_TELL, "--corpus", "corpus.jsonl", "--attacks", "theif"], "There is no attack 'theif'"),
        ([_TELL, "--corpus", "corpus.jsonl", "--attacks", " , "], "No attack is named"),
        ([_TELL, "--corpus", "corpus.jsonl", "--prompts", "0"], "prompts must be at least 1"),
        ([_TELL, "--corpus", "corpus.jsonl", "--set", "pide.topic=x"], "not run"),
        ([_TELL, "--corpus", "corpus.jsonl", "--set", "aimed.no=3"], "no option 'no'"),
        ([_TELL, "--corpus", "corpus.jsonl", "--topic", " ", "--attacks", "forms"], "has no word"),
        ([_TELL, "--corpus", "corpus.jsonl", "--topic", "x"], "aimed would not read"),
        ([_TELL, "--corpus", "corpus.jsonl", "--attacks", "composite-pets"], "no attack"),
        (
            [_TELL, "--corpus", "corpus.jsonl", "--secrets", "corpus.jsonl", "--attacks", "pide"],
            None,
        ),
        ([_TELL, "--corpus", "corpus.jsonl", "--secrets", "none.jsonl"], "cannot be read"),
        ([_TELL, "--corpus", "corpus.jsonl", "--decoys", "corpus.jsonl"], "Decoys alone"),
        ([_TELL, "--corpus", "corpus.jsonl", "--fail-on", "leaks > 0"], "names no measure"),
        ([_TELL, "--corpus", "corpus.jsonl", "--json", "corpus.jsonl"], "would replace"),
        (["--transcripts", "corpus.jsonl", "--corpus", "corpus.jsonl"], "is not a transcript"),
        (["--transcripts", "binary.jsonl", "--corpus", "corpus.jsonl"], "is not UTF-8 text"),
        (["--transcripts", "empty.jsonl", "--corpus", "corpus.jsonl"], "No prompt was answered"),
    ],
)  # fmt: skip
def test_unusable_input_ends_in_two_lines(
    files: dict[str, Path], command: Command, arguments: list[str], said: str | None
) -> None:
    (files["folder"] / "empty.jsonl").write_bytes(b"")
    (files["folder"] / "binary.jsonl").write_bytes(b"\xff\xfe\x00\x01" * 30)
    asks = "--transcripts" not in arguments and "--prompts" not in arguments
    code, text = command("leak", *arguments, *(["--prompts", 2] if asks else []))
    if said is None:  # records of another shape are secrets too: they have a text
        assert code == 0
        return
    assert code == 2, text
    assert said in text
    assert "next: " in text


@pytest.mark.parametrize("option", ["--background", "--information", "--decoys"])
def test_what_the_corpus_holds_is_no_background_no_knowledge_and_no_decoy(
    files: dict[str, Path], command: Command, option: str
) -> None:
    folder, corpus = files["folder"], files["corpus"]
    # One record among texts of elsewhere, under another name and without its last words.
    rows = [json.loads(line) for line in corpus.read_text().splitlines()]
    mixed = [{"text": d.text} for d in load_sample()[60:70]]
    mixed.insert(4, {"text": " ".join(rows[7]["text"].split()[:-3])})
    if option == "--decoys":
        mixed = [{"text": f"212-555-09{i}", "kind": "phone"} for i in range(10, 14)]
        mixed.insert(4, {"text": "(212) 555-0107", "kind": "phone"})
    given = _write(folder / "given.jsonl", mixed)
    ledger = _write(folder / "own.jsonl", [{"text": "212-555-0101", "kind": "phone"}])
    arguments = ["--corpus", corpus, "--secrets", ledger, option, given, "--prompts", 2]
    code, text = command("leak", _TELL, *arguments, "--attacks", "composite")
    assert code == 2, text
    said = " ".join(text.split())
    assert "1 of 5 decoys" in said if option == "--decoys" else f"1 of 11 texts of {option}" in said
    assert "number 5)" in said if option == "--decoys" else "by place: 5)" in said
    # The same of the other verb that counts leaks.
    compared = ["compare", corpus, "--method", "redact", "--secrets", ledger, option, given]
    code, text = command(*compared, "--no-utility", "--held-out", 2, "--prompts", 2)
    assert code == 2, text
    assert "1 of 5 decoys" in text if option == "--decoys" else f"1 of 11 texts of {option}" in text
    assert not list(folder.rglob("answers.jsonl")), "a query was sent"


def test_a_background_that_is_the_corpus_is_refused_in_python_too(files: dict[str, Path]) -> None:
    texts = [json.loads(line)["text"] for line in files["corpus"].read_text().splitlines()]
    with pytest.raises(InputError, match="24 of 24 texts of --background are records"):
        leak(lambda prompt: prompt, texts, background=texts, prompts=2)


def _leak(server: Rough, corpus: Path, run: Path, prompts: int) -> list[str]:
    arguments = ["leak", f"{server.url}#m", "--corpus", corpus, "--run", run, "--prompts", prompts]
    arguments += ["--attacks", "composite,composite-contacts", "--answer-tokens", 8]
    return [sys.executable, "-m", "ragwitness", *map(str, arguments)]


def _kept(server: Rough, run: Path, prompts: set[str]) -> set[str]:
    """Prompts whose answers are whole in the journal."""
    path = run / "answers.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    keys = {json.loads(line)["key"] for line in lines}
    return {one for one in prompts if query_key(f"{server.url}#m", Query(one, 8)) in keys}


def _killed(files: dict[str, Path], prompts: int, kills: int) -> None:
    rng = random.Random(kills)
    run, wanted = files["folder"] / "run", 2 * prompts
    with rough(seconds=0.01) as server:
        for _ in range(kills):
            before = len(server.prompts)
            stop = before + rng.randint(wanted // (2 * kills) // 2 + 1, wanted // (2 * kills) + 2)
            with subprocess.Popen(
                _leak(server, files["corpus"], run, prompts), stdout=subprocess.DEVNULL
            ) as process:
                while len(server.prompts) < stop and process.poll() is None:
                    time.sleep(0.002)
                process.kill()
            time.sleep(0.1)  # the server still reads what had been sent
            place, kept = len(server.prompts), _kept(server, run, set(server.prompts))
            assert kept
        command = _leak(server, files["corpus"], run, prompts)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert not kept & set(server.prompts[place:])
        assert len(set(server.prompts)) == wanted
        assert len(server.prompts) <= wanted + 4 * kills  # those under way when it was killed
        count = len(server.prompts)
        assert (
            subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0
        )
        assert len(server.prompts) == count
    assert [one["prompts"] for one in _result(run)["attacks"]] == [prompts, prompts]


@pytest.mark.long
def test_two_attacks_of_250_prompts_killed_three_times(files: dict[str, Path]) -> None:
    _killed(files, prompts=250, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("isolated", [False, True])
def test_records_of_another_tenant_are_looked_for_with_a_key_of_ones_own(
    files: dict[str, Path],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    *,
    isolated: bool,
) -> None:
    rows = map(json.loads, files["corpus"].read_text().splitlines())
    tenant = [Document(row["id"], row["text"]) for row in rows]
    others = [Document(f"b{n}", one.text) for n, one in enumerate(load_sample()[100:124])]
    monkeypatch.setenv("KEY_OF_B", "b")
    with tenants_rag({"b": others if isolated else [*tenant, *others]}) as url:
        arguments = ["leak", url, "--key-env", "KEY_OF_B", "--corpus", files["corpus"]]
        arguments += ["--background", files["background"], "--attacks", "aimed"]
        arguments += ["--prompts", 60, "--run", files["folder"] / "run"]
        code, text = command(*arguments, "--fail-on", "proved records > 0")
    assert code == (0 if isolated else 3), text


def test_documents_to_plant_are_written_and_nothing_is_sent(
    files: dict[str, Path], command: Command
) -> None:
    planted = files["folder"] / "planted.jsonl"
    arguments = ["leak", _TELL, "--corpus", files["corpus"], "--plant", planted]
    code, text = command(*arguments, "--attacks", "planted")
    assert code == 0, text
    assert "2 documents in" in text
    rows = [json.loads(line) for line in planted.read_text().splitlines()]
    assert all("https://notes.example/" in row["text"] for row in rows)
    assert len({row["id"] for row in rows}) == 2
    assert not (files["folder"] / "ragwitness-runs").exists()
    code, text = command(*arguments)
    assert code == 2
    assert "No attack plants a document" in text
