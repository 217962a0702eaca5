"""What the configuration and the class of a transformers model say about its answers."""

from __future__ import annotations

from typing import Any

from pertinent.outputs import Output


def natural_output(config: Any) -> str:
    """What a classifier's logits mean, by the rules that transformers applies to its configuration."""
    if config.problem_type == "multi_label_classification":
        return "label-logit"
    return "value" if config.num_labels == 1 or config.problem_type == "regression" else "logit"


def answers_questions(model: Any) -> bool:
    """Whether a model answers with a span of its input, by the name of its class or of one it inherits."""
    return any("ForQuestionAnswering" in own.__name__ for own in type(model).__mro__)


def own_names(config: Any, output: Output) -> tuple[str, ...]:
    """The model's own names for its columns; a regressor's placeholders (LABEL_0) are ignored."""
    labels = config.id2label
    names = tuple(str(labels[i]) for i in range(len(labels)))
    if output.kind == "value" and all(name.startswith("LABEL_") for name in names):
        return output.default_names(len(names))
    return names
