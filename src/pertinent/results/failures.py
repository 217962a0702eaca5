"""Inputs that could not be explained, measured or attacked, and how they are saved and read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from typing import Any

from pertinent.config.serialization import Index, decode
from pertinent.errors import sendable


@dataclass(frozen=True)
class Failure:
    """An input for which something failed, with the reason.

    Attributes
    ----------
    index
        Index of the input, from 0.
    reason
        Message of the error.
    id
        Your name for the input.
    method
        Method that failed; None if there was only one, or if all methods failed for this reason.
    metric
        Metric that could not measure the explanation; None if something else failed.
    error
        The exception, which is not saved.
    """

    index: Index
    reason: str
    _: KW_ONLY
    id: str | None = None
    method: str | None = None
    metric: str | None = None
    error: Exception | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return a picklable state; an unpicklable error is replaced."""
        return {**vars(self), "error": sendable(self.error)}

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.method, self.metric, self.reason)))


def failures_from_plain(plain: Any) -> list[Failure]:
    """Return saved failures; raise an `InputError` if the data is invalid."""
    return decode(list[Failure], plain, "failures")


def merge_failures(failures: Sequence[Failure], n_methods: int) -> list[Failure]:
    """Merge the failures of an input that are identical for all of several methods.

    Failures of the same input must be adjacent.
    """
    merged: list[Failure] = []
    for _, of_input in groupby(failures, key=lambda failure: failure.index):
        alike: dict[Failure, list[Failure]] = {}
        for failure in of_input:
            alike.setdefault(replace(failure, method=None), []).append(failure)
        for common, each in alike.items():
            merged += [common] if len(each) == n_methods > 1 else each
    return merged


def failures_of(failures: Iterable[Failure], results: Sequence[Any], part: slice) -> list[Failure]:
    """Return the failures of the inputs in a slice of the results, based on the `index` of each input.

    An input without a result belongs to the slice of the next input with a result, or of the last one.
    """
    every = sorted({result.index for result in results})
    indices = {result.index for result in results[part]}
    return [
        failure
        for failure in failures
        if not every or every[min(bisect_left(every, failure.index), len(every) - 1)] in indices
    ]
