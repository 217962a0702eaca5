"""What the engine needs to know of a model."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from pertinent.engine.asks import Slopes
from pertinent.errors import ModelError
from pertinent.inputs.base import Input
from pertinent.inputs.table import Background
from pertinent.removal.base import Removal, Rows
from pertinent.types import Array, Floats, Ints, Masks

Output = Literal["probability", "logit"]


@dataclass(frozen=True)
class Answer:
    """A batch on its way: `outputs()` waits for it; `seconds()` is the time the device took.

    `is_there()` says whether there is nothing left to wait for.
    """

    outputs: Callable[[], Any]
    seconds: Callable[[], float]
    is_there: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Slope:
    """Rows of a question for gradients, and the input and removal that it is about."""

    given: Input
    removal: Removal
    ask: Slopes
    rows: Ints
    seed: int


class Model(ABC):
    """A classifier seen through its batches.

    Attributes
    ----------
    classes
        A name for each class; empty until the first answer where nobody knows better.
    output
        Whether the model answers with probabilities or logits.
    unit
        What a batch's cost is counted in.
    first_batch, largest_batch
        The cost that the search for a good batch size starts with, and where it ends.
    start
        What starting a batch amounts to, in `unit`.
    mixing
        The share that rows of several costs are dearer in one batch, padding aside.
    in_flight
        Batches that may wait on the device while the next is being prepared.
    ready
        Questions of this cost are collected before another input is started.
    """

    classes: tuple[str, ...] = ()
    background: Background | None = None
    output: Output
    unit: ClassVar[str] = "rows"
    first_batch: int = 64
    largest_batch: int = 4096
    start: int = 64
    mixing: float = 0.0
    in_flight: int = 1
    ready: int = 1024

    @abstractmethod
    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Cut what the user gave into features."""

    @abstractmethod
    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw` if it holds several, or ``None`` if it is one."""

    @abstractmethod
    def default_removal(self, given: Input) -> str:
        """The removal used when none is named."""

    def cost(self, removal: Removal, given: Input, masks: Masks) -> Ints:
        """The cost of each mask, in `unit`."""
        del given
        return np.full(len(masks), removal.draws)

    @abstractmethod
    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Start the evaluation of a batch."""

    def slope_cost(self, given: Input) -> int:
        """The cost of one gradient, in `unit`."""
        del given
        return 1

    def submit_slopes(self, slopes: Sequence[Slope]) -> Answer:
        """Start the evaluation of a batch of gradients.

        Its `outputs` are the model's own (rows, classes), and the slopes of the target's
        log-probability (rows, most features).
        """
        del slopes
        raise ModelError(
            "This method needs gradients, which only transformers and torch modules have; "
            "choose one that asks for values, such as kernel-shap or parallel-local-search."
        )

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an error means that the batch was too large."""
        return isinstance(error, MemoryError)

    def checked(self, outputs: Array, n: int) -> Floats:
        """The model's answer as (rows, classes) float64, or an error that says what is wrong."""
        outputs = np.asarray(outputs)
        if outputs.dtype.kind not in "biuf":
            raise ModelError(f"The model must answer with numbers, but got dtype {outputs.dtype}.")
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim != 2 or len(outputs) != n:
            raise ModelError(
                f"The model must answer {n} inputs with {n} rows of class scores, "
                f"but the answer has shape {outputs.shape}."
            )
        outputs = outputs.astype(np.float64)
        if outputs.shape[1] == 1:
            other = 1.0 - outputs if self.output == "probability" else np.zeros_like(outputs)
            outputs = np.concatenate([other, outputs], axis=1)
        if not self.classes:
            self.classes = tuple(f"class {i}" for i in range(outputs.shape[1]))
        if len(self.classes) != outputs.shape[1]:
            raise ModelError(
                f"The model has {len(self.classes)} classes, but answered with {outputs.shape[1]} columns."
            )
        return outputs


def immediately(evaluate: Callable[[], Array]) -> Answer:
    """Evaluate now, and time it."""
    start = time.perf_counter()
    outputs = evaluate()
    seconds = time.perf_counter() - start
    return Answer(lambda: outputs, lambda: seconds)


def unusable(outputs: Floats, output: Output) -> dict[int, str]:
    """The rows that cannot be used, each with the reason."""
    reasons: dict[int, str] = {}
    for row in np.flatnonzero(~np.isfinite(outputs).all(axis=1)):
        reasons[int(row)] = "the model answered with NaN or infinity"
    if output == "probability":
        with np.errstate(invalid="ignore"):
            inside = ((outputs > -1e-6) & (outputs < 1 + 1e-6)).all(axis=1)
            bad = ~(inside & (np.abs(outputs.sum(axis=1) - 1) < 1e-3))
        for row in np.flatnonzero(bad):
            reasons.setdefault(
                int(row),
                f"the model answered {np.round(outputs[row], 3).tolist()}, which are not probabilities; "
                "if it answers with logits, wrap it with output='logit'",
            )
    return reasons


def softmax(logits: Floats) -> Floats:
    """Probabilities of logits, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def convert(outputs: Floats, have: Output, want: Output) -> Floats:
    """Outputs of one kind as the other; the logits of probabilities are their logarithms."""
    if have == want:
        return outputs
    if want == "probability":
        return softmax(outputs)
    return np.asarray(np.log(np.clip(outputs, 1e-12, None)))
