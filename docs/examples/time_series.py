"""Time series as a modality from outside the package: explained, saved, drawn, on the web page, in a study.

A feature is a segment: some neighbouring points of the series. A removed segment takes the mean of the
series, or is bridged by a straight line.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from rich.console import Console
from rich.text import Text

import pertinent
from pertinent.array_types import Array, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import Shape
from pertinent.inputs.base import ArrayInput
from pertinent.inputs.modality import Modality, modalities
from pertinent.removals import Removal, removals
from pertinent.rendering.colours import DARK, LIGHT, MARKS, mark_numbers, shade
from pertinent.rendering.drawings import Drawing
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel

# -- the input: its fields are saved and read by their annotations ----------------------------------


@dataclass(frozen=True, eq=False)
class SeriesInput(ArrayInput):
    """A series, with the segment index of each point."""

    values: Annotated[Array, Shape(None)]
    owners: Annotated[Ints, Shape(None)]
    kind: ClassVar[str] = "time-series"

    def feature_values(self) -> Array:
        """Return the mean of each segment, for data frames."""
        return np.bincount(self.owners, self.values) / np.bincount(self.owners)


# -- how it is drawn, in the terminal, in HTML and in a plot ------------------------------------------


class SeriesDrawing(Drawing):
    """Draws the line of the series, its segments shaded by their scores."""

    lists_features = False
    plot_height = 1.8

    def terminal(self, panel: Panel, console: Console, width: int, *, colour: bool) -> Iterator[Text]:
        """Yield a bar for each of at most `width` points; without colour, a line of marks below."""
        del console
        input = panel.explanation.input
        points = np.linspace(0, len(input.values) - 1, min(width, len(input.values))).astype(int)
        height = (input.values - input.values.min()) / (np.ptp(input.values) or 1.0)
        share = panel.share[input.owners[points]]
        line = Text(no_wrap=True)
        for place, own in zip(points, share, strict=True):
            style = f"{DARK.ink} on {shade(own, DARK)}" if colour else ""
            line.append("▁▂▃▄▅▆▇█"[int(7.99 * height[place])], style=style)
        yield line
        if not colour:
            yield Text("".join(MARKS[mark_numbers(share)]).replace(MARKS[2], " "))

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Return a picture as SVG. On the web page, a click on ``data-features`` removes a segment."""
        every = np.ones(len(panel.share), dtype=bool)
        fills = [shade(share) for share in panel.share]
        return self.picture(panel.explanation.input, every, fills, 60 if small else 120)

    def picture(self, input: Any, shown: Masks, fills: Sequence[str], height: int = 120) -> Markup:
        """Return the line of the shown segments, each over a rectangle."""
        low, scale = input.values.min(), 100 / (np.ptp(input.values) or 1.0)
        ups = 100 - scale * (input.values - low)
        rectangle = Markup('<rect x="{}" y="-5" width="{}" height="110" fill="{}" data-features="{}"/>')
        style = 'fill="none" stroke="#1b1d22" vector-effect="non-scaling-stroke" pointer-events="none"'
        line = Markup('<polyline points="{}" {}/>')
        parts = []
        for i in np.flatnonzero(shown):
            times = np.flatnonzero(input.owners == i)
            points = range(times[0], min(times[-1] + 2, len(ups)))
            parts += [
                rectangle.format(times[0], len(times), fills[i], i),
                line.format(" ".join(f"{t + 0.5},{ups[t]:.1f}" for t in points), Markup(style)),
            ]
        svg = '<svg viewBox="0 -5 {} 110" width="100%" height="{}" preserveAspectRatio="none">{}</svg>'
        return Markup(svg).format(len(ups), height, Markup().join(parts))

    def html_study(self, input: Any, chosen: Masks, *, alone: bool = False, can_mark: bool = False) -> Markup:
        """Return the picture with the chosen segments in colour, in a study; alone, only they are drawn."""
        shown = chosen if alone else np.ones_like(chosen)
        picture = self.picture(input, shown, [LIGHT.support if own else LIGHT.ground for own in chosen])
        segments = [np.flatnonzero(input.owners == i) / len(input.values) for i in range(len(chosen))]
        boxes = [
            (i, input.features[i], times[0], 0.0, len(times) / len(input.values), 1.0)
            for i, times in enumerate(segments)
        ]
        return from_template("study_picture.html", picture=picture, boxes=boxes if can_mark else [])

    def plot(self, axes: Any, panel: Panel) -> None:
        """Draw the line over a band for each segment."""
        input = panel.explanation.input
        for i, share in enumerate(panel.share):
            own = np.flatnonzero(input.owners == i)
            axes.axvspan(own[0] - 0.5, own[-1] + 0.5, color=shade(share), lw=0)
        axes.plot(input.values, color=LIGHT.ink, lw=1.2)
        axes.margins(x=0)


# -- the modality: how raw values are prepared, and which removal and drawing suit them -------------


@modalities.register("time-series")
@dataclass(frozen=True)
class TimeSeries(Modality):
    """A one-dimensional array, cut into segments of nearly equal length."""

    summary = "a time series: a one-dimensional array"
    input_type = SeriesInput
    features = "segments:12"
    dimensions = (1,)
    nouns = ("series", "segment")
    default_removal = "interpolation"
    drawing = SeriesDrawing

    def prepare(self, raw: Any, features: str | None = None) -> SeriesInput:
        """Cut a series into segments, 12 for ``"segments:12"``."""
        values = np.asarray(raw, dtype=np.float64)
        granularity = features or self.features
        starts = np.linspace(0, len(values), int(granularity.partition(":")[2]) + 1).round().astype(int)
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        names = tuple(f"{a}–{b - 1}" for a, b in pairwise(starts))
        return SeriesInput(values, names, granularity, (), digest(values, owners), values, owners)


# -- a custom removal; `mean`, `constant` and `uniform-noise` also work for all arrays ---------------


@removals.register("interpolation")
@dataclass(frozen=True)
class Interpolation(Removal):
    """A straight line between the nearest kept points; the mean if no point is kept."""

    inputs = SeriesInput
    summary = "bridged by a straight line"

    def __call__(self, input: SeriesInput, masks: Masks, seed: int) -> Array:
        """Return one series for each mask."""
        del seed
        time = np.arange(len(input.values))
        rows = []
        for kept in masks[:, input.owners]:
            full = np.interp(time, time[kept], input.values[kept]) if kept.any() else input.values.mean()
            rows.append(np.broadcast_to(full, input.values.shape))
        return np.stack(rows)


# -- a model, and its explanation -------------------------------------------------------------------


def pulse(series: Array) -> Array:
    """Return the probability that each row of an array (n, length) has a pulse; a dip lowers it."""
    from_median = series - np.median(series, axis=1, keepdims=True)
    chance = 1 / (1 + np.exp(1 - 2 * from_median.max(axis=1) - 1.5 * from_median.min(axis=1)))
    return np.stack([1 - chance, chance], axis=1)


def main(folder: Path) -> pertinent.Explanation:
    """Explain a series with a pulse at 72 and a dip at 25, and write the results to a folder."""
    time = np.arange(120)
    bump = {at: np.exp(-(((time - at) / 2) ** 2)) for at in (25, 72)}
    series = np.sin(time / 9) / 2 - 2 * bump[25] + 3 * bump[72]
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
    Console().print(again)
    return again


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
