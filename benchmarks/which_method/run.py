"""Comparison of methods: run the descriptions of this folder, and write the tables of both READMEs.

Run ``python -m benchmarks.which_method.run RESULTS`` in the root of the repository. RESULTS is a folder for
explanations; the same command continues a stopped run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pertinent.cli.benchmark_files import read_description, run_description
from pertinent.results.evaluation import Evaluation
from pertinent.results.pareto import mean_costs

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
"""Holm-corrected p-value below which two methods differ."""


@dataclass(frozen=True)
class Winner:
    """Best method by a metric, the methods that may not differ from it, and the cheapest of these."""

    best: str
    others: list[str]
    cheapest: str


def winner(evaluation: Evaluation, metric: str) -> Winner:
    """Return the best method by a metric, and those that do not differ from it by a paired bootstrap."""
    means = {name: i.mean for name, other, _, i in evaluation.summary() if other == metric}
    sign = 1 if evaluation.better[metric] == "higher" else -1
    best = max(means, key=lambda name: sign * means[name])
    others = [
        name
        for name, _, other, difference in evaluation.differences(best)
        if other == metric and not difference.p_value < SURE
    ]
    costs = mean_costs(evaluation)
    cheapest = min([best, *others], key=lambda name: (costs[name]["evaluations"], costs[name]["seconds"]))
    return Winner(best, sorted(others, key=lambda name: -sign * means[name]), cheapest)


def readme_lines(evaluations: dict[str, Evaluation]) -> Iterator[str]:
    """Yield the lines of the README's table."""
    yield "| you explain | budget | best if removed (comprehensiveness) | best alone (sufficiency) | random |"
    yield "|---|---:|---|---|---|"
    for name, evaluation in evaluations.items():
        budget = read_description(HERE / f"{name}.yaml").words["budget"]
        cells = [_cell(evaluation, metric) for metric in ("comprehensiveness", "sufficiency")]
        control = [_mean(evaluation, "random", metric) for metric in ("comprehensiveness", "sufficiency")]
        yield f"| {SETS[name]} | {budget} | {cells[0]} | {cells[1]} | {control[0]}, {control[1]} |"


def _cell(evaluation: Evaluation, metric: str) -> str:
    w, costs = winner(evaluation, metric), mean_costs(evaluation)
    text = f"`{w.best}` {_mean(evaluation, w.best, metric)}"
    n = costs[w.cheapest]["evaluations"]
    if n <= costs[w.best]["evaluations"] / 2:
        text += f"; as good for {n:.0f}: `{w.cheapest}` {_mean(evaluation, w.cheapest, metric)}"
    return text


def _mean(evaluation: Evaluation, method: str, metric: str) -> str:
    value = evaluation.mean(method, metric)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def page_parts(evaluations: dict[str, Evaluation]) -> Iterator[str]:
    """Yield the sections of the page: for each description the measures, the costs, and equal methods."""
    for name, evaluation in evaluations.items():
        budget = read_description(HERE / f"{name}.yaml").words["budget"]
        yield f"## {SETS[name][0].upper()}{SETS[name][1:]} ([{name}.yaml]({name}.yaml), budget {budget})"
        yield evaluation.to_markdown().strip()
        costs = mean_costs(evaluation)
        rows = [f"| {m} | {c['evaluations']:.0f} | {1000 * c['seconds']:.0f} |" for m, c in costs.items()]
        yield "\n".join(["| method | evaluations | ms of the model's time |", "|---|---:|---:|", *rows])
        for metric in evaluation.better:
            w = winner(evaluation, metric)
            yield f"{metric}: no significant difference from {w.best}: {', '.join(w.others) or 'none'}."


def main() -> None:
    """Run everything, and write the tables."""
    (results,) = sys.argv[1:]
    evaluations = {}
    for name in SETS:
        benchmark = run_description(HERE / f"{name}.yaml", Path(results) / name)
        (evaluations[name],) = benchmark.evaluations.values()
    head = (HERE / "README.md").read_text(encoding="utf-8").partition(BEGIN)[0]
    (HERE / "README.md").write_text(
        "\n\n".join([head + BEGIN, *page_parts(evaluations), END]) + "\n", encoding="utf-8"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(readme_lines(evaluations))
    (ROOT / "README.md").write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
