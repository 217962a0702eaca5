"""Curves over the share of relevant pixels (Figures 6, 7, 10, 11, 14 to 17), and places (Figure 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import conclusions
import numpy as np
from criteria import REFERENCES
from records import Records, interval
from rows import MAGNITUDE, SIZES

from pertinent.array_types import Floats
from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure

CURVES = (
    "random",
    "gradient" + MAGNITUDE,
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
    "thompson-search",
)
COLOURS = (QUIET, *LINES[:5], "#8c564b", LINES[6], LINES[5], "#bcbd22")


def styles() -> dict[str, dict[str, str]]:
    """The colour and the marker of each row."""
    return {
        name: {"color": colour, "marker": MARKERS[i % len(MARKERS)]}
        for i, (name, colour) in enumerate(zip(CURVES, COLOURS, strict=True))
    }


def radii(records: Records, which: Sequence[str]) -> Any:
    """Radii over the size of the relevant set, a line of panels for each set of images."""
    figure = new_figure(9.6, 3.4 * len(which))
    panels = figure.subplots(len(which), 2, squeeze=False)
    for row, data in enumerate(which):
        for axes, metric in zip(panels[row], (conclusions.IRRELEVANT, conclusions.RELEVANT), strict=True):
            draw(axes, curves_of(records, data, metric))
            what = f"{metric.rpartition(' ')[2]} {'squares' if data == 'photographs' else 'pixels'}"
            axes.set_title(f"{data}: attacks on {what}", loc="left", fontsize=10)
            axes.set_ylabel("L2 radius", fontsize=9, color=QUIET)
    add_legend(figure)
    return figure


def logits(records: Records, data: str) -> Any:
    """Logits by insertion (above) and deletion (below) over the size of the relevant set, by reference."""
    figure = new_figure(2.6 * len(REFERENCES) + 1.6, 5.6)
    panels = figure.subplots(2, len(REFERENCES), squeeze=False)
    logit = conclusions.main_logit(records, data)
    for line, kind in zip(panels, ("insertion", "deletion"), strict=True):
        for axes, reference in zip(line, REFERENCES, strict=True):
            draw(axes, curves_of(records, data, kind + logit, reference=reference))
            axes.set_title(f"{kind}, {conclusions.reference_name(reference)}", loc="left", fontsize=10)
        line[0].set_ylabel(logit.strip(), fontsize=9, color=QUIET)
    add_legend(figure)
    return figure


def curves_of(records: Records, data: str, metric: str, **settings: object) -> dict[str, Floats]:
    """The curves (images, sizes) of each row that has any, of the images that all of them have.

    Rows without signs, as gradients of squares, are there by their own name alone.
    """
    found = {}
    for name in CURVES:
        own = records.values(data, name, metric, **settings)
        plain = name.removesuffix(MAGNITUDE)
        found[name] = records.values(data, plain, metric, **settings) if own is None else own
    curves = {name: own for name, own in found.items() if own is not None and own.ndim == 2}
    n = min((len(own) for own in curves.values()), default=0)
    return {name: own[:n] for name, own in curves.items()}


def draw(axes: Any, curves: dict[str, Floats]) -> None:
    """The mean over images of each row's curve, with its 95% interval."""
    every = styles()
    for number, (name, found) in enumerate(curves.items()):
        points = [interval(column) for column in found.T]
        x = 100 * np.array(SIZES) + 0.12 * (number - len(curves) / 2)
        mean, low, high = (np.array([getattr(p, of) for p in points]) for of in ("mean", "low", "high"))
        error = np.stack([mean - low, high - mean])
        axes.errorbar(x, mean, yerr=error, ms=4, lw=1.3, elinewidth=0.7, label=name, **every[name])
    axes.set_xlabel("relevant, %", fontsize=9, color=QUIET)
    tidy(axes)


def places(records: Records, data: str) -> Any:
    """The place of each method among the paper's, by reference value."""
    figure = new_figure(9.6, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    logit = conclusions.main_logit(records, data)
    for axes, kind in zip(panels, ("insertion", "deletion"), strict=True):
        for number, (name, style) in enumerate(styles().items()):
            at = [
                conclusions.place(records, data, name, kind + logit, reference=reference)
                for reference in REFERENCES
            ]
            if None in at:
                continue
            shift = 0.03 * (number - len(CURVES) / 2)
            y = [own[0] + shift for own in at if own is not None]
            axes.plot(y, ms=5, lw=1.2, label=name, **style)
        axes.set_xticks(range(len(REFERENCES)), [conclusions.reference_name(own) for own in REFERENCES])
        axes.set_title(f"{data}: {kind}", loc="left", fontsize=10)
        axes.set_xlabel("reference value", fontsize=9, color=QUIET)
        tidy(axes)
    panels[0].set_ylabel("place", fontsize=9, color=QUIET)
    panels[0].invert_yaxis()
    add_legend(figure)
    return figure


def add_legend(figure: Any) -> None:
    """The names of all rows that are drawn, on the right."""
    labels: dict[str, Any] = {}
    for axes in figure.axes:
        labels |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(labels.values(), labels.keys(), fontsize=8, frameon=False, loc="outside right center")


def tidy(axes: Any) -> None:
    """Remove the upper and right spines, and make tick labels small."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
