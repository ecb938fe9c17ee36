"""What is compared: texts that stand in the same private records' place."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ragwitness.comparison.frontier import MakingCost
from ragwitness.comparison.result import ORIGIN
from ragwitness.core.errors import InputError
from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Document, Reading, Target
from ragwitness.leakage.attacks.base import Attack
from ragwitness.models.base import Embedder
from ragwitness.rag.config import RagConfig
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import StoredAnswers, decode_answer
from ragwitness.runner.worker import Progress
from ragwitness.synthesis.agents import Asking, MakingConfig, Roles
from ragwitness.synthesis.generator_registry import (
    METHODS,
    build_method,
    guard_config,
    needs_model,
    parse_spec,
)
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.run import CannotBeginError, SynthesisResult, run_synthesis
from ragwitness.text.documents import load_documents
from ragwitness.text.secrets import Secret

ZERO_SHOT = "zero-shot"
"""No passage at all: what the generator knows by itself (SAGE, Table 1, "0-shot")."""

JUDGED = "judged"
"""Folder of judgements, beside those of the variants."""

_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]{0,39}", re.ASCII)


def check_name(name: str) -> str:
    """Return a variant's name.

    Raises:
        InputError: It cannot name a folder, or is one of ours.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:60]!r} cannot name a variant.",
            "Use up to 40 letters, digits and . _ - : +, a letter or digit first.",
        )
    # These rows and folders are always there, so a file under such a name would be mixed up.
    if name in (ORIGIN, ZERO_SHOT, JUDGED):
        raise InputError(f"{name} is a name of our own.", "Choose another for your file.")
    return name


@dataclass(frozen=True, slots=True)
class UsefulnessQuestion:
    """A question that tells how useful a system is.

    Attributes:
        text: What is asked.
        answers: What is right; of several the best match counts.
    """

    stored_name: ClassVar[str] = "Question"

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """A corpus divided once, for all variants alike.

    Attributes:
        records: The private records, which leaks are counted against.
        background: Records of the same source in no index: what is shared by chance.
        questions: About neither, or about the background.
        secrets: Known secrets in the records.
        decoys: Made like them and put nowhere.
        held: Ids that no variant may index.
        left_out: What reading the records came to.
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
    """What stands in the records' place.

    Attributes:
        name: Of the row, and of a folder.
        documents: What is indexed, under the ids of the records they stand for.
        retrieve: Whether passages are retrieved at all.
        defense: Before the system.
        settings: How the texts were made.
        warnings: What to beware of.
        cost: Of making the texts; None where they were given.
    """

    name: str
    documents: tuple[Document, ...]
    retrieve: bool = True
    defense: str = "none"
    settings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    cost: MakingCost | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges answers.

    Attributes:
        model: A chat model of the auditor's own.
        embedder: For the likeness of answer and reference.
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
        seed: Of the resampling.
        embedder: For likeness in meaning; None leaves it out.
    """

    material: Material
    attacks: Sequence[Attack]
    prompts: int
    answer_tokens: int
    rag: RagConfig
    by_original: bool = False
    seed: int = 0
    embedder: Embedder | None = None


# The corpus of a comparison, divided; and the questions put to every variant.

_FORM = 'Each line is a JSON object such as {"question": "…", "answer": "…" or ["…", "…"]}.'
_MOST_HELD = 100
_SHARE_HELD = 10  # one record in so many


def read_questions(path: Path) -> tuple[UsefulnessQuestion, ...]:
    """Read questions with their answers; they must not be about private records.

    Raises:
        InputError: The file cannot be read, holds none, or a line is no question.
    """
    found = []
    for where, row in _rows(path):
        question = None if row is None else _question(row)
        if question is None:
            raise InputError(f"{where} is no question with an answer.", _FORM)
        found.append(question)
    if not found:
        raise InputError(f"{path} holds no question.", _FORM)
    return tuple(found)


def own_questions(source: str) -> dict[str, UsefulnessQuestion]:
    """Return the questions in the fields of a corpus itself, by the id of their record.

    Rows without both fields have none, and so has anything but a file of JSON lines.
    """
    path = Path(source)
    if len(source) > 1000 or not path.is_file():
        return {}
    try:
        rows = list(_rows(path))
    except InputError:
        return {}
    named = ((_name(row, where), _question(row)) for where, row in rows if row is not None)
    return {name: question for name, question in named if question is not None}


