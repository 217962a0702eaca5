"""Gradients of the model's outputs with respect to a mask, or at points on a line to the input."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks.base import BatchPart, Question, check_masks, split, usable_rows
from pertinent.outputs.base import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model
    from pertinent.removals.base import Removal

PRICE = 2
"""Price of one forward and one backward pass."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """The model's output (rows, columns), and the gradients (rows, features)."""

    values: Floats
    gradients: Floats


@dataclass(frozen=True, eq=False)
class GradientQuestion(Question):
    """Base class of questions that only a model with gradients can answer: a transformer or a torch module.

    A handler's `outputs` are the model's outputs (rows, columns) and the gradients of the target's score on
    the scale (rows, largest number of features); on the natural scale, of its log-probability or value.
    Gradients are never cached, so every row counts towards the budget.
    """

    scale: Scale = field(default="natural", kw_only=True)
    refusal = (
        "This method needs gradients, which only transformers and torch modules have; choose a "
        "model-agnostic method, such as kernel-shap or parallel-local-search."
    )

    def on_scale(self, scale: Scale, groups: int = 0) -> GradientQuestion:
        """Return the question on a scale."""
        return replace(self, scale=scale)

    def group(self, model: Model, input: Input) -> Hashable:
        """Return a group that depends on the scale."""
        return super().group(model, input), self.scale

    def price(self, paid: set[Hashable]) -> int:
        """Return the price of a forward and a backward pass for each row."""
        return PRICE * len(self.keys)

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return pairs of a row of outputs and a row of gradients."""
        scores, gradients = outputs
        bad = np.flatnonzero(~np.isfinite(gradients).all(axis=1)).tolist()
        flaws = dict.fromkeys(bad, "the model's gradient contains NaN or infinity")
        rows = usable_rows(model, scores, parts, flaws=flaws)
        return [
            values
            if isinstance(values, Exception)
            else list(zip(values, slopes[:, : part.input.n_features], strict=True))
            for part, values, slopes in zip(parts, rows, split(gradients, parts), strict=True)
        ]

    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Gradients:
        """Return values on the natural scale, and gradients of the target's scores."""
        if not answers:
            return Gradients(np.empty((0, len(model.columns_of(input)))), np.empty((0, 0)))
        scores, gradients = (np.array(column) for column in zip(*answers, strict=True))
        return Gradients(model.output.natural(scores), gradients)


@dataclass(frozen=True, eq=False)
class MaskGradients(GradientQuestion):
    """Requests the derivative of the target's log-probability (or plain value) by each mask entry.

    Answered with `Gradients`. If features are hidden from attention, the mask enters as softmax × mask,
    renormalised; if values or word embeddings are filled in, as mask · x + (1 − mask) · filler. Masks may be
    soft: the share of each feature that is kept, from 0 to 1.
    """

    masks: Masks | Floats
    target: int

    @property
    def keys(self) -> range:
        """Return the index of each row."""
        return range(len(self.masks))

    def check(self, input: Input) -> None:
        """Raise a `TypeError` unless the masks fit the input's features and are between 0 and 1."""
        if self.masks.dtype.kind != "f":
            check_masks(self.masks, input)  # type: ignore[arg-type]
            return
        check_masks(np.ones(self.masks.shape, dtype=np.bool_), input)
        if not ((self.masks >= 0) & (self.masks <= 1)).all():
            raise TypeError("Soft masks must be between 0 and 1.")


@dataclass(frozen=True, eq=False)
class PathGradients(GradientQuestion):
    """Requests gradients of the target's probability (or plain value) at points on a line to the input.

    The points are x′ + α (x − x′) for the α in `shares`. The baseline x′ is an array, or the input with all
    features removed by the removal `baseline`: by default a fixed one that suits the input, or with
    ``"drawn"`` a random one. A random baseline is drawn once for each of `draws`. Answered with `Gradients`,
    multiplied by `times` (x − x′, x, or nothing) and summed over each feature; if they are multiplied by
    themselves, the square root of the sum is their L2 norm. With ``"norm"``, the L2 norms for each token's
    embedding (for arrays, the absolute values) are summed instead.

    With `noise`, each point is moved by σ ε, with standard normal ε drawn once for each of `draws`. σ is
    `noise` times the standard deviation of the text's word embeddings, of the image's values, or of the
    column in the background (1 without one). Gradients times themselves are taken along ε.
    """

    shares: Floats
    target: int
    baseline: str | Removal | Array | None = None
    times: Literal["difference", "input", "nothing", "itself", "norm"] = "difference"
    draws: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    noise: float = 0.0

    @property
    def keys(self) -> range:
        """Return the index of each row."""
        return range(len(self.shares))

    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Gradients:
        """Return gradients on the scale; for natural values by the chain rule, d value / d score."""
        answer = super().assemble(model, input, answers)
        if self.scale != "natural":
            return answer
        slopes = model.output.natural_slopes(answer.values)
        return Gradients(answer.values, answer.gradients * slopes[:, [self.target]])


@dataclass(frozen=True, eq=False)
class ActivationMaps(GradientQuestion):
    """Requests the image regions that activate the maps of a convolution in support of the target.

    Answered with `Gradients` whose gradients are replaced by the mean over each feature of the maps, weighted
    by the mean gradient of the target's raw score (Grad-CAM). `layer` is the name of the convolution, by
    default the last one.
    """

    target: int
    layer: str | None = None
    scale: Scale = field(default="raw", kw_only=True)
    refusal = (
        "Grad-CAM needs a torch module with two-dimensional convolutions; choose a model-agnostic method, "
        "such as occlusion or kernel-shap."
    )

    @property
    def keys(self) -> range:
        """Return the index of the only row."""
        return range(1)

    def on_scale(self, scale: Scale, groups: int = 0) -> ActivationMaps:
        """Return the question unchanged, because its score is always the raw score."""
        return self

    def group(self, model: Model, input: Input) -> Hashable:
        """Return a group that depends on the layer."""
        return super().group(model, input), self.layer
