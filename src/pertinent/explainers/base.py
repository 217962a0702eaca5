"""The base of explainers: the task they get, the algorithm, and the finding they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from math import ceil, nan
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking, Publish, Question, Values
from pertinent.config.registry import Registry
from pertinent.config.settings import Settings
from pertinent.errors import BudgetError
from pertinent.explainers.early_stopping import EarlyStopping, growing_sizes
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.inputs.base import Input, Numbers
from pertinent.masks import empty_mask, full_mask
from pertinent.outputs import SCALES, Classes, Output, Scale

ScoreMeaning: TypeAlias = Literal["effect", "magnitude", "membership", "attack"]
"""What a score says of its feature.

``"effect"``: its signed effect on the target. ``"magnitude"``: how much it matters, never that it speaks
against the target (a probability of being selected, too). ``"membership"``: the share of sparsities at which
it was chosen. ``"attack"``: how much an attack on the prediction needs it.
"""

DEFAULT_BUDGET = 1000
DEFAULT_SPARSITIES = (0.05, 0.10, 0.20, 0.50)


def n_kept(sparsity: float, n_features: int) -> int:
    """Number of features that a sparsity keeps: k = ceil(s·d), safe from rounding (0.1 · 30 is 3)."""
    return max(1, ceil(round(sparsity * n_features, 9)))


@dataclass(frozen=True)
class ModelFacts:
    """What a method may know of the model besides its answers.

    Attributes
    ----------
    columns
        Names of the model's columns.
    has_trees
        Whether the model seems to be a sum of trees, which can be asked for `TreeValues`.
    answer_span
        Largest possible difference of two answers on the scale of the scores; NaN if it is unknown.
    drawn_baseline
        Name of the removal that draws random baselines for path gradients.
    """

    columns: tuple[str, ...] = ()
    has_trees: bool = False
    answer_span: float = nan
    drawn_baseline: str = ""


@dataclass(frozen=True)
class Sampling:
    """How sampled scores are refined, published and stopped, and what their standard errors include.

    Attributes
    ----------
    jackknife
        Groups of a random removal's draws, each of which is left out once.
    early_stopping
        When to stop before the budget is spent; only explainers with `Traits.stops_early` read it.
    has_listener
        Whether somebody listens to partial findings: then methods that would ask for all samples at once
        ask for the same samples in rounds.
    """

    jackknife: RemovalJackknife = field(default_factory=RemovalJackknife)
    early_stopping: EarlyStopping | None = None
    has_listener: bool = False


@dataclass(frozen=True)
class Task:
    """One input to explain, as an algorithm sees it.

    Attributes
    ----------
    target
        Index of the column to explain.
    prediction
        The model's output for the whole input, (columns,): probabilities or values.
    input
        The input, for methods from outside.
    numbers
        The numbers of an image or a table row, for explainers with `Traits.reads_numbers`.
    """

    n_features: int
    target: int
    prediction: Floats
    budget: int
    sparsities: tuple[float, ...]
    rng: np.random.Generator
    output: Output = field(default_factory=Classes)
    sampling: Sampling = field(default_factory=Sampling)
    model: ModelFacts = field(default_factory=ModelFacts)
    input: Input | None = None
    numbers: Numbers | None = None

    @property
    def stops_early(self) -> bool:
        """Whether to stop before the budget is spent once the order of the features is settled."""
        return self.sampling.early_stopping is not None

    def objective(self, values: Floats) -> Floats:
        """How well each row of answers preserves the decision; larger is better."""
        return self.output.objective(values, self.prediction, self.target)

    def ask_ends(self) -> Asking[Floats]:
        """The model's answers (2, columns) to the empty and to the full mask."""
        ends: Floats = yield Values(np.concatenate([empty_mask(self.n_features), full_mask(self.n_features)]))
        return ends

    def counted(self, finding: Finding) -> Finding:
        """The finding for the model's own columns; standard errors include the removal's random draws."""
        columns, scores, errors = len(self.prediction), finding.scores, finding.standard_errors
        base_values = None if finding.base_values is None else finding.base_values[:columns]
        groups = len(self.sampling.jackknife.sizes)
        if groups and scores is not None and len(scores) == columns * (1 + groups):
            errors = self.sampling.jackknife.standard_errors(scores, errors, finding.inflation)
            scores = scores[:columns]
        interactions = finding.interactions and self._counted_pairs(finding.interactions)
        return replace(
            finding,
            scores=scores,
            standard_errors=errors,
            base_values=base_values,
            interactions=interactions,
        )

    def _counted_pairs(self, found: Interactions) -> Interactions:
        """The pairs of all draws; standard errors include the removal's random draws."""
        groups, *shape = found.values.shape
        errors = found.standard_errors[0]
        if groups > 1:
            flat = found.values.reshape(groups, -1), found.standard_errors.reshape(groups, -1)
            errors = self.sampling.jackknife.standard_errors(*flat).reshape(shape)
        return Interactions(found.values[0], errors)

    def rounds(self, first: int, most: int, step: int = 1) -> list[int]:
        """The total sample size after each round; one round without early stopping and without listeners."""
        if not self.stops_early and not self.sampling.has_listener:
            return [most]
        return growing_sizes(first, most, step)

    def publish(self, finding: Finding | Callable[[], Finding]) -> Asking[None]:
        """Publish the finding so far, for the model's own columns, if somebody listens."""
        if self.sampling.has_listener:
            yield Publish(lambda: self.counted(finding() if callable(finding) else finding))

    def settled(self, finding: Finding, looks: int) -> bool:
        """Whether to stop with this finding (columns, features), tested after each of `looks` rounds.

        Where the finding has pairs of features, their order decides, not that of single features.
        """
        rule = self.sampling.early_stopping
        if rule is None:
            return False
        found = self.counted(finding)
        if found.interactions is not None:
            above = np.triu_indices(self.n_features, 1)
            pairs, their_errors = found.interactions.values[above], found.interactions.standard_errors[above]
            return rule.settled(pairs, their_errors, looks)
        assert found.scores is not None
        errors = found.standard_errors
        return rule.settled(found.scores[self.target], None if errors is None else errors[self.target], looks)

    def stopped(self, finding: Finding, why: Literal["stable", "budget", "all masks"]) -> Finding:
        """The finding with the reason why sampling ended in its details, if early stopping is on."""
        rule = self.sampling.early_stopping
        if rule is None:
            return finding
        return replace(finding, details={**finding.details, "stopped": why, **asdict(rule)})