def default_held_out(records: int) -> int:
    """Return how many records are held out where nobody says: a tenth, at most 100."""
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
        held_out: How many; of those with a question where ``own`` is given.
        seed: Of the draw.
        own: Questions by record; None asks ``questions`` alone.
        questions: From elsewhere.
        background: From elsewhere; replaces the records held out.
        secrets: Of all records.
        decoys: Put nowhere.

    Raises:
        InputError: Too few records.
    """
    # 1. Only a record with a question of its own can be asked about once it is held out.
    able = [one for one in records if own is None or one.id in own]
    if not 0 <= held_out < len(records) or held_out > len(able):
        raise InputError(
            f"{held_out} of {len(records)} records cannot be held out"
            + ("." if own is None else f"; {len(able)} have a question and an answer."),
            "Correct --held-out.",
        )
    # 2. The lot decides, not the order of the corpus: neighbours in a file are often alike.
    held = {one.id for one in random.Random(seed).sample(able, held_out)}
    # 3. Questions are about what no variant indexes: usefulness must not reward a leak.
    mine = [(own or {})[one.id] for one in records if own is not None and one.id in held]
    return Material(
        records=tuple(one for one in records if one.id not in held),
        background=tuple(background) or tuple(one for one in records if one.id in held),
        questions=(*mine, *questions),
        # Secrets of records that are in no index cannot leak, and would lower every rate.
        secrets=tuple(one for one in secrets if one.record not in held),
        decoys=tuple(decoys),
        held=frozenset(held),
    )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Every line that is not blank with its place; None where it is no object."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is binary or not UTF-8"
        raise InputError(f"Cannot read {path}: {why}.", _FORM) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        yield f"{path}:{number}", row if isinstance(row, dict) else None


def _name(row: Mapping[str, Any], where: str) -> str:
    """The id of a row as the corpus has it."""
    # As load_documents names rows: by their id, or by their line.
    given = row.get("id")
    return f"line-{where.rpartition(':')[2]}" if given in (None, "") else str(given)


def _question(row: Mapping[str, Any]) -> UsefulnessQuestion | None:
    text, given = row.get("question"), row.get("answer")
    # One answer, or several of which the best match counts.
    answers = [given] if isinstance(given, str) else given
    if not isinstance(text, str) or not isinstance(answers, list):
        return None
    told = tuple(one.strip() for one in answers if isinstance(one, str) and one.strip())
    usable = bool(text.strip()) and bool(told) and len(told) == len(answers)
    if not usable or any("\0" in one for one in (text, *told)):
        return None
    return UsefulnessQuestion(text.strip(), told)


# The texts that are compared: the records themselves, from a file, or made on the spot.


def origin(material: Material) -> Variant:
    """Return the records as they are."""
    return Variant(ORIGIN, material.records, settings={"texts": "the records as they are"})


def zero_shot(material: Material) -> Variant:
    """Return the system without retrieval: what its generator knows by itself."""
    told = {"texts": "none: the generator answers without passages"}
    return Variant(ZERO_SHOT, material.records, retrieve=False, settings=told)


def defended(material: Material, defense: str) -> Variant:
    """Return the records behind a defense at query time."""
    told = {"texts": "the records as they are", "defense": defense}
    return Variant(check_name(defense), material.records, defense=defense, settings=told)


def read_variant(name: str, path: Path, material: Material, *, by_original: bool) -> Variant:
    """Read texts that stand for the records, e.g. of ``ragwitness synthesize``.

    Texts of records that were held out are left out: they would answer the questions.

    Args:
        name: What the variant is called.
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
    # Ids say which record a text stands for; without one it has no original to be held against.
    loaded = load_documents(path)
    known = {one.id for one in material.records}
    kept = tuple(one for one in loaded.documents if one.id not in material.held)
    foreign = sum(one.id not in known for one in kept)
    if not kept:
        raise InputError(
            f"{path} holds no text but of records that are held out.",
            "Hold out fewer with --held-out, or give texts of the other records.",
        )
    if foreign and by_original:
        raise InputError(
            f"{foreign} of {len(kept)} texts of {path} have no record's id, so that there is no"
            " original to find them by.",
            "Leave --retrieve-by original out, or give texts under the ids of the corpus.",
        )
    said = _remarks(name, len(loaded.left_out), len(kept), foreign, material)
    return Variant(name, kept, settings={"texts": str(path)}, warnings=tuple(said))


