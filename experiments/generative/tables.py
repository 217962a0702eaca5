"""Write the tables into README.md, between their markers, from what evaluate.py found.

    python experiments/generative/tables.py RESULTS

Methods that ask for uniform masks are fitted here, to subsets of the 512 masks that were kept for each
example; what other methods found is in the records.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from evaluate import BUDGETS, N_BANK, N_TEST_MASKS, bank_masks
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from pertinent.array_types import Floats, Masks
from pertinent.explainers.single_effects import FLOOR, fit
from pertinent.stats import bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

README = Path(__file__).parent / "README.md"
TRIED_ON = {3: 5, 5: 5}
"""By the number of a process, how many of its first examples `single-effects` was developed on: left out."""

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
class Example:
    """What was found of an example, and the log-likelihoods of its answer for the masks of the bank."""

    record: dict[str, Any]
    logs: Floats

    @cached_property
    def d(self) -> int:
        """Number of sentences."""
        return (len(self.logs) - 2 - N_TEST_MASKS - N_BANK) // 2

    @cached_property
    def logits(self) -> Floats:
        """The log-odds of the answer for each mask of the bank."""
        logs = np.minimum(self.logs.sum(axis=1), -1e-12)
        return np.asarray(logs - np.log(-np.expm1(logs)))

    @cached_property
    def masks(self) -> Masks:
        """The uniform masks whose answers were kept."""
        return bank_masks(self.d)

    @property
    def gradient(self) -> Floats:
        """Gradient × input."""
        found = (own["scores"] for own in self.record["found"] if own["method"] == "gradient-x-input")
        return np.array(next(found))

    def measured(self, scores: Floats) -> dict[str, float]:
        """Precision at 1, linear datamodeling score, and the drop without the first sentence."""
        test = slice(-N_TEST_MASKS - N_BANK, -N_BANK)
        predicted, first = self.masks[test] @ scores, int(scores.argmax())
        whole, without = self.logs[0].sum(), self.logs[2 + first].sum()
        lds = spearmanr(predicted, self.logits[test]).statistic if np.ptp(predicted) > 0 else 0.0
        return {"precision": float(first in self.record["right"]), "lds": float(lds), "drop": whole - without}


def read(folder: Path) -> list[Example]:
    """The examples, without those that `single-effects` was developed on."""
    examples = []
    for path in sorted(folder.glob("examples-*.jsonl.gz")):
        number = int(path.name.split("-")[1].split(".")[0])
        with gzip.open(path, "rt") as file:
            records = [json.loads(line) for line in file]
        banks = sorted(folder.glob(f"bank-{number}-*.npz"), key=lambda own: int(own.stem.split("-")[2]))
        logs = [own[name].astype(float) for own in map(np.load, banks) for name in own.files]
        found = [Example(*pair) for pair in zip(records, logs, strict=False)]
        examples += found[TRIED_ON.get(number, 0) :]
    return examples


# -- methods on uniform masks ------------------------------------------------------------------------


def context_cite(example: Example, masks: Masks, logits: Floats) -> Floats:
    """ContextCite, as in its authors' `solver.py`."""
    scaler, n_tokens = StandardScaler(), example.logs.shape[1]
    x = scaler.fit_transform(masks.astype(np.float32))
    fitted = Lasso(alpha=0.01, max_iter=100_000).fit(x, logits / n_tokens)
    return np.asarray(fitted.coef_ / scaler.scale_)


def single_effects(example: Example, masks: Masks, logits: Floats, *, gradient: bool = False) -> Floats:
    """`single-effects`, perhaps with the prior that costs two of the masks."""
    weights = np.ones(example.d)
    if gradient:
        masks, logits, size = masks[2:], logits[2:], np.abs(example.gradient)
        weights = (size + FLOOR * size.mean()) / ((1 + FLOOR) * size.mean())
    return fit(masks, logits[:, None], 10, weights).mean[:, 0]


ON_UNIFORM: dict[str, Callable[[Example, Masks, Floats], Floats]] = {
    "single-effects": single_effects,
    GRADIENT: partial(single_effects, gradient=True),
    "ContextCite": context_cite,
}


def on_bank(example: Example, name: str, budget: int) -> dict[str, float]:
    """The mean measures of a method over random subsets of the masks."""
    found = []
    for seed in range(SUBSETS):
        rows = len(example.masks) - N_BANK + np.random.default_rng(seed).permutation(N_BANK)[:budget]
        scores = ON_UNIFORM[name](example, example.masks[rows], example.logits[rows])
        found.append(example.measured(scores))
    return {key: float(np.mean([own[key] for own in found])) for key in found[0]}


def recorded(example: Example, name: str, budget: int) -> dict[str, float] | None:
    """The measures of a method that was run with this budget."""
    for own in example.record["found"]:
        if own["method"] == name and own["budget"] == budget:
            return {"precision": own["precision"], "lds": own["lds"], "drop": own["drops"][0]}
    return None


# -- tables ------------------------------------------------------------------------------------------


