"""Things that users call by name: ours, and what other packages add by entry points.

There is one :class:`Registry` for each kind of thing: audits, attacks, defenses, ways of making
synthetic data, indexes, models, targets. All behave alike. Ours are imported when they are
loaded. Plug-ins are searched when a name is not built in, or when names are listed. Listing
loads nothing: a broken plug-in is named and hinders nothing else.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from ragwitness.core.errors import InputError, RagwitnessError, UnlistedError
from ragwitness.core.quotes import quote_error

_LISTED: ContextVar[frozenset[str] | None] = ContextVar("listed", default=None)


@contextmanager
def nothing_but(names: Collection[str]) -> Iterator[None]:
    """Load no plug-in and no model within the block but those of these names.

    Read a stranger's file in such a block. Names are compared letter by letter,
    where something is loaded: no spelling of a host, a path or a model passes for another.
    """
    token = _LISTED.set(frozenset(names))
    try:
        yield
    finally:
        _LISTED.reset(token)


def refuse_unlisted(name: str) -> None:
    """Refuse to load something within :func:`nothing_but` that is not listed there.

    Raises:
        UnlistedError: It is not; the message is its name, quoted and cut.
    """
    listed = _LISTED.get()
    if listed is not None and name not in listed:
        raise UnlistedError(repr(name[:200]))


@dataclass(frozen=True, slots=True)
class Listing:
    """Something of ours that has a name.

    Attributes:
        home: ``"module:attribute"``, imported when it is loaded; or the thing itself.
        summary: Its purpose, in a few words.
        form: How users write it, such as ``hf:NAME`` or ``mirabel[:RHO]``; empty
            where the name is all.
        preset: Fields of its configuration that the name stands for.
    """

    home: Any
    summary: str = ""
    form: str = ""
    preset: Mapping[str, object] = field(default_factory=dict)


EntryT = TypeVar("EntryT", bound=Listing)


class Registry(Mapping[str, EntryT], Generic[EntryT]):
    """Things of one kind by name. As a mapping it holds ours, in the order of ``entries``.

    Args:
        noun: The word for one of them, in messages.
        entries: Ours by name.
        group: Entry-point group of other packages; None where they cannot add any.
        more: Other spellings that a user may write, in messages.
        fits: Whether the object of a plug-in can be one; None accepts any.
        needs: The form that such an object must have, in messages.
    """

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, EntryT],
        *,
        group: str | None = None,
        more: str = "",
        fits: Callable[[Any], bool] | None = None,
        needs: str = "",
    ) -> None:
        self.noun, self.group = noun, group
        self._a = "an" if noun[0] in "aeiou" else "a"
        self._entries, self._more, self._fits, self._needs = entries, more, fits, needs

    def __getitem__(self, name: str) -> EntryT:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def plugins(self) -> list[str]:
        """Return the names that other packages add, sorted; none of them is loaded."""
        if not self.group:
            return []
        return sorted({entry.name for entry in entry_points(group=self.group)} - set(self))

    def names(self) -> tuple[str, ...]:
        """Return all names, those of other packages last."""
        return (*self, *self.plugins())

    def forms(self) -> tuple[str, ...]:
        """Return how each is written, those of other packages last."""
        return (*(listing.form or name for name, listing in self.items()), *self.plugins())

    def unknown(self, name: str) -> InputError:
        """Return the error of a name that nothing has, with the names that there are."""
        # A typing error is the commonest cause.
        close = get_close_matches(name, self.names(), 1)
        guess = f"Did you mean {close[0]}? " if close else ""
        return InputError(
            f"There is no {self.noun} {name!r}.",
            f"{guess}Known: {', '.join(self.forms())}{self._more}.",
        )

    def load(self, name: str) -> Any:
        """Return what a name stands for; importing it may take a while.

        Args:
            name: One of :meth:`names`; ``NAME:PRESET`` where its configuration has that preset.

        Raises:
            InputError: Nothing has this name, or a plug-in cannot be loaded or is something else.
            UnlistedError: It is a plug-in that :func:`nothing_but` keeps out.
        """
        name, _, preset = name.partition(":")
        loaded = self._load(name)
        if preset:
            self._preset(name, preset, loaded)
        return loaded

    def _load(self, name: str) -> Any:
        if name in self:
            home = self[name].home
            if not isinstance(home, str):
                return home
            # Ours: imported now, and only this one.
            module, _, attribute = home.partition(":")
            return attrgetter(attribute)(importlib.import_module(module))
        # Another package's: found, loaded alone, and checked before it is used.
        refuse_unlisted(name)
        plugin = self._plugin(self.group, name) if name and self.group else None
        if plugin is None:
            raise self.unknown(name)
        if self._fits and not self._fits(plugin):
            raise InputError(
                f"The plug-in {name!r} ({self.group}) is not {self._a} {self.noun}.", self._needs
            )
        return plugin

    @staticmethod
    def _preset(name: str, preset: str, kind: Any) -> Mapping[str, object]:
        """Fields that ``NAME:PRESET`` sets: ``presets`` of the configuration's class."""
        presets: Mapping[str, Mapping[str, object]] = getattr(config_class(kind), "presets", {})
        if preset not in presets:
            names = ", ".join(f"{name}:{preset_name}" for preset_name in presets) or "none"
            raise InputError(
                f"{name} has no preset {preset!r}.", f"Its presets: {names}; {name} alone is ours."
            )
        return presets[preset]

    def guard(self, name: str, make: Callable[[], Any]) -> Any:
        """Call a maker; a plug-in may fail in any way.

        Raises:
            InputError: A plug-in failed.
        """
        if name in self:
            return make()
        try:
            return make()
        except RagwitnessError:
            raise
        except Exception as error:
            raise InputError(
                f"The plug-in {self.noun} {name!r} failed: {quote_error(error)}.",
                "See the documentation of the package that brings it.",
            ) from None

    def split(self, spec: str) -> tuple[str, str]:
        """Return name and option of ``NAME`` or ``NAME:OPTION``; no option is an empty text.

        Raises:
            InputError: One of ours is not written in its form, or nothing can have this name.
        """
        name, colon, option = spec.partition(":")
        if name in self:
            form = self[name].form
            takes = ":" in form
            if not (option and takes if colon else "[" in form or not takes):
                raise self.malformed(spec)
        elif not self.group:
            raise self.unknown(spec)
        return name, option

    def malformed(self, spec: str) -> InputError:
        """Return the error of one of ours that is not written in its form."""
        name = spec.partition(":")[0]
        return InputError(
            f"The {self.noun} {spec!r} is malformed.", f"Write it as {self[name].form or name}."
        )

    def configure(
        self,
        name: str,
        options: Mapping[str, object] | None = None,
        fixed: Mapping[str, object] | None = None,
    ) -> Any:
        """Return the configuration of something that has one.

        Args:
            name: One of :meth:`names`; ``NAME:PRESET`` begins with the fields of a preset.
            options: Fields of the configuration; text is turned into the field's type.
            fixed: Fields that have options of their own, with their values, None for the
                default; what the configuration does not have is left out.

        Raises:
            InputError: Unknown name, field or value, or a plug-in that fails.
        """
        kind = self.load(name)
        config = config_class(kind)
        fixed = fixed or {}
        # Preset, what the name itself means, then options as text of the type of each field's
        # default, then fixed fields.
        field_names = {item.name for item in fields(config)}
        plain, _, preset = name.partition(":")
        begun = self._preset(plain, preset, kind) if preset else {}
        chosen = {**begun, **(self[plain].preset if plain in self else {}), **(options or {})}
        values = typed_fields(name, self.guard(name, config), field_names - set(fixed), chosen)
        values |= {
            key: value for key, value in fixed.items() if key in field_names and value is not None
        }
        return self.guard(name, lambda: config(**values))

    @staticmethod
    def _plugin(group: str, name: str) -> Any | None:
        """Load what an installed package registered under a name; None where nobody did."""
        entries = {entry.value: entry for entry in entry_points(group=group, name=name)}
        if not entries:
            return None
        if len(entries) > 1:
            owners = " and ".join(sorted(_owner(entry) for entry in entries.values()))
            raise InputError(
                f"{name!r} is registered more than once under {group}: {owners}.",
                "Uninstall all but one of these packages.",
            )
        (entry,) = entries.values()
        try:
            return entry.load()
        except (Exception, SystemExit) as error:
            raise InputError(
                f"The plug-in {name!r} ({group}, {_owner(entry)}) cannot be loaded: "
                f"{quote_error(error)}.",
                "Repair or uninstall the package that brings it; nothing else depends on it.",
            ) from None


