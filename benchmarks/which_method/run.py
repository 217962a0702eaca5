"""Which method, when: run the descriptions of this folder; write the tables of its page and of the README.

``python -m benchmarks.which_method.run RESULTS``, in the root of the repository. RESULTS is a folder for
explanations; the same command continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pertinent.api.benchmark import mean_costs
from pertinent.cli.benchmark_files import read_description, run_description
from pertinent.results.evaluation import Evaluation

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SETS = {
    "texts-few": "a text classifier, few evaluations",
    "texts": "a text classifier",
    "topics": "a text classifier of four classes",
    "images": "an image classifier",
    "tables": "a table classifier",
    "values": "a regressor",
}
BEGIN, END = "<!-- which method: begin -->", "<!-- which method: end -->"
SURE = 0.05
"""Two methods differ if the Holm-corrected p-value of their difference is below this."""


@dataclass(frozen=True)
class Winner:
    """The best method by a metric, the others that may not differ from it, and the cheapest of all these."""

    best: str
    others: list[str]
    cheapest: str


def winner(evaluation: Evaluation, metric: str) -> Winner:
    """The best method by a metric; what differs is decided by a paired bootstrap."""
    means = {name: i.mean for name, own, _, i in evaluation.summary() if own == metric}
    sign = 1 if evaluation.better[metric] == "higher" else -1
    best = max(means, key=lambda name: sign * means[name])
    others = [
        name
        for name, _, own, found in evaluation.differences(best)
        if own == metric and not found.p_value < SURE
    ]
    costs = mean_costs(evaluation)
    cheapest = min([best, *others], key=lambda name: (costs[name]["evaluations"], costs[name]["seconds"]))
    return Winner(best, sorted(others, key=lambda name: -sign * means[name]), cheapest)


def readme_lines(found: dict[str, Evaluation]) -> Iterator[str]:
    """The rows of the README's table."""
    yield "| you explain | budget | best if removed (comprehensiveness) | best alone (sufficiency) | random |"
    yield "|---|---:|---|---|---|"
    for name, evaluation in found.items():
        budget = read_description(HERE / f"{name}.yaml").words["budget"]
        cells = [_cell(evaluation, metric) for metric in ("comprehensiveness", "sufficiency")]
        control = [_mean(evaluation, "random", metric) for metric in ("comprehensiveness", "sufficiency")]
        yield f"| {SETS[name]} | {budget} | {cells[0]} | {cells[1]} | {control[0]}, {control[1]} |"


def _cell(evaluation: Evaluation, metric: str) -> str:
    own, cost = winner(evaluation, metric), mean_costs(evaluation)
    said = f"`{own.best}` {_mean(evaluation, own.best, metric)}"
    n = cost[own.cheapest]["evaluations"]
    if n <= cost[own.best]["evaluations"] / 2:
        said += f"; as good for {n:.0f}: `{own.cheapest}` {_mean(evaluation, own.cheapest, metric)}"
    return said


def _mean(evaluation: Evaluation, method: str, metric: str) -> str:
    value = evaluation.mean(method, metric)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def page_parts(found: dict[str, Evaluation]) -> Iterator[str]:
    """The sections of the page: a table for each description, what it costs, and what may not differ."""
    for name, evaluation in found.items():
        budget = read_description(HERE / f"{name}.yaml").words["budget"]
        yield f"## {SETS[name][0].upper()}{SETS[name][1:]} ([{name}.yaml]({name}.yaml), budget {budget})"
        yield evaluation.to_markdown().strip()
        costs = mean_costs(evaluation)
        rows = [f"| {m} | {c['evaluations']:.0f} | {1000 * c['seconds']:.0f} |" for m, c in costs.items()]
        yield "\n".join(["| method | evaluations | ms of the model's time |", "|---|---:|---:|", *rows])
        for metric in evaluation.better:
            own = winner(evaluation, metric)
            yield f"{metric}: not told apart from {own.best}: {', '.join(own.others) or 'none'}."


def main() -> None:
    """Run everything, and write the tables."""
    (results,) = sys.argv[1:]
    found = {}
    for name in SETS:
        benchmark = run_description(HERE / f"{name}.yaml", Path(results) / name)
        (found[name],) = benchmark.evaluations.values()
    head = (HERE / "README.md").read_text(encoding="utf-8").partition(BEGIN)[0]
    (HERE / "README.md").write_text(
        "\n\n".join([head + BEGIN, *page_parts(found), END]) + "\n", encoding="utf-8"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(readme_lines(found))
    (ROOT / "README.md").write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
