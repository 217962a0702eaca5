"""Tables of the page, from the records of the stages.

Methods that need uniform masks are fitted here, to subsets of the 512 masks whose answers are kept for each
example; the records have the measures of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.generative import small
from experiments.generative.measuring import N_BANK, N_TEST_MASKS, PLAN, bank_masks, datamodeling_score
from experiments.generative.peers import context_cite, log_odds
from experiments.shared.intervals import difference, interval, show
from experiments.shared.pages import MISSING, table
from experiments.shared.stages import read_record
from pertinent.array_types import Floats, Masks
from pertinent.explainers.single_effects import FLOOR, fit

TRIED_ON = {3: 5, 5: 5}
"""Numbers of the first examples, by seed, that `single-effects` was developed on; they are omitted."""

SUBSETS = 10
OURS = (
    "shapley",
    "kernel-shap",
    "banzhaf",
    "lime",
    "leave-one-out",
    "gradient-x-input",
    "integrated-gradients",
)
PEERS = ("inseq saliency", "inseq input x gradient", "inseq integrated gradients")
GRADIENT = "single-effects:prior=gradient"


@dataclass(frozen=True)
class Measured:
    """Record of an example, and the log-likelihoods of its answer for the masks of the bank."""

    record: dict[str, Any]
    logs: Floats

    @cached_property
    def d(self) -> int:
        """Return the number of sentences."""
        return (len(self.logs) - 2 - N_TEST_MASKS - N_BANK) // 2

    @cached_property
    def logits(self) -> Floats:
        """Return the log-odds of the answer for each mask of the bank."""
        return log_odds(self.logs.sum(axis=1))

    @cached_property
    def masks(self) -> Masks:
        """Return the masks whose answers were kept."""
        return bank_masks(self.d)

    @property
    def gradient(self) -> Floats:
        """Return gradient × input."""
        rows = (row for row in self.record["found"] if row["method"] == "gradient-x-input")
        return np.array(next(rows)["scores"])

    def measures_of(self, scores: Floats) -> dict[str, float]:
        """Return precision at 1, linear datamodeling score, and the drop without the first sentence."""
        test = slice(-N_TEST_MASKS - N_BANK, -N_BANK)
        first = int(scores.argmax())
        return {
            "precision": float(first in self.record["right"]),
            "lds": datamodeling_score(scores, self.masks[test], self.logits[test]),
            "drop": self.logs[0].sum() - self.logs[2 + first].sum(),
        }

    def recorded_measures(self, method: str, budget: int) -> dict[str, float] | None:
        """Return the recorded measures of a method; ``None`` if the budget was too small."""
        for row in self.record["found"]:
            if (row["method"], row["budget"]) == (method, budget):
                return {"precision": row["precision"], "lds": row["lds"], "drop": row["drops"][0]}
        return None


def read(folder: Path) -> list[Measured]:
    """Return the examples, without those that `single-effects` was developed on."""
    examples = []
    for path in sorted(folder.glob("examples-*.json")):
        seed = int(path.stem.partition("-")[2])
        with np.load(folder / f"bank-{seed}.npz") as bank:
            logs = [bank[name].astype(float) for name in bank.files]
        pairs = list(map(Measured, read_record(path)["examples"], logs))
        examples += pairs[TRIED_ON.get(seed, 0) :]
    return examples


# -- methods on uniform masks ------------------------------------------------------------------------


def context_cite_scores(example: Measured, masks: Masks, logits: Floats) -> Floats:
    """Return ContextCite's scores."""
    return context_cite(masks, logits / example.logs.shape[1])


def single_effects(example: Measured, masks: Masks, logits: Floats, *, gradient: bool = False) -> Floats:
    """Return the scores of `single-effects`; the prior costs two of the masks."""
    weights = np.ones(example.d)
    if gradient:
        masks, logits, size = masks[2:], logits[2:], np.abs(example.gradient)
        weights = (size + FLOOR * size.mean()) / ((1 + FLOOR) * size.mean())
    return fit(masks, logits[:, None], 10, weights).mean[:, 0]


ON_UNIFORM: dict[str, Callable[[Measured, Masks, Floats], Floats]] = {
    "single-effects": single_effects,
    GRADIENT: partial(single_effects, gradient=True),
    "ContextCite": context_cite_scores,
}
METHODS = (*ON_UNIFORM, *OURS, *PEERS)


def measures_on_bank(example: Measured, name: str, budget: int) -> dict[str, float]:
    """Return the mean measures of a method over random subsets of the masks."""
    measures = []
    for seed in range(SUBSETS):
        rows = len(example.masks) - N_BANK + np.random.default_rng(seed).permutation(N_BANK)[:budget]
        scores = ON_UNIFORM[name](example, example.masks[rows], example.logits[rows])
        measures.append(example.measures_of(scores))
    return {key: float(np.mean([one[key] for one in measures])) for key in measures[0]}


