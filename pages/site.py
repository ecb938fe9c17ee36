"""Lay out the pages of the site: `python pages/site.py build/pages`, then zensical (`make docs`).

They are the pages of `docs/`; pages made from the code, which are the command line (``cli.md``)
and the public names (``api.md``); and pages that lie elsewhere in the repository: the papers, the
changes, the experiments. Links between all of them are written as paths of the repository, so that
they work there too, and are turned here.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_CARD = "src/ragwitness/models/reader/weights/MODEL_CARD.md"
_TOP = ("PAPERS.md", "CHANGELOG.md", "CONTRIBUTING.md", "RESPONSIBLE_USE.md", _CARD)
_RENAMED = {"README.md": "index.md", "docs/design": "CONTRIBUTING.md"}
# A stranger's search is for the pages that say how: these are read from where they are linked.
_UNSEARCHED = ("design/", "experiments", "src/", "CHANGELOG.md", "CONTRIBUTING.md", "PAPERS.md")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


def elsewhere() -> list[str]:
    """Return the paths of pages and figures outside `docs/` that the site shows."""
    folder = ROOT / "experiments"
    found = [*folder.glob("*/README.md"), *folder.glob("*/*.svg")]
    return [*_TOP, *sorted(path.relative_to(ROOT).as_posix() for path in found)]


def pages() -> dict[str, bytes]:
    """Return every page and figure of the site by its place there."""
    found = {
        path.relative_to(ROOT / "docs").as_posix(): path.read_bytes()
        for path in sorted((ROOT / "docs").rglob("*"))
        if path.is_file()
    }
    found |= {path: (ROOT / path).read_bytes() for path in elsewhere()}
    found["site.css"] = (ROOT / "pages" / "site.css").read_bytes()
    made = {"cli.md": command_line(), "api.md": public_names(), "experiments.md": figures()}
    found |= {path: text.encode() for path, text in made.items()}
    for path, content in found.items():
        if path.endswith(".md"):
            home = path if path in made or path in elsewhere() else f"docs/{path}"
            head = "---\nsearch: {exclude: true}\n---\n" if path.startswith(_UNSEARCHED) else ""
            found[path] = (head + turned(content.decode(), home, set(found))).encode()
    return found


def turned(markdown: str, home: str, known: set[str]) -> str:
    """Turn links between paths of the repository into links between pages of the site.

    Args:
        markdown: A page.
        home: Its path in the repository.
        known: Places on the site.
    """
    here = home.removeprefix("docs/")

    def link(found: re.Match[str]) -> str:
        mark, text, where, anchor = found[1], found[2], found[3], found[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), where))
        place = _RENAMED.get(path, path.removeprefix("docs/"))
        if place in known:
            return f"{mark}[{text}]({posixpath.relpath(place, posixpath.dirname(here))}{anchor})"
        # Code and folders stand in the repository alone: the reader is told where.
        return f"{text} (`{path}`)" if (ROOT / path).exists() else found[0]

    parts = _FENCED.split(markdown)
    return "".join(part if _FENCED.fullmatch(part) else _LINK.sub(link, part) for part in parts)


# The command line.


def command_line() -> str:
    """Return the page of all verbs, from their parameters."""
    import typer

    from ragwitness.cli.main import EXIT_CODES, HEADINGS, app

    top: Any = typer.main.get_command(app)
    lines = ["# Command line", "", "Every verb, as `ragwitness VERB --help` shows it.", EXIT_CODES]
    for heading, members in HEADINGS.items():
        lines += ["", f"## {heading}"]
        for name in members:
            for words, command in _verbs(name, top.get_command(None, name)):
                lines += ["", *_verb(words, command)]
    return "\n".join(lines) + "\n"


def _verbs(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield words, command
        return
    for name in command.list_commands(None):
        yield from _verbs(f"{words} {name}", command.get_command(None, name))


def _verb(words: str, command: Any) -> Iterator[str]:
    from ragwitness.cli.help import by_question

    paragraphs = (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    yield f"### ragwitness {words}"
    yield from (f"\n{_escaped(one)}" for one in paragraphs)
    yield f"\n```text\n{command.example}\n```\n"
    context = command.make_context(words, [], resilient_parsing=True)
    head = "|---|---|\n"
    for heading, rows in by_question(command, context):
        yield f"| | **{heading}** |\n{head}".rstrip("\n")
        head = ""
        for name, text in rows:
            yield f"| `{name.replace('|', chr(92) + '|')}` | {_escaped(text)} |"
    yield ""
    links = (f"[ragwitness {verb}](#ragwitness-{verb.replace(' ', '-')})" for verb in command.see)
    yield f"See also: {', '.join(links)}."


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<\[])", r"\\\1", " ".join(text.split(" ")))


# The public names.

_ROOMS = {
    "api": "The four questions",
    "asking": "What may be spent",
    "attest": "Windows and their records",
    "audits": "Audits in steps",
    "collusion": "Accounts that pool answers",
    "crypto": "Keys",
    "errors": "Errors",
    "membership": "Methods",
    "models": "Models",
    "privacy": "Noise and its accounting",
    "rag": "RAG systems of your own",
    "report": "Reports",
    "results": "Results",
    "targets": "Targets",
    "text": "Documents",
    "types": "Values",
}


def public_names() -> str:
    """Return the page of what ``import ragwitness`` offers, by the rooms where it lives."""
    face = (ROOT / "src/ragwitness/__init__.pyi").read_text(encoding="utf-8")
    rooms: dict[str, list[str]] = {}
    for home, name in re.findall(r"^from (ragwitness\.\S+) import (\w+) as", face, re.MULTILINE):
        rooms.setdefault(home.split(".")[1], []).append(f"::: {home}.{name}")
    lines = ["# Python", "", "All of this is in `import ragwitness`, and nothing else is promised."]
    for room, names in rooms.items():
        lines += ["", f"## {_ROOMS.get(room, room)}", *(f"\n{name}" for name in names)]
    return "\n".join(lines) + "\n"


# The figures.


def figures() -> str:
    """Return the page of all experiments: title, link, and figures that lead to them."""
    lines = ["# Figures and their experiments", ""]
    lines += ["Every figure is a link to the experiment that made it: command, n and limits."]
    for path in elsewhere():
        if path.endswith("README.md"):
            title = re.search(r"^# (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
            assert title is not None  # noqa: S101, every page has one
            lines += ["", f"## {title[1]}", "", f"[{path}]({path})", ""]
            folder = posixpath.dirname(path)
            lines += [
                f"[![{title[1]}: {Path(one).stem}]({one}){{ width=320 }}]({path})"
                for one in elsewhere()
                if one.startswith(f"{folder}/") and one.endswith(".svg")
            ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    for place, content in pages().items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_bytes(content)
