"""Explanation of a step of an agent through the steps before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pertinent._optional import optional
from pertinent.config.serialization import NOT_FINITE, PlainData, decode_fields, encode
from pertinent.config.settings import Count, checked
from pertinent.results.base import Result
from pertinent.results.explanation import Explanation, Explanations

if TYPE_CHECKING:
    from typing import Self

CLEAR = 1.96
"""Standard errors by which an effect must exceed 0 to count."""


@dataclass(frozen=True)
class Hop:
    """Dependence of a step on a part of its context, or of a tool's result on the call.

    Attributes
    ----------
    step, part
        Names of the step, or of the result, and of what it depends on.
    score, standard_error
        Effect of the part on the step, and its standard error; NaN without an explanation.
    share
        Share of the part in the clear positive effects on the step.
    """

    step: str
    part: str
    score: Annotated[float, NOT_FINITE]
    standard_error: Annotated[float, NOT_FINITE]
    share: float


@dataclass(frozen=True, eq=False)
class Hops(Result):
    """Explanation of a step of an agent through the steps before it.

    Attributes
    ----------
    texts
        Text of each part and step by name, in order; the explained step is the last.
    steps
        Names of the steps, in order.
    hops
        Dependences of steps on parts of their contexts, and of tools' results on calls.
    shares
        For each name, its share in the explained step: products of shares along each path of effects, summed.
    shares_with_calls
        The same, if the share of a tool's result is passed on to its call and what led to the call.
    explanations
        An explanation of each step that has an important share, in order; its `id` is the name of the step.
    threshold
        Smallest share of an important step.
    notes
        Notes on the trace, such as spans that were skipped.
    """

    kind = "hops"

    texts: Mapping[str, str]
    steps: tuple[str, ...]
    hops: tuple[Hop, ...]
    shares: Mapping[str, float]
    shares_with_calls: Mapping[str, float]
    explanations: Explanations
    threshold: float
    notes: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Return the name of the explained step."""
        return self.steps[-1]

    @property
    def unused(self) -> list[str]:
        """Return the steps on which the explained step does not depend: those with a small share."""
        return [name for name in self.steps[:-1] if self.share(name) < self.threshold]

    def share(self, name: str) -> float:
        """Return the share to show: for steps, with the calls whose results were used."""
        shares = self.shares_with_calls if name in self.steps else self.shares
        return shares.get(name, 0.0)

    @checked
    def top(self, k: Count = 5) -> list[tuple[str, float]]:
        """Return the k sources with the largest shares: parts that the agent did not write."""
        sources = [(name, self.share(name)) for name in self.texts if name not in self.steps]
        return sorted(sources, key=lambda source: -source[1])[:k]

    def hops_of(self, step: str) -> list[Hop]:
        """Return the dependences of a step with a share, strongest first."""
        found = [hop for hop in self.hops if hop.step == step and hop.share > 0]
        return sorted(found, key=lambda hop: -hop.share)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts."""
        return {
            "texts": dict(self.texts),
            "steps": list(self.steps),
            "hops": encode(self.hops),
            "shares": dict(self.shares),
            "shares_with_calls": dict(self.shares_with_calls),
            "explanations": self.explanations.to_dict(),
            "threshold": self.threshold,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Create the result from the output of `to_dict`; an `InputError` names an invalid field."""
        data = PlainData(plain, "hops")
        hops = [Hop(**decode_fields(Hop, each)) for each in data.value("hops", list[Any])]
        return cls(
            texts=data.value("texts", dict[str, str]),
            steps=tuple(data.texts("steps")),
            hops=tuple(hops),
            shares=data.value("shares", dict[str, float]),
            shares_with_calls=data.value("shares_with_calls", dict[str, float]),
            explanations=Explanations.from_dict(data.mapping("explanations")),
            threshold=data.value("threshold", float),
            notes=tuple(data.texts("notes")),
        )

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per dependence."""
        return optional("pandas").DataFrame(
            [
                {
                    "step": hop.step,
                    "part": hop.part,
                    "text": self.texts.get(hop.part, ""),
                    "score": hop.score,
                    "standard_error": hop.standard_error,
                    "share": hop.share,
                }
                for hop in self.hops
            ]
        )

    def __repr__(self) -> str:
        best = ", ".join(f"{name!r} {share:.0%}" for name, share in self.top(3))
        return f"<Hops to {self.target!r}: {best}>"


def hops_in(e: Explanation, step: str, names: Sequence[str]) -> Iterator[Hop]:
    """Yield the dependence of a step on each named part, with its share of clear positive effects."""
    errors = np.zeros_like(e.scores) if e.standard_errors is None else e.standard_errors
    clear = np.where(e.scores > CLEAR * errors, np.maximum(e.scores, 0.0), 0.0)
    shares = clear / (clear.sum() or 1.0)
    errors = np.full_like(e.scores, np.nan) if e.standard_errors is None else errors
    for name, score, error, share in zip(names, e.scores, errors, shares, strict=True):
        yield Hop(step, name, float(score), float(error), float(share))
