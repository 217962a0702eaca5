"""Figures of the paper, drawn from our results."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.hase2021.data import SETS
from experiments.hase2021.methods import FILLER, GRID, OBJECTIVES, REMOVALS, run_of
from experiments.hase2021.results import Part, difference, interval, show
from experiments.hase2021.tables import ARROWS
from experiments.shared.pages import table
from experiments.shared.stages import read_record
from pertinent.array_types import Floats
from pertinent.diagnostics.removal_check import RemovalCheck

SHOWN = (*REMOVALS, "marginalize")
SHARES = (0.0, 0.2, 0.5, 0.8)
"""Shares of tokens that are removed."""
TRAININGS = ("Standard", "CT")
PICTURED = ("snli", "sst2")
Accuracies = Mapping[tuple[str, str, float], Floats]
"""Accuracies in % (seeds, points) by training, removal and share removed."""


def accuracies(results: Path, dataset: str, start: str = "") -> Accuracies:
    """Return the accuracies of models with a start."""
    found: dict[tuple[str, str, float], Floats] = {}
    for training, removal in itertools.product(TRAININGS, SHOWN):
        parts = [dataset, "10000", start, "standard" if training == "Standard" else removal]
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


def removal_page(results: Path) -> str | None:
    """Return the page of Figure 2; ``None`` without records."""
    page = "# Figure 2: how accurate models stay as random tokens go\n\n"
    page += (
        "Accuracy in % on 1,000 dev points when a share of random tokens is removed: ten masks for each "
        "point and majority vote, the same masks for all removals. Models are trained on 10,000 "
        "examples, three seeds; counterfactual-trained (CT) ones with the removal they are tested on, "
        "which cannot be marginalize. With half the width of the 95% interval over points and seeds.\n"
    )
    sections = [
        removal_section(own, name, f"figure2-{name}.png")
        for name in PICTURED
        if (own := accuracies(results, name))
    ]
    return page + "".join(sections) if sections else None


def masked_page(results: Path) -> str | None:
    """Return the page of Figure 2 from an encoder that knows the mask token; ``None`` without records."""
    record = results / f"{FILLER}.train.json"
    if not record.is_file():
        return None
    page, loss = "# Figure 2 from an encoder that knows the mask token\n\n", read_record(record)["loss"]
    page += (
        "As [figure2.md](figure2.md), but models are fine-tuned from the encoder that the stage `train` has "
        f"taught to fill in masked tokens of both sets' training texts ({loss:.1f} nats for a held-out "
        "token): the paper's BERT was pretrained with masks, this sentence encoder was last trained without. "
        "The start as it is: the encoder without that training, in the same run.\n"
    )
    sections = ""
    for name in PICTURED:
        masked, plain = accuracies(results, name, FILLER), accuracies(results, name)
        if not masked:
            continue
        sections += removal_section(masked, name, f"figure2-masked-{name}.png")
        rows = [
            [removal, *(gain(masked, plain, removal, share) for share in SHARES)]
            for removal in SHOWN
            if ("Standard", removal, 0.5) in set(masked) & set(plain)
        ]
        seeds = len(next(iter(masked.values())))
        sections += f"\nStandard models, {seeds} seeds, gain over the start as it is, in points:\n\n"
        sections += table(["removal", *(f"{share:.0%}" for share in SHARES)], rows)
    return page + sections if sections else None


def gain(masked: Accuracies, plain: Accuracies, removal: str, share: float) -> str:
    """Return the gain of standard models by another start, over the seeds that both have."""
    one, other = masked["Standard", removal, share], plain["Standard", removal, share]
    seeds = min(len(one), len(other))
    gap = difference(one[:seeds], other[:seeds])
    return f"{gap.mean:+.1f} ({gap.p_text})"


def removal_section(own: Accuracies, dataset: str, picture: str) -> str:
    """Return the tables of a data set, and a link to its picture."""
    name = SETS[dataset].name
    page = f"\n## {name}\n\n"
    trainings = [training for training in TRAININGS if measured_removals(own, training)]
    for training in trainings:
        rows = [
            [removal, *(show(interval(own[training, removal, s]), 1) for s in SHARES)]
            for removal in measured_removals(own, training)
        ]
        page += f"{training}:\n\n" + table(["removal", *(f"{s:.0%}" for s in SHARES)], rows) + "\n"
    for training, share in itertools.product(trainings, SHARES[1:]):
        removals = measured_removals(own, training)
        first, *others = sorted(removals, key=lambda r: -float(own[training, r, share].mean()))
        gaps = ", ".join(lead(own, training, first, other, share) for other in others)
        page += f"- {training}, {share:.0%} removed: {first} is best; ahead of {gaps}.\n"
    return page + f"\n![Accuracy against share removed, {name}]({picture})\n"


def measured_removals(own: Accuracies, training: str) -> list[str]:
    """Return the removals that were measured with a training."""
    return [removal for removal in SHOWN if (training, removal, 0.0) in own]


def lead(own: Accuracies, training: str, a: str, b: str, share: float) -> str:
    """Return by how much a removal is ahead of another."""
    gap = difference(own[training, a, share], own[training, b, share])
    return f"{b} by {gap.mean:.2f} ({gap.p_text})"


def draw_removals(own: Accuracies, dataset: str) -> Any:
    """Draw the drop in accuracy of each model, by share removed."""
    from matplotlib.figure import Figure

    if not own:
        return None
    trainings = [training for training in TRAININGS if measured_removals(own, training)]
    figure = Figure(figsize=(4.5 * len(trainings), 3.6), layout="constrained")
    panels = figure.subplots(1, len(trainings), sharey=True, squeeze=False)[0]
    colours = dict(zip(SHOWN, ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"), strict=True))
    for axes, training in zip(panels, trainings, strict=True):
        for index, removal in enumerate(measured_removals(own, training)):
            for column, share in enumerate(SHARES[1:]):
                drops = (own[training, removal, 0.0] - own[training, removal, share]).mean(axis=1)
                x = np.full(len(drops), column + 0.18 * (index - 1.5))
                label = removal if column == 0 else None
                axes.plot(x, drops, "o", color=colours[removal], label=label, markersize=6, alpha=0.8)
        axes.set_xticks(range(3), ["20%", "50%", "80%"])
        axes.set_xlabel("tokens removed")
        axes.set_title(f"{SETS[dataset].name}, {training}")
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("drop in accuracy (points)")
    panels[0].legend(frameon=False)
    return figure


def course_page(sets: Sequence[str]) -> str:
    """Return the page of Figure 3."""
    page = "# Figure 3: search over time\n\n"
    page += "The metric reached after so many evaluations for each sparsity; counterfactual-trained models.\n"
    for name in sets:
        page += f"\n![Search over time, {SETS[name].name}](figure3-{name}.png)\n"
    return page


def draw_courses(part: Part, dataset: str) -> Any:
    """Draw the metric that searches have reached by number of evaluations."""
    from matplotlib.figure import Figure

    searches = ("random-search", "ordered-search", "parallel-local-search", "thompson-search")
    colours = dict(zip(searches, ("#999999", "#E69F00", "#0072B2", "#D55E00"), strict=True))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, metric in zip(figure.subplots(1, 2), OBJECTIVES, strict=True):
        for method in searches:
            courses, budget = part.course(method, metric, "attention-mask"), run_of(method)[1] or 0
            if courses is None:
                continue
            courses = courses[~np.isnan(courses).all(axis=(1, 2))]
            indices = [i for i, n in enumerate(GRID) if n <= budget and not np.isnan(courses[..., i]).any()]
            means = [interval(courses[..., i]) for i in indices]
            x = [GRID[i] for i in indices]
            axes.plot(x, [m.mean for m in means], color=colours[method], label=method)
            low, high = ([getattr(m, bound) for m in means] for bound in ("low", "high"))
            axes.fill_between(x, low, high, color=colours[method], alpha=0.12)
        axes.set_xlabel("evaluations for each sparsity")
        axes.set_ylabel(f"{ARROWS[metric]} (points)")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.suptitle(SETS[dataset].name)
    return figure
