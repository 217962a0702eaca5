"""The engine: many conversations between algorithms and one model, in full batches."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pertinent.engine.asks import (
    Algorithm,
    Fork,
    Gradients,
    MaskGradients,
    PathGradients,
    Question,
    Slopes,
    Values,
)
from pertinent.engine.batch_size import BatchSize
from pertinent.engine.cache import Cache
from pertinent.engine.pending import Chunk, Pending
from pertinent.engine.progress import Callback, Progress
from pertinent.errors import ModelError, PertinentError
from pertinent.inputs.base import Input
from pertinent.models.base import Answer, Model, Slope, convert, unusable
from pertinent.removal.base import Removal
from pertinent.types import Floats

logger = logging.getLogger(__name__)

Kind: TypeAlias = type[Values] | type[MaskGradients] | type[PathGradients]

STARTS = 16
"""Inputs that wait for their first answer, for each batch that may be on its way: a first question is
small and says little of what will follow, so without a limit far too many would be started."""

SHORT = 2
"""The first questions of a job, if they have no more rows, are urgent: its work is still to come."""


@dataclass
class Job:
    """One algorithm on one input; `key` says which when it is done."""

    key: Any
    given: Input
    removal: Removal
    algorithm: Algorithm

    def __post_init__(self) -> None:
        """Name what the cache keeps the answers under."""
        self.name = self.given.fingerprint + repr(self.removal).encode()


@dataclass(frozen=True)
class Done:
    """A job that ended: with a result, or with the error that stopped it.

    `seconds` is the time the model spent on it: its share of the batches it was part of.
    """

    key: Any
    result: Any
    error: Exception | None
    seconds: float


@dataclass(frozen=True)
class Work:
    """What an engine has had the model do."""

    masks: int = 0
    rows: int = 0
    cost: int = 0
    batches: int = 0
    model_seconds: float = 0.0
    seconds: float = 0.0


class Conversation:
    """An algorithm that runs, the question it waits on, and who waits for it."""

    def __init__(self, job: Job, algorithm: Algorithm, parent: tuple[Conversation, int] | None) -> None:
        self.job = job
        self.algorithm = algorithm
        self.parent = parent
        self.ask: Question | None = None
        self.known: dict[Any, Any] = {}
        self.returned: list[Any] = []
        self.outstanding = 0
        self.answers = 0
        self.over = False
        self.seconds = 0.0

    @property
    def root(self) -> Conversation:
        """The conversation of the job itself."""
        return self if self.parent is None else self.parent[0].root


@dataclass
class _Flight:
    """A batch on the device."""

    chunks: list[Chunk]
    cost: int
    answer: Answer

    @property
    def kind(self) -> Kind:
        """What its questions ask for."""
        ask = self.chunks[0].talk.ask
        assert ask is not None
        return type(ask)


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
        self.cache = Cache()
        self.progress = progress or (lambda _: None)
        self.work = Work()
        kinds: tuple[Kind, ...] = (Values, MaskGradients, PathGradients)
        self._pending = {kind: Pending(model.start) for kind in kinds}
        self._passed = dict.fromkeys(self._pending, 0)
        self._flights: deque[_Flight] = deque()
        self._done: deque[Done] = deque()
        self._fresh = 0

    def run(self, jobs: Iterable[Job | Done], total: int | None = None) -> Iterator[Done]:
        """Run the jobs, taken one by one as there is room; yield each as it ends.

        One that could not even be prepared is given as `Done`, and passed on.
        """
        waiting = iter(jobs)
        more = True
        done = failed = 0
        start = time.perf_counter()
        try:
            while True:
                for _ in range(STARTS):
                    if not more or self._fresh >= STARTS * self.model.in_flight or not self._has_room:
                        break
                    job = next(waiting, None)
                    more = job is not None
                    if isinstance(job, Done):
                        self._done.append(job)
                    elif job is not None:
                        self.cache.open(job.name)
                        self._fresh += 1
                        self._advance(Conversation(job, job.algorithm, None), None)
                if (kind := self._due()) and len(self._flights) < self.model.in_flight:
                    self._launch(kind)
                elif self._flights:
                    self._land()
                elif not more and not self._done:
                    break
                while self._done:
                    ended = self._done.popleft()
                    done += 1
                    failed += ended.error is not None
                    yield ended
                self.progress(Progress(done, failed, total, self.work.masks))
        finally:
            self._flights.clear()
            self._count(seconds=time.perf_counter() - start)

    @property
    def _waiting(self) -> int:
        """The cost of all questions that wait for the model."""
        return sum(pending.cost for pending in self._pending.values())

    @property
    def _has_room(self) -> bool:
        return self._waiting < max(self.model.ready, 2 * self.batch_size.cost)

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
        self._pending[Values].add(talk, rows, list(missing), cost, urgent=self._is_urgent(talk))
        return None

    def _line_up_slopes(self, talk: Conversation, ask: Slopes) -> None:
        """Line up a question for gradients, which are not remembered."""
        talk.outstanding = len(ask.keys)
        cost = np.full(len(ask.keys), self.model.slope_cost(talk.job.given))
        rows = np.array(ask.keys)
        self._pending[type(ask)].add(talk, rows, list(ask.keys), cost, urgent=self._is_urgent(talk))

    def _is_urgent(self, talk: Conversation) -> bool:
        return talk.root.answers < SHORT and talk.outstanding <= SHORT

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
            for pending in self._pending.values():
                pending.drop(lambda chunk: chunk.talk.root is root)
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

    def _due(self) -> Kind | None:
        """The kind of question to launch next: that of which most has waited longest.

        Where few wait, those on their way are waited for: else a few answers would bring a few
        questions, which would travel alone for ever.
        """
        flying = {flight.kind for flight in self._flights}
        weights = {
            kind: pending.cost * (1 + self._passed[kind])
            for kind, pending in self._pending.items()
            if pending.cost >= (self._least if kind in flying else 1)
        }
        return max(weights, key=weights.__getitem__, default=None)

    def _launch(self, kind: Kind) -> None:
        """Put one batch on the device."""
        for other, pending in self._pending.items():
            self._passed[other] = self._passed[other] + 1 if other is not kind and pending.cost else 0
        chunks = self._pending[kind].take(self._limit(self._pending[kind].cost))
        try:
            self._flights.append(self._submit(chunks))
        except Exception as error:  # noqa: BLE001  sorted out chunk by chunk
            self._recover(chunks, error)

    def _limit(self, waiting: int) -> int:
        """The cost of the next batch: a full one, or half of what waits.

        The device works on one half while the other is answered. Without a device of its own the
        model gains nothing by that, and a batch that is too small is not worth its start.
        """
        full = self.batch_size.cost
        return full if self.model.in_flight == 1 else min(full, max(waiting // 2, self._least))

    @property
    def _least(self) -> int:
        """The cost of a batch that is well worth its start."""
        return max(1, self.batch_size.cost // 2)

    def _submit(self, chunks: list[Chunk]) -> _Flight:
        cost = sum(chunk.total for chunk in chunks)
        if not isinstance(chunks[0].talk.ask, Values):
            return _Flight(chunks, cost, self.model.submit_slopes([self._slope(chunk) for chunk in chunks]))
        rows = []
        for chunk in chunks:
            job, ask = chunk.talk.job, chunk.talk.ask
            assert isinstance(ask, Values)
            rows.append(job.removal(job.given, ask.masks[chunk.rows], self.seed))
        return _Flight(chunks, cost, self.model.submit(rows))

    def _slope(self, chunk: Chunk) -> Slope:
        job, ask = chunk.talk.job, chunk.talk.ask
        assert ask is not None and not isinstance(ask, Values)
        return Slope(job.given, job.removal, ask, chunk.rows, self.seed)

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
        talk = chunk.talk
        self._greet(talk.root)
        talk.known.update(zip(chunk.keys, answers, strict=True))
        talk.outstanding -= len(chunk.keys)
        if talk.outstanding == 0 and not talk.root.over:
            self._advance(talk, self._answer(talk))

    def _recover(self, chunks: list[Chunk], error: Exception) -> None:
        """A batch failed: make it smaller if memory ran out, else find the input that did it."""
        rows = sum(len(chunk.keys) for chunk in chunks)
        if self.model.is_out_of_memory(error) and rows > 1:
            self.batch_size.halve(sum(chunk.total for chunk in chunks))
            logger.warning("Out of memory: going on with batches of %d.", self.batch_size.cost)
            for chunk in chunks:
                assert chunk.talk.ask is not None
                self._pending[type(chunk.talk.ask)].put(chunk)
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
