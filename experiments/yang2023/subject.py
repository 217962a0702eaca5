"""What is measured: a data set with its model, texts and reference values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pertinent
from experiments.shared.data import Examples
from experiments.shared.stages import Run, read_record
from experiments.yang2023.measure import LEARNED, METHODS, OPTIONS, References, explain
from experiments.yang2023.padding import Padded
from experiments.yang2023.sets import Sizes, test_texts
from pertinent.explainers.base import Explainer, explainers
from pertinent.models.base import Model
from pertinent.models.embedded.load import load_transformer
from pertinent.results.explanation import Explanation, Explanations


@dataclass(frozen=True)
class Subject:
    """A data set, its model in the work folder, and how much is measured.

    Attributes
    ----------
    game
        Whether the paper's game is played, whose models are kept separately.
    """

    dataset: str
    run: Run
    sizes: Sizes
    game: bool = False

    @property
    def folder(self) -> Path:
        """Return the folder of the model and the amortized models."""
        return self.run.work / self.name

    @property
    def name(self) -> str:
        """Return the name of the folder in the work folder."""
        return f"game/{self.dataset}" if self.game else self.dataset

    @cached_property
    def model(self) -> Model:
        """Return the fine-tuned classifier."""
        return load_transformer(self.folder / "model", device=self.run.device)

    @cached_property
    def test(self) -> Examples:
        """Return the test texts and their labels."""
        return test_texts(self.run.data, self.dataset, self.sizes.texts)

    @cached_property
    def references(self) -> References:
        """Return the reference values of the test texts."""
        return References.from_dict(read_record(self.folder / "reference.json"))

    @cached_property
    def teacher(self) -> Explanations:
        """Return the explanations that amortized models learn from."""
        plain = read_record(self.folder / "learned.json")["explanations"]
        return Explanations([Explanation.from_dict(each) for each in plain])

    def explainer(self, name: str) -> tuple[str | Explainer, dict[str, Any]]:
        """Return a method by name, such as KS-100 or ``KS-2000, padded``, and its settings."""
        name, _, padding = name.partition(", ")
        if padding:
            return Padded(explainers.make(*self.explainer(name))), {}
        if name in METHODS:
            return METHODS[name]
        kind, _, number = name.partition("-")
        if kind == "KS":
            return "kernel-shap", {"samples": int(number)}
        if kind == "adapted":
            amortized: Any = self.trained("amortized")[0]
            return amortized.refined(int(number)), {}
        return self.trained(name)[0], {}

    def trained(self, name: str) -> list[Explainer]:
        """Return the explainers of a name, one for each training."""
        return [pertinent.load_explainer(folder) for folder in sorted(self.folder.glob(f"{name}-[0-9]"))]

    def explain(self, name: str, texts: Sequence[dict[str, str]], seeds: int) -> list[Explanations]:
        """Explain texts with each seed; by a method that draws nothing, after each training."""
        if name in LEARNED:
            return [explain(self.model, texts, fitted, seed=0) for fitted in self.trained(name)]
        method, settings = self.explainer(name)
        return [explain(self.model, texts, method, seed=seed, **settings) for seed in range(seeds)]

    def fit_amortized(self, teacher: Explanations, seed: int, options: dict[str, Any] = OPTIONS) -> Any:
        """Return an amortized model that learned from explanations."""
        return pertinent.fit(
            self.model,
            [e.input.raw for e in teacher],
            teacher_explanations=teacher,
            validation_fraction=0.1,
            epochs=self.sizes.epochs,
            seed=seed,
            **options,
        )
