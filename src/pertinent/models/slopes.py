"""Gradients of torch models: what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch

from pertinent.engine.asks import PathGradients
from pertinent.inputs.base import Input, digest
from pertinent.inputs.text import TextInput
from pertinent.models import devices
from pertinent.models.base import Answer, Model, Output, Slope
from pertinent.removal.base import Removal, removals
from pertinent.types import Floats

TINY = 1e-12

FIXED = {"text": "mask-token", "image": "constant", "table": "constant"}
DRAWN = {"text": "random-token", "image": "uniform-noise", "table": "background"}
"""The baselines used when none is named: always the same, or drawn."""


class TorchModel(Protocol):
    """What it takes to differentiate a model."""

    module: Any
    device: torch.device

    @property
    def output(self) -> Output:
        """What it answers with."""


def differentiate(
    model: TorchModel,
    asked: Sequence[Slope],
    point: torch.Tensor,
    scores: Callable[[torch.Tensor], torch.Tensor],
    total: Callable[[torch.Tensor], torch.Tensor],
) -> Answer:
    """The model's scores at `point`, and what `total` makes of the gradient of log p there."""
    width = 0

    def both() -> torch.Tensor:
        nonlocal width
        with torch.enable_grad(), _frozen(model.module):
            leaf = point.detach().requires_grad_()
            answer = scores(leaf)
            loss = log_probability(answer, model.output, asked).sum()
            (gradient,) = torch.autograd.grad(loss, leaf)
        width = answer.shape[1]
        return torch.cat([answer.detach().float(), total(gradient).float()], dim=1)

    answer = devices.run(model.device, both, gradients=True)

    def split() -> Any:
        outputs = answer.outputs()
        return outputs[:, :width], outputs[:, width:].astype(np.float64)

    return Answer(split, answer.seconds, answer.is_there)


@contextmanager
def _frozen(module: torch.nn.Module) -> Iterator[None]:
    """No gradients for the weights: they would only cost memory."""
    trainable = [p for p in module.parameters() if p.requires_grad]
    for parameter in trainable:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)


def log_probability(scores: torch.Tensor, output: str, slopes: Sequence[Slope]) -> torch.Tensor:
    """The logarithm of the probability of each row's target."""
    scores = scores.float()
    if scores.shape[1] == 1:
        other = 1 - scores if output == "probability" else torch.zeros_like(scores)
        scores = torch.cat([other, scores], dim=1)
    logs = scores.clamp_min(TINY).log() if output == "probability" else scores.log_softmax(dim=1)
    targets = np.concatenate([np.full(len(s.rows), s.ask.target) for s in slopes])
    return logs.gather(1, devices.send(targets, scores.device)[:, None])[:, 0]


def length_of(sums: torch.Tensor, itself: torch.Tensor) -> torch.Tensor:
    """The root of each row that was multiplied by itself."""
    return torch.where(itself > 0, sums.clamp_min(0).sqrt(), sums)


def sum_by_feature(parts: torch.Tensor, owner: torch.Tensor, n_features: int) -> torch.Tensor:
    """(rows, parts) summed over the parts of each feature; a part of none has the owner −1."""
    sums = parts.new_zeros(len(parts), n_features + 1)
    return sums.scatter_add_(1, owner % (n_features + 1), parts)[:, :-1]


def baseline_of(ask: PathGradients, given: Input, model: Model) -> Removal:
    """The removal that makes the baseline, ready for use."""
    chosen = FIXED[given.kind] if ask.baseline is None else ask.baseline
    if isinstance(chosen, str) and chosen == "drawn":
        chosen = DRAWN[given.kind]
    assert isinstance(chosen, str | Removal)
    if (
        chosen == "mask-token"
        and isinstance(given, TextInput)
        and given.tokens
        and given.tokens.mask_id is None
    ):
        chosen = "zero-vector"
    removal = (removals.make(chosen) if isinstance(chosen, str) else chosen).bind(model)
    removal.check(given)
    return removal


def draws_of(slope: Slope, removal: Removal) -> Iterator[tuple[int, int]]:
    """For each row: the seed to call the removal with, and which of the rows it answers to take."""
    assert isinstance(slope.ask, PathGradients)
    for draw in slope.ask.draws[slope.rows % len(slope.ask.draws)].tolist():
        call, place = divmod(draw, removal.draws)
        # Not seed + call: neighbouring seeds would share nearly all of their draws.
        yield int.from_bytes(digest(slope.seed, call), "little"), place


def row_weights(slopes: Sequence[Slope], device: torch.device) -> torch.Tensor:
    """What each row's gradient is multiplied by: so much of x, of x′, of one, and of itself."""
    weights = {
        "difference": (1.0, -1.0, 0.0, 0.0),
        "input": (1.0, 0.0, 0.0, 0.0),
        "nothing": (0.0, 0.0, 1.0, 0.0),
        "itself": (0.0, 0.0, 0.0, 1.0),
    }
    rows = [weights[_times(s)] for s in slopes for _ in range(len(s.rows))]
    return devices.send(np.array(rows, dtype=np.float32), device)


def _times(slope: Slope) -> str:
    return slope.ask.times if isinstance(slope.ask, PathGradients) else "difference"


def shares_of(slope: Slope) -> Floats:
    """Where on its line each row lies."""
    assert isinstance(slope.ask, PathGradients)
    return slope.ask.shares[slope.rows]
