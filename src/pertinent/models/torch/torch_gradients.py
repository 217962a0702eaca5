"""What all gradients of torch models share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch

from pertinent.array_types import Array, Floats
from pertinent.asks import Part, PathGradients
from pertinent.digests import digest, generator
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.models.base import Answer, Model
from pertinent.models.torch import devices
from pertinent.models.torch.evaluating import alone
from pertinent.outputs import Output
from pertinent.removal.base import Removal, removals

"""The default baselines: fixed, or drawn at random."""


class TorchModel(Protocol):
    """What is needed to differentiate a model."""

    module: Any
    device: torch.device

    def evaluating(self, shape: Sequence[int]) -> AbstractContextManager[None]:
        """Evaluate a batch of this shape."""

    @property
    def output(self) -> Output:
        """What its outputs mean."""


def differentiate(
    model: TorchModel,
    parts: Sequence[Part],
    point: torch.Tensor,
    scores: Callable[[torch.Tensor], torch.Tensor],
    total: Callable[[torch.Tensor], torch.Tensor],
) -> Answer:
    """The model's scores at `point`, and `total` of the gradient of each row's target score there."""
    targets = np.concatenate([np.full(len(part.rows), part.question.target) for part in parts])
    width = 0

    def both() -> torch.Tensor:
        nonlocal width
        with torch.enable_grad(), frozen(model.module):
            leaf = point.detach().requires_grad_()
            answer = scores(leaf)
            columns = devices.send(targets, answer.device)[:, None]
            followed = model.output.followed_scores(answer).gather(1, columns)
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
    """Disable gradients for the weights, which would only cost memory.

    Recurrent layers do without cuDNN, which gives no gradients in eval mode.
    """
    recurrent = any(isinstance(each, torch.nn.RNNBase) for each in module.modules())
    with alone(), torch.backends.cudnn.flags(enabled=False) if recurrent else nullcontext():
        trainable = [p for p in module.parameters() if p.requires_grad]
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in trainable:
                parameter.requires_grad_(True)


def length_of(sums: torch.Tensor, itself: torch.Tensor) -> torch.Tensor:
    """The square root of the sums, in rows whose gradients were multiplied by themselves."""
    return torch.where(itself > 0, sums.clamp_min(0).sqrt(), sums)


def sum_by_feature(parts: torch.Tensor, owner: torch.Tensor, n_features: int) -> torch.Tensor:
    """(rows, parts) summed over the parts of each feature; a part of no feature has the owner −1."""
    sums = parts.new_zeros(len(parts), n_features + 1)
    return sums.scatter_add_(1, owner % (n_features + 1), parts)[:, :-1]


def baseline_of(ask: PathGradients, input: Input, model: Model) -> Removal:
    """The removal that makes the baseline, bound to the model and checked."""
    chosen, modality = ask.baseline, modality_named(input.kind)
    if chosen is None or (isinstance(chosen, str) and chosen in ("drawn", modality.fixed_baseline)):
        chosen = modality.baseline_for(input, drawn=chosen == "drawn")
    assert isinstance(chosen, str | Removal)
    removal = (removals.make(chosen) if isinstance(chosen, str) else chosen).bind(model)
    removal.check(input)
    return removal


def draws_of(part: Part, removal: Removal) -> Iterator[tuple[int, int]]:
    """For each row: the seed to call the removal with, and which of the rows it returns to use."""
    assert isinstance(part.question, PathGradients)
    for draw in part.question.draws[part.rows % len(part.question.draws)].tolist():
        call, place = divmod(draw, removal.draws)
        # Not seed + call: neighbouring seeds would share nearly all of their draws.
        yield int.from_bytes(digest(part.seed, call), "little"), place


def normal_of(part: Part, shape: Sequence[int]) -> Array:
    """The standard normal draws (rows, …) by which each row's point is moved; zeros without noise."""
    ask = part.question
    assert isinstance(ask, PathGradients)
    found = np.zeros((len(part.rows), *shape), dtype=np.float32)
    for row, draw in enumerate(ask.draws[part.rows % len(ask.draws)].tolist() if ask.noise else ()):
        own = generator(part.seed, "noise", part.input.fingerprint, draw)
        found[row] = own.standard_normal(shape, dtype=np.float32)
    return found


def row_weights(parts: Sequence[Part]) -> Floats:
    """The factor of each row's gradient, as coefficients of x, x′, one, and the gradient itself."""
    weights = {
        "difference": (1.0, -1.0, 0.0, 0.0),
        "input": (1.0, 0.0, 0.0, 0.0),
        "nothing": (0.0, 0.0, 1.0, 0.0),
        "itself": (0.0, 0.0, 0.0, 1.0),
    }
    return np.array([weights[part.question.times] for part in parts for _ in range(len(part.rows))])


def shares_of(part: Part) -> Floats:
    """The α of each row: its position on the line from the baseline to the input."""
    assert isinstance(part.question, PathGradients)
    return part.question.shares[part.rows]
