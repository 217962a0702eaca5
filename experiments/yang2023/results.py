"""Records of the game of only the tokens."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.intervals import show_mean
from experiments.shared.stages import read_record
from experiments.yang2023.measure import METHODS
from experiments.yang2023.sets import SIZES
from pertinent.array_types import Floats

WHOLE = 100
"""All training texts, in percent."""
NAMES = {name: name for name in METHODS} | {
    "SVS-25-antithetic": "SVS-25, each order with its reverse",
    "shapley-200": "`shapley`, 200",
    "shapley-500": "`shapley`, 500",
    "shapley-2000": "`shapley`, 2000",
}
LEARNED = {
    "amortized": "amortized",
    "FastSHAP": "FastSHAP, 32 coalitions",
    "FastSHAP-equal": "FastSHAP, as many evaluations as the references",
    "FastSHAP-fresh": "FastSHAP, as many, fresh in every step",
    "FastSHAP-surrogate": "FastSHAP of a surrogate",
}


class Results:
    """Records of a folder; a missing one is ``None``.

    The folder `second` in it may hold another run, with different models, for what the first one lacks.
    """

    def __init__(self, folder: Path) -> None:
        self.second = Results(folder / "second") if (folder / "second").is_dir() else None
        self._records = {path.stem: read_record(path) for path in sorted(folder.glob("*.json"))}

    @cached_property
    def sets(self) -> list[str]:
        """Return the data sets whose test texts were explained."""
        return [name for name in SIZES if self.stage(name, "reference")]

    def stage(self, dataset: str, name: str) -> Any:
        """Return the record of a measurement."""
        return self._records.get(f"{dataset}.{name}")

    def having(self, dataset: str, stage: str) -> Results:
        """Return the first run, or the second if only that has a record."""
        only_second = self.stage(dataset, stage) is None and self.second is not None
        return self.second if only_second and self.second.stage(dataset, stage) else self

    def column(self, dataset: str, stage: str, measure: str, row: str | None = None) -> Floats | None:
        """Return a number for each text, of one `row` where a record has several."""
        record = self.stage(dataset, stage) or {}
        columns = record.get("columns", {}) if row is None else record.get("columns", {}).get(row, {})
        return np.array(columns[measure], dtype=float) if measure in columns else None

    def spread(self, dataset: str, stage: str, measure: str, row: str | None = None) -> float | None:
        """Return the standard deviation over seeds or trainings of a method's mean over texts."""
        runs = (self.stage(dataset, stage) or {}).get("runs", {})
        means = (runs if row is None else runs.get(row, {})).get(measure, [])
        return float(np.std(means, ddof=1)) if len(means) > 1 else None

    def curve(self, dataset: str, share: int) -> tuple[str, int | None]:
        """Return the record of amortized models of a percentage of the training texts, and their number."""
        if share == WHOLE:
            return "method-amortized", (self.stage(dataset, "learned") or {}).get("texts")
        stage = f"curve-{share}"
        return stage, (self.stage(dataset, stage) or {}).get("texts")

    def right(self, dataset: str, stage: str, removal: str, share: str) -> Floats | None:
        """Return whether each text is classified correctly with the top share masked."""
        record = self.stage(dataset, stage)
        return None if record is None else np.array(record["accuracy"][removal][share], dtype=float)


def show_error(values: Floats | None) -> str:
    """Return a mean squared error: four digits, or ``1.23e-05`` where it is small."""
    small = values is not None and np.isfinite(values).any() and abs(np.nanmean(values)) < 1e-3
    return show_mean(values, ".2e" if small else ".4f")
