"""RAG systems in this process by address, ``lab:CORPUS[?...]``, and models alone.

Heavy imports are local: the command line reads this file for every verb.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwitness.core.errors import InputError

if TYPE_CHECKING:
    from ragwitness.core.types import Document, Target
    from ragwitness.rag.config import RagConfig
    from ragwitness.rag.target import LabTarget
    from ragwitness.targets.transport import Address, TransportOptions

_SETTINGS = frozenset(
    {"k", "retrieval", "metric", "generator", "template", "retrieve", "chunk_words"}
)
_OTHERS = frozenset({"defense", "originals", "text_field", "paragraphs", "encoding"})

_log = logging.getLogger(__name__)


def rag_config(*, template: str = "plain", chunk_words: int = 200, **values: Any) -> RagConfig:
    """Turn the values of a command line or an address into settings.

    Args:
        template: The name of a built-in template, or a file.
        chunk_words: Longest passage, in words; a tenth of it is shared with the one before.
        values: Further fields of :class:`~ragwitness.rag.config.RagConfig`.

    Raises:
        InputError: An unknown metric or template.
    """
    from ragwitness.rag.config import RagConfig, load_template

    return RagConfig(
        template=load_template(template),
        chunk_words=chunk_words,
        chunk_overlap=min(20, chunk_words // 10),
        **values,
    )


def lab_target(
    documents: Sequence[Document],
    config: RagConfig,
    defense: str,
    originals: Mapping[str, str] | None = None,
) -> LabTarget:
    """Return a RAG system of ours as a target, behind a defense.

    Args:
        documents: The database.
        config: Settings.
        defense: The defense before it.
        originals: By id, what each document is found by; None: its own text.

    Raises:
        InputError: No document holds text, an original is missing, a setting or the defense is
            unusable, or the model does not read so much as most prompts would be.
    """
    from ragwitness.rag.defenses.base import defend
    from ragwitness.rag.defenses.defense_registry import load_defense
    from ragwitness.rag.pipeline import build_system
    from ragwitness.rag.target import LabTarget

    system = build_system(documents, config, originals=originals)
    system.check_room()
    return LabTarget(defend(system, load_defense(defense)))


async def open_lab(address: Address) -> LabTarget:
    """Open ``lab:CORPUS[?k=4&retrieval=minilm&defense=mirabel]``.

    With ``originals=FILE`` each document is found by the text of that file under its id.

    Raises:
        InputError: No such file or setting.
        ModelError: A model cannot be loaded.
    """
    address.refuse_key()
    corpus, options = address.split(_SETTINGS | _OTHERS)
    return _opened(corpus, options)


async def open_alone(address: Address) -> LabTarget:
    """Open ``hf:NAME_OR_FOLDER`` or ``gguf:FILE``: a model alone, without a system around it.

    Raises:
        InputError: The address has options.
        MissingExtraError: The extra ``hf`` or ``chat`` is not installed.
        ModelError: The model cannot be loaded.
    """
    address.refuse_key()
    name = f"{address.scheme}:{address.rest}"
    model, mark, _ = name.partition("?")
    if mark:
        raise InputError(
            f"{model} is a model alone and takes no options.",
            f"A RAG system over it is lab:CORPUS?generator={model}.",
        )
    return bare_target(model)


def bare_target(generator: str) -> LabTarget:
    """Return a model alone as a target: it reads the query and nothing else.

    Args:
        generator: A model by its address; the reader is none to be served alone.

    Raises:
        InputError: There is no such model, or it is the reader or the repeater.
        MissingExtraError: The model needs an extra that is not installed.
        ModelError: The model cannot be loaded.
        TargetError: The endpoint does not answer.
    """
    if _is_ours(generator):
        raise InputError(
            f"{generator!r} is not served without a corpus.",
            "Give a corpus, or another model: gguf:FILE, hf:NAME_OR_FOLDER or URL#MODEL.",
        )
    return _alone(generator)


def _alone(generator: str) -> LabTarget:
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.rag.target import BareSystem, LabTarget

    return LabTarget(BareSystem(load_language_model(generator), generator))


def _is_ours(model: str) -> bool:
    return model.partition(":")[0] in ("reader", "repeat")


async def open_model(address: str, options: TransportOptions | None = None) -> Target:
    """Open a chat model: any target that answers, or the reader alone.

    Raises:
        InputError: The address cannot be used.
        ModelError: The model cannot be loaded.
        TargetError: It does not answer.
    """
    from ragwitness.targets.resolve import open_target

    return _alone(address) if _is_ours(address) else await open_target(address, options)


def originals_of(path: str, **how: Any) -> dict[str, str]:
    """Return the texts by which documents are found, by id.

    Raises:
        InputError: Nothing in the file can be used.
    """
    from ragwitness.text.documents import load_documents

    _log.warning("the index holds the texts of %s: keep it as private as these", path)
    return {document.id: document.text for document in load_documents(path, **how).documents}


def _opened(corpus: str, options: dict[str, Any]) -> LabTarget:
    from ragwitness.text.documents import load_documents

    defense, originals = options.pop("defense", "none"), options.pop("originals", None)
    how: dict[str, Any] = {name: options.pop(name, None) for name in ("text_field", "encoding")}
    how["split"] = None if options.pop("paragraphs", None) is None else "paragraphs"
    loaded = load_documents(corpus, **how)
    for line in loaded.remarks:
        _log.warning("%s", line)
    found_by = None if originals is None else originals_of(originals, **how)
    return lab_target(loaded.documents, _settings(options), defense, found_by)


def _settings(values: dict[str, Any]) -> RagConfig:
    for key in {"k", "chunk_words"} & set(values):
        try:
            values[key] = int(values[key])
        except ValueError as error:
            raise InputError(f"Lab option {key} must be a whole number.") from error
    values["retrieve"] = values.get("retrieve") not in ("off", "no", "0", "false")
    return rag_config(**values)
