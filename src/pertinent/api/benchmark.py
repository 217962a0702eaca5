"""A benchmark: every method on every data set and model, measured, compared, and kept in a folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.api.evaluate import DEFAULT_METRICS, compare
from pertinent.config.settings import Count, checked, labels
from pertinent.engine.progress import Callback
from pertinent.errors import require
from pertinent.files import make_folder, write_bytes, write_text
from pertinent.metrics.base import Metric
from pertinent.results.evaluation import Evaluation
from pertinent.runs.request import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[^\W_][\w.-]*")
"""Names of data and models, which become names of files."""

SUMMARY, TABLE = "summary.parquet", "table.md"


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark found: an `Evaluation` for each data set and model, by the names of both."""

    evaluations: Mapping[tuple[str, str], Evaluation]

    def to_dataframe(self) -> Any:
        """A pandas frame with a row for each data set, model, method and metric: mean, interval and cost."""
        rows = []
        for (data, model), evaluation in self.evaluations.items():
            costs = mean_costs(evaluation)
            for method, metric, _, i in evaluation.summary():
                own = {"data": data, "model": model, "method": method, "metric": metric, "n": i.n}
                bounds = {"mean": i.mean, "low": i.low, "high": i.high}
                rows.append({**own, "better": evaluation.better[metric], **bounds, **costs[method]})
        return optional("pandas").DataFrame(rows)

    def to_markdown(self) -> str:
        """A table with intervals for each data set and model, and the p-values of all differences."""
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
        """A matplotlib figure of a metric against the cost, as `Evaluation.plot_pareto`."""
        known = ", ".join(map(str, self.evaluations))
        require((data, model) in self.evaluations, "data, model", f"one of {known}", (data, model))
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
    """Explain every data set with every model by every method, measure it, and keep all of it in a folder.

    The same call continues a benchmark that was stopped; with one more method, data set or model it does only
    what is new, and with one method less it keeps what was measured but leaves it out of the tables. The
    folder has a Parquet file of explanations for each data set and model (``data--model``),
    which `read` reads, ``summary.parquet`` (a row for each mean with its interval and cost), ``table.md``
    (with p-values), and a picture of each metric against the cost.

    Parameters
    ----------
    data
        The inputs of each data set, by its name.
    models
        The models, by name; a model of any kind, wrapped or as `wrap` accepts it.
    methods, metrics, seeds, progress
        As in `compare`.
    out
        The folder; it is made if need be.
    **words
        The other words of `compare`, such as ``budget=200``.

    Examples
    --------
    >>> import tempfile, pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> data = {"films": ["a bad film", "so good", "not bad at all"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = pertinent.benchmark(data, {"words": model}, ["leave-one-out", "random"], out=folder)
    >>> found
    <Benchmark of films × words>
    """
    for what, named in {"data": data, "models": models}.items():
        require(len(named) > 0, what, "at least one, by name", named)
        for name in named:
            must = "names of letters, digits, '.', '-' and '_', because they name files"
            require(_NAME.fullmatch(name) is not None, what, must, name)
    folder = Path(out)
    make_folder(folder)
    several = {name: inputs if _has_length(inputs) else list(inputs) for name, inputs in data.items()}
    found = {}
    for data_name, inputs in several.items():
        for model_name, model in models.items():
            file = folder / f"{data_name}--{model_name}.parquet"
            found[data_name, model_name] = compare(
                model, inputs, methods, metrics, out=file, seeds=seeds, progress=progress, **words
            )
    result = Benchmark(found)
    _write(result, folder)
    return result


def _has_length(inputs: Any) -> bool:
    return hasattr(inputs, "__len__") or not isinstance(inputs, Iterable)


def mean_costs(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """The mean cost of an explanation by each method, in evaluations and seconds of the model's time."""
    every = evaluation.explanations
    names = labels([(e.method, e.settings) for e in every])
    found = {}
    for method in evaluation.methods:
        own = [e for e, name in zip(every, names, strict=True) if name == method]
        found[method] = {
            "evaluations": float(np.mean([e.evaluations for e in own])),
            "seconds": float(np.mean([e.cost.seconds for e in own])),
        }
    return found


def _write(result: Benchmark, folder: Path) -> None:
    """Write the summary, the table and the pictures; without matplotlib the pictures are left out."""
    summary = BytesIO()
    result.to_dataframe().to_parquet(summary)
    write_bytes(folder / SUMMARY, summary.getvalue())
    write_text(folder / TABLE, result.to_markdown())
    try:
        optional("matplotlib")
    except ImportError as error:
        logger.warning("There are no pictures in %s: %s", str(folder), error)
        return
    for (data, model), evaluation in result.evaluations.items():
        for metric in evaluation.better:
            picture = BytesIO()
            evaluation.plot_pareto(metric).savefig(picture, format="png", dpi=110)
            name = re.sub(r"[^\w.-]", "_", metric)
            write_bytes(folder / f"{data}--{model}--{name}.png", picture.getvalue())
