"""What a declaration is on the command line: the one place that turns parameters into options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, Union, cast, get_args, get_origin, get_type_hints

import typer

from ragwitness.kit.options import Arg, Only, Opt, Part, PathRole, declared, documented


class Files(dict[str, Path]):
    """Files wanted of a result, by format. As a parameter of a verb: one option per format."""

    @classmethod
    def given(cls, **paths: Path | None) -> Self:
        """Return those that are wanted, of options named FORMAT_out."""
        named = {name.removesuffix("_out"): path for name, path in paths.items()}
        return cls({name: path for name, path in named.items() if path is not None})


def with_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb as Typer takes it: every parameter an option or argument of its own.

    A parameter of a dataclass becomes an option for each field, and one of the type ``Files`` an
    option for each format of :mod:`ragwitness.report.files`; the verb gets them as one value.
    """
    sentences, _ = documented(verb)
    shown: list[inspect.Parameter] = []
    parts: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for own in _parameters(verb):
        if own.annotation == Files | None:
            formats = list(_formats())
            parts[own.name] = Files.given, [one.name for one in formats]
            shown += formats
        elif part := next((one for one in _marks(own) if isinstance(one, Part)), None):
            always = [one for one in _parameters(part.errand) if not _special(one)]
            parts[own.name] = dict, [one.name for one in always]
            shown += map(_option, map(_loose, always))
        elif isinstance(own.annotation, type) and is_dataclass(own.annotation):
            options = _parameters(own.annotation)
            parts[own.name] = own.annotation, [one.name for one in options]
            shown += map(_option, options)
        else:
            shown.append(_option(own))

    # What was given of a dataclass reaches the verb as one value.
    def called(**values: Any) -> Any:
        for place, (make, names) in parts.items():
            values[place] = make(**{name: values.pop(name) for name in names})
        return verb(**values)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in shown}
    called.__name__, called.__doc__ = verb.__name__, sentences
    return called


def _parameters(source: Any) -> list[inspect.Parameter]:
    """Return what a verb or dataclass takes; each annotation carries its help in an Opt."""
    _, texts = documented(source)
    if is_dataclass(source):
        own = [(one.name, one.hint, one.default) for one in declared(cast("type", source))]
    else:
        hints = get_type_hints(source, include_extras=True)
        shape = inspect.signature(source).parameters
        own = [(name, hints[name], one.default) for name, one in shape.items()]
    kind, needed = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    made = []
    for name, plain, default in own:
        hint = Annotated[plain, texts[name]] if name in texts else plain
        usual = needed if default is MISSING else default
        made.append(inspect.Parameter(name, kind, default=usual, annotation=hint))
    return made


def _marks(own: inspect.Parameter) -> tuple[object, ...]:
    return getattr(own.annotation, "__metadata__", ())


def _special(own: inspect.Parameter) -> bool:
    """Whether an option applies to some runs of an errand alone."""
    return any(isinstance(one, Only) and "single" not in one.traits for one in _marks(own))


def _loose(own: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as an option that need not be given."""
    plain = own.annotation.__origin__
    marks = [Opt(help=one.help) if isinstance(one, Arg) else one for one in _marks(own)]
    default = None if own.default is inspect.Parameter.empty else own.default
    return own.replace(annotation=Annotated[(plain, *marks)], default=default)


def _formats() -> Iterator[inspect.Parameter]:
    from ragwitness.report.files import FORMATS

    for name, form in FORMATS.items():
        hint = Annotated[Path | None, PathRole.WRITES, Opt(f"--{name}", help=form.help)]
        kind = inspect.Parameter.KEYWORD_ONLY
        own = inspect.Parameter(f"{name}_out", kind, default=None, annotation=hint)
        yield _option(own)


def _option(own: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as Typer takes it."""
    marks = _marks(own)
    if any(isinstance(one, typer.models.ParameterInfo) for one in marks):
        return own  # one that prints and exits, as Typer has it
    mark = next((one for one in marks if isinstance(one, Opt)), Opt())
    text = mark.help or next((one for one in marks if isinstance(one, str)), "")
    roles = [one for one in marks if isinstance(one, PathRole)]
    plain = _typed(own, roles)
    settings: dict[str, Any] = {"help": text, "metavar": mark.metavar, "envvar": mark.env}
    if mark.shown is not None:
        settings["show_default"] = mark.shown
    if mark.least is not None:
        settings["min"] = mark.least
    if isinstance(mark, Arg):
        told: Any = typer.Argument(**settings)
    else:
        # A flag that is off has no second spelling that takes it back.
        alone = bool(mark.short) or own.default is False
        name = mark.name or f"--{own.name.replace('_', '-')}" * alone
        told = typer.Option(*filter(None, (name, mark.short)), **settings)
    return own.replace(annotation=Annotated[(plain, *roles, told)])


def _typed(own: inspect.Parameter, roles: Sequence[PathRole]) -> Any:
    """Return the type of what is typed for a parameter, of which a program may give more kinds."""
    whole = own.annotation
    plain = whole.__origin__ if hasattr(whole, "__metadata__") else whole
    several = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    kinds = [get_origin(one) or one for one in several]
    if PathRole.DOCUMENTS in roles or PathRole.ADDRESS in roles or plain is object:
        kinds = [str, *[type(None)] * (own.default is None)]
    elif Path in kinds:
        kinds = [Path, *[type(None)] * (type(None) in kinds)]
    elif str in kinds:
        kinds = [str, *[type(None)] * (type(None) in kinds)]
    elif {Sequence, Mapping} & {*kinds}:
        return list[str] | None
    else:
        return plain
    return kinds[0] | kinds[1] if len(kinds) > 1 else kinds[0]
