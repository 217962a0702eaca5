"""Tests whether a model accepts a bias on its attention scores in place of an attention mask."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.models.torch import devices
from pertinent.models.torch.compaction import TOLERANCE
from pertinent.models.torch.evaluating import evaluating
from pertinent.models.torch.weighted_attention import attention_bias, hiding_bias, in_use

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


@dataclass
class BiasTrial:
    """Runs the test for each length and remembers the result.

    A bias would override a local-attention window, which shows only on texts longer than the window.
    """

    model: TransformerModel
    _found: dict[tuple[int, bool], bool] = field(default_factory=dict, init=False)

    def holds(self, length: int, *, weighted: bool) -> bool:
        """Whether a bias acts like a mask at this length, with weighted attention or the model's own."""
        rounded = min(max(16, 1 << (length - 1).bit_length()), self.model.max_length)
        if (rounded, weighted) not in self._found:
            self._found[rounded, weighted] = self._try(rounded, weighted)
        return self._found[rounded, weighted]

    def _try(self, length: int, weighted: bool) -> bool:
        model, batch = self.model, self.model.whole_text(length)
        attend = np.ones_like(batch.ids)
        attend[0, 2:-1:2] = 0
        mask = devices.send(attend, model.device)
        bias = attention_bias(mask, None, torch.float32) if weighted else hiding_bias(mask, torch.float32)
        try:
            with evaluating(model.model):
                masked = model.head.answer_of(model.exactly(batch, attention_mask=mask))
                with in_use(model.model) if weighted else nullcontext():
                    biased = model.head.answer_of(model.exactly(batch, attention_mask=bias))
        except Exception as error:  # whatever the error, this architecture needs a mask
            if model.is_out_of_memory(error):
                raise
            return False
        return torch.allclose(masked, biased, atol=TOLERANCE)
