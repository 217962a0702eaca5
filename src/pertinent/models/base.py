"""What the engine needs to know of a model."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pertinent.asks import Part
from pertinent.digests import digest
from pertinent.errors import ModelError
from pertinent.inputs.base import Input
from pertinent.inputs.table import Background
from pertinent.outputs import Output
from pertinent.removal.base import Removal, Rows
from pertinent.types import Array, Floats, Ints, Masks


@dataclass(frozen=True)
class Answer:
    """A batch on its way: `outputs()` waits for it; `seconds()` is the time the device took.

    `done()` says whether there is nothing left to wait for.
    """

    outputs: Callable[[], Any]
    seconds: Callable[[], float]
    done: Callable[[], bool] = lambda: True


class Model(ABC):
    """Anything that answers an input with a row of numbers, seen through its batches.

    Attributes
    ----------
    classes
        A name for each column of its answers: a class, a label or a value; empty until the first
        answer where nobody knows better.
    output
        What its answers mean.
    unit
        What a batch's cost is counted in.
    first_batch, largest_batch
        The cost that the search for a good batch size starts with, and where it ends.
    launch_overhead
        What launching a batch costs, in `unit`, whatever is in it.
    mixed_length_penalty
        The share by which rows of several lengths are slower in one batch, padding aside.
    in_flight
        Batches that may wait on the device while the next is being prepared.
    """

    classes: tuple[str, ...] = ()
    background: Background | None = None
    output: Output
    unit: ClassVar[str] = "rows"
    first_batch: int = 64
    largest_batch: int = 4096
    launch_overhead: int = 64
    mixed_length_penalty: float = 0.0
    in_flight: int = 1

    @abstractmethod
    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Cut what the user gave into features."""

    @abstractmethod
    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw` if it holds several, or ``None`` if it is one."""

    @abstractmethod
    def default_removal(self, input: Input) -> str:
        """The removal used when none is named."""

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of all that decides its answers, as far as it can be seen from outside."""
        background = None if self.background is None else self.background.fingerprint
        return digest(self.identity(), background)

    def identity(self) -> object:
        """What decides its answers and how they are read: weights, code, settings."""
        return type(self).__qualname__, self.output.to_dict()

    def cost(self, removal: Removal, input: Input, masks: Masks) -> Ints:
        """The cost of each mask, in `unit`."""
        del input
        return np.full(len(masks), removal.draws)

    @abstractmethod
    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Start the evaluation of a batch."""

    def gradient_cost(self, input: Input) -> int:
        """The cost of one gradient, in `unit`."""
        del input
        return 1

    def submit_mask_gradients(self, parts: Sequence[Part]) -> Answer:
        """Start a batch of gradients along masks.

        Its `outputs` are the model's own (rows, columns), and the gradients of the target's
        log-probability or value (rows, most features).
        """
        raise _without_gradients(parts)

    def submit_path_gradients(self, parts: Sequence[Part]) -> Answer:
        """Start a batch of gradients at points between a baseline and the input; likewise."""
        raise _without_gradients(parts)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an error means that the batch was too large."""
        return isinstance(error, MemoryError)

    def checked(self, outputs: Array, n: int) -> Floats:
        """The model's answer as (rows, columns) float64, or an error that says what is wrong."""
        outputs = np.asarray(outputs)
        if outputs.dtype.kind not in "biuf":
            raise ModelError(f"The model must answer with numbers, but got dtype {outputs.dtype}.")
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim != 2 or len(outputs) != n:
            raise ModelError(
                f"The model must answer {n} inputs with {n} rows of numbers, "
                f"but the answer has shape {outputs.shape}."
            )
        outputs = self.output.widen(outputs.astype(np.float64))
        if not self.classes and len(self.output.unusable(outputs)) < n:
            self.classes = self.output.default_names(outputs.shape[1])
        if self.classes and len(self.classes) != outputs.shape[1]:
            names = {"class": "classes", "label": "labels", "value": "values"}[self.output.kind]
            raise ModelError(
                f"The model has {len(self.classes)} {names}, but answered with {outputs.shape[1]} columns."
            )
        return outputs


def immediately(evaluate: Callable[[], Array]) -> Answer:
    """Evaluate now, and time it."""
    start = time.perf_counter()
    outputs = evaluate()
    seconds = time.perf_counter() - start
    return Answer(lambda: outputs, lambda: seconds)


def _without_gradients(parts: Sequence[Part]) -> ModelError:
    del parts
    return ModelError(
        "This method needs gradients, which only transformers and torch modules have; "
        "choose one that asks for values, such as kernel-shap or parallel-local-search."
    )
