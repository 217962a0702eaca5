"""The engine: runs many algorithms over one model in full batches."""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.asks import Ask, BatchPart, Compute, Publish, Question
from pertinent.engine.cache import Cache
from pertinent.engine.job import Chunk, Job, JobResult, JobRun, OpenQuestion, Published
from pertinent.engine.processes import n_cores, shared
from pertinent.engine.progress import Callback, Progress
from pertinent.engine.scheduler import FULL, GOOD, BatchSize, Scheduler
from pertinent.errors import BudgetError, ModelError, PertinentError
from pertinent.models.base import Answer, Model
from pertinent.models.threads import thread_pools

logger = logging.getLogger(__name__)

BACKLOG = 16
"""Number of waiting batches, per batch in flight, above which no job is started.

This backlog has enough rows of equal length.
"""

UNANSWERED = 16
"""Number of jobs, per batch in flight, that may wait for their first answer.

First questions are small, so without this limit too many jobs would be started before the backlog grows.
"""

LEAST_WAIT, LONGEST_WAIT = 0.01, 0.25
"""Seconds to spend on pulling jobs from a stream between two batches: the duration of a batch, within these
limits."""

COMPUTING = 2
"""Number of computing algorithms, per core, above which no job is started."""

WAITING = object()
"""Placeholder for an answer that is not available yet."""


@dataclass
class _Flight:
    """A batch on the device: its chunks by question, its parts as passed to the model, and the answer."""

    chunks: dict[OpenQuestion, list[Chunk]]
    parts: list[BatchPart]
    answer: Answer


