"""`wrap` turns anything that can be explained into a `Model`."""

from __future__ import annotations

import sys
from inspect import signature
from pkgutil import resolve_name
from typing import Any

from pertinent.errors import ModelError, unknown
from pertinent.models.base import Model

_ACCEPTED = (
    "a transformers text-classification, image-classification, question-answering or text-generation "
    "pipeline; a (model, "
    "tokenizer) or (model, image processor) pair; a torch.nn.Module over images or table rows; a fitted "
    "scikit-learn classifier or regressor; or a function from inputs to rows of numbers"
)
_CLASSES = {
    "image classifier": "pertinent.models.image_classifier:ImageClassifierModel",
    "module": "pertinent.models.module:ModuleModel",
    "estimator": "pertinent.models.estimator:EstimatorModel",
    "function": "pertinent.models.function:FunctionModel",
}
_TASKS = {
    "text-classification": "transformer",
    "sentiment-analysis": "transformer",
    "image-classification": "image classifier",
    "question-answering": "question-answering model",
    "text-generation": "language model",
}
_MEANING = ("classes", "names", "output", "unit")
_READING = ("max_length", "long_texts", "compaction")
_DATA = ("kind", "background", "columns", "groups")
_OPTIONS = {
    "transformer": (*_MEANING, *_READING),
    "question-answering model": ("fix_question", "max_answer_length", "no_answer", *_READING),
    "language model": ("max_new_tokens", "length_normalised", "value", "max_length", "compaction"),
    "image classifier": (*_MEANING, "background"),
    **dict.fromkeys(("module", "estimator", "function"), (*_MEANING, *_DATA)),
}


def wrap(thing: Any, **options: Any) -> Model:
    """Make a model out of `thing`, so that it can be explained.

    Parameters
    ----------
    thing
        A transformers text-classification, image-classification, question-answering or text-generation
        pipeline; a ``(model, tokenizer)`` or ``(model, image_processor)`` pair; a ``torch.nn.Module`` over
        images or table rows; a fitted scikit-learn classifier or regressor (or one with the same interface:
        xgboost, lightgbm); or a function from inputs to rows of numbers. A module is left in the mode it
        is in.
    **options
        ``output`` — what the numbers mean: ``"probability"`` or ``"logit"`` of classes,
        ``"label-probability"`` or ``"label-logit"`` of labels that may be true together, ``"value"``
        of a regressor; detected from the model if possible, else ``"probability"``. ``classes`` —
        names of classes or labels; ``names`` — of a regressor's values; ``unit`` — the unit of
        the values. For functions, estimators and modules: ``kind`` — ``"text"``, ``"image"`` or
        ``"table"`` if the input does not show it; ``background`` — table rows to fill removed columns
        from, or images to draw baselines from (of image classifiers, too); ``columns`` — names of the
        columns; ``groups`` — columns that are one feature, such as one-hot columns. For transformers that
        read texts: ``max_length`` — the most tokens that are read together; ``long_texts`` — what is done
        with texts that have more: ``"truncate"`` (by default), or for classifiers and regressors
        ``"windows"``, which overlap and whose mean is the answer; ``"windows:64"`` share 64 tokens with the
        next, by default a quarter; ``compaction`` — ``False`` to always compute removed tokens. For models
        that answer a question with a span of a context: ``fix_question`` — ``False`` if words of the question
        are features, too; ``max_answer_length`` — the most tokens of an answer, 30 by default;
        ``no_answer`` — ``True`` if the model may answer that there is none. For generative language models:
        ``max_new_tokens`` — the most tokens of an answer that the model writes itself, 64 by default;
        ``length_normalised`` — ``True`` to divide the log-likelihood of an answer by its number of tokens;
        ``value`` — instead of the likelihood, the value of the answers that the model writes anew when parts
        of a prompt are removed: ``"overlap"`` of their words with those of the answer that is explained, or a
        function from a list of new answers and that answer to a number for each.

    Examples
    --------
    >>> model = wrap(lambda texts: [[0.2, 0.8] for _ in texts], classes=["no", "yes"])
    >>> model.classes
    ('no', 'yes')
    """
    if isinstance(thing, Model):
        return thing
    kind = _kind(thing)
    for option in options:
        if option not in _OPTIONS[kind]:
            article = "an" if kind[0] in "aeio" else "a"
            raise unknown(f"option for {article} {kind}", option, _OPTIONS[kind])
    if kind in _CLASSES:
        wrapped = _pair(thing, "image_processor") if kind == "image classifier" else (thing,)
        return resolve_name(_CLASSES[kind])(*wrapped, **options)  # type: ignore[no-any-return]
    return _wrap_transformer(_pair(thing, "tokenizer"), kind, options)


_BY_FUNCTION = "wrap a function from a list of texts to"
_OTHER_HEADS = {
    "ForTokenClassification": (
        "a token classifier",
        f"{_BY_FUNCTION} the probabilities of one token's labels, or its score with output='value'",
    ),
    "ForMaskedLM": ("a masked language model", f"{_BY_FUNCTION} the probabilities of the words you ask for"),
    "ForConditionalGeneration": (
        "a generative model that reads more than text",
        f"{_BY_FUNCTION} the log-likelihood of the answer you ask about, with output='log-likelihood'",
    ),
}
"""What else transformers have on top, by a part of the class's name, and the way to explain them."""

_LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel")
_ENCODER_DECODERS = ("ForConditionalGeneration", "ForSeq2SeqLM", "MTModel")
"""Parts of the names of models with an encoder and a decoder; some of these read images or sounds."""


