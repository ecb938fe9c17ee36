"""The shadow RAG system (§4.2.1): a system of the auditor's own, where the truth is known."""

from __future__ import annotations

import atexit
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, import_extra
from ragwitness.core.types import Document
from ragwitness.rag.config import RagConfig

if TYPE_CHECKING:
    from ragwitness.rag.target import LabTarget

_FEWEST = 10  # documents per half; below that a classifier learns nothing


@dataclass(frozen=True, slots=True)
class ShadowConfig:
    """How the shadow system is made.

    Attributes:
        audited: Documents probed per half.
        stored: Most documents in its database.
        rag: Generator, encoder, k and template; the target's where they are known.
        seed: Of the split.
    """

    stored_name: ClassVar[str] = "ShadowConfig"

    audited: int = 100
    stored: int = 1000
    rag: RagConfig = field(default_factory=RagConfig)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Shadow:
    """A shadow system and the documents that D_audit is made from.

    Attributes:
        target: The system, asked like any other target.
        inside: Documents of its database (D_s,i), to be probed.
        outside: Documents it does not hold (D_s,o), to be probed.
    """

    target: LabTarget
    inside: tuple[Document, ...]
    outside: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class AuxiliarySplit:
    """Which auxiliary documents go where.

    Attributes:
        stored: The shadow system's database.
        inside: Those of it that are probed (D_s,i).
        outside: Probed documents it does not hold (D_s,o).
        spare: The rest of D_s,o, never shown to it nor probed at it.
    """

    stored: tuple[Document, ...]
    inside: tuple[Document, ...]
    outside: tuple[Document, ...]
    spare: tuple[Document, ...]


def split_auxiliary(auxiliary: Sequence[Document], config: ShadowConfig) -> AuxiliarySplit:
    """Split the auxiliary documents into disjoint halves; nothing is built.

    Raises:
        InputError: Too few auxiliary documents.
    """
    if len(auxiliary) < 2 * _FEWEST:
        raise InputError(
            f"{len(auxiliary)} auxiliary documents are too few for a shadow system;"
            f" it needs at least {2 * _FEWEST}.",
            "Give more with --auxiliary, or leave the option out to use the generated corpus.",
        )
    # D_s,i is stored, D_s,o is not; both halves come from one distribution.
    shuffled = list(auxiliary)
    random.Random(config.seed).shuffle(shuffled)
    half = len(shuffled) // 2
    stored, out = shuffled[:half][: config.stored], shuffled[half:]
    # Half of D_s,o stays unprobed here, so that it can calibrate at the target.
    probed = min(config.audited, max(_FEWEST, len(out) // 2))
    return AuxiliarySplit(
        stored=tuple(stored),
        inside=tuple(stored[: config.audited]),
        outside=tuple(out[:probed]),
        spare=tuple(out[probed:]),
    )


def build_shadow(auxiliary: Sequence[Document], config: ShadowConfig) -> Shadow:
    """Split the auxiliary documents and index the stored ones.

    Raises:
        InputError: Too few auxiliary documents.
        ModelError: A model of ``config.rag`` cannot be loaded.
    """
    from ragwitness.rag.pipeline import build_system
    from ragwitness.rag.target import LabTarget

    split = split_auxiliary(auxiliary, config)
    target = LabTarget(build_system(split.stored, config.rag))
    return Shadow(target, split.inside, split.outside)


# The audit classifier f_audit, trained on a shadow system (§4.2.3).
#
# The paper lets AutoGluon choose the model; where it is not installed, a random forest stands for
# it.

_FOLDS = 5  # of AutoGluon's cross-validation; five documents of each kind are the fewest to split
_TREES = 300


class _Fitted(Protocol):
    def predict_proba(self, features: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class AuditClassifier:
    """A trained f_audit.

    Attributes:
        name: The kind of classifier.
        fitted: Anything with ``predict_proba``.
    """

    name: str
    fitted: _Fitted

    def member_probability(self, features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the probability of membership, shape (n,), for features of shape (n, d)."""
        table = np.asarray(features, dtype=np.float64)
        return np.asarray(self.fitted.predict_proba(table), dtype=np.float64)[:, 1]


def train_classifier(
    features: Sequence[Sequence[float]], members: Sequence[bool], *, automl: bool = False
) -> AuditClassifier:
    """Train f_audit on D_audit with AutoGluon where it is installed, else as a random forest.

    Args:
        features: Shadow documents' features, shape (n, d).
        members: True for documents of the shadow database, shape (n,).
        automl: AutoGluon, and nothing in its place.

    Raises:
        InputError: Fewer than five members or non-members.
        MissingExtraError: AutoGluon is asked for and is not installed.
    """
    fewest = min(sum(members), len(members) - sum(members))
    if fewest < _FOLDS:
        raise InputError(
            f"The shadow system gave only {fewest} scorable documents of one kind;"
            f" training needs {_FOLDS}.",
            "Give more auxiliary documents with --auxiliary.",
        )
    if automl or (find_spec("autogluon") and find_spec("autogluon.tabular")):
        return train_autogluon(features, members)
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(_TREES, min_samples_leaf=3, random_state=0)
    fitted = forest.fit(np.asarray(features), np.asarray(members, dtype=np.int64))
    return AuditClassifier("random forest; the paper's AutoGluon is not installed", fitted)


def train_autogluon(
    features: Sequence[Sequence[float]], members: Sequence[bool]
) -> AuditClassifier:
    """Train f_audit as the paper does, with AutoGluon (extra ``[automl]``)."""
    import shutil
    import tempfile

    tabular = import_extra("autogluon.tabular", "The AutoGluon classifier", "automl")
    table = np.asarray(features, dtype=np.float64)
    frame = tabular.TabularDataset({f"f{j}": table[:, j] for j in range(table.shape[1])})
    frame["member"] = [int(member) for member in members]
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    predictor = tabular.TabularPredictor("member", path=folder, verbosity=0)
    predictor.fit(frame, time_limit=60, num_bag_folds=_FOLDS)

    class _Adapter:
        def predict_proba(self, features: Any) -> Any:
            columns = {f"f{j}": features[:, j] for j in range(features.shape[1])}
            return predictor.predict_proba(tabular.TabularDataset(columns)).to_numpy()

    return AuditClassifier("AutoGluon", _Adapter())
