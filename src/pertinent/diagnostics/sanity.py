"""Sanity check: whether explanations change when parameters are randomised (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import Index, expect
from pertinent.config.settings import Count, Seed, checked
from pertinent.diagnostics import base, stability
from pertinent.engine.progress import Callback
from pertinent.number_format import count
from pertinent.printable import visible
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor
from pertinent.runs.explain import explain_all
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first
from pertinent.stats import Interval, spearman

HARDLY_CHANGED = 0.7
"""Mean rank correlation from which on explanations count as hardly changed: a strong correlation."""

_MOST_NAMED = 12
"""Largest number of stages for which a plot names the layers; beyond it, they are numbered."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation between explanations of an input by the original and the randomised model.

    `spearman` is the correlation of the scores, `absolute` that of their absolute values; NaN if all scores
    of an explanation are equal. `stage` is the number of randomised layers, `input` the index of the input,
    and `id` the user's name for it.
    """

    input: Index
    stage: Count
    spearman: stability.Correlation
    absolute: stability.Correlation
    id: str | None = None


@dataclass(frozen=True)
class Stage:
    """Mean correlations after `layer` and all layers above it were randomised."""

    layer: str
    spearman: Interval
    absolute: Interval

    @property
    def correlations(self) -> dict[str, Interval]:
        """Return the mean correlations of ``"scores"`` and of ``"absolute scores"``."""
        return {"scores": self.spearman, "absolute scores": self.absolute}

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Return which scores hardly changed: ``"scores"``, ``"absolute scores"``."""
        return tuple(name for name, mean in self.correlations.items() if mean.mean >= HARDLY_CHANGED)


