"""Attacks on sets of features: how little had to change, and to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.serialization import Index, PlainData, Shape, decode_fields, encode, expect
from pertinent.errors import InputError
from pertinent.inputs.base import ArrayInput, Input
from pertinent.inputs.modality import input_from_dict
from pertinent.number_format import number_text
from pertinent.results.base import ResultSequence
from pertinent.results.failures import failures_from_plain


def not_attacked(names: Sequence[str]) -> str:
    """The sentence that says which features an attack left as they are."""
    return f"Without a value (NaN), so left as they are by attacks: {', '.join(names)}."


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """The attacks on one input.

    Attributes
    ----------
    sets
        The features that each attack could change (sets, features).
    radii
        The norm of the smallest perturbation found for each set, infinite if none was found. For a table row
        in standard deviations of the background's columns; for a text that of the word embeddings.
    changes
        The perturbations, in the shape of the input; for a text (sets, tokens, width).
    passes
        Passes of the model that each attack made, a backward pass counting as one.
    prediction, decided, toward
        What the model predicts, the name of the class that the attack left, and of the one it was to reach.
    """

    input: Input = field(compare=False)
    index: Index
    sets: Annotated[Masks, Shape("sets", "features")]
    radii: Annotated[Floats, Shape("sets")]
    changes: Array = field(compare=False)
    passes: Annotated[Ints, Shape("sets")]
    prediction: Floats
    decided: str
    toward: str | None
    norm: str

    @property
    def found(self) -> Masks:
        """For which sets an attack was found."""
        return np.isfinite(self.radii)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The features of its sets that have no value (NaN), and were left as they are."""
        members = {self.input.features[i] for i in np.flatnonzero(self.sets.any(axis=0))}
        return tuple(name for name in self.input.missing_features() if name in members)

    @property
    def perturbed(self) -> Array:
        """The inputs after the attacks (sets, …); of sets without attack, the input as it is."""
        if not isinstance(self.input, ArrayInput):
            raise InputError("The perturbed embeddings of a text are no text: see `changes`.")
        return self.input.as_read(np.asarray(self.input.array + self.changes))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; the radius of a set without attack is not finite."""
        return {
            **encode(self),
            "changes": encode(self.changes),
            "features": list(self.input.features),
            "input": self.input.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attacked:
        """The inverse of `to_dict`; an `InputError` says what attacks cannot be made of."""
        data = PlainData(plain, "attacked")
        features, n = data.texts("features"), len(data.value("sets", list[Any]))
        input = input_from_dict(data.mapping("input"), features)
        shape = input.array.shape if isinstance(input, ArrayInput) else (None, None)
        fields = decode_fields(cls, plain, sets=n, features=len(features))
        fields["radii"] = np.nan_to_num(fields["radii"], nan=inf)  # JSON has no infinity
        expect(bool((fields["radii"] >= 0).all()), "radii", "at least 0", fields["radii"].tolist())
        return cls(input=input, changes=data.floats("changes", n, *shape), **fields)

    def __repr__(self) -> str:
        n, n_found = len(self.radii), int(self.found.sum())
        aim = f"from {self.decided!r}" + (f" to {self.toward!r}" if self.toward is not None else "")
        sets = f"{n} set{'s' * (n != 1)}"
        if not n_found:
            return f"<Attacked {aim}: no attack found in {sets}>"
        best = self.radii.min()
        return f"<Attacked {aim}: {n_found} of {sets}, smallest {self.norm} radius {number_text(best)}>"


class Attacks(ResultSequence[Attacked]):
    """The attacked inputs in their order, and the `failures` of the others."""

    kind = "attacks"

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Attacks on {len(self)} input{'s' * (len(self) != 1)}{failed}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each set of each input: the features that could change, the radius and the passes."""
        return [
            {
                "input": own.index,
                "features": [own.input.features[i] for i in np.flatnonzero(own.sets[place])],
                "radius": radius,
                "passes": int(own.passes[place]),
                "decided": own.decided,
                "toward": own.toward,
                "norm": own.norm,
            }
            for own in self
            for place, radius in enumerate(own.radii.tolist())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; the `rows` are there for readers other than `read`."""
        return {
            "rows": self.rows,
            "attacked": [own.to_dict() for own in self],
            "failures": encode(self.failures),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attacks:
        """The inverse of `to_dict`; an `InputError` says what attacks cannot be made of."""
        data = PlainData(plain, "attacks")
        attacked = [Attacked.from_dict(each) for each in data.value("attacked", list[Any])]
        return cls(attacked, failures_from_plain(data.value("failures")))

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per input and set."""
        return optional("pandas").DataFrame(self.rows)
