"""Attacks on sets of features: how little had to change, and to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, overload

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.errors import InputError
from pertinent.inputs.array_input import ArrayInput
from pertinent.inputs.base import Input
from pertinent.results.failures import Failure


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """The attacks on one input.

    Attributes
    ----------
    sets
        The features that each attack could change (sets, features).
    radii
        The norm of the smallest perturbation found of each set, infinite if none was found. Of a table
        row in standard deviations of the background's columns; of a text, of the word embeddings.
    changes
        The perturbations, in the shape of the input; of a text (sets, tokens, width).
    passes
        Passes of the model that each attack made, a backward pass counting as one.
    prediction, decided, toward
        What the model predicts, the name of the class that the attack left, and of the one it was to reach.
    """

    input: Input
    index: int
    sets: Masks
    radii: Floats
    changes: Array
    passes: Ints
    prediction: Floats
    decided: str
    toward: str | None
    norm: str

    @property
    def found(self) -> Masks:
        """For which sets an attack was found."""
        return np.isfinite(self.radii)

    @property
    def perturbed(self) -> Array:
        """The inputs after the attacks (sets, …); of sets without attack, the input as it is."""
        if not isinstance(self.input, ArrayInput):
            raise InputError("The perturbed embeddings of a text are no text: see `changes`.")
        return self.input.as_read(np.asarray(self.input.array + self.changes))

    def __repr__(self) -> str:
        n, n_found = len(self.radii), int(self.found.sum())
        aim = f"from {self.decided!r}" + (f" to {self.toward!r}" if self.toward is not None else "")
        sets = f"{n} set{'s' * (n != 1)}"
        if not n_found:
            return f"<Attacked {aim}: no attack found in {sets}>"
        best = self.radii.min()
        return f"<Attacked {aim}: {n_found} of {sets}, smallest {self.norm} radius {best:.4g}>"


class Attacks(Sequence[Attacked]):
    """The attacked inputs in their order, and the `failures` of the others."""

    def __init__(self, attacked: Sequence[Attacked], failures: Sequence[Failure] = ()) -> None:
        self._attacked = tuple(attacked)
        self.failures = tuple(failures)

    @overload
    def __getitem__(self, index: int) -> Attacked: ...

    @overload
    def __getitem__(self, index: slice) -> Attacks: ...

    def __getitem__(self, index: int | slice) -> Attacked | Attacks:
        if isinstance(index, slice):
            return Attacks(self._attacked[index])
        return self._attacked[index]

    def __len__(self) -> int:
        return len(self._attacked)

    def __iter__(self) -> Iterator[Attacked]:
        return iter(self._attacked)

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
            }
            for own in self
            for place, radius in enumerate(own.radii.tolist())
        ]

    def to_json(self) -> str:
        """The rows, with what was decided and the aim; the radius is null where no attack was found."""
        decided = {
            own.index: {"decided": own.decided, "toward": own.toward, "norm": own.norm} for own in self
        }
        found = [
            row | decided[row["input"]] | {"radius": row["radius"] if isfinite(row["radius"]) else None}
            for row in self.rows
        ]
        return json.dumps(found, ensure_ascii=False, indent=2)

    def to_pandas(self) -> Any:
        """A data frame of the rows."""
        from pertinent._optional import optional

        return optional("pandas").DataFrame(self.rows, columns=["input", "features", "radius", "passes"])

    def __rich__(self) -> Any:
        from pertinent.report.attack_table import rendered

        return rendered(self)
