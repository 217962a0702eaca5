"""Time series as a modality of their own: explained, saved, read and drawn, from outside the package.

A feature is a segment: some neighbouring points of the series. A removed segment takes the mean of the
series, or is bridged by a straight line.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

import pertinent
from pertinent.array_types import Array, Ints, Masks
from pertinent.decoding import Shape
from pertinent.digests import digest
from pertinent.inputs.array_input import ArrayInput
from pertinent.inputs.modality import Modality, modalities
from pertinent.removal import Removal, removals

# -- the input: its fields are saved and read by their annotations ----------------------------------


@dataclass(frozen=True, eq=False)
class SeriesInput(ArrayInput):
    """A series, and the number of the segment that each of its points belongs to."""

    values: Annotated[Array, Shape(None)]
    owners: Annotated[Ints, Shape(None)]
    kind: ClassVar[str] = "time-series"

    def feature_values(self) -> Array:
        """The mean of each segment, for data frames."""
        return np.bincount(self.owners, self.values) / np.bincount(self.owners)


# -- the modality: how raw values are prepared, and which removal and drawing suit them -------------


@modalities.register("time-series")
@dataclass(frozen=True)
class TimeSeries(Modality):
    """A one-dimensional array, cut into segments of nearly equal length."""

    summary = "a time series: a one-dimensional array"
    input_type = SeriesInput
    plural = "time series"
    features = "segments:12"
    dimensions = (1,)
    default_removal = "interpolation"

    def prepare(self, raw: Any, features: str | None = None) -> SeriesInput:
        """Cut a series into as many segments as ``"segments:12"`` says."""
        values = np.asarray(raw, dtype=np.float64)
        granularity = features or self.features
        starts = np.linspace(0, len(values), int(granularity.partition(":")[2]) + 1).round().astype(int)
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        names = tuple(f"{a}–{b - 1}" for a, b in pairwise(starts))
        return SeriesInput(values, names, granularity, (), digest(values, owners), values, owners)


# -- a removal of its own; `mean`, `constant` and `uniform-noise` suit every array ------------------


@removals.register("interpolation")
@dataclass(frozen=True)
class Interpolation(Removal):
    """A straight line between the nearest points that are kept; the mean if none is."""

    inputs = SeriesInput
    summary = "bridged by a straight line"

    def __call__(self, input: SeriesInput, masks: Masks, seed: int) -> Array:
        """One series for each mask."""
        del seed
        time = np.arange(len(input.values))
        rows = []
        for kept in masks[:, input.owners]:
            full = np.interp(time, time[kept], input.values[kept]) if kept.any() else input.values.mean()
            rows.append(np.broadcast_to(full, input.values.shape))
        return np.stack(rows)


# -- a model, and what it rests on ------------------------------------------------------------------


def pulse(series: Array) -> Array:
    """The probability that there is a pulse in each row of an array (n, length)."""
    height = np.abs(series - np.median(series, axis=1, keepdims=True)).max(axis=1)
    chance = 1 / (1 + np.exp(6 - 4 * height))
    return np.stack([1 - chance, chance], axis=1)


def main(folder: Path) -> pertinent.Explanation:
    """Explain a series with a pulse at 70 to 74, and write what is found into a folder."""
    time = np.arange(120)
    series = np.sin(time / 9) / 2 + 2.5 * np.exp(-(((time - 72) / 2) ** 2))
    model = pertinent.wrap(pulse, kind="time-series", classes=["calm", "pulse"])

    e = pertinent.explain(model, series, method="shapley-sampling", samples=50, seed=0, progress=False)
    assert e.top(1)[0][0] == "70–79"
    by_mean = pertinent.explain(model, series, removal="mean", features="segments:24", progress=False)
    assert by_mean.top(1)[0][0] == "70–74"

    e.save(folder / "series.parquet")
    again = pertinent.read(folder / "series.parquet")[0]
    assert again.input.kind == "time-series"
    np.testing.assert_array_equal(again.input.values, series)
    np.testing.assert_array_equal(again.scores, e.scores)

    again.plot().savefig(folder / "series.png")
    (folder / "series.html").write_text(again.to_html(), encoding="utf-8")
    return again


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
