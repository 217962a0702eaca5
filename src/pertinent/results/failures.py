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
    """An input for which something failed, and the reason.

    Attributes
    ----------
    index
        The position of the input, from 0.
    reason
        The message of the error.
    id
        The user's name for the input.
    method
        The method that failed; None if there was only one, or if all methods failed for this reason.
    metric
        The metric that could not measure the explanation; None if something else failed.
    error
        The error, which is not saved.
    """

    index: Index
    reason: str
    _: KW_ONLY
    id: str | None = None
    method: str | None = None
    metric: str | None = None
    error: Exception | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that is sent to another process, with an error that can be sent."""
        return {**vars(self), "error": sendable(self.error)}

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.method, self.metric, self.reason)))


def failures_from_plain(plain: Any) -> list[Failure]:
    """Return saved failures; raise an `InputError` if the data is invalid."""
    return decode(list[Failure], plain, "failures")


def merge_failures(failures: Sequence[Failure], n_methods: int) -> list[Failure]:
    """Merge the failures of an input that are the same for all of several methods.

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
    """Return the failures of the inputs in a slice of the results, each with the `index` of its input.

    An input without a result belongs to the slice of the next input with a result, or of the last one.
    """
    every = sorted({result.index for result in results})
    kept = {result.index for result in results[part]}
    return [
        failure
        for failure in failures
        if not every or every[min(bisect_left(every, failure.index), len(every) - 1)] in kept
    ]