# -- tables ------------------------------------------------------------------------------------------


class Results:
    """Measures of all methods on all examples."""

    def __init__(self, examples: list[Measured]) -> None:
        self.examples = examples
        self._measures: dict[tuple[str, int], list[dict[str, float] | None]] = {}

    def values(self, name: str, budget: int, measure: str) -> Floats:
        """Return a measure of each example, NaN where the budget was too small."""
        if (name, budget) not in self._measures:
            measures = measures_on_bank if name in ON_UNIFORM else Measured.recorded_measures
            self._measures[name, budget] = [measures(example, name, budget) for example in self.examples]
        return np.array([np.nan if one is None else one[measure] for one in self._measures[name, budget]])

    def table(self, measure: str, form: str, within: tuple[float, float] | None = None) -> str:
        """Return a measure by method and budget, with 95% intervals; the largest of each budget in bold."""
        columns = [self.column(measure, budget, form, within) for budget in PLAN.budgets]
        rows = [[code(name), *cells] for name, *cells in zip(METHODS, *columns, strict=True)]
        return table(["method", *map(str, PLAN.budgets)], rows)

    def column(self, measure: str, budget: int, form: str, within: tuple[float, float] | None) -> list[str]:
        """Return the cells of a budget; a method that could explain less than 90% of examples has none."""
        values = [self.values(name, budget, measure) for name in METHODS]
        best = max(np.nanmean(row) for row in values if np.isfinite(row).any())
        cells = []
        for row in values:
            mean = interval(row, within=within) if np.isnan(row).mean() <= 0.1 else None
            text = show(mean, form)
            if mean is not None and mean.mean >= best - 1e-9:
                text = "**{}** {}".format(*text.split(" ", 1))
            cells.append(text)
        return cells

    def differences(self) -> str:
        """Return differences to ContextCite with as many, and with twice as many evaluations."""
        rows = [
            [code(name), other, measure, *self.gaps(name, measure, factor)]
            for name in (GRADIENT, "single-effects")
            for factor, other in ((1, "as many"), (2, "twice as many"))
            for measure in ("precision", "lds")
        ]
        return table(["method", "ContextCite has", "measure", *map(str, PLAN.budgets)], rows)

    def gaps(self, name: str, measure: str, factor: int) -> list[str]:
        """Return the differences to ContextCite with a multiple of the evaluations, by budget."""
        return [
            show(
                difference(
                    self.values(name, budget, measure), self.values("ContextCite", factor * budget, measure)
                ),
                "+.3f",
            )
            if factor * budget <= max(PLAN.budgets)
            else MISSING
            for budget in PLAN.budgets
        ]


def overview(folder: Path, results: Results) -> str:
    """Return the model, the share of questions that it answers rightly, and the number of examples."""
    training = read_record(folder / "training.json")
    text = (
        f"{training['parameters'] / 1e6:.0f} million parameters; {training['steps']:,} steps on "
        f"{training['tokens'] / 1e6:.0f} million tokens in {training['seconds'] / 60:.1f} minutes.\n\n"
    )
    counts = [read_record(path)["answers"] for path in folder.glob("examples-*.json")]
    sets = [example.record["set"] for example in results.examples]
    rows = []
    for name in counts[0]:
        n, n_right, _ = np.sum([own[name] for own in counts], axis=0)
        rows.append([name, f"{100 * n_right / n:.0f}% of {n:,}", str(sets.count(name))])
    return text + table(["questions", "answered rightly", "examples used"], rows)


def small_table(records: Sequence[dict[str, Any]]) -> str:
    """Return precision and LDS of methods on the embedded model, and of captum's."""
    rows = [row for record in records for row in record["found"]]
    budgets = small.PLAN.budgets
    measures = (("precision at 1", "precision", (0.0, 1.0)), ("LDS", "lds", None))
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        cells = []
        for _, measure, within in measures:
            for budget in budgets:
                values = [r[measure] for r in rows if (r["method"], r["budget"]) == (name, budget)]
                cells.append(show(interval(np.array(values), within=within) if values else None))
        lines.append([code(name), *cells])
    head = [f"{title}, {budget}" for title, _, _ in measures for budget in budgets]
    return f"{len(records)} questions.\n\n" + table(["method", *head], lines)


def code(name: str) -> str:
    """Return a method's name, as code if it is one of the library."""
    return name if name.startswith(("ContextCite", "captum", "inseq")) else f"`{name}`"
