"""A check that the model of a resumed run still predicts what the stored explanations say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, RepeatedValues, Values
from pertinent.engine.job import JobResult
from pertinent.errors import FileError
from pertinent.masks import full_mask
from pertinent.results.explanation import Explanation
from pertinent.runs.blocks import Block, Item, Workers
from pertinent.runs.explain_run import sendable, works
from pertinent.runs.explanation_steps import REPEATED
from pertinent.runs.request import Request
from pertinent.runs.run import Run, Work


def check_predictions(
    workers: Workers,
    requests: Sequence[Request],
    items: Sequence[Item],
    predictions: Mapping[int, Floats],
    path: Path,
) -> None:
    """Predict finished inputs again; raise a `FileError` if the model of the run in `path` has changed.

    A model that answers the same question differently every time is random. It gets a warning and may go on.

    Parameters
    ----------
    workers
        The processes that have the model.
    requests, items
        The requests of the run, and the inputs to predict.
    predictions
        The stored predictions by the index of the input.
    path
        The file or folder that holds them.
    """
    task = PredictAgain(tuple(requests), predictions)
    for _, results in workers.run(task, [Block(0, items)], None, quiet=True):
        for done in results:
            index, now = done.key[0], done.result
            if done.error is not None:
                raise FileError(
                    f"The model fails for input {index}, whose explanation is in {str(path)!r}: {done.error}"
                ) from done.error
            if now is not None:
                raise FileError(
                    f"The model has changed since {str(path)!r} was begun: it predicts {_rounded(now)} "
                    f"for input {index}, the stored prediction is {_rounded(predictions[index])}. Use the "
                    "same model to continue, or choose another `out`."
                )


def first_predictions(explanations: Iterable[Explanation]) -> dict[int, Floats]:
    """Return the predictions of the first few inputs, by their index."""
    predictions: dict[int, Floats] = {}
    for explanation in explanations:
        if len(predictions) == REPEATED:
            break
        predictions.setdefault(explanation.index, explanation.prediction.values)
    return predictions


def _rounded(prediction: Floats) -> list[float]:
    rounded: list[float] = np.asarray(prediction).round(4).tolist()
    return rounded


@dataclass(frozen=True)
class PredictAgain:
    """Predicts the inputs of a block again; the result is the prediction if it has changed, else None."""

    requests: tuple[Request, ...]
    predictions: Mapping[int, Floats]

    def carry_out(self, run: Run, items: Sequence[Item]) -> Iterator[JobResult]:
        """Predict all inputs in one engine; yield results that can be sent to another process."""
        todo = (self._prediction(run, work) for work in works(run, self.requests, items))
        for done in run.carry_out(todo, len(items)):
            yield done if done.error is None else replace(done, error=sendable(done.error))

    def _prediction(self, run: Run, work: Work | JobResult) -> Work | JobResult:
        if isinstance(work, JobResult):
            return work
        before, mask = self.predictions[work.key[0]], full_mask(work.input.n_features)
        return replace(work, algorithm=lambda *_: _predict(run, before, mask))

    def failed(self, run: Run, item: Item, error: Exception) -> list[JobResult]:
        """Return the failure of an input for which workers died."""
        return [JobResult((item.index, number), None, error) for number in item.request_indexes]

    def pack(self, results: Sequence[JobResult]) -> Sequence[JobResult]:
        """Return the results unchanged."""
        return results


def _predict(run: Run, before: Floats, mask: Masks) -> Algorithm:
    """Return the prediction if it differs from `before` and the model is not random, else None."""
    now = (yield Values(mask))[0]
    if run.differing(before, now) is None:
        return None
    again = (yield RepeatedValues(mask))[0]
    run.notice(now, again)
    return now if run.differing(now, again) is None else None
