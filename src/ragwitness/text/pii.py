"""Personal details in a text: by form, by Presidio's recognisers, by any model that finds names.

Details with a form (addresses, numbers) need no model. Names and places have none: the owner of
the corpus lists them as secrets, or names a model here. ``benchmarks/pii.py`` measures each
finder's recall on real text, which is printed beside its name.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import regex as re

from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.core.quotes import quote_error
from ragwitness.text.secrets import CONTACTS, LATIN, Secret
from ragwitness.text.words import LETTER, letters_of, script_pattern, split_words

_SURE = 0.4  # of Presidio's scores: a telephone number has this, a bare run of digits less
_FORMS = tuple(zip(("EMAIL", "PHONE", "URL"), CONTACTS, strict=True))
_WINDOW, _STEP = 200, 160  # words of one pass of a model, and between two passes

# Measured by benchmarks/pii_forms.py, by kind, and benchmarks/pii.py, on dialogues and meetings; a
# test holds them to docs/synthesize.md.
MISSES_CONTACTS = (
    "every name, date, street address and number of a person, and most telephone numbers of other"
    " countries: of 204 made-up forms of 16 kinds it finds 25 (12 of 12 e-mail addresses, 9 of 17"
    " telephone numbers, 3 of 8 web addresses); of 215 details labelled by hand in dialogues and"
    " meetings .06 [.03, .10]"
)
MISSES_PRESIDIO = (
    "every name, street address and place, nearly all medical record and policy numbers, post codes"
    " and account names, half of the dates of birth and of the passports: of 204 made-up forms of"
    " 16 kinds it finds 94; of 215 details labelled by hand in dialogues and meetings .07 [.04,"
    " .11]; add a model, e.g. +spacy:en_core_web_sm"
)


@dataclass(frozen=True, slots=True, order=True)
class Personal:
    """One detail, ``text[start:end]``."""

    start: int
    end: int
    kind: str


class PiiFinder(Protocol):
    """Finds personal details."""

    @property
    def name(self) -> str:
        """Name and version of the finder."""

    @property
    def misses(self) -> str:
        """Kinds of details that it misses, with the measured recall if there is one."""

    def find(self, text: str) -> list[Personal]:
        """Return the details in order, without overlaps."""


def pii_finder(kind: str = "auto") -> PiiFinder:
    """Return a finder by name.

    Args:
        kind: ``"auto"`` or ``"contacts"`` (our own expressions, on every machine),
            ``"presidio"`` (every recogniser that needs no model), ``"none"``, ``"spacy:MODEL"``,
            or ``"hf:MODEL"`` (a token classifier of transformers, by name or folder). Several
            names are joined by ``+``.

    Raises:
        InputError: Unknown name.
        MissingExtraError: The named finder is not installed.
        ModelError: A model cannot be loaded.
    """
    finders = [_finder(name.strip()) for name in kind.split("+")]
    return finders[0] if len(finders) == 1 else _Several(finders)


def _finder(kind: str) -> PiiFinder:
    if kind == "presidio":
        if importlib.util.find_spec("presidio_analyzer") is None:
            raise MissingExtraError("Presidio", "pii")
        return _Presidio()
    # One default for all machines, whatever else is installed on them.
    if kind in ("auto", "contacts"):
        return _Contacts()
    if kind == "none":
        return _Several([])
    library, _, model = kind.partition(":")
    if library in _MODELS and model:
        return _Named(kind, model, _MODELS[library])
    raise InputError(
        f"pii must be contacts, presidio, none, spacy:MODEL or hf:MODEL, not {kind!r}.",
        "Write --pii presidio, or e.g. --pii presidio+spacy:en_core_web_sm.",
    )


def personal_of(records: Iterable[tuple[str, str]], finder: PiiFinder) -> list[Secret]:
    """Return the personal details in records as a ledger, each once a record.

    Args:
        records: Id and text of each.
        finder: Its addresses and numbers by form are of the kind ``"contact"``.
    """
    forms = {kind for kind, _ in _FORMS}
    # Equal details of one record count once.
    secrets = []
    for name, record in records:
        details = {
            (record[item.start : item.end], "contact" if item.kind in forms else item.kind.lower())
            for item in finder.find(record)
        }
        secrets += [Secret(text, kind, name) for text, kind in sorted(details)]
    return secrets


class _Contacts:
    name = "our own expressions (e-mail, telephone, web address)"
    misses = MISSES_CONTACTS

    def find(self, text: str) -> list[Personal]:
        return _apart(
            Personal(*match.span(), kind)
            for kind, pattern in _FORMS
            for match in pattern.finditer(text)
        )


class _Presidio:
    """Presidio's recognisers that need no model, and our own expressions."""

    misses = MISSES_PRESIDIO

    def __init__(self) -> None:
        from importlib.metadata import version

        self.name = (
            f"Presidio {version('presidio-analyzer')}, recognisers of every country, no model"
        )
        self._contacts = _Contacts()

    def find(self, text: str) -> list[Personal]:
        details = [
            Personal(match.start, match.end, _short(match.entity_type))
            for match in _engine().analyze(
                _SEAM.sub(" ", text), language="en", score_threshold=_SURE
            )
            if match.entity_type != "URL" or not _prose(text, match.start, match.end)
        ]
        return _apart([*details, *self._contacts.find(text)])


# Its expressions look for ends of words, and see none where letters of another script join.
_SEAM = script_pattern(rf"[[{LETTER}]--{LATIN}](?={LATIN})|(?<={LATIN})[[{LETTER}]--{LATIN}]")
_SITE = re.compile(r"[\w-]+(\.[\w-]+)*\.(com|org|net|edu|gov|info|io|biz|uk|eu|de|fr|in|ca|au)")
_PLATES = ("TrLicensePlateRecognizer", "NgVehicleRegistrationRecognizer")


