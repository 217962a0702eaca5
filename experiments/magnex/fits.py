"""Explainers that are fitted, and the black boxes and inputs that they are fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.mnist import load as load_cnn
from experiments.magnex.models import READERS, load_classifier, train_forest
from experiments.magnex.sets import as_pairs, halves, images, questions, reviews
from experiments.shared.published import read_published
from experiments.shared.stages import Run

PUBLISHED: dict[str, dict[str, Any]] = read_published("magnex")
NAMES = {
    "forest": "Table 1: a random forest on MNIST",
    "cnn": "Table 2: a convolutional network on MNIST",
    "imdb": "Table 3: a fine-tuned encoder on IMDB",
    "squad": "Table 4: a fine-tuned reader on SQuAD",
    "sentiment": "like Table 3: the embedded model of sentiment, reviews of 25 words",
}
BOXES = tuple(NAMES)[:4]
"""Black boxes of the paper."""
LIME_SAMPLES = {"forest": 1500, "cnn": 1500, "imdb": 1000, "sentiment": 1000, "squad": 700}
"""Sec. 3.2."""
PATH_STEPS = 50
GOALS = {"forest": (0.99, 0.81), "cnn": (0.99, 0.88), "imdb": (0.95, 0.94), "squad": (0.88, 0.76)}
"""The paper's sufficiency and sparsity."""
GOALS_OF_SHARE = GOALS | {"sentiment": GOALS["imdb"]}
PIXELS = {"removal": "constant", "features": "pixels"}
"""A removed pixel is black."""
OURS, PAPERS = "leave-one-out", "moving-average"
STEPS = {"squad": 1226, "imdb": 1089, "sentiment": 600, "cnn": 1952, "forest": 1952}
TRAIN = {"squad": 5000, "imdb": 3000, "sentiment": 1500, "cnn": 4000, "forest": 4000}
DEV = 100
"""Inputs by which a fit chooses its best network, and others by which v is chosen."""
WORDS = 25
"""Words of a review that the embedded model of sentiment reads."""


@dataclass(frozen=True)
class Fit:
    """Settings of one explainer, and of its black box.

    Attributes
    ----------
    v
        v of Eqn. 6.
    baseline, masks, batch
        Estimator of the gradient; masks × batch is the number of evaluations in each step.
    reader, fix_question, unseen
        Of SQuAD: the reader, whether words of the question are no features, and whether the explainer learns
        from questions that the reader was not trained on.
    train
        Number of inputs to learn from, if not the default of the black box.
    longer
        Factor of the number of steps.
    """

    box: str
    v: float
    learning_rate: float = 1e-3
    baseline: str = OURS
    masks: int = 32
    batch: int = 8
    reader: str = "of the tables"
    fix_question: bool = True
    unseen: bool = False
    train: int | None = None
    longer: float = 1

    @property
    def setting(self) -> str:
        """Return the name of the setting in a grid."""
        return f"{self.box} grid v{self.v:g} lr{self.learning_rate:g}"

    @property
    def box_record(self) -> str:
        """Return the name of the record of the black box."""
        names = {"squad": f"reader {self.reader}", "imdb": "classifier"}
        return names.get(self.box, f"{self.box} model")

    def by_paper(self) -> Fit:
        """Return the paper's estimator: one mask of each input, a moving average, and as many evaluations."""
        return replace(self, baseline=PAPERS, masks=1, batch=self.masks * self.batch)


