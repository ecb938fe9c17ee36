"""``ragwitness service tenants`` and ``serve`` as an operator calls them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str]]

QUICK = (
    *("--mechanism", "noise", "--ids-only", "--knowingly", "--embedder", "hashing:64"),
    *("--queries", 20, "--accounts", 4, "--capacity", 8, "--top", 2),
)
CODES = ("--capacity", 64)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{i}", "text": f"The code of door number {i} is {i * 7}."} for i in range(5)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


def test_a_tenant_s_life(command: Command, database: Path, corpus: Path) -> None:
    def tenants(*words: object) -> str:
        code, out = command("service", "tenants", *words, "--database", database)
        assert code == 0, out
        return out

    policy = json.loads(tenants("create", "acme", *QUICK, "--json"))
    assert policy["epsilon"] == 1.0
    assert policy["sigma"] > 20
    assert policy["payer_queries"] == 80
    assert (policy["mechanism"], len(policy["digest"])) == ("noise", 64)
    assert policy["found"].startswith("not measured")
    assert json.loads(tenants("add-documents", "acme", corpus, "--json"))["added"] == 5
    first = json.loads(tenants("add-account", "acme", "alice", "--payer", "p", "--json"))["key"]
    second = json.loads(tenants("rotate-key", "acme", "alice", "--json"))["key"]
    assert first.startswith("rw_")
    assert first != second
    assert "acme: 5 of 8 slots, 1 accounts; noise, epsilon 1 per account" in tenants("list")
    assert json.loads(tenants("list", "--json"))[0]["documents"] == 5
    tenants("revoke", "acme", "alice")
    shown = tenants("budget", "acme")
    assert "index: 0 queries, epsilon 0 of" in shown
    assert "alice: 0 of 20; payer p: 0 of 80 (revoked)" in shown
    assert json.loads(tenants("budget", "acme", "--json"))["accounts"][0]["revoked"] is True
    assert second not in tenants("list") + shown
    assert "shown this once" in tenants("add-account", "acme", "bob")
    said = tenants("create", "other", *QUICK)
    assert re.search("window +30 days", said)
    assert "None" not in said


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("list",), "There is no database"),
        (("create", "t", *QUICK, "--accounts", 16, "--delta", "1e-7"), "k_max x delta is 1.6e-06"),
        (("create", "t", "--mechanism", "dice"), "no mechanism 'dice'"),
        (("create", "t", "--epsilon", "0"), "epsilon must be"),
        (("create", "t", "--epsilon", "1"), "an answer is chance"),
        (("create", "t", "--embedder", "hashing:64"), "embedder would do nothing"),
        (("create", "t", "--mechanism", "noise"), "an answer is chance"),
        (("create", "t", "--queries", "9", "--clip", "0,1"), "queries, clip would do nothing"),
        (("create", "t", *QUICK, "--epsilon", "-1"), "epsilon must be"),
        (("create", "t", *QUICK, "--window-days", "nan"), "number of days above 0, not nan"),
        (("create", "t", *QUICK, "--neighbours", "x"), "No such relation: 'x'"),
        (("create", "t", "--mechanism", "noise", "--embedder", "x"), "no embedder 'x'"),
        (("create", "a/b", *QUICK), "The tenant's name 'a/b' cannot be used"),
        (("budget", "t", "--database", "mysql://u:secret@h/d"), "no database of the kind 'mysql'"),
    ],
)
def test_bad_input_is_named(
    command: Command, database: Path, words: tuple[object, ...], shown: str
) -> None:
    options = () if "--database" in words else ("--database", database)
    if words[:1] == ("create",) and "noise" in words and "--embedder" not in words:
        words = (*words, "--embedder", "hashing:64")
    code, out = command("service", "tenants", *words, *options)
    assert code == 2
    assert shown in out
    assert "next:" in out or "epsilon" in out or "days" in out
    assert "secret" not in out


def test_serve_refuses_what_it_cannot_serve(command: Command, database: Path) -> None:
    code, out = command("service", "serve", "--database", database)
    assert (code, "There is no database" in out) == (2, True)
    command("service", "tenants", "create", "t", *QUICK, "--database", database)
    code, out = command("service", "serve", "--database", database, "--port", 99999)
    assert (code, "Cannot listen on" in out) == (2, True)
    code, out = command("service", "serve", "--database", database, "--port", 0, "--metrics", 99999)
    assert (code, "Cannot listen on" in out) == (2, True)


@pytest.mark.parametrize(
    "words",
    [("service", "tenants", "list"), ("service", "tenants", "create", "t"), ("service", "serve")],
)
def test_without_the_extra_its_install_line_is_printed(words: tuple[str, ...]) -> None:
    # In a process of its own: here the packages are loaded already.
    program = (
        "import importlib.abc, sys\n"
        "class Hide(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'sqlalchemy':\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'sqlalchemy' else real(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from ragwitness.cli.main import run\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'ragwitness[service]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_clipped_scores_move_less_and_bad_bounds_are_refused(command, tmp_path) -> None:
    where = ("--database", tmp_path / "s.db")
    code, said = command(
        "service", "tenants", "create", "acme", *QUICK, "--clip", "0,0.5", "--json", *where
    )
    assert code == 0, said
    made = json.loads(said)
    assert (made["clip"], round(made["sensitivity"], 3)) == ([0.0, 0.5], 0.5)
    for given, why in (
        ("0.5", "not two numbers"),
        ("a,b", "not two numbers"),
        ("1,0", "clipped to"),
    ):
        code, said = command("service", "tenants", "create", "b", *QUICK, "--clip", given, *where)
        assert (code, why in " ".join(said.split())) == (2, True)
    code, said = command("collusion", "calibrate")
    assert (code, "joint budget is needed" in said) == (2, True)


def test_a_tenants_documents_are_removed_and_the_tenant_erased(command, tmp_path, corpus) -> None:
    base = ("--database", tmp_path / "s.db")
    tenants = ("service", "tenants")
    command(*tenants, "create", "acme", *QUICK, *base)
    command(*tenants, "add-documents", "acme", corpus, *base)
    code, said = command(*tenants, "add-documents", "acme", corpus, *base)
    assert (code, "already" in said) == (2, True)
    code, said = command(*tenants, "add-documents", "acme", corpus, "--replace", *base)
    assert code == 0, said
    command(*tenants, "create", "twin", *QUICK, *base)
    code, said = command(*tenants, "add-documents", "twin", corpus, *base)
    assert (code, "acme" in said) == (0, False), said  # no tenant hears of another
    code, said = command(*tenants, "remove-documents", "acme", "nowhere", *base)
    assert (code, "no document 'nowhere'" in said) == (2, True)
    receipt = tmp_path / "receipt.json"
    code, said = command(*tenants, "erase", "acme", "--yes", "--receipt", receipt, *base)
    assert (code, "is erased" in said) == (0, True), said
    assert json.loads(receipt.read_text())["rows"]["documents"] == 5
    code, said = command(*tenants, "budget", "acme", *base)
    assert code == 2


def test_a_tenant_whose_documents_are_placed(command, tmp_path, corpus) -> None:
    base = ("--database", tmp_path / "s.db")
    code, said = command("service", "tenants", "create", "one", "two", *CODES, "--json", *base)
    assert code == 0, said
    made = json.loads(said)
    assert [row["tenant"] for row in made] == ["one", "two"]
    assert made[0]["epsilon"] == 10
    assert made[0]["found"].startswith("not measured")
    assert "against any other one in its slots" in made[0]["covers"]
    assert "answers that are written" in made[0]["not_covered"]
    assert "advantage of 0.9999" in made[0]["bounds"]
    assert "share a word" in made[0]["texts_shown"]
    assert not {"queries", "delta", "joint_epsilon", "window"} & made[0].keys()
    keys = json.loads(
        command("service", "tenants", "add-account", "one", "a", "b", "c", "--json", *base)[1]
    )
    assert len({row["key"] for row in keys}) == 3
    assert (
        "codes, epsilon 10 of a document for life"
        in command("service", "tenants", "list", *base)[1]
    )
    for words in (("service", "tenants", "budget", "one"),):
        code, said = command(*words, *base)
        assert (code, "no meter and no window" in " ".join(said.split())) == (2, True)


def test_a_corpus_is_added_whole_or_says_what_was_left_out(command, tmp_path) -> None:
    base = ("--database", tmp_path / "s.db")
    command("service", "tenants", "create", "t", *CODES, *base)
    bad = tmp_path / "bad.jsonl"
    rows = ['{"id": "good", "text": "A good row."}', '{"id": "blank", "text": " "}', "no JSON"]
    rows += ['{"id": "half", "text": "\\ud800"}', '{"id": "nul\\u0000", "text": "A NUL."}']
    bad.write_text("\n".join(rows), encoding="utf-8")
    code, said = command("service", "tenants", "add-documents", "t", bad, "--json", *base)
    assert (code, "4 of the files and rows" in " ".join(said.split())) == (2, True), said
    assert (
        json.loads(command("service", "tenants", "list", "--json", *base)[1])[0]["documents"] == 0
    )
    code, said = command(
        "service", "tenants", "add-documents", "t", bad, "--json", "--skip-unusable", *base
    )
    told, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
    assert (code, told["added"], len(told["skipped"])) == (0, 1, 4)
    assert {one["line"] for one in told["skipped"]} == {2, 3, 4, 5}


def test_a_copy_is_said_to_be_restored(command, tmp_path, corpus) -> None:
    base, copy = ("--database", tmp_path / "s.db"), tmp_path / "copy.db"
    command("service", "tenants", "create", "paper", *QUICK, *base)
    command("service", "tenants", "create", "placed", *CODES, *base)
    command("service", "tenants", "add-documents", "paper", corpus, *base)
    shutil.copy(tmp_path / "s.db", copy)
    _, said = command("service", "restored", "--json", "--database", copy)
    assert json.loads(said) == {"paper": 1, "placed": 0}
    said = command("service", "restored", "--database", copy)[1]
    assert "placed: placed without windows; what was placed since counts as new" in said
    listed = json.loads(command("service", "tenants", "list", "--json", "--database", copy)[1])
    assert [row["documents"] for row in listed] == [5, 0]


@pytest.mark.parametrize(
    ("question", "mechanism"),
    [("What about ailment{}?", "codes"), ("Visit about ailment{}", "noise"), ("And now?", "codes")],
)
def test_sample_questions_decide_and_are_shown(
    command, tmp_path, question: str, mechanism: str
) -> None:
    """What nobody asks for by a word of its own is chance, whatever the best question finds."""
    path = tmp_path / "asked.jsonl"
    rows = [
        {"question": question.format(at), "text": f"Visit about ailment{at}"} for at in range(30)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    where = ("--database", tmp_path / "s.db", "--questions", path)
    extra = CODES if mechanism == "codes" else (
        *("--mechanism", "noise", "--epsilon", 60, "--queries", 1, "--accounts", 1, "--ids-only"),
        *("--joint-epsilon", 30, "--lifetime-epsilon", 30, "--embedder", "hashing:64"),
        *("--capacity", 32, "--top", 2),
    )  # fmt: skip
    code, said = command("service", "tenants", "create", "t", *extra, *where, "--json")
    if "And now" in question:
        assert (code, "30 sample questions may find no more" in " ".join(said.split())) == (2, True)
        code, said = command("service", "tenants", "create", "t", *extra, *where, "--knowingly")
        assert (code, "of 30 sample questions" in said) == (0, True), said
        return
    assert code == 0, said
    found = json.loads(said)["found"]
    assert (found["n"], found["low"] > 3 * json.loads(said)["chance"]) == (30, True)
    path.write_text('{"question": "a"}', encoding="utf-8")
    code, said = command("service", "tenants", "create", "u", *extra, *where)
    assert (code, "no sample questions" in said) == (2, True)
