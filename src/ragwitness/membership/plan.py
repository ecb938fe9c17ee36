"""What is to be audited and how."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
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


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is to be audited and how.

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
        left_out: What reading the documents came to.
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

    @property
    def every_document(self) -> tuple[Document, ...]:
        """The documents in question, those that are known, and those that may calibrate."""
        return (*self.documents, *(self.known_out or auxiliary_of(self)), *self.known_in)

    def __post_init__(self) -> None:
        """Refuse what cannot give a verdict."""
        if not self.documents:
            raise InputError("There is no document to audit.")
        if not (isinstance(self.alpha, int | float) and 0 < self.alpha < 1):
            raise InputError(f"alpha must lie between 0 and 1, not {self.alpha!r}.")
        for part in (self.documents, self.known_out, self.known_in):
            ids = Counter(one for one, _ in {(document.id, document.text) for document in part})
            if twice := next((one for one, times in ids.items() if times > 1), None):
                raise InputError(f"Two texts have the id {twice!r}.", "Give each an id of its own.")
        # Told apart by text: one document under two ids would calibrate its own p-value.
        audited = {same_text(document): document.id for document in self.documents}
        outside = {same_text(document): document.id for document in self.known_out}
        for option, known, others, where in (
            ("--known-out", self.known_out, audited, "--documents"),
            ("--known-in", self.known_in, audited, "--documents"),
            ("--known-in", self.known_in, outside, "--known-out"),
        ):
            if shared := [one for one in known if same_text(one) in others]:
                first, theirs = shared[0], others[same_text(shared[0])]
                raise InputError(
                    f"{len(shared)} documents stand both in {option} and in {where}"
                    f" (first: {first.id!r}, there {theirs!r}; case, spacing and punctuation"
                    " make no other document).",
                    "A document cannot be known and in question, or inside and outside;"
                    " remove it from one.",
                )


# Which documents the p-values are ranked against, and what that assumes.

_MOST = 200  # auxiliary documents asked of the target for calibration


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Documents outside the target.

    Attributes:
        documents: They are put to the target like the audited ones.
        source: ``"known-out"``, ``"auxiliary"`` or ``"generated"``.
        exact: Whether the user vouches that they are like the audited non-members.
        note: The assumption, in one sentence.
        warning: What to beware of; None where there is nothing.
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

    groups = [[one] for one in without_copies(documents)]
    texts = Vocabulary().tokenize(group[0].text for group in groups)
    often, kept = np.bincount(texts.ids, minlength=1), dict[str, list[Document]]()
    seen: dict[int, list[str]] = {}
    for at, group in enumerate(groups):
        # Texts so alike share a fifteenth of their words among the rarest quarter of each.
        own, said = texts[at], "".join(map(chr, texts[at] % 0x10FFFF))
        rare = own[np.lexsort((own, often[own]))][: len(own) // 4 + 1].tolist()
        shared = Counter(text for word in rare for text in seen.get(word, ()))
        others = [text for text, times in shared.items() if 15 * times >= len(own)]
        alike = Indel.normalized_similarity
        like = extractOne(said, others, scorer=alike, score_cutoff=_NEAR) or (said,)
        kept.setdefault(like[0], []).extend(group)
        for word in {*rare}:
            seen.setdefault(word, []).append(like[0])
    return [*kept.values()]


def without_drafts(documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return the first of copies and near copies each: the others' scores are no other evidence."""
    return tuple(group[0] for group in draft_groups(documents))


