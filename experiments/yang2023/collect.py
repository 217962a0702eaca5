"""The results that run.py wrote, and means with intervals."""

from __future__ import annotations

import json
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from measure import METHODS
from sets import SIZES

from pertinent.array_types import Floats
from pertinent.stats import Difference, Interval, bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.pages import fill_in, table

__all__ = [
    "LEARNED",
    "NAMES",
    "WHOLE",
    "Results",
    "difference",
    "fill_in",
    "interval",
    "number",
    "shown",
    "shown_difference",
    "table",
]

RESAMPLES = 10_000
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
    """The files of a folder; a stage that is missing or failed is ``None``.

    The folder `second` in it may hold another run, with models of its own, for what the first one lacks.
    """

    def __init__(self, folder: Path) -> None:
        self.second = Results(folder / "second") if (folder / "second").is_dir() else None
        self._found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}

    @cached_property
    def sets(self) -> list[str]:
        """The sets whose own texts were explained."""
        return [which for which in SIZES if self.stage(which, "reference")]

    @cached_property
    def errors(self) -> dict[str, str]:
        """The last line of what went wrong, by stage."""
        failed = {name: found["error"] for name, found in self._found.items() if "error" in found}
        return {name: error.strip().splitlines()[-1] for name, error in failed.items()}

    def stage(self, which: str, name: str) -> Any:
        """What a stage found."""
        found = self._found.get(f"{which}.{name}")
        return None if found is None or "error" in found else found

    def having(self, which: str, stage: str) -> Results:
        """The first run, or the second if it alone has this stage."""
        alone = self.stage(which, stage) is None and self.second is not None
        return self.second if alone and self.second.stage(which, stage) else self

    def column(self, which: str, stage: str, measure: str, row: str | None = None) -> Floats | None:
        """One number for each text, of one `row` where a stage has several."""
        found = self.stage(which, stage)
        columns = None if found is None else found["columns"] if row is None else found["columns"].get(row)
        return None if columns is None or measure not in columns else _numbers(columns[measure])

    def spread(self, which: str, stage: str, measure: str, row: str | None = None) -> float | None:
        """The standard deviation over seeds or trainings of a method's mean over texts."""
        runs = (self.stage(which, stage) or {}).get("runs", {})
        found = (runs if row is None else runs.get(row, {})).get(measure, [])
        return float(np.std(found, ddof=1)) if len(found) > 1 else None

    def curve(self, which: str, share: int) -> tuple[str, int | None]:
        """The stage of amortized models of a share of the training texts, in percent, and their number."""
        if share == WHOLE:
            return "method-amortized", (self.stage(which, "learned") or {}).get("texts")
        stage = f"curve-{share}"
        return stage, (self.stage(which, stage) or {}).get("texts")

    def right(self, which: str, stage: str, removal: str, share: str) -> Floats | None:
        """Whether each text is classified rightly with the top share masked."""
        found = self.stage(which, stage)
        return None if found is None else _numbers(found["accuracy"][removal][share])


def interval(values: Floats) -> Interval:
    """The mean over texts with its 95% bootstrap interval."""
    return bootstrap(values, resamples=RESAMPLES)


def difference(more: Floats | None, less: Floats | None) -> Difference | None:
    """By how much the first is larger, over the texts that both have; ``None`` if one is missing."""
    if more is None or less is None:
        return None
    n = min(len(more), len(less))
    return paired_difference(more[:n], less[:n], resamples=RESAMPLES)


def shown(values: Floats | None, digits: int = 2, factor: float = 1.0) -> str:
    """As ``0.81 [0.79, 0.83]``; of four digits, small numbers as ``1.23e-05``."""
    if values is None or not np.isfinite(values).any():
        return "–"
    found = interval(values * factor)
    form = ".2e" if digits == 4 and abs(found.mean) < 1e-3 else f".{digits}f"
    bounds = f" [{found.low:{form}}, {found.high:{form}}]" if np.isfinite(found.low) else ""
    return f"{found.mean:{form}}{bounds}"


def shown_difference(found: Difference | None) -> str:
    """As ``+0.03 [+0.02, +0.05]``."""
    return "–" if found is None else f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def number(value: float | None, form: str = ".2f") -> str:
    """A number of the paper, or nothing."""
    return "" if value is None else format(value, form)


def _numbers(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values])
