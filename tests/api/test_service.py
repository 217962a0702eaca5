"""A service: explanations for many at once, the same as by themselves; errors and cancelling."""

import importlib
import threading
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent.errors import InputError, ModelError, SettingError

WEIGHTS = {"good": 2.0, "bad": -2.0, "not": -0.5}


class Counting:
    """Two classes by the words of a text; counts the calls and their sizes, and waits if it is told to."""

    def __init__(self):
        self.sizes, self.gate = [], threading.Event()
        self.gate.set()

    def __call__(self, texts):
        self.gate.wait(20)
        self.sizes.append(len(texts))
        sums = np.array([sum(WEIGHTS.get(word, 0.1) for word in text.split()) for text in texts])
        p = 1 / (1 + np.exp(-sums))
        return np.stack([1 - p, p], axis=1)


TEXTS = [f"not {word} at all number {i}" for i in range(8) for word in ("good", "bad")]


def test_many_threads_get_the_same_answers_as_by_themselves_in_fewer_batches():
    answers = Counting()
    alone = pertinent.explain(pertinent.wrap(answers, kind="text"), TEXTS, budget=40)
    together = Counting()
    together.gate.clear()  # until all have submitted
    with pertinent.Service(pertinent.wrap(together, kind="text")) as service:
        futures = [None] * len(TEXTS)

        def ask(i):
            futures[i] = service.submit(TEXTS[i], budget=40)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(TEXTS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together.gate.set()
        for e, future in zip(alone, futures, strict=True):
            np.testing.assert_allclose(future.result(30).scores, e.scores, atol=1e-12)
    assert max(together.sizes) > max(40, len(TEXTS))


def test_errors_stay_with_their_input():
    with pertinent.Service(Counting()) as service:
        empty, fine = service.submit(""), service.submit("good", "leave-one-out")
        with pytest.raises(InputError, match="empty"):
            empty.result(20)
        assert fine.result(20).scores[0] > 0
        with pytest.raises(SettingError):
            service.submit("good", budget=-3)


def test_what_is_cancelled_ends_at_once_and_the_others_go_on():
    model = Counting()
    model.gate.clear()
    with pertinent.Service(pertinent.wrap(model, kind="text")) as service:
        other = service.submit(TEXTS[0], "leave-one-out")
        futures = [service.submit(text, "shapley-sampling", samples=20) for text in TEXTS]
        assert all(future.cancel() for future in futures)
        model.gate.set()
        assert other.result(20).method == "leave-one-out"
    assert sum(model.sizes) < 100
    assert all(future.cancelled() for future in futures)


def test_partial_findings_come_while_it_goes_on():
    heard = []
    with pertinent.Service(Counting()) as service:
        future = service.submit(TEXTS[0], "shapley", budget=60, on_partial=heard.append)
        e = future.result(20)
    assert heard
    assert heard[0].evaluations <= heard[-1].evaluations <= e.evaluations
    assert heard[-1].scores.shape == e.scores.shape
    assert (heard[-1].target, heard[-1].method, heard[-1].features) == (e.target, e.method, e.features)


def test_a_callback_that_fails_is_logged(caplog):
    def fails(_):
        raise RuntimeError("no")

    with pertinent.Service(Counting()) as service:
        assert service.submit(TEXTS[0], "shapley", budget=60, on_partial=fails).result(20)
    assert "`on_partial` or `on_progress` failed" in caplog.text


def test_a_prediction_without_some_features():
    with pertinent.Service(pertinent.wrap(Counting(), kind="text")) as service:
        whole, without = service.predict("not good film"), service.predict("not good film", [1])
        np.testing.assert_allclose(whole.result(20)[1], 1 / (1 + np.exp(-1.6)))
        np.testing.assert_allclose(without.result(20)[1], 1 / (1 + np.exp(0.4)))
        with pytest.raises(SettingError, match="`without` must be indices below 3, but got \\[3\\]"):
            service.predict("not good film", [3]).result(20)
        with pytest.raises(InputError, match="empty"):
            service.predict(" ").result(20)
        with pytest.raises(SettingError, match="at least 0"):
            service.predict("good", [-1])
    with pytest.raises(ModelError, match="The service is closed"):
        service.predict("good")


def test_a_prediction_without_features_is_that_of_the_removal():
    model = pertinent.load("sentiment")
    with pertinent.Service(model) as service:
        e = pertinent.explain(model, "A slow start, then wonderful.", "leave-one-out", removal="mask-token")
        for i in range(len(e.features)):
            without = service.predict("A slow start, then wonderful.", [i], removal="mask-token").result(20)
            effect = e.prediction.values[e.target] - without[e.target]
            np.testing.assert_allclose(effect, e.scores[i], atol=1e-5)


def test_closing_finishes_what_was_submitted():
    service = pertinent.Service(Counting())
    future = service.submit(TEXTS[0])
    service.close()
    assert future.done()
    with pytest.raises(ModelError, match="The service is closed"):
        service.submit("good")


def test_the_example_of_a_web_service(monkeypatch):
    testclient = pytest.importorskip("fastapi.testclient")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "examples")
    app = importlib.import_module("service").app
    with testclient.TestClient(app) as client:
        found = client.post("/explain", json={"text": "slow, then wonderful", "budget": 20}).json()
        assert found["class"] == "positive"
        assert [row["feature"] for row in found["words"]] == ["slow", ",", "then", "wonderful"]
        empty = client.post("/explain", json={"text": " "})
        assert (empty.status_code, "empty" in empty.json()["detail"]) == (422, True)


def test_progress_is_reported_after_every_batch():
    reported = []
    with pertinent.Service(Counting(), batch_size=8) as service:
        future = service.submit("not good at all", budget=60, on_progress=reported.append)
        evaluations = future.result(20).evaluations
    assert reported == sorted(reported) and len(set(reported)) > 2
    assert max(reported) <= evaluations + 1