def nearest(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return each text's likeness to the one of the others most like it that is no draft of it.

    It is high where a set holds versions of a few documents, or texts of one template.

    Returns:
        ROUGE-L F1 of their first 2,048 characters, shape (texts,).
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    read = Vocabulary().tokenize(text[:_READ] for text in texts)
    spelled = ["".join(map(chr, read[at] % 0x10FFFF)) for at in range(len(read))]
    alike = cdist(spelled, spelled, scorer=Indel.normalized_similarity, score_cutoff=_VERSION)
    return np.asarray(np.where(alike < _NEAR, alike, 0.0).max(axis=1, initial=0.0))


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
    source = "auxiliary" if auxiliary_given else "generated"
    return CalibrationSet(
        tuple(spare[:_MOST]),
        source,
        False,
        f"P-values hold as far as the {source} documents are like the audited ones that are"
        " outside, which nobody has said.",
        "No --known-out was given: the p-values are approximate. Do not accuse on them alone.",
    )


# What an audit asks about, stage by stage, and which system each stage asks.

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
    """Everything that an audit asks about.

    Attributes:
        documents: By stage, in the order in which they are reported; those of the target are
            asked about in a random one.
        reference: Those that calibrate, and what that assumes.
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

    def part(self, mine: Callable[[int], bool]) -> dict[str, tuple[Document, ...]]:
        """Return the documents at places that are ``mine``, by stage.

        Copies of a document at one system have one place: they are one unit.
        """
        places: dict[tuple[bool, str, str], int] = {}
        found = {}
        for stage, documents in self.documents.items():
            chosen: dict[int, Document] = {}
            for document in documents:
                key = (stage in SHADOW_STAGES, document.id, document.text)
                if mine(place := places.setdefault(key, len(places))):
                    chosen[place] = document
            found[stage] = tuple(chosen.values())
        return found


def at_shadow(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the shadow system."""
    return {stage: part for stage, part in documents.items() if stage in SHADOW_STAGES}


def at_target(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the target."""
    return {stage: part for stage, part in documents.items() if stage not in SHADOW_STAGES}


def learns(audit: object) -> bool:
    """Whether an audit, or a class of audits, trains on a shadow system."""
    return bool(getattr(audit, "learns", False))


def among(audit: Audit, documents: Sequence[Document]) -> Audit:
    """Return an audit as it is for documents of one set: it asks about their own text, in windows.

    As published (``NAME:paper``), and where a classifier is trained on whole documents, it reads
    the document as its paper does. Where all are short and their own, nothing is cut.
    """
    texts, windows = _texts_of(tuple(documents))
    if place := getattr(audit, "among", None):
        audit = place(texts)
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
    """Return the texts of a set, drafts of one as one text, and what cuts windows where any are."""
    # What a document shares with a draft of its own is not what others say of it, and what any of
    # its drafts shares with others is: so they are one text.
    groups = draft_groups(documents)
    texts = [replace(g[0], text="\n\n".join(one.text for one in g)) for g in groups]
    windows = Windows.among(texts)
    whole = all(windows.of(one.text) == (one.text,) for one in documents)
    return texts, None if whole else windows


def folded(plan: AuditPlan) -> list[str]:
    """Say how many documents are copies or near copies of others, and what follows."""
    told = []
    for name, part in (
        ("known-out documents", plan.known_out),
        ("documents in question", plan.documents),
    ):
        once = without_copies(part)
        counts = (
            (len(part) - len(once), len(part)),
            (len(once) - len(without_drafts(once)), len(once)),
        )
        for text, (lost, total) in zip((_COPIES, _DRAFTS), counts, strict=True):
            told += [text.format(lost, total, name)] if lost else []
    return told


def same_questions(audit: Audit, documents: Iterable[Document]) -> list[list[Document]]:
    """Return documents together of which an audit asks the very same first questions.

    Texts that differ only behind what the method reads have one answer, which is about none.
    """
    openings: dict[str, list[Document]] = {}
    for one in documents:
        read = audit.windows(one) if isinstance(audit, WindowedAudit) else [one]
        openings.setdefault(_opening(read[0].text if read else ""), []).append(one)
    groups: dict[tuple[Query, ...], list[Document]] = {}
    for one in (one for alike in openings.values() if alike[1:] for one in alike):
        # The questions before the first answer; later ones follow from what is answered.
        if not isinstance(step := advance(probe_of(audit, one), None), Done):
            said = [same_text(Document("", query.prompt)).hex() for query in step]
            asked = tuple(replace(query, prompt=p) for query, p in zip(step, said, strict=True))
            groups.setdefault(asked, []).append(one)
    return [group for group in groups.values() if group[1:]]


_OPENING = 80  # letters: texts that begin otherwise ask otherwise


def _opening(text: str) -> str:
    """The first letters and figures, without case: texts that share none share no question."""
    read = filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold())
    return "".join(islice(read, _OPENING))


def stages_of(plan: AuditPlan, shadow: bool) -> Stages:
    """Return what is asked about, and where; with ``shadow`` also what a shadow system is asked.

    Raises:
        InputError: Too few auxiliary documents for that.
    """
    auxiliary = auxiliary_of(plan)
    # The shadow takes its share first; calibration uses documents that it never saw.
    split: AuxiliarySplit | None = split_auxiliary(auxiliary, plan.shadow) if shadow else None
    spare: Sequence[Document] = split.spare if split else auxiliary
    reference = choose_reference(plan.known_out, bool(plan.auxiliary), spare)
    asked = without_copies(plan.documents)  # copies have the verdict of one
    warning = " ".join(filter(None, (reference.warning, *folded(plan))))
    reference = replace(reference, warning=warning or None)
    probed = dict(zip(SHADOW_STAGES, (split.inside, split.outside), strict=True)) if split else {}
    documents = {
        **probed,
        "known outside": reference.documents,
        "known inside": without_drafts(plan.known_in),
        "documents": asked,
    }
    return Stages(documents, reference, auxiliary)


def auxiliary_of(plan: AuditPlan) -> list[Document]:
    """Auxiliary documents that are neither in question nor used for calibration."""
    source: Sequence[Document] = plan.auxiliary
    if not source:
        from ragwitness.text.sample import load_sample

        source = load_sample()
    # None of them may be in question: a shadow that was trained on it would know its answer.
    taken = {same_text(one) for one in (*plan.documents, *plan.known_out, *plan.known_in)}
    return [document for document in without_copies(source) if same_text(document) not in taken]
