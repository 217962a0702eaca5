"""Classes from outside are checked in one line each, and broken ones are caught."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from pertinent.array_types import Array, Masks
from pertinent.asks import Values
from pertinent.explainers import Explainer, Finding, Task, Traits
from pertinent.explainers.base import Steps
from pertinent.inputs.base import ArrayInput
from pertinent.masks import full_mask
from pertinent.metrics import Metric
from pertinent.metrics.base import Measures, ask_whole_and_masks
from pertinent.removals import Removal
from pertinent.testing import check_explainer, check_metric, check_removal


@dataclass(frozen=True)
class KeepOne(Explainer):
    """The value of each feature when only it is kept."""

    name = "keep-one"
    paper = "none"
    summary = "the value of each feature when only it is kept"
    traits = Traits(all_classes=True, deterministic=True)

    def evaluations(self, n_features: int) -> int:
        return n_features + 1

    def explain(self, task: Task) -> Steps:
        d = task.n_features
        values = yield Values(np.concatenate([~full_mask(d), np.eye(d, dtype=bool)]))
        return Finding((values[1:] - values[0]).T)


@dataclass(frozen=True)
class Zero(Removal):
    """Removed values are 0."""

    name = "zero"
    summary = "set to 0"
    inputs = ArrayInput

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        return input.fill(masks, np.zeros(()))


@dataclass(frozen=True)
class TopDrop(Metric):
    """The drop of the target's probability without the most important feature."""

    name = "top-drop"
    paper = "none"
    summary = "drop of the target's probability without the most important feature"
    better = "higher"

    def measure(self, explanation: Any) -> Measures:
        mask = full_mask(len(explanation.features))
        mask[0, explanation.ranking[0]] = False
        answers = yield from ask_whole_and_masks(explanation, mask)
        return {None: float(answers[0, explanation.target] - answers[1, explanation.target])}


def test_classes_from_outside():
    check_explainer(KeepOne)
    check_removal(Zero)
    check_metric(TopDrop)


@dataclass(frozen=True)
class WrongShape(KeepOne):
    def explain(self, task: Task) -> Steps:
        finding = yield from super().explain(task)
        return replace(finding, scores=np.append(finding.scores[task.target], 0.0))


@dataclass(frozen=True)
class SeedDependent(KeepOne):
    def explain(self, task: Task) -> Steps:
        finding = yield from super().explain(task)
        return replace(finding, scores=finding.scores + task.rng.normal(size=finding.scores.shape) / 100)


@dataclass(frozen=True)
class OrderDependent(KeepOne):
    calls: ClassVar[list[int]] = []

    def explain(self, task: Task) -> Steps:
        self.calls.append(task.n_features)
        finding = yield from super().explain(task)
        return replace(finding, scores=finding.scores * len(self.calls))


@dataclass(frozen=True)
class BudgetExceeded(KeepOne):
    def evaluations(self, n_features: int) -> int:
        return n_features


@dataclass(frozen=True)
class Unsaveable(KeepOne):
    weight: Any = None


@dataclass(frozen=True)
class NoStandardErrors(KeepOne):
    traits = replace(KeepOne.traits, standard_errors=True)


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (WrongShape, "shape"),
        (SeedDependent, "`deterministic` is True, but was False"),
        (OrderDependent, "scores of class 'low' differ"),
        (BudgetExceeded, "BudgetError"),
        (Unsaveable(weight=object()), "`weight` cannot be saved"),
        (NoStandardErrors, "`standard_errors` is True, but was False"),
    ],
)
def test_broken_explainers(explainer, message):
    with pytest.raises(AssertionError, match=message):
        check_explainer(explainer)


@dataclass(frozen=True)
class MaskDependent(Zero):
    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        return super().__call__(input, masks, seed) + len(masks)


@dataclass(frozen=True)
class SecretlyRandom(Zero):
    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        return input.fill(masks, np.array(float(seed)))


@dataclass(frozen=True)
class RemovesNothing(Zero):
    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        return super().__call__(input, np.ones_like(masks), seed)


@pytest.mark.parametrize(
    ("removal", "message"),
    [
        (MaskDependent, "depend on the other masks"),
        (SecretlyRandom, "`is_random` is False"),
        (RemovesNothing, "the full mask and the empty mask are equal"),
    ],
)
def test_broken_removals(removal, message):
    with pytest.raises(AssertionError, match=message):
        check_removal(removal)


@dataclass(frozen=True)
class OutOfRange(TopDrop):
    within = (0.5, 1.0)


@dataclass(frozen=True)
class NoDirection(TopDrop):
    better = "smaller"


@pytest.mark.parametrize(("metric", "message"), [(OutOfRange, "out of range"), (NoDirection, "`better`")])
def test_broken_metrics(metric, message):
    with pytest.raises(AssertionError, match=message):
        check_metric(metric)
