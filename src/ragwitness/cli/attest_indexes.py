"""Indexes of an audit window out of files: documents that are embedded."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.commit import Contents
from ragwitness.attest.policy import WindowPolicy
from ragwitness.cli.common import say_error
from ragwitness.core.errors import InputError
from ragwitness.core.stored_names import unset
from ragwitness.crypto.hashing import canonical
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import quantise
from ragwitness.runner.task_runtime import as_documents

if TYPE_CHECKING:
    from ragwitness.core.types import Document
    from ragwitness.runner.task_options import HowRead

_LOTS = random.SystemRandom()
_BATCH = 256


def read_indexes(
    policy: WindowPolicy, given: Sequence[str], embedder: str, how: HowRead
) -> dict[str, Contents]:
    """Return the index of each tenant.

    Args:
        policy: Has a mechanism for each.
        given: ``TENANT=FILE``.
        embedder: By name; loaded only if there are documents.
        how: The documents are read.

    Raises:
        InputError: A tenant is unknown or comes twice, or a file cannot be used.
    """
    indexes: dict[str, Contents] = {}
    for pair in given:
        tenant, equals, source = pair.partition("=")
        mechanism = policy.tenants.get(tenant)
        if not equals or mechanism is None or tenant in indexes:
            raise InputError(
                f"--index {pair!r} names no tenant of the policy, or one a second time.",
                f"Write --index TENANT=FILE; the tenants: {', '.join(policy.tenants)}.",
            )
        indexes[tenant] = _documents(source, mechanism, embedder, how)
    return indexes


def artifacts(embedder: str, prompt: str | None = None) -> dict[str, str]:
    """Return what an embedder is committed to by: SHA-256 of its name, its files and the prompt.

    A model that lies in no folder here, from a hub or behind an endpoint, has its name alone, and
    the verdict says on whose word that rests.

    Args:
        embedder: By name.
        prompt: Template of the generator's prompt, by name or file; None for none.
    """
    # The name always; the files where there are any: two models of one name must not pass for one.
    digests = {"name": hashlib.sha256(embedder.encode()).hexdigest()}
    if prompt is not None:
        from ragwitness.rag.config import load_template

        template = load_template(prompt)
        fields = {"join", "system", *template.later} - unset(template)
        text = canonical({field: getattr(template, field) for field in fields})
        digests["template"] = hashlib.sha256(text).hexdigest()
    if embedder.partition(":")[0] == "hashing":  # its name says all: there is no model
        digests["hashing"] = digests["name"]
    folder = _folder(embedder)
    if folder is None:
        return digests
    for path in sorted(field for field in folder.rglob("*") if field.is_file()):
        with path.open("rb") as file:
            name = path.relative_to(folder).as_posix()
            digests[f"file/{name}"] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _folder(embedder: str) -> Path | None:
    if embedder == "minilm":
        from ragwitness.models.embedders import find_minilm

        return find_minilm()
    kind, _, rest = embedder.partition(":")
    return Path(rest) if kind == "hf" and rest and Path(rest).is_dir() else None


def _documents(source: str, mechanism: Mechanism, embedder: str, how: HowRead) -> Contents:
    """Embed documents and put them into slots drawn by lot, one each."""
    from ragwitness.models.model_registry import load_embedder

    documents = as_documents(source, how, note=say_error)
    if len(documents) > mechanism.capacity:
        raise InputError(
            f"{len(documents):,} documents do not fit into {mechanism.capacity:,} slots.",
            "Raise the tenant's capacity in the policy; it is public, so leave room.",
        )
    model = load_embedder(embedder)
    # All slots, free ones as zero vectors: how many are taken must not show.
    rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    digests, names = [""] * mechanism.capacity, [""] * mechanism.capacity
    # In order, one document more or less would move all after it.
    slots = _LOTS.sample(range(mechanism.capacity), len(documents))
    for start in range(0, len(documents), _BATCH):
        batch, batch_slots = documents[start : start + _BATCH], slots[start : start + _BATCH]
        floats = np.asarray(model.embed([document.text for document in batch]), np.float64)
        if floats.shape[1:] != (mechanism.dimension,):
            raise InputError(
                f"{embedder} makes vectors of {floats.shape[-1]} numbers; the policy's tenant has"
                f" dimension {mechanism.dimension}.",
                "Give another --embedder, or that dimension in the policy.",
            )
        vectors = _quantised(floats, batch, mechanism)
        for slot, document, vector in zip(batch_slots, batch, vectors, strict=True):
            rows[slot] = vector
            digests[slot] = hashlib.sha256(document.text.encode()).hexdigest()
            names[slot] = document.id
    return Contents(rows, digests, names)


def _quantised(
    floats: NDArray[np.float64], batch: Sequence[Document], mechanism: Mechanism
) -> NDArray[np.int16]:
    # A vector without direction has no unit length to be scaled to.
    usable = np.isfinite(floats).all(axis=1) & (np.abs(floats).max(axis=1, initial=0) > 0)
    if not usable.all():
        raise InputError(
            f"The embedder gives the document {batch[int(np.argmin(usable))].id!r} no usable"
            " vector.",
            "Leave it out; a text needs words that the embedder can place.",
        )
    return quantise(floats, mechanism)
