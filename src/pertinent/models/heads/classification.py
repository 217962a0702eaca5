"""A head whose logits are those of classes or labels, or the values of a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pertinent.models.function import column_names
from pertinent.models.heads.base import Head
from pertinent.outputs import Output, output_named
from pertinent.settings import checked


class ClassificationHead(Head):
    """The head of ``AutoModelForSequenceClassification``; `config` is the network's configuration."""

    @checked
    def __init__(
        self,
        config: Any,
        *,
        classes: Sequence[Any] = (),
        names: Sequence[Any] = (),
        output: str | None = None,
        unit: str | None = None,
    ) -> None:
        self.output = output_named(output or natural_output(config), unit)
        self.classes = column_names(classes, names, self.output) or own_names(config, self.output)

    def answer_of(self, network_output: Any) -> torch.Tensor:
        """The logits (rows, columns)."""
        return network_output.logits  # type: ignore[no-any-return]


def natural_output(config: Any) -> str:
    """What a classifier's logits mean, by the rules that transformers applies to its configuration."""
    if config.problem_type == "multi_label_classification":
        return "label-logit"
    return "value" if config.num_labels == 1 or config.problem_type == "regression" else "logit"


def own_names(config: Any, output: Output) -> tuple[str, ...]:
    """The model's own names for its columns; a regressor's placeholders (LABEL_0) are ignored."""
    labels = config.id2label
    names = tuple(str(labels[i]) for i in range(len(labels)))
    if output.kind == "value" and all(name.startswith("LABEL_") for name in names):
        return output.default_names(len(names))
    return names
