"""The plan of an audit: documents, settings, calibration and stages."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.types import Audit, Document, Query, Reading
from ragwitness.membership.shadow import AuxiliarySplit, ShadowConfig, split_auxiliary
from ragwitness.membership.windows import WindowedAudit, Windows
from ragwitness.runner.score_store import AuditUnit, unit_id
from ragwitness.runner.worker import Done, advance, probe_of
from ragwitness.text.overlap import Vocabulary, same_text, without_copies
from ragwitness.text.words import letters_of, split_words


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """Documents and settings of an audit.

    Attributes:
        documents: The documents in question.
        known_out: Documents known to be outside the target, like the audited ones in kind.
        known_in: Documents known to be inside, like the audited ones in kind; without them nothing
            is called ``out``.
        auxiliary: Documents for the shadow system; the generated corpus where empty.
        alpha: Level of the verdicts.
        shadow: The shadow system.
        automl: Train the audit classifier with AutoGluon.
        in_flight: Documents probed at the same time.
        accept_unlike: Keep verdicts ``in`` although the calibration documents are unlike those
            in question; they are not exact then.
        left_out: Files and rows that could not be read.
        references: Models that have not read the documents, whose guesses put evidence on an
            absolute scale (``membership.e_values``); without any, documents are ranked alone.
    """

    stored_name: ClassVar[str] = "AuditPlan"

    documents: tuple[Document, ...]
    known_out: tuple[Document, ...] = ()
    known_in: tuple[Document, ...] = ()
    auxiliary: tuple[Document, ...] = ()
    alpha: float = 0.05
    shadow: ShadowConfig = field(default_factory=ShadowConfig)
    automl: bool = False
    in_flight: int = 4
    # These decide no answer, so they name no run folder.
    accept_unlike: bool = field(default=False, repr=False)
    left_out: Reading = field(default=(), repr=False)
    references: tuple[str, ...] = field(default=(), repr=False)

    @property
    def every_document(self) -> tuple[Document, ...]:
        """The documents in question, those that are known, and those that may calibrate.

        They show which words are rare or shared. A few known ones show too little of that, so the
        auxiliary documents are added where reference models are asked.
        """
        known_out: Sequence[Document] = self.known_out
        if self.references or not known_out:
            known_out = (*known_out, *auxiliary_of(self))
        return (*self.documents, *known_out, *self.known_in)

    def __post_init__(self) -> None:
        """Refuse a plan that cannot give a verdict."""
        if not self.documents:
            raise InputError("There is no document to audit.")
        if not (isinstance(self.alpha, int | float) and 0 < self.alpha < 1):
            raise InputError(f"alpha must lie between 0 and 1, not {self.alpha!r}.")
        for row in (self.documents, self.known_out, self.known_in):
            ids = Counter(name for name, _ in {(d.id, d.text) for d in row})
            if twice := next((name for name, times in ids.items() if times > 1), None):
                raise InputError(f"Two texts have the id {twice!r}.", "Give each a separate id.")
        # Compared by text: one document under two ids would calibrate its own p-value.
        audited = {same_text(document): document.id for document in self.documents}
        outside = {same_text(document): document.id for document in self.known_out}
        for option, documents, others, other_option in (
            ("--known-out", self.known_out, audited, "--documents"),
            ("--known-in", self.known_in, audited, "--documents"),
            ("--known-in", self.known_in, outside, "--known-out"),
        ):
            if shared := [document for document in documents if same_text(document) in others]:
                first, other_id = shared[0], others[same_text(shared[0])]
                raise InputError(
                    f"{len(shared)} documents stand both in {option} and in {other_option}"
                    f" (first: {first.id!r}, there {other_id!r}; case, spacing and punctuation"
                    " make no other document).",
                    "A document cannot be known and in question, or inside and outside;"
                    " remove it from one.",
                )


# The documents that p-values are ranked among, and the assumption behind that.

_MOST = 200  # auxiliary documents asked of the target for calibration


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Documents outside the target.

    Attributes:
        documents: They are put to the target like the audited ones.
        source: ``"known-out"``, ``"auxiliary"`` or ``"generated"``.
        exact: Whether the user vouches that they are like the audited non-members.
        note: The assumption, in one sentence.
        warning: A caution; None where there is none.
    """

    documents: tuple[Document, ...]
    source: str
    exact: bool
    note: str
    warning: str | None = None


