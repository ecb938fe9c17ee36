"""No verb loses a file that it was given: all verbs, all their paths, each input as each output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from ragwitness.cli.config_files import Configurable
from ragwitness.cli.paths import PathUse, check_paths
from ragwitness.core.errors import InputError
from ragwitness.core.options import PathRole
from tests.cli.surface import verbs

_READ = {PathRole.READS, PathRole.DOCUMENTS, PathRole.ADDRESS, PathRole.PAIRS}
_WRITTEN = {PathRole.WRITES, PathRole.PAGE}
_VERBS = dict(verbs())
_TEXT = '{"id": "a", "text": "given by a user and not to be lost"}\n'

_LIKE_A_PATH = re.compile(
    r"\b(file|folder|jsonl|csv|toml|svg|dir|path|documents in question|hf:|minilm)\b", re.IGNORECASE
)
_NO_PATH = {"text_field", "method", "methods", "index", "name", "commitment"}
"""Parameters whose help speaks of files, and which name none."""


def _paths(command: Configurable) -> Iterator[tuple[Any, PathRole]]:
    yield from ((p, command.roles[p.name]) for p in command.params if p.name in command.roles)


def _pairs() -> Iterator[tuple[str, str, str]]:
    """Each verb with each of its outputs and each of its inputs."""
    for words, command in _VERBS.items():
        given = list(_paths(command))
        outputs = [p.name for p, role in given if role in _WRITTEN]
        inputs = [p.name for p, role in given if role in _READ | {PathRole.KEEPS}]
        yield from ((words, out, read) for out, read in product(outputs, inputs))


def _outputs(*roles: PathRole) -> list[tuple[str, str]]:
    return [
        (words, param.name)
        for words, command in _VERBS.items()
        for param, role in _paths(command)
        if role in roles
    ]


def _value(role: PathRole, path: Path) -> str:
    """A value of the command line that names a file."""
    return {PathRole.ADDRESS: f"lab:{path}", PathRole.PAIRS: f"tenant={path}"}.get(role, str(path))


def _call(words: str, **given: str) -> list[str]:
    """A command line with these parameters and whatever else is required."""
    command, line = _VERBS[words], words.split()
    arguments = []
    for param in command.params:
        value = given.get(param.name)
        if value is None and param.required:
            role = command.roles.get(param.name)
            value = "1" if role is None else _value(role, Path(f"other-{param.name}"))
        if value is None:
            continue
        if param.opts[0].startswith("-"):
            line += [param.opts[0], value]
        else:
            arguments.append(value)
    return [*line, *arguments]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_parameter_that_names_a_path_says_what_is_done_with_it():
    lost = []
    for words, command in _VERBS.items():
        for name, hint in get_type_hints(command.callback).items():
            kinds = {hint, *get_args(hint)} | {k for part in get_args(hint) for k in get_args(part)}
            param = next((p for p in command.params if p.name == name), None)
            like_one = str in kinds and name not in _NO_PATH
            like_one = like_one and _LIKE_A_PATH.search(getattr(param, "help", None) or "")
            if name not in command.roles and param is not None and (Path in kinds or like_one):
                lost.append(f"{words} {name}")
    assert not lost


def test_every_output_has_its_verbs():
    assert len(_VERBS) > 35
    assert len(list(_pairs())) > 100


def _aliased() -> list[tuple[str, str, str, str]]:
    """Each pair by one name, and the first of each verb by other names of the same file."""
    first = {pair[0]: pair for pair in reversed(list(_pairs()))}.values()
    others = ("symlink", "hardlink", "around")
    return [(*pair, "same") for pair in _pairs()] + [(*p, a) for p in first for a in others]


@pytest.mark.parametrize(("words", "out", "read", "alias"), _aliased())
def test_no_output_takes_the_place_of_an_input(command, tmp_path, words, out, read, alias):
    roles = _VERBS[words].roles
    given, named = tmp_path / "mine.toml", tmp_path / "other.toml"
    given.write_text(_TEXT)
    if alias == "same":
        named = given
    elif alias == "symlink":
        named.symlink_to(given)
    elif alias == "hardlink":
        os.link(given, named)
    else:
        (tmp_path / "sub").mkdir()
        named = Path("sub") / ".." / "mine.toml"
    code, text = command(*_call(words, **{out: str(named), read: _value(roles[read], given)}))
    assert code == 2
    assert "would replace what" in text
    assert "next: " in text
    assert given.read_text() == _TEXT
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.toml", "other.toml", "sub"}


@pytest.mark.parametrize(
    ("words", "out", "read"),
    [
        (w, o, r)
        for w, o, r in _pairs()
        if _VERBS[w].roles[r] in {PathRole.DOCUMENTS, PathRole.PAIRS}
    ],
)
def test_no_output_goes_into_a_folder_that_is_read(command, tmp_path, words, out, read):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.txt").write_text(_TEXT)
    value = _value(_VERBS[words].roles[read], folder)
    code, text = command(*_call(words, **{out: str(folder / "new.jsonl"), read: value}))
    assert code == 2
    assert "would lie in the folder" in text
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("words", "out", "read"),
    [(w, o, r) for w, o, r in _pairs() if _VERBS[w].roles[r] is PathRole.READS],
)
def test_no_output_replaces_a_file_of_a_folder_that_is_read(command, tmp_path, words, out, read):
    (tmp_path / "mine").mkdir()
    given = tmp_path / "mine" / "a.txt"
    given.write_text(_TEXT)
    code, text = command(*_call(words, **{out: str(given), read: str(given.parent)}))
    assert (code, given.read_text()) == (2, _TEXT)
    assert "would replace a file of what" in text


@pytest.mark.parametrize(("words", "out"), _outputs(PathRole.WRITES, PathRole.PAGE))
def test_no_output_takes_the_place_of_another_or_of_the_configuration(
    command, tmp_path, words, out
):
    config = tmp_path / "mine.toml"
    config.write_text("# mine\n")
    code, text = command(*_call(words, **{out: str(config)}), "--config", config)
    assert (code, config.read_text()) == (2, "# mine\n")
    assert "--config" in text
    others = [o for w, o in _outputs(PathRole.WRITES, PathRole.PAGE) if w == words and o != out]
    for other in others:
        code, text = command(*_call(words, **{out: "one.json", other: "./one.json"}))
        assert code == 2
        assert "would replace what" in text


@pytest.mark.parametrize(("words", "out"), _outputs(PathRole.WRITES, PathRole.PAGE))
@pytest.mark.parametrize("name", ["result.json", "answers.jsonl", "safe.jsonl", "send/x.jsonl"])
def test_no_output_is_a_file_of_a_folder_that_the_verb_keeps(command, tmp_path, words, out, name):
    roles = _VERBS[words].roles
    for folder in [p for p, role in roles.items() if role in {PathRole.FILLS, PathRole.KEEPS}]:
        kept = tmp_path / folder
        (kept / "send").mkdir(parents=True)
        (kept / name).write_text(_TEXT)
        given = {out: str(kept / name), folder: str(kept)}
        code, text = command(*_call(words, **given))
        assert code == 2
        assert "would replace a file that" in text
        assert (kept / name).read_text() == _TEXT


@pytest.mark.slow
@pytest.mark.parametrize(("words", "out"), _outputs(PathRole.FILLS))
def test_no_folder_that_is_filled_is_or_holds_an_input(command, tmp_path, words, out):
    roles = _VERBS[words].roles
    for read in [p for p, role in roles.items() if role in _READ | {PathRole.KEEPS}]:
        folder = tmp_path / read
        folder.mkdir()
        given = folder / "documents.jsonl"
        given.write_text(_TEXT)
        for named in (given, folder):
            code, text = command(
                *_call(words, **{out: str(folder), read: _value(roles[read], named)})
            )
            assert code == 2
            assert "holds" in text or " is what " in text
        assert [path.name for path in folder.iterdir()] == ["documents.jsonl"]
        assert given.read_text() == _TEXT


@pytest.mark.parametrize(("words", "out"), _outputs(PathRole.WRITES, PathRole.PAGE, PathRole.FILLS))
def test_a_place_that_cannot_be_written_is_refused_before_anything(command, tmp_path, words, out):
    (tmp_path / "a-file").write_text(_TEXT)
    code, text = command(*_call(words, **{out: str(tmp_path / "a-file" / "out")}))
    assert code == 2
    assert "Cannot write" in text
    if os.getuid():  # root may write everywhere
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        code, text = command(*_call(words, **{out: str(closed / "out")}))
        assert code == 2
        assert "no permission" in text
    assert {path.name for path in tmp_path.iterdir()} <= {"a-file", "closed"}


def test_the_run_folder_that_follows_from_the_inputs_keeps_its_files(command, tmp_path):
    (tmp_path / "mine.jsonl").write_text(_TEXT)
    line = ["leak", "lab:mine.jsonl", "--corpus", "mine.jsonl"]
    code, text = command(*line, "--dry-run")
    assert code == 0
    folder = re.search(r"run folder: (\S+), new", text)[1]
    code, text = command(*line, "--json", f"{folder}/answers.jsonl")
    assert code == 2
    assert "would replace a file that" in text
    assert not any((tmp_path / folder).iterdir())


def test_pasted_text_standard_input_and_devices_are_no_files(command):
    pasted = "eight words or more are the text itself, not a path to it"
    for documents in (pasted, "-"):
        _, text = command("plan", "--documents", documents, "--method", "nope", "--json", "-")
        assert "nope" in text


def test_the_paths_of_a_command_are_forgotten_with_it(tmp_path, monkeypatch) -> None:
    """A program may call one verb after another."""
    from ragwitness.cli.paths import check_run_folder
    from tests.golden import tasks

    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text("{}")
    code, _ = tasks.call("audit", "lab:no.jsonl", "--documents", "mine.jsonl", "--json", "o.json")
    assert code == 2
    check_run_folder(tmp_path / "o.json")  # nobody writes it any longer


_NAMES = ["answers.jsonl", "spent.jsonl", "result.json", "result-2.json", "finished.jsonl.gz"]


@pytest.mark.parametrize(("words", "out"), _outputs(PathRole.WRITES, PathRole.PAGE))
def test_no_output_is_a_file_of_a_run_that_the_verb_does_not_name(command, tmp_path, words, out):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "spent.jsonl").write_text(_TEXT)
    (tmp_path / "link").symlink_to(tmp_path / "old")
    for name in [*_NAMES, "report.html"]:
        (tmp_path / "old" / name).write_text(_TEXT)
        for folder in ("old", "link"):
            code, text = command(*_call(words, **{out: f"{folder}/{name}"}))
            assert code == 2
            assert "would replace a file of the run in" in text
        assert (tmp_path / "old" / name).read_text() == _TEXT


def test_a_report_replaces_the_page_of_its_run_and_nothing_else_of_it(tmp_path):
    (tmp_path / "spent.jsonl").write_text(_TEXT)
    run = PathUse("RUN", PathRole.KEEPS, tmp_path / "result.json")
    check_paths([run, PathUse("--html", PathRole.PAGE, tmp_path / "report.html")])
    check_paths([PathUse("--json", PathRole.WRITES, tmp_path / "mine.json")])
    with pytest.raises(InputError, match="would replace a file of the run"):
        check_paths([run, PathUse("--jsonl", PathRole.WRITES, tmp_path / "answers.jsonl")])
    # A folder of the user's own is no run's, whatever the files in it are called.
    (tmp_path / "mine").mkdir()
    for name in ("result.json", "answers.jsonl"):
        (tmp_path / "mine" / name).write_text(_TEXT)
        check_paths([PathUse("--json", PathRole.WRITES, tmp_path / "mine" / name)])
