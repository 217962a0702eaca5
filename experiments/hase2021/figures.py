"""The paper's figures, drawn from our results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from collect import Key, Results, difference, interval, shown, table
from data import SETS
from methods import GRID, OBJECTIVES
from removals import REMOVALS
from tables import ARROWS, budget_of

from pertinent.array_types import Floats
from pertinent.diagnostics.removal_check import RemovalCheck

SHOWN = (*REMOVALS, "marginalize")


def removal_page(results: Path, pictures: Path) -> str:
    """Figure 2."""
    page = "# Figure 2: how accurate models stay as random tokens go\n\n"
    page += (
        "Accuracy in % on 1,000 dev points when a share of random tokens is removed: ten masks for each "
        "point and majority vote, the same masks for all removals. Models are trained on 10,000 "
        "examples, three seeds; counterfactual-trained (CT) ones with the removal they are tested on, "
        "which cannot be marginalize. With half the width of the 95% interval over points and seeds.\n"
    )
    for which in ("snli", "sst2"):
        found: dict[tuple[str, str, float], Floats] = {}
        for training in ("Standard", "CT"):
            for removal in SHOWN:
                name = "standard" if training == "Standard" else removal
                files = sorted(results.glob(f"removals-{which}-10000-{name}-*.json"))
                checks = [RemovalCheck.read(path) for path in files]
                for share in (0.0, 0.2, 0.5, 0.8) if checks else ():
                    right = [
                        [r.right for r in check.rows if (r.removal.split()[0], r.share) == (removal, share)]
                        for check in checks
                    ]
                    if all(right):
                        found[training, removal, share] = 100 * np.array(right, dtype=float)
        if not found:
            continue
        page += f"\n## {SETS[which].name}\n\n"
        for training in ("Standard", "CT"):
            rows = [
                [removal, *(shown(interval(found[training, removal, s]), 1) for s in (0.0, 0.2, 0.5, 0.8))]
                for removal in _measured(found, training)
            ]
            page += f"{training}:\n\n" + table(["removal", "0%", "20%", "50%", "80%"], rows) + "\n"
        for training in ("Standard", "CT"):
            for share in (0.2, 0.5, 0.8):
                measured = _measured(found, training)
                order = sorted(measured, key=lambda r: -float(found[training, r, share].mean()))
                gaps = ", ".join(_gap(found, training, order[0], other, share) for other in order[1:])
                page += f"- {training}, {share:.0%} removed: {order[0]} is best; ahead of {gaps}.\n"
        picture = f"figure2-{which}.png"
        _plot(found, pictures / picture, SETS[which].name)
        page += f"\n![Accuracy against share removed, {SETS[which].name}]({picture})\n"
    return page


def _measured(found: dict[tuple[str, str, float], Floats], training: str) -> list[str]:
    return [removal for removal in SHOWN if (training, removal, 0.0) in found]


def _gap(found: dict[tuple[str, str, float], Floats], training: str, a: str, b: str, share: float) -> str:
    gap = difference(found[training, a, share], found[training, b, share])
    return f"{b} by {gap.mean:.2f} ({gap.p_text})"


def _plot(found: dict[tuple[str, str, float], Floats], path: Path, title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    colours = dict(zip(SHOWN, ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"), strict=True))
    for axis, training in zip(axes, ("Standard", "CT"), strict=True):
        for place, removal in enumerate(_measured(found, training)):
            boxes = [
                (found[training, removal, 0.0] - found[training, removal, s]).mean(axis=1)
                for s in (0.2, 0.5, 0.8)
            ]
            for column, drops in enumerate(boxes):
                x = np.full(len(drops), column + 0.18 * (place - 1.5))
                label = removal if column == 0 else None
                axis.plot(x, drops, "o", color=colours[removal], label=label, markersize=6, alpha=0.8)
        axis.set_xticks(range(3), ["20%", "50%", "80%"])
        axis.set_xlabel("tokens removed")
        axis.set_title(f"{title}, {training}")
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("drop in accuracy (points)")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def course_page(results: Results, pictures: Path) -> str:
    """Figure 3."""
    from matplotlib.figure import Figure

    page = "# Figure 3: search over time\n\n"
    page += "The metric reached after so many evaluations for each sparsity; counterfactual-trained models.\n"
    searches = ("random-search", "ordered-search", "parallel-local-search", "thompson-search")
    colours = dict(zip(searches, ("#999999", "#E69F00", "#0072B2", "#D55E00"), strict=True))
    for which in SETS:
        if not results.cells(which):
            continue
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        for axis, metric in zip(figure.subplots(1, 2), OBJECTIVES, strict=True):
            for method in searches:
                budget = budget_of(method, which)
                found = results.course(Key(which, False, "attention-mask", method, budget, metric))
                if found is None:
                    continue
                found = found[~np.isnan(found).all(axis=(1, 2))]
                places = [
                    i for i, n in enumerate(GRID) if n <= (budget or 0) and not np.isnan(found[..., i]).any()
                ]
                means = [interval(found[..., i]) for i in places]
                at = [GRID[i] for i in places]
                axis.plot(at, [m.mean for m in means], color=colours[method], label=method)
                axis.fill_between(
                    at, [m.low for m in means], [m.high for m in means], color=colours[method], alpha=0.12
                )
            axis.set_xlabel("evaluations for each sparsity")
            axis.set_ylabel(f"{ARROWS[metric]} (points)")
            axis.grid(alpha=0.3)
            axis.legend(frameon=False)
        figure.suptitle(SETS[which].name)
        picture = f"figure3-{which}.png"
        figure.savefig(pictures / picture, dpi=130)
        page += f"\n![Search over time, {SETS[which].name}]({picture})\n"
    return page
