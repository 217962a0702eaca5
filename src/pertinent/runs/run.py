"""The front door: every verb builds a run of a model over inputs, and runs algorithms in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job, JobResult
from pertinent.engine.progress import Callback, progress_callback
from pertinent.errors import InputError, PertinentError, require
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.outputs import LogLikelihoods
from pertinent.removals.base import Removal, removals
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Cluster
from pertinent.runs.model_names import NamedModel

logger = logging.getLogger(__name__)

TOLERANCE = 0.002
TOLERANCE_IN_HALF_PRECISION = 0.02
"""Answers that differ by less count as equal: they depend a little on the rest of the batch."""
HALF_PRECISION = {"float16": 2**-10, "bfloat16": 2**-7}
"""The distance from 1 to the next larger number of each half-precision dtype."""
EPSILONS_OF_LOG_LIKELIHOODS = 20
"""Tolerance of log-likelihoods in half precision. In bfloat16, SmolLM2's vary by 0.12 with the batch."""


@dataclass(frozen=True)
class Work:
    """One algorithm to run on one input; `algorithm` is called with the input and its removal.

    Without a `removal` the one that suits the input is used.
    """

    key: Any
    input: Input
    algorithm: Callable[[Input, Removal], Algorithm]
    removal: Removal | None = None
    seed: int = 0


