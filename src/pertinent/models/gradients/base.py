"""Functions shared by the gradients of torch modules and of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Array, Floats
from pertinent.asks import BatchPart
from pertinent.config.fingerprints import digest, generator
from pertinent.inputs.modality import modality_named
from pertinent.masks import empty_mask
from pertinent.models.base import Answer, Model
from pertinent.models.torch import devices
from pertinent.models.torch.inference import exclusive
from pertinent.removals.base import Removal, removals

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel
    from pertinent.models.transformer import TransformerModel


FACTORS = {
    "difference": (1, -1, 0, 0, 0),
    "input": (1, 0, 0, 0, 0),
    "nothing": (0, 0, 1, 0, 0),
    "itself": (0, 0, 0, 1, 0),
    "norm": (0, 0, 0, 0, 1),
}
"""Coefficients of x, x′, 1 and the gradient itself for each value of `PathGradients.times`; for the last
coefficient, square roots are taken before the sum over a feature, for the one before it, of the sum."""


def differentiate(
    model: ModuleModel | TransformerModel,
    parts: Sequence[BatchPart],
    point: Tensor,
    scores: Callable[[Tensor], Tensor],
    total: Callable[[Tensor], Tensor],
) -> Answer:
    """Compute the model's scores at `point`, and each row's target gradient summed by `total`.

    Parameters
    ----------
    point
        Variable of the gradient (rows, …).
    scores
        Function from a point to the model's scores (rows, columns).
    total
        Function from the gradient to one number per feature (rows, features).
    """
    targets = np.concatenate([np.full(len(part.rows), part.question.target) for part in parts])
    width = 0

    def run() -> Tensor:
        nonlocal width
        with torch.enable_grad(), frozen(model.module):
            leaf = point.detach().requires_grad_()
            answer = scores(leaf)
            columns = devices.send(targets, answer.device)[:, None]
            followed = model.output.followed_scores(answer, parts[0].question.scale).gather(1, columns)
            (gradient,) = torch.autograd.grad(followed.sum(), leaf)
        width = answer.shape[1]
        return torch.cat([answer.detach().float(), total(gradient).float()], dim=1)

    with model.evaluating(point.shape):
        answer = devices.run(model.device, run, gradients=True)

    def split() -> Any:
        outputs = answer.outputs()
        return outputs[:, :width], outputs[:, width:].astype(np.float64)

    return Answer(split, answer.seconds, answer.done)


@contextmanager
def frozen(module: torch.nn.Module) -> Iterator[None]:
    """Disable gradients of the weights, which would waste memory.

    Recurrent layers run without cuDNN, which has no gradients in eval mode.
    """
    recurrent = any(isinstance(part, torch.nn.RNNBase) for part in module.modules())
    with exclusive(), torch.backends.cudnn.flags(enabled=False) if recurrent else nullcontext():
        trainable = [p for p in module.parameters() if p.requires_grad]
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in trainable:
                parameter.requires_grad_(True)


def row_factors(parts: Sequence[BatchPart]) -> Floats:
    """Return the `FACTORS` of each row's gradient (rows, 5)."""
    return np.array([FACTORS[part.question.times] for part in parts for _ in part.rows], dtype=np.float64)


def multiply(gradient: Tensor, factors: Tensor, input: Tensor, baseline: Tensor, unit: Tensor) -> Tensor:
    """Multiply gradients by their factors (5, rows, …); `unit` is the scale of the noise.

    A gradient that is multiplied by itself is taken along the noise.
    """
    of_input, of_baseline, of_one, *squared = factors
    of_itself = sum(squared)
    gradient = gradient * torch.where(of_itself > 0, unit, 1.0)
    multiplied: Tensor = gradient * (
        of_input * input + of_baseline * baseline + of_one + of_itself * gradient
    )
    return multiplied


def root_where(values: Tensor, condition: Tensor) -> Tensor:
    """Return the square roots of values where a condition holds, and the values elsewhere."""
    return torch.where(condition, values.clamp_min(0).sqrt(), values)


def sum_by_feature(values: Tensor, owner: Tensor, n_features: int) -> Tensor:
    """Sum values (rows, values) by feature; owner −1 means that a value belongs to no feature."""
    sums = values.new_zeros(len(values), n_features + 1)
    return sums.scatter_add_(1, owner % (n_features + 1), values)[:, :-1]


def make_baseline(part: BatchPart, model: Model) -> Removal:
    """Return the removal that creates the baseline, bound to the model and checked."""
    chosen, modality = part.question.baseline, modality_named(part.input.kind)
    if chosen is None or (isinstance(chosen, str) and chosen in ("drawn", modality.fixed_baseline)):
        chosen = modality.baseline_removal(part.input, model.background, drawn=chosen == "drawn")
    assert isinstance(chosen, str | Removal)
    removal = (removals.make(chosen) if isinstance(chosen, str) else chosen).bind(model)
    removal.check(part.input)
    return removal


def iterate_baselines(part: BatchPart, removal: Removal) -> Iterator[tuple[Any, int]]:
    """Yield, for each row, fully removed rows and the index of the row's baseline among them."""
    nothing = empty_mask(part.input.n_features)
    calls: dict[int, Any] = {}
    for draw in _draws(part):
        call, index = divmod(draw, removal.draws)
        if call not in calls:
            # Not seed + call, because neighbouring seeds would share nearly all draws.
            seed = int.from_bytes(digest(part.seed, call), "little")
            calls[call] = removal(part.input, nothing, seed)
        yield calls[call], index


def draw_noise(part: BatchPart, shape: Sequence[int]) -> Array:
    """Return standard normal draws (rows, …) for each row's noise; zeros without noise."""
    noise = np.zeros((len(part.rows), *shape), dtype=np.float32)
    for row, draw in enumerate(_draws(part) if part.question.noise else ()):
        rng = generator(part.seed, "noise", part.input.fingerprint, draw)
        noise[row] = rng.standard_normal(shape, dtype=np.float32)
    return noise


def _draws(part: BatchPart) -> list[int]:
    """Return the index of each row's draw of a baseline or of noise."""
    draws = part.question.draws
    return list(map(int, draws[part.rows % len(draws)]))
