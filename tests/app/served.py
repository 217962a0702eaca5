"""A page that is served for tests, by a real server in a thread."""

import threading
import time
from contextlib import contextmanager

import numpy as np

import pertinent
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explain_form import Limits
from pertinent.app.serve import make_server, served_models
from pertinent.app.site import Site
from tests import tiny_lm

TOKEN = "a-token-of-tests"
WEIGHTS = {"good": 2.0, "bad": -2.0, "not": -0.5}


class Counting:
    """Two classes by the words of a text; counts rows, and waits if it is told to."""

    def __init__(self):
        self.rows, self.gate = 0, threading.Event()
        self.gate.set()

    def __call__(self, texts):
        self.gate.wait(20)
        self.rows += len(texts)
        sums = np.array(
            [
                sum(WEIGHTS.get(word, 0.0 if word.startswith("x") else 0.1) for word in text.split())
                for text in texts
            ]
        )
        p = 1 / (1 + np.exp(-sums))
        return np.stack([1 - p, p], axis=1)


def language_model():
    """A tiny language model with random weights, which writes at most 8 tokens."""
    return pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()), max_new_tokens=8)


def site(model, *, max_concurrent=8, max_waiting=128, **limits):
    return Site(served_models(model, Limits(**limits)), AdmissionQueue(max_concurrent, max_waiting))


@contextmanager
def serving(app):
    """Serve an application on a free port; the address is what is yielded."""
    server = make_server(app)
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started and server.servers)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


def until(condition, seconds=20):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
