"""The engine: many conversations between algorithms and one model, in full batches."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from pertinent.engine.asks import (
    Fork,
    Gradients,
    PathGradients,
    Question,
    Slopes,
    Values,
)
from pertinent.engine.batch_size import BatchSize
from pertinent.engine.cache import Cache
from pertinent.engine.conversation import Conversation, Done, Job
from pertinent.engine.pending import Chunk, Kind
from pertinent.engine.progress import Callback, Progress
from pertinent.engine.queue import Queue
from pertinent.errors import ModelError, PertinentError
from pertinent.models.base import Answer, Model, Slope, convert, unusable
from pertinent.types import Floats

logger = logging.getLogger(__name__)

STARTS = 16
"""Inputs that wait for their first answer, for each batch that may be on its way: a first question is
small and says little of what will follow, so without a limit far too many would be started."""


@dataclass(frozen=True)
class Work:
    """What an engine has had the model do."""

    masks: int = 0
    rows: int = 0
    cost: int = 0
    batches: int = 0
    model_seconds: float = 0.0
    seconds: float = 0.0


@dataclass
class _Flight:
    """A batch on the device."""

    chunks: list[Chunk]
    cost: int
    answer: Answer


class Engine:
    """Runs jobs over one model.

    Algorithms are generators that yield asks and are sent answers. The engine advances all of
    them that can, collects their questions, and evaluates those of equal cost together, whichever
    input, explainer or sparsity they come from. One that fails is reported and the rest go on.
    """

    def __init__(
        self,
        model: Model,
        *,
        seed: int = 0,
        batch_size: int | None = None,
        progress: Callback | None = None,
    ) -> None:
        self.model = model
        self.seed = seed
        self.batch_size = BatchSize(model.first_batch, model.largest_batch, batch_size)
        self.progress = progress or (lambda _: None)
        self.work = Work()
        self._begin()

    def _begin(self) -> None:
        """Nothing is under way, nor left of an earlier run that was broken off."""
        self.cache = Cache()
        self._queue = Queue(self.model, self.batch_size)
        self._flights: deque[_Flight] = deque()
        self._answered: deque[tuple[Conversation, Any]] = deque()
        self._done: deque[Done] = deque()
        self._jobs: Iterator[Job | Done] | None = None
        self._fresh = 0
        self._replace = False
        self._pools: ThreadpoolController | None = None

    def run(self, jobs: Iterable[Job | Done], total: int | None = None) -> Iterator[Done]:
        """Run the jobs, taken one by one as there is room; yield each as it ends.

        One that could not even be prepared is given as `Done`, and passed on.
        """
        self._jobs = iter(jobs)
        self._pools = ThreadpoolController() if self.model.in_flight > 1 else None
        done = failed = 0
        start = time.perf_counter()
        try:
            while self._go_on():
                self._replace = self._replace or bool(self._done)
                while self._done:
                    ended = self._done.popleft()
                    done += 1
                    failed += ended.error is not None
                    yield ended
                self.progress(Progress(done, failed, total, self.work.masks))
        finally:
            self._begin()
            self._count(seconds=time.perf_counter() - start)

    def _go_on(self) -> bool:
        """Go on until answers have come or a job is done; whether there was anything to do.

        While a device computes, arithmetic here keeps to one thread: the others of a pool spin for
        a while when they have done their part, and slow down the one that feeds the device.
        """
        masks = self.work.masks
        with self._pools.limit(limits=1) if self._pools else nullcontext():
            while self._step():
                if self._done or self.work.masks != masks:
                    return True
        return False

    def _step(self) -> bool:
        """Do what is most urgent, a device's work before all else; whether there was anything to do."""
        kind = self._due
        if self._is_back:
            self._land()
        elif kind and self._queue.is_pressing(kind, len(self._flights)):
            self._launch(kind)
        elif self._jobs and self._has_room and (self._replace or not self._answered):
            self._start(next(self._jobs, None))
        elif self._answered:
            self._advance(*self._answered.popleft())
        elif kind:
            self._launch(kind)
        elif self._flights:
            self._land()
        else:
            return False
        return True

    @property
    def _has_room(self) -> bool:
        """Whether another job may start."""
        enough = max(self.model.ready, 2 * self.batch_size.cost)
        return self._fresh < STARTS * self.model.in_flight and self._queue.cost < enough

    def _start(self, job: Job | Done | None) -> None:
        """Begin a job, if there is one left."""
        self._replace = False
        if job is None:
            self._jobs = None
        elif isinstance(job, Done):
            self._done.append(job)
        else:
            self.cache.open(job.name)
            self._fresh += 1
            self._advance(Conversation(job, job.algorithm, None), None)

    # -- conversations -------------------------------------------------------------------------

    def _advance(self, talk: Conversation, answer: Any) -> None:
        """Send an answer, take in the next question, and go on for as long as answers are known."""
        while not talk.root.over:
            try:
                ask = talk.algorithm.send(answer)
                if isinstance(ask, Fork):
                    return self._fork(talk, ask)
                answer = self._take(talk, ask)
            except StopIteration as stop:
                return self._finish(talk, stop.value)
            except Exception as error:  # noqa: BLE001  one failing input must not take the others down
                return self._fail(talk, error)
            if answer is None:
                return None
        talk.algorithm.close()
        return None

    def _fork(self, talk: Conversation, ask: Fork) -> None:
        talk.returned = [None] * len(ask.branches)
        talk.outstanding = len(ask.branches)
        for place, branch in enumerate(ask.branches):
            self._advance(Conversation(talk.job, branch, (talk, place)), None)

    def _take(self, talk: Conversation, ask: Question) -> Floats | Gradients | None:
        """Answer a question from the cache, or line up what is missing for the model."""
        job, talk.ask, talk.known = talk.job, ask, {}
        if isinstance(ask, PathGradients):
            self._line_up_slopes(talk, ask)
            return None
        masks = ask.masks
        if masks.ndim != 2 or masks.shape[1] != job.given.n_features or masks.dtype != np.bool_:
            wanted = f"bool (n, {job.given.n_features})"
            raise TypeError(f"Masks must be {wanted}, not {masks.dtype} {masks.shape}.")
        if not isinstance(ask, Values):
            self._line_up_slopes(talk, ask)
            return None
        cached = self.cache.of(job.name)
        talk.known = {key: cached[key] for key in ask.keys if key in cached}
        missing = {key: row for row, key in enumerate(ask.keys) if key not in talk.known}
        if not missing:
            return self._answer(talk)
        talk.outstanding = len(missing)
        needed = masks if len(missing) == len(masks) else masks[list(missing.values())]
        cost = self.model.cost(job.removal, job.given, needed)
        rows = np.array(list(missing.values()))
        self._queue.add(talk, rows, list(missing), cost)
        return None

    def _line_up_slopes(self, talk: Conversation, ask: Slopes) -> None:
        """Line up a question for gradients, which are not remembered."""
        talk.outstanding = len(ask.keys)
        cost = np.full(len(ask.keys), self.model.slope_cost(talk.job.given))
        rows = np.array(ask.keys)
        self._queue.add(talk, rows, list(ask.keys), cost)

    def _answer(self, talk: Conversation) -> Floats | Gradients:
        """All rows of a question, in the form it was asked in."""
        ask = talk.ask
        assert ask is not None
        if isinstance(ask, Values):
            outputs = np.array([talk.known[key] for key in ask.keys])
            return convert(outputs, self.model.output, ask.output)
        outputs, slopes = (
            np.array(part) for part in zip(*(talk.known[key] for key in ask.keys), strict=True)
        )
        values = convert(outputs, self.model.output, "probability")
        if isinstance(ask, PathGradients):
            slopes = slopes * values[:, [ask.target]]
        return Gradients(values, slopes)

    def _finish(self, talk: Conversation, result: Any) -> None:
        if talk.parent is None:
            self._end(talk, result, None)
            return
        parent, place = talk.parent
        parent.returned[place] = result
        parent.outstanding -= 1
        if parent.outstanding == 0:
            self._advance(parent, parent.returned)

    def _fail(self, talk: Conversation, error: Exception) -> None:
        root = talk.root
        if not root.over:
            self._queue.drop(root)
            self._end(root, None, error)

    def _end(self, root: Conversation, result: Any, error: Exception | None) -> None:
        root.over = True
        self._greet(root)
        self.cache.close(root.job.name)
        self._done.append(Done(root.job.key, result, error, root.seconds))

    def _greet(self, root: Conversation) -> None:
        """It has an answer."""
        self._fresh -= root.answers == 0
        root.answers += 1

    # -- batches -------------------------------------------------------------------------------

    @property
    def _due(self) -> Kind | None:
        """The kind of question to launch next, if the device takes another batch."""
        if len(self._flights) >= self.model.in_flight:
            return None
        return self._queue.due({flight.chunks[0].kind for flight in self._flights})

    def _launch(self, kind: Kind) -> None:
        """Put one batch on the device."""
        chunks = self._queue.take(kind, len(self._flights))
        try:
            self._flights.append(self._submit(chunks))
        except Exception as error:  # noqa: BLE001  sorted out chunk by chunk
            self._recover(chunks, error)

    def _submit(self, chunks: list[Chunk]) -> _Flight:
        cost = sum(chunk.total for chunk in chunks)
        if not isinstance(chunks[0].talk.ask, Values):
            return _Flight(chunks, cost, self.model.submit_slopes([self._slope(chunk) for chunk in chunks]))
        rows = []
        for talk, together in groupby(chunks, key=lambda chunk: chunk.talk):
            assert isinstance(talk.ask, Values)
            masks = talk.ask.masks[np.concatenate([chunk.rows for chunk in together])]
            rows.append(talk.job.removal(talk.job.given, masks, self.seed))
        return _Flight(chunks, cost, self.model.submit(rows))

    def _slope(self, chunk: Chunk) -> Slope:
        job, ask = chunk.talk.job, chunk.talk.ask
        assert ask is not None and not isinstance(ask, Values)
        return Slope(job.given, job.removal, ask, chunk.rows, self.seed)

    @property
    def _is_back(self) -> bool:
        """Whether the oldest batch need not be waited for; one that failed need not."""
        try:
            return bool(self._flights) and self._flights[0].answer.is_there()
        except Exception:  # noqa: BLE001  raised again, and sorted out, when it lands
            return True

    def _land(self) -> None:
        """Wait for the oldest batch and hand out its answers."""
        flight = self._flights.popleft()
        try:
            self._hand_out(flight)
        except Exception as error:  # noqa: BLE001  sorted out chunk by chunk
            self._recover(flight.chunks, error)

    def _hand_out(self, flight: _Flight) -> None:
        outputs = flight.answer.outputs()
        values = isinstance(flight.chunks[0].talk.ask, Values)
        outputs, slopes = (outputs, None) if values else outputs
        sizes = [len(c.keys) * (c.talk.job.removal.draws if values else 1) for c in flight.chunks]
        checked = self.model.checked(outputs, sum(sizes))
        seconds = flight.answer.seconds()
        if values:
            self.batch_size.observe(flight.cost, seconds)
        self._count(sum(len(c.keys) for c in flight.chunks), len(checked), flight.cost, 1, seconds)
        bad = unusable(checked, self.model.output)
        if slopes is not None:
            for row in np.flatnonzero(~np.isfinite(slopes).all(axis=1)):
                bad.setdefault(int(row), "the model's gradient holds NaN or infinity")
        parts = np.split(checked, np.cumsum(sizes)[:-1])
        first = 0
        for chunk, part in zip(flight.chunks, parts, strict=True):
            reasons = [bad[row] for row in range(first, first + len(part)) if row in bad] if bad else []
            chunk.talk.root.seconds += seconds * chunk.total / flight.cost
            if reasons:
                self._fail(chunk.talk, ModelError(f"{reasons[0][0].upper()}{reasons[0][1:]}."))
            elif slopes is None:
                self._deliver(chunk, self._remembered(chunk, part))
            else:
                d = chunk.talk.job.given.n_features
                self._deliver(chunk, zip(part, slopes[first : first + len(part), :d], strict=True))
            first += len(part)

    def _remembered(self, chunk: Chunk, outputs: Floats) -> Floats:
        """One row for each mask, its draws averaged, kept for whoever asks again."""
        job = chunk.talk.job
        draws = job.removal.draws
        if draws > 1:
            probabilities = convert(outputs, self.model.output, "probability")
            mean = probabilities.reshape(-1, draws, outputs.shape[1]).mean(axis=1)
            outputs = convert(mean, "probability", self.model.output)
        self.cache.add(job.name, chunk.keys, outputs)
        return outputs

    def _deliver(self, chunk: Chunk, answers: Iterable[Any]) -> None:
        talk, was_young = chunk.talk, chunk.talk.is_young
        self._greet(talk.root)
        talk.known.update(zip(chunk.keys, answers, strict=True))
        talk.outstanding -= len(chunk.keys)
        if talk.outstanding == 0 and not talk.root.over:
            line_up = self._answered.appendleft if was_young else self._answered.append
            line_up((talk, self._answer(talk)))

    def _recover(self, chunks: list[Chunk], error: Exception) -> None:
        """A batch failed: make it smaller if memory ran out, else find the input that did it."""
        rows = sum(len(chunk.keys) for chunk in chunks)
        if self.model.is_out_of_memory(error) and rows > 1:
            self.batch_size.halve(sum(chunk.total for chunk in chunks))
            logger.warning("Out of memory: going on with batches of %d.", self.batch_size.cost)
            for chunk in chunks:
                self._queue.put(chunk)
        elif len(chunks) == 1:
            self._fail(chunks[0].talk, _named(error))
        else:
            for chunk in chunks:
                try:
                    self._hand_out(self._submit([chunk]))
                except Exception as alone:  # noqa: BLE001  the input that did it
                    self._recover([chunk], alone)

    def _count(self, *counts: float, seconds: float = 0.0) -> None:
        names = ("masks", "rows", "cost", "batches", "model_seconds")
        added = dict(zip(names, counts, strict=False)) | {"seconds": seconds}
        self.work = replace(self.work, **{k: getattr(self.work, k) + v for k, v in added.items()})


def _named(error: Exception) -> Exception:
    """An error of the user's own model, introduced as such."""
    if isinstance(error, PertinentError):
        return error
    named = ModelError(f"The model raised {type(error).__name__}: {error}")
    named.__cause__ = error
    return named