GRID: dict[str, list[Fit]] = {
    "forest": [Fit("forest", v, masks=16) for v in (0.95, 0.9, 0.8)],
    "cnn": [Fit("cnn", v, masks=16) for v in (0.95, 0.9)],
    "imdb": [Fit("imdb", v, rate) for v in (0.95, 0.9) for rate in (1e-3, 3e-3)],
    "squad": [Fit("squad", v, rate) for v in (0.9, 0.7) for rate in (1e-3, 3e-3)],
}
"""The paper does not say what v is: it is chosen by the selections of dev inputs."""
IMDB, SENTIMENT = Fit("imdb", 0.9), Fit("sentiment", 0.9, 3e-3, masks=8)
FOREST, CNN = Fit("forest", 0.8, masks=16), Fit("cnn", 0.9, masks=16)
SQUAD = Fit("squad", 0.9, reader="as before")
VARIANTS: dict[str, dict[str, Fit]] = {
    "squad": {
        "as before": SQUAD,
        "question removable": replace(SQUAD, fix_question=False),
        "unseen questions": replace(SQUAD, reader="half", unseen=True),
        "better reader": replace(SQUAD, reader="longer"),
        "paper's estimator": SQUAD.by_paper(),
        "half, seen questions": replace(SQUAD, reader="half"),
        "unseen, question removable": replace(SQUAD, reader="half", unseen=True, fix_question=False),
        "unseen, more questions": replace(SQUAD, reader="half", unseen=True, train=8500, longer=2),
        "more questions": replace(SQUAD, train=16500, longer=2),
        "paper's form": replace(SQUAD.by_paper(), reader="longer", fix_question=False),
    },
    **{
        fit.box: {"as before": fit, "paper's estimator": fit.by_paper()}
        for fit in (IMDB, SENTIMENT, CNN, FOREST)
    },
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    weights
        The convolutional network.
    scale
        Factor of the numbers of steps and training inputs.
    test, timed, together
        Test inputs that are measured, timed one by one, and timed together.
    limit
        Training examples of the black boxes.
    """

    weights: Path = Path()
    scale: float = 1.0
    test: int = 200
    timed: int = 10
    together: int = 1000
    limit: int | None = None


@dataclass(frozen=True)
class Subject:
    """A black box, and the inputs of a fit."""

    run: Run
    fit: Fit
    sizes: Sizes = field(default_factory=Sizes)

    @cached_property
    def model(self) -> Any:
        """Return the black box."""
        if self.fit.box == "forest":
            return train_forest(self.run.data, self.sizes.limit)
        if self.fit.box == "cnn":
            return load_cnn(self.sizes.weights, self.run.device)
        if self.fit.box == "sentiment":
            return pertinent.load("sentiment")
        if self.fit.box == "imdb":
            return load_classifier(self.run)
        return READERS[self.fit.reader].load(self.run, fix_question=self.fit.fix_question)

    @property
    def options(self) -> dict[str, Any]:
        """Return how features are removed."""
        return (PIXELS if self.fit.box in ("forest", "cnn") else {}) | {"progress": False}

    def inputs(self, split: str, n: int) -> list[Any]:
        """Return inputs to learn from, or to test on."""
        data = self.run.data
        if self.fit.box in ("imdb", "sentiment"):
            longest = WORDS if self.fit.box == "sentiment" else None
            return [" ".join(text.split()[:longest]) for text in reviews(data, split, n)[0]]
        if self.fit.box != "squad":
            return list(images(data, split, n)[0])
        if split == "test" or not READERS[self.fit.reader].half:
            return list(as_pairs(questions(data, split, n if split == "test" else self.sizes.limit)[:n]))
        rows = halves(questions(data, "train", self.sizes.limit))[1 if self.fit.unseen else 0]
        return list(as_pairs(rows[:n]))

    def fit_explainer(self, seed: int, out: Path | None = None) -> Any:
        """Return an explainer that was fitted with a seed."""
        fit, scale = self.fit, self.sizes.scale
        inputs = self.inputs("train", max(20, round(scale * (fit.train or TRAIN[fit.box]))))
        steps = max(2, round(fit.longer * scale * STEPS[fit.box]))
        held_out = min(0.5, DEV / len(inputs))
        return pertinent.fit(
            self.model,
            inputs,
            "magnex",
            out=out,
            least_sufficiency=fit.v,
            learning_rate=fit.learning_rate,
            samples=fit.masks,
            baseline=fit.baseline,
            seed=seed,
            validation_fraction=held_out,
            epochs=max(1, round(steps * fit.batch / ((1 - held_out) * len(inputs)))),
            batch_size=fit.batch,
            patience=None,
            **self.options,
        )


def other_methods(box: str) -> list[str]:
    """Return the methods that magnex is compared with; a forest has no gradients."""
    return ["lime"] if box == "forest" else ["lime", "integrated-gradients"]


def settings_of(box: str, method: Any) -> dict[str, Any]:
    """Return the paper's settings of a method."""
    if method == "lime":
        return {"samples": LIME_SAMPLES[box]}
    return {"points": PATH_STEPS} if method == "integrated-gradients" else {}


def choose(box: str, records: Mapping[str, Any]) -> Fit | None:
    """Return the sparsest setting that is sufficient enough on dev inputs, or the most sufficient one.

    It is ``None`` until all settings were tried. `records` are by name.
    """
    if not all(fit.setting in records for fit in GRID[box]):
        return None
    means = {
        fit: [np.mean(records[fit.setting][name]) for name in ("sufficiency", "share removed")]
        for fit in GRID[box]
    }
    enough = [fit for fit in GRID[box] if means[fit][0] >= GOALS[box][0]]
    if enough:
        return max(enough, key=lambda fit: means[fit][1])
    return max(GRID[box], key=lambda fit: means[fit][0])
