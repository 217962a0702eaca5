"""Benchmark of all methods on all data sets and models, saved in a folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pertinent._optional import optional
from pertinent.api.evaluate import DEFAULT_METRICS, compare
from pertinent.config.settings import Count, checked
from pertinent.engine.progress import Callback
from pertinent.errors import require
from pertinent.files import make_folder, write_bytes, write_text
from pertinent.metrics.base import Metric
from pertinent.results.evaluation import Evaluation
from pertinent.results.pareto import mean_costs
from pertinent.runs.request import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[^\W_][\w.-]*")
"""Allowed names of data and models, which become parts of file names."""

SUMMARY, TABLE = "summary.parquet", "table.md"


@dataclass(frozen=True)
class Benchmark:
    """The results of a benchmark: one `Evaluation` per data set and model.

    Attributes
    ----------
    evaluations
        Evaluations by the names of the data set and the model.
    """

    evaluations: Mapping[tuple[str, str], Evaluation]

    def to_dataframe(self) -> Any:
        """Return a pandas frame of means, intervals and costs by data set, model, method and metric."""
        rows = []
        for (data, model), evaluation in self.evaluations.items():
            costs = mean_costs(evaluation)
            for method, metric, _, i in evaluation.summary():
                names = {"data": data, "model": model, "method": method, "metric": metric, "n": i.n}
                bounds = {"mean": i.mean, "low": i.low, "high": i.high}
                rows.append({**names, "better": evaluation.better[metric], **bounds, **costs[method]})
        return optional("pandas").DataFrame(rows)

    def to_markdown(self) -> str:
        """Return a table with intervals for each data set and model, and the p-values of all differences."""
        parts = []
        for (data, model), evaluation in self.evaluations.items():
            parts += [f"## {data}, {model}", evaluation.to_markdown()]
            lines = [
                f"| {a} − {b} | {metric} | {difference.mean:+.3f} {difference.bounds} | {difference.p_text} |"
                for a, b, metric, difference in evaluation.differences()
                if difference.p_text
            ]
            if lines:
                parts.append("\n".join(["| difference | metric | mean | p |", "|---|---|---:|---|", *lines]))
        return "\n\n".join(parts) + "\n"

    @checked
    def plot_pareto(self, data: str, model: str, metric: str | None = None) -> Figure:
        """Plot a metric against the cost, as `Evaluation.plot_pareto`."""
        pairs = ", ".join(map(str, self.evaluations))
        require((data, model) in self.evaluations, "data, model", f"one of {pairs}", (data, model))
        return self.evaluations[data, model].plot_pareto(metric)

    def __repr__(self) -> str:
        return f"<Benchmark of {', '.join(' × '.join(each) for each in self.evaluations)}>"


@checked
def benchmark(
    data: Mapping[str, Any],
    models: Mapping[str, Any],
    methods: Method | Sequence[Method],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    out: str | Path,
    seeds: Count = 1,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Benchmark:
    """Explain every data set with every model and method, measure the results, and save them in a folder.

    Repeating the call resumes an interrupted benchmark. With an additional method, data set or model, only
    the new explanations are computed; with a method removed, the tables omit it, but its explanations stay in
    the folder. The folder contains a Parquet file of explanations for each data set and model
    (``data--model``), which `read` reads, ``summary.parquet`` (a row for each mean with its interval and
    cost), ``table.md`` (with p-values), and a plot of each metric against the cost.

    Parameters
    ----------
    data
        Inputs of each data set, by name.
    models
        Models by name, each as in `explain`.
    methods, metrics, seeds, progress
        As in `compare`.
    out
        Output folder, created if necessary.
    **words
        Other arguments of `compare`, such as ``budget=200``.

    Examples
    --------
    >>> import tempfile, pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> data = {"films": ["a bad film", "so good", "not bad at all"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pertinent.benchmark(data, {"words": model}, ["leave-one-out", "random"], out=folder)
    <Benchmark of films × words>
    """
    for argument, named in {"data": data, "models": models}.items():
        require(len(named) > 0, argument, "at least one, by name", named)
        for name in named:
            must = "names of letters, digits, '.', '-' and '_', which become parts of file names"
            require(_NAME.fullmatch(name) is not None, argument, must, name)
    folder = Path(out)
    make_folder(folder)
    evaluations = {}
    for data_name, inputs in data.items():
        inputs = list(inputs) if isinstance(inputs, Iterator) else inputs  # used with every model
        for model_name, model in models.items():
            file = folder / f"{data_name}--{model_name}.parquet"
            evaluations[data_name, model_name] = compare(
                model, inputs, methods, metrics, out=file, seeds=seeds, progress=progress, **words
            )
    result = Benchmark(evaluations)
    _write(result, folder)
    return result


def _write(result: Benchmark, folder: Path) -> None:
    """Write the summary, the table, and the plots, which need matplotlib."""
    summary = BytesIO()
    result.to_dataframe().to_parquet(summary)
    write_bytes(folder / SUMMARY, summary.getvalue())
    write_text(folder / TABLE, result.to_markdown())
    try:
        optional("matplotlib")
    except ImportError as error:
        logger.warning("The benchmark in %s has no plots: %s", str(folder), error)
        return
    for (data, model), evaluation in result.evaluations.items():
        for metric in evaluation.better:
            plot = BytesIO()
            evaluation.plot_pareto(metric).savefig(plot, format="png", dpi=110)
            name = re.sub(r"[^\w.-]", "_", metric)
            write_bytes(folder / f"{data}--{model}--{name}.png", plot.getvalue())
