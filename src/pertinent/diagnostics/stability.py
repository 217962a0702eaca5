"""How much do explanations depend on the seed? Every seed of every input in one run (Yang et al. 2023)."""

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
from pertinent.runs.blocks import Cluster
from pertinent.runs.explain_run import explain_all
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first
from pertinent.stats import Interval, spearman

SAME_SCORE = 1e-6
"""Scores that differ by less than this share of the prediction are the same: the rest is rounding."""


@dataclass(frozen=True)
class SeedAgreement:
    """How well the explanations of one input with several seeds agree (Yang et al. 2023, Sec. 4).

    Means over all pairs of seeds: `spearman` of their scores, the share of the `top_5` and `top_10`
    features in common, and the mean squared difference of their scores, `mse`. NaN where there is
    none: no correlation if a seed's scores are constant, no top k of k features or fewer.

    `input` is the position of the input among those given and `id` the user's own name for it,
    `features` their number; `evaluations` and `seconds` are means over seeds, for one explanation.
    """

    input: Index
    features: Count
    spearman: Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
    top_5: Annotated[float, Range(at_least=0, at_most=1), NOT_FINITE]
    top_10: Annotated[float, Range(at_least=0, at_most=1), NOT_FINITE]
    mse: Annotated[float, Range(at_least=0), NOT_FINITE]
    evaluations: NotNegative
    seconds: NotNegative
    id: str | None = None


def agreement(explanations: Sequence[Explanation]) -> SeedAgreement:
    """Measure explanations of one input and target, one for each seed."""
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
    """The share of the first k that two rankings have in common, averaged over all pairs of rankings.

    NaN for rankings of k features or fewer, which all have the same first k.

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
    """The mean squared difference of two rows, averaged over all pairs: twice the variance over rows.

    >>> mean_squared_difference(np.array([[0.0, 0.0], [1.0, 3.0]]))
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = 2.0 * float((rows - rows[0]).var(axis=0, ddof=1).mean())  # exactly 0 for equal rows
    return found if np.isfinite(found) else np.nan


def _pairs(table: Floats) -> Floats:
    """The entries of a symmetric table, each pair of different rows once."""
    return np.asarray(table[np.triu_indices(len(table), 1)])


SeedCount: TypeAlias = Annotated[int, Range(at_least=2), Range(at_most=1000)]

_MEASURES = {
    "spearman": ("Spearman", ".2f"),
    "top_5": ("top 5", ".2f"),
    "top_10": ("top 10", ".2f"),
    "mse": ("MSE", ".2g"),
    "evaluations": ("evaluations", ",.0f"),
    "seconds": ("seconds", ".2g"),
}
"""The measures of an `SeedAgreement`, each with its heading and format."""

_WHY_MISSING = {
    "spearman": "a seed gave all their features the same score",
    "top_5": "they have no more than 5 features",
    "top_10": "they have no more than 10 features",
}

_SHORTEST = 10
"""Inputs with fewer features form the first group; from there each bound is twice the one before."""


@dataclass(frozen=True)
class LengthGroup:
    """Inputs with `low` to `high` features, and the mean of each measure over them."""

    low: int
    high: int
    inputs: int
    measures: Mapping[str, Interval]

    def __str__(self) -> str:
        """As ``20–39``."""
        return f"{self.low}–{self.high}"


