"""Do the chosen features stay the same when the input changes a little? (Hsieh et al. 2021, App. J)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.fingerprints import generator
from pertinent.config.settings import Count, Positive, Seed, Share, checked, labels
from pertinent.diagnostics.base import InputMeasure, MeasureDiagnostic, diagnostics
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, require
from pertinent.explainers.base import Explainer
from pertinent.inputs.base import ArrayInput, Input
from pertinent.models.base import Model
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Cluster
from pertinent.runs.explain_run import explain_all, merged
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first

MEASURE = "set-sensitivity"


@diagnostics.register("sensitivity")
@dataclass(frozen=True, kw_only=True, repr=False)
class Sensitivity(MeasureDiagnostic):
    """How much the chosen features change when the input changes a little (Hsieh et al. 2021, App. J).

    Attributes
    ----------
    rows
        The set sensitivity of each explanation at each sparsity.
    radius, norm
        The largest distance of the inputs nearby, and its norm.
    samples
        The number of inputs nearby.
    seed
        The seed of the inputs nearby and of the methods.
    """

    question = "Do the chosen features stay the same when the input changes a little?"

    radius: Positive
    norm: Literal["linf", "l2"]
    samples: Count
    seed: Seed


@dataclass(frozen=True)
class Ball:
    """Random inputs near another: `samples` of them, uniform in the ball of a `radius`."""

    radius: float
    samples: int
    norm: str
    seed: int

    def sample(self, input: Input, model: Model) -> list[Input]:
        """Inputs near this one, with the same features."""
        rng = generator(self.seed, MEASURE, input.fingerprint)
        if not isinstance(input, ArrayInput) or input.without_numbers():
            raise InputError(
                "Set sensitivity moves numbers a little: it needs images or table rows of numbers."
            )
        steps = self.steps(rng, input.array.size).reshape(-1, *input.array.shape)
        return [input.moved(step * input.units(model.background)) for step in steps]

    def steps(self, rng: np.random.Generator, d: int) -> Floats:
        """Points of the ball around 0 (samples, d)."""
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
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Sensitivity:
    r"""Measure how much the chosen features change when the input is changed a little.

    The set sensitivity (Hsieh et al. 2021, Def. J.1) is the largest share of the features chosen for an input
    x that are not chosen for some random y near it. It is 0 if the same features are chosen around x, and 1
    if none of them is chosen for some y. Lower is better, but a method that always chooses the same features
    has 0.

    :math:`\max_{\|y - x\| \le r} 1 - |\Phi(f, y) \cap \Phi(f, x)| / |\Phi(f, x)|`

    Parameters
    ----------
    model, inputs
        As in `explain`: images, or table rows of numbers.
    methods
        As in `compare`.
    radius
        How far a neighbour y may be from the input x; of a table row in standard deviations of the
        background's columns, if there is one.
    samples
        How many neighbours are drawn, uniformly. More of them find larger values: compare equal
        numbers.
    norm
        The norm of y − x. The values of images stay within 0 to 1 (or to 255).
    sparsity
        The share of features that are chosen, or several.
    seed
        The seed of the neighbours and of the methods.
    ids, batch_size, cluster, progress
        As in `explain`.
    **words
        The other words of `explain`, such as ``budget=200``. By default the class predicted for x is
        explained, for y too.

    Returns
    -------
    Sensitivity
        The measure ``"set-sensitivity"``, with intervals over inputs and differences between methods.

    Notes
    -----
    Eqn. 12 prints :math:`1 - \max`, under which a single y with the same features would give 0; the
    sentences below it describe what is measured here, :math:`1 - \min`.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda rows: [[1 - r[0] / 9, r[0] / 9] for r in rows], kind="table")
    >>> found = sensitivity(model, [[5.0, 1.0, 2.0], [4.0, 3.0, 2.0]], "leave-one-out")
    >>> found.mean("leave-one-out", "set-sensitivity")
    0.0
    """
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, "sensitivity", cluster=cluster, **options).listed()
    named = [methods] if isinstance(methods, str | Explainer | Request) else methods
    require(len(named) > 0, "methods", "at least one", methods)
    words |= {"sparsity": sparsity, "seed": seed}
    near = Ball(radius, samples, norm, seed)
    explanations: list[Explanation] = []
    failures: list[Failure] = []
    # The sparsities and the seed of a request that is given are its own.
    requests = [m if isinstance(m, Request) else Request.from_keywords(m, words) for m in named]
    for request in requests:
        name = request.method.name if len(requests) > 1 else None
        found = explain_all(run, [request])
        failures += [replace(failure, method=name) for failure in found.failures]
        targets = tuple(e.target for e in found for _ in range(samples))
        moved = run.over([y for e in found for y in near.sample(e.input, run.model)])
        again = explain_all(moved, [replace(request, target=targets, features=None)])
        others: list[list[Explanation]] = [[] for _ in found]
        for y in again:
            others[y.index // samples].append(y)
        for place in dict.fromkeys(f.index // samples for f in again.failures):
            first = next(f for f in again.failures if f.index // samples == place)
            others[place] = []
            failures.append(replace(first, index=found[place].index, id=found[place].id, method=name))
        explanations += [_measured(e, own) for e, own in zip(found, others, strict=True) if own]
    if not explanations:
        raise_first(failures, "explained")
    failures = merged(sorted(failures, key=lambda failure: failure.index), requests)
    names = labels([(e.method, e.settings) for e in explanations])
    rows = [
        InputMeasure(e.index, name, sparsity, value, e.id)
        for name, e in zip(names, explanations, strict=True)
        for sparsity, value in e.measures[MEASURE].items()
    ]
    return Sensitivity(
        rows=tuple(rows),
        better={MEASURE: "lower"},
        explanations=Explanations(explanations),
        features=explanations[0].input.granularity.partition(":")[0],
        noticed=run.warnings,
        failures=tuple(failures),
        radius=radius,
        norm=norm,
        samples=samples,
        seed=seed,
    )


def _measured(explanation: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The explanation with its set sensitivity, given those of inputs near it."""
    found: dict[float | None, float] = {}
    for sparsity in explanation.request.sparsities:
        chosen = explanation.mask(sparsity)
        found[sparsity] = max(1 - float(other.mask(sparsity)[chosen].mean()) for other in others)
    return replace(explanation, measures={**explanation.measures, MEASURE: found})
