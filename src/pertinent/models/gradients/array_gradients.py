"""Gradients of torch modules over images and table rows, and what they share with those of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.array_types import Array
from pertinent.asks import BatchPart
from pertinent.errors import InputError, SettingError
from pertinent.masks import empty_mask
from pertinent.models.base import Answer
from pertinent.models.gradients.base import (
    FACTORS,
    differentiate,
    draw_noise,
    iterate_baselines,
    make_baseline,
    root_of_sums,
    row_weights,
    sum_by_feature,
)
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel


def array_mask_gradients(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """∂ log p / ∂ mask, with each value mask · x + (1 − mask) · filler."""
    _check_numeric(parts)
    fillers = [np.repeat(_filler(part), len(part.rows), axis=0) for part in parts]
    points = [_masked(part, filler) for part, filler in zip(parts, fillers, strict=True)]
    difference = np.tile(FACTORS["difference"], (sum(len(part.rows) for part in parts), 1))
    return _differentiated(model, parts, fillers, points, difference)


def array_path_gradients(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """∂ log p / ∂ values at each row's point, multiplied as asked and summed over each feature."""
    _check_numeric(parts)
    baselines = [_baseline(model, part) for part in parts]
    units = [_unit(model, part) for part in parts]
    points = [_points(*each) for each in zip(parts, baselines, units, strict=True)]
    return _differentiated(model, parts, baselines, points, row_weights(parts), units=units)


def _differentiated(
    model: ModuleModel,
    parts: Sequence[BatchPart],
    baselines: Sequence[Array],
    points: Sequence[Array],
    weights: Array,
    *,
    units: Sequence[Array] = (),
) -> Answer:
    inputs = [np.repeat(part.input.array[None], len(part.rows), axis=0) for part in parts]
    device = model.device
    arrays = (np.concatenate(each) for each in (inputs, baselines, points))
    full, plain, point = (devices.send_floats(array, device) for array in arrays)
    of_input, of_baseline, of_one, of_itself = devices.send_floats(weights, device).T[..., None]
    rows = [len(part.rows) for part in parts]
    noise = np.repeat([unit.ravel() for unit in units], rows, axis=0) if units else np.ones(1)
    unit = devices.send_floats(noise, device)
    owner = np.concatenate([np.tile(p.input.owners.ravel(), (len(p.rows), 1)) for p in parts])
    n_features = max(part.input.n_features for part in parts)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        flat = gradient.flatten(1) * torch.where(of_itself > 0, unit, 1.0)
        factor = of_input * full.flatten(1) + of_baseline * plain.flatten(1) + of_one + of_itself * flat
        sums = sum_by_feature(flat * factor, devices.send(owner, device), n_features)
        return root_of_sums(sums, of_itself)

    return differentiate(model, parts, point, model.scores, total)


def _check_numeric(parts: Sequence[BatchPart]) -> None:
    if any(part.input.array.dtype == object for part in parts):
        raise InputError("Gradients need numeric columns, but the row holds categories.")


def _masked(part: BatchPart, filler: Array) -> Array:
    """The input under each mask: as the removal makes it, or for a soft mask between input and filler."""
    masks = part.question.masks[part.rows]
    if masks.dtype == np.bool_:
        return np.asarray(part.removal(part.input, masks, part.seed))
    return np.asarray(filler + masks[:, part.input.owners] * (part.input.array - filler))


def _points(part: BatchPart, baseline: Array, unit: Array) -> Array:
    """The point at which each row of a question is evaluated."""
    share = part.question.shares[part.rows].reshape(-1, *[1] * (baseline.ndim - 1))
    moved = unit * draw_noise(part, unit.shape)
    return np.asarray(baseline + share * (part.input.array - baseline) + moved)


def _unit(model: ModuleModel, part: BatchPart) -> Array:
    """The standard deviation of the noise on each value, a factor of its gradient; 1 without noise."""
    if not part.question.noise:
        return np.ones(part.input.array.shape)
    spread = part.input.deviation(model.background)
    return np.asarray(part.question.noise * np.where(spread > 0, spread, 1.0))


def _baseline(model: ModuleModel, part: BatchPart) -> Array:
    """The baseline of each row of a question."""
    baseline, shape = part.question.baseline, part.input.array.shape
    if isinstance(baseline, np.ndarray):
        if baseline.shape != shape:
            raise SettingError(
                f"`baseline` must have the shape of the input, {shape}, but has {baseline.shape}."
            )
        return np.repeat(baseline[None], len(part.rows), axis=0)
    return np.array([rows[place] for rows, place in iterate_baselines(part, make_baseline(part, model))])


def _filler(part: BatchPart) -> Array:
    """The values of the input with all features removed; an error if they are random."""
    if part.removal.is_random or part.removal.draws > 1:
        raise SettingError(
            f"Gradients along a mask need a removal that fills in fixed values, such as 'mean' or "
            f"'constant', but {part.removal.name!r} draws them."
        )
    return np.asarray(part.removal(part.input, empty_mask(part.input.n_features), part.seed))
