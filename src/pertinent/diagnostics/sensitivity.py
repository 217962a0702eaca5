"""Sensitivity: change of the chosen features under small changes of the input (Hsieh et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.fingerprints import generator
from pertinent.config.settings import Count, Positive, Seed, Share, checked
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, require
from pertinent.explainers.base import Explainer
from pertinent.inputs.base import ArrayInput, Input
from pertinent.models.base import Model
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure, merge_failures
from pertinent.runs.executor import Executor
from pertinent.runs.explain import explain_all
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first

MEASURE = "set-sensitivity"
"""Name of the measure in an evaluation."""


@dataclass(frozen=True)
class Ball:
    """A distribution of neighbours of an input: `samples` points, uniform in the ball of a `radius`."""

    radius: float
    samples: int
    norm: str
    seed: int

    def sample(self, input: Input, model: Model) -> list[Input]:
        """Draw neighbours of an input, with the same features."""
        rng = generator(self.seed, MEASURE, input.fingerprint)
        if not isinstance(input, ArrayInput) or input.without_numbers():
            raise InputError(
                f"`inputs` must be images or numeric table rows, got {input.kind} input: set sensitivity "
                "adds small random numbers to an input."
            )
        steps = self.steps(rng, input.array.size).reshape(-1, *input.array.shape)
        return [input.shift(step * input.units(model.background)) for step in steps]

    def steps(self, rng: np.random.Generator, d: int) -> Floats:
        """Draw points in the ball around 0, (samples, d)."""
        if self.norm == "linf":
            return rng.uniform(-self.radius, self.radius, (self.samples, d))
        points = rng.normal(size=(self.samples, d))
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points / lengths * self.radius * rng.random((self.samples, 1)) ** (1 / d))


@checked
def sensitivity(
    model: Any,
    inputs: Any,
    methods: Method | Sequence[Method],
    *,
    radius: Positive = 0.1,
    samples: Count = 10,
    norm: Literal["linf", "l2"] = "linf",
    sparsity: Share | Sequence[Share] = 0.2,
    seed: Seed = 0,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Evaluation:
    r"""Measure how much the chosen features change under small changes of the input.

    The set sensitivity (Hsieh et al. 2021, Def. J.1) is the largest share of the features chosen for an input
    x that are not chosen for a random neighbour y. It is 0 if the same features are chosen for all
    neighbours, and 1 if some neighbour has no chosen feature in common. Lower is better, but a method that
    always chooses the same features also scores 0.

    :math:`\max_{\|y - x\| \le r} 1 - |\Phi(f, y) \cap \Phi(f, x)| / |\Phi(f, x)|`

    Parameters
    ----------
    model, inputs
        As in `explain`; the inputs must be images or numeric table rows.
    methods
        As in `compare`.
    radius
        Largest distance between a neighbour y and the input x; for table rows in standard deviations of the
        background's columns, if there is a background.
    samples
        Number of neighbours, drawn uniformly. The measure increases with it, so compare methods with equal
        numbers.
    norm
        Norm of y − x. Pixel values are clipped to their range.
    sparsity
        Share of features to choose, or several shares.
    seed
        Seed of the neighbours and of the methods.
    ids, batch_size, cluster, progress
        As in `explain`.
    **words
        Other arguments of `explain`, such as ``budget=200``. By default the class predicted for x is also
        explained for y.

    Returns
    -------
    Evaluation
        Values of ``"set-sensitivity"``, with intervals over inputs and differences between methods.

    Notes
    -----
    Eqn. 12 prints :math:`1 - \max`, which would be 0 if any y has the same features; the text below it
    describes :math:`1 - \min`, which is computed here.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda rows: [[1 - r[0] / 9, r[0] / 9] for r in rows], kind="table")
    >>> result = sensitivity(model, [[5.0, 1.0, 2.0], [4.0, 3.0, 2.0]], "leave-one-out")
    >>> result.mean("leave-one-out", "set-sensitivity")
    0.0
    """
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(load_or_wrap(model), inputs, "sensitivity", cluster=cluster, **options).listed()
    named = [methods] if isinstance(methods, str | Explainer | Request) else methods
    require(len(named) > 0, "methods", "at least one", methods)
    words |= {"sparsity": sparsity, "seed": seed}
    ball = Ball(radius, samples, norm, seed)
    explanations: list[Explanation] = []
    failures: list[Failure] = []
    # A `Request` keeps its sparsities and seed.
    requests = [m if isinstance(m, Request) else Request.from_keywords(m, words) for m in named]
    for request in requests:
        name = request.method.name if len(requests) > 1 else None
        originals = explain_all(run, [request])
        failures += [replace(failure, method=name) for failure in originals.failures]
        targets = tuple(e.target for e in originals for _ in range(samples))
        moved = run.over([y for e in originals for y in ball.sample(e.input, run.model)])
        neighbours = explain_all(moved, [replace(request, target=targets, features=None)])
        failed = {failure.index // samples: failure for failure in reversed(neighbours.failures)}
        by_input: list[list[Explanation]] = [[] for _ in originals]
        for y in neighbours:
            by_input[y.index // samples].append(y)
        for i, e in enumerate(originals):
            if i in failed:
                failures.append(replace(failed[i], index=e.index, id=e.id, method=name))
            else:
                explanations.append(_with_sensitivity(e, by_input[i]))
    if not explanations:
        raise_first(failures, "explained")
    failures = merge_failures(sorted(failures, key=lambda failure: failure.index), len(requests))
    settings = {"radius": radius, "norm": norm, "samples": samples}
    return Evaluation.from_explanations(explanations, {MEASURE: "lower"}, failures, settings=settings)


def _with_sensitivity(explanation: Explanation, neighbours: Sequence[Explanation]) -> Explanation:
    """Return the explanation with its set sensitivity, computed from explanations of its neighbours."""
    values: dict[float | None, float] = {}
    for sparsity in explanation.request.sparsities:
        chosen = explanation.mask(sparsity)
        values[sparsity] = max(1 - float(y.mask(sparsity)[chosen].mean()) for y in neighbours)
    better = {**explanation.better, MEASURE: "lower"}
    return replace(explanation, measures={**explanation.measures, MEASURE: values}, better=better)
