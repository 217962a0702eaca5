"""Model of a `torch.nn.Module` over images or table rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from pertinent.array_types import Array, Floats
from pertinent.asks import ActivationMaps, AttackRadii, MaskGradients, PathGradients, Question
from pertinent.errors import ModelError
from pertinent.inputs.base import Features, Input
from pertinent.inputs.modality import Modality
from pertinent.models.attacks.torch_attacks import array_attacks
from pertinent.models.base import Answer, Handlers
from pertinent.models.function import FunctionModel
from pertinent.models.gradients.activation_maps import NO_IMAGE, array_activation_maps
from pertinent.models.gradients.array_gradients import array_mask_gradients, array_path_gradients
from pertinent.models.torch import devices
from pertinent.models.torch.inference import evaluating, n_weights
from pertinent.models.unsupported import BOX_SNIPPET, PIXEL_SNIPPET, unsupported_output
from pertinent.outputs import Classes
from pertinent.removals.base import Rows

logger = logging.getLogger(__name__)

CPU_BATCH = 16
"""First batch size on a CPU; it grows while that pays. Large batches of images do not fit into the cache."""


class ModuleModel(FunctionModel):
    """A module whose forward takes a batch of arrays and returns scores (rows, columns).

    It is evaluated in eval mode and then restored to its previous mode.

    Without `output`, the first answer decides whether the scores of several classes are logits or
    probabilities: non-negative rows that sum to one are probabilities. With a single column, `output` is
    required.
    """

    handlers: ClassVar[Handlers] = {
        MaskGradients: array_mask_gradients,
        PathGradients: array_path_gradients,
        ActivationMaps: array_activation_maps,
        AttackRadii: array_attacks,
    }
    device: torch.device
    dtype: torch.dtype

    def __init__(self, module: torch.nn.Module, *, output: str | None = None, **options: Any) -> None:
        self.module = module
        self.device, self.dtype = devices.device_and_dtype(module)
        self._n_weights = n_weights(module)
        n_channels = (part.in_channels for part in module.modules() if isinstance(part, torch.nn.Conv2d))
        self._n_channels = next(n_channels, None)
        super().__init__(module, output=output or "logit", **options)
        self._output_option = output
        self._is_output_known = output is not None
        if self.device.type == "cpu":
            self.first_batch = CPU_BATCH
        elif self.device.type == "cuda":
            self.first_batch, self.largest_batch, self.in_flight = 512, 65536, 2

    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide an image into patches, or a row into columns; a string is the path of an image."""
        return super().prepare(Path(raw) if isinstance(raw, str) else raw, features)

    def cut(self, modality: Modality, raw: Any, features: Features | None) -> Input:
        """Divide an input into features; an image must have the number of channels that the module reads."""
        return modality.prepare_for_module(raw, features, self._n_channels)

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Run the module on the whole batch."""
        batch = np.asarray(self._batch(rows), dtype=np.float32)
        with self.evaluating(batch.shape):
            return devices.run(self.device, lambda: self.scores(devices.send(batch, self.device)))

    def refusal(self, kind: type[Question]) -> str:
        """Return why the module cannot answer; activation maps need images and convolutions."""
        if kind is ActivationMaps and self.modality is not None and not self.modality.input_type.is_picture:
            return NO_IMAGE.format(self.kind)
        if kind is ActivationMaps and self._n_channels is None:
            return ActivationMaps.refusal
        return super().refusal(kind)

    def evaluating(self, shape: Sequence[int]) -> AbstractContextManager[None]:
        """Return the context for evaluating a batch of this shape; each pixel of an image counts as a row."""
        return evaluating(self.module, self._n_weights * math.prod(shape) / shape[1])

    def identity(self) -> object:
        """Return the module, whose digest includes its code and weights."""
        return self.module, self._output_option, self.kind, self.columns

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the module's output for a batch (rows, columns)."""
        scores = scores_in(self.module(batch.to(self.dtype) if self.dtype.is_floating_point else batch))
        return scores[:, None] if scores.ndim == 1 else scores

    def checked(self, outputs: Array, n: int) -> Floats:
        """Check the answer; the first one determines the output type if the user did not specify it."""
        if np.ndim(outputs) == 4:
            raise unsupported_output("The module returns a map of pixels for each class.", PIXEL_SNIPPET)
        if not self._is_output_known and np.isfinite(outputs).all() and outputs.ndim == 2:
            if outputs.shape[1] == 1:
                raise ModelError(
                    "The module returns a single number, whose meaning is ambiguous: wrap it with "
                    "output='value' (a regressor), 'logit' or 'probability' (of the second of two classes)."
                )
            if not Classes().unusable(outputs.astype(np.float64)):
                self.output = Classes()
            elif outputs.min() >= 0 and outputs.max() <= 1:
                raise ModelError(
                    f"The module returns {np.round(outputs[0], 3).tolist()}, whose meaning is ambiguous "
                    "(between 0 and 1, but not summing to one): wrap it with output='label-probability' "
                    "(independent labels), 'logit' (of classes) or 'value' (a regressor)."
                )
            logger.info("The module's outputs look like %ss; otherwise, set `output`.", self.output.name)
            self._is_output_known = True
        return super().checked(outputs, n)


def scores_in(answer: Any) -> torch.Tensor:
    """Return the scores in a module's output.

    They may be a tensor, the ``logits`` of a mapping or object, the only tensor of a mapping, or the first
    tensor of a tuple.
    """
    scores = answer
    if hasattr(answer, "logits"):
        scores = answer.logits
    elif isinstance(answer, Mapping):
        tensors = {key: value for key, value in answer.items() if isinstance(value, torch.Tensor)}
        if "logits" not in tensors and len(tensors) != 1:
            raise ModelError(
                f"The module returns a mapping with the keys {', '.join(map(str, answer))}: return only the "
                "scores, or name them 'logits'."
            )
        scores = tensors.get("logits", next(iter(tensors.values())))
    elif isinstance(answer, tuple | list):
        scores = next((value for value in answer if isinstance(value, torch.Tensor)), answer)
    if isinstance(scores, list) and scores and isinstance(scores[0], Mapping) and "boxes" in scores[0]:
        raise unsupported_output("The module detects objects: it returns boxes.", BOX_SNIPPET)
    if not isinstance(scores, torch.Tensor):
        raise ModelError(
            "The module must return a tensor of scores (rows, columns), or a mapping or tuple that contains "
            f"one, but returned {type(answer).__name__}."
        )
    return scores
