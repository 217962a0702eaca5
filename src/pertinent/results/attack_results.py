"""Results of attacks on sets of features: the smallest perturbations that change a prediction."""

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


def unattacked_note(names: Sequence[str]) -> str:
    """Return the note on features without a value, which attacks cannot change."""
    return f"Not changed by attacks because they have no value (NaN): {', '.join(names)}."


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """Attacks on one input.

    Attributes
    ----------
    input, index
        The input and its index.
    sets
        Features that each attack could change (sets, features).
    radii
        Norm of the smallest perturbation of each set, infinite if none was found. Table rows are measured in
        standard deviations of the background's columns, texts by their word embeddings.
    changes
        Perturbations in the shape of the input; for a text (sets, tokens, width).
    passes
        Number of model passes in each attack; a backward pass counts as one.
    prediction, predicted
        Model output for the whole input, and the name of the predicted class.
    toward
        Name of the target class of the attack; ``None`` for any other class.
    norm
        Norm that measures a perturbation.
    """

    input: Input = field(compare=False)
    index: Index
    sets: Annotated[Masks, Shape("sets", "features")]
    radii: Annotated[Floats, Shape("sets")]
    changes: Array = field(compare=False)
    passes: Annotated[Ints, Shape("sets")]
    prediction: Floats
    predicted: str
    toward: str | None
    norm: str

    @property
    def succeeded(self) -> Masks:
        """Return which attacks succeeded (sets,)."""
        return np.isfinite(self.radii)

    @property
    def unattacked(self) -> tuple[str, ...]:
        """Return the features in the sets that have no value (NaN) and are never changed."""
        members = {self.input.features[i] for i in np.flatnonzero(self.sets.any(axis=0))}
        return tuple(name for name in self.input.missing_features() if name in members)

    @property
    def perturbed(self) -> Array:
        """Return the inputs after the attacks (sets, …); unchanged if the attack failed."""
        if not isinstance(self.input, ArrayInput):
            raise InputError("`perturbed` requires an image or a table row; for texts use `changes`.")
        return self.input.as_read(np.asarray(self.input.array + self.changes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts; the radius of a failed attack is infinite."""
        return {
            **encode(self),
            "changes": encode(self.changes),
            "features": list(self.input.features),
            "input": self.input.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attacked:
        """Create the result from the output of `to_dict`; an `InputError` names an invalid field."""
        data = PlainData(plain, "attacked")
        features, n = data.texts("features"), len(data.value("sets", list[Any]))
        input = input_from_dict(data.mapping("input"), features)
        shape = input.array.shape if isinstance(input, ArrayInput) else (None, None)
        fields = decode_fields(cls, plain, sets=n, features=len(features))
        fields["radii"] = np.nan_to_num(fields["radii"], nan=inf)  # JSON has no infinity
        expect(bool((fields["radii"] >= 0).all()), "radii", "at least 0", fields["radii"].tolist())
        return cls(input=input, changes=data.floats("changes", n, *shape), **fields)

    def __repr__(self) -> str:
        n, n_succeeded = len(self.radii), int(self.succeeded.sum())
        aim = f"from {self.predicted!r}" + (f" to {self.toward!r}" if self.toward is not None else "")
        sets = f"{n} set{'s' * (n != 1)}"
        if not n_succeeded:
            return f"<Attacked {aim}: no attack found in {sets}>"
        best = number_text(self.radii.min())
        return f"<Attacked {aim}: {n_succeeded} of {sets}, smallest {self.norm} radius {best}>"


class Attacks(ResultSequence[Attacked]):
    """Attacked inputs in order, and the `failures` of the others."""

    kind = "attacks"
    item_class = Attacked

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each set of each input: its features, the radius and the passes."""
        return [
            {
                "input": each.index,
                "features": [each.input.features[i] for i in np.flatnonzero(mask)],
                "radius": radius,
                "passes": passes,
                "predicted": each.predicted,
                "toward": each.toward,
                "norm": each.norm,
            }
            for each in self
            for mask, radius, passes in zip(each.sets, each.radii.tolist(), each.passes.tolist(), strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts; the `rows` are for readers other than `read`."""
        return {"rows": self.rows, **super().to_dict()}

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per input and set."""
        return optional("pandas").DataFrame(self.rows)
