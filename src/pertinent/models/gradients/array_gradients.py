"""Gradients of torch modules with respect to images and table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from pertinent.array_types import Array
from pertinent.asks import BatchPart
from pertinent.errors import InputError, SettingError
from pertinent.masks import empty_mask
from pertinent.models.base import Answer
from pertinent.models.gradients import base
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel


def array_mask_gradients(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """Compute ∂ log p / ∂ mask, with each value mask · x + (1 − mask) · filler."""
    _check_numeric(parts)
    fillers = [np.repeat(_filler(part), len(part.rows), axis=0) for part in parts]
    points = [_mask_input(part, filler) for part, filler in zip(parts, fillers, strict=True)]
    factors = np.tile(base.FACTORS["difference"], (sum(len(part.rows) for part in parts), 1))
    units = [np.ones(part.input.array.shape) for part in parts]
    return _differentiate(model, parts, points, fillers, factors, units)


def array_path_gradients(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """Compute ∂ log p / ∂ values at each row's point, times its factor, summed by feature."""
    _check_numeric(parts)
    baselines = [_baseline(model, part) for part in parts]
    units = [_noise_scale(model, part) for part in parts]
    points = [_points(*args) for args in zip(parts, baselines, units, strict=True)]
    return _differentiate(model, parts, points, baselines, base.row_factors(parts), units)


def _differentiate(  # noqa: PLR0917
    model: ModuleModel,
    parts: Sequence[BatchPart],
    points: Sequence[Array],
    baselines: Sequence[Array],
    factors: Array,
    units: Sequence[Array],
) -> Answer:
    device, counts = model.device, [len(part.rows) for part in parts]
    inputs = np.repeat([part.input.array for part in parts], counts, axis=0)
    arrays = inputs, np.concatenate(baselines), np.repeat(units, counts, axis=0), np.concatenate(points)
    input, baseline, unit, point = (devices.send_floats(array, device) for array in arrays)
    row_factors = devices.send_floats(factors, device).T[..., None]
    owner = devices.send(np.repeat([p.input.owners.ravel() for p in parts], counts, axis=0), device)
    n_features = max(part.input.n_features for part in parts)

    def total(gradient: Tensor) -> Tensor:
        flat = (tensor.flatten(1) for tensor in (input, baseline, unit))
        values = base.multiply(gradient.flatten(1), row_factors, *flat)
        sums = base.sum_by_feature(base.root_where(values, row_factors[4] > 0), owner, n_features)
        return base.root_where(sums, row_factors[3] > 0)

    return base.differentiate(model, parts, point, model.scores, total)


def _check_numeric(parts: Sequence[BatchPart]) -> None:
    if any(part.input.array.dtype == object for part in parts):
        raise InputError("Gradients need numeric columns, but the row contains categories.")


def _mask_input(part: BatchPart, filler: Array) -> Array:
    """Return the input under each mask; a soft mask mixes input and filler."""
    masks = part.question.masks[part.rows]
    if masks.dtype == np.bool_:
        return np.asarray(part.removal(part.input, masks, part.seed))
    return np.asarray(filler + masks[:, part.input.owners] * (part.input.array - filler))


def _points(part: BatchPart, baseline: Array, unit: Array) -> Array:
    """Return the point for each row of a question."""
    share = part.question.shares[part.rows].reshape(-1, *[1] * (baseline.ndim - 1))
    noise = unit * base.draw_noise(part, unit.shape)
    return np.asarray(baseline + share * (part.input.array - baseline) + noise)


def _noise_scale(model: ModuleModel, part: BatchPart) -> Array:
    """Return the standard deviation of the noise on each value; 1 without noise."""
    if not part.question.noise:
        return np.ones(part.input.array.shape)
    spread = part.input.deviation(model.background)
    return np.asarray(part.question.noise * np.where(spread > 0, spread, 1.0))


def _baseline(model: ModuleModel, part: BatchPart) -> Array:
    """Return the baseline for each row of a question."""
    baseline, shape = part.question.baseline, part.input.array.shape
    if isinstance(baseline, np.ndarray):
        if baseline.shape != shape:
            raise SettingError(
                f"`baseline` must have the shape of the input, {shape}, but has {baseline.shape}."
            )
        return np.repeat(baseline[None], len(part.rows), axis=0)
    removal = base.make_baseline(part, model)
    return np.array([rows[index] for rows, index in base.iterate_baselines(part, removal)])


def _filler(part: BatchPart) -> Array:
    """Return the values of the fully removed input; raise a `SettingError` if they are random."""
    if part.removal.is_random or part.removal.draws > 1:
        raise SettingError(
            f"Mask gradients need a removal with fixed fill values, such as 'mean' or 'constant', but "
            f"{part.removal.name!r} draws them at random."
        )
    return np.asarray(part.removal(part.input, empty_mask(part.input.n_features), part.seed))
