"""Attacks on sets of features: how little had to change, and to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, overload

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.decoding import PlainData, encode, expect, wholes
from pertinent.errors import InputError
from pertinent.inputs.base import ArrayInput, Input
from pertinent.inputs.modality import input_from_dict
from pertinent.results.base import Result
from pertinent.results.failures import Failure, failures_from_plain, failures_of


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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; the radius of a set without attack is not finite."""
        names = ("index", "radii", "changes", "passes", "prediction", "decided", "toward", "norm")
        return {
            **{name: encode(getattr(self, name)) for name in names},
            "features": list(self.input.features),
            "sets": [np.flatnonzero(own).tolist() for own in self.sets],
            "input": self.input.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attacked:
        """The inverse of `to_dict`; an `InputError` says what attacks cannot be made of."""
        data = PlainData(plain, "attacked")
        features = data.texts("features")
        input = input_from_dict(data.mapping("input"), features)
        members = [wholes(own, "sets", None) for own in data.items("sets")]
        for own in members:
            expect(bool(np.isin(own, range(len(features))).all()), "sets", "of the features", own.tolist())
        n = len(members)
        radii = np.nan_to_num(data.floats("radii", n), nan=inf)  # JSON has no infinity
        expect(bool((radii >= 0).all()), "radii", "at least 0", radii.tolist())
        shape = input.array.shape if isinstance(input, ArrayInput) else (None, None)
        return cls(
            input=input,
            index=data.whole("index"),
            sets=np.array([np.isin(range(len(features)), own) for own in members]).reshape(n, len(features)),
            radii=radii,
            changes=data.floats("changes", n, *shape),
            passes=data.wholes("passes", n),
            prediction=data.floats("prediction", None),
            decided=data.text("decided"),
            toward=data.text("toward") if "toward" in data else None,
            norm=data.text("norm"),
        )

    def __repr__(self) -> str:
        n, n_found = len(self.radii), int(self.found.sum())
        aim = f"from {self.decided!r}" + (f" to {self.toward!r}" if self.toward is not None else "")
        sets = f"{n} set{'s' * (n != 1)}"
        if not n_found:
            return f"<Attacked {aim}: no attack found in {sets}>"
        best = self.radii.min()
        return f"<Attacked {aim}: {n_found} of {sets}, smallest {self.norm} radius {best:.4g}>"


class Attacks(Result, Sequence[Attacked]):
    """The attacked inputs in their order, and the `failures` of the others."""

    kind = "attacks"

    def __init__(self, attacked: Sequence[Attacked], failures: Sequence[Failure] = ()) -> None:
        self._attacked = tuple(attacked)
        self.failures = tuple(failures)

    @overload
    def __getitem__(self, index: int) -> Attacked: ...

    @overload
    def __getitem__(self, index: slice) -> Attacks: ...

    def __getitem__(self, index: int | slice) -> Attacked | Attacks:
        if isinstance(index, slice):
            return Attacks(self._attacked[index], failures_of(self.failures, self._attacked, index))
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
        attacked = [Attacked.from_dict(each) for each in data.items("attacked")]
        return cls(attacked, failures_from_plain(data.value("failures")))

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per input and set."""
        return optional("pandas").DataFrame(self.rows)
