"""Marks beside a parameter's type: everything that a surface must know to ask for it.

A verb or a task is a plain signature or a frozen dataclass. Types and defaults are Python's
own; the help is the entry of the docstring; marks hold the rest::

    def draw(examples: Annotated[Path, PathRole.READS, Arg()], alpha: float = 0.05) -> None:
        '''Draw a secret.

Args:
            examples: The documents with a question each.
            alpha: The share of wrong accusations that is accepted.
        '''
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from urllib.parse import quote, unquote


class PathRole(Enum):
    """The use of a path that a parameter names."""

    READS = "reads"
    """A file or folder that is only read."""
    DOCUMENTS = "reads documents"
    """A file or folder that is only read, or a pasted text, or ``-``."""
    ADDRESS = "reads an address"
    """An address (target, model, template) that may name files, all only read."""
    PAIRS = "reads pairs"
    """Names with a file or folder each, only read."""
    KEEPS = "keeps"
    """A file or folder that is read and written: a key, a database, a window."""
    WRITES = "writes"
    """A file that is made or replaced."""
    PAGE = "writes the page"
    """As :attr:`WRITES`; it may also take the place of the page in the run folder."""
    FILLS = "fills"
    """A folder that the command puts its own files into: a run folder, a new window."""

    @property
    def verb(self) -> str:
        """The use, in one word."""
        return self.value.split()[0]


@dataclass(frozen=True, slots=True)
class Opt:
    """An option of the command line.

    Attributes:
        name: Its spelling, where it is not the parameter's name with dashes.
        short: A spelling of one letter.
        help: Its help, where a type is shared and no docstring has an entry for it.
        metavar: Placeholder of its value in the help.
        shown: The default in words, where None stands for something.
        env: Variable of the environment that is read where it is not given.
    """

    name: str = ""
    short: str = ""
    help: str = ""
    metavar: str | None = None
    shown: str | None = None
    env: str | None = None


@dataclass(frozen=True, slots=True)
class Arg(Opt):
    """An argument of the command line: given by its place."""


@dataclass(frozen=True, slots=True)
class Only:
    """The runs that an option applies to; in any other run it is refused.

    Attributes:
        traits: Of the task or of its method; one of them is enough (``option_validation``).
    """

    traits: tuple[str, ...]

    def __init__(self, *traits: str) -> None:
        object.__setattr__(self, "traits", traits)


@dataclass(frozen=True, slots=True)
class AskedAs:
    """How people are asked for an option, in a form or on a terminal.

    Attributes:
        under: Heading of the questions that it belongs to.
        label: The question.
        hint: Help for a person who has to answer it.
        form: How it is answered, where the type does not say so.
        choices: Answers to choose from, in words.
        names: ``module:object`` whose ``names()`` can be chosen as well.
    """

    under: str
    label: str
    hint: str = ""
    form: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    names: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping that a verb takes: the options of a task that always apply, none of them needed.

    Attributes:
        task: The task.
    """

    task: type


