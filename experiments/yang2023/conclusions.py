"""Which of the paper's findings hold here: each as a difference between paired numbers of the same texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from collect import Results, difference, shown_difference
from earlier import EARLIER
from sets import SETS, TARGETS

from pertinent.stats import Difference

WITH_SVS = "svs spearman"
OfSet = Callable[[Results, str], Difference | None]
SETS_OF_FINDINGS = ("sst2", "mnli", "imdb")
OF_EARLIER, OF_SECOND = "¹", "²"
"""Marks of differences that are not of the later run's models."""


@dataclass(frozen=True)
class Finding:
    """What the paper found, its numbers, and a difference that is positive where it holds."""

    text: str
    paper: str
    measured: str
    of_set: OfSet


def between(more: str, less: str, measure: str) -> OfSet:
    """The first method's measure minus the second's."""

    def of_set(results: Results, which: str) -> Difference | None:
        stages = [f"method-{name}" for name in (more, less)]
        return difference(*(results.column(which, stage, measure) for stage in stages))

    return of_set


def below(method: str, limit: float) -> OfSet:
    """How far a method's correlation between seeds is below a limit."""

    def of_set(results: Results, which: str) -> Difference | None:
        found = results.column(which, f"method-{method}", "spearman")
        return None if found is None else difference(np.full(len(found), limit), found)

    return of_set


def padding(results: Results, which: str) -> Difference | None:
    """Return how much more stable the tokens' ranks by KS-200 are without padding among the players."""
    stages = ("method-KS-200", "padded-KS-200")
    return difference(*(results.column(which, stage, "spearman") for stage in stages))


def shorter(results: Results, which: str) -> Difference | None:
    """The correlation between seeds of KS-200 on the shorter half of the texts minus that on the longer."""
    found = results.column(which, "method-KS-200", "spearman")
    lengths = results.column(which, "method-KS-200", "features")
    if found is None or lengths is None:
        return None
    order = np.argsort(lengths, kind="stable")
    half = len(order) // 2
    return difference(found[order[:half]], found[order[-half:]])


def adapted(m: int, more: str, less: str) -> OfSet:
    """One row of Table 5 with m permutations minus another, of the same texts and trainings."""

    def of_set(results: Results, which: str) -> Difference | None:
        return difference(*(results.column(which, f"adapted-{m}", WITH_SVS, row) for row in (more, less)))

    return of_set


def transferred(source: str, beside: str = "KS-100") -> OfSet:
    """Amortized minus another method, both of a model of another set."""

    def of_set(results: Results, which: str) -> Difference | None:
        if TARGETS.get(source) != which:
            return None
        rows = (results.column(source, f"transfer-{which}", WITH_SVS, n) for n in ("amortized", beside))
        return difference(*rows)

    return of_set


def faster(stage: str) -> OfSet:
    """Return the ratio of the seconds of KS-200 to those of the amortized model, minus 1."""

    def of_set(results: Results, which: str) -> Difference | None:
        found = results.stage(which, stage)
        if found is None:
            return None
        slow, fast = (np.array(found["alone"][name]) for name in ("KS-200", "amortized"))
        return difference(slow / fast, np.ones(len(fast)))

    return of_set


def calibrated(beside: str) -> OfSet:
    """Accuracy on MRPC with explanations by the amortized model minus that with another method's."""

    def of_set(results: Results, which: str) -> Difference | None:
        rows = (results.stage(which, "calibration") or {}).get("rows", {})
        found = rows.get("amortized", {}).get(f"beside {beside}")
        return None if found is None else Difference(**found)

    return of_set


