"""A kind of question that the package knows nothing of is asked, metered, batched and remembered."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import pertinent
from pertinent.asks import AttackRadii, MaskGradients, PathGradients, Question, TreeValues, Values
from pertinent.asks.base import split
from pertinent.errors import BudgetError, ModelError
from pertinent.explainers.base import Explainer, Finding
from pertinent.masks import full_mask
from pertinent.models.base import Handlers, answer_now
from pertinent.models.function import FunctionModel


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

    @classmethod
    def handle(cls, model, parts):
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

    def assemble(self, model, input, answers):
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
    with pytest.raises(BudgetError, match=r"25 evaluations.*budget is 20"):
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


# -- handlers, refusals and groups -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Norm(Question):
    """How long is the input? Answered by models that have a handler for it, and by no others."""

    keys = (0,)

    def price(self, paid):
        return 1

    def costs(self, model, input, removal, rows):
        return np.ones(len(rows), dtype=int)

    @staticmethod
    def read(model, outputs, parts):
        return [[float(norm)] for norm in outputs]

    def assemble(self, model, input, answers):
        return answers[0]


class ScaledNorm(Norm):
    """A question derived from another kind."""


def norms(model, parts):
    groups.append({part.input.n_features for part in parts})
    return answer_now(lambda: [np.linalg.norm(part.input.values) for part in parts])


groups = []


class WithNorms(FunctionModel):
    """Answers a kind of question that `Model` does not know, and keeps inputs of other widths apart."""

    handlers: ClassVar[Handlers] = {**FunctionModel.handlers, Norm: norms}

    def group_of(self, input):
        return input.n_features


def ask(question):
    """An explainer that asks this question, and scores the first feature with the answer."""

    @dataclass(frozen=True)
    class Asking(Explainer):
        name, paper, summary = "asking", "these tests", "asks one question"

        def explain(self, task):
            answer = yield question
            return Finding(scores=np.eye(task.n_features)[0] * answer)

    return Asking()


def mean(rows):
    return np.asarray(rows, dtype=float).mean(axis=1)


@pytest.mark.parametrize("question", [Norm(), ScaledNorm()])
def test_a_model_answers_with_its_own_handler(question):
    e = pertinent.explain(WithNorms(mean, output="value"), [3.0, 4.0], ask(question), removal="constant")
    assert e.scores.tolist() == [5.0, 0.0]


def test_a_handler_may_be_given_to_one_model_alone():
    model, other = (pertinent.wrap(mean, kind="table", output="value") for _ in range(2))
    model.handlers = {**model.handlers, Norm: norms}
    e = pertinent.explain(model, [3.0, 4.0], ask(Norm()), removal="constant")
    assert e.scores.tolist() == [5.0, 0.0]
    assert Norm not in other.handlers


def test_a_handler_comes_before_the_questions_own_answer():
    model = pertinent.wrap(classify, kind="table")
    found = []

    def counted(model, parts):
        found.append(len(parts))
        return Values.handle(model, parts)

    model.handlers = {Values: counted}
    pertinent.explain(model, [0.0, 0.0, 0.0], "leave-one-out", removal="constant")
    assert found


def test_a_model_without_a_handler_refuses():
    model = pertinent.wrap(mean, kind="table", output="value")
    with pytest.raises(ModelError, match="FunctionModel does not answer Norm questions"):
        pertinent.explain(model, [3.0, 4.0], ask(Norm()), removal="constant")


@pytest.mark.parametrize("kind", [MaskGradients, PathGradients, AttackRadii, TreeValues])
def test_each_kind_has_its_own_reason_for_a_refusal(kind):
    class Bare(WithNorms):
        handlers: ClassVar[Handlers] = {}

    with pytest.raises(ModelError) as error:
        kind.submit(Bare(mean, output="value"), [])
    assert str(error.value) == kind.refusal


def test_the_model_decides_which_inputs_share_a_batch():
    groups.clear()
    model = WithNorms(mean, kind="table", output="value")
    rows = [np.ones(2 + i % 2) for i in range(8)]
    found = pertinent.explain(model, rows, ask(Norm()), removal="constant")
    np.testing.assert_allclose([e.scores[0] for e in found], np.sqrt([2, 3] * 4))
    assert {len(widths) for widths in groups} == {1}
    assert {2} in groups and {3} in groups