def _prose(text: str, start: int, end: int) -> bool:
    """Whether an address is two words with no space between: "three times.no problem"."""
    address = text[start:end]
    if "/" in address or address.casefold().startswith("www."):
        return False
    return bool(letters_of(text[end : end + 1])) or not _SITE.fullmatch(address)


@cache
def _engine() -> Any:
    """Return the engine; it is slow to load, and made once."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)  # it logs every recogniser
    import presidio_analyzer.predefined_recognizers as predefined
    import tldextract
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine

    # Otherwise it fetches a list of domains from the network to judge the first e-mail address.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    # Every recogniser by form, of every country: a text does not say which one it is from. Two
    # forms of plates are those of dates and doses too.
    forms = (PatternRecognizer, predefined.PhoneRecognizer)
    kinds = [getattr(predefined, name) for name in predefined.__all__ if name not in _PLATES]
    by_form: list[Any] = [
        kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, forms)
    ]
    recognizers = [kind(supported_language="en") for kind in by_form]
    engine = _words_of(NoOpNlpEngine)(models=[{"lang_code": "en", "model_name": "none"}])
    engine.load()
    return AnalyzerEngine(
        registry=RecognizerRegistry(recognizers=recognizers),
        nlp_engine=engine,
        supported_languages=["en"],
    )


def _words_of(base: Any) -> Any:
    """Return an engine that splits a text into words, without a model.

    The words around a number raise its score: "passport" before nine figures. An engine without
    words never sees them, and recognisers that lean on them find nothing.
    """
    import spacy
    from presidio_analyzer.nlp_engine import NlpArtifacts

    blank = spacy.blank("en")

    class Words(base):  # type: ignore[misc]
        def process_text(self, text: str, language: str) -> Any:
            words = blank(text)
            return NlpArtifacts(
                entities=[],
                tokens=words,
                tokens_indices=[word.idx for word in words],
                lemmas=[word.text.lower() for word in words],
                nlp_engine=self,
                language=language,
            )

        def is_stopword(self, word: str, language: str) -> bool:  # noqa: ARG002
            return False

        def is_punct(self, word: str, language: str) -> bool:  # noqa: ARG002
            return not letters_of(word)

    return Words


# Models that find names, of several libraries.

Spans = Callable[[str], Iterable[tuple[int, int, str]]]
"""A text in; start, end and label of every find out."""

_OTHERS = frozenset(
    """o misc cardinal ordinal quantity percent money date time norp product event work_of_art law
    language org organization organisation""".split()
)
_LABELS = {"PER": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION"}


class _Named:
    """A model of names, places and its other labels, except organisations and amounts."""

    def __init__(self, kind: str, model: str, load: Callable[[str], Spans]) -> None:
        self.name = kind
        self.misses = "not measured here; benchmarks/pii.py of the repository measures it"
        # An error of any library names the model.
        try:
            self._spans = load(model)
        except (MissingExtraError, InputError):
            raise
        except Exception as error:
            raise ModelError(f"{kind} cannot be loaded: {quote_error(error)}.") from None

    def find(self, text: str) -> list[Personal]:
        # Labels of different models get one name each.
        details = []
        for offset, window in _windows(text):
            for start, end, label in self._spans(window):
                kind = label.upper()
                if label.casefold() not in _OTHERS and window[start:end].strip():
                    kind = _LABELS.get(kind, _short(kind))
                    details.append(Personal(offset + start, offset + end, kind))
        return _apart(details)


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield overlapping windows for one pass of a model, each with its place."""
    # The last window reaches the end of the text.
    words = split_words(text)
    for first in range(0, max(1, len(words) - (_WINDOW - _STEP)), _STEP):
        if window := words[first : first + _WINDOW]:
            yield window[0].start, text[window[0].start : window[-1].end]


def _spacy(model: str) -> Spans:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("spaCy", "pii") from error
    pipeline = spacy.load(model)
    return lambda text: [(e.start_char, e.end_char, e.label_) for e in pipeline(text).ents]


def _transformers(model: str) -> Spans:
    try:
        from transformers import pipeline
    except ImportError as error:
        raise MissingExtraError("A token classifier", "hf") from error
    tagger = pipeline("token-classification", model=model, aggregation_strategy="simple")
    return lambda text: [(e["start"], e["end"], e["entity_group"]) for e in tagger(text)]


_MODELS = {"spacy": _spacy, "hf": _transformers}


class _Several:
    """The details of several finders together."""

    def __init__(self, finders: list[PiiFinder]) -> None:
        self._finders = finders
        self.name = " and ".join(finder.name for finder in finders) or "nobody (not looked for)"
        misses = "; ".join(finder.misses for finder in finders)
        self.misses = f"what each of them misses alone: {misses}" if finders else "everything"

    def find(self, text: str) -> list[Personal]:
        return _apart(detail for finder in self._finders for detail in finder.find(text))


def _short(kind: str) -> str:
    """One name for a kind in all libraries."""
    return kind.removesuffix("_ADDRESS").removesuffix("_NUMBER").removesuffix("_CODE")


def _apart(details: Iterable[Personal]) -> list[Personal]:
    """Keep the longest of those that overlap."""
    # Longest first: a shorter overlapping one is dropped.
    apart: list[Personal] = []
    for detail in sorted(details, key=lambda d: (d.start - d.end, d.start)):
        if all(detail.end <= other.start or detail.start >= other.end for other in apart):
            apart.append(detail)
    return sorted(apart)
