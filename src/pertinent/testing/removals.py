"""Checks of removals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Array, Masks
from pertinent.errors import PertinentError, SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modalities
from pertinent.masks import empty_mask, full_mask
from pertinent.models.base import Model
from pertinent.removals.base import Removal, TokenRows, removals
from pertinent.testing.assertions import raises, verify
from pertinent.testing.examples import KINDS, N_FEATURES, differentiable_example


def check_removal(
    removal: str | type[Removal] | Removal, model: Any = None, inputs: Sequence[Any] | None = None
) -> None:
    """Raise an `AssertionError` if a removal violates a requirement.

    Parameters
    ----------
    removal
        A name, a class or an instance.
    model, inputs
        A model and several inputs to which the removal applies; by default small examples of each kind of
        input that the removal supports.

    Examples
    --------
    >>> check_removal("mean")
    """
    if isinstance(removal, str):
        removal = removals.parse(removal)
    made = removal() if isinstance(removal, type) else removal
    for name in ("name", "summary"):
        verify(getattr(made, name, ""), f"{type(made).__name__} needs the attribute `{name}`.")
    if model is not None:
        model = pertinent.wrap(model)
        _check(made, model, inputs or ())
        return
    kinds = [kind for kind in made.kinds() if kind in KINDS]
    verify(kinds, f"{made.name} supports {' and '.join(made.kinds())}: pass `model` and `inputs`.")
    for kind in kinds:
        background = None if kind == "text" else np.random.default_rng(0).normal(size=_shape(kind))
        example = differentiable_example(kind, **({} if background is None else {"background": background}))
        _check(made, example.model, [example.input(seed=seed) for seed in range(3)])


def _shape(kind: str) -> tuple[int, ...]:
    return (20, N_FEATURES) if kind == "table" else (20, 1, 2, 2 * N_FEATURES)


def _check(removal: Removal, model: Model, inputs: Sequence[Any]) -> None:
    features = "patches:2" if model.kind == "image" else None
    prepared = [model.prepare(input, features) for input in inputs]
    bound = removal.bind(model)
    for input in prepared:
        _check_rows(bound, input)
        _check_other_kinds(bound, input)
    _check_settings(bound, model)
    _check_explanations(removal, model, inputs, features)


def _check_rows(removal: Removal, input: Input) -> None:
    """Check that rows depend only on the mask, the input and, for a random removal, the seed."""
    name, d, n = removal.name, input.n_features, removal.draws
    removal.check(input)
    some = np.random.default_rng(d).random((3, d)) < 0.5
    masks = np.concatenate([full_mask(d), some, empty_mask(d)])
    rows, fingerprint = rows_by_mask(removal, input, masks), input.fingerprint
    again = rows_by_mask(removal, input, masks[::-1])[::-1]
    for i, mask in enumerate(masks):
        verify(len(rows[i]) == n, f"{name}: {len(rows[i])} rows for a mask instead of {n}.")
        single = rows_by_mask(removal, input, mask[None])[0]
        verify(rows[i] == again[i] == single, f"{name}: the rows of a mask depend on the other masks.")
    verify(len(set(rows[0])) == 1, f"{name}: the rows of the full mask differ.")
    verify(rows[0] != rows[-1], f"{name}: the rows of the full mask and the empty mask are equal.")
    verify(input.fingerprint == fingerprint, f"{name}: the input was modified.")
    with_other_seed = rows_by_mask(removal, input, masks, seed=1)
    verify(
        removal.is_random or with_other_seed == rows,
        f"{name}: rows depend on the seed, but `is_random` is False.",
    )


def rows_by_mask(removal: Removal, input: Input, masks: Masks, seed: int = 0) -> list[list[bytes]]:
    """Return the bytes of each row, for each mask."""
    rows = removal(input, masks, seed)
    if isinstance(rows, TokenRows):
        arrays: list[Array] = [rows.attend, *(a for a in (rows.ids, rows.zeroed) if a is not None)]
        parts = [b"".join(array[i].tobytes() for array in arrays) for i in range(len(rows.attend))]
    elif isinstance(rows, list):
        parts = [repr(row).encode() for row in rows]
    else:
        parts = [row.tobytes() for row in np.asarray(rows)]
    verify(
        len(parts) == len(masks) * removal.draws,
        f"{removal.name}: {len(parts)} rows for {len(masks)} masks of {removal.draws} draws.",
    )
    return [parts[i : i + removal.draws] for i in range(0, len(parts), removal.draws)]


def _check_other_kinds(removal: Removal, input: Input) -> None:
    """Check that inputs of other kinds are rejected."""
    for kind in modalities.all():
        if kind in KINDS and kind not in removal.kinds():
            other = differentiable_example(kind)
            with raises(SettingError, removal.name, input.kind):
                removal.check(other.model.prepare(other.input()))


def _check_settings(removal: Removal, model: Model) -> None:
    """Check that the removal can be recreated from its settings and the model."""
    settings = removal.settings(model)
    try:
        again = type(removal)(**settings).bind(model)
    except PertinentError:
        return  # the settings do not contain models and arrays
    verify(
        again.fingerprint == removal.fingerprint,
        f"{removal.name}: recreating it from the settings {settings} changes the fingerprint.",
    )


def _check_explanations(removal: Removal, model: Model, inputs: Sequence[Any], features: str | None) -> None:
    """Check that the whole input is unchanged, and that scores do not depend on batch size or order."""
    options = {"removal": removal, "features": features, "progress": False}
    batched = pertinent.explain(model, inputs, "leave-one-out", **options)
    verify(not batched.failures, f"{removal.name}: {list(map(str, batched.failures))}")
    reversed_order = pertinent.explain(model, inputs[::-1], "leave-one-out", batch_size=1, **options)
    whole = pertinent.explain(model, inputs, "random", features=features, progress=False)
    for e, other, expected in zip(batched, reversed_order[::-1], whole, strict=True):
        np.testing.assert_allclose(
            e.prediction.values,
            expected.prediction.values,
            atol=1e-5,
            err_msg=f"{removal.name}: keeping all features changes the prediction",
        )
        np.testing.assert_allclose(
            e.scores, other.scores, atol=1e-5, err_msg=f"{removal.name}: scores depend on the batch"
        )
