"""Head whose logits are those of classes or labels, or the values of a regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch

from pertinent.config.settings import checked
from pertinent.errors import ModelError
from pertinent.models.function import column_names
from pertinent.models.heads.base import FollowedScores, Head, HeadBatch, heads
from pertinent.models.heads.windows import WindowBatch, mean_of_windows, window_rows
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.models.unsupported import check_supported
from pertinent.outputs import Output, output_named
from pertinent.removals.base import TokenRows


@heads.register("text-classification")
class ClassificationHead(Head):
    """The head of ``AutoModelForSequenceClassification``; `config` is the network's configuration.

    The answer to a text read in windows is the mean of the windows' probabilities or values.
    """

    summary = "class probabilities, label probabilities or values of a text"
    tasks = ("text-classification", "sentiment-analysis")
    auto_class = "AutoModelForSequenceClassification"
    reads_windows = True

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
        self.output = output_named(output or infer_output(config), unit)
        self.classes = column_names(classes, names, self.output) or config_names(config, self.output)

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Raise a `ModelError` for a model with a different head or none."""
        check_supported(model)
        if getattr(model, "base_model", None) is model:
            raise ModelError(
                f"{type(model).__name__} has no head and returns no answer: load the model with "
                "AutoModelForSequenceClassification, AutoModelForQuestionAnswering, AutoModelForCausalLM or "
                "AutoModelForSeq2SeqLM."
            )
        return True

    @classmethod
    def from_model(cls, model: Any, **settings: Any) -> Self:
        """Return the head described by the model's configuration."""
        return cls(model.config, **settings)

    def answer_of(self, network_output: Any) -> torch.Tensor:
        """Return the logits (rows, columns)."""
        return network_output.logits  # type: ignore[no-any-return]

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """Return a batch whose texts may be read in windows."""
        return WindowBatch(parts, self.output) if _has_windows(parts) else super().batch(parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes the mean over each row's windows."""
        rows = seen()
        if not _has_windows(rows):
            return super().followed_scores(seen, encoder)
        windows = devices.send(window_rows(rows), encoder.device)
        return lambda answer, _: mean_of_windows(self.output, answer, windows)


def _has_windows(parts: Sequence[TokenRows]) -> bool:
    return any(part.tokens.lengths for part in parts)


def infer_output(config: Any) -> str:
    """Return what a classifier's logits mean, following transformers' rules for its configuration."""
    if config.problem_type == "multi_label_classification":
        return "label-logit"
    return "value" if config.num_labels == 1 or config.problem_type == "regression" else "logit"


def config_names(config: Any, output: Output) -> tuple[str, ...]:
    """Return the column names in the configuration, except for a regressor's placeholder (LABEL_0)."""
    labels = config.id2label
    names = tuple(str(labels[i]) for i in range(len(labels)))
    if output.kind == "value" and all(name.startswith("LABEL_") for name in names):
        return output.default_names(len(names))
    return names
