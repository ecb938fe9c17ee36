"""The one place that turns declared parameters into options of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, Union, cast, get_args, get_origin

import typer

from ragwitness.core.options import Arg, Declared, Only, Opt, Part, PathRole, declared, documented


class Files(dict[str, Path]):
    """Files wanted of a result, by format. As a parameter of a verb: one option per format."""

    @classmethod
    def given(cls, **paths: Path | None) -> Self:
        """Return those that are wanted, of options named FORMAT_out."""
        named = {name.removesuffix("_out"): path for name, path in paths.items()}
        return cls({name: path for name, path in named.items() if path is not None})


def with_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb as Typer takes it: one option or argument for each parameter.

    A parameter of a dataclass becomes one option for each field. A parameter of the type
    ``Files`` becomes one for each report format. The verb gets them as one value.
    """
    sentences, _ = documented(verb)
    parameters: list[inspect.Parameter] = []
    grouped: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for argument in declared(verb):
        if argument.kind == Files | None:
            formats = list(_formats())
            grouped[argument.name] = Files.given, [parameter.name for parameter in formats]
            parameters += formats
        elif part_mark := argument.mark(Part):
            always = [
                parameter for parameter in declared(part_mark.task) if not _special(parameter)
            ]
            grouped[argument.name] = dict, [parameter.name for parameter in always]
            parameters += map(_option, map(_loose, always))
        elif is_dataclass(argument.kind):
            options = declared(argument.kind)
            grouped[argument.name] = (
                cast("type", argument.kind),
                [parameter.name for parameter in options],
            )
            parameters += map(_option, options)
        else:
            parameters.append(_option(argument))

    # Values of a dataclass reach the verb as one value.
    def called(**values: Any) -> Any:
        for name_of_group, (make, names) in grouped.items():
            values[name_of_group] = make(**{name: values.pop(name) for name in names})
        return verb(**values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__name__, called.__doc__ = verb.__name__, sentences
    return called


def _special(own: Declared) -> bool:
    """Whether an option applies to some runs of a task alone."""
    only = own.mark(Only)
    return only is not None and "single" not in only.traits


def _loose(own: Declared) -> Declared:
    """Return a parameter as an option that need not be given."""
    marks = (Opt(help=mark.help) if isinstance(mark, Arg) else mark for mark in own.marks)
    default = None if own.default is MISSING else own.default
    return replace(own, marks=tuple(marks), default=default)


def _formats() -> Iterator[inspect.Parameter]:
    from ragwitness.report.files import FORMATS

    for name in FORMATS.names():
        text = FORMATS[name].summary if name in FORMATS else f"Also write this {name} file."
        marks = PathRole.WRITES, Opt(f"--{name}", help=text)
        yield _option(Declared(f"{name.replace('-', '_')}_out", Path | None, marks, None))


def _option(own: Declared) -> inspect.Parameter:
    """Return a parameter as Typer takes it."""
    info: Any = own.mark(typer.models.ParameterInfo)
    roles, kind = [mark for mark in own.marks if isinstance(mark, PathRole)], own.kind
    if info is None:  # one that prints and exits is as Typer has it
        kind, info = _typed(own, roles), _told(own, own.mark(Opt) or Opt())
    usual = inspect.Parameter.empty if own.default is MISSING else own.default
    return inspect.Parameter(
        own.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=usual,
        annotation=Annotated[(kind, *roles, info)],
    )


def _told(own: Declared, mark: Opt) -> Any:
    """Return the mark of a parameter as Typer has it."""
    text = mark.help or own.mark(str) or ""
    settings: dict[str, Any] = {"help": text, "metavar": mark.metavar, "envvar": mark.env}
    if mark.shown is not None:
        settings["show_default"] = mark.shown
    if isinstance(mark, Arg):
        return typer.Argument(**settings)
    # A flag that is off has no second spelling that takes it back.
    name = own.option if mark.name or mark.short or own.default is False else ""
    return typer.Option(*filter(None, (name, mark.short)), **settings)


def _typed(own: Declared, roles: Sequence[PathRole]) -> Any:
    """Return the type of a parameter on the command line; a program may pass more types."""
    plain = own.kind
    several = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    kinds = [get_origin(type_) or type_ for type_ in several]
    if {Sequence, Mapping} & {*kinds} and str not in kinds:
        return list[str] | None
    if PathRole.DOCUMENTS in roles or PathRole.ADDRESS in roles or plain is object:
        kinds = [str, *[type(None)] * (own.default is None)]
    elif Path in kinds:
        kinds = [Path, *[type(None)] * (type(None) in kinds)]
    elif str in kinds:
        kinds = [str, *[type(None)] * (type(None) in kinds)]
    else:
        return plain
    return kinds[0] | kinds[1] if len(kinds) > 1 else kinds[0]
