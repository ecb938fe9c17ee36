"""The tasks of marks: mark documents before they are shared, and ask about them later."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.evidence.sealing import seal_run
from ragwitness.runner.task_options import (
    ADDRESS_ASKED,
    TARGET,
    HowRead,
    RunPath,
    Sealing,
    Sending,
    Texts,
    refuse_types,
    reject_inapplicable_options,
)
from ragwitness.runner.task_runtime import (
    Note,
    as_documents,
    check_target,
    own_folder,
    warn,
    with_target,
)

if TYPE_CHECKING:
    from ragwitness.core.types import Document, Target
    from ragwitness.membership.marks.key import MarksKey
    from ragwitness.membership.marks.lots import MarkedDocument
    from ragwitness.membership.marks.run import MarksAudit
    from ragwitness.membership.results.marks import MarksResult

_LEVEL = 0.05


@dataclass(frozen=True)
class MarkTask(HowRead):
    """Draw words of documents by lot before the documents are shared, and keep the lots in a key.

    The copies to share are written into a new folder. Carried out, it gives the key, whose
    commitment you publish before you share them.

    Attributes:
        documents: The documents: files, or folders of them. Where a text says {one|another|a
            third}, one of these is drawn; your own comes first. Not needed with --beacon-value.
        key: The file for the key, which must be new: the drawn words and the secret seed. Keep it
            secret, and keep a copy: without it nothing can be shown.
        out: The folder of the copies to share, to be made.
        lots: The most words that are drawn in a document, unless you wrote more. 0 draws your own
            alone.
        braces: Read {one|another} as yours.
        writer: The model that proposes other words: gguf:FILE, hf:NAME or URL#MODEL. The text is
            sent to it.
        beacon: Public randomness that will be joined later, in words. The copies are written then.
        beacon_value: The value of the promised beacon, in hex; the key is there already.

    Raises:
        InputError: A document, a mark in it or an option cannot be used, or something would be
            replaced.
    """

    documents: Annotated[Sequence[str] | None, PathRole.DOCUMENTS, Arg()] = None
    _: KW_ONLY
    key: Annotated[Path | str, PathRole.KEEPS]
    out: Annotated[Path | str, PathRole.FILLS, Opt(short="-o")]
    lots: int = 12
    braces: Annotated[bool, Opt("--braces/--no-braces")] = True
    writer: Annotated[str | None, PathRole.ADDRESS, Opt(shown="a packaged list")] = None
    beacon: Annotated[str, Opt(shown="none")] = ""
    beacon_value: Annotated[str, Opt(shown="none")] = ""

    def carry_out(self, note: Note = warn) -> MarksKey:
        """Draw, and write the key and then the copies.

        Args:
            note: Called with each document that is left out, and remarks on files.
        """
        from ragwitness.membership.marks.key import MarksKey, read_key, write_key

        refuse_types(self)
        path, out = Path(self.key), Path(self.out)
        if bool(self.documents) == bool(self.beacon_value):
            raise InputError(
                "Documents are marked once, and the beacon's value is joined to the key later.",
                "Give documents, or --beacon-value.",
            )
        if out.exists() and any(out.iterdir()):
            raise InputError(f"{out} is not empty.", "Give a new folder: --out FOLDER")
        if self.beacon_value:
            key = read_key(path).joined(self.beacon_value)
            write_key(path, key, again=True)
        else:
            key = MarksKey.fresh(self._marked(note), self.beacon)
            write_key(path, key)
        # The key lies on the disk before a copy does.
        if not self.beacon or self.beacon_value:
            write_copies(out, key)
        return key

    def _marked(self, note: Note) -> list[MarkedDocument]:
        """Return the documents with their lots; those with too few for any verdict are left out."""
        from ragwitness.membership.marks.lots import find_lots, proposer, word_pool
        from ragwitness.membership.marks.questions import tail
        from ragwitness.membership.results.marks import chance
        from ragwitness.models.model_registry import load_language_model
        from ragwitness.text.sample import load_sample

        documents = [
            d for path in self.documents or () for d in as_documents(path, self, note=note)
        ]
        if twice := [name for name, n in Counter(d.id for d in documents).items() if n > 1]:
            raise InputError(f"Two documents are called {twice[0]!r}.", "Rename one.")
        propose = proposer(load_language_model(self.writer)) if self.writer else None
        pool, draw = word_pool([*documents, *load_sample()]), random.SystemRandom()
        marked = []
        for document in documents:
            candidate = find_lots(
                document, self.lots, pool, draw, braces=self.braces, propose=propose
            )
            chances = [1 / len(lot.alternatives) for lot in candidate.lots]
            least = tail(chances, len(chances))
            if least > _LEVEL:
                note(
                    f"left out: {document.id}: {len(chances)} words to draw; all of them are right"
                    f" by chance {chance(least)}. Write more alternatives: {{one|another|a third}}"
                )
            else:
                marked.append(candidate)
        if not marked:
            raise InputError(
                "No document has enough words that can be drawn.",
                "Give longer ones, write {one|another|a third} in them, or name a --writer.",
            )
        return marked


def write_copies(folder: Path, key: MarksKey) -> None:
    """Write the copies to share, each as a text file with the name of its document."""
    from ragwitness.core.files import replace_file

    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for document, drawn in zip(key.documents, key.drawn, strict=True):
        stem = re.sub(r"[^\w.-]+", "-", re.sub(r"\.(txt|text|md)$", "", document.id)).strip(".-")
        name = stem = stem[:120] or "document"
        while name.casefold() in taken:
            name = f"{stem}-{len(taken)}"
        taken.add(name.casefold())
        replace_file(folder / f"{name}.txt", document.copy(drawn))


@dataclass(frozen=True)
class MarksTask(Sending, Sealing):
    """Ask a system for the words that were drawn in marked documents.

    It gives a verdict for each document, and needs no other documents: the lots are the control.

    Attributes:
        target: The system under audit: an address (docs/targets.md), a target, or any RAG system
            in Python.
        marks: The key that ragwitness mark wrote.
        documents: The published texts. The audit says how many drawn words are in them still; no
            verdict rests on that.
        alpha: The probability that any document is wrongly called in.
        run: The run folder. The same folder resumes the run; a finished result is never lost.

    Raises:
        InputError: The key is missing, changed or of other texts, or an option cannot be used.
        TargetError: The target cannot be reached or does not speak the protocol.
    """

    target: Annotated[object, PathRole.ADDRESS, Arg(help=TARGET), ADDRESS_ASKED]
    marks: Annotated[Path | str, PathRole.READS]
    _: KW_ONLY
    documents: Annotated[Texts | None, PathRole.DOCUMENTS] = None
    alpha: float = _LEVEL
    run: RunPath = None

    def order(self, note: Note = warn) -> MarksAudit:
        """Read and check everything; nothing is sent.

        Args:
            note: Called with remarks.
        """
        from ragwitness.membership.marks.key import read_key
        from ragwitness.membership.marks.run import MarksAudit

        refuse_types(self)
        check_target(self.target)
        reject_inapplicable_options(self, {"single", *(["sealed"] if self.seal else [])})
        _ = self.budget
        self.transport()  # refuses what cannot be used, before anything is sent
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {self.alpha:g}.")
        key = read_key(Path(self.marks))
        _ = key.drawn  # the beacon was joined
        if self.documents is not None:
            note(standing(key, as_documents(self.documents, note=note)))
        return MarksAudit(key, self.alpha)

    def carry_out(self) -> MarksResult:
        """Do it, and return the verdicts."""
        from ragwitness.membership.marks.evidence import subject_of
        from ragwitness.membership.marks.run import ask_about_marks

        folder = own_folder(self.run, self.marks)
        audit = self.order()

        async def ask(target: Target) -> MarksResult:
            if self.seal is not None:
                seal_run(self, folder, self.target, target.name, lambda _: subject_of(audit, self))
            return await ask_about_marks(
                audit, target, run=folder, limiter=limiter, in_flight=self.at_once
            )

        with self.limited(folder) as (limiter, transport):
            return with_target(self.target, ask, transport)


def standing(key: MarksKey, published: Sequence[Document]) -> str:
    """Say how many drawn words are in the published texts, each behind the words before it.

    Raises:
        InputError: None does: the key is of other texts.
    """
    texts = [" ".join(document.text.split()) for document in published]
    rows = [
        any(f"{lot.left} {lot.alternatives[choice]}" in text or
            f"{lot.left}{lot.alternatives[choice]}" in text for text in texts)
        for document, drawn in zip(key.documents, key.drawn, strict=True)
        for lot, choice in zip(document.lots, drawn, strict=True)
    ]  # fmt: skip
    if not any(rows):
        raise InputError(
            "None of the key's words is in these documents: it is the key of other texts.",
            "Give the key that was made with them, or the copies that were shared.",
        )
    return f"{sum(rows)} of {len(rows)} drawn words are in the documents that were given."
