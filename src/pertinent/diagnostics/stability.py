"""Stability: agreement between explanations of the same inputs with different seeds (Yang et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import NOT_FINITE, Index, expect
from pertinent.config.settings import Count, NotNegative, Range, Seed, checked
from pertinent.diagnostics import base
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, require
from pertinent.printable import visible
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor
from pertinent.runs.explain import explain_all
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first
from pertinent.stats import Interval, spearman

SAME_SCORE = 1e-6
"""Scores that differ by less than this share of the prediction count as equal, to allow for rounding."""

Correlation: TypeAlias = Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
OptionalShare: TypeAlias = Annotated[float, Range(at_least=0, at_most=1), NOT_FINITE]
SeedCount: TypeAlias = Annotated[int, Range(at_least=2), Range(at_most=1000)]


@dataclass(frozen=True)
class SeedAgreement:
    """Agreement between explanations of one input with several seeds (Yang et al. 2023, Sec. 4).

    Means over all pairs of seeds: `spearman` is the rank correlation of the scores, `top_5` and `top_10` are
    the shares of common top features, and `mse` is the mean squared difference of the scores. Undefined
    values are NaN: `spearman` if a seed's scores are constant, `top_k` with k or fewer features.

    `input` is the index of the input, `id` the user's name for it, and `features` its number of features;
    `evaluations` and `seconds` are the mean cost of one explanation.
    """

    input: Index
    features: Count
    spearman: Correlation
    top_5: OptionalShare
    top_10: OptionalShare
    mse: Annotated[float, Range(at_least=0), NOT_FINITE]
    evaluations: NotNegative
    seconds: NotNegative
    id: str | None = None


def agreement(explanations: Sequence[Explanation]) -> SeedAgreement:
    """Measure the agreement between explanations of one input and target, one per seed."""
    first = explanations[0]
    scores = np.stack([e.scores for e in explanations])
    rankings = [e.ranking.tolist() for e in explanations]
    floor = SAME_SCORE * float(np.abs(first.prediction.values).max())
    varied = bool((np.ptp(scores, axis=1) > floor).all())
    return SeedAgreement(
        input=first.index,
        features=len(first.features),
        spearman=float(_pairs(spearman(scores)).mean()) if varied else np.nan,
        top_5=top_in_common(rankings, 5),
        top_10=top_in_common(rankings, 10),
        mse=mean_squared_difference(scores),
        evaluations=float(np.mean([e.evaluations for e in explanations])),
        seconds=float(np.mean([e.cost.seconds for e in explanations])),
        id=first.id,
    )


def top_in_common(rankings: Sequence[Sequence[int]], k: int) -> float:
    """Compute the share of common features among the first k, averaged over all pairs of rankings.

    NaN for rankings of k or fewer features, which all have the same first k.

    >>> top_in_common([[0, 1, 2, 3], [3, 1, 0, 2]], 2)
    0.5
    """
    if len(rankings[0]) <= k:
        return np.nan
    first = np.zeros((len(rankings), len(rankings[0])))
    for row, ranking in zip(first, rankings, strict=True):
        row[list(ranking[:k])] = 1.0
    return float(_pairs(first @ first.T).mean() / k)


def mean_squared_difference(rows: Floats) -> float:
    """Compute the mean squared difference of two rows, averaged over all pairs: twice the variance.

    >>> mean_squared_difference(np.array([[0.0, 0.0], [1.0, 3.0]]))
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        difference = 2.0 * float((rows - rows[0]).var(axis=0, ddof=1).mean())  # exactly 0 for equal rows
    return difference if np.isfinite(difference) else np.nan


def _pairs(table: Floats) -> Floats:
    """Return the entries above the diagonal of a symmetric table."""
    return np.asarray(table[np.triu_indices(len(table), 1)])


_MEASURES = {
    "spearman": ("Spearman", ".2f"),
    "top_5": ("top 5", ".2f"),
    "top_10": ("top 10", ".2f"),
    "mse": ("MSE", ".2g"),
    "evaluations": ("evaluations", ",.0f"),
    "seconds": ("seconds", ".2g"),
}
"""Measures of a `SeedAgreement`, with their headings and formats."""

