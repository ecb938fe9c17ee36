"""The variants of a comparison: substitutes of the same private records."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ragwitness.comparison.result import ORIGIN
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Reading, Target
from ragwitness.leakage.attacks.base import Attack
from ragwitness.models.base import Embedder
from ragwitness.rag.config import RagConfig
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.worker import Progress
from ragwitness.synthesis import generator_registry as registry
from ragwitness.synthesis.agents import Asking, MakingConfig, Roles
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.run import CannotBeginError, SynthesisResult, run_synthesis
from ragwitness.text.documents import load_documents
from ragwitness.text.secrets import Secret

ZERO_SHOT = "zero-shot"
"""No passage at all: the generator's own knowledge (SAGE, Table 1, "0-shot")."""

JUDGED = "judged"
"""Folder of judgements, beside those of the variants."""

_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]{0,39}", re.ASCII)


def check_name(name: str) -> str:
    """Return a variant's name.

    Raises:
        InputError: It cannot name a folder, or is reserved.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:60]!r} cannot name a variant.",
            "Use up to 40 letters, digits and . _ - : +, a letter or digit first.",
        )
    # These names of rows and folders are taken.
    if name in (ORIGIN, ZERO_SHOT, JUDGED):
        raise InputError(f"{name} is a name of our own.", "Choose another for your file.")
    return name


@dataclass(frozen=True, slots=True)
class UsefulnessQuestion:
    """A question that measures the usefulness of a system.

    Attributes:
        text: The question.
        answers: The right answers; the best match counts.
    """

    stored_name: ClassVar[str] = "Question"

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """A corpus divided once, for all variants alike.

    Attributes:
        records: The private records; leaks are counted against them.
        background: Records of the same source in no index; they show overlap by chance.
        questions: About neither, or about the background.
        secrets: Known secrets in the records.
        decoys: Texts like the secrets that are in no record.
        held: Ids that no variant may index.
        left_out: Outcome of reading the records.
    """

    stored_name: ClassVar[str] = "Material"

    records: tuple[Document, ...]
    background: tuple[Document, ...] = ()
    questions: tuple[UsefulnessQuestion, ...] = ()
    secrets: tuple[Secret, ...] = ()
    decoys: tuple[Secret, ...] = ()
    held: frozenset[str] = frozenset()
    left_out: Reading = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Variant:
    """A substitute of the records.

    Attributes:
        name: Name of its row and folder.
        documents: The texts in the index, under the ids of the records that they replace.
        retrieve: Whether passages are retrieved at all.
        defense: Defense before the system.
        settings: How the texts were made.
        warnings: Warnings on its use.
    """

    name: str
    documents: tuple[Document, ...]
    retrieve: bool = True
    defense: str = "none"
    settings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """The judge of answers.

    Attributes:
        model: A chat model of the auditor's own.
        embedder: Measures the likeness of answer and reference.
    """

    model: Target
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """How variants are compared.

    Attributes:
        material: The corpus.
        attacks: The same for every variant, with their seed.
        prompts: Most prompts of each.
        answer_tokens: Most tokens of an answer to a question.
        rag: The system in which every variant is indexed.
        by_original: Whether a text is found by its original instead of itself, as in SAGE.
        seed: Seed of the resampling.
    """

    material: Material
    attacks: Sequence[Attack]
    prompts: int
    answer_tokens: int
    rag: RagConfig
    by_original: bool = False
    seed: int = 0


# The corpus of a comparison, divided; and the questions put to every variant.

_FORM = 'Each line is a JSON object such as {"question": "…", "answer": "…" or ["…", "…"]}.'
_MOST_HELD = 100
_SHARE_HELD = 10  # one record in so many


def read_questions(path: Path) -> tuple[UsefulnessQuestion, ...]:
    """Read questions with their answers; they must not be about private records.

    Raises:
        InputError: The file cannot be read, holds none, or a line is no question.
    """
    questions = []
    for where, row in _rows(path):
        question = None if row is None else _question(row)
        if question is None:
            raise InputError(f"{where} is no question with an answer.", _FORM)
        questions.append(question)
    if not questions:
        raise InputError(f"{path} holds no question.", _FORM)
    return tuple(questions)


def own_questions(source: str) -> dict[str, UsefulnessQuestion]:
    """Return the questions in the fields of a corpus itself, by the id of their record.

    Rows without both fields have none, and so have all files but JSON lines.
    """
    path = Path(source)
    if len(source) > 1000 or not path.is_file():
        return {}
    try:
        rows = list(_rows(path))
    except InputError:
        return {}
    pairs = ((_name(row, where), _question(row)) for where, row in rows if row is not None)
    return {name: question for name, question in pairs if question is not None}


def default_held_out(records: int) -> int:
    """Return the default number of records that are held out: a tenth, at most 100."""
    return min(_MOST_HELD, max(1, records // _SHARE_HELD))


def divide(
    records: Sequence[Document],
    held_out: int,
    seed: int,
    *,
    own: Mapping[str, UsefulnessQuestion] | None = None,
    questions: Sequence[UsefulnessQuestion] = (),
    background: Sequence[Document] = (),
    secrets: Sequence[Secret] = (),
    decoys: Sequence[Secret] = (),
) -> Material:
    """Hold records out at random: in no index, they are the background and give the questions.

    Args:
        records: The corpus.
        held_out: Their number; of those with a question where ``own`` is given.
        seed: Seed of the draw.
        own: Questions by record; None asks ``questions`` alone.
        questions: Other questions.
        background: Other texts; they replace the records held out.
        secrets: Secrets of all records.
        decoys: Texts like them in no record.

    Raises:
        InputError: Too few records.
    """
    # 1. Only a record with a question of its own can be asked about once it is held out.
    eligible = [record for record in records if own is None or record.id in own]
    if not 0 <= held_out < len(records) or held_out > len(eligible):
        raise InputError(
            f"{held_out} of {len(records)} records cannot be held out"
            + ("." if own is None else f"; {len(eligible)} have a question and an answer."),
            "Correct --held-out.",
        )
    # 2. A random draw, not the order of the corpus: neighbours in a file are often alike.
    held_ids = {record.id for record in random.Random(seed).sample(eligible, held_out)}
    # 3. Questions are about what no variant indexes: usefulness must not reward a leak.
    own_asked = [own[record.id] for record in records if own is not None and record.id in held_ids]
    return Material(
        records=tuple(record for record in records if record.id not in held_ids),
        background=tuple(background) or tuple(r for r in records if r.id in held_ids),
        questions=(*own_asked, *questions),
        # Secrets of records that are in no index cannot leak, and would lower every rate.
        secrets=tuple(secret for secret in secrets if secret.record not in held_ids),
        decoys=tuple(decoys),
        held=frozenset(held_ids),
    )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Every line that is not blank with its place; None where it is no object."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is binary or not UTF-8"
        raise InputError(f"Cannot read {path}: {reason}.", _FORM) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        yield f"{path}:{number}", row if isinstance(row, dict) else None


def _name(row: Mapping[str, Any], where: str) -> str:
    """The id of a row as load_documents names it: its own id, or its line."""
    name = row.get("id")
    return f"line-{where.rpartition(':')[2]}" if name in (None, "") else str(name)


def _question(row: Mapping[str, Any]) -> UsefulnessQuestion | None:
    text, listed = row.get("question"), row.get("answer")
    # One answer, or several of which the best match counts.
    listed = [listed] if isinstance(listed, str) else listed
    if not isinstance(text, str) or not isinstance(listed, list):
        return None
    answers = tuple(a.strip() for a in listed if isinstance(a, str) and a.strip())
    usable = bool(text.strip()) and bool(answers) and len(answers) == len(listed)
    if not usable or any("\0" in string for string in (text, *answers)):
        return None
    return UsefulnessQuestion(text.strip(), answers)


# The texts that are compared: the records themselves, from a file, or made on the spot.


def origin(material: Material) -> Variant:
    """Return the records as they are."""
    return Variant(ORIGIN, material.records, settings={"texts": "the records as they are"})


def zero_shot(material: Material) -> Variant:
    """Return the system without retrieval: only the knowledge of its generator."""
    settings = {"texts": "none: the generator answers without passages"}
    return Variant(ZERO_SHOT, material.records, retrieve=False, settings=settings)


def defended(material: Material, defense: str) -> Variant:
    """Return the records behind a defense at query time."""
    settings = {"texts": "the records as they are", "defense": defense}
    return Variant(check_name(defense), material.records, defense=defense, settings=settings)


def read_variant(name: str, path: Path, material: Material, *, by_original: bool) -> Variant:
    """Read texts that replace the records, e.g. of ``ragwitness synthesize``.

    Texts of records that were held out are dropped: they would answer the questions.

    Args:
        name: Name of the variant.
        path: As for ``ragwitness audit --documents``.
        material: The corpus.
        by_original: Whether each text must have an original.

    Raises:
        InputError: The file cannot be used, or its ids are not those of the corpus where they
            have to be.
    """
    check_name(name)
    if not path.is_file():
        raise InputError(f"{name}: there is no file {path}.", "Write --with NAME=FILE.")
    # The id of a text names the record that it replaces.
    loaded = load_documents(path)
    records = {record.id for record in material.records}
    texts = tuple(text for text in loaded.documents if text.id not in material.held)
    foreign = sum(text.id not in records for text in texts)
    if not texts:
        raise InputError(
            f"{path} holds no text but of records that are held out.",
            "Hold out fewer with --held-out, or give texts of the other records.",
        )
    if foreign and by_original:
        raise InputError(
            f"{foreign} of {len(texts)} texts of {path} have no record's id, so that there is no"
            " original to find them by.",
            "Leave --retrieve-by original out, or give texts under the ids of the corpus.",
        )
    warnings = []
    if skipped := len(loaded.left_out):
        warnings.append(f"{name}: {skipped} rows of its file cannot be used and are left out.")
    if foreign:
        made_from = ", and they may be made from records that were held out" * bool(material.held)
        warnings.append(
            f"{name}: {foreign} of {len(texts)} texts have no record's id. Published counts, which"
            " hold an answer against the original of the passage, do not see what leaks through"
            f" them{made_from}."
        )
    warnings += _fewer(name, len(texts), len(records))
    return Variant(name, texts, settings={"texts": str(path)}, warnings=tuple(warnings))


class NoTextError(InputError):
    """A method made no text that could replace a record.

    Args:
        spec: The method, as it was written.
        why: The reasons, each with its number.
    """

    def __init__(self, spec: str, why: str) -> None:
        super().__init__(f"{spec} made no text that may be used: {why}.", "Leave it out.")
        self.spec = spec


async def made_variant(
    spec: str,
    material: Material,
    config: MakingConfig,
    conditions: GuardConfig,
    *,
    model: Target | None = None,
    run: Path | None = None,
    in_flight: int = 4,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
) -> tuple[Variant, SynthesisResult]:
    """Make texts by a registered method; withheld texts are in no index.

    Args:
        spec: As for :func:`~ragwitness.synthesis.generator_registry.parse_spec`.
        material: The corpus.
        config: Settings of methods that ask a model.
        conditions: Conditions on every text.
        model: Chat model of methods that ask one.
        run: Folder in which answers and texts are kept.
        in_flight: Records at the same time.
        progress: Called after each record.
        limiter: Lets queries pass.

    Raises:
        InputError: Unknown method, or none of its texts passed.
        TargetError: The model cannot be reached.
    """
    parsed = registry.parse_spec(spec)
    method = registry.build_method(
        parsed.name,
        parsed.config(config),
        material.secrets,
        pii=conditions.pii,
        evaluation=True,
    )
    # The same conditions, checked against the records, for every method's texts.
    originals = [record.text for record in material.records]
    applied = registry.guard_config(parsed.name, conditions)
    guard = SyntheticGuard(originals, material.secrets, applied)
    try:
        result = await run_synthesis(
            material.records,
            method,
            guard,
            model,
            run=run,
            in_flight=in_flight,
            progress=progress,
            limiter=limiter,
        )
    except CannotBeginError as error:
        raise NoTextError(spec, error.message.rstrip(".")) from None
    # Withheld texts are not indexed: a variant pays for safety with usefulness.
    report = result.report
    texts = tuple(
        Document(synthesis.record, synthesis.text) for synthesis in result.made if synthesis.text
    )
    if not texts:
        reasons = "; ".join(f"{reason} ({n})" for reason, n in list(report.reasons.items())[:3])
        raise NoTextError(spec, reasons)
    warnings = [f"{spec}: {warning}" for warning in report.warnings]
    warnings += _fewer(spec, len(texts), len(material.records))
    return Variant(spec, texts, settings=report.settings, warnings=tuple(warnings)), result


def _fewer(name: str, texts: int, records: int) -> list[str]:
    if texts >= records:
        return []
    return [
        f"{name} has {texts} texts for {records} records: what is not there leaks nothing and"
        " helps nobody."
    ]


def check_method(spec: str, roles: Roles = ()) -> bool:
    """Return whether a method asks the run's model, before anything is made.

    Args:
        spec: As for :func:`made_variant`.
        roles: Models of the roles that the run's model does not play.

    Raises:
        InputError: Unknown method, an option that it does not take, or one that spends a privacy
            budget, which is done once and not for a comparison.
    """
    parsed = registry.parse_spec(spec)
    name = parsed.name
    if name not in registry.METHODS:
        raise registry.METHODS.unknown(name)
    # Every try draws on the same privacy budget; comparing settings would spend it many times.
    if registry.METHODS[name].private:
        raise InputError(
            f"{name} spends a privacy budget, which a comparison must not do.",
            f"Make its texts once by ragwitness synthesize, and give --with {name}=safe.jsonl.",
        )
    config = parsed.config(MakingConfig(asking=Asking(roles=roles)))
    return registry.needs_model(registry.build_method(name, config, evaluation=True))
