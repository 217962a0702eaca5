"""The paper's findings: each as a difference between paired numbers of the same texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.shared.intervals import difference, show
from experiments.yang2023.results import Results
from experiments.yang2023.sets import SETS, TARGETS
from pertinent.array_types import Floats
from pertinent.stats import Difference

WITH_SVS = "svs spearman"
Gap = Callable[[Results, str], Difference | None]
"""Function from the records and a data set to a difference."""
SETS_OF_FINDINGS = ("sst2", "mnli", "imdb")
OF_EARLIER, OF_SECOND = "¹", "²"
"""Marks of differences that are not of the later run's models."""

EARLIER: dict[str, dict[str, tuple[float, float, float]]] = {
    "amortized is better than FastSHAP": {"sst2": (0.03, 0.02, 0.05), "imdb": (0.11, 0.08, 0.14)},
    "(ours) `shapley` with 500 evaluations is nearer to the reference than SVS-25": {
        "sst2": (0.03, 0.02, 0.03),
        "mnli": (0.01, 0.01, 0.02),
        "imdb": (-0.13, -0.15, -0.12),
    },
}
"""Means and intervals that an earlier run printed, where the later ones have no records."""


@dataclass(frozen=True)
class Finding:
    """A finding of the paper, its numbers, and a difference that is positive where it holds."""

    text: str
    paper: str
    measured: str
    gap: Gap


def of_columns(more: tuple[str, ...], less: tuple[str, ...]) -> Gap:
    """Return the difference of two columns, each named by record, measure and, perhaps, row."""
    return lambda results, dataset: difference(*(results.column(dataset, *column) for column in (more, less)))


def between(more: str, less: str, measure: str) -> Gap:
    """Return a measure of one method minus that of another."""
    return of_columns((f"method-{more}", measure), (f"method-{less}", measure))


def adaption(m: int, more: str, less: str) -> Gap:
    """Return one row of Table 5 with m permutations minus another, of the same texts and trainings."""
    return of_columns((f"adapted-{m}", WITH_SVS, more), (f"adapted-{m}", WITH_SVS, less))


padding = of_columns(("method-KS-200", "spearman"), ("padded-KS-200", "spearman"))
"""How much more stable the tokens' ranks by KS-200 are without padding among the players."""


def below(method: str, limit: float) -> Gap:
    """Return how far a method's correlation between seeds is below a limit."""

    def gap(results: Results, dataset: str) -> Difference | None:
        values = results.column(dataset, f"method-{method}", "spearman")
        return None if values is None else difference(np.full(len(values), limit), values)

    return gap


def halves(values: Floats, lengths: Floats) -> Difference | None:
    """Return the values of the shorter half of the texts minus those of the longer half."""
    order = np.argsort(lengths, kind="stable")
    half = len(order) // 2
    return difference(values[order[:half]], values[order[-half:]])


def shorter(results: Results, dataset: str) -> Difference | None:
    """Return the correlation between seeds of KS-200, of the shorter half of the texts minus the longer."""
    values = results.column(dataset, "method-KS-200", "spearman")
    lengths = results.column(dataset, "method-KS-200", "features")
    return None if values is None or lengths is None else halves(values, lengths)


def transfer(source: str, other: str = "KS-100") -> Gap:
    """Return amortized minus another method, both of a model of another data set."""

    def gap(results: Results, dataset: str) -> Difference | None:
        if TARGETS.get(source) != dataset:
            return None
        names = ("amortized", other)
        return difference(*(results.column(source, f"transfer-{dataset}", WITH_SVS, n) for n in names))

    return gap


def speedup(stage: str) -> Gap:
    """Return the ratio of the seconds of KS-200 to those of the amortized model, minus 1."""

    def gap(results: Results, dataset: str) -> Difference | None:
        record = results.stage(dataset, stage)
        if record is None:
            return None
        slow, fast = (np.array(record["alone"][name]) for name in ("KS-200", "amortized"))
        return difference(slow / fast, np.ones(len(fast)))

    return gap


def calibration(other: str) -> Gap:
    """Return the accuracy on MRPC with the amortized model minus that with another method."""

    def gap(results: Results, dataset: str) -> Difference | None:
        rows = (results.stage(dataset, "calibration") or {}).get("rows", {})
        plain = rows.get("amortized", {}).get(f"beside {other}")
        return None if plain is None else Difference(**plain)

    return gap


def masking(more: str, less: str) -> Gap:
    """Return the accuracy with the top 20% of one masked minus that of another, as the paper masks."""

    def gap(results: Results, dataset: str) -> Difference | None:
        names = (more, less)
        return difference(*(results.right(dataset, f"method-{name}", "pad-token", "0.2") for name in names))

    return gap