class Results:
    """The measures of all methods on all examples."""

    def __init__(self, examples: list[Example]) -> None:
        self.examples = examples
        self.by_method: dict[tuple[str, int], list[dict[str, float] | None]] = {}
        for budget in BUDGETS:
            for name in ON_UNIFORM:
                self.by_method[name, budget] = [on_bank(own, name, budget) for own in examples]
            for name in (*OURS, *PEERS):
                self.by_method[name, budget] = [recorded(own, name, budget) for own in examples]

    def values(self, name: str, budget: int, measure: str) -> Floats:
        """A measure of each example, NaN where the budget was too small."""
        found = self.by_method[name, budget]
        return np.array([np.nan if own is None else own[measure] for own in found])

    def table(self, measure: str, form: str, within: tuple[float, float] | None = None) -> str:
        """A measure by method and budget, with 95% intervals; the largest of each budget in bold."""
        means = {
            key: np.nanmean(self.values(*key, measure)) if any(own) else -np.inf
            for key, own in self.by_method.items()
        }
        rows = []
        for name in (*ON_UNIFORM, *OURS, *PEERS):
            cells = []
            for budget in BUDGETS:
                values = self.values(name, budget, measure)
                if np.isnan(values).mean() > 0.1:
                    cells.append("–")
                    continue
                found = bootstrap(values, within=within, resamples=10_000)
                best = max(means[other, budget] for other in (*ON_UNIFORM, *OURS, *PEERS))
                mean = f"{found.mean:{form}}"
                mean = f"**{mean}**" if found.mean >= best - 1e-9 else mean
                cells.append(f"{mean} [{found.low:{form}}, {found.high:{form}}]")
            rows.append([f"`{name}`" if name[0].islower() and not name.startswith("inseq") else name, *cells])
        return table(["method", *map(str, BUDGETS)], rows)

    def ahead(self) -> str:
        """Differences to ContextCite with as many, and with twice as many evaluations."""
        rows = []
        for name in (GRADIENT, "single-effects"):
            for factor in (1, 2):
                for measure in ("precision", "lds"):
                    cells = []
                    for budget in BUDGETS:
                        if factor * budget > max(BUDGETS):
                            cells.append("–")
                            continue
                        a = self.values(name, budget, measure)
                        b = self.values("ContextCite", factor * budget, measure)
                        found = paired_difference(a, b, resamples=10_000)
                        cells.append(f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]")
                    other = "as many" if factor == 1 else "twice as many"
                    rows.append([f"`{name}`", other, measure, *cells])
        return table(["method", "ContextCite has", "measure", *map(str, BUDGETS)], rows)


def overview(folder: Path, results: Results) -> str:
    """The model, how often it is right, and the examples."""
    training = json.loads((folder / "training.json").read_text())
    counts: dict[str, list[int]] = {}
    for path in folder.glob("answers-*.json"):
        for name, own in json.loads(path.read_text()).items():
            counts[name] = [a + b for a, b in zip(counts.get(name, [0, 0, 0]), own, strict=True)]
    used = [own.record["set"] for own in results.examples]
    rows = [
        [name, f"{100 * right / asked:.0f}% of {asked:,}", str(used.count(name))]
        for name, (asked, right, _) in counts.items()
    ]
    told = (
        f"{training['parameters'] / 1e6:.0f} million parameters; {training['steps']:,} steps on "
        f"{training['tokens'] / 1e6:.0f} million tokens in {training['seconds'] / 60:.1f} minutes.\n\n"
    )
    return told + table(["questions", "answered rightly", "examples used"], rows)


def small(path: Path) -> str:
    """Precision and LDS of methods on the embedded model, beside captum's."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    found = [own for record in records for own in record["found"]]
    budgets = sorted({own["budget"] for own in found})
    rows = []
    for name in dict.fromkeys(own["method"] for own in found):
        cells = []
        for measure, form in (("precision", ".2f"), ("lds", ".2f")):
            for budget in budgets:
                mine = [own[measure] for own in found if (own["method"], own["budget"]) == (name, budget)]
                within = (0, 1) if measure == "precision" else None
                told = bootstrap(np.array(mine), within=within, resamples=10_000) if mine else None
                cells.append(f"{told.mean:{form}} [{told.low:{form}}, {told.high:{form}}]" if told else "–")
        rows.append([f"`{name}`" if name[0].islower() and not name.startswith("captum") else name, *cells])
    head = [f"{measure}, {budget}" for measure in ("precision at 1", "LDS") for budget in budgets]
    return f"{len(records)} questions.\n\n" + table(["method", *head], rows)


def main() -> None:
    """Write the tables into README.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--small", type=Path, help="small.jsonl, which small.py wrote")
    own = parser.parse_args()
    if own.small is not None:
        fill_in(README, {"small": small(own.small)})
    results = Results(read(own.results))
    fill_in(
        README,
        {
            "overview": overview(own.results, results),
            "precision": results.table("precision", ".2f", (0, 1)),
            "lds": results.table("lds", ".2f"),
            "drop": results.table("drop", ".1f"),
            "ahead": results.ahead(),
        },
    )


if __name__ == "__main__":
    main()
