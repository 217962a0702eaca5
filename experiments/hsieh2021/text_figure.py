"""Draw the criteria of texts over one to five words (Figures 8, 12 and 21).

python experiments/hsieh2021/text_figure.py --results RESULTS
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from curve_figures import add_legend, tidy
from records import interval
from text import MODELS
from text_report import CRITERIA, Results

from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure

CURVES = (
    "random",
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
)
COLOURS = (QUIET, *LINES[:4], "#8c564b", LINES[6], LINES[5])


def draw(results: Results) -> Any:
    """A line of panels for each model, a column for each criterion."""
    figure = new_figure(16, 2.6 * len(MODELS))
    panels = figure.subplots(len(MODELS), len(CRITERIA), squeeze=False)
    for line, model in zip(panels, MODELS, strict=True):
        for axes, (criterion, (title, sign, _)) in zip(line, CRITERIA.items(), strict=True):
            for number, (name, colour) in enumerate(zip(CURVES, COLOURS, strict=True)):
                found = results.curves(model, name, *criterion)
                if found is not None:
                    y = [interval(column).mean for column in found.T]
                    marker = MARKERS[number % len(MARKERS)]
                    axes.plot(np.arange(1, 6), y, color=colour, marker=marker, ms=4, lw=1.2, label=name)
            axes.set_title(f"{title} {'↑' if sign > 0 else '↓'}", loc="left", fontsize=9)
            axes.set_xticks(range(1, 6))
            tidy(axes)
        line[0].set_ylabel(model.replace(", ", ",\n"), fontsize=9, color=QUIET)
    for axes in panels[-1]:
        axes.set_xlabel("first words", fontsize=9, color=QUIET)
    add_legend(figure)
    return figure


def main() -> None:
    """Draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figure21.png")
    arguments = parser.parse_args()
    draw(Results.from_folder(arguments.results)).savefig(arguments.out, dpi=100)


if __name__ == "__main__":
    main()
