"""Base class of explainers, the task they are given, and the finding they return."""

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
"""The meaning of a score.

``"effect"``: the feature's signed effect on the target. ``"magnitude"``: how much the feature matters,
without a sign; also the probability of being selected. ``"membership"``: the share of sparsities at which the
feature was chosen. ``"attack"``: how much an attack on the prediction relies on the feature.
"""

DEFAULT_BUDGET = 1000
DEFAULT_SPARSITIES = (0.05, 0.10, 0.20, 0.50)


def n_kept(sparsity: float, n_features: int) -> int:
    """Return the number of features that a sparsity keeps, k = ceil(s·d); 0.1 · 30 is 3 despite rounding."""
    return max(1, ceil(round(sparsity * n_features, 9)))


@dataclass(frozen=True)
class ModelFacts:
    """Facts about the model that a method may use in addition to its answers.

    Attributes
    ----------
    columns
        Names of the model's columns.
    has_trees
        Whether the model appears to be a sum of trees and can answer `TreeValues`.
    has_gradients
        Whether the model can answer `PathGradients`.
    answer_span
        Largest possible difference between two answers on the scale of the scores; NaN if it is unknown.
    drawn_baseline
        Name of the removal that draws random baselines for path gradients.
    """

    columns: tuple[str, ...] = ()
    has_trees: bool = False
    has_gradients: bool = False
    answer_span: float = nan
    drawn_baseline: str = ""


@dataclass(frozen=True)
class Sampling:
    """Options of methods that sample: standard errors of random removals, early stopping, partial findings.

    Attributes
    ----------
    jackknife
        Number of groups of a random removal's draws; each group is omitted once.
    early_stopping
        Rule for stopping before the budget is spent; only explainers with `Traits.stops_early` read it.
    has_listener
        Whether partial findings are used. Methods that would otherwise ask for all samples in one question
        then split them into rounds.
    """

    jackknife: RemovalJackknife = field(default_factory=RemovalJackknife)
    early_stopping: EarlyStopping | None = None
    has_listener: bool = False


@dataclass(frozen=True)
class Task:
    """One input to explain, as seen by an algorithm.

    Attributes
    ----------
    target
        Index of the column to explain.
    prediction
        The model's output for the whole input (columns,): probabilities or values.
    input
        The input, for methods of other libraries.
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
        """Return whether to stop before the budget is spent once the feature order is settled."""
        return self.sampling.early_stopping is not None

    def objective(self, values: Floats) -> Floats:
        """Return how well each row of answers preserves the decision; larger is better."""
        return self.output.objective(values, self.prediction, self.target)

    def ask_empty_and_full(self) -> Asking[Floats]:
        """Request the answers (2, columns) to the empty and the full mask."""
        answers: Floats = yield Values(
            np.concatenate([empty_mask(self.n_features), full_mask(self.n_features)])
        )
        return answers

    def combine_draws(self, finding: Finding) -> Finding:
        """Return the finding for the model's columns, including the error of the removal's random draws.

        Scores may have additional columns, each of which leaves out one group of draws.
        """
        columns, jackknife = len(self.prediction), self.sampling.jackknife
        scores, errors, pairs = finding.scores, finding.standard_errors, finding.interactions
        if jackknife.sizes and scores is not None and len(scores) == columns * (1 + len(jackknife.sizes)):
            errors = jackknife.standard_errors(scores, errors, finding.inflation)
            scores = scores[:columns]
        if pairs is not None:
            pair_errors = pairs.standard_errors[0]
            if len(pairs.values) > 1:
                values, errors_of_all = (a.reshape(len(a), -1) for a in (pairs.values, pairs.standard_errors))
                pair_errors = jackknife.standard_errors(values, errors_of_all).reshape(pair_errors.shape)
            pairs = Interactions(pairs.values[0], pair_errors)
        base_values = None if finding.base_values is None else finding.base_values[:columns]
        return replace(
            finding, scores=scores, standard_errors=errors, base_values=base_values, interactions=pairs
        )

    def rounds(self, first: int, most: int, step: int = 1) -> list[int]:
        """Return the total sample size after each round: one round without early stopping and listeners."""
        if not self.stops_early and not self.sampling.has_listener:
            return [most]
        return growing_sizes(first, most, step)

    def publish(self, finding: Finding | Callable[[], Finding]) -> Asking[None]:
        """Publish the finding so far, for the model's columns, if there is a listener."""
        if self.sampling.has_listener:
            yield Publish(lambda: self.combine_draws(finding() if callable(finding) else finding))

    def is_settled(self, finding: Finding, looks: int) -> bool:
        """Return whether to stop with this finding (columns, features), tested after each of `looks` rounds.

        If the finding has feature pairs, the order of the pairs decides.
        """
        rule = self.sampling.early_stopping
        if rule is None:
            return False
        combined = self.combine_draws(finding)
        if combined.interactions is not None:
            above, pairs = np.triu_indices(self.n_features, 1), combined.interactions
            return rule.settled(pairs.values[above], pairs.standard_errors[above], looks)
        assert combined.scores is not None
        errors = combined.standard_errors
        target_errors = None if errors is None else errors[self.target]
        return rule.settled(combined.scores[self.target], target_errors, looks)

    def record_stop(self, finding: Finding, reason: Literal["stable", "budget", "all masks"]) -> Finding:
        """Return the finding; with early stopping, its details record why sampling ended."""
        rule = self.sampling.early_stopping
        if rule is None:
            return finding
        return replace(finding, details={**finding.details, "stopped": reason, **asdict(rule)})


