"""Gradients of a torch module over images or table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.engine.asks import MaskGradients, PathGradients
from pertinent.errors import InputError, SettingError
from pertinent.inputs.base import Input, nothing
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.models import devices
from pertinent.models.base import Answer, Slope
from pertinent.models.slopes import (
    baseline_of,
    differentiate,
    draws_of,
    length_of,
    row_weights,
    shares_of,
    sum_by_feature,
)
from pertinent.removal.fill import owners
from pertinent.types import Array

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel


def array_slopes(model: ModuleModel, slopes: Sequence[Slope]) -> Answer:
    """∂ log p / ∂ values at each row's point, times what was asked, summed over each feature."""
    if any(_values(slope.given).dtype == object for slope in slopes):
        raise InputError("Gradients need numeric columns, but the row holds categories.")
    inputs = np.concatenate([np.repeat(_values(s.given)[None], len(s.rows), axis=0) for s in slopes])
    baselines = np.concatenate([_baseline(model, s) for s in slopes])
    points = np.concatenate([_points(s, b) for s, b in zip(slopes, _split(baselines, slopes), strict=True)])
    whole, plain, point = (_send(array, model) for array in (inputs, baselines, points))
    of_input, of_baseline, of_one, of_itself = row_weights(slopes, model.device).T[..., None]
    owner = np.concatenate([np.tile(owners(s.given).ravel(), (len(s.rows), 1)) for s in slopes])
    n_features = max(slope.given.n_features for slope in slopes)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        slope = gradient.flatten(1)
        factor = of_input * whole.flatten(1) + of_baseline * plain.flatten(1) + of_one + of_itself * slope
        sums = sum_by_feature(slope * factor, devices.send(owner, model.device), n_features)
        return length_of(sums, of_itself)

    return differentiate(
        model,
        slopes,
        point,
        model.scores,
        total,
    )


def _points(slope: Slope, baseline: Array) -> Array:
    """Where each row of a question looks."""
    ask, given = slope.ask, slope.given
    if isinstance(ask, PathGradients):
        share = shares_of(slope).reshape(-1, *[1] * (baseline.ndim - 1))
        return np.asarray(baseline + share * (_values(given) - baseline))
    rows = slope.removal(given, ask.masks[slope.rows], slope.seed)
    assert isinstance(rows, np.ndarray)
    return rows


def _baseline(model: ModuleModel, slope: Slope) -> Array:
    """The baseline of each row of a question."""
    ask, given = slope.ask, slope.given
    if isinstance(ask, MaskGradients):
        return np.repeat(_filler(slope), len(slope.rows), axis=0)
    if isinstance(ask.baseline, np.ndarray):
        if ask.baseline.shape != _values(given).shape:
            raise SettingError(
                f"`baseline` must have the shape of the input, {_values(given).shape}, "
                f"but has {ask.baseline.shape}."
            )
        return np.repeat(ask.baseline[None], len(slope.rows), axis=0)
    removal = baseline_of(ask, given, model)
    known: dict[int, Array] = {}
    rows = []
    for seed, place in draws_of(slope, removal):
        if seed not in known:
            known[seed] = np.asarray(removal(given, nothing(given.n_features), seed))
        rows.append(known[seed][place])
    return np.array(rows)


def _filler(slope: Slope) -> Array:
    """What the removal puts in place of everything, if that is always the same."""
    first, second = (
        slope.removal(slope.given, nothing(slope.given.n_features), slope.seed + i) for i in (0, 1)
    )
    if slope.removal.draws > 1 or not np.array_equal(first, second):  # type: ignore[arg-type]
        raise SettingError(
            f"Gradients along a mask need a removal that fills in fixed values, such as 'mean' or "
            f"'constant', but {slope.removal.name!r} draws them."
        )
    return np.asarray(first)


def _values(given: Input) -> Array:
    assert isinstance(given, ImageInput | TableInput)
    return given.pixels if isinstance(given, ImageInput) else given.values


def _split(rows: Array, slopes: Sequence[Slope]) -> list[Array]:
    return np.split(rows, np.cumsum([len(s.rows) for s in slopes])[:-1])


def _send(array: Array, model: ModuleModel) -> torch.Tensor:
    return devices.send(array.astype(np.float32), model.device)
