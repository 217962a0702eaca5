"""Gradients of a torch module over images or table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.array_types import Array
from pertinent.asks import Part
from pertinent.errors import InputError, SettingError
from pertinent.inputs.array_input import ArrayInput
from pertinent.inputs.base import Input
from pertinent.masks import empty_mask
from pertinent.models.base import Answer
from pertinent.models.torch import devices
from pertinent.models.torch.torch_gradients import (
    baseline_of,
    baselines_of,
    differentiate,
    length_of,
    normal_of,
    row_weights,
    sum_by_feature,
)

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel


def array_mask_gradients(model: ModuleModel, parts: Sequence[Part]) -> Answer:
    """∂ log p / ∂ mask, with each value mask · x + (1 − mask) · filler."""
    _check_numeric(parts)
    fillers = [np.repeat(_filler(part), len(part.rows), axis=0) for part in parts]
    points = [_masked(part, filler) for part, filler in zip(parts, fillers, strict=True)]
    difference = np.tile([1.0, -1.0, 0.0, 0.0], (sum(len(part.rows) for part in parts), 1))
    return _differentiated(model, parts, fillers, points, difference)


def array_path_gradients(model: ModuleModel, parts: Sequence[Part]) -> Answer:
    """∂ log p / ∂ values at each row's point, multiplied as asked and summed over each feature."""
    _check_numeric(parts)
    baselines = [_baseline(model, part) for part in parts]
    units = [_unit(model, part) for part in parts]
    points = [_points(*each) for each in zip(parts, baselines, units, strict=True)]
    return _differentiated(model, parts, baselines, points, row_weights(parts), units=units)


def _differentiated(
    model: ModuleModel,
    parts: Sequence[Part],
    baselines: Sequence[Array],
    points: Sequence[Array],
    weights: Array,
    *,
    units: Sequence[Array] = (),
) -> Answer:
    inputs = [np.repeat(_values(part.input)[None], len(part.rows), axis=0) for part in parts]
    full, plain, point = (_send(np.concatenate(arrays), model) for arrays in (inputs, baselines, points))
    of_input, of_baseline, of_one, of_itself = _send(weights, model).T[..., None]
    rows = [len(part.rows) for part in parts]
    unit = _send(np.repeat([unit.ravel() for unit in units], rows, axis=0) if units else np.ones(1), model)
    owner = np.concatenate([np.tile(_array_input(p.input).owners.ravel(), (len(p.rows), 1)) for p in parts])
    n_features = max(part.input.n_features for part in parts)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        flat = gradient.flatten(1) * unit
        factor = of_input * full.flatten(1) + of_baseline * plain.flatten(1) + of_one + of_itself * flat
        sums = sum_by_feature(flat * factor, devices.send(owner, model.device), n_features)
        return length_of(sums, of_itself)

    return differentiate(model, parts, point, model.scores, total)


def _check_numeric(parts: Sequence[Part]) -> None:
    if any(_values(part.input).dtype == object for part in parts):
        raise InputError("Gradients need numeric columns, but the row holds categories.")


def _masked(part: Part, filler: Array) -> Array:
    """The input under each mask: as the removal makes it, or for a soft mask between input and filler."""
    masks = part.question.masks[part.rows]
    if masks.dtype == np.bool_:
        return np.asarray(part.removal(part.input, masks, part.seed))
    return np.asarray(filler + masks[:, _array_input(part.input).owners] * (_values(part.input) - filler))


def _points(part: Part, baseline: Array, unit: Array) -> Array:
    """The point at which each row of a question is evaluated."""
    share = part.question.shares[part.rows].reshape(-1, *[1] * (baseline.ndim - 1))
    moved = unit * normal_of(part, unit.shape)
    return np.asarray(baseline + share * (_values(part.input) - baseline) + moved)


def _unit(model: ModuleModel, part: Part) -> Array:
    """The standard deviation of the noise on each value, a factor of its gradient; 1 without noise."""
    noise, values = part.question.noise, _values(part.input)
    if not noise:
        return np.ones(values.shape)
    spread = _array_input(part.input).deviation(model.background)
    return np.asarray(noise * np.where(spread > 0, spread, 1.0))


def _baseline(model: ModuleModel, part: Part) -> Array:
    """The baseline of each row of a question."""
    ask, input = part.question, part.input
    if isinstance(ask.baseline, np.ndarray):
        if ask.baseline.shape != _values(input).shape:
            raise SettingError(
                f"`baseline` must have the shape of the input, {_values(input).shape}, "
                f"but has {ask.baseline.shape}."
            )
        return np.repeat(ask.baseline[None], len(part.rows), axis=0)
    return np.array([rows[place] for rows, place in baselines_of(part, baseline_of(part, model))])


def _filler(part: Part) -> Array:
    """The values of the input with all features removed; an error if they are random."""
    if part.removal.is_random or part.removal.draws > 1:
        raise SettingError(
            f"Gradients along a mask need a removal that fills in fixed values, such as 'mean' or "
            f"'constant', but {part.removal.name!r} draws them."
        )
    return np.asarray(part.removal(part.input, empty_mask(part.input.n_features), part.seed))


def _values(input: Input) -> Array:
    return _array_input(input).array


def _array_input(input: Input) -> ArrayInput:
    assert isinstance(input, ArrayInput)
    return input


def _send(array: Array, model: ModuleModel) -> torch.Tensor:
    return devices.send(array.astype(np.float32), model.device)
