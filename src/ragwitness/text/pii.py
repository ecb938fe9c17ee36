"""Personal details in a text: by form, by Presidio's recognisers, by any model that finds names.

What has a form (addresses, numbers) is found without a model. Names and places have none: whoever
owns the corpus lists them as secrets, or names a model here. How much each finds of real text is
measured by ``benchmarks/pii.py`` and said beside its name.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.core.quotes import quote_error
from ragwitness.text.secrets import CONTACTS, Secret
from ragwitness.text.words import split_words

_SURE = 0.4  # of Presidio's scores: a telephone number has this, a bare run of digits less
_FORMS = tuple(zip(("EMAIL", "PHONE", "URL"), CONTACTS, strict=True))
_WINDOW, _STEP = 200, 160  # words that a model reads at a time, and how far it goes on

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
    """One find, ``text[start:end]``."""

    start: int
    end: int
    kind: str


class PiiFinder(Protocol):
    """Finds personal details."""

    @property
    def name(self) -> str:
        """What finds them, with its version."""

    @property
    def misses(self) -> str:
        """What it does not find, with the measured recall where it was measured."""

    def find(self, text: str) -> list[Personal]:
        """Return what was found, in order, without overlaps."""


def pii_finder(kind: str = "auto") -> PiiFinder:
    """Return a finder by name.

    Args:
        kind: ``"auto"`` or ``"contacts"`` (our own expressions, on every machine),
            ``"presidio"`` (every recogniser that needs no model), ``"none"``,
            ``"spacy:MODEL"``, ``"gliner:MODEL"``, ``"hf:MODEL"`` (a token classifier of
            transformers, by name or folder), or several with ``+`` between.

    Raises:
        InputError: Unknown name.
        MissingExtraError: What is asked for by name is not installed.
        ModelError: A model cannot be loaded.
    """
    found = [_finder(one.strip()) for one in kind.split("+")]
    return found[0] if len(found) == 1 else _Several(found)


def _finder(kind: str) -> PiiFinder:
    if kind == "presidio":
        if importlib.util.find_spec("presidio_analyzer") is None:
            raise MissingExtraError("Presidio", "pii")
        return _Presidio()
    # One default for all machines, whatever else is installed on them.
    if kind in ("auto", "contacts"):
        return _Contacts()
    if kind == "none":
        return _Nothing()
    who, _, model = kind.partition(":")
    if who in _MODELS and model:
        return _Named(kind, model, _MODELS[who])
    raise InputError(
        "pii must be contacts, presidio, none, spacy:MODEL, gliner:MODEL or hf:MODEL,"
        f" not {kind!r}.",
        "Write --pii presidio, or e.g. --pii presidio+spacy:en_core_web_sm.",
    )


def personal_of(records: Iterable[tuple[str, str]], finder: PiiFinder) -> list[Secret]:
    """Return the personal details in records as a ledger, each once a record.

    Args:
        records: Id and text of each.
        finder: Who finds them; addresses and numbers by form are of the kind ``"contact"``.
    """
    forms = {kind for kind, _ in _FORMS}
    return [
        Secret(text, kind, name)
        for name, record in records
        for text, kind in sorted(
            {
                (record[one.start : one.end], "contact" if one.kind in forms else one.kind.lower())
                for one in finder.find(record)
            }
        )
    ]


class _Nothing:
    name = "nobody (not looked for)"
    misses = "everything"

    def find(self, text: str) -> list[Personal]:  # noqa: ARG002
        return []


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
        found = _engine().analyze(text, language="en", score_threshold=_SURE)
        theirs = [
            Personal(one.start, one.end, _short(one.entity_type))
            for one in found
            if one.entity_type != "URL" or not _prose(text, one.start, one.end)
        ]
        return _apart([*theirs, *self._contacts.find(text)])


_SITE = re.compile(r"[\w-]+(\.[\w-]+)*\.(com|org|net|edu|gov|info|io|biz|uk|eu|de|fr|in|ca|au)")
_PLATES = ("TrLicensePlateRecognizer", "NgVehicleRegistrationRecognizer")


def _prose(text: str, start: int, end: int) -> bool:
    """Whether an address is two words with no space between: "three times.no problem"."""
    address = text[start:end]
    if "/" in address or address.casefold().startswith("www."):
        return False
    return text[end : end + 1].isalnum() or not _SITE.fullmatch(address)


@cache
def _engine() -> Any:
    """Return the engine; it is slow to load, and made once."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)  # it tells of every recogniser
    import presidio_analyzer.predefined_recognizers as known
    import tldextract
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine

    # Otherwise it fetches a list of domains from the network to judge the first e-mail address.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    # Every recogniser by form, of every country: a text does not say which one it is from. Two
    # forms of plates are those of dates and doses too.
    forms = (PatternRecognizer, known.PhoneRecognizer)
    made = [getattr(known, name) for name in known.__all__ if name not in _PLATES]
    chosen: list[Any] = [one for one in made if inspect.isclass(one) and issubclass(one, forms)]
    recognizers = [one(supported_language="en") for one in chosen]
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
            return not word.isalnum()

    return Words