def _pair(thing: Any, reader: str) -> tuple[Any, Any]:
    """The model of a pipeline or a pair, with its tokenizer or image processor."""
    return thing if isinstance(thing, tuple) else (thing.model, getattr(thing, reader))


def _wrap_transformer(pair: tuple[Any, Any], kind: str, options: dict[str, Any]) -> Model:
    """Wrap a transformers model that reads texts, with its tokenizer."""
    from pertinent.models.heads.classification import ClassificationHead
    from pertinent.models.heads.encoder_decoder import EncoderDecoderHead
    from pertinent.models.heads.language_model import LanguageModelHead
    from pertinent.models.heads.reader import ReaderHead
    from pertinent.models.regeneration import RegeneratingModel
    from pertinent.models.torch.generation import TransformerWriter
    from pertinent.models.transformer import TransformerModel

    reading = {name: options.pop(name) for name in _READING if name in options}
    if kind == "language model":
        kind_of_head = EncoderDecoderHead if pair[0].config.is_encoder_decoder else LanguageModelHead
        value = options.pop("value", None)
        head = kind_of_head(**options)
        model = TransformerModel(*pair, head=head, **reading)
        return model if value is None else RegeneratingModel(TransformerWriter(model, head), value)
    if kind == "question-answering model":
        return TransformerModel(*pair, head=ReaderHead(**options), **reading)
    return TransformerModel(*pair, head=ClassificationHead(pair[0].config, **options), **reading)


def _kind(thing: Any) -> str:
    if isinstance(thing, type):
        raise ModelError(f"{thing.__name__} is a class; give an instance of it: {_ACCEPTED}.")
    if isinstance(thing, tuple) or hasattr(thing, "task"):
        return _transformer_kind(thing)
    if _is_module(thing):
        if hasattr(thing, "config") and hasattr(thing, "get_input_embeddings"):
            raise ModelError(
                "A transformers model needs its tokenizer or image processor: wrap((model, tokenizer))."
            )
        return "module"
    if hasattr(thing, "predict_proba") or (hasattr(thing, "fit") and hasattr(thing, "predict")):
        _check_estimator(thing)
        return "estimator"
    if callable(thing):
        return "function"
    raise ModelError(
        f"Cannot wrap {type(thing).__name__}. Accepted: {_ACCEPTED}. For anything else wrap a function that "
        "calls it."
    )


def _transformer_kind(thing: Any) -> str:
    if not isinstance(thing, tuple):
        if thing.task not in _TASKS:
            raise ModelError(
                f"The pipeline's task is {thing.task!r}; only 'text-classification', 'image-classification', "
                "'question-answering' and 'text-generation' can be explained."
            )
        return _TASKS[thing.task]
    if len(thing) != 2 or not _is_module(thing[0]) or not callable(thing[1]):
        raise ModelError(
            f"A pair must be (transformers model, its tokenizer or image processor). Accepted: {_ACCEPTED}."
        )
    if hasattr(thing[1], "do_normalize"):
        return "image classifier"
    kinds = [own.__name__ for own in type(thing[0]).__mro__]
    if _is_language_model(thing[0], kinds):
        return "language model"
    for name, (what, way) in _OTHER_HEADS.items():
        if any(name in kind for kind in kinds):
            raise ModelError(f"{kinds[0]} is {what}, not a classifier: {way}.")
    if any("ForQuestionAnswering" in kind for kind in kinds):
        return "question-answering model"
    if getattr(thing[0], "base_model", None) is thing[0]:
        raise ModelError(
            f"{kinds[0]} has no head, so it answers nothing: load the model by "
            "AutoModelForSequenceClassification, AutoModelForQuestionAnswering, AutoModelForCausalLM or "
            "AutoModelForSeq2SeqLM."
        )
    return "transformer"


def _is_language_model(model: Any, kinds: list[str]) -> bool:
    """Whether a model writes texts, and reads no images or sounds; `kinds` are the names of its classes."""
    if any(name in kind for name in _LANGUAGE_MODELS for kind in kinds):
        return True
    known = signature(model.forward).parameters
    reads_text = "input_ids" in known and "pixel_values" not in known
    is_one = any(name in kind for name in _ENCODER_DECODERS for kind in kinds)
    return is_one and reads_text and bool(getattr(model.config, "is_encoder_decoder", False))


def _check_estimator(thing: Any) -> None:
    """Raise an error unless it is fitted, and gives probabilities if it is a classifier."""
    from pertinent._optional import optional

    if hasattr(thing, "__sklearn_tags__") or hasattr(thing, "_estimator_type"):
        is_regressor = bool(optional("sklearn.base").is_regressor(thing))
    else:
        is_regressor = not hasattr(thing, "predict_proba")
    if not is_regressor and not hasattr(thing, "predict_proba"):
        raise ModelError(
            f"{type(thing).__name__} has no predict_proba, so it gives no class probabilities; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV, or pass a function."
        )
    is_fitted = is_regressor or hasattr(thing, "classes_")
    if is_regressor and hasattr(thing, "__sklearn_tags__"):
        try:
            optional("sklearn.utils.validation").check_is_fitted(thing)
        except optional("sklearn.exceptions").NotFittedError:
            is_fitted = False
    if not is_fitted:
        raise ModelError(f"The {type(thing).__name__} is not fitted: call its fit() first.")


def _is_module(thing: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)