FINDINGS = (
    Finding("KS-200 is unstable", "0.16, 0.24", "0.40 − ρ between seeds", below("KS-200", 0.4)),
    Finding("even KS-2000 is hardly stable", "0.37, 0.52", "0.60 − ρ between seeds", below("KS-2000", 0.6)),
    Finding(
        "(ours) where padding plays, KS-200 ranks the tokens less stably",
        "–",
        "ρ of the tokens alone − of the tokens among 512 players",
        padding,
    ),
    Finding("the longer a text, the less stable", "Figure 3", "ρ of the shorter − the longer half", shorter),
    Finding(
        "SVS-25 is more stable than KS-2000",
        "0.84 > 0.37, 0.75 > 0.52",
        "difference of ρ between seeds",
        between("SVS-25", "KS-2000", "spearman"),
    ),
    Finding(
        "amortized is better than KS-200",
        "0.61 > 0.24, 0.42 > 0.35",
        "difference of ρ with SVS-25",
        between("amortized", "KS-200", WITH_SVS),
    ),
    Finding(
        "KS-2000 is better than amortized",
        "0.51 < 0.61, 0.60 > 0.42",
        "difference of ρ with SVS-25",
        between("KS-2000", "amortized", WITH_SVS),
    ),
    Finding(
        "amortized is better than FastSHAP",
        "0.61 > 0.18, 0.42 > 0.23",
        "difference of ρ with SVS-25",
        between("amortized", "FastSHAP", WITH_SVS),
    ),
    Finding(
        "… and than FastSHAP of as many evaluations",
        "–",
        "difference of ρ with SVS-25",
        between("amortized", "FastSHAP-equal", WITH_SVS),
    ),
    Finding(
        "… with fresh coalitions in every step",
        "–",
        "difference of ρ with SVS-25",
        between("amortized", "FastSHAP-fresh", WITH_SVS),
    ),
    Finding(
        "… of a surrogate",
        "–",
        "difference of ρ with SVS-25",
        between("amortized", "FastSHAP-surrogate", WITH_SVS),
    ),
    Finding(
        "amortized is faster than KS-200, on one H200",
        "40 to 60 times as fast",
        "seconds of KS-200 / of amortized − 1, texts one by one",
        speedup("seconds-alone"),
    ),
    Finding(
        "amortized is faster than KS-200, on one core of a CPU",
        "40 to 60 times as fast, A100",
        "seconds of KS-200 / of amortized − 1, texts one by one",
        speedup("seconds-cpu"),
    ),
    Finding(
        "Alg. 1 with 2 permutations is better than these alone",
        "0.64 > 0.52, 0.47 > 0.41",
        "difference of ρ with SVS-25",
        adaption(2, "alg. 1", "SVS"),
    ),
    Finding(
        "… with 5",
        "0.71 > 0.69, 0.57 > 0.55",
        "difference of ρ with SVS-25",
        adaption(5, "alg. 1", "SVS"),
    ),
    Finding(
        "… and than the prediction",
        "0.71 > 0.61, 0.57 > 0.42",
        "difference of ρ with SVS-25",
        adaption(5, "alg. 1", "prediction"),
    ),
    Finding(
        "(ours) precision weights are better than Alg. 1",
        "–",
        "difference of ρ with SVS-25, 5 permutations",
        adaption(5, "ours", "alg. 1"),
    ),
    Finding(
        "in another domain amortized is better than KS-100",
        "0.50 > 0.46",
        "difference of ρ with SVS-25, Yelp-Polarity → SST-2",
        transfer("yelp"),
    ),
    Finding(
        "… than KS-100 with padding among the players",
        "0.50 > 0.46",
        "the same",
        transfer("yelp", "KS-100, padded"),
    ),
    Finding(
        "… from IMDB, than KS-100",
        "–",
        "the same, IMDB → SST-2",
        transfer("imdb"),
    ),
    Finding(
        "amortized is more faithful than KS-200",
        "Figure 5",
        "accuracy without the top 20% of KS-200 − of amortized",
        masking("KS-200", "amortized"),
    ),
    Finding(
        "SVS-25 is more faithful than amortized",
        "Figure 5",
        "accuracy without the top 20% of amortized − of SVS-25",
        masking("amortized", "SVS-25"),
    ),
    Finding(
        "calibration: amortized is better than KS-2000",
        "–",
        "accuracy on MRPC",
        calibration("KS-2000"),
    ),
    Finding(
        "… with padding among the players",
        "68.0 > 67.4",
        "accuracy on MRPC",
        calibration("KS-2000, padded"),
    ),
    Finding(
        "(ours) `shapley` with 200 evaluations is nearer to the reference than amortized",
        "–",
        "difference of ρ with the reference",
        between("shapley-200", "amortized", "reference spearman"),
    ),
    Finding(
        "(ours) `shapley` with 500 evaluations is nearer to the reference than SVS-25",
        "–",
        "difference of ρ with the reference",
        between("shapley-500", "SVS-25", "reference spearman"),
    ),
)


def verdict(gaps: list[Difference]) -> str:
    """Return what the intervals say, of all data sets together."""
    holds, fails = [gap.low > 0 for gap in gaps], [gap.high < 0 for gap in gaps]
    if not gaps:
        return "–"
    if all(holds):
        return "yes"
    if any(holds):
        return "on some sets, on others the reverse" if any(fails) else "on some sets"
    return "no, the reverse" if all(fails) else "no" if any(fails) else "undecided"


def rows(results: Results) -> list[list[str]]:
    """Return a row for each finding: the paper's numbers, our differences, and the verdict."""
    lines = []
    for finding in FINDINGS:
        pairs = [measured(results, finding, dataset) for dataset in SETS_OF_FINDINGS]
        cells = [show(gap, "+.2f") + mark for gap, mark in pairs]
        answer = verdict([gap for gap, _ in pairs if gap is not None])
        lines.append([finding.text, finding.paper, finding.measured, *cells, answer])
    return lines


def measured(results: Results, finding: Finding, dataset: str) -> tuple[Difference | None, str]:
    """Return the difference of a finding on a data set, and a mark if it is not of the later run."""
    for run, mark in ((results, ""), (results.second, OF_SECOND)):
        gap = None if run is None else finding.gap(run, dataset)
        if gap is not None:
            return gap, mark
    if dataset in EARLIER.get(finding.text, {}):
        mean, low, high = EARLIER[finding.text][dataset]
        return Difference(mean, low, high, 0, np.nan), OF_EARLIER
    return None, ""


def head() -> list[str]:
    """Return the heads of the columns of `rows`."""
    names = [SETS[dataset].name for dataset in SETS_OF_FINDINGS]
    return ["finding", "paper, Yelp / MNLI", "measured here", *names, "holds"]
