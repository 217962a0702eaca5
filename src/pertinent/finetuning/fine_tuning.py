"""Fine-tuning of a transformers classifier, standard or counterfactual."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pertinent._optional import optional
from pertinent.config.settings import Count, Positive, Seed, Share, checked
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.explainers.base import DEFAULT_SPARSITIES
from pertinent.finetuning.run_folder import RunFolder
from pertinent.finetuning.training_settings import TrainingSettings, text_removal
from pertinent.removals.base import Removal

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a training run.

    Attributes
    ----------
    model
        The trained, wrapped model, ready to be explained.
    folder
        Folder with the model in transformers' format and ``pertinent.json``.
    accuracy
        Accuracy on the validation inputs, or ``None`` if there were none.
    steps
        Number of optimiser steps.
    history
        Log of ``Trainer``: loss, learning rate, and validation accuracy per epoch.
    """

    model: TransformerModel
    folder: Path
    accuracy: float | None
    steps: int
    history: Sequence[Mapping[str, float]]


@checked
def train(
    model: Any,
    inputs: Any,
    labels: Any,
    *,
    out: str | Path,
    validation: Any = None,
    new_head: bool = False,
    counterfactual: bool = True,
    removal: str | Removal = "attention-mask",
    sparsity: Share | Sequence[Share] = DEFAULT_SPARSITIES,
    epochs: Count = 3,
    batch_size: Count = 32,
    learning_rate: Positive = 1e-5,
    seed: Seed = 0,
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    max_length: Count | None = None,
    patience: Count | None = None,
    checkpoint_steps: Count | None = None,
    resume: bool = False,
    progress: Callback | bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Trained:
    """Fine-tune a text classifier with AdamW so that its explanations show what it learned, and save it.

    Counterfactual training (Hase et al. 2021, Sec. 4) doubles each batch by adding a copy of every text with
    only a random share of its tokens kept, and the same label. For a model trained this way, inputs with
    removed features are in distribution, so explanations based on them show what it learned.

    Parameters
    ----------
    model
        A float32 transformers sequence classifier with its fast tokenizer, in any form that `wrap` accepts.
        It is trained in place, on its current device (CPU or CUDA).
    inputs
        Texts, pairs, or a query with its document, as in `explain`.
    labels
        Class of each input, by name or index.
    out
        Folder to save to, new or empty. It holds checkpoints during training.
    validation
        A pair (inputs, labels) on which accuracy is measured after each epoch; the best model is kept.
    new_head
        Start with a new classification layer for the classes in `labels`. `model` is then not modified.
    counterfactual
        Also train on every text with most of its tokens removed.
    removal
        How tokens are removed: a name from `list_removals()` for texts, but not ``"marginalize"``.
    sparsity
        Shares of tokens to keep; one is drawn for each input in each epoch.
    epochs
        Number of passes over the inputs.
    batch_size
        Number of inputs per step and device, not counting their counterfactuals.
    learning_rate
        Initial learning rate; it decays linearly to 0.
    seed
        Seed of all random draws. Equal seeds give equal models, on CUDA up to the order of floating-point
        sums.
    precision
        Floating-point type; ``"bfloat16"`` and ``"float16"`` use mixed precision.
    max_length
        Truncate texts to this many tokens.
    patience
        Stop after this many consecutive measurements without a better accuracy on `validation`.
    checkpoint_steps
        Number of steps between checkpoints and measurements; by default one epoch.
    resume
        Continue from the last checkpoint in `out`, or start from the beginning if there is none. A finished
        run is loaded.
    progress
        As in `explain`; it counts inputs.
    options
        An additional setting of transformers' ``TrainingArguments``, such as ``warmup_steps=100``. From
        Python, a mapping of names to values.
    """
    optional("accelerate")
    settings = TrainingSettings(
        removal=text_removal(removal) if counterfactual else None,
        sparsities=(sparsity,) if isinstance(sparsity, float) else tuple(sparsity),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        precision=precision,
        max_length=max_length,
        patience=patience,
        checkpoint_steps=checkpoint_steps,
        options=dict(options or {}),
    )
    if patience is not None and validation is None:
        raise SettingError("`patience` needs validation data: also pass `validation`.")
    from pertinent.finetuning.batches import Counterfactuals, Examples

    wrapped = _classifier(model, labels if new_head else None, seed, max_length)
    settings.check_device(wrapped.device)
    data = Examples.from_texts(wrapped, inputs, labels)
    held_out = None
    if validation is not None:
        validation_inputs, validation_labels = validation
        held_out = Examples.from_texts(wrapped, validation_inputs, validation_labels, "validation")
    folder = RunFolder(Path(out), settings.recorded(data, held_out))
    counterfactuals = None
    if settings.removal is not None:
        for input in data.inputs:
            settings.removal.check(input)
        removal = settings.removal.bind(wrapped)
        counterfactuals = Counterfactuals(removal, settings.sparsities, settings.seed)
    metric = None if held_out is None else "accuracy"
    arguments = settings.arguments(folder.checkpoints, metric, wrapped.device.type)
    folder.open(resume=resume)
    if folder.finished:
        return _result(wrapped, folder, folder.load(wrapped.model))
    from pertinent.finetuning.trainer import CounterfactualTrainer, training_session

    with training_session("train", progress, wrapped.device, precision) as callback:
        trainer = CounterfactualTrainer(
            wrapped,
            arguments,
            data,
            dev=None if held_out is None else held_out.sorted_by_length(),
            counterfactuals=counterfactuals,
            progress=callback,
            callbacks=settings.callbacks(),
        )
        trainer.train(resume_from_checkpoint=folder.last_checkpoint())
        wrapped.model.eval()
        state = trainer.state
        results = {
            "dev_accuracy": state.best_metric,
            "steps": state.global_step,
            "history": state.log_history,
        }
        if trainer.is_world_process_zero():
            folder.finish(wrapped, results)
    return _result(wrapped, folder, results)


def _classifier(model: Any, labels: Any, seed: int, max_length: int | None) -> TransformerModel:
    """Return the classifier to train; if `labels` is not ``None``, it gets a new classification layer."""
    import torch

    from pertinent.models.heads.text_classification import ClassificationHead
    from pertinent.models.transformer import TransformerModel
    from pertinent.models.wrap import wrap

    original = wrap(model)
    if not isinstance(original, TransformerModel) or not isinstance(original.head, ClassificationHead):
        raise ModelError(f"`model` must be a transformers text classifier, got {original!r}.")
    classifier, tokenizer = original.in_transformers()
    if labels is not None:
        classifier = with_new_head(classifier, labels, seed)
    if original.windows is not None:
        raise SettingError("Training truncates long texts: wrap the model without `long_texts`.")
    head = ClassificationHead.from_model(classifier)
    wrapped = TransformerModel(classifier, tokenizer, head=head, max_length=max_length)
    if wrapped.output.kind != "class":
        raise ModelError(
            "`model` must be a single-label classifier with at least two classes, got one with output "
            f"{wrapped.output.kind!r}."
        )
    if wrapped.dtype != torch.float32:
        raise ModelError(
            f"`model` must be in float32, got {wrapped.dtype}: load it in float32, and set `precision` for "
            "mixed precision."
        )
    return wrapped


def with_new_head(model: Any, labels: Sequence[Any], seed: int) -> Any:
    """Return a copy of the model with a new classification layer for the classes in `labels`.

    The classes are sorted by name, or numerically if all names are numbers.
    """
    import torch

    names = {str(label) for label in labels if label is not None and str(label).strip()}
    numbers = all(name.isdecimal() for name in names)
    classes = sorted(names, key=int) if numbers else sorted(names)
    if len(classes) < 2:
        raise InputError(f"`labels` must contain at least two classes, got {classes}.")
    config = copy.deepcopy(model.config)
    config.id2label = dict(enumerate(classes))
    config.label2id = {name: i for i, name in enumerate(classes)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        copied = type(model)(config)
    encoder = model.base_model_prefix
    getattr(copied, encoder).load_state_dict(getattr(model, encoder).state_dict(), strict=False)
    return copied.to(model.device).eval()


def _result(wrapped: TransformerModel, folder: RunFolder, results: Mapping[str, Any]) -> Trained:
    return Trained(wrapped, folder.path, results["dev_accuracy"], results["steps"], results["history"])
