"""The paper's figures, drawn from our results."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
from collect import Key, Results, difference, interval, shown, table
from data import SETS
from methods import FILLER, GRID, OBJECTIVES
from removals import REMOVALS
from tables import ARROWS, run_of

from pertinent.array_types import Floats
from pertinent.diagnostics.removal_check import RemovalCheck

SHOWN = (*REMOVALS, "marginalize")


SHARES = (0.0, 0.2, 0.5, 0.8)
Accuracies = dict[tuple[str, str, float], Floats]


def accuracies(results: Path, which: str, start: str = "") -> Accuracies:
    """Accuracies in % (seeds, points) by training, removal and share removed; of models with this start."""
    found: Accuracies = {}
    for training, removal in itertools.product(("Standard", "CT"), SHOWN):
        parts = [which, "10000", start, "standard" if training == "Standard" else removal]
        files = sorted(results.glob(f"removals-{'-'.join(part for part in parts if part)}-*.json"))
        checks = [RemovalCheck.read(path) for path in files]
        for share in SHARES if checks else ():
            right = [
                [r.right for r in check.rows if (r.removal.split()[0], r.share) == (removal, share)]
                for check in checks
            ]
            if all(right):
                found[training, removal, share] = 100 * np.array(right, dtype=float)
    return found


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
        if found := accuracies(results, which):
            page += _removal_section(found, which, pictures / f"figure2-{which}.png")
    return page


def masked_page(results: Path, pictures: Path) -> str:
    """Figure 2 once more, from an encoder that knows the mask token."""
    loss = json.loads((results / f"{FILLER}.train.json").read_text())["loss"]
    page = "# Figure 2 from an encoder that knows the mask token\n\n"
    page += (
        "As [figure2.md](figure2.md), but models are fine-tuned from the encoder that `filler.py` has taught "
        f"to fill in masked tokens of both sets' training texts ({loss:.1f} nats for a held-out token): the "
        "paper's BERT was pretrained with masks, this sentence encoder was last trained without. The start "
        "as it is: the encoder without that training, in the same run.\n"
    )
    for which in ("snli", "sst2"):
        found, plain = accuracies(results, which, FILLER), accuracies(results, which)
        if not found:
            continue
        page += _removal_section(found, which, pictures / f"figure2-masked-{which}.png")
        rows = [
            [removal, *(_change(found, plain, removal, share) for share in SHARES)]
            for removal in SHOWN
            if ("Standard", removal, 0.5) in set(found) & set(plain)
        ]
        seeds = len(next(iter(found.values())))
        page += f"\nStandard models, {seeds} seeds, gain over the start as it is, in points:\n\n"
        page += table(["removal", *(f"{share:.0%}" for share in SHARES)], rows)
    return page


def _change(found: Accuracies, plain: Accuracies, removal: str, share: float) -> str:
    one, other = found["Standard", removal, share], plain["Standard", removal, share]
    seeds = min(len(one), len(other))  # the first ones, where the other start was measured with more
    gain = difference(one[:seeds], other[:seeds])
    return f"{gain.mean:+.1f} ({gain.p_text})"


def _removal_section(found: Accuracies, which: str, picture: Path) -> str:
    page = f"\n## {SETS[which].name}\n\n"
    trainings = [training for training in ("Standard", "CT") if _measured(found, training)]
    for training in trainings:
        rows = [
            [removal, *(shown(interval(found[training, removal, s]), 1) for s in SHARES)]
            for removal in _measured(found, training)
        ]
        page += f"{training}:\n\n" + table(["removal", *(f"{s:.0%}" for s in SHARES)], rows) + "\n"
    for training, share in itertools.product(trainings, SHARES[1:]):
        order = sorted(_measured(found, training), key=lambda r: -float(found[training, r, share].mean()))
        gaps = ", ".join(_gap(found, training, order[0], other, share) for other in order[1:])
        page += f"- {training}, {share:.0%} removed: {order[0]} is best; ahead of {gaps}.\n"
    _plot(found, picture, SETS[which].name)
    return page + f"\n![Accuracy against share removed, {SETS[which].name}]({picture.name})\n"


def _measured(found: Accuracies, training: str) -> list[str]:
    return [removal for removal in SHOWN if (training, removal, 0.0) in found]


def _gap(found: Accuracies, training: str, a: str, b: str, share: float) -> str:
    gap = difference(found[training, a, share], found[training, b, share])
    return f"{b} by {gap.mean:.2f} ({gap.p_text})"


def _plot(found: Accuracies, path: Path, title: str) -> None:
    from matplotlib.figure import Figure

    trainings = [training for training in ("Standard", "CT") if _measured(found, training)]
    figure = Figure(figsize=(4.5 * len(trainings), 3.6), layout="constrained")
    axes = figure.subplots(1, len(trainings), sharey=True, squeeze=False)[0]
    colours = dict(zip(SHOWN, ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"), strict=True))
    for axis, training in zip(axes, trainings, strict=True):
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
    page = "# Figure 3: search over time\n\n"
    page += "The metric reached after so many evaluations for each sparsity; counterfactual-trained models.\n"
    for which in SETS:
        picture = pictures / f"figure3-{which}.png"
        if results.cells(which):
            _courses(results, which, picture)
        if picture.is_file():
            page += f"\n![Search over time, {SETS[which].name}]({picture.name})\n"
    return page


def _courses(results: Results, which: str, picture: Path) -> None:
    from matplotlib.figure import Figure

    searches = ("random-search", "ordered-search", "parallel-local-search", "thompson-search")
    colours = dict(zip(searches, ("#999999", "#E69F00", "#0072B2", "#D55E00"), strict=True))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axis, metric in zip(figure.subplots(1, 2), OBJECTIVES, strict=True):
        for method in searches:
            _, budget = run_of(method)
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
    figure.savefig(picture, dpi=130)