@dataclass(frozen=True, eq=False)
class Interactions:
    """How pairs of features act together on the target, and standard errors.

    Both are symmetric matrices (features, features) with zeros on the diagonal. An algorithm gives a stack of
    them: the first of all draws of a random removal, the others without each group of its draws.
    """

    values: Floats
    standard_errors: Floats


@dataclass(frozen=True)
class Finding:
    """What an algorithm returns.

    `scores` are (features,) for the target or (columns, features); `standard_errors` have the same
    shape, and were multiplied by `inflation` because they come from few draws; `base_values` (columns,) are
    given if base value + sum of scores = prediction; `chosen` has a mask of the important features for each
    sparsity; `details` has anything else to report, as plain numbers, strings, lists and dicts. `meaning` is
    given if the scores mean something else than the explainer's usually do. `warnings` are reasons not to
    trust it. `interactions` are those of pairs of features.
    """

    scores: Floats | None = None
    standard_errors: Floats | None = None
    base_values: Floats | None = None
    chosen: Mapping[float, Masks] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    inflation: float = 1.0
    meaning: ScoreMeaning | None = None
    warnings: tuple[str, ...] = ()
    interactions: Interactions | None = None


Steps: TypeAlias = Asking[Finding]


@dataclass(frozen=True)
class Traits:
    """What a method can do and needs, as far as its runs, its errors and the app depend on it.

    Attributes
    ----------
    meaning
        What scores say of features, unless a finding says otherwise.
    scales
        Scales of the model's answers that the method can work on.
    default_scale
        Scale that it works on unless another one is requested, if the model's output has it.
    columnwise
        Whether each column of values is scored independently, so that more columns than the model's own can
        be scored in the same way.
    any_target
        Whether it can explain classes other than the predicted one.
    needs_decision
        Whether it asks for a decision that may change: a class or a label, not a plain value.
    reads_numbers
        Whether it reads the numbers of an image or a table row.
    asks
        Kinds of questions that it asks besides those for values, and that not every model answers.
    stops_early
        Whether it samples in rounds and obeys early stopping.
    draws_per_input
        Whether inputs of the same size have different draws, as a control needs: one draw shared by all
        inputs may happen to be good.
    min_budget
        Smallest number of evaluations with which it can answer, if its settings do not determine it.
    evaluations_per_feature
        Number of evaluations per feature below which its scores hardly tell features apart.
    fitted_features
        Kind of features of the inputs that it was fitted to; ``None`` if it was not fitted.
    deterministic
        Whether the result does not depend on the seed.
    all_classes
        Whether one run scores every class.
    adds_up
        Whether the base value and the scores sum to the prediction.
    standard_errors
        Whether it estimates the standard errors of its scores.
    """

    meaning: ScoreMeaning = "effect"
    scales: tuple[Scale, ...] = SCALES
    default_scale: Scale = "natural"
    columnwise: bool = True
    any_target: bool = True
    needs_decision: bool = False
    reads_numbers: bool = False
    asks: tuple[type[Question], ...] = ()
    stops_early: bool = False
    draws_per_input: bool = False
    min_budget: int = 1
    evaluations_per_feature: int = 0
    fitted_features: str | None = None
    deterministic: bool = False
    all_classes: bool = False
    adds_up: bool = False
    standard_errors: bool = False


