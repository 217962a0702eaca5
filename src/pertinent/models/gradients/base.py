"""Gradients of torch modules over images and table rows, and what they share with those of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Array, Floats, Ints
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
    "difference": (1, -1, 0, 0),
    "input": (1, 0, 0, 0),
    "nothing": (0, 0, 1, 0),
    "itself": (0, 0, 0, 1),
}
"""For each value of `PathGradients.times`, the coefficients of x, x′, 1 and the gradient itself."""


def differentiate(
    model: ModuleModel | TransformerModel,
    parts: Sequence[BatchPart],
    point: torch.Tensor,
    scores: Callable[[torch.Tensor], torch.Tensor],
    total: Callable[[torch.Tensor], torch.Tensor],
) -> Answer:
    """The model's scores at `point`, and `total` of the gradient of each row's target score there.

    Parameters
    ----------
    point
        What the gradient is taken by (rows, …).
    scores
        The model's scores (rows, columns) at a point.
    total
        What is made of the gradient: one number for each feature (rows, features).
    """
    targets = np.concatenate([np.full(len(part.rows), part.question.target) for part in parts])
    width = 0

    def both() -> torch.Tensor:
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
        answer = devices.run(model.device, both, gradients=True)

    def split() -> Any:
        outputs = answer.outputs()
        return outputs[:, :width], outputs[:, width:].astype(np.float64)

    return Answer(split, answer.seconds, answer.done)


@contextmanager
def frozen(module: torch.nn.Module) -> Iterator[None]:
    """Compute no gradients of the weights, which would only cost memory.

    Recurrent layers do without cuDNN, which gives no gradients in eval mode.
    """
    recurrent = any(isinstance(each, torch.nn.RNNBase) for each in module.modules())
    with exclusive(), torch.backends.cudnn.flags(enabled=False) if recurrent else nullcontext():
        trainable = [p for p in module.parameters() if p.requires_grad]
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in trainable:
                parameter.requires_grad_(True)


def root_of_sums(sums: torch.Tensor, itself: torch.Tensor) -> torch.Tensor:
    """The square roots of the sums (rows, features) in rows where `itself` > 0: sums of squared gradients."""
    return torch.where(itself > 0, sums.clamp_min(0).sqrt(), sums)


def sum_by_feature(parts: torch.Tensor, owner: torch.Tensor, n_features: int) -> torch.Tensor:
    """Sum (rows, parts) over the parts of each feature; parts that belong to no feature have the owner −1."""
    sums = parts.new_zeros(len(parts), n_features + 1)
    return sums.scatter_add_(1, owner % (n_features + 1), parts)[:, :-1]


def make_baseline(part: BatchPart, model: Model) -> Removal:
    """The removal that makes the baseline, bound to the model and checked."""
    chosen, modality = part.question.baseline, modality_named(part.input.kind)
    if chosen is None or (isinstance(chosen, str) and chosen in ("drawn", modality.fixed_baseline)):
        chosen = modality.baseline_for(part.input, model.background, drawn=chosen == "drawn")
    assert isinstance(chosen, str | Removal)
    removal = (removals.make(chosen) if isinstance(chosen, str) else chosen).bind(model)
    removal.check(part.input)
    return removal


def iterate_baselines(part: BatchPart, removal: Removal) -> Iterator[tuple[Any, int]]:
    """For each row of the part: rows with all features removed, and the index of the baseline among them."""
    nothing = empty_mask(part.input.n_features)
    known: dict[int, Any] = {}
    for draw in _draws(part):
        call, place = divmod(draw, removal.draws)
        if call not in known:
            # Not seed + call: neighbouring seeds would share nearly all of their draws.
            seed = int.from_bytes(digest(part.seed, call), "little")
            known[call] = removal(part.input, nothing, seed)
        yield known[call], place


def draw_noise(part: BatchPart, shape: Sequence[int]) -> Array:
    """The standard normal draws (rows, …) by which each row's point is moved; zeros without noise."""
    found = np.zeros((len(part.rows), *shape), dtype=np.float32)
    for row, draw in enumerate(_draws(part) if part.question.noise else ()):
        own = generator(part.seed, "noise", part.input.fingerprint, draw)
        found[row] = own.standard_normal(shape, dtype=np.float32)
    return found


def row_weights(parts: Sequence[BatchPart]) -> Floats:
    """The factor of each row's gradient, as coefficients (rows, 4) of x, x′, 1 and the gradient itself."""
    return np.array([FACTORS[part.question.times] for part in parts for _ in part.rows], dtype=np.float64)


def _draws(part: BatchPart) -> list[int]:
    """The index of the draw of a baseline or of noise that each row of the part uses."""
    draws: Ints = part.question.draws
    return list(map(int, draws[part.rows % len(draws)]))
