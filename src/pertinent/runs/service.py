"""A service: one model in one thread, which explains what other threads ask for, batched together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
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
from pertinent.runs.request import DEFAULT_METHOD, Method, Request, check_features, make_removal
from pertinent.runs.session import Session, prepare_input

if TYPE_CHECKING:
    from typing import Self

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Order:
    """A submitted job: how its result is made, and the callbacks for partial explanations and progress."""

    result: Callable[[JobResult], Any]
    on_partial: Callable[[Explanation], None] | None = None
    on_progress: Callable[[int], None] | None = None
    number: int = -1


class Service:
    """Explains single inputs as they come, for any number of threads or users at the same time.

    The questions of all explanations under way share batches.

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
        self._todo: SimpleQueue[Callable[[Engine], None] | None] = SimpleQueue()
        self._orders: dict[Future[Any], _Order] = {}
        self._engine = Engine(self.model, batch_size=batch_size, on_partial=self._hand_on)
        self._is_closed = False
        self._thread = Thread(target=self._serve, name="pertinent-service", daemon=True)
        self._thread.start()

    def submit(
        self,
        input: Any,
        method: Method = DEFAULT_METHOD,
        *,
        on_partial: Callable[[Explanation], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
        **words: Any,
    ) -> Future[Explanation]:
        """Begin to explain one input, and return the future of its explanation.

        `cancel` of the future frees what it waits for at once. An input that cannot be explained raises its
        error from the future's `result`; settings that make no sense raise here.

        Parameters
        ----------
        input
            One text, image or row.
        method
            As in `explain`.
        on_partial
            Called in the service's thread with each partial explanation, if the method publishes them.
        on_progress
            Called in the service's thread with the number of evaluations so far, after every batch.
        **words
            The other words of `explain`, such as ``budget=200``, and settings of the method.
        """
        self._check_open()
        request = Request.from_keywords(method, words)
        session = Session(self.model, has_listener=on_partial is not None)
        task, item = ExplainTask((request,), one=True), Item(0, input)
        (job,) = task.jobs(session, item)

        def explanation(ended: JobResult) -> Explanation:
            outcome = task.result(item, replace(ended, key=job.key), session.warnings)
            if outcome.explanation is None:
                raise outcome.failures[0].error or InputError(outcome.failures[0].reason)
            return outcome.explanation

        return self._order(job, _Order(explanation, on_partial, on_progress))

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
        """Ask the model about one input without some of its features, and return the future of its answer.

        The answer is a row of probabilities or values, as `Prediction.values`. Errors are raised as by
        `submit`.

        Parameters
        ----------
        input
            One text, image or row.
        without
            The numbers of the features to remove, from 0; by default none.
        removal, features, seed
            As in `explain`.
        """
        self._check_open()
        chosen = make_removal(removal)

        def steps(prepared: Input, _: Removal) -> Algorithm:
            mask = full_mask(prepared.n_features)
            outside = [number for number in without if number >= prepared.n_features]
            require(not outside, "without", f"numbers below {prepared.n_features}", outside)
            mask[:, list(without)] = False
            return _answer(mask)

        try:
            prepared = prepare_input(self.model, input, check_features(features))
            job = Session(self.model).job(None, prepared, steps, chosen, seed)
        except Exception as error:  # noqa: BLE001  raised by the future
            job = JobResult(None, None, error)
        return self._order(job, _Order(_answered))

    def _check_open(self) -> None:
        if self._is_closed:
            raise ModelError("The service is closed.")

    def _order(self, job: Job | JobResult, order: _Order) -> Future[Any]:
        """Hand a job to the service's thread."""
        future: Future[Any] = Future()
        self._todo.put(lambda engine: self._begin(engine, replace(job, key=future), order))
        return future

    def close(self) -> None:
        """Finish what was submitted, and end the thread."""
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
                    todo(engine)
                continue
            try:
                for done in engine.step():
                    self._conclude(done)
                self._report_progress()
            except Exception as error:
                logger.exception("The service could not go on with what is under way.")
                for future in list(self._orders):
                    self._conclude(JobResult(future, None, error))

    def _begin(self, engine: Engine, job: Job | JobResult, order: _Order) -> None:
        future: Future[Any] = job.key
        self._orders[future] = order
        if isinstance(job, JobResult):
            self._conclude(job)
            return
        number = engine.submit(job)
        self._orders[future] = replace(order, number=number)

        def forget(done: Future[Any]) -> None:
            if done.cancelled():
                self._todo.put(lambda engine: self._cancel(engine, done, number))

        future.add_done_callback(forget)

    def _cancel(self, engine: Engine, future: Future[Any], number: int) -> None:
        self._orders.pop(future, None)
        engine.cancel(number)

    def _conclude(self, done: JobResult) -> None:
        """Give the future its result or error."""
        future: Future[Any] = done.key
        order = self._orders.pop(future, None)
        if order is None or not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(order.result(done))
        except Exception as error:  # noqa: BLE001  for whoever waits for the result
            future.set_exception(error)

    def _report_progress(self) -> None:
        """Tell the listeners of the jobs under way how many evaluations were made."""
        for order in list(self._orders.values()):
            if order.on_progress is not None:
                try:
                    order.on_progress(self._engine.rows_answered(order.number))
                except Exception:
                    logger.exception("`on_progress` failed.")

    def _hand_on(self, published: Published) -> None:
        """Call the `on_partial` of a job with its partial explanation, and log the error if that fails."""
        order = self._orders.get(published.key)
        if order is not None and order.on_partial is not None:
            try:
                order.on_partial(published.finding)
            except Exception:
                logger.exception("`on_partial` failed.")


def _answer(mask: Any) -> Algorithm:
    """Ask for the model's answer to one mask."""
    return np.asarray((yield Values(mask))[0])


def _answered(done: JobResult) -> Floats:
    """The answer of a job that asked for one, or its error."""
    if done.error is not None:
        raise done.error
    answer: Floats = done.result
    return answer