_WHY_MISSING = {
    "spearman": "a seed gave all their features the same score",
    "top_5": "they have at most 5 features",
    "top_10": "they have at most 10 features",
}

_SHORTEST = 10
"""Inputs with fewer features form group 0; each further group's lower bound is twice the last."""


@dataclass(frozen=True)
class LengthGroup:
    """Inputs with `low` to `high` features, and the mean of each measure over these inputs."""

    number: int
    inputs: int
    measures: Mapping[str, Interval]

    @property
    def low(self) -> int:
        """Return the smallest number of features."""
        return _SHORTEST << (self.number - 1) if self.number else 1

    @property
    def high(self) -> int:
        """Return the largest number of features."""
        return (_SHORTEST << self.number) - 1

    def __str__(self) -> str:
        return f"{self.low}–{self.high}"


@base.diagnostics.register("stability")
@dataclass(frozen=True, kw_only=True)
class Stability(base.MethodDiagnostic):
    """Agreement between explanations of the same inputs with different seeds (Yang et al. 2023, Sec. 4).

    Attributes
    ----------
    rows
        Agreement for each input that was explained with every seed.
    seeds
        The seeds, starting from 0.
    """

    rows: tuple[SeedAgreement, ...]
    seeds: tuple[Seed, ...]

    @cached_property
    def summary(self) -> dict[str, Interval]:
        """Return the mean of each measure over inputs, with its 95% bootstrap interval.

        The `n` of an interval counts the inputs for which the measure is defined.
        """
        return _summary(self.rows)

    @cached_property
    def by_length(self) -> list[LengthGroup]:
        """Return the means for inputs of 1–9, 10–19, 20–39, 40–79 … features, shortest first.

        The groups do not depend on the inputs, so methods can be compared.
        """
        groups: dict[int, list[SeedAgreement]] = {}
        for row in sorted(self.rows, key=lambda row: row.features):
            groups.setdefault((row.features // _SHORTEST).bit_length(), []).append(row)
        return [LengthGroup(number, len(rows), _summary(rows)) for number, rows in groups.items()]

    def check_fields(self) -> None:
        """Raise an `InputError` unless seeds and inputs are distinct."""
        super().check_fields()
        expect(len(set(self.seeds)) == len(self.seeds) > 1, "seeds", "at least 2, all different", self.seeds)
        expect(self.inputs == len(self.rows), "rows", "with distinct inputs", f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """Return the mean of each measure."""
        return {"means": {name: interval.mean for name, interval in self.summary.items()}}

    def table(self) -> base.DiagnosticTable:
        """Return a row for all inputs, and one for each length group."""
        rows = [_table_row(str(group), group.inputs, group.measures) for group in self.by_length]
        total = [_table_row("all", self.inputs, self.summary)] if len(rows) > 1 else []
        return base.DiagnosticTable(
            question=f"How stable is {self.name}?",
            columns=("features", "inputs", *(heading for heading, _ in _MEASURES.values())),
            rows=(*total, *rows),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        yield (
            f"{len(self.seeds)} seeds, all pairs; removal {self.removal}; {self.features}. "
            "Top 5 and 10: share of common features. Evaluations and model seconds: per explanation. "
            "95% bootstrap intervals over inputs."
        )
        yield from base.few_inputs(self.inputs)
        for measure, reason in _WHY_MISSING.items():
            missing = self.inputs - self.summary[measure].n
            if missing:
                heading, _ = _MEASURES[measure]
                yield f"Missing from {heading}: {missing:,} of {self.inputs:,} inputs, because {reason}."

    def chart(self) -> base.Chart:
        """Return Spearman's correlation by number of features (Figure 3)."""
        intervals = {float(group.number): group.measures["spearman"] for group in self.by_length}
        line = base.Line(self.name, {x: interval for x, interval in intervals.items() if interval.n})
        return base.Chart(
            panels={f"{self.inputs:,} inputs × {len(self.seeds)} seeds, 95% intervals": (line,)},
            x_label=f"number of {self.features}",
            y_label="Spearman's correlation between seeds",
            ticks={float(group.number): str(group) for group in self.by_length},
        )

    def __repr__(self) -> str:
        top = self.summary["top_5"]
        common = f", top 5 in common {top}" if top.n else ""
        return (
            f"<Stability of {visible(self.name)}, {len(self.seeds)} seeds, {self.inputs} inputs: "
            f"Spearman {self.summary['spearman']}{common}>"
        )


def _summary(rows: Sequence[SeedAgreement]) -> dict[str, Interval]:
    return {name: base.interval([getattr(row, name) for row in rows]) for name in _MEASURES}


def _table_row(name: str, inputs: int, measures: Mapping[str, Interval]) -> base.TableRow:
    """Return a row with bounds for Spearman's correlation (the paper's main measure) and means."""
    cells = {measure: base.cell(measures[measure], form) for measure, (_, form) in _MEASURES.items()}
    means = ((mean, "") for measure, (mean, _) in cells.items() if measure != "spearman")
    return base.TableRow(name, ((f"{inputs:,}", ""), cells["spearman"], *means))


@checked
def stability(
    model: Any,
    inputs: Any,
    method: Method,
    *,
    seeds: SeedCount = 5,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Stability:
    """Explain the same inputs with several seeds and measure how much the explanations agree.

    For each input, over all pairs of seeds: Spearman's correlation of the scores, the share of common top 5
    and top 10 features, and the mean squared difference (Yang et al. 2023, Sec. 4, Tables 1 and 2). The seed
    determines the draws of the method and of a random removal; the target is the same for all seeds.

    Parameters
    ----------
    model, inputs, method
        As in `explain`.
    seeds
        Number of seeds, at least 2: 0, 1, 2 ….
    ids, batch_size, cluster, progress
        As in `explain`.
    **words
        Other arguments of `explain`, such as ``budget=200``, and settings of the method, such as
        ``samples=25``.

    Notes
    -----
    The top features are those of `Explanation.top`: as in the paper, the highest scores instead of the
    largest magnitudes, except for plain values. The paper reports the number of common features, this
    function the share. The authors' code ignores pairs with a large difference; this function uses all pairs.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> result = stability(model, ["not bad at all", "a bad thing"], "leave-one-out", seeds=3)
    >>> result.summary["spearman"].mean, result.summary["mse"].mean
    (1.0, 0.0)
    """
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, "stability", cluster=cluster, **options)
    require("seed" not in words, "seed", "omitted: `seeds` sets the number of seeds", words.get("seed"))
    request = Request.from_keywords(method, words)
    explanations = explain_all(run, [replace(request, seed=seed) for seed in range(seeds)])
    failures = {failure.index: failure for failure in reversed(explanations.failures)}
    by_input: dict[int, list[Explanation]] = {}
    for e in explanations:
        by_input.setdefault(e.index, []).append(e)
    for index, group in by_input.items():
        if index not in failures and len({e.target for e in group}) > 1:
            failures[index] = _different_targets(group)
    complete = [group for index, group in by_input.items() if index not in failures]
    sorted_failures = tuple(failures[index] for index in sorted(failures))
    if not complete:
        raise_first(sorted_failures, "explained with every seed")
    first = complete[0][0]
    return Stability(
        rows=tuple(agreement(group) for group in complete),
        seeds=tuple(range(seeds)),
        run_warnings=first.warnings,
        failures=sorted_failures,
        **base.method_fields(first, request.budget),
    )


def _different_targets(explanations: Sequence[Explanation]) -> Failure:
    """Return the failure of an input whose prediction changed between seeds."""
    first = explanations[0]
    names = ", ".join(sorted({e.target_name for e in explanations}))
    error = InputError(
        f"The model is random: it predicted {names} for the same input, but scores of different targets "
        "cannot be compared. Set `target`."
    )
    return Failure(first.index, str(error), error=error, id=first.id)
