"""A model that counts, and jobs to give an engine."""

import numpy as np

from pertinent.asks import Values
from pertinent.engine.job import Job
from pertinent.removals import Constant


class Counting:
    """A table model that remembers the batches it was given."""

    def __init__(self, refuse=None, out_of_memory_above=None):
        self.batches = []
        self.refuse = refuse
        self.limit = out_of_memory_above

    def __call__(self, rows):
        if self.limit is not None and len(rows) > self.limit:
            raise MemoryError
        if self.refuse is not None and (rows == self.refuse).any():
            raise ValueError("I refuse this one")
        self.batches.append(len(rows))
        p = 1 / (1 + np.exp(-rows.astype(float) @ np.linspace(-1, 1, rows.shape[1])))
        return np.stack([1 - p, p], axis=1)


def job(model, row, algorithm, key=0):
    return Job(key, model.prepare(row), Constant(), algorithm)


def asks(*masks):
    """An algorithm that asks for some masks and returns the answers."""
    answers = []
    for mask in masks:
        answer = yield Values(np.array(mask, dtype=bool))
        answers.append(answer)
    return answers


def run(engine, jobs):
    return {done.key: done for done in engine.run(jobs)}
