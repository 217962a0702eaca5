"""The front door: every verb builds a run of a model over inputs, and runs algorithms in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm
from pertinent.engine.engine import Engine
from pertinent.engine.job import Done, Job, Published
from pertinent.engine.progress import Callback, progress_callback
from pertinent.errors import InputError, PertinentError, require
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.removal.base import Removal, removals
from pertinent.results.failures import Failure

logger = logging.getLogger(__name__)

TOLERANCE = 0.002
TOLERANCE_IN_HALF_PRECISION = 0.02
"""Answers that differ by less count as equal: they depend a little on the rest of the batch."""


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
class Run:
    """A model, the inputs it is asked about, and how the work is done and shown.

    Attributes
    ----------
    one
        Whether the user gave a single input, not a collection.
    ids
        The user's own name for each input.
    title
        What the progress bar says.
    batch_size, progress
        As in `explain`.
    on_partial
        Called with each finding that an algorithm publishes while it goes on.
    """

    model: Model
    inputs: Iterable[Any] = ()
    one: bool = False
    ids: Sequence[Any] | None = None
    title: str = "explain"
    batch_size: int | None = None
    progress: Callback | bool | None = None
    on_partial: Callable[[Published], None] | None = None
    _noticed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, model: Any, inputs: Any, title: str, **options: Any) -> Run:
        """A run of anything that `wrap` accepts over one input or several."""
        model = wrap(model)
        many = model.split(inputs)
        return cls(model, [inputs] if many is None else many, many is None, title=title, **options)

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

    def id_of(self, index: int) -> str | None:
        """The user's own name for an input, if there is one."""
        return None if self.ids is None or index >= len(self.ids) else str(self.ids[index])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What all results of this run should warn of."""
        return tuple(self._noticed[:1])

    def notice(self, answer: Floats, again: Floats) -> None:
        """Notice a model that answers the same question differently, beyond rounding."""
        half = str(self.model.dtype).removeprefix("torch.") in ("float16", "bfloat16")
        tolerance = TOLERANCE_IN_HALF_PRECISION if half else TOLERANCE
        if np.allclose(answer, again, rtol=tolerance, atol=tolerance):
            return
        column = int(np.abs(answer - again).argmax())
        said = (
            f"The model answered the same question with {answer[column]:.4g} and then with "
            f"{again[column]:.4g}: it is random, and so are the scores."
        )
        if not self._noticed:
            logger.warning("%s", said)
        self._noticed.append(said)

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

    def carry_out(self, works: Iterable[Work | Done], total: int | None = None) -> Iterator[Done]:
        """Run the algorithms in one engine; yield each when it ends, whatever it ended with.

        What could not even be prepared is given as `Done` with its error, and passed on.
        """
        with progress_callback(self.progress, self.title) as callback:
            engine = Engine(
                self.model, batch_size=self.batch_size, progress=callback, on_partial=self.on_partial
            )
            yield from engine.run(map(self.job, works), total)

    def job(self, work: Work | Done) -> Job | Done:
        """The job of an engine that does the work, or `Done` with the error if it cannot be begun."""
        if isinstance(work, Done):
            return work
        try:
            removal = work.removal or removals.make(self.model.default_removal(work.input))
            removal = removal.bind(self.model)
            removal.check(work.input)
            algorithm = work.algorithm(work.input, removal)
        except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
            return Done(work.key, None, error)
        return Job(work.key, work.input, removal, algorithm, work.seed)


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