def masked(more: str, less: str) -> OfSet:
    """Accuracy with the top 20% of the one masked minus that of the other, as the paper masks."""

    def of_set(results: Results, which: str) -> Difference | None:
        rows = [results.right(which, f"method-{name}", "pad-token", "0.2") for name in (more, less)]
        return difference(*rows)

    return of_set


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
        faster("seconds-alone"),
    ),
    Finding(
        "amortized is faster than KS-200, on one core of a CPU",
        "40 to 60 times as fast, A100",
        "seconds of KS-200 / of amortized − 1, texts one by one",
        faster("seconds-cpu"),
    ),
    Finding(
        "Alg. 1 with 2 permutations is better than these alone",
        "0.64 > 0.52, 0.47 > 0.41",
        "difference of ρ with SVS-25",
        adapted(2, "alg. 1", "SVS"),
    ),
    Finding(
        "… with 5",
        "0.71 > 0.69, 0.57 > 0.55",
        "difference of ρ with SVS-25",
        adapted(5, "alg. 1", "SVS"),
    ),
    Finding(
        "… and than the prediction",
        "0.71 > 0.61, 0.57 > 0.42",
        "difference of ρ with SVS-25",
        adapted(5, "alg. 1", "prediction"),
    ),
    Finding(
        "(ours) precision weights are better than Alg. 1",
        "–",
        "difference of ρ with SVS-25, 5 permutations",
        adapted(5, "ours", "alg. 1"),
    ),
    Finding(
        "in another domain amortized is better than KS-100",
        "0.50 > 0.46",
        "difference of ρ with SVS-25, Yelp-Polarity → SST-2",
        transferred("yelp"),
    ),
    Finding(
        "… than KS-100 with padding among the players",
        "0.50 > 0.46",
        "the same",
        transferred("yelp", "KS-100, padded"),
    ),
    Finding(
        "… from IMDB, than KS-100",
        "–",
        "the same, IMDB → SST-2",
        transferred("imdb"),
    ),
    Finding(
        "amortized is more faithful than KS-200",
        "Figure 5",
        "accuracy without the top 20% of KS-200 − of amortized",
        masked("KS-200", "amortized"),
    ),
    Finding(
        "SVS-25 is more faithful than amortized",
        "Figure 5",
        "accuracy without the top 20% of amortized − of SVS-25",
        masked("amortized", "SVS-25"),
    ),
    Finding(
        "calibration: amortized is better than KS-2000",
        "–",
        "accuracy on MRPC",
        calibrated("KS-2000"),
    ),
    Finding(
        "… with padding among the players",
        "68.0 > 67.4",
        "accuracy on MRPC",
        calibrated("KS-2000, padded"),
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


def verdict(found: list[Difference]) -> str:
    """What the intervals say, of all sets together."""
    holds, fails = [each.low > 0 for each in found], [each.high < 0 for each in found]
    if not found:
        return "–"
    if all(holds):
        return "yes"
    if any(holds):
        return "on some sets, on others the reverse" if any(fails) else "on some sets"
    return "no, the reverse" if all(fails) else "no"


def rows(results: Results) -> list[list[str]]:
    """A row for each finding: what the paper found, the difference on each set, and whether it holds."""
    made = []
    for finding in FINDINGS:
        found, cells = [], []
        for which in SETS_OF_FINDINGS:
            own, mark = measured(results, finding, which)
            found += [] if own is None else [own]
            cells.append(shown_difference(own) + mark)
        made.append([finding.text, finding.paper, finding.measured, *cells, verdict(found)])
    return made


def measured(results: Results, finding: Finding, which: str) -> tuple[Difference | None, str]:
    """The difference of a finding on a set, and a mark that says of which run it is, if not of the later."""
    for run, mark in ((results, ""), (results.second, OF_SECOND)):
        found = None if run is None else finding.of_set(run, which)
        if found is not None:
            return found, mark
    if which in EARLIER.get(finding.text, {}):
        mean, low, high = EARLIER[finding.text][which]
        return Difference(mean, low, high, np.nan, 0), OF_EARLIER
    return None, ""


def head() -> list[str]:
    """The columns of `rows`."""
    names = [SETS[which].name for which in SETS_OF_FINDINGS]
    return ["finding", "paper, Yelp / MNLI", "measured here", *names, "holds"]
