"""What a stage works on: a set, its model, texts and references."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from measure import LEARNED, METHODS, Truth, explained
from padding import Padded
from sets import SIZES, Sizes, Split, test_texts

import pertinent
from pertinent.explainers.base import Explainer, explainers
from pertinent.models.base import Model
from pertinent.models.embedded.load import load_transformer
from pertinent.results.explanation import Explanation, Explanations


@dataclass(frozen=True)
class Job:
    """A set, where things lie, and how much is measured."""

    which: str
    data: Path
    work: Path
    encoder: Path | None = None
    device: str = "cpu"
    sizes: Sizes = SIZES["sst2"]

    @property
    def folder(self) -> Path:
        """What other stages of the set need."""
        return self.work / self.which

    @cached_property
    def model(self) -> Model:
        """The fine-tuned classifier."""
        return load_transformer(self.folder / "model", device=self.device)

    @cached_property
    def test(self) -> Split:
        """The test texts and their labels."""
        return test_texts(self.data, self.which, self.sizes.texts)

    @cached_property
    def truth(self) -> Truth:
        """The reference values of the test texts."""
        return Truth.from_dict(json.loads((self.folder / "reference.json").read_text()))

    @cached_property
    def references(self) -> Explanations:
        """What amortized models learn from."""
        plain = json.loads((self.folder / "learned.json").read_text())["explanations"]
        return Explanations([Explanation.from_dict(each) for each in plain])

    def explainer(self, name: str) -> tuple[str | Explainer, dict[str, Any]]:
        """A method by its name here, such as KS-100 or KS-2000, padded, and its settings."""
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
        """The explainers of this name, one for each training that was carried out."""
        folders = sorted(self.folder.glob(f"{name}-[0-9]"))
        return [pertinent.load_explainer(folder) for folder in folders]

    def runs(self, name: str, texts: Sequence[dict[str, str]], seeds: int) -> list[Explanations]:
        """The texts explained with each seed; by a method that draws nothing, after each training."""
        if name in LEARNED:
            return [explained(self.model, texts, each, seed=0) for each in self.trained(name)]
        method, settings = self.explainer(name)
        return [explained(self.model, texts, method, seed=seed, **settings) for seed in range(seeds)]
