"""Any `torch.nn.Module` over images or table rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pertinent.asks import Part
from pertinent.errors import ModelError
from pertinent.models.base import Answer
from pertinent.models.function import FunctionModel
from pertinent.models.torch import devices
from pertinent.models.torch.array_gradients import array_mask_gradients, array_path_gradients
from pertinent.outputs import Classes
from pertinent.removal.base import Rows
from pertinent.types import Array, Floats

logger = logging.getLogger(__name__)


class ModuleModel(FunctionModel):
    """A module whose forward takes a batch of arrays and returns (rows, columns) scores.

    If `output` is not given, the first answer decides whether the scores of several classes are
    logits or probabilities: rows of non-negative numbers that sum to one are probabilities. With a
    single column, `output` is required.
    """

    def __init__(self, module: torch.nn.Module, *, output: str | None = None, **options: Any) -> None:
        self.module = module.eval()
        self.device, self.dtype = devices.placed(module)
        super().__init__(module, output=output or "logit", **options)
        self._output_given = output
        self._settled = output is not None
        if self.device.type == "cuda":
            self.first_batch, self.largest_batch, self.in_flight = 512, 65536, 2

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Run the module on the whole batch."""
        batch = np.asarray(self._batch(rows), dtype=np.float32)
        return devices.run(self.device, lambda: self.scores(devices.send(batch, self.device)))

    def identity(self) -> object:
        """The module's code and weights."""
        return self.module, self._output_given, self.kind, self.columns

    def submit_mask_gradients(self, parts: Sequence[Part]) -> Answer:
        """Gradients of many inputs of the same shape at once."""
        return array_mask_gradients(self, parts)

    def submit_path_gradients(self, parts: Sequence[Part]) -> Answer:
        """Gradients of many inputs of the same shape at once."""
        return array_path_gradients(self, parts)

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        """The module's output for a batch."""
        answer = self.module(batch.to(self.dtype) if self.dtype.is_floating_point else batch)
        scores = answer.logits if hasattr(answer, "logits") else answer
        assert isinstance(scores, torch.Tensor)
        return scores[:, None] if scores.ndim == 1 else scores

    def checked(self, outputs: Array, n: int) -> Floats:
        """Decide on the first answer what the outputs are."""
        if not self._settled and np.isfinite(outputs).all() and outputs.ndim == 2:
            if outputs.shape[1] == 1:
                raise ModelError(
                    "The module answers with one number, which may mean anything: wrap it with "
                    "output='value' (a regressor), 'logit' or 'probability' (of the second of two classes)."
                )
            if not Classes().unusable(outputs.astype(np.float64)):
                self.output = Classes()
            logger.info("The module's outputs look like %ss; if they are not, set output=.", self.output.name)
            self._settled = True
        return super().checked(outputs, n)
