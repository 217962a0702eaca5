"""Assertions shared by the checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter

import numpy as np

from pertinent.results.explanation import Explanation

ARRAYS = (
    "prediction.values",
    "scores",
    "class_scores",
    "standard_errors",
    "class_standard_errors",
    "base_values",
    "interactions",
    "interaction_standard_errors",
)


def verify(condition: object, message: str) -> None:
    """Raise an `AssertionError` with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def raises(expected: type[Exception] | tuple[type[Exception], ...], *parts: object) -> Iterator[None]:
    """Raise an `AssertionError` unless the block raises `expected` with all `parts` in its message."""
    try:
        yield
    except expected as error:
        for part in parts:
            verify(str(part) in str(error), f"The error message must contain {part!r}, got: {error}")
    else:
        names = [cls.__name__ for cls in np.atleast_1d(np.array(expected, dtype=object))]
        raise AssertionError(f"{' or '.join(names)} must be raised, but the call succeeded.")


def assert_same(one: Explanation, other: Explanation, *, tolerance: float = 0.0) -> None:
    """Raise an `AssertionError` unless two explanations are equal, apart from their computing time.

    Arrays may differ by `tolerance`.
    """
    for name in ("method", "features", "target", "evaluations", "cost.budget"):
        first, second = attrgetter(name)(one), attrgetter(name)(other)
        verify(first == second, f"{one.method}: `{name}` differs: {first!r} and {second!r}.")
    for name in ARRAYS:
        first, second = attrgetter(name)(one), attrgetter(name)(other)
        verify((first is None) == (second is None), f"{one.method}: only one explanation has `{name}`.")
        if first is not None:
            np.testing.assert_allclose(
                first, second, rtol=0, atol=tolerance, strict=True, err_msg=f"{one.method}: `{name}` differs."
            )
    verify(list(one.chosen) == list(other.chosen), f"{one.method}: `chosen` has different sparsities.")
    for sparsity, mask in one.chosen.items():
        np.testing.assert_array_equal(mask, other.chosen[sparsity], strict=True)