@base.diagnostics.register("stability")
@dataclass(frozen=True, kw_only=True)
class Stability(base.MethodDiagnostic):
    """How well explanations of the same inputs with different seeds agree (Yang et al. 2023, Sec. 4).

    Attributes
    ----------
    rows
        The agreement on each input that every seed explained.
    seeds
        The seeds, from 0.
    """

    rows: tuple[SeedAgreement, ...]
    seeds: tuple[Seed, ...]

    @cached_property
    def summary(self) -> dict[str, Interval]:
        """The mean of each measure over inputs, with its 95% bootstrap interval.

        The `n` of an interval counts the inputs that have the measure.
        """
        return _summary(self.rows)

    @cached_property
    def by_length(self) -> list[LengthGroup]:
        """The means for inputs of 1–9, 10–19, 20–39, 40–79 … features, the shortest first.

        The groups do not depend on the inputs, so that two methods can be compared.
        """
        groups: dict[int, list[SeedAgreement]] = {}
        for row in sorted(self.rows, key=lambda row: row.features):
            groups.setdefault(_lower_bound(row.features), []).append(row)
        return [LengthGroup(low, _upper_bound(low), len(own), _summary(own)) for low, own in groups.items()]

    def check_fields(self) -> None:
        """Seeds and inputs must be different."""
        super().check_fields()
        expect(len(set(self.seeds)) == len(self.seeds) > 1, "seeds", "at least 2, all different", self.seeds)
        expect(self.inputs == len(self.rows), "rows", "each of another input", f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """The mean of each measure."""
        return {"means": {name: found.mean for name, found in self.summary.items()}}

    def table(self) -> base.DiagnosticTable:
        """A row for all inputs, and one for each group of lengths."""
        groups = [(str(group), group.inputs, group.measures) for group in self.by_length]
        every = [("all", self.inputs, self.summary)] if len(groups) > 1 else []
        return base.DiagnosticTable(
            question=f"How stable is {self.name}?",
            columns=("features", "inputs", *(title for title, _ in _MEASURES.values())),
            rows=tuple(base.TableRow(name, _cells(n, found)) for name, n, found in (*every, *groups)),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        yield (
            f"{len(self.seeds)} seeds, all pairs; removal {self.removal}; {self.features}. "
            "Top 5 and 10: the share in common. Evaluations and model seconds: for one explanation. "
            "95% bootstrap intervals over inputs."
        )
        yield from base.few_inputs(self.inputs)
        for measure, reason in _WHY_MISSING.items():
            missing = self.inputs - self.summary[measure].n
            if missing:
                title, _ = _MEASURES[measure]
                yield f"Left out of {title}: {missing:,} of {self.inputs:,} inputs, because {reason}."

    @classmethod
    def chart(cls, several: Sequence[Stability]) -> base.Chart:
        """Spearman's correlation against the number of features, a line for each result (Figure 3)."""
        names = {group.low: str(group) for stability in several for group in stability.by_length}
        places = {low: float(place) for place, low in enumerate(sorted(names))}
        lines = []
        for stability in several:
            found = {group.low: group.measures["spearman"] for group in stability.by_length}
            known = {places[low]: each for low, each in found.items() if each.n}
            lines.append(base.Line(stability.name, tuple(known), tuple(known.values())))
        counts = sorted({(s.inputs, len(s.seeds)) for s in several})
        title = ", ".join(f"{inputs:,} inputs × {seeds} seeds" for inputs, seeds in counts)
        return base.Chart(
            panels={f"{title}, 95% intervals": tuple(lines)},
            x_label=f"number of {several[0].features}",
            y_label="Spearman's correlation between seeds",
            ticks={place: names[low] for low, place in places.items()},
        )

    def __repr__(self) -> str:
        top = self.summary["top_5"]
        found = f"Spearman {self.summary['spearman']}" + (f", top 5 in common {top}" if top.n else "")
        return f"<Stability of {visible(self.name)}, {len(self.seeds)} seeds, {self.inputs} inputs: {found}>"


@checked
def stability(
    model: Any,
    inputs: Any,
    method: Method,
    *,
    seeds: SeedCount = 5,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Stability:
    """Explain the same inputs with several seeds, and measure how well the explanations agree.

    For each input, over all pairs of seeds: Spearman's correlation of the scores, the share of the top
    5 and top 10 features in common, and the mean squared difference (Yang et al. 2023, Sec. 4, Tables
    1 and 2). The seed decides what the method and a random removal draw; all explain the same target.

    Parameters
    ----------
    model, inputs, method
        As in `explain`.
    seeds
        How many seeds, at least 2: 0, 1, 2 ….
    ids, batch_size, cluster, progress
        As in `explain`.
    **words
        The words of `explain`, such as ``budget=200``, and settings of the method, such as ``samples=25``.

    Notes
    -----
    The top features are those that `Explanation.top` gives: as in the paper those with the highest
    scores, not the largest magnitudes, except for a plain value. The paper gives their number in
    common, this the share. Unlike the authors' code it leaves out no pair because its difference is large.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> found = stability(model, ["not bad at all", "a bad thing"], "leave-one-out", seeds=3)
    >>> found.summary["spearman"].mean, found.summary["mse"].mean
    (1.0, 0.0)
    """
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, "stability", cluster=cluster, **options)
    require("seed" not in words, "seed", "left out: `seeds` says how many there are", words.get("seed"))
    request = Request.from_keywords(method, words)
    found = explain_all(run, [replace(request, seed=seed) for seed in range(seeds)])
    failures = {failure.index: failure for failure in reversed(found.failures)}
    of_inputs: dict[int, list[Explanation]] = {}
    for e in found:
        of_inputs.setdefault(e.index, []).append(e)
    for index, own in of_inputs.items():
        if index not in failures and len({e.target for e in own}) > 1:
            failures[index] = _different_targets(own)
    explained = [own for index, own in of_inputs.items() if index not in failures]
    in_order = tuple(failures[index] for index in sorted(failures))
    if not explained:
        raise_first(in_order, "explained with every seed")
    first = explained[0][0]
    return Stability(
        rows=tuple(agreement(own) for own in explained),
        seeds=tuple(range(seeds)),
        noticed=first.warnings,
        failures=in_order,
        **base.method_fields(first, request.budget),
    )


def _different_targets(explanations: Sequence[Explanation]) -> Failure:
    """The failure of an input whose prediction changed from one seed to the next."""
    first = explanations[0]
    names = ", ".join(sorted({e.target_name for e in explanations}))
    error = InputError(
        f"The model is random: it predicted {names} for the same input, and scores of different targets "
        "cannot be compared. Name the target."
    )
    return Failure(first.index, str(error), error=error, id=first.id)


def _cells(inputs: int, measures: Mapping[str, Interval]) -> tuple[tuple[str, str], ...]:
    """Spearman's correlation, the main measure of the paper, has its bounds; the others are means."""
    cells = {name: base.cell(measures[name], form) for name, (_, form) in _MEASURES.items()}
    means = [(text, "") for name, (text, _) in cells.items() if name != "spearman"]
    return (f"{inputs:,}", ""), cells["spearman"], *means


def _summary(rows: Sequence[SeedAgreement]) -> dict[str, Interval]:
    return {name: base.interval([getattr(row, name) for row in rows]) for name in _MEASURES}


def _lower_bound(features: int) -> int:
    """The fewest features of an input's group.

    >>> [_lower_bound(n) for n in (1, 9, 10, 19, 20, 39, 40)]
    [1, 1, 10, 10, 20, 20, 40]
    """
    return 1 if features < _SHORTEST else _SHORTEST << ((features // _SHORTEST).bit_length() - 1)


def _upper_bound(low: int) -> int:
    return _SHORTEST - 1 if low < _SHORTEST else 2 * low - 1