def config_class(kind: Any) -> Any:
    """Return the dataclass in a class's module that has its name followed by ``Config``, or None.

    Args:
        kind: A class, or anything else.
    """
    where = sys.modules.get(getattr(kind, "__module__", ""))
    config = getattr(where, f"{getattr(kind, '__name__', '')}Config", None)
    return config if inspect.isclass(kind) and is_dataclass(config) else None


def _owner(entry: EntryPoint) -> str:
    """Package and object of an entry point, for people."""
    package = entry.dist.name if entry.dist is not None else "unknown package"
    return f"{entry.value} of {package}"


# Fields of a configuration: read from the text of a command line, and checked when it is made.


def typed_fields(
    name: str, default: object, known: Collection[str], options: Mapping[str, object]
) -> dict[str, Any]:
    """Return options with text turned into the type of each field's default.

    Args:
        name: Of what is configured, for people.
        default: A configuration as it is without options.
        known: Fields that may be given.
        options: Values by field.

    Raises:
        InputError: Unknown field, or a value of another type.
    """
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(
            f"{name} has no option {unknown[0]!r}.", f"It has: {', '.join(sorted(known))}."
        )
    return {
        key: _like(getattr(default, key), value, f"{name}: {key}") for key, value in options.items()
    }


def _like(default: object, value: object, what: str) -> object:
    """Return a value of the type of a field's default, made of text where that is given."""
    # The default tells the type: a command line knows nothing but text.
    kind = next((type_ for type_ in (bool, int, float, str) if isinstance(default, type_)), None)
    if not isinstance(value, str):
        # A whole number will do for any, and True is none.
        takes = int | float if kind is float else kind or object
        if isinstance(value, takes) and isinstance(value, bool) <= (kind in (bool, None)):
            return value
    elif default is None:
        return _number_or_none(value, what)
    elif kind is str:
        return value
    elif kind is bool:
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if value.lower() in words:
            return words[value.lower()]
    else:
        try:
            return (kind or float)(value)
        except ValueError:
            pass
    raise InputError(f"{what} cannot be {value!r}.", f"Its default is {default!r}.")


