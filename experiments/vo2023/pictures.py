"""Faithfulness against K (Figure 2), quality against cost, and the words that methods choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.shared.figures import draw_interval_curve
from experiments.shared.pages import escape, table
from experiments.vo2023.form_tables import list_words, shorten
from experiments.vo2023.results import PUBLISHED, K, mean_of, runs_of
from experiments.vo2023.sets import TEXTS
from experiments.vo2023.text_tables import ROWS, SIZES
from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure

PLOTTED = [row for row in ROWS if not row.startswith("aim, ")]
COMPARED = ("aim", "l2x", "lime", "vibi")
NAMES = {"imdb": "IMDB", "hatexplain": "HateXplain", "ag_news": "AG News"}
STYLES = dict(zip(PLOTTED, zip((*LINES, "#8c564b", QUIET), MARKERS + "p*", strict=True), strict=True))
"""Colour and marker of each method."""
SHOWN = ("imdb", "ag_news")
"""Not HateXplain: its texts are offensive."""
EXAMPLES = 3
SPARSITY = 0.1
Records = Mapping[str, Any]


def measured_sets(records: Records) -> list[str]:
    """Return the data sets that AIM was measured on."""
    return [dataset for dataset in TEXTS if runs_of(records, dataset, ROWS["aim"])]


def draw_by_size(records: Records) -> Any:
    """Return faithfulness against K; L2X is fitted for each K. The paper's values are dashed."""
    sets = measured_sets(records)
    if not sets:
        return None
    figure = new_figure(1 + 3 * len(sets), 3.2)
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for axes, dataset in zip(panels, sets, strict=True):
        for method, published in PUBLISHED["by_k"][dataset].items():
            colour, marker = STYLES[method]
            axes.plot(SIZES, published, ls="--", marker=marker, mfc="none", color=colour, alpha=0.6, lw=1)
            forms = {k: "l2x" if k == K else f"l2x, K {k}" for k in SIZES}
            points = {}
            for k, form in forms.items():
                runs = runs_of(records, dataset, ROWS["aim"] if method == "aim" else form)
                if (mean := mean_of(runs, f"faithfulness of {k}")) is not None:
                    points[k] = mean
            style: Any = {"marker": marker, "color": colour, "capsize": 2, "label": method, "lw": 1.6}
            draw_interval_curve(axes, list(points), list(points.values()), factor=100, **style)
        axes.set_title(NAMES[dataset], loc="left", fontsize=10)
        axes.set_xticks(SIZES)
        axes.set_xlabel("K, words kept")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("faithfulness, %")
    panels[0].plot([], [], ls="--", color=QUIET, lw=1, label="paper")
    panels[0].legend(fontsize=8, frameon=False)
    return figure


def draw_cost(records: Records) -> Any:
    """Return sufficiency (lower is better) and comprehensiveness against evaluations for each text."""
    sets = measured_sets(records)
    if not sets:
        return None
    figure = new_figure(2.2 + 3 * len(sets), 5.6)
    panels = figure.subplots(2, len(sets), sharex="col", squeeze=False)
    for column, dataset in enumerate(sets):
        for axes, metric in zip(panels[:, column], ("sufficiency", "comprehensiveness"), strict=True):
            for row in PLOTTED:
                runs = runs_of(records, dataset, ROWS[row])
                mean = mean_of(runs, metric)
                if mean is not None:
                    cost = max(1.0, float(np.mean([run["evaluations"] for run in runs])))
                    colour, marker = STYLES[row]
                    style: Any = {"fmt": marker, "color": colour, "ms": 6, "capsize": 2, "label": row}
                    draw_interval_curve(axes, [cost], [mean], **style)
            axes.set_xscale("log")
            axes.grid(alpha=0.25)
        panels[0, column].set_title(NAMES[dataset], loc="left", fontsize=10)
        panels[1, column].set_xlabel("evaluations for each text")
    for axes, metric in zip(panels[:, 0], ("sufficiency ↓", "comprehensiveness ↑"), strict=True):
        axes.set_ylabel(f"{metric} at {SPARSITY:.0%}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    return figure


def examples(records: Records) -> str:
    """Return the first texts that every method explained, with its top words, and AIM's for each class."""
    return "\n".join(_examples(records, name) for name in measured_sets(records) if name in SHOWN)


def _examples(records: Records, dataset: str) -> str:
    first = {row: runs[0]["examples"] for row in COMPARED if (runs := runs_of(records, dataset, ROWS[row]))}
    parts = []
    for number in range(min(EXAMPLES, *map(len, first.values()))):
        shared = {row: each[number] for row, each in first.items()}
        aim = shared["aim"]
        rows = [[f"`{row}`", list_words(own["top"][own["predicted"]])] for row, own in shared.items()]
        rows += [[f"`aim` for {name}", list_words(words)] for name, words in aim["top"].items()]
        title = f"{number + 1}. {escape(shorten(aim['text']))} — **{aim['predicted']}**"
        parts.append(f"{title}\n\n{table(['method', f'top {K} words'], rows)}")
    return f"### {NAMES[dataset]}\n\n" + "\n".join(parts)
