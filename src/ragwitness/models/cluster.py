"""Language models on the machines of a Ray cluster: the audit itself stays in one process."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from ragwitness.core.errors import InputError
from ragwitness.core.workers import Cluster, ray_result, ray_session
from ragwitness.models.base import ChatPrompt, Generation, TextScores
from ragwitness.models.model_registry import computed_by, load_language_model

_AT_ONCE = 3  # calls of one worker: the next is there when the last is answered


@contextmanager
def models_on(cluster: Cluster) -> Iterator[None]:
    """Have the language models that are loaded from now on compute on a Ray cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: The cluster is too small.
        RagwitnessError: There is no cluster at the address.
    """
    with ray_session(cluster) as ray:
        options = {"num_cpus": 1, "num_gpus": cluster.gpus, "max_concurrency": _AT_ONCE}
        holder = ray.remote(ModelHolder).options(**options)
        holders = [holder.remote(os.getcwd()) for _ in range(cluster.workers)]
        with computed_by(partial(ClusterModel, ray, holders)):
            yield


class ModelHolder:
    """A worker of the cluster: it loads each requested model once.

    Args:
        home: Folder that relative addresses start from.
    """

    def __init__(self, home: str) -> None:
        os.chdir(home)

    def describe(self, spec: str) -> tuple[str, str, int, bool]:
        """Return the version of the package, and a model's name, context and ``can_score``."""
        model = load_language_model(spec)
        can_score = getattr(model, "can_score", True)
        return version("ragwitness"), model.name, model.context_length, can_score

    def call(self, spec: str, method: str, arguments: tuple[Any, ...], options: Any) -> Any:
        """Return what a method of a model returns."""
        return getattr(load_language_model(spec), method)(*arguments, **options)


class ClusterModel:
    """A :class:`~ragwitness.models.base.LanguageModel` that every worker of a cluster holds.

    Args:
        ray: The package, connected to the cluster.
        holders: The workers.
        spec: Address of the model.

    Raises:
        InputError: The workers hold different models, or another version of the package.
    """

    def __init__(self, ray: Any, holders: Sequence[Any], spec: str) -> None:
        described = {ray_result(ray, task) for task in [h.describe.remote(spec) for h in holders]}
        if len(described) > 1 or next(iter(described))[0] != version("ragwitness"):
            raise InputError(
                f"The workers of the cluster differ in {spec!r} or in their version of ragwitness.",
                "Install the same version, and put the same model, on all machines.",
            )
        ((_, self.name, self.context_length, self.can_score),) = described
        self.callers = 2 * len(holders) + 2
        self._ray, self._spec, self._next_holder = ray, spec, itertools.cycle(holders)

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text``."""
        return int(self._call("count_tokens", text))

    def score(self, texts: Sequence[str], **options: Any) -> list[TextScores]:
        """Score each text; see :class:`~ragwitness.models.base.LanguageModel`."""
        scores: list[TextScores] = self._call("score", texts, **options)
        return scores

    def generate(self, prompts: Sequence[ChatPrompt], **options: Any) -> list[Generation]:
        """Continue each conversation; see :class:`~ragwitness.models.base.LanguageModel`."""
        generations: list[Generation] = self._call("generate", prompts, **options)
        return generations

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        holder = next(self._next_holder)
        return ray_result(self._ray, holder.call.remote(self._spec, method, arguments, options))
