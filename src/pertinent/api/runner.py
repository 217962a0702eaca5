"""The one runner behind all verbs: prepares inputs, runs algorithms on them, records what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pertinent.asks import Algorithm
from pertinent.engine.engine import Engine
from pertinent.engine.job import Done, Job
from pertinent.engine.progress import Callback, progress_callback
from pertinent.errors import InputError, PertinentError
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.removal.base import Removal, removals
from pertinent.results.explanation import Failure


@dataclass(frozen=True)
class Task:
    """One algorithm to run on one input.

    `raw` is what the user gave, an input that was prepared before, or the error for which there is
    none. `removal` is by default what suits the input; `algorithm` is told both.
    """

    key: Any
    raw: Any
    algorithm: Callable[[Input, Removal], Algorithm]
    features: str | None = None
    removal: Removal | None = None
    seed: int = 0


@dataclass(frozen=True)
class Runner:
    """A model and how to run it; `what` stands at the progress bar."""

    model: Model
    what: str
    batch_size: int | None = None
    progress: Callback | bool | None = None

    def run(self, tasks: Iterable[Task], total: int | None = None) -> Iterator[Done]:
        """Run the tasks in one engine; yield each as it ends, whatever it ended with."""
        with progress_callback(self.progress, self.what) as callback:
            engine = Engine(self.model, batch_size=self.batch_size, progress=callback)
            yield from engine.run(self._jobs(tasks), total)

    def _jobs(self, tasks: Iterable[Task]) -> Iterator[Job | Done]:
        last: tuple[Any, str | None, Input] | None = None
        for task in tasks:
            try:
                if last is not None and last[0] is task.raw and last[1] == task.features:
                    input = last[2]
                else:
                    input = self.prepare(task)
                    last = task.raw, task.features, input
                removal = task.removal or removals.make(self.model.default_removal(input))
                removal = removal.bind(self.model)
                removal.check(input)
                algorithm = task.algorithm(input, removal)
            except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
                yield Done(task.key, None, error)
            else:
                yield Job(task.key, input, removal, algorithm, task.seed)

    def prepare(self, task: Task) -> Input:
        """The task's input, cut into features."""
        if isinstance(task.raw, PertinentError):
            raise task.raw
        return task.raw if isinstance(task.raw, Input) else self.model.prepare(task.raw, task.features)


def raise_first(failures: Sequence[Failure], done: str) -> NoReturn:
    """Everything failed: raise the only error, or the first with the number of all."""
    first = failures[0]
    n_inputs = len({failure.index for failure in failures})
    if n_inputs == 1 and first.error is not None:
        raise first.error
    kind = type(first.error) if isinstance(first.error, PertinentError) else InputError
    raise kind(f"None of the {n_inputs} inputs could be {done}; the first: {first.reason}")
