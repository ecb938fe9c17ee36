"""The texts that are compared: the records themselves, from a file, or made on the spot."""

from __future__ import annotations

from pathlib import Path

from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.guard import Guard, GuardConfig
from ragwitness.defenses.synthetic.registry import METHODS, build_method, guard_config
from ragwitness.errors import InputError
from ragwitness.runs.comparison.plan import ORIGIN, ZERO_SHOT, Material, Variant, check_name
from ragwitness.runs.governor import Governor
from ragwitness.runs.made import SynthesisResult
from ragwitness.runs.synthesis import run_synthesis
from ragwitness.runs.worker import Progress
from ragwitness.text.documents import load_documents
from ragwitness.types import Document, Target

__all__ = ["check_method", "defended", "made_variant", "origin", "read_variant", "zero_shot"]


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
    said = _remarks(name, len(loaded.skipped), len(kept), foreign, material)
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
    governor: Governor | None = None,
) -> tuple[Variant, SynthesisResult]:
    """Make texts by a registered method; what it withholds is in no index.

    Args:
        spec: ``NAME`` or ``keywords:K``.
        material: The corpus.
        config: Of methods that ask a model.
        conditions: On every text.
        model: Chat model of methods that ask one.
        run: Folder in which answers and texts are kept.
        in_flight: Records under way.
        progress: Called after each record.
        governor: Lets queries pass.

    Raises:
        InputError: Unknown method, or none of its texts passed.
        TargetError: The model cannot be reached.
    """
    name, k = _parsed(spec)
    method = build_method(name, config, material.secrets, pii=conditions.pii, k=k, evaluation=True)
    guard = Guard(
        [one.text for one in material.records], material.secrets, guard_config(name, conditions)
    )
    result = await run_synthesis(
        material.records,
        method,
        guard,
        model,
        run=run,
        in_flight=in_flight,
        progress=progress,
        governor=governor,
    )
    texts = tuple(Document(one.record, one.text) for one in result.made if one.text)
    if not texts:
        why = "; ".join(f"{reason} ({n})" for reason, n in list(result.reasons.items())[:3])
        raise InputError(f"{spec} made no text that may be used: {why}.", "Leave it out.")
    said = [f"{spec}: {one}" for one in result.warnings]
    if len(texts) < len(material.records):
        said.append(_fewer(spec, len(texts), len(material.records)))
    return Variant(spec, texts, settings=dict(result.settings), warnings=tuple(said)), result


def _parsed(spec: str) -> tuple[str, int]:
    """A method's name, and the number of records that a keyword must stand in."""
    name, colon, value = spec.partition(":")
    if colon and (name != "keywords" or not value.isdecimal()):
        raise InputError(
            f"There is no method {spec!r}.", "Only keywords takes a number: keywords:20."
        )
    return name, int(value) if colon else 10


def _fewer(name: str, texts: int, records: int) -> str:
    return (
        f"{name} has {texts} texts for {records} records: what is not there leaks nothing and"
        " helps nobody."
    )


def check_method(spec: str) -> bool:
    """Say whether a method asks a model, before anything is made.

    Raises:
        InputError: Unknown method, an option that it does not take, or one that spends a privacy
            budget, which is done once and not for a comparison.
    """
    name, k = _parsed(spec)
    if name not in METHODS:
        raise InputError(
            f"There is no method {name!r}.", f"Choose {', '.join((ZERO_SHOT, *METHODS))}."
        )
    if METHODS[name].private:
        raise InputError(
            f"{name} spends a privacy budget, which a comparison must not do.",
            f"Make its texts once by ragwitness synthesize, and give --with {name}=safe.jsonl.",
        )
    return build_method(name, k=k, evaluation=True).asks