_NEAR = 0.901  # ROUGE-L F1 of two texts that are drafts of one document
_READ = 2048  # characters of a text in which versions and templates show
_VERSION = 0.4  # of two texts that may be versions of one document, or of one template
_COPIES = "{} of {} {} are copies of others there, which count once."
_DRAFTS = (
    "{} of {} {} are near copies (drafts) of others there. Those that are known count once, and"
    " verdicts of near copies are one finding."
)


@functools.lru_cache(maxsize=8)  # each step of an audit asks again
def draft_groups(documents: tuple[Document, ...]) -> Sequence[Sequence[Document]]:
    """Return near copies together, in the order of the first of each group; a copy is left out."""
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import extractOne

    groups = [[document] for document in without_copies(documents)]
    texts = Vocabulary().tokenize(group[0].text for group in groups)
    frequency, drafts = np.bincount(texts.ids, minlength=1), dict[str, list[Document]]()
    by_rare_word: dict[int, list[str]] = {}
    for at, group in enumerate(groups):
        # Such near copies share a fifteenth of their words among the rarest quarter of each.
        words, spelled = texts[at], "".join(map(chr, texts[at] % 0x10FFFF))
        rare = words[np.lexsort((words, frequency[words]))][: len(words) // 4 + 1].tolist()
        shared = Counter(text for word in rare for text in by_rare_word.get(word, ()))
        others = [text for text, times in shared.items() if 15 * times >= len(words)]
        similarity = Indel.normalized_similarity
        nearest_text, *_ = extractOne(spelled, others, scorer=similarity, score_cutoff=_NEAR) or (
            spelled,
        )
        drafts.setdefault(nearest_text, []).extend(group)
        for word in {*rare}:
            by_rare_word.setdefault(word, []).append(nearest_text)
    return [*drafts.values()]


def without_drafts(documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return the first of copies and near copies each: the others' scores are no other evidence."""
    return tuple(group[0] for group in draft_groups(documents))


def nearest(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the similarity of each text to its nearest neighbour that is no draft of it.

    It is high in a set of versions of a few documents, or of texts of one template.

    Returns:
        ROUGE-L F1 of their first 2,048 characters, shape (texts,).
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    words = Vocabulary().tokenize(text[:_READ] for text in texts)
    spelled = ["".join(map(chr, words[at] % 0x10FFFF)) for at in range(len(words))]
    similarity = cdist(spelled, spelled, scorer=Indel.normalized_similarity, score_cutoff=_VERSION)
    return np.asarray(np.where(similarity < _NEAR, similarity, 0.0).max(axis=1, initial=0.0))


_VERSIONS = (
    "{} known-outside documents are versions of documents in question, and calibrate nothing: a"
    " system answers them from the version that it holds ({})."
)
_LEAST_VERSION = 0.6  # ROUGE-L F1 above which texts of one kind rarely are
_SHORTEST = 20  # words of a text that may be a version
_FURTHER = 0.15  # how far versions are above that, or above any two known documents
_NAMED = 3


@functools.lru_cache(maxsize=2)  # each step of an audit asks again
def versions(
    known_out: tuple[Document, ...], documents: tuple[Document, ...]
) -> tuple[Document, ...]:
    """Return the known-outside documents that are versions of documents in question.

    They are more alike than any two known documents are to each other: texts of one template are
    alike in both ways, and stay.
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    known_out = tuple(d for d in known_out if len(split_words(d.text)) >= _SHORTEST)
    if not known_out or not documents:
        return ()
    words = Vocabulary().tokenize(d.text[:_READ] for d in (*known_out, *documents))
    spelled = ["".join(map(chr, words[at] % 0x10FFFF)) for at in range(len(words))]
    similarity = Indel.normalized_similarity
    own_kind, others = spelled[: len(known_out)], spelled[len(known_out) :]
    across = cdist(own_kind, others, scorer=similarity).max(axis=1)
    within = cdist(own_kind, own_kind, scorer=similarity)
    np.fill_diagonal(within, 0.0)
    bar = max(_LEAST_VERSION, float(within.max())) + _FURTHER
    return tuple(d for d, alike in zip(known_out, across.tolist(), strict=True) if alike > bar)


def choose_reference(
    known_out: Sequence[Document], auxiliary_given: bool, spare: Sequence[Document]
) -> CalibrationSet:
    """Take the user's known-out documents, or else auxiliary ones the shadow never saw."""
    if known_out:
        return CalibrationSet(
            without_drafts(tuple(known_out)),
            "known-out",
            True,
            "P-values hold if the audited documents that are outside are like the --known-out"
            " ones in kind.",
        )
    if not spare:
        return CalibrationSet((), "none", False, "No document was ranked among others.")
    source = "auxiliary" if auxiliary_given else "generated"
    return CalibrationSet(
        tuple(spare[:_MOST]),
        source,
        False,
        f"P-values hold as far as the {source} documents are like the audited ones that are"
        " outside, which nobody has said.",
        "No --known-out was given: the p-values are approximate. Do not accuse on them alone.",
    )


# The stages of an audit, and the system that each asks.

D = TypeVar("D")

SHADOW_STAGES = ("shadow, inside", "shadow, outside")
"""Stages that ask the shadow system; the others ask the target."""


@dataclass(frozen=True, slots=True)
class Systems:
    """Names of the systems that an audit asks: the one under audit, and the auditor's own."""

    target: str
    shadow: str | None = None

    def at(self, stage: str) -> str:
        """Return the name of the one that a stage asks."""
        return self.shadow or "" if stage in SHADOW_STAGES else self.target


@dataclass(frozen=True, slots=True)
class Stages:
    """The documents of an audit by stage.

    Attributes:
        documents: By stage, in the order in which they are reported; those of the target are
            asked about in a random one.
        reference: Those that calibrate, and the assumption behind that.
        auxiliary: Documents of the shadow system, where there is one.
    """

    documents: Mapping[str, tuple[Document, ...]]
    reference: CalibrationSet
    auxiliary: Sequence[Document] = ()

    @property
    def count(self) -> int:
        """Number of units."""
        return sum(map(len, self.documents.values()))

    def units(self, identity: str, systems: Systems) -> Iterator[AuditUnit]:
        """Yield all units in order; ``identity`` is that of the audit (``audit_identity``)."""
        for stage, documents in self.documents.items():
            for document in documents:
                yield AuditUnit(stage, document, unit_id(identity, systems.at(stage), document))


def at_shadow(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the shadow system."""
    return {stage: row for stage, row in documents.items() if stage in SHADOW_STAGES}


def at_target(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the target."""
    return {stage: row for stage, row in documents.items() if stage not in SHADOW_STAGES}


def learns(audit: object) -> bool:
    """Whether an audit, or a class of audits, trains on a shadow system."""
    return bool(getattr(audit, "learns", False))


def among(audit: Audit, documents: Sequence[Document]) -> Audit:
    """Return an audit as it is for documents of one set: it asks about their own text, in windows.

    As published (``NAME:paper``), and where a classifier is trained on whole documents, it reads
    the document as its paper does. Where all are short and their own, nothing is cut.
    """
    # 1. The method may choose its questions by the whole set.
    texts, windows = _texts_of(tuple(documents))
    if specialise := getattr(audit, "among", None):
        audit = specialise(texts)
    # 2. Windows, unless the audit is as published.
    config = getattr(audit, "config", None)
    presets = getattr(config, "presets", {}).values()
    published = any(
        preset and all(getattr(config, name) == value for name, value in preset.items())
        for preset in presets
    )
    if windows is None or published or learns(audit):
        return audit
    return WindowedAudit(audit, windows)


@functools.lru_cache(maxsize=2)  # for every method that is tried
def _texts_of(documents: tuple[Document, ...]) -> tuple[list[Document], Windows | None]:
    """Return the texts of a set, drafts joined, and their windows; None if no text is cut."""
    # Words that a document shares with its own draft are not words of others, but those that any of
    # its drafts shares with others are: so drafts are one text.
    groups = draft_groups(documents)
    texts = [replace(group[0], text="\n\n".join(d.text for d in group)) for group in groups]
    windows = Windows.among(texts)
    uncut = all(windows.of(document.text) == (document.text,) for document in documents)
    return texts, None if uncut else windows


def folded(plan: AuditPlan) -> list[str]:
    """Say how many documents are copies or near copies of others."""
    remarks = []
    for name, row in (
        ("known-out documents", plan.known_out),
        ("documents in question", plan.documents),
    ):
        once = without_copies(row)
        if copies := len(row) - len(once):
            remarks.append(_COPIES.format(copies, len(row), name))
        if drafts := len(once) - len(without_drafts(once)):
            remarks.append(_DRAFTS.format(drafts, len(once), name))
    return remarks


_OPENING = 80  # letters: texts with other openings ask other questions


def same_questions(audit: Audit, documents: Iterable[Document]) -> list[list[Document]]:
    """Group documents of which an audit asks the very same first questions.

    Texts that differ only behind the method's reading have one answer, which is about none.
    """
    # 1. Only texts with the same first letters and figures can share a question.
    openings: dict[str, list[Document]] = {}
    for document in documents:
        windows = audit.windows(document) if isinstance(audit, WindowedAudit) else [document]
        text = unicodedata.normalize("NFKC", windows[0].text if windows else "").casefold()
        opening = letters_of(text)[:_OPENING]
        openings.setdefault(opening, []).append(document)
    # 2. The questions before the first answer; later ones follow from the answers.
    groups: dict[tuple[Query, ...], list[Document]] = {}
    for document in (d for group in openings.values() if group[1:] for d in group):
        if not isinstance(step := advance(probe_of(audit, document), None), Done):
            prompts = (same_text(Document("", query.prompt)).hex() for query in step)
            key = tuple(replace(q, prompt=p) for q, p in zip(step, prompts, strict=True))
            groups.setdefault(key, []).append(document)
    return [group for group in groups.values() if group[1:]]


def stages_of(plan: AuditPlan, shadow: bool) -> Stages:
    """Return the documents by stage; with ``shadow`` also those of a shadow system.

    Raises:
        InputError: Too few auxiliary documents for that.
    """
    auxiliary = auxiliary_of(plan)
    # The shadow takes its share first; calibration uses documents that it never saw.
    split: AuxiliarySplit | None = split_auxiliary(auxiliary, plan.shadow) if shadow else None
    spare: Sequence[Document] = split.spare if split else auxiliary
    if plan.references and not plan.known_out and not split:
        spare = ()  # the absolute scale needs no other document
    same = set(versions(plan.known_out, plan.documents))
    known_out = [document for document in plan.known_out if document not in same]
    if plan.known_out and not known_out:
        raise InputError(
            "All known-outside documents are versions of documents in question.",
            "Give documents that are no versions of these, or none.",
        )
    reference = choose_reference(known_out, bool(plan.auxiliary), spare)
    names = ", ".join([d.id for d in plan.known_out if d in same][:_NAMED])
    named = [_VERSIONS.format(len(same), names)] if same else []
    warning = " ".join(filter(None, (reference.warning, *named, *folded(plan))))
    reference = replace(reference, warning=warning or None)
    documents = (
        dict(zip(SHADOW_STAGES, (split.inside, split.outside), strict=True)) if split else {}
    )
    documents |= {
        "known outside": reference.documents,
        "known inside": without_drafts(plan.known_in),
        "documents": without_copies(plan.documents),  # copies have the verdict of one
    }
    return Stages(documents, reference, auxiliary)


def auxiliary_of(plan: AuditPlan) -> list[Document]:
    """Auxiliary documents that are neither in question nor used for calibration."""
    source: Sequence[Document] = plan.auxiliary
    if not source:
        from ragwitness.text.sample import load_sample

        source = load_sample()
    # None of them may be in question: a shadow that was trained on it would know its answer.
    taken = {same_text(d) for d in (*plan.documents, *plan.known_out, *plan.known_in)}
    return [document for document in without_copies(source) if same_text(document) not in taken]
