"""Do explanations depend on what the model has learned? Randomise it and see (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import NOT_FINITE, Index, expect
from pertinent.config.settings import Count, Range, Seed, checked
from pertinent.diagnostics import base
from pertinent.diagnostics.stability import SAME_SCORE
from pertinent.engine.progress import Callback
from pertinent.models.wrap import wrap
from pertinent.printable import visible
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Cluster
from pertinent.runs.explain_run import explain_all
from pertinent.runs.request import Method, Request
from pertinent.runs.run import Run, raise_first
from pertinent.stats import Interval, spearman

HARDLY_CHANGED = 0.7
"""Explanations have hardly changed if their mean rank correlation is at least this: a strong correlation."""

_MOST_NAMED = 12
"""With more stages than this a plot numbers the layers instead of naming them."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of one input's explanations with the model as it is and randomised.

    `spearman` is that of the scores, `absolute` that of their absolute values; NaN where one of the two
    explanations gives all features the same. `stage` counts the layers that were randomised, `input` is
    the position of the input among those given, and `id` the user's own name for it.
    """

    input: Index
    stage: Count
    spearman: Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
    absolute: Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
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
        return tuple(what for what, found in self.correlations.items() if found.mean >= HARDLY_CHANGED)


@base.diagnostics.register("sanity")
@dataclass(frozen=True, kw_only=True)
class Sanity(base.MethodDiagnostic):
    """How explanations change as a model's parameters are randomised (Adebayo et al. 2018).

    Attributes
    ----------
    rows
        The correlations of each input at each stage.
    layers
        The layers that were randomised, from the output down; each stage keeps those before it random.
    n_layers
        How many layers the model has.
    seed
        The seed of the random parameters and of the method.
    """

    rows: tuple[Correlation, ...]
    layers: tuple[str, ...]
    n_layers: Count
    seed: Seed = 0

    @cached_property
    def stages(self) -> list[Stage]:
        """The mean correlations at each stage, with 95% bootstrap intervals over inputs."""
        found = []
        for stage, layer in enumerate(self.layers, start=1):
            rows = [row for row in self.rows if row.stage == stage]
            scores, absolute = [row.spearman for row in rows], [row.absolute for row in rows]
            found.append(Stage(layer, base.interval(scores), base.interval(absolute)))
        return found

    @property
    def passed(self) -> bool:
        """Whether explanations changed: at the last stage both mean correlations are below 0.7.

        Where a correlation does not exist, nothing was shown, and the check fails.
        """
        return all(found.mean < HARDLY_CHANGED for found in self.stages[-1].correlations.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """In words, why the check fails, and what else was noticed."""
        return (*self._complaints(), *self.noticed)

    def _complaints(self) -> Iterator[str]:
        last, n_stages = self.stages[-1], len(self.layers)
        when = f"with {n_stages} of {self.n_layers} layers randomised, down to {last.layer}"
        if not any(row.stage == n_stages for row in self.rows):
            yield f"scores say nothing: {when}, no input could be explained"
            return
        for what, found in last.correlations.items():
            if what in last.unchanged:
                yield (
                    f"the {what} of {self.method} hardly change: {when}, their rank correlation with the "
                    f"original ones is {found}; below {HARDLY_CHANGED:g} is expected"
                )
            elif not found.n:
                yield (
                    f"{what} say nothing: {when}, they have no rank correlation with the original ones, "
                    "because in one of the two explanations of each input all features have the same"
                )

    def check_fields(self) -> None:
        """Every row must belong to a stage, and be the only one of its input."""
        super().check_fields()
        n = len(self.layers)
        expect(n > 0, "layers", "at least one", self.layers)
        last = max(row.stage for row in self.rows)
        expect(last <= n, "stage", f"from 1 to {n}", last)
        distinct = len({(row.input, row.stage) for row in self.rows}) == len(self.rows)
        expect(distinct, "rows", "each of another input and stage", f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """The mean correlations of every stage, and whether the check was passed."""
        means = [(stage.layer, stage.spearman.mean, stage.absolute.mean) for stage in self.stages]
        return {"means": means, "passed": self.passed}

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per input and stage."""
        rows = [{**asdict(row), "layer": self.layers[row.stage - 1]} for row in self.rows]
        return optional("pandas").DataFrame(rows)

    def table(self) -> base.DiagnosticTable:
        """A row for each stage."""
        rows = []
        for stage in self.stages:
            n = max(found.n for found in stage.correlations.values())
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
            f"Rank correlation with explanations of the model as it is; {HARDLY_CHANGED:g} or more in the "
            f"last row fails: they hardly changed. {len(self.layers)} of {self.n_layers} layers randomised, "
            "from the output down in the order of registration, each with those above it. Removal "
            f"{self.removal}; {self.features}. 95% bootstrap intervals over inputs."
        )
        yield from base.few_inputs(self.inputs)
        missing = sum(bool(np.isnan(row.spearman)) for row in self.rows)
        if missing:
            yield (
                f"Left out of Spearman: {missing:,} of {len(self.rows):,} explanations, because all features "
                "have the same score."
            )

    @classmethod
    def chart(cls, several: Sequence[Sanity]) -> base.Chart:
        """The rank correlations at each stage, of scores and of absolute scores (Figure 4)."""
        longest = max((sanity.layers for sanity in several), key=len)
        names = [str(n) for n in range(1, len(longest) + 1)]
        if len(longest) <= _MOST_NAMED and all(s.layers == longest[: len(s.layers)] for s in several):
            names = [".".join(layer.split(".")[-2:]) for layer in longest]
        panels: dict[str, tuple[base.Line, ...]] = {}
        for what in several[0].stages[0].correlations:
            for sanity in several:
                found = [Interval(1.0, 1.0, 1.0, 0), *(stage.correlations[what] for stage in sanity.stages)]
                line = base.Line(sanity.name, tuple(map(float, range(len(found)))), tuple(found))
                panels[what] = (*panels.get(what, ()), line)
        return base.Chart(
            panels=panels,
            x_label="randomised down to",
            y_label="Spearman's correlation",
            ticks={float(place): name for place, name in enumerate(["none", *names])},
            limits=(-1.05, 1.05),
            fails_from=HARDLY_CHANGED,
        )

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        at_last = [
            f"{found if found.n else 'undefined'} of {what}"
            for what, found in self.stages[-1].correlations.items()
        ]
        return (
            f"<Sanity of {visible(self.name)}, {len(self.layers)} of {self.n_layers} layers randomised, "
            f"{self.inputs} input{'' if self.inputs == 1 else 's'}: {verdict}, at last Spearman "
            f"{', '.join(at_last)}>"
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
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Sanity:
    """Explain the same inputs with the model as it is and with its parameters randomised, and compare.

    An explanation of a model must change when what the model has learned is destroyed. At each stage one
    more layer is randomised, from the output down, and Spearman's correlation with the explanation of
    the model as it is, is measured (Adebayo et al. 2018, Sec. 3; Hsieh et al. 2021, App. I). The
    class that the model as it is predicted is explained throughout. The model itself is never changed: a
    copy is.

    Parameters
    ----------
    model
        A torch module, or a transformers model with its tokenizer or image processor, as in `explain`.
    inputs, method
        As in `explain`.
    layers
        Which layers are randomised: ``"cascading"`` for all of them, one more at each stage,
        ``"last"`` for the last alone, or names of modules such as ``"encoder.layer.1"``. Of several
        names one more is randomised at each stage. Hsieh et al. 2021, Table 7, randomise the last
        alone.
    ids, batch_size, cluster, progress
        As in `explain`. The model is needed in this process, too: its copies are randomised here, and workers
        start anew for each stage.
    **words
        The words of `explain`, such as ``budget=200``, and settings of the method, such as ``samples=25``.
        The `seed` is that of the random parameters, too.

    Notes
    -----
    Layers are taken in the order in which the model registers its modules, the last first, which is the
    order of use in most models: it is not known how the forward pass uses them. A member of a
    ``Sequential`` or ``ModuleList``, such as a block of a transformer, is one layer; elsewhere each module
    with parameters of its own. A layer is initialised by its modules' own ``reset_parameters``;
    parameters of modules without it are permuted.

    The intervals are over inputs, for one draw of random parameters: another `seed` shows how much that
    matters. From a mean correlation of 0.7 on, at the last stage, the result warns that explanations hardly
    changed.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.load("sentiment")
    >>> found = sanity(model, ["slow but wonderful", "a dull and lazy film"], "random", layers="last")
    >>> found.passed, found.stages[0].spearman.mean
    (False, 1.0)
    """
    from pertinent.models.torch.randomised import RandomisedModel, layers_of

    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "cluster": cluster}
    run = Run.from_arguments(wrap(model), inputs, "sanity", progress=progress, **options)
    request = Request.from_keywords(method, words)
    chosen = layers_of(run.model, None if isinstance(layers, str) else layers)
    n_layers = len(layers_of(run.model))
    found = explain_all(run, [request])
    if not len(found):
        raise_first(found.failures, "explained")
    # After the model has answered: only then lazy layers have parameters, and what answers mean is known.
    copied = RandomisedModel(run.model, request.seed)
    target = tuple(e.target for e in found) if request.method.traits.any_target else None
    same = replace(request, target=target, features=None)
    stages = chosen[:1] if layers == "last" else chosen
    rows: list[Correlation] = []
    failures = list(found.failures)
    for stage, layer in enumerate(stages, start=1):
        copied.randomise(layer)
        again = explain_all(run.over([e.input for e in found], copied.model), [same])
        rows += [correlation(found[e.index], e, stage) for e in again]
        for failure in again.failures:
            own = found[failure.index]
            reason = f"with {layer} randomised: {failure.reason}"
            failures.append(Failure(own.index, reason, error=failure.error, id=own.id))
    if not rows:
        raise_first(failures, "explained with random parameters")
    return Sanity(
        rows=tuple(rows),
        layers=tuple(stages),
        n_layers=n_layers,
        seed=request.seed,
        noticed=run.warnings,
        failures=tuple(failures),
        **base.method_fields(found[0], request.budget),
    )


def correlation(original: Explanation, randomised: Explanation, stage: int) -> Correlation:
    """The rank correlations of two explanations of the same input and target."""
    scores = np.stack([original.scores, randomised.scores])
    return Correlation(original.index, stage, _spearman(scores), _spearman(np.abs(scores)), original.id)


def _spearman(rows: Floats) -> float:
    """The correlation of two rows; NaN if one is constant, but for rounding."""
    varied = np.ptp(rows, axis=1) > SAME_SCORE * np.abs(rows).max(axis=1)
    return float(spearman(rows)[0, 1]) if varied.all() else np.nan