@dataclass(frozen=True, eq=False)
class Interactions:
    """Interaction values of pairs of features for the target, and standard errors.

    Both are symmetric matrices (features, features) with zeros on the diagonal. Algorithms return stacks of
    matrices: the first uses all draws of a random removal, the others leave out one group of draws each.
    """

    values: Floats
    standard_errors: Floats


@dataclass(frozen=True)
class Finding:
    """The result of an algorithm.

    Attributes
    ----------
    scores
        (features,) for the target, or (columns, features).
    standard_errors
        Standard errors of the same shape as the scores.
    base_values
        (columns,), if the base value and the scores sum to the prediction.
    chosen
        A mask of the important features for each sparsity.
    details
        Other results, as plain numbers, strings, lists and dicts.
    inflation
        The factor by which standard errors were multiplied because they are based on few draws.
    meaning
        The meaning of the scores, if it differs from the explainer's trait.
    warnings
        Reasons to distrust the finding.
    interactions
        Interaction values of pairs of features.
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
    """Properties of a method that its runs, its error messages and the app depend on.

    Attributes
    ----------
    meaning
        The meaning of the scores, unless a finding states another.
    scales
        Scales of the model's answers that the method supports.
    default_scale
        Scale used by default if the model's output has it.
    columnwise
        Whether each column of values is scored independently, so additional columns can be scored along with
        the model's.
    any_target
        Whether it can explain classes other than the predicted one.
    needs_decision
        Whether it needs a decision that can change: a class or a label rather than a plain value.
    reads_numbers
        Whether it uses the numbers of an image or a table row.
    asks
        Kinds of questions other than values that it asks; not every model can answer them.
    stops_early
        Whether it samples in rounds and supports early stopping.
    draws_per_input
        Whether inputs of the same size get different draws. Control methods need this, because a single draw
        shared by all inputs may be good by chance.
    min_budget
        Smallest number of evaluations, unless the settings determine it.
    evaluations_per_feature
        Number of evaluations per feature below which scores hardly distinguish features.
    fitted_features
        Feature type of the inputs it was fitted to; ``None`` if it was not fitted.
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
    """Settings of a method, and its algorithm: a generator that yields asks and returns a `Finding`.

    Attributes
    ----------
    paper, summary
        Citation with equation or section, and a one-line summary.
    also_called
        Other names of the method, suggested in errors about unknown names.
    traits
        Properties of the method.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    also_called: ClassVar[tuple[str, ...]] = ()
    traits: ClassVar[Traits] = Traits()

    def change_traits(self, **changes: Any) -> None:
        """Override traits that depend on this instance's settings; called in ``__post_init__``."""
        object.__setattr__(self, "traits", replace(self.traits, **changes))

    @property
    def budget_per_sparsity(self) -> bool:
        """Return whether each sparsity gets the full budget, instead of sharing one budget."""
        return False

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of evaluations that the settings need; ``None`` if the budget decides."""
        return None

    def min_budget(self, n_features: int) -> int:
        """Return the smallest budget, in evaluations, that the method needs."""
        return self.evaluations(n_features) or self.traits.min_budget

    def check_sizes(self, n_features: int, sparsities: Sequence[float], budget: int) -> None:
        """Raise a `BudgetError` if these sparsities require more sets than the budget allows."""

    @classmethod
    def refusal(cls, model: Any) -> str:
        """Return why the method cannot explain the model; empty if no reason is evident in advance."""
        reasons = [model.output.no_decision] if cls.traits.needs_decision else []
        return next(filter(None, [*reasons, *map(model.refusal, cls.traits.asks)]), "")

    def sharing_passes(self, model: Any) -> AbstractContextManager[None]:
        """Return a context in which the model caches the forward passes that the method reuses."""
        del model
        return nullcontext()

    @abstractmethod
    def explain(self, task: Task) -> Steps:
        """Run the algorithm."""


explainers: Registry[Explainer] = Registry("method", "pertinent.explainers")
learned_methods: Registry[Any] = Registry("method to fit", "pertinent.learners.methods", "pertinent.learners")
"""Methods trained by `fit`: subclasses of `LearnedExplainer`, which belongs to a higher layer."""


def plan_budget(explainer: Explainer, budget: int | None, n_features: int) -> int:
    """Return the requested budget; by default the evaluations that the settings need, else 1000."""
    min_budget = explainer.min_budget(n_features)
    if budget is None:
        return explainer.evaluations(n_features) or max(DEFAULT_BUDGET, min_budget)
    if budget < min_budget:
        raise BudgetError(
            f"`budget` must be at least {min_budget} for {explainer.name} with {n_features} features, "
            f"but got {budget}."
        )
    return budget