@base.diagnostics.register("sanity")
@dataclass(frozen=True, kw_only=True)
class Sanity(base.MethodDiagnostic):
    """How explanations change as a model's parameters are randomised (Adebayo et al. 2018).

    Attributes
    ----------
    rows
        Correlations of each input at each stage.
    layers
        Randomised layers, from the output down; each stage keeps the layers before it randomised.
    n_layers
        Number of layers of the model.
    seed
        Seed of the random parameters and of the method.
    """

    rows: tuple[Correlation, ...]
    layers: tuple[str, ...]
    n_layers: Count
    seed: Seed = 0

    @cached_property
    def stages(self) -> list[Stage]:
        """Return the mean correlations at each stage, with 95% bootstrap intervals over inputs."""
        stages = []
        for number, layer in enumerate(self.layers, start=1):
            rows = [row for row in self.rows if row.stage == number]
            scores, absolute = [row.spearman for row in rows], [row.absolute for row in rows]
            stages.append(Stage(layer, base.interval(scores), base.interval(absolute)))
        return stages

    @property
    def passed(self) -> bool:
        """Return whether both mean correlations are below 0.7 at the last stage.

        The check fails if a correlation is undefined.
        """
        return all(mean.mean < HARDLY_CHANGED for mean in self.stages[-1].correlations.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the reasons for failing the check, and the warnings of the run."""
        return (*self._complaints(), *self.run_warnings)

    def _complaints(self) -> Iterator[str]:
        last, n_stages = self.stages[-1], len(self.layers)
        when = f"with {n_stages} of {self.n_layers} layers randomised, down to {last.layer}"
        if not any(row.stage == n_stages for row in self.rows):
            yield f"the check is inconclusive: {when}, no input could be explained"
            return
        for name, correlation in last.correlations.items():
            if name in last.unchanged:
                yield (
                    f"the {name} of {self.method} hardly change: {when}, their rank correlation with the "
                    f"original ones is {correlation}; below {HARDLY_CHANGED:g} is expected"
                )
            elif not correlation.n:
                yield (
                    f"the {name} are inconclusive: {when}, their rank correlation with the original ones is "
                    "undefined, because all scores of one of the two explanations of each input are equal"
                )

    def check_fields(self) -> None:
        """Raise an `InputError` unless each row belongs to a stage, with distinct inputs and stages."""
        super().check_fields()
        n = len(self.layers)
        expect(n > 0, "layers", "at least one", self.layers)
        last = max(row.stage for row in self.rows)
        expect(last <= n, "stage", f"from 1 to {n}", last)
        distinct = len({(row.input, row.stage) for row in self.rows}) == len(self.rows)
        expect(distinct, "rows", "with distinct inputs and stages", f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """Return the mean correlations of every stage, and whether the check passed."""
        means = [(stage.layer, stage.spearman.mean, stage.absolute.mean) for stage in self.stages]
        return {"means": means, "passed": self.passed}

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per input and stage."""
        rows = [{**asdict(row), "layer": self.layers[row.stage - 1]} for row in self.rows]
        return optional("pandas").DataFrame(rows)

    def table(self) -> base.DiagnosticTable:
        """Return a row for each stage."""
        rows = []
        for stage in self.stages:
            n = max(correlation.n for correlation in stage.correlations.values())
            fails = stage is self.stages[-1] and not self.passed
            cells = ((f"{n:,}", ""), base.cell(stage.spearman), base.cell(stage.absolute))
            rows.append(base.TableRow(stage.layer, cells, "fails" if fails else "", "alarm" if fails else ""))
        return base.DiagnosticTable(
            question=f"Does {self.name} depend on what the model learned?",
            columns=("randomised to", "inputs", "Spearman", "absolute scores"),
            rows=tuple(rows),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        yield (
            "Rank correlation with explanations of the original model; the check fails if it is "
            f"{HARDLY_CHANGED:g} or more in the last row. {len(self.layers)} of {self.n_layers} layers "
            "randomised, from the output down in the order of registration, each with those above it. "
            f"Removal {self.removal}; {self.features}. 95% bootstrap intervals over inputs."
        )
        yield from base.few_inputs(self.inputs)
        missing = sum(bool(np.isnan(row.spearman)) for row in self.rows)
        if missing:
            yield (
                f"Missing from Spearman: {missing:,} of {len(self.rows):,} explanations, because all "
                "features have the same score."
            )

    def chart(self) -> base.Chart:
        """Return the rank correlations of scores and absolute scores at each stage (Figure 4)."""
        is_named = len(self.layers) <= _MOST_NAMED
        ticks = {
            float(x): ".".join(layer.split(".")[-2:]) if is_named else str(x)
            for x, layer in enumerate(self.layers, start=1)
        }
        panels = {}
        for name in self.stages[0].correlations:
            means = [Interval(1.0, 1.0, 1.0, 0), *(stage.correlations[name] for stage in self.stages)]
            panels[name] = (base.Line(self.name, dict(zip((0.0, *ticks), means, strict=True))),)
        return base.Chart(
            panels=panels,
            x_label="randomised down to",
            y_label="Spearman's correlation",
            ticks={0.0: "none", **ticks},
            limits=(-1.05, 1.05),
            fails_from=HARDLY_CHANGED,
        )

    def __repr__(self) -> str:
        last = ", ".join(
            f"{correlation if correlation.n else 'undefined'} of {name}"
            for name, correlation in self.stages[-1].correlations.items()
        )
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"<Sanity of {visible(self.name)}, {len(self.layers)} of {self.n_layers} layers randomised, "
            f"{count(self.inputs, 'input')}: {verdict}, last Spearman {last}>"
        )


@checked
def sanity(
    model: Any,
    inputs: Any,
    method: Method,
    *,
    layers: Sequence[str] | Literal["cascading", "last"] = "cascading",
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Sanity:
    """Compare explanations of a model before and after its parameters are randomised.

    An explanation of a model must change when what the model has learned is destroyed. Each stage randomises
    one more layer, from the output down, and measures Spearman's correlation with the explanation of the
    original model (Adebayo et al. 2018, Sec. 3; Hsieh et al. 2021, App. I). The class predicted by the
    original model is explained at all stages. The model is never modified: a copy is randomised.

    Parameters
    ----------
    model
        A torch module, or a transformers model with its tokenizer or image processor, as in `explain`.
    inputs, method
        As in `explain`.
    layers
        Layers to randomise: ``"cascading"`` for all layers, one more at each stage; ``"last"`` for only the
        last layer, as in Hsieh et al. 2021, Table 7; or names of modules such as ``"encoder.layer.1"``, of
        which one more is randomised at each stage.
    ids, batch_size, cluster, progress
        As in `explain`. The model is also needed in this process, because its copies are randomised here;
        workers are restarted for each stage.
    **words
        Other arguments of `explain`, such as ``budget=200``, and settings of the method, such as
        ``samples=25``. The `seed` also draws the random parameters.

    Notes
    -----
    Layers are taken in reverse order of registration of the model's modules; the order of use in the forward
    pass is unknown, but the same in most models. A member of a ``Sequential`` or ``ModuleList``, such as a
    transformer block, is one layer; elsewhere each module with direct parameters. A layer is initialised by
    its modules' ``reset_parameters``; parameters of modules without that method are permuted.

    The intervals are over inputs, for one draw of random parameters: use another `seed` to see how much the
    draw matters. The result warns that explanations hardly changed if a mean correlation is at least 0.7 at
    the last stage.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.load("sentiment")
    >>> result = sanity(model, ["slow but wonderful", "a dull and lazy film"], "random", layers="last")
    >>> result.passed, result.stages[0].spearman.mean
    (False, 1.0)
    """
    from pertinent.models.torch.randomised import RandomisedModel, layers_of

    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "cluster": cluster}
    run = Run.from_arguments(load_or_wrap(model), inputs, "sanity", progress=progress, **options)
    request = Request.from_keywords(method, words)
    selected = layers_of(run.model, None if isinstance(layers, str) else layers)
    stages = selected[:1] if layers == "last" else selected
    n_layers = len(layers_of(run.model))
    originals = explain_all(run, [request])
    if not len(originals):
        raise_first(originals.failures, "explained")
    # Before the model has answered, lazy layers have no parameters and the output may be unknown.
    copied = RandomisedModel(run.model, request.seed)
    target = tuple(e.target for e in originals) if request.method.traits.any_target else None
    same_targets = replace(request, target=target, features=None)
    rows: list[Correlation] = []
    failures = list(originals.failures)
    for stage, layer in enumerate(stages, start=1):
        copied.randomise(layer)
        randomised = explain_all(run.over([e.input for e in originals], copied.model), [same_targets])
        rows += [correlation(originals[e.index], e, stage) for e in randomised]
        for failure in randomised.failures:
            original = originals[failure.index]
            reason = f"with {layer} randomised: {failure.reason}"
            failures.append(Failure(original.index, reason, error=failure.error, id=original.id))
    if not rows:
        raise_first(failures, "explained with random parameters")
    return Sanity(
        rows=tuple(rows),
        layers=tuple(stages),
        n_layers=n_layers,
        seed=request.seed,
        run_warnings=tuple(run.warnings),
        failures=tuple(failures),
        **base.method_fields(originals[0], request.budget),
    )


def correlation(original: Explanation, randomised: Explanation, stage: int) -> Correlation:
    """Compute the rank correlations between two explanations of the same input and target."""
    scores = np.stack([original.scores, randomised.scores])
    return Correlation(original.index, stage, _spearman(scores), _spearman(np.abs(scores)), original.id)


def _spearman(rows: Floats) -> float:
    """Compute the correlation of two rows; NaN if one is constant up to rounding."""
    varied = np.ptp(rows, axis=1) > stability.SAME_SCORE * np.abs(rows).max(axis=1)
    return float(spearman(rows)[0, 1]) if varied.all() else np.nan
