"""Measuring existing explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pertinent.asks import Algorithm
from pertinent.engine.job import Job, JobResult
from pertinent.errors import InputError, SettingError
from pertinent.inputs.base import Input
from pertinent.metrics.base import Metric, metric_labels
from pertinent.models.base import Model
from pertinent.removals.base import NOT_KEPT, Removal, removals
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.executor import Item, RunTask
from pertinent.runs.explain import Outcome
from pertinent.runs.explanation_steps import measure_explanation
from pertinent.runs.session import Session, prepare_input


@dataclass(frozen=True)
class MeasureTask(RunTask):
    """Task that measures explanations, by default with each explanation's removal and seed."""

    metrics: tuple[Metric, ...]
    removal: Removal | None
    seed: int | None

    def keys(self, item: Item) -> list[tuple[int, int]]:
        """Return the index of the explanation."""
        return [(item.index, 0)]

    def job(self, session: Session, item: Item, key: tuple[int, int]) -> Job:
        """Return the job that measures an explanation."""
        explanation: Explanation = item.raw
        removal, seed = self.removal or removal_of(explanation), self.seed
        input = prepare_input(session.model, explanation.input.raw, explanation.input.features_argument)

        def steps(input: Input, _: Removal) -> Algorithm:
            check_same_input(explanation, input, session.model)
            return measure_explanation(explanation, self.metrics)

        return session.job(key, input, steps, removal, explanation.seed if seed is None else seed)

    def result(self, item: Item, ended: JobResult, warnings: Sequence[str] = ()) -> Outcome:
        """Return the explanation with its measures, and a failure for each failed metric."""
        if ended.error is None:
            explanation, errors = ended.result
        else:
            explanation, errors = item.raw, [(label, ended.error) for label in metric_labels(self.metrics)]
        failures = tuple(
            Failure(explanation.index, str(error), metric=label, error=error, id=explanation.id)
            for label, error in errors
        )
        return Outcome(ended.key, explanation, failures)


def removal_of(explanation: Explanation) -> Removal:
    """Return the removal that an explanation was made with."""
    name, settings = explanation.removal, explanation.request.removal_settings
    for setting, value in settings.items():
        if value == NOT_KEPT:
            raise SettingError(
                f"The explanation was made with a custom {setting} of the removal {name!r}, which it does "
                "not store: pass the same `removal` again."
            )
    for setting in removals.get(name).opens:
        if settings.get(setting) is not None:
            raise SettingError(
                f"The explanation was made with the {setting} {settings[setting]!r}. It is not opened "
                f"because the explanation may come from a file: pass removal='{name}:{setting}=…'."
            )
    return removals.make(name, settings)


def check_same_input(explanation: Explanation, input: Input, model: Model) -> None:
    """Raise an `InputError` unless the model has the explanation's columns and features."""
    columns = model.columns_of(input)
    if columns and columns != explanation.classes:
        raise InputError(
            f"The explanation has the columns {', '.join(explanation.classes)}, but this model has "
            f"{', '.join(columns)}: evaluate with the explained model."
        )
    if input.features != explanation.features:
        raise InputError(
            f"The explanation has {len(explanation.features)} features, but this model finds "
            f"{input.n_features} in the same input: evaluate with the explained model."
        )
