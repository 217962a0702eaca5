"""The model shared by the jobs of a run in one process, and a check that its answers are repeatable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm
from pertinent.engine.job import Job
from pertinent.errors import InputError, PertinentError
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.outputs import LogLikelihoods
from pertinent.removals.base import Removal, removals

if TYPE_CHECKING:
    from pertinent.runs.executor import Item

logger = logging.getLogger(__name__)

TOLERANCE = 0.002
TOLERANCE_IN_HALF_PRECISION = 0.02
"""Largest difference between equal answers, since they depend slightly on the rest of the batch."""
HALF_PRECISION = {"float16": 2**-10, "bfloat16": 2**-7}
"""Distance from 1 to the next larger number of each half-precision dtype."""
EPSILONS_OF_LOG_LIKELIHOODS = 20
"""Tolerance for log-likelihoods in half precision. In bfloat16, SmolLM2's vary by 0.12 with the batch."""


class Session:
    """The model shared by the jobs of a run in one process.

    Parameters
    ----------
    model
        The model.
    warnings
        List that receives a warning if the model turns out to be random; by default a new list.
    has_listener
        Whether partial explanations are published.

    Attributes
    ----------
    repeats
        Jobs that repeat questions at the end of the run.
    """

    def __init__(
        self, model: Model, warnings: list[str] | None = None, *, has_listener: bool = False
    ) -> None:
        self.model = model
        self.warnings = [] if warnings is None else warnings
        self.has_listener = has_listener
        self.repeats: list[Job] = []
        self._prepared: tuple[Item | None, dict[Any, Input]] = None, {}

    def job(
        self,
        key: Any,
        input: Input,
        algorithm: Callable[[Input, Removal], Algorithm],
        removal: Removal | None = None,
        seed: int = 0,
    ) -> Job:
        """Return a job; `algorithm` gets the input and its removal, which by default suits the model."""
        bound = self.model.bind_removal(removal or removals.make(self.model.default_removal(input)))
        bound.check(input)
        return Job(key, input, bound, algorithm(input, bound), seed)

    def prepare(self, item: Item, features: Any) -> Input:
        """Return an input divided into features, prepared once for consecutive jobs on the same item."""
        if self._prepared[0] is not item:
            self._prepared = item, {}
        key = id(features) if isinstance(features, np.ndarray) else repr(features)
        prepared = self._prepared[1]
        if key not in prepared:
            prepared[key] = prepare_input(self.model, item.raw, features)
        return prepared[key]

    def compare(self, answer: Floats, repeated: Floats) -> None:
        """Add a warning if two answers to the same question differ by more than rounding."""
        if self.model.is_random:
            return
        different = self.difference(answer, repeated)
        if different is not None:
            add_warning(
                self.warnings,
                f"The model answered the same question with {different[0]:.4g} and then with "
                f"{different[1]:.4g}: it is random or drifts, and so do its scores.",
            )

    def difference(self, answer: Floats, repeated: Floats) -> tuple[float, float] | None:
        """Return the two numbers that differ most between two answers; None if they differ by rounding."""
        dtype = str(self.model.dtype).removeprefix("torch.")
        tolerance = TOLERANCE_IN_HALF_PRECISION if dtype in HALF_PRECISION else TOLERANCE
        if dtype in HALF_PRECISION and isinstance(self.model.output, LogLikelihoods):
            tolerance = max(tolerance, EPSILONS_OF_LOG_LIKELIHOODS * HALF_PRECISION[dtype])
        if answer.shape != repeated.shape:
            return float(answer.flat[0]), float(repeated.flat[0])
        if np.allclose(answer, repeated, rtol=tolerance, atol=tolerance):
            return None
        index = int(np.abs(answer - repeated).argmax())
        return float(answer.flat[index]), float(repeated.flat[index])


def add_warning(warnings: list[str], message: str) -> None:
    """Log a warning and add it to the list, unless it is already there."""
    if not warnings:
        logger.warning("%s", message)
        warnings.append(message)


def prepare_input(model: Model, raw: Any, features: Any = None) -> Input:
    """Return an input divided into features; a prepared input is returned unchanged.

    An exception represents an input that could not be read, and is raised.
    """
    if isinstance(raw, Input):
        return raw
    if isinstance(raw, Exception):
        raise raw
    try:
        return model.prepare(raw, features)
    except PertinentError:
        raise
    except Exception as error:
        raise InputError(f"The input cannot be read: {type(error).__name__}: {error}") from error
