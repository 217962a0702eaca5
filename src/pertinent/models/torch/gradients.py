"""Gradients of torch modules over images and table rows, and what they share with those of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Array, Floats, Ints
from pertinent.asks import ActivationMaps, BatchPart
from pertinent.config.fingerprints import digest, generator
from pertinent.errors import InputError, ModelError, SettingError, unknown
from pertinent.inputs.modality import modality_named
from pertinent.masks import empty_mask
from pertinent.models.base import Answer, Model
from pertinent.models.torch import devices
from pertinent.models.torch.inference import alone
from pertinent.removals.base import Removal, removals

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel
    from pertinent.models.transformer import TransformerModel


_FACTORS = {
    "difference": (1, -1, 0, 0),
    "input": (1, 0, 0, 0),
    "nothing": (0, 0, 1, 0),
    "itself": (0, 0, 0, 1),
}
"""For each value of `PathGradients.times`, the coefficients of x, x′, 1 and the gradient itself."""

NO_IMAGE = "Grad-CAM explains images, but the input is a {}."


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
    """The square roots of the sums (rows, features) in rows where `itself` > 0: sums of squared gradients."""
    return torch.where(itself > 0, sums.clamp_min(0).sqrt(), sums)


def sum_by_feature(parts: torch.Tensor, owner: torch.Tensor, n_features: int) -> torch.Tensor:
    """Sum (rows, parts) over the parts of each feature; parts that belong to no feature have the owner −1."""
    sums = parts.new_zeros(len(parts), n_features + 1)
    return sums.scatter_add_(1, owner % (n_features + 1), parts)[:, :-1]


def baseline_of(part: BatchPart, model: Model) -> Removal:
    """The removal that makes the baseline, bound to the model and checked."""
    chosen, modality = part.question.baseline, modality_named(part.input.kind)
    if chosen is None or (isinstance(chosen, str) and chosen in ("drawn", modality.fixed_baseline)):
        chosen = modality.baseline_for(part.input, model.background, drawn=chosen == "drawn")
    assert isinstance(chosen, str | Removal)
    removal = (removals.make(chosen) if isinstance(chosen, str) else chosen).bind(model)
    removal.check(part.input)
    return removal


def baselines_of(part: BatchPart, removal: Removal) -> Iterator[tuple[Any, int]]:
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


def normal_of(part: BatchPart, shape: Sequence[int]) -> Array:
    """The standard normal draws (rows, …) by which each row's point is moved; zeros without noise."""
    found = np.zeros((len(part.rows), *shape), dtype=np.float32)
    for row, draw in enumerate(_draws(part) if part.question.noise else ()):
        own = generator(part.seed, "noise", part.input.fingerprint, draw)
        found[row] = own.standard_normal(shape, dtype=np.float32)
    return found


def row_weights(parts: Sequence[BatchPart]) -> Floats:
    """The factor of each row's gradient, as coefficients (rows, 4) of x, x′, 1 and the gradient itself."""
    return np.array([_FACTORS[part.question.times] for part in parts for _ in part.rows], dtype=np.float64)


def _draws(part: BatchPart) -> list[int]:
    """The index of the draw of a baseline or of noise that each row of the part uses."""
    draws: Ints = part.question.draws
    return list(map(int, draws[part.rows % len(draws)]))