def _number_or_none(text: str, what: str) -> float | None:
    """Read a field that is unset by default; ours are numbers when set."""
    if text.strip().lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} cannot be {text!r}.", "Give a number, or 'none'.") from None


# Checks of configurations, with the same messages everywhere.


def at_least(config: object, least: int, *names: str) -> None:
    """Refuse a field that is below ``least``.

    Raises:
        InputError: One is.
    """
    for name in names:
        # Not "<": NaN is below nothing and would pass.
        if not getattr(config, name) >= least:
            raise InputError(f"{name} must be at least {least}, not {getattr(config, name)}.")


def one_of(config: object, name: str, *choices: str) -> None:
    """Refuse a field that is none of the choices.

    Raises:
        InputError: It is not.
    """
    value = getattr(config, name)
    if value not in choices:
        *first, last = map(repr, choices)
        raise InputError(f"{name} must be {', '.join(first)} or {last}, not {value!r}.")


def ordered(config: object, low: str, high: str) -> None:
    """Refuse an upper limit below the lower one.

    Raises:
        InputError: It is.
    """
    least, upper = getattr(config, low), getattr(config, high)
    if upper < least:
        raise InputError(f"{high} must be at least {low} ({least}), not {upper}.")


# Code that only reproduces papers is in ``research/`` of a checkout, not in the wheel.


def of_checkout(home: str) -> Any:
    """Return a thing of the checkout around this package.

    Args:
        home: ``"research.module:attribute"``.

    Raises:
        InputError: This is the installed package alone.
    """
    # The wheel has no research/: only a checkout around this file has it.
    root = Path(__file__).resolve().parents[3]
    if not ((root / "research").is_dir() and (root / "experiments").is_dir()):
        raise InputError(
            "The programs that reproduce papers are in a checkout of the repository; this is the"
            " installed package.",
            "Clone the repository (its address: pip show ragwitness), run pip install -e . in the"
            " clone, then the same command.",
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(module), attribute)