# Models that find names, by whoever made them.

Spans = Callable[[str], Iterable[tuple[int, int, str]]]
"""A text in; start, end and label of every find out."""

_OTHERS = frozenset(
    """o misc cardinal ordinal quantity percent money date time norp product event work_of_art law
    language org organization organisation""".split()
)
_LABELS = {"PER": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION"}
_ASKED = "person address location organization phone_number email date_of_birth id_number username"


class _Named:
    """A model of names, places and whatever else it knows; organisations and amounts are left."""

    def __init__(self, kind: str, model: str, load: Callable[[str], Spans]) -> None:
        self.name = kind
        self.misses = "not measured here; benchmarks/pii.py of the repository measures it"
        try:
            self._spans = load(model)
        except (MissingExtraError, InputError):
            raise
        except Exception as error:
            raise ModelError(f"{kind} cannot be loaded: {quote_error(error)}.") from None

    def find(self, text: str) -> list[Personal]:
        found = []
        for at, part in _windows(text):
            for start, end, label in self._spans(part):
                kind = label.removeprefix("B-").removeprefix("I-").replace(" ", "_").upper()
                if kind.casefold() not in _OTHERS and part[start:end].strip():
                    found.append(Personal(at + start, at + end, _LABELS.get(kind, _short(kind))))
        return _apart(found)


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts that a model can read at once, overlapping, each with its place."""
    words = split_words(text)
    for first in range(0, max(1, len(words) - (_WINDOW - _STEP)), _STEP):
        some = words[first : first + _WINDOW]
        if some:
            yield some[0].start, text[some[0].start : some[-1].end]


def _spacy(model: str) -> Spans:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("spaCy", "pii") from error
    pipeline = spacy.load(model)
    return lambda text: [(one.start_char, one.end_char, one.label_) for one in pipeline(text).ents]


def _gliner(model: str) -> Spans:
    try:
        from gliner import GLiNER
    except ImportError:
        raise InputError("GLiNER is not installed.", "pip install gliner") from None
    made = GLiNER.from_pretrained(model)
    labels = [label.replace("_", " ") for label in _ASKED.split()]
    return lambda text: [
        (one["start"], one["end"], one["label"]) for one in made.predict_entities(text, labels)
    ]


def _transformers(model: str) -> Spans:
    try:
        from transformers import pipeline
    except ImportError as error:
        raise MissingExtraError("A token classifier", "hf") from error
    tagger = pipeline("token-classification", model=model, aggregation_strategy="simple")
    return lambda text: [(one["start"], one["end"], one["entity_group"]) for one in tagger(text)]


_MODELS = {"spacy": _spacy, "gliner": _gliner, "hf": _transformers}


class _Several:
    """Whatever any of several finds."""

    def __init__(self, finders: list[PiiFinder]) -> None:
        self._finders = finders
        self.name = " and ".join(one.name for one in finders)
        self.misses = "what each of them misses alone: " + "; ".join(one.misses for one in finders)

    def find(self, text: str) -> list[Personal]:
        return _apart(found for one in self._finders for found in one.find(text))


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
