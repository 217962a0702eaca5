"""Diverging, colour-blind-safe scale of scores: orange supports the explained class, blue opposes it.

Output without colour uses characters instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats
from pertinent.errors import unknown


@dataclass(frozen=True)
class Surface:
    """A background, a text colour that is readable on the whole scale, and the ends of the scale."""

    ground: str
    ink: str
    support: str
    against: str


@dataclass(frozen=True)
class Look:
    """Settings for drawing explanations on a page or in a figure.

    Attributes
    ----------
    colours
        Name of a matplotlib colour map for heat maps from −1 to 1; by default blue to orange, more
        transparent for smaller scores.
    opacity
        Opacity of a heat map over its image, from 0 to 1; by default 0.75 for the largest score.
    compact
        Whether pictures are small, as on a page of many inputs.
    interactive
        Whether features and classes can be clicked, as on the web page.
    folds
        Whether to fold unimportant stretches of long texts.
    """

    colours: str | None = None
    opacity: float | None = None
    compact: bool = False
    interactive: bool = False
    folds: bool = True

    def layer(self, share: Floats) -> Array:
        """Return shares in [−1, 1] as a layer of colour over a picture: bytes (…, red green blue alpha)."""
        opacity = _OPACITY if self.opacity is None else self.opacity
        if self.colours is not None:
            coloured = np.array(self.scale()((share + 1) / 2, bytes=True))
            coloured[..., 3] = round(255 * opacity)
            return coloured
        alpha = np.round(255 * opacity * np.abs(share))[..., None].astype(np.uint8)
        return np.concatenate([rgb(np.sign(share)), alpha], axis=-1)

    def scale(self) -> Any:
        """Return the colour map of scores from −1 to 1."""
        if self.colours is None:
            ends = [LIGHT.against, LIGHT.ground, LIGHT.support]
            return optional("matplotlib.colors").LinearSegmentedColormap.from_list("pertinent", ends)
        colour_maps = optional("matplotlib").colormaps
        if self.colours not in colour_maps:
            raise unknown("colour map", self.colours, colour_maps)
        return colour_maps[self.colours]


_OPACITY = 0.75
_MANY = 50

MARKS = np.array(list("=-.+#"))
"""Characters for shares in output without colour: strongly against, against, weak, for, strongly for."""

_MARKS_FROM = (-0.5, -0.1, 0.1, 0.5)
"""Lower bounds of the shares for the second to the last mark."""

NEUTRAL = "#c9ccd2"
LIGHT = Surface(ground="#ffffff", ink="#1b1d22", support="#f0862a", against="#5a9bd8")
DARK = Surface(ground="#1b1d22", ink="#f4f5f7", support="#a8550a", against="#2b6cb3")


def shares(scores: Floats, floor: float = 0.0) -> Floats:
    """Return scores divided by the largest magnitude, in [−1, 1]; zeros if it is at most `floor`.

    >>> shares(np.array([2.0, -1.0, 0.0]))
    array([ 1. , -0.5,  0. ])
    """
    finite = np.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.abs(finite).max(initial=0.0)
    return finite / largest if largest > floor else np.zeros_like(finite)


def full_colour(share: Floats) -> float:
    """Return the share at which a heat map reaches full colour, so that outliers do not fade the rest.

    It is 1 for up to 50 features with a score, and the 99th percentile of the magnitudes for more.
    """
    size = np.abs(share[share != 0])
    return float(np.quantile(size, 0.99)) if len(size) > _MANY else 1.0


def rgb(share: Floats, surface: Surface = LIGHT) -> Array:
    """Return the colours of shares in [−1, 1], as bytes (…, 3)."""
    share = np.clip(np.asarray(share, dtype=np.float64), -1, 1)[..., None]
    end = np.where(share > 0, _bytes(surface.support), _bytes(surface.against))
    mixed = _bytes(surface.ground) * (1 - np.abs(share)) + end * np.abs(share)
    return np.asarray(np.round(mixed).astype(np.uint8))


def shade(share: float, surface: Surface = LIGHT) -> str:
    """Return the colour of one share, as ``#rrggbb``.

    >>> shade(0.0), shade(1.0), shade(-1.0)
    ('#ffffff', '#f0862a', '#5a9bd8')
    """
    return "#" + bytes(rgb(np.array(share), surface)).hex()


def mark_numbers(share: Floats | float) -> Array:
    """Return the indices into `MARKS` for shares."""
    return np.digitize(share, _MARKS_FROM)


def _bytes(colour: str) -> Floats:
    return np.array(list(bytes.fromhex(colour[1:])), dtype=np.float64)
