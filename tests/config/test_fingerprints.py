"""A fingerprint tells apart whatever gives other answers, and nothing else."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from tests import tiny

import pertinent
from pertinent.config.fingerprints import digest
from pertinent.inputs.background import Background
from pertinent.removals import Constant, FromBackground, Mean, RandomToken, UniformNoise

ROWS = np.random.default_rng(0).normal(size=(2001, 3))
CHANGED = ROWS.copy()
CHANGED[1000, 1] += 1e-9
RECORDED = "cced2fc55388fc2f4c00e3dc0a03bc8a"
LABELS = (ROWS[:, 0] > 0).astype(int)


def by(factor):
    return lambda rows: np.full((len(rows), 2), factor)


def with_keyword(factor):
    def classify(rows, *, factor=factor):
        return np.full((len(rows), 2), factor)

    return classify


def with_global(factor, helper=""):
    """A function of the user's own module, whose global values and helpers may change."""
    names = {"FACTOR": factor, "np": np}
    code = f"""
def helper(n):
    return np.full((n, 2), FACTOR){helper}

def classify(rows):
    return [row for row in helper(len(rows))]
"""
    exec(compile(code, "mine.py", "exec"), names)
    return names["classify"]


class Attributes(torch.nn.Module):
    def __init__(self, factor=1.0, buffer=1.0):
        super().__init__()
        self.factor = factor
        self.register_buffer("unsaved", torch.tensor(buffer), persistent=False)

    def forward(self, rows):
        return rows[:, :2] * self.factor * self.unsaved


def forest(seed, rows=ROWS):
    return RandomForestClassifier(5, random_state=seed, max_depth=3).fit(rows[:200], LABELS[:200])


def linear(seed):
    torch.manual_seed(seed)
    return torch.nn.Linear(3, 2)


MODELS = {
    "function": lambda x: pertinent.wrap(by(0.5 if x else 0.25), kind="table"),
    "background": lambda x: pertinent.wrap(by(0.5), kind="table", background=ROWS if x else CHANGED),
    "output": lambda x: pertinent.wrap(
        by(0.5), kind="table", output="probability" if x else "label-probability"
    ),
    "forest": lambda x: pertinent.wrap(forest(0 if x else 1)),
    "boosting": lambda x: pertinent.wrap(
        GradientBoostingRegressor(n_estimators=3 + x, random_state=0).fit(ROWS[:50], ROWS[:50, 0])
    ),
    "module": lambda x: pertinent.wrap(linear(0 if x else 1), kind="table"),
    "half": lambda x: pertinent.wrap(linear(0).to(torch.float32 if x else torch.bfloat16), kind="table"),
    "attribute": lambda x: pertinent.wrap(Attributes(factor=1.0 + x), kind="table"),
    "buffer": lambda x: pertinent.wrap(Attributes(buffer=1.0 + x), kind="table"),
    "keyword": lambda x: pertinent.wrap(with_keyword(0.5 if x else 0.25), kind="table"),
    "global": lambda x: pertinent.wrap(with_global(0.5 if x else 0.25), kind="table"),
    "helper": lambda x: pertinent.wrap(with_global(0.5, "" if x else " / 2"), kind="table"),
    "transformer": lambda x: pertinent.wrap(tiny.pair("bert" if x else "roberta")),
    "length": lambda x: pertinent.wrap(tiny.pair("bert"), max_length=100 if x else 99),
}
REMOVALS = {
    "rows": lambda x: FromBackground(rows=3 + x, background=Background(ROWS)),
    "background": lambda x: FromBackground(background=Background(ROWS if x else CHANGED)),
    "mean": lambda x: Mean(background=Background(ROWS if x else CHANGED)),
    "value": lambda x: Constant(0.0 if x else 1e-12),
    "kind": lambda x: Constant() if x else UniformNoise(),
    "words": lambda x: RandomToken().bind(pertinent.wrap(tiny.pair("bert"))) if x else RandomToken(),
}


@pytest.mark.parametrize("make", [*MODELS.values(), *REMOVALS.values()], ids=[*MODELS, *REMOVALS])
def test_equal_things_agree_and_others_differ(make):
    assert make(True).fingerprint == make(True).fingerprint
    assert make(True).fingerprint != make(False).fingerprint


def test_a_fingerprint_is_the_same_in_another_process():
    code = (
        "from tests.config.test_fingerprints import MODELS\n"
        "print(*(make(True).fingerprint.hex() for make in MODELS.values()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [make(True).fingerprint.hex() for make in MODELS.values()]


def test_the_digest_of_a_tensor_is_that_of_its_values():
    """It depended on the address of the storage."""
    ones = torch.ones(3, dtype=torch.bfloat16)
    assert digest(ones) == digest(ones.clone()) == digest(torch.ones(6, dtype=torch.bfloat16)[::2])
    assert len({digest(each) for each in (ones, ones + 1, ones.float(), ones[:2])}) == 4


def test_digests_look_into_things():
    assert digest([1, (2.0, "a")]) == digest([1, (2.0, "a")]) != digest([1, (2.0, "b")])
    assert digest({"a": ROWS, "b": 1}) == digest({"b": 1, "a": ROWS.copy()}) != digest({"a": CHANGED, "b": 1})
    assert digest({1, 2}) == digest({2, 1}) != digest({1, 3})
    assert digest(np.array(["x" * 10, "y"], dtype=object)) != digest(np.array(["x" * 10, "z"], dtype=object))
    assert digest("ab", "c") != digest("a", "bc")
    circle: list = [1]
    circle.append(circle)
    assert digest(circle) == digest(circle)


def test_a_digest_is_the_same_on_every_machine():
    parts = [1, "a", {"b": [1.5, None]}, (b"c", {2, 3}), np.arange(4)]
    assert digest(*parts).hex() == RECORDED


def test_a_counter_does_not_make_another_model():
    calls = []
    names = {"calls": calls}
    exec(compile("def f(rows):\n    calls.append(1)\n    return rows", "mine.py", "exec"), names)
    before = digest(names["f"])
    calls.append(1)
    assert digest(names["f"]) == before
