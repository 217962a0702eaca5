"""The one runner behind all verbs: prepares inputs, runs algorithms on them, records what fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm
from pertinent.engine.engine import Engine
from pertinent.engine.job import Done, Job
from pertinent.engine.progress import Callback, progress_callback
from pertinent.errors import InputError, PertinentError
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.removal.base import Removal, removals
from pertinent.results.failures import Failure

logger = logging.getLogger(__name__)

SAME = 0.002
SAME_IN_HALF_PRECISION = 0.02
"""Answers that differ by less are the same: they depend a little on the rest of the batch."""


@dataclass(frozen=True)
class Task:
    """One algorithm to run on one input.

    `raw` is what the user gave, an input that was prepared before, or the error for which there is
    none. `removal` is by default what suits the input; `algorithm` is told both.
    """

    key: Any
    raw: Any
    algorithm: Callable[[Input, Removal], Algorithm]
    features: Any = None
    removal: Removal | None = None
    seed: int = 0


@dataclass(frozen=True)
class Runner:
    """A model and how to run it; `what` stands at the progress bar."""

    model: Model
    what: str
    batch_size: int | None = None
    progress: Callback | bool | None = None
    _noticed: list[str] = field(default_factory=list)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What all results of this run should warn of."""
        return tuple(self._noticed[:1])

    def notice(self, answer: Floats, again: Floats) -> None:
        """Notice a model that answers the same question differently, beyond rounding."""
        half = str(self.model.dtype).removeprefix("torch.") in ("float16", "bfloat16")
        tolerance = SAME_IN_HALF_PRECISION if half else SAME
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

    def run(self, tasks: Iterable[Task], total: int | None = None) -> Iterator[Done]:
        """Run the tasks in one engine; yield each as it ends, whatever it ended with."""
        with progress_callback(self.progress, self.what) as callback:
            engine = Engine(self.model, batch_size=self.batch_size, progress=callback)
            yield from engine.run(self._jobs(tasks), total)

    def _jobs(self, tasks: Iterable[Task]) -> Iterator[Job | Done]:
        for task in tasks:
            try:
                input = self.prepare(task.raw, task.features)
                if isinstance(input, Exception):
                    raise input  # noqa: TRY301  recorded like any other
                removal = task.removal or removals.make(self.model.default_removal(input))
                removal = removal.bind(self.model)
                removal.check(input)
                algorithm = task.algorithm(input, removal)
            except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
                yield Done(task.key, None, error)
            else:
                yield Job(task.key, input, removal, algorithm, task.seed)

    def prepare(self, raw: Any, features: Any) -> Input | Exception:
        """The input cut into features, or the error for which it cannot be."""
        if isinstance(raw, Input | Exception):
            return raw
        try:
            return self.model.prepare(raw, features)
        except PertinentError as error:
            return error
        except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
            unreadable = InputError(f"The input cannot be read: {type(error).__name__}: {error}")
            unreadable.__cause__ = error
            return unreadable


def raise_first(failures: Sequence[Failure], done: str) -> NoReturn:
    """Everything failed: raise the only error, or the first with the number of all."""
    first = failures[0]
    n_inputs = len({failure.index for failure in failures})
    if n_inputs == 1 and first.error is not None:
        raise first.error
    kind = type(first.error) if isinstance(first.error, PertinentError) else InputError
    raise kind(f"None of the {n_inputs} inputs could be {done}; the first: {first}")
