"""Figures of feature interactions: arcs over a text, a heat map, a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.rendering import pairs
from pertinent.rendering import wording as say
from pertinent.rendering.colours import LIGHT, Look, shade
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.plots import QUIET, add_colour_bar, add_key, new_figure
from pertinent.rendering.wording import clipped
from pertinent.results.explanation import Explanation
from pertinent.results.interactions import interactions_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDEST = 120
"""Largest number of characters in the line of words below arcs."""

_CHARACTER = 0.082
"""Width of a character below arcs, in inches."""

_MOST_FEATURES = 20
_LONGEST = 18


def show(e: Explanation, kind: str | None = None, top: int = 20) -> Figure:
    """Return a figure of `kind`; by default arcs over a text, or a heat map and a network for a table row."""
    interactions_of(e)
    if kind is None:
        kind = "heat map and network" if drawing_of(e.input).lists_features else "heat map"
        kind = "arcs" if drawing_of(e.input).underlines else kind
    arcs = pairs.arcs(e, top, _WIDEST)
    width = {"arcs": max(6.4, 0.6 + _CHARACTER * arcs.width), "heat map and network": 11.0}.get(kind, 6.0)
    figure = new_figure(width, 3.4 if kind == "arcs" else 4.8)
    panels = figure.subplots(1, 2 if kind == "heat map and network" else 1, squeeze=False)[0].tolist()
    if kind == "arcs":
        _draw_arcs(panels[0], e, arcs)
    if kind.startswith("heat map"):
        _draw_heat_map(panels.pop(0), e, min(top, _MOST_FEATURES))
    if kind.endswith("network"):
        _draw_network(panels.pop(0), e, min(top, _MOST_FEATURES))
    title = f"{clipped(e.target_name)} ({clipped(say.amount(e, e.target))}) · features acting together"
    figure.suptitle(title, x=0.02, ha="left", fontsize=10, parse_math=False)
    add_key(figure, pairs.directions(e))
    return figure


def _draw_arcs(axes: Any, e: Explanation, arcs: pairs.Arcs) -> None:
    """Draw the words in a line, shaded by score, and an arc for each pair."""
    patch, share = optional("matplotlib.patches").Arc, say.relative_scores(e)
    for arc in arcs.arcs:
        middle, height = (arc.left + arc.right) / 2, arcs.height(arc, 0.15, 1.0)
        colour = _colour(arc.share, 0.3)
        axes.add_patch(
            patch(
                (middle, 0),
                arc.right - arc.left,
                2 * height,
                theta2=180,
                color=colour,
                lw=1 + 4 * abs(arc.share),
            )
        )
    for word in arcs.words:
        ground = "none" if word.feature is None else shade(float(share[word.feature]))
        axes.text(
            word.centre,
            -0.06,
            word.text,
            ha="center",
            va="top",
            family="monospace",
            fontsize=9,
            color=LIGHT.ink,
            parse_math=False,
            bbox={"facecolor": ground, "edgecolor": "none", "pad": 1.5},
        )
    axes.set(xlim=(-1, arcs.width + 1), ylim=(-0.25, 1.05))
    axes.set_axis_off()


def _draw_heat_map(axes: Any, e: Explanation, top: int) -> None:
    """Draw the interactions of the features in the strongest pairs."""
    features = pairs.joined_features(e, top)
    values = interactions_of(e)[np.ix_(features, features)]
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    axes.imshow(values, cmap=Look().scale(), vmin=-largest, vmax=largest)
    names = [clipped(e.features[i], _LONGEST) for i in features]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    add_colour_bar(axes.figure, largest, "interaction", look=Look(), is_clipped=False, axes=axes)


def _draw_network(axes: Any, e: Explanation, top: int) -> None:
    """Draw features on a circle, with sizes by score, joined by lines for the strongest pairs."""
    features = pairs.joined_features(e, top)
    share, score = pairs.relative_interactions(e), say.relative_scores(e)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(features)) / max(1, len(features))
    points = dict(zip(features, np.stack([np.cos(angle), np.sin(angle)], axis=1), strict=True))
    for i, j in reversed(pairs.shown_pairs(e, top).tolist()):
        if i in points and j in points:
            (x, y), (other_x, other_y) = points[i], points[j]
            width = 0.5 + 5 * abs(share[i, j])
            axes.plot([x, other_x], [y, other_y], color=_colour(share[i, j], 0.3), lw=width, zorder=1)
    for i, (x, y) in points.items():
        colour = shade(float(score[i]))
        axes.scatter(x, y, s=40 + 260 * abs(score[i]), color=colour, edgecolor=QUIET, lw=0.8, zorder=2)
        side = "left" if x > 0.05 else "right" if x < -0.05 else "center"
        axes.text(
            1.15 * x,
            1.15 * y,
            clipped(e.features[i], _LONGEST),
            ha=side,
            va="center",
            fontsize=8,
            parse_math=False,
        )
    axes.set(xlim=(-1.9, 1.9), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_axis_off()


def _colour(share: float, least: float) -> str:
    """Return the colour of a line for a share of the strongest interaction, with a visible minimum."""
    return shade(float(np.sign(share)) * (least + (1 - least) * abs(float(share))))