def array_mask_gradients(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """∂ log p / ∂ mask, with each value mask · x + (1 − mask) · filler."""
    _check_numeric(parts)
    fillers = [np.repeat(_filler(part), len(part.rows), axis=0) for part in parts]
    points = [_masked(part, filler) for part, filler in zip(parts, fillers, strict=True)]
    difference = np.tile(_FACTORS["difference"], (sum(len(part.rows) for part in parts), 1))
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
    full, plain, point = (_send(np.concatenate(arrays), model) for arrays in (inputs, baselines, points))
    of_input, of_baseline, of_one, of_itself = _send(weights, model).T[..., None]
    rows = [len(part.rows) for part in parts]
    unit = _send(np.repeat([unit.ravel() for unit in units], rows, axis=0) if units else np.ones(1), model)
    owner = np.concatenate([np.tile(p.input.owners.ravel(), (len(p.rows), 1)) for p in parts])
    n_features = max(part.input.n_features for part in parts)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        flat = gradient.flatten(1) * torch.where(of_itself > 0, unit, 1.0)
        factor = of_input * full.flatten(1) + of_baseline * plain.flatten(1) + of_one + of_itself * flat
        sums = sum_by_feature(flat * factor, devices.send(owner, model.device), n_features)
        return length_of(sums, of_itself)

    return differentiate(model, parts, point, model.scores, total)


def array_activation_maps(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """ReLU of a layer's maps weighted by their mean gradients (Grad-CAM), averaged over each feature."""
    if not all(part.input.is_picture for part in parts):
        raise InputError(NO_IMAGE.format(parts[0].input.kind))
    layer = _convolution(model.module, parts[0].question.layer)
    batch = _send(np.stack([part.input.array for part in parts]), model)
    made: list[torch.Tensor] = []
    # Clones here and below, because the next layer may work in place.
    keep: Callable[[torch.Tensor], None] = lambda maps: made.append(maps.detach().clone())  # noqa: E731
    with model.evaluating(batch.shape), torch.no_grad(), _hooked(layer, keep):
        model.scores(batch)
    if len(made) != 1 or made[0].ndim != 4:
        raise ModelError(
            "Grad-CAM needs a layer that is computed once for an image and gives maps (rows, channels, "
            "height, width): name another with `layer`."
        )
    owner = devices.send(np.stack([part.input.labels.ravel() for part in parts]), model.device)
    n_features = max(part.input.n_features for part in parts)

    def scores(maps: torch.Tensor) -> torch.Tensor:
        with _hooked(layer, lambda _: maps.clone()):
            return model.scores(batch)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        weighted = (gradient.mean(dim=(2, 3), keepdim=True) * made[0]).sum(dim=1, keepdim=True).relu().float()
        heat = torch.nn.functional.interpolate(weighted, batch.shape[2:], mode="bilinear").flatten(1)
        sizes = sum_by_feature(torch.ones_like(heat), owner, n_features)
        return sum_by_feature(heat, owner, n_features) / sizes.clamp_min(1)

    return differentiate(model, parts, made[0], scores, total)


def _convolution(module: torch.nn.Module, name: str | None) -> torch.nn.Module:
    """The layer of this name, by default the last convolution."""
    named: dict[str, torch.nn.Module] = dict(module.named_modules())
    if name is not None:
        if name not in named:
            raise unknown("layer of the module", name, [each for each in named if each])
        return named[name]
    found = [each for each in named.values() if isinstance(each, torch.nn.Conv2d)]
    if not found:
        raise ModelError(ActivationMaps.refusal)
    return found[-1]


@contextmanager
def _hooked(layer: torch.nn.Module, use: Callable[[torch.Tensor], torch.Tensor | None]) -> Iterator[None]:
    """Show what the layer answers to `use`, and put what that returns in its place, if anything."""
    hook = layer.register_forward_hook(lambda _module, _inputs, answer: use(answer))
    try:
        yield
    finally:
        hook.remove()


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
    moved = unit * normal_of(part, unit.shape)
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
    return np.array([rows[place] for rows, place in baselines_of(part, baseline_of(part, model))])


def _filler(part: BatchPart) -> Array:
    """The values of the input with all features removed; an error if they are random."""
    if part.removal.is_random or part.removal.draws > 1:
        raise SettingError(
            f"Gradients along a mask need a removal that fills in fixed values, such as 'mean' or "
            f"'constant', but {part.removal.name!r} draws them."
        )
    return np.asarray(part.removal(part.input, empty_mask(part.input.n_features), part.seed))


def _send(array: Array, model: ModuleModel) -> torch.Tensor:
    return devices.send(array.astype(np.float32), model.device)