@dataclass(frozen=True)
class Explainer(Settings, ABC):
    """Settings and one algorithm: a generator that yields asks and returns a `Finding`.

    Attributes
    ----------
    paper, summary
        The paper with its equation or section, and one line that says what the method does.
    also_called
        Other names of the method, which an error for an unknown name leads from.
    traits
        What the method can do and needs.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    also_called: ClassVar[tuple[str, ...]] = ()
    traits: ClassVar[Traits] = Traits()

    def change_traits(self, **changes: Any) -> None:
        """Change traits of this instance that depend on its settings; for ``__post_init__``."""
        object.__setattr__(self, "traits", replace(self.traits, **changes))

    @property
    def budget_per_sparsity(self) -> bool:
        """Whether each sparsity has the full budget; otherwise the budget is for the whole explanation."""
        return False

    def evaluations(self, n_features: int) -> int | None:
        """Number of evaluations that the settings need; ``None`` if the method adapts to the budget."""
        return None

    def min_budget(self, n_features: int) -> int:
        """The smallest budget with which the method can answer, in evaluations."""
        return self.evaluations(n_features) or self.traits.min_budget

    def check_sizes(self, n_features: int, sparsities: Sequence[float], budget: int) -> None:
        """Raise a `BudgetError` if the sets of these sparsities are too many for the budget."""

    @classmethod
    def refusal(cls, model: Any) -> str:
        """Why it cannot explain the model, as far as that is known before it is asked; empty if it may."""
        reasons = [model.output.no_decision] if cls.traits.needs_decision else []
        return next(filter(None, [*reasons, *map(model.refusal, cls.traits.asks)]), "")

    def sharing_passes(self, model: Any) -> AbstractContextManager[None]:
        """A context in which the model keeps what the method needs of its passes; by default nothing."""
        del model
        return nullcontext()

    @abstractmethod
    def explain(self, task: Task) -> Steps:
        """The algorithm."""


explainers: Registry[Explainer] = Registry("method", "pertinent.explainers")
learned_methods: Registry[Any] = Registry("method to fit", "pertinent.learners.methods", "pertinent.learners")
"""The methods that `fit` trains first: subclasses of `LearnedExplainer`, which lies in a layer above."""


def plan_budget(explainer: Explainer, budget: int | None, n_features: int) -> int:
    """The budget to use: the one given, else what the settings need, else 1000."""
    min_budget = explainer.min_budget(n_features)
    if budget is None:
        return explainer.evaluations(n_features) or max(DEFAULT_BUDGET, min_budget)
    if budget < min_budget:
        raise BudgetError(
            f"`budget` must be at least {min_budget} for {explainer.name} with {n_features} features, "
            f"but got {budget}."
        )
    return budget