@dataclass(frozen=True)
class Shard:
    """The `number`-th of `of` equal parts of the inputs, counted from 1: every `of`-th input.

    >>> [index for index in range(8) if index in Shard.parse("2/3")]
    [1, 4, 7]
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """A shard given as ``"2/8"``."""
        found = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", text)
        require(found is not None and int(found[1]) <= int(found[2]), "shard", "I/N with 1 ≤ I ≤ N", text)
        assert found is not None
        return cls(int(found[1]), int(found[2]))

    def __contains__(self, index: int) -> bool:
        return index % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class Run:
    """A model, the inputs it is asked about, and how the work is done and shown.

    Attributes
    ----------
    one
        Whether the user gave a single input, not a collection.
    ids
        The user's own name for each input, by position.
    shard
        The part of the inputs that this run does; ``None`` for all of them.
    title
        What the progress bar says.
    batch_size, progress
        As in `explain`.
    on_partial
        Called with each partial explanation that a method publishes.
    independent
        Whether inputs of the same size are asked different random questions, so that a network that learns
        from the answers cannot learn their common error.
    cluster
        Where the work is done, if not in this process.
    engine
        The engine of a worker that does one run after the other; by default a new one for each.
    """

    model: Model
    inputs: Iterable[Any] = ()
    one: bool = False
    ids: Sequence[Any] | Mapping[int, Any] | None = None
    shard: Shard | None = None
    title: str = "explain"
    batch_size: int | None = None
    progress: Callback | bool | None = None
    on_partial: Callable[[Explanation], None] | None = None
    independent: bool = False
    cluster: Cluster | None = None
    engine: Engine | None = None
    _noticed: list[str] = field(default_factory=list)
    _to_repeat: list[Work] = field(default_factory=list)

    @classmethod
    def from_arguments(
        cls, model: Any, inputs: Any, title: str, shard: str | None = None, **options: Any
    ) -> Run:
        """A run of anything that `wrapped` accepts over one input or several, or over a shard of them."""
        part = None if shard is None else Shard.parse(shard)
        model = wrapped(model, options.get("cluster"))
        many = model.split(inputs)
        run = cls(model, [inputs] if many is None else many, many is None, title=title, shard=part, **options)
        if part is not None:
            require(not run.one, "shard", "left out for a single input", shard)
            n = run.n_inputs
            require(n is None or part.of <= n, "shard", f"one of at most {n}, as many as inputs", shard)
        return run

    def listed(self) -> Run:
        """The same run with all inputs in a list, or an error if there are none."""
        inputs = list(self.inputs)
        require(len(inputs) > 0, "inputs", "at least one", inputs)
        return replace(self, inputs=inputs)

    def over(self, inputs: Sequence[Any], model: Model | None = None) -> Run:
        """The same run over other inputs, perhaps with another model."""
        return replace(self, inputs=inputs, one=False, ids=None, model=model or self.model)

    @property
    def n_inputs(self) -> int | None:
        """The number of inputs, if it is known before they are read."""
        return len(self.inputs) if isinstance(self.inputs, Sized) else None

    @property
    def n_tasks(self) -> int | None:
        """The number of inputs that this run does, if it is known before they are read."""
        n, shard = self.n_inputs, self.shard
        return n if n is None or shard is None else len(range(shard.number - 1, n, shard.of))

    def id_of(self, index: int) -> str | None:
        """The user's own name for an input, if there is one."""
        if isinstance(self.ids, Mapping):
            return self.ids.get(index)
        return None if self.ids is None or index >= len(self.ids) else str(self.ids[index])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What all results of this run should warn of."""
        return tuple(self._noticed[:1])

    def notice(self, answer: Floats, again: Floats) -> None:
        """Notice a model that answers the same question differently, beyond rounding."""
        differing = self.differing(answer, again)
        if differing is None:
            return
        said = (
            f"The model answered the same question with {differing[0]:.4g} and then with "
            f"{differing[1]:.4g}: it is random or drifts, and the scores with it."
        )
        self.add_warning(said)

    def add_warning(self, said: str) -> None:
        """Note what all results should warn of; the first is logged."""
        if not self._noticed:
            logger.warning("%s", said)
        self._noticed.append(said)

    def differing(self, answer: Floats, again: Floats) -> tuple[float, float] | None:
        """The two numbers in which two answers to one question differ most; ``None`` if only by rounding."""
        dtype = str(self.model.dtype).removeprefix("torch.")
        tolerance = TOLERANCE_IN_HALF_PRECISION if dtype in HALF_PRECISION else TOLERANCE
        if dtype in HALF_PRECISION and isinstance(self.model.output, LogLikelihoods):
            tolerance = max(tolerance, EPSILONS_OF_LOG_LIKELIHOODS * HALF_PRECISION[dtype])
        if answer.shape == again.shape and np.allclose(answer, again, rtol=tolerance, atol=tolerance):
            return None
        if answer.shape != again.shape:
            return float(answer.flat[0]), float(again.flat[0])
        place = int(np.abs(answer - again).argmax())
        return float(answer.flat[place]), float(again.flat[place])

    def repeat_at_end(self, work: Work) -> None:
        """Ask a question again when the run ends."""
        self._to_repeat.append(work)

    def repeat(self) -> None:
        """Ask what was to be asked again at the end."""
        works = list(self._to_repeat)
        self._to_repeat.clear()
        for _ in replace(self, progress=False).carry_out(works, len(works)):
            pass  # the algorithms notice what differs

    def prepare(self, raw: Any, features: Any = None) -> Input:
        """The input cut into features.

        One that is prepared already is taken as it is. An exception stands for an input that could not be
        read, and is raised.
        """
        if isinstance(raw, Input):
            return raw
        if isinstance(raw, Exception):
            raise raw
        try:
            return self.model.prepare(raw, features)
        except PertinentError:
            raise
        except Exception as error:
            raise InputError(f"The input cannot be read: {type(error).__name__}: {error}") from error

    def carry_out(self, works: Iterable[Work | JobResult], total: int | None = None) -> Iterator[JobResult]:
        """Run the algorithms in one engine; yield each when it ends, whatever it ended with.

        What could not even be prepared is given as `JobResult` with its error, and passed on.
        """
        with progress_callback(self.progress, self.title) as callback:
            listen = self.on_partial
            publish = None if listen is None else lambda published: listen(published.finding)
            engine = self.engine or Engine(self.model, batch_size=self.batch_size, on_partial=publish)
            engine.progress = callback
            yield from engine.run(map(self.job, works), total)

    def job(self, work: Work | JobResult) -> Job | JobResult:
        """The job of an engine that does the work, or `JobResult` with the error if it cannot be begun."""
        if isinstance(work, JobResult):
            return work
        try:
            removal = work.removal or removals.make(self.model.default_removal(work.input))
            removal = removal.bind(self.model)
            removal.check(work.input)
            algorithm = work.algorithm(work.input, removal)
        except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
            return JobResult(work.key, None, error)
        return Job(work.key, work.input, removal, algorithm, work.seed)


def wrapped(model: Any, cluster: Cluster | None) -> Model:
    """Anything that `wrap` accepts as a model; on a cluster also a name, by which the workers load it."""
    return NamedModel(model) if isinstance(model, str) and cluster is not None else wrap(model)


def raise_first(failures: Sequence[Failure], done: str, finished: Sequence[Any] = ()) -> NoReturn:
    """Raise an error because nothing could be `done`: the only error, or the first with the number of inputs.

    The error has the `failures`, and what was `finished` nevertheless.
    """
    if not failures:
        raise InputError("There are no inputs to explain.")
    first = failures[0]
    n_inputs = len({failure.index for failure in failures})
    if n_inputs == 1 and first.error is not None:
        raise first.error
    kind = type(first.error) if isinstance(first.error, PertinentError) else InputError
    error = kind(f"None of the {n_inputs} inputs could be {done}; the first: {first}")
    error.failures, error.finished = tuple(failures), finished
    raise error
