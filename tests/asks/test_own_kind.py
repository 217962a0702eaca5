"""A kind of question that the package knows nothing of is asked, metered, batched and remembered."""

from dataclasses import dataclass

import numpy as np
import pytest

import pertinent
from pertinent.asks import Question, Values
from pertinent.asks.base import split
from pertinent.errors import BudgetError, ModelError
from pertinent.explainers.base import Explainer, Finding
from pertinent.masks import full_mask


@dataclass(frozen=True, eq=False)
class Steps(Question):
    """How far must each feature be moved, in steps of one, until the class changes? At most so many.

    A row is a feature. Its price is `most` passes, of which those that were not made are given back.
    """

    remembered = True
    features: np.ndarray
    most: int = 8

    @property
    def keys(self):
        return self.features.tolist()

    def price(self, paid):
        new = set(self.keys) - paid
        paid.update(new)
        return self.most * len(new)

    def unspent(self, answer):
        return sum(self.most - passes for _, passes in answer)

    def check(self, input):
        if self.features.max() >= input.n_features:
            raise TypeError(f"There is no feature {self.features.max()}.")

    def costs(self, model, input, removal, rows):
        return np.full(len(rows), self.most)

    @staticmethod
    def submit(model, parts):
        sizes.append(sum(len(part.rows) for part in parts))
        rows = []
        for part in parts:
            for feature in part.question.features[part.rows]:
                moved = np.tile(part.input.values, (part.question.most + 1, 1))
                moved[:, feature] += np.arange(part.question.most + 1)
                rows.append(moved)
        return model.submit(rows)

    @staticmethod
    def read(model, outputs, parts):
        classes = outputs.argmax(axis=1).reshape(sum(len(part.rows) for part in parts), -1)
        answers = []
        for part, found in zip(parts, split(classes, parts), strict=True):
            changed = found != found[:, :1]
            if part.input.values[0] < 0:
                answers.append(ModelError("Steps begin at zero."))
            else:
                answers.append([int(row.argmax()) if row.any() else None for row in changed])
        return answers

    def assemble(self, model, answers):
        return [(steps, self.most if steps is None else steps) for steps in answers]


sizes = []


@dataclass(frozen=True)
class Sensitivity(Explainer):
    """One over the steps that each feature takes; asks twice, to see what is remembered."""

    name = "sensitivity"
    paper = "these tests"
    summary = "one over the steps to another class"

    def explain(self, task):
        yield Values(full_mask(task.n_features))
        first = yield Steps(np.arange(task.n_features))
        again = yield Steps(np.arange(task.n_features)[::-1])
        assert first == again[::-1]
        return Finding(scores=np.array([0.0 if steps is None else 1 / steps for steps, _ in first]))


def classify(rows):
    p = (np.asarray(rows, dtype=float) @ [1.0, 2.0, 0.0] > 5.5).astype(float)
    return np.stack([1 - p, p], axis=1)


def explain(rows, **options):
    sizes.clear()
    model = pertinent.wrap(classify, kind="table")
    return pertinent.explain(model, rows, Sensitivity(), removal="constant", **options)


def test_it_explains_and_is_metered():
    (e,) = explain([[0.0, 0.0, 0.0]])
    np.testing.assert_allclose(e.scores, [1 / 6, 1 / 3, 0])
    assert e.evaluations == 1 + 6 + 3 + 8  # the whole input, then the passes that were made
    assert sizes == [3]  # the second question was answered from memory


def test_it_shares_batches_of_its_own():
    found = explain([[float(i % 3), 0.0, 0.0] for i in range(30)])
    expected = [[1 / 6, 1 / 3, 0], [1 / 5, 1 / 3, 0], [1 / 4, 1 / 2, 0]]
    np.testing.assert_allclose([e.scores for e in found], expected * 10)
    assert len(sizes) < 20


def test_its_errors_are_the_inputs_own():
    found = explain([[0.0, 0.0, 0.0], [-99.0, -99.0, 0.0], [1.0, 0.0, 0.0]])
    assert [e.index for e in found] == [0, 2]
    assert found.failures[0].index == 1
    assert "Steps begin at zero" in found.failures[0].reason


def test_the_budget_holds_before_it_is_asked():
    with pytest.raises(BudgetError, match="asked for 25 evaluations, but its budget is 20"):
        explain([0.0, 0.0, 0.0], budget=20)
    assert sizes == []


def test_nonsense_is_refused():
    def steps(task):
        return (yield Steps(np.array([7])))

    class Confused(Sensitivity):
        def explain(self, task):
            return steps(task)

    with pytest.raises(TypeError, match="no feature 7"):
        pertinent.explain(pertinent.wrap(classify, kind="table"), [0.0, 0.0, 0.0], Confused())
