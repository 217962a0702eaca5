"""The result of `sanity`: do explanations change when the model's parameters are randomised?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.control_characters import visible
from pertinent.diagnostics.removal_check import label
from pertinent.diagnostics.seed_agreement import SAME_SCORE
from pertinent.intervals import Interval, bootstrap
from pertinent.rank_correlation import spearman
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.settings import checked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HARDLY = 0.7
"""From this mean rank correlation on explanations have hardly changed: by convention, it is strong."""

_RESAMPLES = 2_000


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of one input's explanations with the model as it is and randomised.

    `spearman` is that of the scores, `absolute` that of their absolute values; NaN where one of the two
    explanations gives all features the same. `stage` counts the layers that were randomised, `input` is
    the position of the input among those given, and `id` the user's own name for it.
    """

    input: int
    stage: int
    spearman: float
    absolute: float
    id: str | None = None


@dataclass(frozen=True)
class Stage:
    """The mean correlations after `layer`, and all layers above it, were randomised."""

    layer: str
    spearman: Interval
    absolute: Interval

    @property
    def correlations(self) -> dict[str, Interval]:
        """The mean correlations of ``"scores"`` and of ``"absolute scores"``."""
        return {"scores": self.spearman, "absolute scores": self.absolute}

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Which scores hardly changed: ``"scores"``, ``"absolute scores"``."""
        return tuple(what for what, interval in self.correlations.items() if interval.mean >= HARDLY)


@dataclass(frozen=True)
class Sanity:
    """How explanations change as a model's parameters are randomised (Adebayo et al. 2018).

    Attributes
    ----------
    rows
        The correlations of each input at each stage.
    method, settings
        The method, and its settings that differ from their defaults.
    budget
        The budget that was given, or ``None``.
    removal
        The removal, with its settings.
    features
        The kind of features.
    layers
        The layers that were randomised, from the output down; each stage keeps those before it random.
    n_layers
        How many layers the model has.
    seed
        Of the random parameters and of the method.
    noticed
        What was noticed in the run, such as a model that is random.
    failures
        Inputs that could not be explained, with the model as it is or at some stage.
    """

    rows: tuple[Correlation, ...]
    method: str
    settings: Mapping[str, Any]
    budget: int | None
    removal: str
    features: str
    layers: tuple[str, ...]
    n_layers: int
    seed: int = 0
    noticed: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = field(default=())

    @property
    def name(self) -> str:
        """The method with its settings, as ``lime samples=50 budget=60``, but for those left as they are."""
        budget = {} if self.budget is None else {"budget": self.budget}
        return label(self.method, {**self.settings, **budget})

    @property
    def inputs(self) -> int:
        """How many inputs were explained at some stage."""
        return len({row.input for row in self.rows})

    @cached_property
    def stages(self) -> list[Stage]:
        """The mean correlations at each stage, with 95% bootstrap intervals over inputs."""
        return [
            Stage(layer, self._interval(stage, "spearman"), self._interval(stage, "absolute"))
            for stage, layer in enumerate(self.layers, start=1)
        ]

    @property
    def passed(self) -> bool:
        """Whether explanations changed: at the last stage both mean correlations are below 0.7.

        Where a correlation does not exist, nothing was shown, and the check fails.
        """
        last = self.stages[-1]
        return last.spearman.mean < HARDLY and last.absolute.mean < HARDLY

    @property
    def warnings(self) -> tuple[str, ...]:
        """In words, why the check fails, and what else was noticed."""
        return (*self._complaints(), *self.noticed)

    def _complaints(self) -> list[str]:
        last, n_stages = self.stages[-1], len(self.layers)
        when = f"with {n_stages} of {self.n_layers} layers randomised, down to {last.layer}"
        if not any(row.stage == n_stages for row in self.rows):
            return [f"scores say nothing: {when}, no input could be explained"]
        found = []
        for what, interval in last.correlations.items():
            if what in last.unchanged:
                found.append(
                    f"the {what} of {self.method} hardly change: {when}, their rank correlation with the "
                    f"original ones is {interval}; below {HARDLY:g} is expected"
                )
            elif not interval.n:
                found.append(
                    f"{what} say nothing: {when}, they have no rank correlation with the original ones, "
                    "because in one of the two explanations of each input all features have the same"
                )
        return found

    def _interval(self, stage: int, measure: str) -> Interval:
        values = [getattr(row, measure) for row in self.rows if row.stage == stage]
        return bootstrap(np.array(values, dtype=np.float64), resamples=_RESAMPLES)

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per input and stage."""
        rows = [{**asdict(row), "layer": self.layers[row.stage - 1]} for row in self.rows]
        return optional("pandas").DataFrame(rows)

    def to_json(self) -> str:
        """A JSON string: every row, and the means."""
        from pertinent.diagnostics.sanity_files import to_json

        return to_json(self)

    @checked
    def save(self, path: str | Path) -> None:
        """Write a JSON file that `read` reads back."""
        from pertinent.diagnostics.sanity_files import write

        write(self, path)

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Sanity:
        """Read a result that was saved."""
        from pertinent.diagnostics.sanity_files import read

        return read(path)

    def plot(self, *others: Sanity) -> Figure:
        """A matplotlib figure: the rank correlations at each stage.

        `others` are drawn beside it, for example other methods on the same layers.
        """
        from pertinent.report.sanity_plot import plot_sanity

        return plot_sanity([self, *others])

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        at_last = [
            f"{interval if interval.n else 'undefined'} of {what}"
            for what, interval in self.stages[-1].correlations.items()
        ]
        return (
            f"<Sanity of {visible(self.name)}, {len(self.layers)} of {self.n_layers} layers randomised, "
            f"{self.inputs} input{'' if self.inputs == 1 else 's'}: {verdict}, at last Spearman "
            f"{', '.join(at_last)}>"
        )

    def _repr_html_(self) -> str:
        from pertinent.report.sanity_table import html

        return html(self)

    def __rich__(self) -> Any:
        from pertinent.report.sanity_table import rendered

        return rendered(self)


def correlation(original: Explanation, randomised: Explanation, stage: int) -> Correlation:
    """The rank correlations of two explanations of the same input and target."""
    scores = np.stack([original.scores, randomised.scores])
    return Correlation(
        input=original.index,
        stage=stage,
        spearman=_spearman(scores),
        absolute=_spearman(np.abs(scores)),
        id=original.id,
    )


def _spearman(rows: Floats) -> float:
    """The correlation of two rows; NaN if one is constant, but for rounding."""
    varied = np.ptp(rows, axis=1) > SAME_SCORE * np.abs(rows).max(axis=1)
    return float(spearman(rows)[0, 1]) if varied.all() else np.nan
