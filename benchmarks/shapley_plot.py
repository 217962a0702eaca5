"""Figure of error by the number of evaluations, with a panel for each family."""

from __future__ import annotations

from typing import Any

import numpy as np

COLOURS = {"shapley": "#c0392b", "kernel-shap": "black", "shapley-sampling": "#777777"}


def plot(errors: dict[tuple[str, int], dict[str, list[float]]], ours: tuple[str, ...], path: str) -> None:
    """Draw our methods thick and peers thin; panels are cut far above our methods."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from PIL import Image

    families = list(dict.fromkeys(family for family, _ in errors))
    rows = -(-len(families) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(13, 3.2 * rows), squeeze=False)
    peers = [name for name in next(iter(errors.values())) if name not in ours]
    styles: dict[str, dict[str, Any]] = {
        name: {"color": f"C{i % 10}", "linewidth": 0.9, "linestyle": "-" if i < 10 else "--"}
        for i, name in enumerate(peers)
    }
    styles |= {name: {"color": COLOURS[name], "linewidth": 2.8, "zorder": 3} for name in ours}
    for axis in axes.flat[len(families) :]:
        axis.axis("off")
    for axis, family in zip(axes.flat, families, strict=False):
        columns = {times: errors[family, times] for other, times in errors if other == family}
        means = {
            name: [float(np.mean(errors_by_name[name])) for errors_by_name in columns.values()]
            for name in [*peers, *ours]
        }
        for name, line in means.items():
            axis.plot(list(columns), line, label=name, **styles[name])
        axis.set(xscale="log", yscale="log", title=family)
        axis.set_ylim(top=20 * max(max(means[name]) for name in ours))
        axis.set_xticks(list(columns), [f"{times}d" for times in columns])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("mean squared error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    spare = axes.flat[len(families)] if len(families) < 4 * rows else axes.flat[-1]
    spare.legend(handles[::-1], labels[::-1], fontsize=7.5, loc="center", frameon=False)
    figure.supxlabel("distinct evaluations")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    if path.endswith(".png"):  # a palette makes it a quarter as large
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
