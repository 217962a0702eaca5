"""Workers that die while they load the model, with a Ray of fake actors and a fake clock."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import pertinent
from pertinent import Cluster
from pertinent.cluster import cluster as cluster_module
from pertinent.cluster import worker_pool
from pertinent.errors import ClusterError

TEXTS = [f"film {i} is {'bad' if i % 3 else 'good'}, {i * 7 % 11} stars" for i in range(12)]
WORDS = {"method": "leave-one-out", "progress": False}


def classify(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2 + len(t) % 7 / 20, 0.8 - len(t) % 7 / 20] for t in texts]


class DeadError(Exception):
    """The error of an actor whose process has died."""


class FakeRay:
    """Actors in this process.

    Parameters
    ----------
    fates
        What becomes of the actors: each loads, dies loading or dies at work. The last one is repeated.
    wait_seconds
        The time that the clock advances whenever a result is awaited.
    """

    def __init__(self, fates, wait_seconds):
        self.fates, self.wait_seconds = fates, wait_seconds
        self.now, self.starts = 0.0, []
        task_error = type("RayTaskError", (DeadError,), {})
        self.exceptions = SimpleNamespace(RayError=DeadError, RayTaskError=task_error)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def cluster_resources(self):
        return {"CPU": 8}

    def remote(self, cls):
        options = SimpleNamespace(remote=lambda *arguments: self.create_actor(cls(*arguments)))
        return SimpleNamespace(options=lambda **_: options)

    def create_actor(self, worker):
        fate = self.fates[min(len(self.starts), len(self.fates) - 1)]
        self.starts.append(self.now)

        def start():
            if fate == "dies loading":
                raise DeadError(fate)
            return worker.start()

        def run(*arguments):
            if fate == "dies at work":
                raise DeadError(fate)
            return worker.run(*arguments)

        def method(function):
            return SimpleNamespace(remote=lambda *arguments: (lambda: function(*arguments), object()))

        return SimpleNamespace(start=method(start), run=method(run))

    def put(self, value):
        return value

    def get(self, sent):
        return sent[0]()

    def wait(self, sent, num_returns=1, timeout=None):
        self.now += self.wait_seconds
        return sent[-1:], sent[:-1]

    def kill(self, actor):
        pass


@pytest.fixture
def fake_ray(monkeypatch):
    """Replace Ray by one whose actors have the given fates."""

    def replace(*fates, wait_seconds=0.0):
        ray = FakeRay(fates, wait_seconds)
        monkeypatch.setattr(cluster_module, "connected", lambda *_: nullcontext(ray))
        monkeypatch.setattr(worker_pool, "time", ray)
        return ray

    return replace


def explain(workers, model=None, **words):
    model = model or pertinent.wrap(classify, kind="text", classes=["bad", "good"])
    return pertinent.explain(model, TEXTS, cluster=Cluster(workers=workers, block_size=2), **WORDS, **words)


def test_a_cluster_goes_on_while_one_worker_lives(fake_ray):
    ray = fake_ray("loads", "dies loading", wait_seconds=100.0)
    assert [e.index for e in explain(2)] == list(range(12))
    assert len(ray.starts) > 5


def test_delays_grow_and_end_when_a_worker_has_loaded(fake_ray):
    ray = fake_ray(*["dies loading"] * 8, "loads", "dies at work", "loads")
    found = explain(2)
    assert [e.index for e in found] == list(range(12)) and not found.failures
    # Two workers at first; then one at a time, ever later; the missing second worker when one has loaded, and
    # the replacement of the second immediately.
    assert ray.starts == [0, 0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 31.5, 31.5]


@pytest.mark.parametrize("workers", [1, 3])
def test_attempts_to_load_are_bounded(fake_ray, workers):
    ray = fake_ray("dies loading")
    with pytest.raises(ClusterError, match="dies loading"):
        explain(workers)
    assert len(ray.starts) == workers + worker_pool.LOAD_ATTEMPTS - 1


def test_a_worker_dies_before_the_fingerprint_of_a_named_model_is_known(fake_ray, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pool_models.py").write_text(
        "def classify(texts):\n    return [[0.9, 0.1] if 'bad' in t else [0.3, 0.7] for t in texts]\n"
    )
    fake_ray("dies loading", "loads")
    found = explain(1, "pool_models:classify", out=tmp_path / "run")
    assert [e.index for e in found] == list(range(12))
