"""A check that the model of a resumed run still predicts what the stored explanations say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm, RepeatedValues, Values
from pertinent.engine.job import Job, JobResult
from pertinent.errors import FileError
from pertinent.masks import full_mask
from pertinent.results.explanation import Explanation
from pertinent.runs.executor import Item, RunTask, Workers
from pertinent.runs.explain import ExplainTask
from pertinent.runs.explanation_steps import REPEATED
from pertinent.runs.session import Session


def first_predictions(explanations: Iterable[Explanation]) -> dict[int, Floats]:
    """Return the predictions for the first few inputs, by index."""
    predictions: dict[int, Floats] = {}
    for explanation in explanations:
        predictions.setdefault(explanation.index, explanation.prediction.values)
        if len(predictions) == REPEATED:
            break
    return predictions


def check_predictions(
    workers: Workers, task: ExplainTask, items: Sequence[Item], predictions: Mapping[int, Floats], path: Path
) -> None:
    """Predict finished inputs again; raise a `FileError` if the model of the run in `path` has changed.

    A model that answers the same question differently every time is random. It gets a warning and may go on.

    Parameters
    ----------
    workers
        The processes that have the model.
    task
        The task of the run.
    items
        The inputs to predict.
    predictions
        The stored predictions by the index of the input.
    path
        The file or folder of the run.
    """
    ended: JobResult
    for ended in workers.results(PredictTask(task, predictions), items, len(items), quiet=True):
        index, prediction = ended.key, ended.result
        if ended.error is not None:
            raise FileError(
                f"The model fails for input {index}, whose explanation is in {str(path)!r}: {ended.error}"
            ) from ended.error
        if prediction is not None:
            raise FileError(
                f"The model has changed since {str(path)!r} was begun: it predicts {_rounded(prediction)} "
                f"for input {index}, the stored prediction is {_rounded(predictions[index])}. Use the "
                "same model to continue, or choose another `out`."
            )


def _rounded(prediction: Floats) -> list[float]:
    rounded: list[float] = np.asarray(prediction).round(4).tolist()
    return rounded


@dataclass(frozen=True)
class PredictTask(RunTask):
    """Predicts inputs again; the result is the prediction if it has changed, else None."""

    explaining: ExplainTask
    predictions: Mapping[int, Floats]

    def keys(self, item: Item) -> list[int]:
        """Return the position of the input."""
        return [item.index]

    def job(self, session: Session, item: Item, key: int) -> Job:
        """Return the job that predicts an input."""
        request = self.explaining.requests[0]
        input = self.explaining.prepare(session, item, request)
        steps = _predict(session, self.predictions[key], input.n_features)
        return session.job(key, input, lambda *_: steps, request.removal, request.seed)


def _predict(session: Session, before: Floats, n_features: int) -> Algorithm:
    """Return the prediction if it differs from `before` and the model is not random, else None."""
    now = (yield Values(full_mask(n_features)))[0]
    if session.difference(before, now) is None:
        return None
    again = (yield RepeatedValues(full_mask(n_features)))[0]
    session.compare(now, again)
    return now if session.difference(now, again) is None else None
