"""A service: one model in one thread, which explains what other threads ask for, batched together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from pertinent.api.explain_run import outcome_of, works
from pertinent.api.request import DEFAULT_METHOD, Method, Request
from pertinent.api.run import Run
from pertinent.engine.engine import Engine
from pertinent.engine.job import Done, Job, Published
from pertinent.errors import InputError, ModelError
from pertinent.models.wrap import wrap
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, checked

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class Service:
    """Explains single inputs as they come, for any number of threads or users at the same time.

    The questions of all explanations under way share batches.

    Parameters
    ----------
    model
        A model of any kind, wrapped or as `wrap` accepts it.
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
        self.model = wrap(model)
        self._todo: SimpleQueue[Callable[[Engine], None] | None] = SimpleQueue()
        self._runs: dict[Future[Explanation], tuple[Run, Request]] = {}
        self._engine = Engine(self.model, batch_size=batch_size, on_partial=self._hand_on)
        self._is_closed = False
        self._thread = Thread(target=self._serve, name="pertinent-service", daemon=True)
        self._thread.start()

    def submit(
        self,
        input: Any,
        method: Method = DEFAULT_METHOD,
        *,
        on_partial: Callable[[Published], None] | None = None,
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
            Called in the service's thread with each partial finding, by methods that publish them.
        **words
            The other words of `explain`, such as ``budget=200``, and settings of the method.
        """
        if self._is_closed:
            raise ModelError("The service is closed.")
        request = Request.of_words(method, words)
        run = Run(self.model, [input], one=True, on_partial=on_partial)
        future: Future[Explanation] = Future()
        (work,) = works(run, [request])
        job = run.job(work)
        self._todo.put(lambda engine: self._begin(engine, replace(job, key=future), run, request))
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
            except Exception as error:
                logger.exception("The service could not go on with what is under way.")
                for future in list(self._runs):
                    self._conclude(Done(future, None, error))

    def _begin(self, engine: Engine, job: Job | Done, run: Run, request: Request) -> None:
        future: Future[Explanation] = job.key
        self._runs[future] = run, request
        if isinstance(job, Done):
            self._conclude(job)
            return
        number = engine.submit(job)

        def forget(done: Future[Explanation]) -> None:
            if done.cancelled():
                self._todo.put(lambda engine: self._cancel(engine, done, number))

        future.add_done_callback(forget)

    def _cancel(self, engine: Engine, future: Future[Explanation], number: int) -> None:
        self._runs.pop(future, None)
        engine.cancel(number)

    def _conclude(self, done: Done) -> None:
        """Give the future its explanation or error."""
        future: Future[Explanation] = done.key
        run, request = self._runs.pop(future, (None, None))
        if run is None or request is None or not future.set_running_or_notify_cancel():
            return
        outcome = outcome_of(run, [request], replace(done, key=(0, 0)))
        if outcome.explanation is not None:
            future.set_result(outcome.explanation)
        else:
            future.set_exception(outcome.failures[0].error or InputError(outcome.failures[0].reason))

    def _hand_on(self, published: Published) -> None:
        """Hand a partial finding to whoever asked for it; what goes wrong there is logged."""
        run, _ = self._runs.get(published.key, (None, None))
        if run is not None and run.on_partial is not None:
            try:
                run.on_partial(published)
            except Exception:
                logger.exception("`on_partial` failed.")
