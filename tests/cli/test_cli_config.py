"""--config FILE means what the same options on the command line mean, for every verb."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_origin

import pytest

from ragwitness.text.sample import load_sample
from tests.cli.surface import verbs

_VERBS = dict(verbs())


def parsed(verb: str, *arguments: object) -> dict[str, Any]:
    return dict(_VERBS[verb].make_context(verb, list(map(str, arguments))).params)


def every_option(verb: str) -> tuple[str, list[str]]:
    """A file that sets every parameter of a verb, and the command line that says the same."""
    lines, tables, words = [], [], []
    for param in _VERBS[verb].params:
        long = param.opts[0]
        key = long.removeprefix("--")
        if key == "config" or param.is_eager:
            continue
        kind = _VERBS[verb]._kinds()[param.name]
        if kind is bool:
            value = not param.default
            lines.append(f"{key} = {str(value).lower()}")
            words.append(long if value else param.secondary_opts[0])
        elif key == "set":
            tables.append('[set]\n"one.two" = 0.1\n[set.min-k]\nvariant = "x"\nyes = true\n')
            words += [w for pair in ("one.two=0.1", "min-k.variant=x", "min-k.yes=true")
                      for w in ("--set", pair)]  # fmt: skip
        elif get_origin(kind) is list:
            lines.append(f'{key} = ["in:3", "out"]')
            named = [] if param.param_type_name == "argument" else [long]
            words += [*named, "in:3", *named, "out"]
        else:
            chosen = kind if isinstance(kind, str) else "file.x"  # the first of some choices
            said = {int: "3", float: "0.25"}.get(kind, chosen)
            lines.append(f"{key} = {said}" if kind in (int, float) else f'{key} = "{said}"')
            words += [said] if param.param_type_name == "argument" else [long, said]
    return "\n".join([*lines, *tables]), words


@pytest.mark.parametrize("verb", sorted(_VERBS))
def test_every_option_of_every_verb_can_stand_in_the_file(verb, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, words = every_option(verb)
    Path("run.toml").write_text(text)
    by_file = parsed(verb, "--config", "run.toml")
    assert by_file == parsed(verb, *words)
    settable = [p for p in _VERBS[verb].params if p.name != "config"]
    assert set(by_file) == {p.name for p in settable}
    # Another spelling of the names changes nothing.
    Path("run.toml").write_text(re.sub(r"(?m)^([a-z-]+) =", lambda m: m[0].replace("-", "_"), text))
    assert parsed(verb, "--config", "run.toml") == by_file


def test_the_command_line_comes_first(tmp_path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'target = "python:a:b"\ndocuments = "d"\nk = 7\nalpha = 0.01\n'
        'fail-on = ["in:3", "out"]\n[set]\nmode = "few"\nwords = 3\n'
    )
    found = parsed("audit", "--config", file, "--k", 2, "openai/m", "--set", "mode=probing",
                   "--fail-on", "in")  # fmt: skip
    assert (found["target"], found["k"], found["alpha"]) == ("openai/m", 2, 0.01)
    assert found["fail_on"] == ["in"]
    pairs = dict(pair.split("=") for pair in found["options"])
    assert pairs == {"mode": "probing", "words": "3"}


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    text = "one two three four five six seven eight and more"
    Path("conf").mkdir()
    Path("conf/run.toml").write_text(
        f'target = "replay/old"\ndocuments = "d.jsonl"\nknown-out = "~/k.jsonl"\n'
        f'known-in = "/abs/i.jsonl"\nauxiliary = "{text}"\njson = "out.json"\n'
    )
    found = parsed("audit", "--config", "conf/run.toml")
    assert found["target"] == "replay/conf/old"
    assert found["documents"] == "conf/d.jsonl"
    assert found["known_out"] == "/home/me/k.jsonl"
    assert found["known_in"] == "/abs/i.jsonl"
    assert found["auxiliary"] == text
    assert found["json_out"] == Path("conf/out.json")
    Path("conf/view.toml").write_text('runs = ["one", "/abs/two"]')
    runs = [Path("conf/one"), Path("/abs/two")]
    assert parsed("view", "--config", "conf/view.toml")["runs"] == runs
    Path("conf", text).write_text("")  # a file of that name is meant, if there is one
    assert parsed("audit", "--config", "conf/run.toml")["auxiliary"] == f"conf/{text}"


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        ("lab:c.jsonl?k=4&template=t.toml", "lab:my conf/c.jsonl?k=4&template=my%20conf/t.toml"),
        (
            "lab:c.jsonl?template=plain&defense=a+b",
            "lab:my conf/c.jsonl?template=plain&defense=a+b",
        ),
        ("hf:a/b", "hf:a/b"),
        ("gguf:a/b.gguf", "gguf:my conf/a/b.gguf"),
        ("http/service.toml", "http/my conf/service.toml"),
        ("replay:/abs/run", "replay:/abs/run"),
        ("http://host/v1?corpus=x#m", "http://host/v1?corpus=x#m"),
        ("openai/m", "openai/m"),
        ("python:mod:obj", "python:mod:obj"),
    ],
)
def test_files_in_addresses_are_relative_to_the_file(target, seen, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my conf").mkdir()
    for folder, expected in ((".", target), ("my conf", seen)):
        Path(folder, "run.toml").write_text(f'target = "{target}"\n')
        assert parsed("doctor", "--config", f"{folder}/run.toml")["target"] == expected


@pytest.mark.slow
def test_a_file_resumes_what_the_command_line_began(command, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, document in zip("dk", load_sample(), strict=False):
        Path(f"{name}.txt").write_text(document.text)
    Path("run.toml").write_text(
        'target = "python:no:where"\ndocuments = "d.txt"\nknown_out = "k.txt"\nmethod = "rag-mia"\n'
        "max-queries = 9\nconcurrency = 2\n[set]\nmax-tokens = 5\n"
    )
    line = ("--documents", "d.txt", "--known-out", "k.txt", "--method", "rag-mia")
    line = ("python:no:where", *line, "--set", "max_tokens=5")
    folders = []
    for words in (("--config", "run.toml"), line):
        code, text = command("audit", *words, "--dry-run")
        assert code == 0, text
        folders += re.findall(r"run folder: (\S+), new", text)
    assert folders == [folders[0]] * 2
