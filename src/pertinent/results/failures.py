"""Inputs that could not be explained, measured or attacked, and how they are saved and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pertinent.decoding import PlainData, expect


@dataclass(frozen=True)
class Failure:
    """An input for which something failed, and the reason.

    Attributes
    ----------
    index
        The position of the input among those that were given, from 0.
    reason
        The message of the error.
    method
        The method that failed; ``None`` if only one was used, or if all failed for this reason.
    metric
        The metric that could not measure the explanation; ``None`` if something else failed.
    error
        The error itself; it is not saved.
    id
        The user's own name for the input, if one was given.
    """

    index: int
    reason: str
    method: str | None = None
    metric: str | None = None
    error: Exception | None = field(default=None, repr=False, compare=False)
    id: str | None = None

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.method, self.metric, self.reason)))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return {name: getattr(self, name) for name in ("index", "id", "method", "metric", "reason")}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Failure:
        """The inverse of `to_dict`; an `InputError` says what a failure cannot be made of."""
        data = PlainData(plain, "failures")
        texts: dict[str, Any] = {name: data.text(name) for name in ("id", "method", "metric") if name in data}
        return cls(data.whole("index"), data.text("reason"), **texts)


def failures_to_plain(failures: Iterable[Failure]) -> list[dict[str, Any]]:
    """A dict for each failure."""
    return [failure.to_dict() for failure in failures]


def failures_from_plain(plain: Any) -> list[Failure]:
    """The inverse of `failures_to_plain`; files of version 0.1 have lists of index, reason and id."""
    found = []
    for each in PlainData({"failures": plain}, "failures").items("failures"):
        if isinstance(each, list):
            expect(len(each) in (2, 3), "failures", "index, reason and id", each)
            each = dict(zip(("index", "reason", "id"), each, strict=False))
        expect(isinstance(each, dict), "failures", "failures", each)
        found.append(Failure.from_dict(each))
    return found
