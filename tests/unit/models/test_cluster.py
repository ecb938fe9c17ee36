"""Models on a cluster answer as one model does; the workers' own code runs here, without Ray."""

from __future__ import annotations

import os
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ragwitness.core.errors import CapReachedError, InputError, MissingExtraError, RagwitnessError
from ragwitness.core.types import Message, Role
from ragwitness.core.workers import Cluster
from ragwitness.models import cluster as module
from ragwitness.models.base import ChatPrompt, EchoModel
from ragwitness.models.cluster import ClusterModel, models_on
from ragwitness.models.model_registry import load_embedder, load_language_model
from ragwitness.models.reader.model import Reader

PROMPTS = [ChatPrompt((Message(Role.USER, f"Say {word}."),)) for word in ("one", "two", "three")]


class FakeRay:
    """Workers in this process, which fail as Ray tells it."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            cause = None

    def __init__(self) -> None:
        self.made: list[object] = []
        self.calls: list[int] = []
        self.options: dict[str, object] = {}
        self.started: dict[str, object] = {}
        self.gone = False

    def remote(self, kind=None, **_):
        if not isinstance(kind, type):
            return lambda task: SimpleNamespace(remote=lambda *given: lambda: task(*given))
        return SimpleNamespace(options=self._options(kind))

    def _options(self, kind):
        def options(**options):
            self.options = options
            return SimpleNamespace(remote=lambda *given: self._actor(kind(*given)))

        return options

    def _actor(self, made):
        number = len(self.made)
        self.made.append(made)

        def call(*given):
            self.calls.append(number)
            return lambda: made.call(*given)

        return SimpleNamespace(
            describe=SimpleNamespace(remote=lambda *given: lambda: made.describe(*given)),
            call=SimpleNamespace(remote=call),
        )

    def get(self, task):
        error = self.exceptions.RayError("it went wrong")
        if self.gone:
            raise error
        try:
            return task()
        except Exception as cause:
            error.cause = cause
            raise error from None

    def put(self, value):
        return value

    def init(self, **options) -> None:
        self.started = options

    def shutdown(self) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0, "GPU": 1.0}


@pytest.fixture
def ray(monkeypatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", found)
    # A worker has a process, and so a registry, of its own.
    monkeypatch.setattr(module, "load_language_model", {"reader": Reader.load()}.__getitem__)
    return found


def test_calls_go_to_the_workers_and_come_back_with_every_digit(ray, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    alone = Reader.load()
    with models_on(Cluster(3, 0.25)):
        model = load_language_model("reader")
        assert isinstance(model, ClusterModel)
        assert model is load_language_model("reader")
        assert (model.name, model.context_length) == (alone.name, alone.context_length)
        assert model.callers == 8
        assert model.can_score
        assert model.count_tokens("Some words.") == alone.count_tokens("Some words.")
        for prompt in PROMPTS:
            said = model.generate([prompt], max_tokens=4, top_logprobs=2)
            assert said == alone.generate([prompt], max_tokens=4, top_logprobs=2)
        (mine,), (own,) = model.score(["Some words here."]), alone.score(["Some words here."])
        np.testing.assert_array_equal(mine.logprobs, own.logprobs)
        with pytest.raises(InputError, match="There is no language model"):
            load_language_model("nothing:such")
        load_embedder("hashing:16")  # stays here
    assert ray.options["num_gpus"] == 0.25
    assert len(ray.made) == 3
    assert ray.started["address"] == "local"
    assert isinstance(load_language_model("repeat"), EchoModel)  # here again


def test_errors_come_back_as_they_were_raised_and_a_worker_that_ended_stops_the_run(ray) -> None:
    with models_on(Cluster(2)):
        model = load_language_model("reader")
        with pytest.raises(RagwitnessError, match="tokens; reader@"):
            model.score(["word " * 9000])
        ray.gone = True
        with pytest.raises(RagwitnessError, match=r"A Ray worker failed: .*wrong") as caught:
            model.generate(PROMPTS[:1], max_tokens=1)
        assert type(caught.value) is RagwitnessError  # not a model that cannot read one document
        assert "resumes" in caught.value.hint


@pytest.mark.parametrize("which", ["version", "model"])
def test_workers_that_differ_are_refused(ray, monkeypatch, which) -> None:
    with models_on(Cluster(2)):
        one = ray.made[1].describe("reader")
        other = ("0.0", *one[1:]) if which == "version" else (one[0], "another", *one[2:])
        ray.made[1].describe = lambda _spec: other
        with pytest.raises(InputError, match="differ in 'reader' or in their version"):
            load_language_model("reader")


def test_a_cluster_that_is_too_small_or_not_there_is_refused(ray, monkeypatch) -> None:
    with pytest.raises(InputError, match="4 workers need 4 CPUs; the cluster has 3"):
        models_on(Cluster(4)).__enter__()
    with pytest.raises(InputError, match=r"3 workers need 1\.5 GPUs; the cluster has 1"):
        models_on(Cluster(3, 0.5)).__enter__()
    with pytest.raises(InputError, match="At least 1 worker"):
        Cluster(0)

    def refused(**_):
        raise Exception("nobody there")  # as Ray does

    monkeypatch.setattr(ray, "init", refused)
    with pytest.raises(RagwitnessError, match=r"no Ray cluster at far:1: .*nobody there"):
        models_on(Cluster(2, address="far:1")).__enter__()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray"):
        models_on(Cluster(2)).__enter__()


def test_a_worker_is_one_process_in_the_folder_of_the_command(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir("/")
    module.ModelHolder(str(tmp_path))
    assert os.getcwd() == str(tmp_path)


def test_errors_travel_between_processes() -> None:
    error = MissingExtraError("The engine ray", "ray")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), again.message, again.hint) == (type(error), error.message, error.hint)
    cap = pickle.loads(pickle.dumps(CapReachedError("query cap reached", "more")))  # noqa: S301
    assert (cap.message, cap.hint) == ("query cap reached", "more")
