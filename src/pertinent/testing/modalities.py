"""Checks of modalities."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pertinent
from pertinent.inputs.modality import input_from_dict, modality_named
from pertinent.removals.base import removals
from pertinent.testing.assertions import assert_same, verify


def check_modality(kind: str, inputs: Sequence[Any], function: Callable[[Any], Any] | None = None) -> None:
    """Raise an `AssertionError` if a registered modality violates a requirement.

    Parameters
    ----------
    kind
        Name under which the modality is registered.
    inputs
        At least two different raw inputs.
    function
        A function from a batch of inputs, in the form that the default removal returns, to rows of
        probabilities; by default one that depends on all their numbers or characters.

    Examples
    --------
    >>> check_modality("table", [[1.0, 2.0], [0.5, -1.0]])
    """
    modality = modality_named(kind)
    verify(len(inputs) > 1, "at least two different inputs are required.")
    verify(modality.split(list(inputs)) is not None, f"{kind}: a list of inputs is treated as one input.")
    verify(modality.split(inputs[0]) is None, f"{kind}: one input is treated as several.")
    model = pertinent.wrap(function or _logistic, kind=kind)
    prepared = [model.prepare(raw) for raw in inputs]
    for raw, input in zip(inputs, prepared, strict=True):
        verify(isinstance(input, modality.input_type), f"{kind}: prepared as {type(input).__name__}.")
        verify(input.kind == kind, f"{kind}: the inputs have the kind {input.kind!r}.")
        verify(input.n_features > 0, f"{kind}: an input has no features.")
        again = model.prepare(raw)
        verify(again.fingerprint == input.fingerprint, f"{kind}: equal inputs have different fingerprints.")
        plain = json.loads(json.dumps(input.to_dict()))
        read = input_from_dict(plain, input.features)
        verify(read.to_dict() == input.to_dict(), f"{kind}: saving and reading an input changes it.")
        features: Any = read.features_argument
        recut = model.prepare(read.raw, features)
        verify(recut.features == input.features, f"{kind}: reading an input changes its features.")
    verify(
        len({input.fingerprint for input in prepared}) > 1, f"{kind}: different inputs share a fingerprint."
    )
    removals.make(model.default_removal(prepared[0])).bind(model).check(prepared[0])
    _check_explanations(kind, model, inputs)


def _check_explanations(kind: str, model: Any, inputs: Sequence[Any]) -> None:
    """Check that inputs can be explained in batches, saved, read and shown."""
    batched = pertinent.explain(model, list(inputs), "leave-one-out", progress=False)
    verify(not batched.failures, f"{kind}: {list(map(str, batched.failures))}")
    for raw, e in zip(inputs, batched, strict=True):
        assert_same(e, pertinent.explain(model, raw, "leave-one-out", batch_size=1, progress=False))
        verify(str(e) and e.to_html(), f"{kind}: an explanation cannot be shown.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "explanations.parquet"
        batched.save(path)
        for e, read in zip(batched, pertinent.read(path), strict=True):
            assert_same(e, read)
            verify(read.to_html(), f"{kind}: an explanation cannot be shown after reading it.")


def _logistic(batch: Any) -> Any:
    """Return two probabilities for each input of a batch, from its numbers or characters."""
    sums = []
    for item in batch:
        numbers = [ord(c) - 100.0 for c in str(item)] if _is_text(item) else np.ravel(np.asarray(item, float))
        sums.append(float(np.sin(np.arange(1, len(numbers) + 1)) @ np.asarray(numbers)) / (1 + len(numbers)))
    p = 1 / (1 + np.exp(-np.array(sums)))
    return np.column_stack([1 - p, p])


def _is_text(item: Any) -> bool:
    return (not isinstance(item, np.ndarray | list | tuple) and not np.isscalar(item)) or isinstance(
        item, str
    )
