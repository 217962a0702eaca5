"""A service: a model in one thread that explains inputs of other threads in shared batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm, Values
from pertinent.config.serialization import Index
from pertinent.config.settings import Count, Seed, checked
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job, JobResult, Published
from pertinent.errors import InputError, ModelError, require
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.removals.base import Removal
from pertinent.results.explanation import Explanation
from pertinent.runs.executor import Item
from pertinent.runs.explain import ExplainTask
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.request import Method, Request, check_features, default_method, make_removal
from pertinent.runs.session import Session, prepare_input

if TYPE_CHECKING:
    from typing import Self

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Order:
    """A submitted job: how to create its result, the user's callbacks, its future, and its number."""

    result: Callable[[JobResult], Any]
    on_partial: Callable[[Explanation], None] | None = None
    on_progress: Callable[[int], None] | None = None
    future: Future[Any] = field(default_factory=Future)
    number: int = -1


class Service:
    """Explains single inputs as they arrive, from any number of threads or users.

    The questions of all explanations in progress share batches.

    Parameters
    ----------
    model
        A model, as in `explain`.
    batch_size
        As in `explain`.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> with pertinent.Service(model) as service:
    ...     futures = [service.submit(f"not {word} at all", "leave-one-out") for word in ("bad", "good")]
    ...     [future.result().top(1) for future in futures]
    [[('bad', 0.7)], [('not', 0.0)]]
    """

    @checked
    def __init__(self, model: Any, *, batch_size: Count | None = None) -> None:
        self.model = load_or_wrap(model)
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._orders: set[_Order] = set()
        self._engine = Engine(self.model, batch_size=batch_size, on_partial=self._publish)
        self._is_closed = False
        self._thread = Thread(target=self._serve, name="pertinent-service", daemon=True)
        self._thread.start()

    def submit(
        self,
        input: Any,
        method: Method | None = None,
        *,
        on_partial: Callable[[Explanation], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
        **words: Any,
    ) -> Future[Explanation]:
        """Start explaining an input and return a future for its explanation.

        `cancel` of the future frees its resources. The future's `result` raises the error of an input that
        cannot be explained; invalid settings raise immediately.

        Parameters
        ----------
        input
            A single text, image or row.
        method
            As in `explain`.
        on_partial
            Called in the service's thread with each partial explanation, if the method publishes any.
        on_progress
            Called in the service's thread after every batch with the number of evaluations so far.
        **words
            Other arguments of `explain`, such as ``budget=200``, and settings of the method.
        """
        self._check_open()
        chosen = default_method(self.model.kind) if method is None else method
        request = Request.from_keywords(chosen, words)
        session = Session(self.model, has_listener=on_partial is not None)
        task, item = ExplainTask((request,), one=True), Item(0, input)
        (key,) = task.keys(item)

        def explanation(ended: JobResult) -> Explanation:
            outcome = task.result(item, replace(ended, key=key), session.warnings)
            if outcome.explanation is None:
                raise outcome.failures[0].error or InputError(outcome.failures[0].reason)
            return outcome.explanation

        return self._submit(task.start(session, item, key), _Order(explanation, on_partial, on_progress))

    @checked
    def predict(
        self,
        input: Any,
        without: Sequence[Index] = (),
        *,
        removal: str | Removal | None = None,
        features: Any = None,
        seed: Seed = 0,
    ) -> Future[Floats]:
        """Predict an input without some of its features and return a future for the prediction.

        The prediction is a row of probabilities or values, as in `Prediction.values`. Errors are raised as in
        `submit`.

        Parameters
        ----------
        input
            A single text, image or row.
        without
            Indices of the features to remove, from 0; by default none.
        removal, features, seed
            As in `explain`.
        """
        self._check_open()
        chosen = make_removal(removal)

        def steps(prepared: Input, _: Removal) -> Algorithm:
            mask = full_mask(prepared.n_features)
            outside = [number for number in without if number >= prepared.n_features]
            require(not outside, "without", f"indices below {prepared.n_features}", outside)
            mask[:, list(without)] = False
            return _predict(mask)

        try:
            prepared = prepare_input(self.model, input, check_features(features))
            job: Job | JobResult = Session(self.model).job(None, prepared, steps, chosen, seed)
        except Exception as error:  # noqa: BLE001  raised by the future
            job = JobResult(None, None, error)
        return self._submit(job, _Order(_prediction))

    def _check_open(self) -> None:
        if self._is_closed:
            raise ModelError("The service is closed.")

    def _submit(self, job: Job | JobResult, order: _Order) -> Future[Any]:
        self._todo.put(partial(self._start, replace(job, key=order), order))
        return order.future

    def close(self) -> None:
        """Finish all submitted jobs and stop the thread."""
        self._is_closed = True
        self._todo.put(None)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- in the service's thread -------------------------------------------------------------------

    def _serve(self) -> None:
        engine, is_open = self._engine, True
        while is_open or engine.is_busy or not self._todo.empty():
            if is_open and (not engine.is_busy or not self._todo.empty()):
                todo = self._todo.get()
                if todo is None:
                    is_open = False
                else:
                    todo()
                continue
            try:
                for ended in engine.step():
                    self._conclude(ended)
                for order in list(self._orders):
                    _notify(order.on_progress, engine.rows_answered(order.number))
            except Exception as error:
                logger.exception("The service had to abandon all explanations in progress.")
                for order in list(self._orders):
                    self._conclude(JobResult(order, None, error))

    def _start(self, job: Job | JobResult, order: _Order) -> None:
        self._orders.add(order)
        if isinstance(job, JobResult):
            self._conclude(job)
            return
        order.number = self._engine.submit(job)

        def cancel(future: Future[Any]) -> None:
            if future.cancelled():
                self._todo.put(partial(self._cancel, order))

        order.future.add_done_callback(cancel)

    def _cancel(self, order: _Order) -> None:
        self._orders.discard(order)
        self._engine.cancel(order.number)

    def _conclude(self, ended: JobResult) -> None:
        """Set the result or error of a future."""
        order: _Order = ended.key
        if order not in self._orders:
            return
        self._orders.remove(order)
        if not order.future.set_running_or_notify_cancel():
            return
        try:
            order.future.set_result(order.result(ended))
        except Exception as error:  # noqa: BLE001  raised by the future
            order.future.set_exception(error)

    def _publish(self, published: Published) -> None:
        _notify(published.key.on_partial, published.finding)


def _notify(callback: Callable[[Any], None] | None, argument: Any) -> None:
    """Call the user's callback, if any, and log its errors."""
    try:
        if callback is not None:
            callback(argument)
    except Exception:
        logger.exception("`on_partial` or `on_progress` failed.")


def _predict(mask: Any) -> Algorithm:
    return np.asarray((yield Values(mask))[0])


def _prediction(ended: JobResult) -> Floats:
    """Return the prediction of a job, or raise its error."""
    if ended.error is not None:
        raise ended.error
    prediction: Floats = ended.result
    return prediction