def _remarks(name: str, skipped: int, kept: int, foreign: int, material: Material) -> list[str]:
    said = []
    if skipped:
        said.append(f"{name}: {skipped} rows of its file cannot be used and are left out.")
    if foreign:
        said.append(
            f"{name}: {foreign} of {kept} texts have no record's id. Published counts, which hold"
            " an answer against the original of the passage, do not see what leaks through them"
            + (", and they may be made from records that were held out." if material.held else ".")
        )
    if kept < len(material.records):
        said.append(_fewer(name, kept, len(material.records)))
    return said


class NoTextError(InputError):
    """A method made nothing that could stand in the corpus's place.

    Args:
        spec: The method, as it was written.
        why: The reasons, with how often each was met.
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
    """Make texts by a registered method; what it withholds is in no index.

    Args:
        spec: As for :func:`~ragwitness.synthesis.generator_registry.parse_spec`.
        material: The corpus.
        config: Of methods that ask a model.
        conditions: On every text.
        model: Chat model of methods that ask one.
        run: Folder in which answers and texts are kept.
        in_flight: Records under way.
        progress: Called after each record.
        limiter: Lets queries pass.

    Raises:
        InputError: Unknown method, or none of its texts passed.
        TargetError: The model cannot be reached.
    """
    parsed = parse_spec(spec)
    name = parsed.name
    method = build_method(
        name,
        parsed.config(config),
        material.secrets,
        pii=conditions.pii,
        k=parsed.k,
        evaluation=True,
    )
    # The conditions are checked against the records, the same ones for every method's texts.
    guard = SyntheticGuard(
        [one.text for one in material.records], material.secrets, guard_config(name, conditions)
    )
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
    texts = tuple(Document(one.record, one.text) for one in result.made if one.text)
    if not texts:
        why = "; ".join(f"{reason} ({n})" for reason, n in list(report.reasons.items())[:3])
        raise NoTextError(spec, why)
    said = [f"{spec}: {one}" for one in report.warnings]
    if len(texts) < len(material.records):
        said.append(_fewer(spec, len(texts), len(material.records)))
    made = dict(report.settings)
    cost = making_cost(result, run, limiter)
    return Variant(spec, texts, settings=made, warnings=tuple(said), cost=cost), result


def making_cost(
    result: SynthesisResult, run: Path | None, limiter: RateLimiter | None = None
) -> MakingCost:
    """Return what the texts took, all starts together: the folder has every answer to them."""
    kept = run / ANSWERS if run else None
    read = written = queries = 0
    if kept is not None and kept.exists():
        with StoredAnswers(kept) as answers:
            for row in answers.rows():
                answer = decode_answer(row["answer"])
                queries += 1
                read += answer.prompt_tokens or 0
                written += answer.completion_tokens or 0
    prices = limiter.budget if limiter else None
    money = None
    if prices is not None and prices.price_in is not None and prices.price_out is not None:
        money = (read * prices.price_in + written * prices.price_out) / 1e6
    # What was kept took no time now; nobody knows what it took then.
    again = bool(queries) and not result.report.sent
    return MakingCost(queries, read, written, money, None if again else result.report.seconds)


def _fewer(name: str, texts: int, records: int) -> str:
    return (
        f"{name} has {texts} texts for {records} records: what is not there leaks nothing and"
        " helps nobody."
    )


def check_method(spec: str, roles: Roles = ()) -> bool:
    """Say whether a method asks the run's model, before anything is made.

    Args:
        spec: As for :func:`made_variant`.
        roles: Who plays the roles that the run's model does not play.

    Raises:
        InputError: Unknown method, an option that it does not take, or one that spends a privacy
            budget, which is done once and not for a comparison.
    """
    parsed = parse_spec(spec)
    name = parsed.name
    if name not in METHODS:
        raise METHODS.unknown(name)
    # Every try draws on the same privacy budget; comparing settings would spend it many times.
    if METHODS[name].private:
        raise InputError(
            f"{name} spends a privacy budget, which a comparison must not do.",
            f"Make its texts once by ragwitness synthesize, and give --with {name}=safe.jsonl.",
        )
    config = parsed.config(MakingConfig(asking=Asking(roles=roles)))
    return needs_model(build_method(name, config, k=parsed.k, evaluation=True))
