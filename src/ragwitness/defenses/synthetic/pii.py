"""Contact details and identifying numbers in a text, found by form alone; no model is loaded.

Names and places have no form and are not found here: whoever owns the corpus lists them as secrets.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from ragwitness.errors import InputError, MissingExtraError
from ragwitness.text.secrets import CONTACTS

__all__ = ["Personal", "PiiFinder", "pii_finder"]

# Presidio's own finder of web addresses takes "times.no" in "three times.no problem" for one.
_KINDS = ("Email", "Phone", "UsSsn", "CreditCard", "Iban", "Ip", "MacAddress")
_SURE = 0.4  # of Presidio's scores: a telephone number has this, a bare run of digits less
_FORMS = tuple(zip(("EMAIL", "PHONE", "URL"), CONTACTS, strict=True))


@dataclass(frozen=True, slots=True, order=True)
class Personal:
    """One find, ``text[start:end]``."""

    start: int
    end: int
    kind: str


class PiiFinder(Protocol):
    """Finds personal details by their form."""

    @property
    def name(self) -> str:
        """What finds them, with its version."""

    def find(self, text: str) -> list[Personal]:
        """Return what was found, in order, without overlaps."""


def pii_finder(kind: str = "auto") -> PiiFinder:
    """Return a finder by name.

    Args:
        kind: ``"presidio"``, ``"contacts"``, ``"auto"`` (Presidio where it is installed) or
            ``"none"``.

    Raises:
        InputError: Unknown name.
        MissingExtraError: Presidio is asked for by name and not installed.
    """
    installed = importlib.util.find_spec("presidio_analyzer") is not None
    if kind == "presidio" or (kind == "auto" and installed):
        if not installed:
            raise MissingExtraError("Presidio", "pii")
        return _Presidio()
    if kind in ("auto", "contacts"):
        return _Contacts()
    if kind == "none":
        return _Nothing()
    raise InputError(
        f"pii must be auto, presidio, contacts or none, not {kind!r}.", "Write --pii auto."
    )


class _Nothing:
    name = "nobody (not looked for)"

    def find(self, text: str) -> list[Personal]:  # noqa: ARG002
        return []


class _Contacts:
    name = "our own expressions (e-mail, telephone, web address)"

    def find(self, text: str) -> list[Personal]:
        return _apart(
            Personal(*match.span(), kind)
            for kind, pattern in _FORMS
            for match in pattern.finditer(text)
        )


class _Presidio:
    """Presidio's recognisers that need no model, and our own expressions for web addresses."""

    def __init__(self) -> None:
        from importlib.metadata import version

        self.name = f"Presidio {version('presidio-analyzer')} without a model"
        self._contacts = _Contacts()

    def find(self, text: str) -> list[Personal]:
        found = _engine().analyze(text, language="en", score_threshold=_SURE)
        theirs = [Personal(one.start, one.end, _short(one.entity_type)) for one in found]
        return _apart([*theirs, *self._contacts.find(text)])


@cache
def _engine() -> Any:
    """Return the engine; it is slow to load, and made once."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)  # it tells of every recogniser
    import presidio_analyzer.predefined_recognizers as known
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine

    # Otherwise it fetches a list of domains from the network to judge the first e-mail address.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    recognizers = [getattr(known, f"{kind}Recognizer")() for kind in _KINDS]
    engine = NoOpNlpEngine(models=[{"lang_code": "en", "model_name": "none"}])
    engine.load()
    return AnalyzerEngine(
        registry=RecognizerRegistry(recognizers=recognizers),
        nlp_engine=engine,
        supported_languages=["en"],
    )


def _short(kind: str) -> str:
    """One name for a kind, whoever found it."""
    return kind.removesuffix("_ADDRESS").removesuffix("_NUMBER").removesuffix("_CODE")


def _apart(found: Iterable[Personal]) -> list[Personal]:
    """Keep the longest of those that overlap."""
    kept: list[Personal] = []
    for one in sorted(found, key=lambda one: (one.start - one.end, one.start)):
        if all(one.end <= other.start or one.start >= other.end for other in kept):
            kept.append(one)
    return sorted(kept)
