"""``--config FILE``: the options of any verb from a TOML file; the command line comes first.

Keys are checked against the verb's own parameters, so there is no list of them to maintain.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from ragwitness.cli.help import write_options
from ragwitness.cli.paths import PathUse, check_paths, make_places, roles_of, uses_of
from ragwitness.core.options import PathRole, map_paths

if TYPE_CHECKING:
    from ragwitness.core.errors import InputError

_HELP = "TOML file with any of these options; the command line comes first; see docs/config.md."
_LOOK = "docs/config.md shows a file; ragwitness VERB --help lists the names."
_CONFIG = "ragwitness.config"
"""Where a command remembers its configuration file."""
_PAIRS = "set"
"""The option of NAME=VALUE pairs; a table in the file."""
_KEY_LIKE = re.compile(
    r"(.*-)?(apikey|key|token|authorization|bearer|secret|passw\w*|credentials?)", re.IGNORECASE
)
_WANTED: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    Path: "a path in quotes",
    list: "a list of texts in quotes",
}


class Configurable(TyperCommand):
    """A verb that takes ``--config``; use as ``cls`` where it is registered.

    Attributes:
        home: Where the verb is implemented, as the table of ``cli/main.py`` has it.
    """

    home = ""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params = [*self.params, _config_option()]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write an example, the options by question, and the verbs to read about next."""
        write_options(self, ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the file before the parameters, so that they fall back on it.

        Raises:
            InputError: The file cannot be read, or a key or value in it cannot be used.
        """
        # Pass 1 only looks for --config; nothing is checked yet.
        typed, _, _ = self.make_parser(ctx).parse_args(list(args))
        file = typed.get("config")
        # As a path, an empty text would be the current folder.
        for param in self.params:
            role, values = self.roles.get(param.name, PathRole.READS), typed.get(param.name)
            if (param.name in self.roles or param.name == "config") and (
                "" in values if isinstance(values, list) else values == ""
            ):
                raise typer.BadParameter(f"{_option(param)} {_nothing(role)}.", ctx)
        if file is None or typed.get("help"):
            return super().parse_args(ctx, args)
        names = {
            _key(param): param
            for param in self.params
            if param.name != "config" and not param.is_eager  # one that prints and exits
        }
        path = ctx.meta[_CONFIG] = Path(file)
        file_values = _values(path, names, self._kinds(), self.roles)
        # Pass 2 reads the command line with the file's values as defaults: what was typed comes
        # first.
        ctx.default_map = {names[key].name: value for key, value in file_values.items()}
        if _PAIRS in file_values and typed.get(names[_PAIRS].name):
            # Pair by pair: those of the command line stand last and count.
            args = [word for pair in file_values[_PAIRS] for word in (f"--{_PAIRS}", pair)] + args
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            key = next((key for key, param in names.items() if param is error.param), "")
            if key not in file_values or typed.get(names[key].name) is not None:
                raise
            raise _unusable(path, key, file_values[key], error.message.rstrip(".")) from None

    def invoke(self, ctx: Any) -> Any:
        """Check all paths of the command against each other, then run the verb.

        Raises:
            InputError: An input would be lost, or an output cannot be written.
        """
        # The command's paths are forgotten with it.
        return copy_context().run(self._invoke, ctx)

    def _invoke(self, ctx: Any) -> Any:
        # Every path of the command, whatever option it came from, the file of options included.
        uses: list[PathUse] = []
        for param in self.params:
            value, role = ctx.params.get(param.name), self.roles.get(param.name)
            if role is not None and value is not None:
                uses += uses_of(_option(param), role, value)
        if (file := ctx.meta.get(_CONFIG)) is not None:
            uses.append(PathUse("--config", PathRole.READS, file))
        check_paths(uses)
        # A preview makes no folder.
        if not ctx.params.get("dry_run"):
            make_places(uses)
        return super().invoke(ctx)

    @functools.cached_property
    def roles(self) -> dict[str, PathRole]:
        """The role of each parameter that names paths."""
        return roles_of(get_type_hints(self.callback, include_extras=True))

    def _kinds(self) -> dict[str, object]:
        """Type of each parameter without None: ``list[str]``, ``list[Path]`` or one of _WANTED."""
        kinds: dict[str, object] = {}
        for name, hint in get_type_hints(self.callback).items():
            members = () if get_origin(hint) is list else get_args(hint)
            kinds[name] = next((member for member in members if member is not type(None)), hint)
        return kinds


@functools.cache
def _config_option() -> Any:
    """``--config`` as a parameter, made by Typer as it makes all others."""

    def takes(
        config: Annotated[Path | None, typer.Option(help=_HELP, expose_value=False)] = None,
    ) -> None: ...

    maker = typer.Typer(add_completion=False)
    maker.command()(takes)
    return typer.main.get_command(maker).params[0]


def _option(param: Any) -> str:
    return str(param.opts[0] if param.opts[0].startswith("-") else param.name.upper())


def _nothing(role: PathRole) -> str:
    """Return the message for an empty text where a path is expected."""
    return "names no folder; . is the current one" if role is PathRole.FILLS else "names nothing"


def _key(param: Any) -> str:
    """The name of a parameter as users write it: its long option, else its own name."""
    return str(param.opts[0]).lstrip("-").replace("_", "-")


def _values(
    path: Path, names: Mapping[str, Any], kinds: Mapping[str, object], roles: Mapping[str, PathRole]
) -> dict[str, Any]:
    """Read a file into values by key.

    Args:
        path: The file.
        names: The verb's parameters by key.
        kinds: Their types by name.
        roles: Of the parameters that name paths, by name.

    Raises:
        InputError: The file cannot be read, or a key or value in it cannot be used.
    """
    from ragwitness.core.errors import InputError

    folder = "" if path.parent == Path() else path.parent

    def join(named: str) -> str:
        """A path in the file is relative to the file, wherever the command is issued."""
        return os.path.join(folder, os.path.expanduser(named))

    values: dict[str, Any] = {}
    for written, value in _table(path).items():
        key = written.replace("_", "-")
        # Unknown keys are errors: a mistyped cap would be no cap.
        if key not in names:
            raise _unknown(path, written, names)
        if key in values:
            raise InputError(f"{path}: {key!r} is there twice.", "Leave one of them.")
        name, kind = names[key].name, kinds[names[key].name]
        if key == _PAIRS and isinstance(value, dict):
            values[key] = list(_pairs(path, value))
            continue
        if not _is(value, kind):
            expected = "a table [set]" if key == _PAIRS else _WANTED[get_origin(kind) or kind]
            raise _unusable(path, key, value, f"{expected} is wanted")
        role = roles.get(name)
        entries = value if isinstance(value, list) else [value]
        if role is not None and "" in entries:
            raise _unusable(path, key, value, f"it {_nothing(role)}")
        located = [
            map_paths(role, entry, join) if role and isinstance(entry, str) else entry
            for entry in entries
        ]
        values[key] = located if isinstance(value, list) else located[0]
    return values


def _table(path: Path) -> dict[str, Any]:
    """Parse a file.

    Raises:
        InputError: It is missing, unreadable or no TOML.
    """
    import tomllib

    from ragwitness.core.errors import InputError

    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"--config {path} cannot be read: {reason}.", _LOOK) from None
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path} is not UTF-8 (at line {line}).", "Save it as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"{path} is no TOML: {reason}.", _LOOK) from None


def _pairs(path: Path, table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Turn ``[set]`` into NAME=VALUE; a table within it is an audit's own."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _pairs(path, value, f"{before}{name}.")
        elif isinstance(value, bool):
            yield f"{before}{name}={str(value).lower()}"
        elif isinstance(value, str | int | float):
            yield f"{before}{name}={value}"
        else:
            where = f"{_PAIRS}.{before}{name}"
            raise _unusable(path, where, value, "a text, a number, true or false is wanted")


def _is(value: object, kind: object) -> bool:
    if get_origin(kind) is list:
        return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, bool if kind is bool else str)


def _unknown(path: Path, written: str, names: Mapping[str, Any]) -> InputError:
    """Return the error of a key that the verb does not have; values are never repeated."""
    from difflib import get_close_matches

    from ragwitness.core.errors import InputError

    key = written.replace("_", "-").lower()
    near = get_close_matches(key, names, n=1)
    # Keys and tokens have no place in a file; the message names the variable and not the value.
    if _KEY_LIKE.fullmatch(key) and not get_close_matches(key, names, cutoff=0.85):
        return InputError(
            f"{path}: {written!r} looks like a key, which does not belong in a file.",
            'Put it into a variable of the environment, and its NAME here: key-env = "MY_KEY".',
        )
    hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
    return InputError(f"{path}: unknown key {written!r}.", hint)


def _unusable(path: Path, key: str, value: object, why: str) -> InputError:
    import json

    from ragwitness.core.errors import InputError
    from ragwitness.core.quotes import quote

    # A key that was written in place of its variable must not reach a log.
    written = json.dumps(value, default=str, ensure_ascii=False)
    quoted = "" if key in ("key-env", "header") else f" = {quote(written, longest=80)}"
    return InputError(f"{path}: {key}{quoted} cannot be used: {why}.", _LOOK)
