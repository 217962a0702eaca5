"""Asking the model while an explainer is trained, through the engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, Values
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.inputs.base import Input
from pertinent.learned.networks.fitted_network import device_of
from pertinent.models.base import Model
from pertinent.removal.base import Removal


class Asker:
    """Asks a model about inputs of which some features are kept; it learns batch sizes once for all steps."""

    def __init__(self, model: Model, removal: Removal, seed: int) -> None:
        self._engine = Engine(model)
        self._removal, self._seed = removal.bind(model), seed
        self._device = device_of(model).type

    def ask(self, inputs: Sequence[Input], masks: Sequence[Masks]) -> list[Floats]:
        """The answers (n, columns) to the masks (n, features) of each input; the first error is raised."""
        jobs = (
            Job(i, input, self._removal, _asking(own), self._seed)
            for i, (input, own) in enumerate(zip(inputs, masks, strict=True))
        )
        found: dict[int, Floats] = {}
        with torch.autocast(self._device, enabled=False):
            for done in self._engine.run(jobs):
                if done.error is not None:
                    raise done.error
                found[done.key] = done.result
        return [found[i] for i in range(len(inputs))]

    def ask_tensor(self, inputs: Sequence[Input], kept: torch.Tensor) -> torch.Tensor:
        """The same for a tensor (rows, width) or (rows, samples, width), as a tensor of answers."""
        masks = kept.detach().bool().cpu().numpy()
        several = masks if masks.ndim == 3 else masks[:, None]
        own = [each[:, : input.n_features] for each, input in zip(several, inputs, strict=True)]
        answers = torch.from_numpy(np.stack(self.ask(inputs, own))).float().to(kept.device)
        return answers if masks.ndim == 3 else answers[:, 0]


def _asking(masks: Masks) -> Algorithm:
    return (yield Values(masks))