class Engine:
    """Runs jobs over one model; jobs may be submitted and cancelled at any time.

    Algorithms are generators that yield questions and receive answers. The engine advances every algorithm
    whose answer is available, collects the questions, and combines rows of the same kind and similar cost
    into batches, whatever their input, explainer, seed or sparsity. An error in a question is raised in the
    algorithm that yielded it. A failing algorithm does not affect the others.

    All methods must be called from the same thread.

    Parameters
    ----------
    batch_size
        Largest cost of a batch, in the model's unit; by default determined during the run.
    progress
        Called by `run` when answers have arrived.
    on_partial
        Called by `step` with each partial finding.
    """

    def __init__(
        self,
        model: Model,
        *,
        batch_size: int | None = None,
        progress: Callback | None = None,
        on_partial: Callable[[Published], None] | None = None,
    ) -> None:
        self.model = model
        self.batch_sizes: defaultdict[type, BatchSize] = defaultdict(
            lambda: BatchSize(model.first_batch, model.largest_batch, batch_size)
        )
        self.progress = progress or (lambda _: None)
        self.on_partial = on_partial
        self.rows = 0
        self._open: dict[int, JobRun] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._reset()

    def _reset(self) -> None:
        """Abandon all jobs."""
        self._source: Iterator[Job | JobResult] | None = None
        self._is_stream = False
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = None
        self._computing: dict[Future[Any], JobRun] = {}
        self._last_pull = self._pulling = self._last_batch = 0.0
        self.cache = Cache()
        self._scheduler = Scheduler(
            lambda kind: self.batch_sizes[kind].cost,
            self.model.launch_overhead,
            self.model.mixed_length_penalty,
        )
        self._flights: deque[_Flight] = deque()
        self._ready: deque[tuple[JobRun, Any, Exception | None]] = deque()
        self._done: list[JobResult] = []
        self._published: deque[Published] = deque()
        self._unanswered = 0
        self._abandon(self._open.values())
        self._open.clear()

    # -- the service ---------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Return whether a job is running or has ended since the last `step`."""
        return bool(self._open or self._done) or self._source is not None

    @property
    def has_room(self) -> bool:
        """Return whether another job would help to fill batches."""
        in_flight = self.model.in_flight
        if len(self._computing) >= COMPUTING * n_cores():
            return False
        return self._unanswered < UNANSWERED * in_flight and self._scheduler.backlog < BACKLOG * in_flight

    def submit(self, job: Job) -> int:
        """Start a job and return its number, which `cancel` accepts."""
        run = JobRun(job, job.algorithm)
        self._open[run.number] = run
        self._unanswered += 1
        self.cache.open(job.name)
        self._advance(run, None, None)
        return run.number

    def rows_answered(self, number: int) -> int:
        """Return the number of answered rows of a running job; 0 if it has ended."""
        return self._open[number].rows if number in self._open else 0

    def cancel(self, number: int) -> bool:
        """Cancel a job and return whether it was still running.

        Its waiting questions and cached answers are freed immediately; answers in progress are discarded when
        they arrive.
        """
        run = self._open.pop(number, None)
        if run is None:
            return False
        self._abandon([run])
        self._release(run)
        self._ready = deque(entry for entry in self._ready if not entry[0].ended)
        return True

    def step(self) -> list[JobResult]:
        """Work until answers arrive or a job ends, and return the jobs that have ended.

        Partial findings are passed to `on_partial`, which may cancel jobs. The list is empty if no job is
        running.
        """
        rows = self.rows
        # While a device computes, arithmetic here uses one thread: idle threads of a pool spin for a while
        # and slow down the thread that feeds the device.
        with thread_pools().limit(limits=1) if self.model.in_flight > 1 else nullcontext():
            while not self._done and not self._published and self.rows == rows and self._work():
                pass
        while self._published and self.on_partial is not None:
            self.on_partial(self._published.popleft())
        done, self._done = self._done, []
        return done

    def run(self, jobs: Iterable[Job | JobResult], total: int | None = None) -> Iterator[JobResult]:
        """Run jobs, pulled one by one as needed, and yield each when it ends.

        A `JobResult` in place of a job is yielded unchanged. Without a `total`, the jobs are a stream: while
        other jobs can proceed, the engine waits for the next one no longer than a batch takes.
        """
        self._source, self._is_stream = iter(jobs), total is None
        done = failed = 0
        try:
            while self.is_busy:
                for ended in self.step():
                    done += 1
                    failed += ended.error is not None
                    yield ended
                self.progress(Progress(done, failed, total, self.rows))
        finally:
            self._reset()

    def _work(self) -> bool:
        """Do the most urgent step, feeding the device first; return whether there was anything to do."""
        self._gather()
        if self._is_back():
            self._collect()
        elif self._launch_if_worthwhile():
            pass
        elif self._ready:
            self._advance(*self._ready.popleft())
        elif self._source is not None and self.has_room and not self._is_slow:
            self._pull(self._source)
        elif self._scheduler.cost and (not self._flights or self._is_worth_launching_behind):
            self._launch(self._scheduler.pop_batch())
        elif self._flights:
            self._collect()
        elif self._computing:
            wait(self._computing, return_when=FIRST_COMPLETED)
        elif self._source is not None:
            self._pull(self._source)
        else:
            return False
        return True

    def _gather(self) -> None:
        """Queue the algorithms whose arithmetic has finished."""
        for future in [future for future in self._computing if future.done()]:
            run, error = self._computing.pop(future), future.exception()
            if not run.ended:
                self._ready.append((run, None if error else future.result(), error))  # type: ignore[arg-type]

    def _compute(self, run: JobRun, ask: Compute) -> Any:
        """Start arithmetic in another thread if the model runs on a device; otherwise do it now."""
        if self.model.in_flight == 1:
            return ask.compute()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(n_cores(), "pertinent-arithmetic")
        compute = partial(shared().call, ask.compute) if ask.portable else ask.compute
        self._computing[self._threads.submit(compute)] = run
        return WAITING

    @property
    def _is_slow(self) -> bool:
        """Return whether waiting for a stream's next job would delay a batch too long."""
        allowed = max(LEAST_WAIT, min(LONGEST_WAIT, self._last_batch))
        return self._is_stream and self._pulling + self._last_pull > allowed

    def _pull(self, source: Iterator[Job | JobResult]) -> None:
        """Start the next job, if any."""
        begin = time.perf_counter()
        job = next(source, None)
        self._last_pull = time.perf_counter() - begin
        self._pulling += self._last_pull
        if job is None:
            self._source = None
        elif isinstance(job, JobResult):
            self._done.append(job)
        else:
            self.submit(job)

    # -- algorithms ----------------------------------------------------------------------------

    def _advance(self, run: JobRun, answer: Any, error: Exception | None) -> None:
        """Send an answer or error to an algorithm until it yields a question that must wait."""
        while not run.ended:
            try:
                ask = run.algorithm.send(answer) if error is None else run.algorithm.throw(error)
            except StopIteration as stop:
                return self._finish(run, stop.value)
            except MemoryError as full:
                reason = f"There is not enough memory for this number of samples: use fewer. ({full})"
                return self._fail(run, _set_cause(BudgetError(reason), full))
            except Exception as failure:  # noqa: BLE001  the other inputs go on
                return self._fail(run, failure)
            error = None
            try:
                answer = self._receive(run, ask)
            except Exception as refused:  # noqa: BLE001  raised in the algorithm
                error = refused
            if answer is WAITING and error is None:
                return None
        return None

    def _receive(self, run: JobRun, ask: Ask) -> Any:
        """Process what an algorithm has yielded; return the answer or `WAITING`."""
        if isinstance(ask, Question):
            return self._enqueue(run, ask)
        if isinstance(ask, Publish):
            if self.on_partial is not None:
                self._published.append(Published(run.job.key, run.number, ask.make(), ask.evaluations))
            return None
        if isinstance(ask, Compute):
            return self._compute(run, ask)
        run.branches = [JobRun(run.job, branch, run, run.number) for branch in ask.branches]
        self._ready.extend((branch, None, None) for branch in run.branches)
        return WAITING if run.branches else []

    def _enqueue(self, run: JobRun, question: Question) -> Any:
        """Answer a question from the cache, or queue its missing rows for the model."""
        job, kind, keys = run.job, type(question), question.keys
        question.check(job.input)
        answers: dict[Hashable, Any] = {}
        if question.remembered and (cached := self.cache.answers_for(job.name, kind)):
            answers = {key: cached[key] for key in keys if key in cached}
        missing = {key: row for row, key in enumerate(keys) if key not in answers}
        if not missing:
            return question.assemble(self.model, job.input, [answers[key] for key in keys])
        rows = np.fromiter(missing.values(), dtype=np.int64, count=len(missing))
        costs = np.maximum(1, question.costs(self.model, job.input, job.removal, rows))
        run.question = OpenQuestion(run, question, answers, len(missing))
        group = question.group(self.model, job.input)
        for chunk in _chunks(run.question, group, rows, list(missing), costs):
            self._scheduler.put(chunk)
        return WAITING

    def _finish(self, run: JobRun, result: Any) -> None:
        """End a run that returned; answer its fork after the last branch."""
        run.ended, run.result = True, result
        parent = run.parent
        if parent is None:
            self._end(run, result, None)
        elif all(branch.ended for branch in parent.branches):
            self._ready.append((parent, [branch.result for branch in parent.branches], None))

    def _fail(self, run: JobRun, error: Exception) -> None:
        """End a run with an error, which is raised in the algorithm that forked it or ends the job."""
        run.ended = True
        parent = run.parent
        if parent is None:
            self._end(run, None, error)
        elif not parent.ended:
            self._abandon(parent.branches)
            self._ready.append((parent, None, error))

    def _abandon(self, runs: Iterable[JobRun]) -> None:
        """Close runs and all their branches, and withdraw their questions."""
        tree = list(runs)
        for run in tree:
            tree += run.branches
            run.ended = True
        self._scheduler.withdraw([run.question for run in tree if run.question is not None])
        for run in reversed(tree):
            try:
                run.algorithm.close()
            except Exception:  # the others must be closed too
                logger.exception("An algorithm raised an error while it was closed.")

    def _end(self, root: JobRun, result: Any, error: Exception | None) -> None:
        del self._open[root.number]
        self._release(root)
        self._done.append(JobResult(root.job.key, result, error, root.seconds))

    def _release(self, root: JobRun) -> None:
        """Free the memory of a job that has ended."""
        self._note_first_answer(root)
        self.cache.close(root.job.name)

    def _note_first_answer(self, root: JobRun) -> None:
        """Update the number of unanswered jobs when a job gets its first answer or ends without one."""
        if not root.answered:
            root.answered = True
            self._unanswered -= 1

    # -- batches -------------------------------------------------------------------------------

    def _launch_if_worthwhile(self) -> bool:
        """Launch a full batch, or a good one if the device will soon be idle; return whether one existed."""
        if len(self._flights) >= self.model.in_flight or not self._scheduler.cost:
            return False
        # A device with no batch after the current one will soon be idle.
        about_to_idle = self.model.in_flight > 1 and len(self._flights) < 2
        chunks = self._scheduler.pop_batch(GOOD if about_to_idle else FULL)
        if chunks:
            self._launch(chunks)
        return bool(chunks)

    @property
    def _is_worth_launching_behind(self) -> bool:
        """Return whether the backlog justifies queueing another batch, good or not, on the device."""
        return 2 * len(self._flights) < self.model.in_flight and self._scheduler.backlog >= 0.5

    def _launch(self, chunks: list[Chunk]) -> None:
        """Submit a batch to the device."""
        self._pulling = 0.0
        try:
            self._flights.append(self._submit(chunks))
        except Exception as error:  # noqa: BLE001  handled chunk by chunk
            self._recover(chunks, error)

    def _submit(self, chunks: list[Chunk]) -> _Flight:
        by_question: defaultdict[OpenQuestion, list[Chunk]] = defaultdict(list)
        for chunk in chunks:
            by_question[chunk.open].append(chunk)
        parts = [
            question.part(np.concatenate([chunk.rows for chunk in question_chunks]))
            for question, question_chunks in by_question.items()
        ]
        kind, size, total = chunks[0].kind, self.batch_sizes[chunks[0].kind], sum(c.total for c in chunks)
        n_pieces = _n_pieces(chunks)
        with self.model.thread_counts[kind].limit() if self.model.in_flight == 1 else nullcontext():
            if n_pieces > 1 and size.is_shrunken and total > size.cost:
                n_at_once = max(1, size.cost * n_pieces // total)
                return _Flight(by_question, parts, kind.submit_divided(self.model, parts[0], n_at_once))
            return _Flight(by_question, parts, kind.submit(self.model, parts))

    def _is_back(self) -> bool:
        """Return whether the oldest batch has been answered or has failed, so it can be collected."""
        try:
            return bool(self._flights) and self._flights[0].answer.done()
        except Exception:  # noqa: BLE001  raised again and handled when the batch is collected
            return True

    def _collect(self) -> None:
        """Wait for the oldest batch and deliver its answers."""
        flight = self._flights.popleft()
        try:
            self._deliver_batch(flight)
        except Exception as error:  # noqa: BLE001  handled chunk by chunk
            self._recover(list(chain(*flight.chunks.values())), error)

    def _deliver_batch(self, flight: _Flight) -> None:
        kind = type(flight.parts[0].question)
        answers = kind.read(self.model, flight.answer.outputs(), flight.parts)
        seconds = self._last_batch = flight.answer.seconds()
        costs = [sum(chunk.total for chunk in chunks) for chunks in flight.chunks.values()]
        self.batch_sizes[kind].observe(sum(costs), seconds)
        self.model.thread_counts[kind].observe(self.model.launch_overhead + sum(costs), seconds)
        for (question, chunks), cost, result in zip(flight.chunks.items(), costs, answers, strict=True):
            keys = list(chain(*(chunk.keys for chunk in chunks))) if len(chunks) > 1 else chunks[0].keys
            self.rows += len(keys)
            root = question.run.root
            self._note_first_answer(root)
            root.rows += len(keys)
            root.seconds += seconds * cost / max(1, sum(costs))
            if isinstance(result, Exception):
                self._reject(question, result)
            else:
                self._deliver(question, keys, result)

    def _deliver(self, question: OpenQuestion, keys: list[Hashable], answers: Sequence[Any]) -> None:
        if question.question.remembered:
            self.cache.add(question.run.job.name, type(question.question), keys, answers)
        if question.withdrawn:
            return
        question.n_missing -= len(keys)
        ask, run = question.question, question.run
        in_order = question.n_missing == 0 and not question.answers and keys == ask.keys
        if not in_order:
            question.answers.update(zip(keys, answers, strict=True))
        if question.n_missing == 0:
            run.question = None
            answer = error = None
            try:
                ordered = list(answers) if in_order else [question.answers[key] for key in ask.keys]
                answer = ask.assemble(self.model, run.job.input, ordered)
            except Exception as raised:  # noqa: BLE001  raised in the algorithm
                error = raised
            self._ready.append((run, answer, error))

    def _reject(self, question: OpenQuestion, error: Exception) -> None:
        """Raise an error in the algorithm that waits on a question."""
        if not question.withdrawn:
            self._scheduler.withdraw([question])
            question.run.question = None
            self._ready.append((question.run, None, error))

    def _recover(self, chunks: list[Chunk], error: Exception) -> None:
        """Handle a failed batch: reduce the batch size if memory ran out, else find the failing question."""
        size, total = self.batch_sizes[chunks[0].kind], sum(chunk.total for chunk in chunks)
        is_one_row = sum(len(chunk.keys) for chunk in chunks) == 1
        failed = min(size.cost, total) if is_one_row else total
        if self.model.is_out_of_memory(error) and (not is_one_row or failed * _n_pieces(chunks) > total):
            size.halve(failed)
            logger.warning("Out of memory: continuing with batches of %d.", size.cost)
            for chunk in chunks:
                if not chunk.open.withdrawn:
                    self._scheduler.put(chunk)
        elif len(chunks) == 1:
            if self.model.is_out_of_memory(error):
                size.restore()
            if not isinstance(error, PertinentError):  # raised by the user's model
                error = _set_cause(ModelError(f"The model raised {type(error).__name__}: {error}"), error)
            self._reject(chunks[0].open, error)
        else:
            for chunk in chunks:
                if chunk.open.withdrawn:
                    continue
                try:
                    self._deliver_batch(self._submit([chunk]))
                except Exception as failure:  # noqa: BLE001  this question made the batch fail
                    self._recover([chunk], failure)


def _chunks(
    question: OpenQuestion, group: Hashable, rows: Ints, keys: list[Hashable], costs: Ints
) -> Iterator[Chunk]:
    """Yield a chunk for each distinct cost among a question's rows."""
    if (costs == costs[0]).all():
        yield Chunk(question, group, rows, keys, int(costs[0]))
        return
    order = np.argsort(costs, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(costs[order])) + 1):
        yield Chunk(question, group, rows[part], [keys[i] for i in part.tolist()], int(costs[part[0]]))


def _n_pieces(chunks: Sequence[Chunk]) -> int:
    """Return the number of pieces into which a one-row batch can be split; 1 for other batches."""
    first = chunks[0]
    if len(chunks) > 1 or len(first.keys) > 1:
        return 1
    return first.open.question.n_pieces(first.open.run.job.removal)


def _set_cause(error: PertinentError, cause: Exception) -> PertinentError:
    """Return the error with a cause, as ``raise error from cause`` does."""
    error.__cause__ = cause
    return error