_M = TypeVar("_M")


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter of a verb, or a field of a task.

    Attributes:
        name: As Python has it.
        kind: Its type.
        marks: The marks beside the type, and its help.
        default: ``dataclasses.MISSING`` where it is needed.
    """

    name: str
    kind: Any
    marks: tuple[object, ...]
    default: object

    def mark(self, kind: type[_M]) -> _M | None:
        """Return the first mark of a kind."""
        return next((mark for mark in self.marks if isinstance(mark, kind)), None)

    @property
    def option(self) -> str:
        """How it is spelt on the command line."""
        mark = self.mark(Opt)
        return mark.name if mark and mark.name else f"--{self.name.replace('_', '-')}"


def declared(source: Any) -> list[Declared]:
    """Return what a verb or a task takes; its own fields before those that tasks share."""
    hints, (_, texts) = get_type_hints(source, include_extras=True), documented(source)
    if isinstance(source, type):
        defaults = {parameter.name: parameter.default for parameter in fields(source)}
        declared_here = [name for name in inspect.get_annotations(source) if name in defaults]
        defaults = {name: defaults[name] for name in (*declared_here, *defaults)}
    else:
        shape = inspect.signature(source).parameters
        defaults = {
            n: MISSING if parameter.default is parameter.empty else parameter.default
            for n, parameter in shape.items()
        }
    parameters = []
    for name, default in defaults.items():
        marks = getattr(hints[name], "__metadata__", ())
        kind = hints[name].__origin__ if marks else hints[name]
        text = [texts[name]] if name in texts else []
        parameters.append(Declared(name, kind, (*marks, *text), default))
    return parameters


def documented(source: object) -> tuple[str, dict[str, str]]:
    """Return the sentences of a docstring, and the text of each parameter or attribute.

    A class has those of the classes that it is made of as well.
    """
    if isinstance(source, type) and (bases := source.__mro__[1:-1]):
        inherited = [documented(text_of)[1] for text_of in reversed(bases) if text_of.__doc__]
    else:
        inherited = []
    text = inspect.getdoc(source) or ""
    sentences, *rest = re.split(r"^(Args|Attributes|Returns|Raises):$", text, flags=re.MULTILINE)
    listed = "".join(
        body for head, body in zip(rest[::2], rest[1::2], strict=True) if head[0] == "A"
    )
    # Each entry begins four columns in; what continues it stands further in.
    entries = (entry.partition(":") for entry in re.split(r"\n {4}(?=\w)", listed)[1:])
    entries_here = {name: " ".join(words.split()) for name, _, words in entries}
    return sentences.strip(), {
        name: text_of for texts in (*inherited, entries_here) for name, text_of in texts.items()
    }


# A file of options (TOML), as ``--config`` of every verb reads it.


def write_options(path: Path, options: Mapping[str, object], made_by: str) -> None:
    """Write options; those that are None are left out.

    Args:
        path: The file.
        options: By the option's name without dashes: a text, a number, true or false.
        made_by: The command for its first line.

    Raises:
        InputError: It cannot be written.
    """
    from ragwitness.core.files import replace_file

    rows = (f"{name} = {_value(value)}" for name, value in options.items() if value is not None)
    replace_file(path, "\n".join((f"# Made by: {made_by}", *rows)) + "\n")


def _value(one: object) -> str:
    # TOML's strings are JSON's, but for halves of surrogate pairs and for DEL.
    return json.dumps(one, ensure_ascii=False).replace("\x7f", "\\u007f")


# The paths that the value of an option names.

_FILE_SCHEMES = re.compile(r"((?:lab|replay|http|gguf)[:/](?!//))([^?]+)", re.IGNORECASE)
MODEL_ADDRESS = re.compile(r"(hf[:/])([^?#]+)", re.IGNORECASE)
_TEMPLATE = re.compile(r"(?<=[?&]template=)[^&]+")
_WORDS_OF_TEXT = 8  # fewer words are a path, mistyped perhaps


def map_paths(role: PathRole, value: str, change: Callable[[str], str]) -> str:
    """Return a value, as it was written, with every path in it changed."""
    if role is PathRole.DOCUMENTS:
        moved = change(value)
        return value if is_pasted(value, moved) else moved
    if role is PathRole.PAIRS:
        name, equals, path = value.partition("=")
        return f"{name}={change(path)}" if equals and path else value
    if role is PathRole.ADDRESS:
        return _map_address(value, change)
    return value if "://" in value else change(value)  # the address of a database has no path


def is_pasted(value: str, path: str) -> bool:
    """Whether a value for documents is standard input or the text itself, not a path."""
    return value == "-" or (len(value.split()) >= _WORDS_OF_TEXT and not os.path.exists(path))


def _map_address(value: str, change: Callable[[str], str]) -> str:
    text = value.strip()
    if "://" not in text and text.endswith(".toml") and not _FILE_SCHEMES.match(text):
        return change(value)  # a template or a domain
    # An address has its file before the question mark; options after it may name more.
    match = _FILE_SCHEMES.match(text)
    if match is None:
        return value
    text = match[1] + change(match[2]) + text[match.end() :]

    def changed(found: re.Match[str]) -> str:
        path = unquote(found[0])
        # A template of ours goes by its name, one of the user's by its file.
        moved = change(path) if path.endswith(".toml") else path
        return found[0] if moved == path else quote(moved)

    return _TEMPLATE.sub(changed, text)
