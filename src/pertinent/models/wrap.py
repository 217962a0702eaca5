"""`wrap` creates a `Model` from anything that can be explained."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pertinent.errors import ModelError, unknown
from pertinent.models.base import Model, constructor_options, keyword_options
from pertinent.models.chat_function import wrap_chat_function
from pertinent.models.function import FunctionModel
from pertinent.models.gguf import is_gguf, read_gguf
from pertinent.models.unsupported import check_supported, check_supported_task

if TYPE_CHECKING:
    from pertinent.models.heads.base import RegisteredHead

_ACCEPTED = (
    "a transformers text-classification, image-classification, question-answering or text-generation "
    "pipeline; a (model, tokenizer) or (model, image processor) pair; a .gguf file; a torch.nn.Module over "
    "images or table rows; a fitted scikit-learn classifier or regressor; a function from inputs to rows of "
    "numbers; or, with `value`, a function from chat messages to an answer"
)


def wrap(thing: Any, **options: Any) -> Model:
    """Wrap a model to explain it.

    Parameters
    ----------
    thing
        A transformers text-classification, image-classification, question-answering or text-generation
        pipeline; a ``(model, tokenizer)`` or ``(model, image_processor)`` pair; the path of a language model
        in a ``.gguf`` file; a ``torch.nn.Module`` over images or table rows; a fitted scikit-learn classifier
        or regressor (or one with the same interface: xgboost, lightgbm); a function from inputs to rows of
        numbers; or, with ``value``, a function from chat messages to an answer. A module stays in its current
        mode.
    **options
        ``output`` — the meaning of the numbers: ``"probability"`` or ``"logit"`` of classes,
        ``"label-probability"`` or ``"label-logit"`` of independent labels, ``"value"`` of a regressor;
        detected from the model if possible, else ``"probability"``. ``classes`` — names of classes or labels;
        ``names`` — names of a regressor's values; ``unit`` — the unit of the values.

        For functions, estimators and modules: ``kind`` — ``"text"``, ``"image"`` or ``"table"`` if it cannot
        be inferred from the input; ``background`` — table rows to fill removed columns from, or images to
        draw baselines from (also for image classifiers); ``columns`` — names of the columns; ``groups`` —
        columns that form one feature, such as one-hot columns.

        For transformers that read text: ``max_length`` — the largest number of tokens to read together;
        ``long_texts`` — how to read longer texts: ``"truncate"`` (default) or, for classifiers and
        regressors, ``"windows"``: overlapping windows whose mean is the answer; ``"windows:64"`` overlap by
        64 tokens instead of a quarter; ``compaction`` — ``False`` to always compute removed tokens.

        For models that answer a question with a span of a context: ``fix_question`` — ``False`` to also
        explain words of the question; ``max_answer_length`` — the largest number of tokens in an answer, 30
        by default; ``no_answer`` — ``True`` if the model may return no answer.

        For generative language models: ``max_new_tokens`` — the largest number of tokens in an answer that
        the model writes, 64 by default; ``length_normalised`` — ``True`` to divide the log-likelihood of an
        answer by its number of tokens; ``value`` — explain a value of newly written answers instead of the
        likelihood, as in `wrap_endpoint`: ``"overlap"``, ``"exact-match"``, ``"embedding"`` with an
        ``encoder``, or a function of the explained and a new answer.

        For ``.gguf`` files also ``device`` and ``dtype``.

        With ``value``, a function is a chat function: it gets a list of messages with ``role`` and
        ``content``, and returns the text of an answer. ``samples`` — number of answers to each prompt, if the
        function is random; ``in_flight`` — number of threads that call it.

    Examples
    --------
    >>> model = wrap(lambda texts: [[0.2, 0.8] for _ in texts], classes=["no", "yes"])
    >>> model.classes
    ('no', 'yes')
    """
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, type):
        raise ModelError(f"{thing.__name__} is a class; pass an instance: {_ACCEPTED}.")
    if is_gguf(thing):
        chosen = {name: options.pop(name) for name in ("device", "dtype") if name in options}
        thing = read_gguf(thing, **chosen)
    if isinstance(thing, tuple) or hasattr(thing, "task"):
        head, model, reader = _find_head(thing)
        _check_options(head.name, options, head.options())
        return head.wrap(model, reader, **options)
    if "value" in options and callable(thing) and not _is_module(thing):
        _check_options("chat function", options, keyword_options(wrap_chat_function))
        return wrap_chat_function(thing, **options)
    kind, model_class = _find_class(thing)
    _check_options(kind, options, constructor_options(model_class))
    return model_class(thing, **options)


def _check_options(kind: str, options: Iterable[str], accepted: Iterable[str]) -> None:
    for option in options:
        if option not in accepted:
            raise unknown(f"{kind} option", option, accepted)


def _find_head(thing: Any) -> tuple[type[RegisteredHead], Any, Any]:
    """Return a pipeline's or pair's head, its model, and its tokenizer or image processor."""
    is_pair = isinstance(thing, tuple)
    if is_pair and (len(thing) != 2 or not _is_module(thing[0]) or not callable(thing[1])):
        raise ModelError(
            f"A pair must be (transformers model, its tokenizer or image processor). Accepted: {_ACCEPTED}."
        )
    from pertinent.models.heads.base import heads

    model = thing[0] if is_pair else getattr(thing, "model", None)
    for head in sorted(heads.all().values(), key=lambda head: not head.architectures):
        if (head.reads_pair(*thing) if is_pair else thing.task in head.tasks) and head.suits(model):
            return head, model, thing[1] if is_pair else getattr(thing, head.reader)
    check_supported_task(str(thing.task))
    tasks = ", ".join(sorted({repr(task) for head in heads.all().values() for task in head.tasks}))
    raise ModelError(f"The pipeline's task is {thing.task!r}; only {tasks} are supported.")


def _find_class(thing: Any) -> tuple[str, type[FunctionModel]]:
    """Return the kind of an object without a head, and the class that wraps it."""
    if any(cls.__name__ == "PreTrainedModel" for cls in type(thing).__mro__):
        raise ModelError(
            "A transformers model needs its tokenizer or image processor: wrap((model, tokenizer))."
        )
    check_supported(thing)
    if _is_module(thing):
        from pertinent.models.module import ModuleModel

        return "module", ModuleModel
    if hasattr(thing, "predict_proba") or (hasattr(thing, "fit") and hasattr(thing, "predict")):
        from pertinent.models.estimator import EstimatorModel, check_estimator

        check_estimator(thing)
        return "estimator", EstimatorModel
    if callable(thing):
        return "function", FunctionModel
    raise ModelError(
        f"Cannot wrap {type(thing).__name__}. Accepted: {_ACCEPTED}. For anything else, wrap a function that "
        "calls it."
    )


def _is_module(thing: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)
